// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A simulated network of bumps and hosts: from one seed, every algorithm, operation
 * and type, several groups at once, several ranks a host; links that lose, repeat
 * and reorder, hosts that are late, die, or ask for something else, bumps that are
 * restarted. Every result is compared, bit for bit, with plain formulas.
 *
 * usage: bump_sim [--hosts N] [FIRST [COUNT]]     seeds; 1 200 by default
 */
#include <err.h>
#include <getopt.h>
#include <stdio.h>

#include "arith.h"
#include "bump_reference.h"
#include "test_net.h"

enum {
	GROUPS = 2, OPERATIONS_MAX = 48, LOCAL_MAX = 3, ASK_AGAIN_US = 20000,
	PATIENCE_US = 5000000, ELEMENTS_MAX = 176,
};

struct wanted {
	struct muster_bump_header header;	/* what all ranks share */
	uint32_t bytes;
	uint8_t *results;		/* by rank; made when the first one comes */
};

enum rank_end { RANK_RUNS, RANK_THROUGH, RANK_ERROR, RANK_DEAD };

struct rank {
	uint16_t host, local;
	uint32_t first, next;		/* oldest unanswered operation, the one to ask next */
	bool answered[OPERATIONS_MAX];
	uint64_t asked_us[OPERATIONS_MAX];
	enum rank_end end;
	uint8_t status;
};

struct group {
	uint32_t number, hosts, first, stride, nr_ranks, nr_operations, depth, base_id;
	uint8_t local[MUSTER_BUMP_HOSTS_MAX];
	uint32_t first_rank[MUSTER_BUMP_HOSTS_MAX];
	struct rank *ranks;
	struct wanted wanted[OPERATIONS_MAX];
};

enum disaster { NO_DISASTER, HOST_DIES, BUMP_RESTARTS, RANK_DIFFERS };

struct sim {
	struct net *net;
	uint64_t seed, rng;
	struct group groups[GROUPS];
	enum disaster disaster;
	uint32_t victim;
	uint64_t results, errors;
};

