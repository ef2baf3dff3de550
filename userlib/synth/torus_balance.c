// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A plan that fills all channels alike on any torus. The paper's blocks leave the
 * channels of rings of two idle for most of the time, but a datum may come over
 * any of them: whoever is one flip away has it or soon will. Step by step, each
 * displacement that has a neighbour with the datum is given to the least loaded of
 * the channels that could bring it, nearest first; what a channel has beyond the
 * others' load waits for a later step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "torus.h"

enum {
	WASTE = 50,			/* a step may leave one in so many channel slots empty */
	NONE = UINT8_MAX,
};

struct balance {
	const struct muster_torus *torus;
	struct muster_torus_plan *plan;
	uint32_t channels;
	uint32_t *order;		/* displacements, nearest first */
	bool *there;			/* before this step */
	uint8_t *over;			/* by displacement: its channel in this step */
	uint32_t load[MUSTER_TORUS_CHANNELS_MAX];
	uint32_t left;
};

static uint32_t distance(const struct muster_torus *torus, uint32_t displacement)
{
	uint32_t sum = 0;

	for (uint32_t ring = torus->rings; ring-- > 0;) {
		uint32_t size = torus->size[ring], at = displacement % size;

		sum += at < size - at ? at : size - at;
		displacement /= size;
	}
	return sum;
}

/* A counting sort by distance. */
static int sort_by_distance(struct balance *b)
{
	uint32_t farthest = distance(b->torus, 0), *first;

	for (uint32_t i = 0; i < b->torus->rings; i++)
		farthest += b->torus->size[i] / 2;
	first = calloc(farthest + 2, sizeof(*first));
	if (!first)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->torus->nodes; i++)
		first[distance(b->torus, i) + 1]++;
	for (uint32_t i = 0; i <= farthest; i++)
		first[i + 1] += first[i];
	for (uint32_t i = 0; i < b->torus->nodes; i++)
		b->order[first[distance(b->torus, i)]++] = i;
	free(first);
	return 0;
}

/* The least loaded channel over which a neighbour could send it. */
static uint8_t best_channel(const struct balance *b, uint32_t to)
{
	uint8_t best = NONE;

	for (uint32_t c = 0; c < b->channels; c++)
		if (b->there[muster_torus_go(b->torus, to, c ^ 1)] &&
		    (best == NONE || b->load[c] < b->load[best]))
			best = c;
	return best;
}

static void offer(struct balance *b)
{
	memset(b->load, 0, sizeof(b->load));
	for (uint32_t i = 0; i < b->torus->nodes; i++) {
		uint32_t to = b->order[i];

		b->over[to] = b->there[to] ? NONE : best_channel(b, to);
		if (b->over[to] != NONE)
			b->load[b->over[to]]++;
	}
}

/* The most rounds in which the channels are all but full; at the end, whatever it takes. */
static uint32_t choose_rounds(const struct balance *b)
{
	uint32_t most = 0, offered = 0, rounds;

	for (uint32_t c = 0; c < b->channels; c++) {
		most = b->load[c] > most ? b->load[c] : most;
		offered += b->load[c];
	}
	if (offered == b->left && (uint64_t)most * b->channels <= offered + b->torus->nodes / WASTE)
		return most;
	for (rounds = most; rounds > 1; rounds--) {
		uint64_t sent = 0, slots = (uint64_t)rounds * b->channels;

		for (uint32_t c = 0; c < b->channels; c++)
			sent += b->load[c] < rounds ? b->load[c] : rounds;
		if (sent >= slots - slots / WASTE)
			break;
	}
	return rounds;
}

static int send(struct balance *b, uint32_t step, uint32_t rounds)
{
	uint32_t sent[MUSTER_TORUS_CHANNELS_MAX] = { 0 };
	int err = 0;

	for (uint32_t i = 0; i < b->torus->nodes && !err; i++) {
		uint32_t to = b->order[i];
		uint8_t c = b->over[to];

		if (c == NONE)
			continue;
		if (sent[c]++ >= rounds) {
			b->over[to] = NONE;
			continue;
		}
		err = muster_torus_plan_add(b->plan, &(struct muster_torus_hop){
			.step = step, .to = to, .channel = c, .first = 0, .nr = 1,
			.from = muster_torus_go(b->torus, to, c ^ 1),
		});
	}
	for (uint32_t to = 0; to < b->torus->nodes; to++)
		if (b->over[to] != NONE) {
			b->there[to] = true;
			b->left--;
		}
	return err;
}

static int run(struct balance *b)
{
	int err = sort_by_distance(b);

	b->there[0] = true;
	b->left = b->torus->nodes - 1;
	b->plan->parts = 1;
	for (uint32_t step = 0; b->left && !err; step++) {
		offer(b);
		err = send(b, step, choose_rounds(b));
	}
	return err;
}

int muster_torus_plan_balanced(const struct muster_torus *torus, struct muster_torus_plan **plan)
{
	struct balance b = {
		.torus = torus, .channels = 2 * torus->rings,
		.plan = muster_torus_plan_new(torus),
		.order = calloc(torus->nodes, sizeof(uint32_t)),
		.there = calloc(torus->nodes, sizeof(bool)),
		.over = calloc(torus->nodes, sizeof(uint8_t)),
	};
	int err = b.plan && b.order && b.there && b.over ? run(&b) : -ENOMEM;

	free(b.over);
	free(b.there);
	free(b.order);
	if (err) {
		muster_torus_plan_free(b.plan);
		return err;
	}
	muster_torus_plan_end(b.plan);
	*plan = b.plan;
	return 0;
}
