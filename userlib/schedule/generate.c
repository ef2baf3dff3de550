// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Schedules by name, and which name suits an operation. The choice depends on
 * nothing but its arguments, so all ranks make the same one, and what it chooses
 * can always be lowered (Documentation/schedule.md has the reasons).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "build.h"

#define BARRIER		(1u << MUSTER_COLL_BARRIER)
#define BROADCAST	(1u << MUSTER_COLL_BROADCAST)
#define REDUCE		(1u << MUSTER_COLL_REDUCE)
#define ALLREDUCE	(1u << MUSTER_COLL_ALLREDUCE)

enum {
	LARGE_BYTES = 8 << 10,		/* from here bandwidth outweighs the number of steps */
	RING_CHUNK_BYTES = 4 << 10,	/* a ring's chunks should not be shorter */
	RING_RANKS = 16,		/* nor its steps be many more than a tree's */
	SQUARE_RANKS = 1024,		/* where the transfers grow with the square of the ranks */
};

static const struct generator {
	const char *name;
	unsigned int colls;
	uint32_t ranks_max;
	void (*run)(struct muster_builder *builder, enum muster_coll coll, uint32_t ranks,
		    uint32_t root);
} generators[] = {
	{ "binomial", BARRIER | BROADCAST | REDUCE | ALLREDUCE, MUSTER_SCHEDULE_RANKS_MAX,
	  muster_generate_binomial },
	{ "recursive-doubling", BARRIER | ALLREDUCE, MUSTER_SCHEDULE_RANKS_MAX,
	  muster_generate_doubling },
	{ "rabenseifner", REDUCE | ALLREDUCE, SQUARE_RANKS, muster_generate_rabenseifner },
	{ "ring", BROADCAST | ALLREDUCE, SQUARE_RANKS, muster_generate_ring },
};

static const char *choose_allreduce(uint32_t ranks, uint64_t bytes)
{
	bool folds = ranks & (ranks - 1);

	if (bytes <= LARGE_BYTES || ranks > SQUARE_RANKS)
		return "recursive-doubling";
	if (folds && ranks <= RING_RANKS && bytes / ranks >= RING_CHUNK_BYTES)
		return "ring";
	return "rabenseifner";
}

static const char *choose(enum muster_coll coll, uint32_t ranks, uint64_t bytes)
{
	switch (coll) {
	case MUSTER_COLL_BARRIER:
		return "recursive-doubling";
	case MUSTER_COLL_ALLREDUCE:
		return choose_allreduce(ranks, bytes);
	default:
		return "binomial";
	}
}

static const struct generator *find(const char *name)
{
	for (size_t i = 0; i < sizeof(generators) / sizeof(generators[0]); i++)
		if (!strcmp(generators[i].name, name))
			return &generators[i];
	return NULL;
}

static int check_arguments(const char *name, const struct generator *generator,
			   enum muster_coll coll, uint32_t ranks, uint32_t root, char *why,
			   size_t why_len)
{
	bool rooted = muster_coll_rooted(coll);

	if (!generator) {
		snprintf(why, why_len, "there is no schedule named \"%.40s\": take binomial, "
			 "recursive-doubling, rabenseifner or ring", name);
		return -EINVAL;
	}
	if (!(generator->colls & 1u << coll)) {
		snprintf(why, why_len, "%s does not do %s", name, muster_coll_name(coll));
		return -EOPNOTSUPP;
	}
	if (!ranks || ranks > generator->ranks_max) {
		snprintf(why, why_len, "%s of %u ranks: there can be 1 to %u", name, ranks,
			 generator->ranks_max);
		return -EINVAL;
	}
	if (root >= ranks || (root && !rooted)) {
		snprintf(why, why_len, "root %u, but it can be 0 to %u in %s of %u ranks", root,
			 rooted ? ranks - 1 : 0, muster_coll_name(coll), ranks);
		return -EINVAL;
	}
	return 0;
}

int muster_schedule_generate(const char *name, enum muster_coll coll, uint32_t ranks,
			     uint32_t root, uint64_t bytes, struct muster_schedule **schedule,
			     char *why, size_t why_len)
{
	const struct generator *generator;
	struct muster_builder builder;
	int err;

	if (!muster_coll_row(coll)) {
		snprintf(why, why_len, "there is no collective %d", (int)coll);
		return -EINVAL;
	}
	if (!name)
		name = choose(coll, ranks, bytes);
	generator = find(name);
	err = check_arguments(name, generator, coll, ranks, root, why, why_len);
	if (err)
		return err;
	generator->run(&builder, coll, ranks, root);
	err = muster_builder_end(&builder, schedule);
	if (err)
		snprintf(why, why_len, "%s of %u ranks: %s", name, ranks, strerror(-err));
	return err;
}