static uint64_t mix(uint64_t z)
{
	z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint32_t draw(struct sim *sim, uint32_t below)
{
	return (uint32_t)(mix(sim->rng++) >> 20) % below;
}

/* ---- what ranks have, and what they must get ---- */

static uint64_t element(const struct sim *sim, const struct group *group, uint32_t op,
			uint32_t rank, uint32_t i)
{
	uint64_t bits = mix(sim->seed ^ mix(group->number + op * 131071ull + mix(rank + i * 7919ull)));
	double real = ((double)(int64_t)bits + 0.5) / (double)(1ull << (bits & 31));

	if (group->wanted[op].header.type == MUSTER_DTYPE_F64) {
		memcpy(&bits, &real, 8);
		return bits;
	}
	return bits & 1 << 20 ? (uint32_t)bits : 0;
}

static size_t type_bytes(const struct wanted *wanted)
{
	return wanted->header.type == MUSTER_DTYPE_F64 ? 8 : 4;
}

static uint64_t host_own(const struct sim *sim, const struct group *group, uint32_t op,
			 uint32_t host, uint32_t i)
{
	const struct muster_bump_header *h = &group->wanted[op].header;
	uint64_t all = element(sim, group, op, group->first_rank[host], i);

	for (uint32_t l = 1; l < group->local[host]; l++)
		all = bump_combine(h->type, h->redop, all,
				   element(sim, group, op, group->first_rank[host] + l, i));
	return all;
}

static void put_results(const struct sim *sim, struct group *group, uint32_t op, uint32_t i,
			uint64_t all, const uint64_t *before)
{
	struct wanted *wanted = &group->wanted[op];
	const struct muster_bump_header *h = &wanted->header;

	for (uint32_t r = 0; r < group->nr_ranks; r++) {
		struct rank *rank = &group->ranks[r];
		uint64_t own = element(sim, group, op, r, i), value = all;

		if (h->operation == MUSTER_BUMP_SCAN && rank->local)
			memcpy(&value, wanted->results + (r - 1) * wanted->bytes +
			       i * type_bytes(wanted), 8 < type_bytes(wanted) ? 8 : type_bytes(wanted));
		if (h->operation == MUSTER_BUMP_SCAN && type_bytes(wanted) == 4)
			value = (uint32_t)value;
		if (h->operation == MUSTER_BUMP_SCAN)
			value = rank->local ? bump_combine(h->type, h->redop, value, own) :
				rank->host ? bump_combine(h->type, h->redop, before[rank->host], own) :
				own;
		memcpy(wanted->results + r * wanted->bytes + i * type_bytes(wanted), &value,
		       type_bytes(wanted));
	}
}

static void make_results(const struct sim *sim, struct group *group, uint32_t op)
{
	struct wanted *wanted = &group->wanted[op];
	static uint64_t own[MUSTER_BUMP_HOSTS_MAX], before[MUSTER_BUMP_HOSTS_MAX];

	wanted->results = malloc((size_t)group->nr_ranks * wanted->bytes + 1);
	for (uint32_t i = 0; i < wanted->bytes / type_bytes(wanted); i++) {
		for (uint32_t host = 0; host < group->hosts; host++)
			own[host] = host_own(sim, group, op, host, i);
		put_results(sim, group, op, i,
			    bump_reference(wanted->header.algorithm, wanted->header.type,
					   wanted->header.redop, group->hosts, own, before), before);
	}
}

/* ---- hosts ---- */

static uint32_t timer_value(const struct sim *sim, const struct group *group, uint32_t rank)
{
	return (uint32_t)(group - sim->groups) << 24 | rank;
}

static void ask(struct sim *sim, struct group *group, uint32_t r, uint32_t op, bool give_up)
{
	struct wanted *wanted = &group->wanted[op];
	struct rank *rank = &group->ranks[r];
	struct muster_bump_header header = wanted->header;
	uint8_t data[MUSTER_BUMP_DATA_MAX];
	size_t size = type_bytes(wanted);

	for (uint32_t i = 0; i < wanted->bytes / size; i++) {
		uint64_t bits = element(sim, group, op, r, i);

		memcpy(data + i * size, &bits, size);
	}
	header.rank = htole16((uint16_t)r);
	header.local_rank = (uint8_t)rank->local;
	header.local_ranks = group->local[rank->host];
	if (give_up)
		header.message = MUSTER_BUMP_ABORT;
	if (sim->disaster == RANK_DIFFERS && r == 0 && op == group->nr_operations / 2)
		header.algorithm = (uint8_t)(1 + header.algorithm % 4);
	net_ask(sim->net, group->first + rank->host * group->stride, &header, data,
		give_up ? 0 : wanted->bytes);
}

static void rank_go_on(struct sim *sim, struct group *group, uint32_t r)
{
	struct rank *rank = &group->ranks[r];

	while (rank->first < group->nr_operations && rank->answered[rank->first])
		rank->first++;
	for (; rank->next < group->nr_operations && rank->next < rank->first + group->depth;
	     rank->next++) {
		rank->asked_us[rank->next] = sim->net->now;
		ask(sim, group, r, rank->next, false);
	}
	if (rank->first == group->nr_operations)
		rank->end = RANK_THROUGH;
}

static void on_timer(struct net *net, uint32_t host, uint32_t value)
{
	struct sim *sim = net->opaque;
	struct group *group = &sim->groups[value >> 24];
	uint32_t r = value & 0xffffff;
	struct rank *rank = &group->ranks[r];

	if (rank->end == RANK_THROUGH || rank->end == RANK_DEAD || rank->end == RANK_ERROR)
		return;
	if (sim->disaster == HOST_DIES && host == sim->victim && rank->next) {
		rank->end = RANK_DEAD;
		return;
	}
	for (uint32_t op = rank->first; op < rank->next; op++)
		if (!rank->answered[op])
			ask(sim, group, r, op, net->now - rank->asked_us[op] > PATIENCE_US);
	rank_go_on(sim, group, r);
	net_timer(net, host, ASK_AGAIN_US, value);
}

static void on_response(struct sim *sim, struct group *group, uint32_t r, uint32_t op,
			const uint8_t *data, uint32_t bytes)
{
	struct wanted *wanted = &group->wanted[op];
	struct rank *rank = &group->ranks[r];

	if (!wanted->results)
		make_results(sim, group, op);
	if (bytes != wanted->bytes || memcmp(data, wanted->results + r * wanted->bytes, bytes))
		errx(1, "seed %lu: group %u, operation %u (%u, algorithm %u, type %u, op %u) of %u hosts: rank %u has a wrong result",
		     sim->seed, group->number, op, wanted->header.operation,
		     wanted->header.algorithm, wanted->header.type, wanted->header.redop,
		     group->hosts, r);
	if (!rank->answered[op])
		sim->results++;
	rank->answered[op] = true;
	rank_go_on(sim, group, r);
}

static void on_frame(struct net *net, uint32_t host, const uint8_t *data, uint32_t len)
{
	struct sim *sim = net->opaque;
	struct muster_bump_header header;
	struct group *group;
	uint32_t g, r, op;

	if (len < NET_DATA_AT)
		errx(1, "seed %lu: host %u got a frame of %u bytes", sim->seed, host, len);
	memcpy(&header, data + 42, sizeof(header));
	g = le32toh(header.group) - 1000;
	r = le16toh(header.rank);
	if (g >= GROUPS || r >= sim->groups[g].nr_ranks)
		errx(1, "seed %lu: host %u got an answer for another group", sim->seed, host);
	group = &sim->groups[g];
	op = le32toh(header.id) - group->base_id;
	if (op >= group->nr_operations || group->ranks[r].end == RANK_DEAD)
		return;
	if (header.message == MUSTER_BUMP_RESPONSE) {
		on_response(sim, group, r, op, data + NET_DATA_AT, len - NET_DATA_AT);
		return;
	}
	if (header.message != MUSTER_BUMP_ERROR || !header.status)
		errx(1, "seed %lu: message %u to a host", sim->seed, header.message);
	if (!sim->disaster)
		errx(1, "seed %lu: error %u for operation %u of rank %u (%u elements, loss %u of 1000)",
		     sim->seed, header.status, op, r, net->topology.nr, net->loss);
	sim->errors++;
	group->ranks[r].end = RANK_ERROR;
}

/* ---- drawing ---- */

static void draw_operation(struct sim *sim, struct group *group, struct wanted *wanted, uint32_t op)
{
	static const uint8_t types[] = { MUSTER_DTYPE_I32, MUSTER_DTYPE_U32, MUSTER_DTYPE_F64 };
	struct muster_bump_header *h = &wanted->header;

	*h = net_header();
	h->group = htole32(group->number);
	h->id = htole32(group->base_id + op);
	h->operation = (uint8_t)(1 + draw(sim, MUSTER_BUMP_SCAN));
	h->algorithm = (uint8_t)(1 + draw(sim, MUSTER_BUMP_TORUS));
	h->hosts = htole16((uint16_t)group->hosts);
	h->first = htole16((uint16_t)group->first);
	h->stride = htole16((uint16_t)group->stride);
	h->ranks = htole16((uint16_t)group->nr_ranks);
	if (h->operation == MUSTER_BUMP_REDUCE)
		h->root = htole16((uint16_t)draw(sim, group->nr_ranks));
	if (h->operation == MUSTER_BUMP_BARRIER)
		return;
	h->type = types[draw(sim, 3)];
	do
		h->redop = (uint8_t)(1 + draw(sim, MUSTER_REDOP_LXOR));
	while (!muster_arith_supported(h->type, h->redop));
	h->count = htole16((uint16_t)(1 + draw(sim, draw(sim, 8) ? 9 : ELEMENTS_MAX)));
	wanted->bytes = le16toh(h->count) * (uint32_t)type_bytes(wanted);
}

static void draw_group(struct sim *sim, struct group *group, uint32_t number)
{
	uint32_t nr = sim->net->topology.nr, r = 0;

	group->number = 1000 + number;
	group->stride = number && nr > 2 ? 1 + draw(sim, 2) : 1;
	group->first = number ? draw(sim, nr) : 0;
	group->hosts = (nr - group->first + group->stride - 1) / group->stride;
	group->nr_operations = nr > 100 ? 4 : 1 + draw(sim, OPERATIONS_MAX);
	group->depth = 1 + draw(sim, MUSTER_BUMP_WINDOW);
	group->base_id = draw(sim, 2) ? 0 : UINT32_MAX - draw(sim, 40);
	for (uint32_t host = 0; host < group->hosts; host++) {
		group->local[host] = (uint8_t)(nr > 100 ? 1 : 1 + draw(sim, LOCAL_MAX));
		group->first_rank[host] = group->nr_ranks;
		group->nr_ranks += group->local[host];
	}
	group->ranks = calloc(group->nr_ranks, sizeof(*group->ranks));
	for (uint32_t host = 0; host < group->hosts; host++)
		for (uint32_t l = 0; l < group->local[host]; l++, r++) {
			group->ranks[r].host = (uint16_t)host;
			group->ranks[r].local = (uint16_t)l;
			net_timer(sim->net, group->first + host * group->stride,
				  draw(sim, draw(sim, 4) ? 100 : 300000),
				  timer_value(sim, group, r));
		}
	for (uint32_t op = 0; op < group->nr_operations; op++)
		draw_operation(sim, group, &group->wanted[op], op);
}

static void draw_faults(struct sim *sim)
{
	struct net *net = sim->net;

	if (draw(sim, 4)) {
		net->loss = draw(sim, net->topology.nr > 16 ? 10 : net->topology.nr > 8 ? 40 : 100);
		net->repeat = draw(sim, 100);
		net->jitter_us = draw(sim, 3) * 40;
	}
	if (!draw(sim, 8))
		net->refuse_alloc = draw(sim, 30);
	if (!draw(sim, 5))
		sim->disaster = (enum disaster)(1 + draw(sim, 3));
	sim->victim = draw(sim, net->topology.nr);
}

/* ---- a run ---- */

static bool all_ended(const struct sim *sim)
{
	for (uint32_t g = 0; g < GROUPS; g++)
		for (uint32_t r = 0; r < sim->groups[g].nr_ranks; r++)
			if (sim->groups[g].ranks[r].end == RANK_RUNS)
				return false;
	return true;
}

static void restart(struct sim *sim)
{
	struct net_node *node = &sim->net->nodes[sim->victim];

	muster_bump_free(node->bump);
	net_bump_start(sim->net, sim->victim);
}

static void dump(const struct sim *sim)
{
	for (uint32_t g = 0; g < GROUPS; g++)
		for (uint32_t r = 0; r < sim->groups[g].nr_ranks; r++) {
			const struct rank *rank = &sim->groups[g].ranks[r];

			if (rank->end == RANK_RUNS)
				warnx("group %u: rank %u at host %u waits for operation %u of %u (asked %u)", g, r,
				      rank->host, rank->first, sim->groups[g].nr_operations, rank->next);
		}
	errx(1, "seed %lu: hosts wait for ever (disaster %u, victim %u)", sim->seed,
	     sim->disaster, sim->victim);
}

static void run(struct sim *sim)
{
	uint64_t steps = 0;
	bool restarted = false;

	for (;;) {
		if (steps++ % 256 == 0 && all_ended(sim))
			return;
		if (!net_step(sim->net))
			return;
		if (sim->disaster == BUMP_RESTARTS && !restarted && sim->results > 20) {
			restarted = true;
			restart(sim);
		}
		/* Whoever waits longer than hosts do has been forgotten. */
		if (sim->net->now > 40u * PATIENCE_US)
			dump(sim);
	}
}

static void check_end(const struct sim *sim)
{
	if (!all_ended(sim))
		errx(1, "seed %lu: a rank was left waiting", sim->seed);
	if (sim->net->refuse_alloc || sim->disaster)
		return;
	for (uint32_t i = 0; i < sim->net->topology.nr; i++) {
		const struct muster_bump_counters *c =
			muster_bump_counters(sim->net->nodes[i].bump);

		if (c->dropped_bad || c->dropped_key || c->failed)
			errx(1, "seed %lu: bump %u dropped %lu bad packets, %lu of strangers, and failed %lu operations",
			     sim->seed, i, c->dropped_bad, c->dropped_key, c->failed);
	}
}

static void run_seed(uint64_t seed, uint32_t hosts, uint64_t totals[3])
{
	static const char *const topologies[] = { "ring", "tree", "torus", "cube" };
	struct sim *sim = calloc(1, sizeof(*sim));
	uint32_t nr;

	sim->seed = sim->rng = seed << 20;
	sim->seed = seed;
	nr = hosts ? hosts : 1 + draw(sim, draw(sim, 16) ? 16 : 70);
	sim->net = net_new(hosts > 100 ? "cube" : topologies[draw(sim, 4)], nr, mix(seed));
	sim->net->opaque = sim;
	sim->net->timer = on_timer;
	sim->net->to_host = on_frame;
	draw_faults(sim);
	for (uint32_t g = 0; g < GROUPS; g++)
		draw_group(sim, &sim->groups[g], g);
	run(sim);
	check_end(sim);
	totals[0] += sim->results;
	totals[1] += sim->errors;
	totals[2] += sim->net->frames;
	for (uint32_t g = 0; g < GROUPS; g++) {
		for (uint32_t op = 0; op < OPERATIONS_MAX; op++)
			free(sim->groups[g].wanted[op].results);
		free(sim->groups[g].ranks);
	}
	net_free(sim->net);
	free(sim);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "hosts", required_argument, NULL, 'h' }, { 0 } };
	uint64_t totals[3] = { 0 }, first, count;
	uint32_t hosts = 0;

	while (getopt_long(argc, argv, "", options, NULL) == 'h')
		hosts = (uint32_t)atoi(optarg);
	first = optind < argc ? strtoull(argv[optind], NULL, 0) : 1;
	count = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 0) : optind < argc ? 1 : 200;
	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, hosts, totals);
	printf("bump_sim: seeds %lu to %lu: %lu results right, %lu errors said, %lu frames\n", first,
	       first + count - 1, totals[0], totals[1], totals[2]);
	return 0;
}
