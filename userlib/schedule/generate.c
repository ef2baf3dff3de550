// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Schedules by name, and which name suits an operation. The choice depends on
 * nothing but its arguments, so all ranks make the same one
 * (Documentation/schedule.md has the reasons).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "part.h"

enum {
	LARGE_BYTES = 8 << 10,		/* from here bandwidth outweighs the number of steps */
	RING_CHUNK_BYTES = 4 << 10,	/* a ring's chunks should not be shorter */
	RING_RANKS = 16,		/* nor its steps be many more than a tree's */
	SQUARE_RANKS = 1024,		/* all transfers, where they grow with the square of the ranks */
};

static const struct muster_generator *const generators[] = {
	&muster_generate_binomial, &muster_generate_doubling, &muster_generate_rabenseifner,
	&muster_generate_ring,
};

static const char *choose_allreduce(uint32_t ranks, uint64_t bytes)
{
	bool folds = ranks & (ranks - 1);

	if (bytes <= LARGE_BYTES)
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

static const struct muster_generator *find(const char *name)
{
	for (size_t i = 0; i < sizeof(generators) / sizeof(generators[0]); i++)
		if (!strcmp(generators[i]->name, name))
			return generators[i];
	return NULL;
}

static int check_arguments(const char *name, const struct muster_generator *generator,
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
	if (!ranks || ranks > MUSTER_SCHEDULE_RANKS_MAX) {
		snprintf(why, why_len, "%s of %u ranks: there can be 1 to %d", name, ranks,
			 MUSTER_SCHEDULE_RANKS_MAX);
		return -EINVAL;
	}
	if (root >= ranks || (root && !rooted)) {
		snprintf(why, why_len, "root %u, but it can be 0 to %u in %s of %u ranks", root,
			 rooted ? ranks - 1 : 0, muster_coll_name(coll), ranks);
		return -EINVAL;
	}
	return 0;
}

int muster_schedule_by_rank(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root,
			    uint64_t bytes, struct muster_schedule **schedule, char *why,
			    size_t why_len)
{
	const struct muster_generator *generator;
	struct muster_schedule *made;
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
	made = calloc(1, sizeof(*made));
	if (!made) {
		snprintf(why, why_len, "%s of %u ranks: %s", name, ranks, strerror(ENOMEM));
		return -ENOMEM;
	}
	*made = (struct muster_schedule){
		.generator = generator, .coll = coll, .ranks = ranks, .root = root,
		.chunks = generator->chunks(ranks),
	};
	snprintf(made->name, sizeof(made->name), "%s", name);
	made->steps = generator->steps(made);
	*schedule = made;
	return 0;
}

int muster_schedule_generate(const char *name, enum muster_coll coll, uint32_t ranks,
			     uint32_t root, uint64_t bytes, struct muster_schedule **schedule,
			     char *why, size_t why_len)
{
	struct muster_schedule *generated;
	int err = muster_schedule_by_rank(name, coll, ranks, root, bytes, &generated, why, why_len);

	if (err)
		return err;
	if (generated->chunks > 1 && ranks > SQUARE_RANKS) {
		snprintf(why, why_len, "all transfers of %s of %u ranks: there can be 1 to %d",
			 generated->name, ranks, SQUARE_RANKS);
		err = -EINVAL;
	} else {
		err = muster_parts_collect(generated, 1, schedule);
		if (err)
			snprintf(why, why_len, "%s of %u ranks: %s", generated->name, ranks,
				 strerror(-err));
	}
	muster_schedule_free(generated);
	return err;
}
