// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Solutions, and the proof that they are: a run of the sends, chunk by chunk,
 * with the loads counted limit by limit. No solver's word is taken for anything.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shape.h"

enum { NEVER = UINT32_MAX };

void muster_solution_free(struct muster_solution *solution)
{
	if (!solution)
		return;
	free(solution->sends);
	free(solution);
}

struct muster_solution *muster_solution_copy(const struct muster_solution *solution)
{
	struct muster_solution *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *solution;
	copy->sends = malloc((solution->nr_sends + 1) * sizeof(*copy->sends));
	if (!copy->sends) {
		free(copy);
		return NULL;
	}
	if (solution->nr_sends)
		memcpy(copy->sends, solution->sends, solution->nr_sends * sizeof(*copy->sends));
	return copy;
}

uint32_t muster_solution_rounds(const struct muster_topology *topology,
				const struct muster_solution *solution, uint32_t step)
{
	uint32_t *loads = calloc(topology->nr_links + 1, sizeof(*loads));
	uint32_t most = 0;

	if (!loads)
		return NEVER;
	for (uint32_t i = 0; i < solution->nr_sends; i++)
		loads[solution->sends[i].link] += solution->sends[i].step == step;
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];
		uint64_t load = 0, rounds;

		for (uint32_t j = 0; j < limit->nr_links; j++)
			load += loads[limit->links[j]];
		if (!load)
			continue;
		if (!limit->bandwidth) {
			most = NEVER;
			break;
		}
		rounds = (load + limit->bandwidth - 1) / limit->bandwidth;
		most = rounds > most ? rounds : most;
	}
	free(loads);
	return most;
}

static int verify_rounds(const struct muster_instance *instance,
			 const struct muster_solution *solution, char *why, size_t why_len)
{
	uint64_t rounds = 0;

	for (uint32_t step = 0; step < solution->steps; step++) {
		uint32_t more = muster_solution_rounds(instance->topology, solution, step);

		rounds += more ? more : 1;
	}
	if (solution->steps > instance->steps || rounds > instance->rounds) {
		snprintf(why, why_len, "it takes %" PRIu32 " steps and %" PRIu64 " rounds, but "
			 "there are %" PRIu32 " and %" PRIu32, solution->steps, rounds,
			 instance->steps, instance->rounds);
		return -EINVAL;
	}
	return 0;
}

/* since: by chunk and node, the number of steps after which the chunk is there. */
static uint32_t *since_start(const struct muster_instance *instance)
{
	size_t nr = (size_t)instance->chunks * instance->topology->nodes;
	uint32_t *since = malloc((nr + 1) * sizeof(*since));

	for (size_t i = 0; i < nr && since; i++)
		since[i] = instance->pre[i] ? 0 : NEVER;
	return since;
}

static int verify_send(const struct muster_instance *instance, const struct muster_send *send,
		       uint32_t steps, uint32_t *since, char *why, size_t why_len)
{
	const struct muster_link *link = &instance->topology->links[send->link];
	uint32_t nodes = instance->topology->nodes;

	if (send->chunk >= instance->chunks || send->link >= instance->topology->nr_links ||
	    send->step >= steps) {
		snprintf(why, why_len, "a send of chunk %" PRIu32 " over link %" PRIu32 " in step "
			 "%" PRIu32 " that does not exist", send->chunk, send->link, send->step);
		return -EINVAL;
	}
	if (since[(size_t)send->chunk * nodes + link->from] > send->step) {
		snprintf(why, why_len, "step %" PRIu32 ", %" PRIu32 " -> %" PRIu32 ", chunk "
			 "%" PRIu32 ": it is not there yet", send->step, link->from, link->to,
			 send->chunk);
		return -EINVAL;
	}
	if (since[(size_t)send->chunk * nodes + link->to] > send->step + 1)
		since[(size_t)send->chunk * nodes + link->to] = send->step + 1;
	return 0;
}

int muster_solution_verify(const struct muster_instance *instance,
			   const struct muster_solution *solution, char *why, size_t why_len)
{
	uint32_t nodes = instance->topology->nodes;
	uint32_t *since;
	int err;

	if (instance->shape) {
		err = muster_shape_verify(instance, solution, why, why_len);
		return err ? err : verify_rounds(instance, solution, why, why_len);
	}
	since = since_start(instance);
	err = since ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < solution->nr_sends && !err; i++) {
		if (i && solution->sends[i].step < solution->sends[i - 1].step)
			err = -EINVAL;
		if (!err)
			err = verify_send(instance, &solution->sends[i], solution->steps, since,
					  why, why_len);
	}
	for (size_t i = 0; i < (size_t)instance->chunks * nodes && !err; i++) {
		if (!instance->post[i] || since[i] != NEVER)
			continue;
		snprintf(why, why_len, "chunk %zu does not reach node %zu", i / nodes, i % nodes);
		err = -EINVAL;
	}
	free(since);
	return err ? err : verify_rounds(instance, solution, why, why_len);
}

/* ---- trimming ------------------------------------------------------------------ */

/* Only the first arrival of a chunk at a node counts. */
static void mark_first(const struct muster_instance *instance,
		       const struct muster_solution *solution, bool *keep, uint32_t *since)
{
	uint32_t nodes = instance->topology->nodes;

	for (uint32_t i = 0; i < solution->nr_sends; i++) {
		const struct muster_send *send = &solution->sends[i];
		uint32_t to = instance->topology->links[send->link].to;
		uint32_t *at = &since[(size_t)send->chunk * nodes + to];

		keep[i] = *at == NEVER;
		if (keep[i])
			*at = send->step + 1;
	}
}

/* From the last step to the first: what is needed at the receiver, or sent on from there. */
static void mark_needed(const struct muster_instance *instance,
			const struct muster_solution *solution, bool *keep, bool *needed)
{
	uint32_t nodes = instance->topology->nodes;

	for (uint32_t i = solution->nr_sends; i-- > 0;) {
		const struct muster_send *send = &solution->sends[i];
		const struct muster_link *link = &instance->topology->links[send->link];

		keep[i] = keep[i] && needed[(size_t)send->chunk * nodes + link->to];
		if (keep[i])
			needed[(size_t)send->chunk * nodes + link->from] = true;
	}
}

int muster_solution_trim(const struct muster_instance *instance, struct muster_solution *solution)
{
	size_t nr = (size_t)instance->chunks * instance->topology->nodes;
	bool *keep, *needed;
	uint32_t *since, kept = 0;
	int err;

	if (instance->shape)
		return muster_shape_trim(instance, solution);
	keep = calloc(solution->nr_sends + 1, sizeof(*keep));
	needed = malloc(nr + 1);
	since = since_start(instance);
	err = keep && needed && since ? 0 : -ENOMEM;
	if (!err) {
		memcpy(needed, instance->post, nr);
		mark_first(instance, solution, keep, since);
		mark_needed(instance, solution, keep, needed);
		for (uint32_t i = 0; i < solution->nr_sends; i++)
			if (keep[i])
				solution->sends[kept++] = solution->sends[i];
		solution->nr_sends = kept;
	}
	free(since);
	free(needed);
	free(keep);
	return err;
}
