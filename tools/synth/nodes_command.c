// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-synth nodes: a collective of ranks of which several sit in a node, proved. Inside of a node by a
 * binomial tree, across nodes by whatever algorithm is named.
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"

static struct muster_schedule *part(const char *algorithm, enum muster_coll coll, uint32_t ranks, uint32_t root)
{
	struct muster_schedule *schedule;
	char why[300];

	if (muster_schedule_generate(algorithm, coll, ranks, root, 0, &schedule, why, sizeof(why)))
		die(2, "%s", why);
	return schedule;
}

/* Few steps, as only those from node to node are long. */
static const char *usual(enum muster_coll coll)
{
	return coll == MUSTER_COLL_ALLREDUCE ? "recursive-doubling" : "binomial";
}

static struct muster_schedule *nest(enum muster_coll coll, uint32_t nodes, uint32_t per_node, uint32_t root,
				    const char *algorithm)
{
	struct muster_schedule *across = part(algorithm, coll, nodes, root / per_node), *up = NULL, *down = NULL;
	struct muster_schedule *nested;
	char why[300];

	if (coll != MUSTER_COLL_BROADCAST)
		up = part("binomial", MUSTER_COLL_REDUCE, per_node, root % per_node);
	if (coll != MUSTER_COLL_REDUCE)
		down = part("binomial", MUSTER_COLL_BROADCAST, per_node, root % per_node);
	if (muster_schedule_nest(&(struct muster_nest){ up, across, down }, &nested, why, sizeof(why)) ||
	    muster_schedule_check(nested, why, sizeof(why)))
		die(1, "%s", why);
	muster_schedule_free(across);
	muster_schedule_free(up);
	muster_schedule_free(down);
	return nested;
}

int run_nodes(struct settings *s, int argc, char **argv)
{
	enum muster_coll coll = s->request.coll;
	struct muster_schedule *schedule;
	uint32_t nodes, per_node;

	if (argc != 2 && argc != 3)
		die(2, "nodes NODES PER-NODE [ALGORITHM]");
	if (coll != MUSTER_COLL_BROADCAST && coll != MUSTER_COLL_REDUCE && coll != MUSTER_COLL_ALLREDUCE)
		die(2, "nodes: the collective is a broadcast, reduce or allreduce");
	nodes = number("nodes", argv[0], MUSTER_SCHEDULE_RANKS_MAX);
	per_node = number("ranks of a node", argv[1], MUSTER_SCHEDULE_RANKS_MAX);
	if (!nodes || !per_node || s->request.root / per_node >= nodes)
		die(2, "nodes: there is no rank %" PRIu32, s->request.root);
	schedule = nest(coll, nodes, per_node, s->request.root, argc == 3 ? argv[2] : usual(coll));
	write_schedule(s, schedule);
	muster_schedule_free(schedule);
	return 0;
}
