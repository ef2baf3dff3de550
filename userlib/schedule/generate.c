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
	ROUND_BYTES = 32 << 10,		/* a step costs as much as so many bytes more */
	WHOLE_BYTES = 128 << 10,	/* above, whole messages cost more than parts to each */
	FOLDS_BYTES = 16 << 10,		/* above, folding costs more than parts do */
	EACH_BYTES = 4 << 10,		/* parts to each should not be shorter */
	EACH_RANKS = 16,		/* nor be so many that few fit into a stage, */
	EACH_POWER_RANKS = 4,		/* or halving takes no more steps than they are messages */
	LINEAR_BLOCK_BYTES = 8 << 10,	/* from here passing on costs more than a root's steps */
	LINEAR_RANKS = 1024,
	DIRECT_RANKS = 7,		/* above, messages to all cost more than steps, */
	DIRECT_DATA_RANKS = 6,		/* and those with data */
	DIRECT_BYTES = 2 << 10,		/* from there on, unless they are two */
	SQUARE_RANKS = 4096,		/* all transfers, where they grow with the square of the ranks */
	NAMES_MAX = 300,		/* bytes of all names in a sentence */
};

static const struct muster_generator *const generators[] = {
	&muster_generate_binomial, &muster_generate_doubling, &muster_generate_rabenseifner,
	&muster_generate_ring, &muster_generate_bruck, &muster_generate_subtrees,
	&muster_generate_linear, &muster_generate_pairwise, &muster_generate_scan,
	&muster_generate_sweep, &muster_generate_4nomial, &muster_generate_8nomial,
	&muster_generate_double_ring, &muster_generate_dissemination, &muster_generate_direct, &muster_generate_double_tree,
	&muster_generate_halving_doubling, &muster_generate_pairwise_apart,
};

uint32_t muster_chunks_one(uint32_t ranks)
{
	(void)ranks;
	return 1;
}

uint32_t muster_chunks_each(uint32_t ranks)
{
	return ranks;
}

uint32_t muster_received_each(const struct muster_part *part, uint32_t rank, uint32_t step)
{
	(void)part;
	(void)rank;
	return step;
}

enum { NR_GENERATORS = sizeof(generators) / sizeof(generators[0]) };

/* Whether they are no power of two, and so take two steps more where they double. */
static bool folds(uint32_t ranks)
{
	return ranks & (ranks - 1);
}

/*
 * Doubling sends all in each of its steps; Rabenseifner's are twice as many, and send it twice.
 * Two ranks send all once, in halves or not.
 */
static bool doubling_is_quicker(uint32_t ranks, uint64_t bytes)
{
	uint32_t steps = ranks < 2 ? 0 : 32 - (uint32_t)__builtin_clz(ranks - 1);

	if (steps == 1)
		return true;
	if (folds(ranks))
		return bytes <= FOLDS_BYTES;
	return bytes <= WHOLE_BYTES && steps * bytes <= steps * (uint64_t)ROUND_BYTES + 2 * bytes;
}

static bool direct_is_quicker(uint32_t ranks, uint64_t bytes)
{
	return folds(ranks) && ranks <= DIRECT_DATA_RANKS &&
	       bytes <= (ranks == 3 ? FOLDS_BYTES : DIRECT_BYTES);
}

static const char *choose_allreduce(uint32_t ranks, uint64_t bytes)
{
	if (direct_is_quicker(ranks, bytes))
		return "direct";
	if (doubling_is_quicker(ranks, bytes))
		return "recursive-doubling";
	if (ranks <= (folds(ranks) ? EACH_RANKS : EACH_POWER_RANKS) && bytes / ranks >= EACH_BYTES)
		return "pairwise";
	return "rabenseifner";
}

/* The same bytes either way; of long ones none should be passed on. */
static const char *choose_half(uint32_t ranks, uint64_t bytes)
{
	return ranks <= EACH_RANKS && bytes / ranks >= EACH_BYTES ? "pairwise" : "bruck";
}

static const char *choose_rooted(uint32_t ranks, uint64_t bytes)
{
	return ranks <= LINEAR_RANKS && bytes / ranks >= LINEAR_BLOCK_BYTES ? "linear" : "binomial";
}

static const char *choose(enum muster_coll coll, uint32_t ranks, uint64_t bytes)
{
	switch (coll) {
	case MUSTER_COLL_BARRIER:
		return folds(ranks) && ranks <= DIRECT_RANKS ? "direct" : "recursive-doubling";
	case MUSTER_COLL_ALLREDUCE:
		return choose_allreduce(ranks, bytes);
	case MUSTER_COLL_REDUCE_SCATTER:
	case MUSTER_COLL_ALLGATHER:
		return choose_half(ranks, bytes);
	case MUSTER_COLL_GATHER:
	case MUSTER_COLL_SCATTER:
		return choose_rooted(ranks, bytes);
	case MUSTER_COLL_ALLTOALL:
		return "pairwise";
	case MUSTER_COLL_SCAN:
	case MUSTER_COLL_EXSCAN:
		return "hillis-steele";
	default:
		return "binomial";
	}
}

static bool does(const struct muster_generator *generator, enum muster_coll coll)
{
	return generator->colls & 1u << coll;
}

/* Of those with this name one that does the collective, else any. */
static const struct muster_generator *find(const char *name, enum muster_coll coll)
{
	const struct muster_generator *found = NULL;

	for (size_t i = 0; i < NR_GENERATORS; i++)
		if (!strcmp(generators[i]->name, name) && (!found || does(generators[i], coll)))
			found = generators[i];
	return found;
}

const char *muster_schedule_name(uint32_t nr)
{
	for (size_t i = 0; i < NR_GENERATORS; i++)
		if (find(generators[i]->name, MUSTER_COLL_END) == generators[i] && !nr--)
			return generators[i]->name;
	return NULL;
}

static void list_names(char *names, size_t len)
{
	const char *name;
	size_t at = 0;

	for (uint32_t i = 0; at < len && (name = muster_schedule_name(i)); i++)
		at += snprintf(names + at, len - at, "%s%s", at ? ", " : "", name);
}

static int check_arguments(const char *name, const struct muster_generator *generator,
			   enum muster_coll coll, uint32_t ranks, uint32_t root, char *why,
			   size_t why_len)
{
	bool rooted = muster_coll_rooted(coll);

	if (!generator) {
		char names[NAMES_MAX];

		list_names(names, sizeof(names));
		snprintf(why, why_len, "there is no schedule named \"%.40s\": there are %s", name,
			 names);
		return -EINVAL;
	}
	if (!does(generator, coll)) {
		snprintf(why, why_len, "%s does not do %s", name, muster_coll_name(coll));
		return -EOPNOTSUPP;
	}
	if (!ranks || ranks > MUSTER_SCHEDULE_RANKS_MAX) {
		snprintf(why, why_len, "%s of %u ranks: there can be 1 to %d", name, ranks,
			 MUSTER_SCHEDULE_RANKS_MAX);
		return -EINVAL;
	}
	if (generator->ranks_max && ranks > generator->ranks_max) {
		snprintf(why, why_len, "%s of %u ranks: there can be 1 to %u", name, ranks,
			 generator->ranks_max);
		return -EOPNOTSUPP;
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
	generator = find(name, coll);
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
	uint32_t most = SQUARE_RANKS;

	if (err)
		return err;
	while (muster_coll_chunks_unit(coll, most) > MUSTER_SCHEDULE_CHUNKS_MAX)
		most /= 2;
	if (generated->chunks > 1 && ranks > most) {
		snprintf(why, why_len, "all transfers of %s of %u ranks: there can be 1 to %u",
			 generated->name, ranks, most);
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
