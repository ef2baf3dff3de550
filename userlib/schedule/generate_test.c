// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every generator, for every number of ranks and root that it takes, passes the
 * checker and has the number of steps that its algorithm is known for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "part.h"

static struct muster_schedule *generate(const char *name, enum muster_coll coll, uint32_t ranks,
					uint32_t root, uint64_t bytes)
{
	struct muster_schedule *schedule = NULL;
	char why[300] = "";
	int err = muster_schedule_generate(name, coll, ranks, root, bytes, &schedule, why,
					   sizeof(why));

	if (err && err != -EOPNOTSUPP)
		fail_msg("%s %s of %u: %s", name ? name : "default", muster_coll_name(coll), ranks,
			 why);
	return schedule;
}

static unsigned int check_one(const char *name, enum muster_coll coll, uint32_t ranks,
			      uint32_t root)
{
	struct muster_schedule *schedule = generate(name, coll, ranks, root, 8);
	char why[200];

	if (!schedule)
		return 0;
	assert_string_equal(schedule->name, name);
	if (muster_schedule_check(schedule, why, sizeof(why)))
		fail_msg("%s %s of %u, root %u: %s", schedule->name, muster_coll_name(coll), ranks,
			 root, why);
	muster_schedule_free(schedule);
	return 1;
}

/* "rabenseifner" by other places needs no more than some. */
static uint32_t most_of(const char *name)
{
	return strcmp(name, "halving-doubling") ? 70 : 34;
}

static void all_that_is_generated_is_proved(void **state)
{
	unsigned int nr = 0;
	const char *name;

	(void)state;
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			for (uint32_t ranks = 1; ranks <= most_of(name); ranks++)
				for (uint32_t root = 0;
				     root < (muster_coll_rooted(coll) && ranks < 20 ? ranks : 1); root++)
					nr += check_one(name, coll, ranks, root);
	/* 26 pairs without a root; 13 with one, which is any rank up to 19 ranks; direct: 2, up to 32 */
	assert_int_equal(nr, 2 * 32 + 26 * 70 + 13 * (19 * 20 / 2 + 51) + 34 + (19 * 20 / 2 + 15));
}

static void large_ones_are_proved(void **state)
{
	const char *name;

	(void)state;
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++) {
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++) {
			if (coll == MUSTER_COLL_ALLTOALL)
				continue;	/* n * n chunks */
			check_one(name, coll, 257, muster_coll_rooted(coll) ? 100 : 0);
			/* Two of what "ring" is; and "rabenseifner" by other places. */
			if (strcmp(name, "double-ring") && strcmp(name, "halving-doubling"))
				check_one(name, coll, 1000, muster_coll_rooted(coll) ? 999 : 0);
		}
	}
}

/* ---- parts that agree ------------------------------------------------------------ */

/* What two ranks must know alike of the messages between them, in each direction, in order. */
struct between {
	uint64_t sent;		/* digests */
	uint64_t received;
};

struct looked_at {
	uint32_t nr;		/* peers, at most; 0: all, by rank */
	uint32_t peers[2];
	struct between *between;
};

static void digest_add(const struct muster_schedule *schedule, const struct muster_message *m,
		       struct between *between)
{
	/* of an alltoall each names the chunk by the other */
	uint32_t first = schedule->coll == MUSTER_COLL_ALLTOALL ? m->first == m->peer : m->first;
	const uint32_t words[] = { m->step, first, m->nr, m->stage, m->slot, m->reduce };
	uint64_t *digest = m->is_send ? &between->sent : &between->received;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		*digest = (*digest ^ words[i]) * 0x9e3779b97f4a7c15ull;
	*digest += 1;
}

/* Of the peers that are looked at, or of the first ones there are; NULL: of none of these. */
static struct between *between_of(struct looked_at *at, uint32_t *nr, uint32_t peer)
{
	if (!at->nr)
		return &at->between[peer];
	for (uint32_t i = 0; i < *nr; i++)
		if (at->peers[i] == peer)
			return &at->between[i];
	if (*nr == at->nr)
		return NULL;
	at->peers[*nr] = peer;
	return &at->between[(*nr)++];
}

static void assert_fits(const struct muster_part *part, const struct muster_message *m,
			    uint32_t grain)
{
	const struct muster_schedule *schedule = part->schedule;

	assert_true(m->stage < part->nr_stages && m->slot < MUSTER_SLOTS_MAX);
	assert_true(m->nr && m->nr <= grain && m->first + m->nr <= schedule->chunks &&
		    m->first < schedule->chunks);
	assert_true(m->peer < schedule->ranks);
	assert_true(m->peer != part->rank || (m->reduce && muster_coll_row(schedule->coll)->combines));
}

/* A rank's slots are dense in each stage, in its own order; what is between it and peers is told. */
static uint32_t walk_rank(const struct muster_schedule *schedule, uint32_t rank, uint32_t grain,
			  struct looked_at *at, uint32_t nr_peers)
{
	uint32_t stage = 0, slots = 0, step = 0, descs = 0;
	struct muster_message m;
	struct muster_part part;

	muster_part_begin(&part, schedule, rank, grain, NULL);
	while (muster_part_next(&part, &m)) {
		struct between *between = between_of(at, &nr_peers, m.peer);

		assert_fits(&part, &m, grain);
		assert_true(m.stage >= stage && m.step >= step);
		if (m.stage != stage)
			slots = descs = 0;
		stage = m.stage;
		step = m.step;
		assert_true(++descs <= MUSTER_SEQ_DESCS_MAX);
		if (!m.is_send && m.peer != rank)
			assert_int_equal(m.slot, slots++);
		if (between)
			digest_add(schedule, &m, between);
	}
	return nr_peers;
}

/* A rank and the first two that it speaks to. */
static void assert_rank_agrees(const struct muster_schedule *schedule, uint32_t rank,
			       uint32_t grain)
{
	struct between here[2] = { { 0 } };
	struct looked_at at = { .nr = 2, .between = here };
	uint32_t nr = walk_rank(schedule, rank, grain, &at, 0);

	for (uint32_t i = 0; i < nr; i++) {
		struct between there = { 0 };
		struct looked_at back = { .nr = 1, .peers = { rank }, .between = &there };

		walk_rank(schedule, at.peers[i], grain, &back, 1);
		assert_true(here[i].sent == there.received && here[i].received == there.sent);
	}
}

/* Each rank is walked once. */
static void assert_all_agree(const struct muster_schedule *schedule, uint32_t grain)
{
	uint32_t n = schedule->ranks;
	struct between *between = calloc((size_t)n * n, sizeof(*between));

	assert_non_null(between);
	for (uint32_t rank = 0; rank < n; rank++) {
		struct looked_at at = { .between = &between[(size_t)rank * n] };

		walk_rank(schedule, rank, grain, &at, 0);
	}
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++)
			assert_true(between[(size_t)a * n + b].sent ==
				    between[(size_t)b * n + a].received);
	free(between);
}

/*
 * Some ranks: the first ones, the last ones, powers of two and what is beside them; places, where
 * there is a root. Where a rank has tens of thousands of steps these are alike for all ranks, and
 * fewer will do.
 */
static void assert_some_agree(const struct muster_schedule *schedule, uint32_t grain)
{
	uint32_t ranks = schedule->ranks, shift = schedule->steps > 10000 ? 6 : 3;

	for (uint32_t bit = 1; bit < ranks; bit <<= shift) {
		assert_rank_agrees(schedule, bit, grain);
		if (schedule->root)
			assert_rank_agrees(schedule, (schedule->root + bit) % ranks, grain);
		assert_rank_agrees(schedule, ranks - bit, grain);
		assert_rank_agrees(schedule, bit - 1, grain);
	}
}

static void assert_parts_agree(const char *name, enum muster_coll coll, uint32_t ranks,
			       uint32_t root, uint32_t grain, bool every)
{
	struct muster_schedule *schedule;
	char why[200];

	if (muster_schedule_by_rank(name, coll, ranks, root, 0, &schedule, why, sizeof(why)))
		return;
	if (every)
		assert_all_agree(schedule, grain);
	else
		assert_some_agree(schedule, grain);
	muster_schedule_free(schedule);
}

static void parts_agree(void **state)
{
	static const uint32_t grains[] = { 1, 3, UINT32_MAX };
	const char *name;

	(void)state;
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			for (uint32_t ranks = 1; ranks <= most_of(name); ranks++)
				for (size_t g = 0; g < 3; g++)
					assert_parts_agree(name, coll, ranks,
							   muster_coll_rooted(coll) ? ranks / 3 : 0,
							   grains[g], true);
}

static void parts_of_thousands_agree(void **state)
{
	static const uint32_t sizes[] = { 257, 4096, 65535, 1000, 5000, 65536 };
	const size_t nr = getenv("MUSTER_REST") ? sizeof(sizes) / sizeof(sizes[0]) : 3;
	const char *name;

	(void)state;
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			for (size_t n = 0; n < nr; n++)
				assert_parts_agree(name, coll, sizes[n],
						   muster_coll_rooted(coll) ? sizes[n] / 3 : 0,
						   sizes[n] < 5000 ? 100 : UINT32_MAX,
						   sizes[n] < 300);
}

static void steps_are_as_few_as_known(void **state)
{
	static const struct {
		const char *name;
		enum muster_coll coll;
		uint32_t ranks, steps;
	} known[] = {
		{ "binomial", MUSTER_COLL_BROADCAST, 8, 3 },
		{ "binomial", MUSTER_COLL_REDUCE, 9, 4 },
		{ "binomial", MUSTER_COLL_ALLREDUCE, 8, 6 },
		{ "recursive-doubling", MUSTER_COLL_ALLREDUCE, 8, 3 },
		{ "recursive-doubling", MUSTER_COLL_BARRIER, 9, 5 },
		{ "rabenseifner", MUSTER_COLL_ALLREDUCE, 8, 6 },
		{ "rabenseifner", MUSTER_COLL_ALLREDUCE, 12, 8 },
		{ "rabenseifner", MUSTER_COLL_REDUCE, 12, 7 },
		{ "ring", MUSTER_COLL_ALLREDUCE, 5, 8 },
		{ "ring", MUSTER_COLL_BROADCAST, 5, 8 },
		{ "ring", MUSTER_COLL_BROADCAST, 1, 0 },
		{ "ring", MUSTER_COLL_REDUCE_SCATTER, 5, 4 },
		{ "ring", MUSTER_COLL_ALLGATHER, 5, 4 },
		{ "bruck", MUSTER_COLL_ALLGATHER, 8, 3 },
		{ "bruck", MUSTER_COLL_ALLGATHER, 9, 4 },
		{ "bruck", MUSTER_COLL_REDUCE_SCATTER, 12, 4 },
		{ "binomial", MUSTER_COLL_GATHER, 9, 4 },
		{ "binomial", MUSTER_COLL_SCATTER, 8, 3 },
		{ "linear", MUSTER_COLL_GATHER, 9, 8 },
		{ "pairwise", MUSTER_COLL_ALLTOALL, 9, 9 },
		{ "hillis-steele", MUSTER_COLL_SCAN, 9, 4 },
		{ "hillis-steele", MUSTER_COLL_EXSCAN, 9, 4 },
		{ "hillis-steele", MUSTER_COLL_EXSCAN, 2, 1 },
		{ "blelloch", MUSTER_COLL_SCAN, 1, 0 },
		{ "blelloch", MUSTER_COLL_SCAN, 8, 5 },
		{ "blelloch", MUSTER_COLL_SCAN, 9, 5 },
		{ "blelloch", MUSTER_COLL_EXSCAN, 9, 6 },
		{ "4-nomial", MUSTER_COLL_BROADCAST, 16, 6 },
		{ "4-nomial", MUSTER_COLL_REDUCE, 17, 7 },
		{ "8-nomial", MUSTER_COLL_ALLREDUCE, 8, 14 },
		{ "double-ring", MUSTER_COLL_ALLREDUCE, 5, 16 },
		{ "double-ring", MUSTER_COLL_ALLGATHER, 5, 8 },
		{ "dissemination", MUSTER_COLL_BARRIER, 8, 3 },
		{ "dissemination", MUSTER_COLL_BARRIER, 9, 4 },
		{ "direct", MUSTER_COLL_BARRIER, 1, 0 },
		{ "direct", MUSTER_COLL_BARRIER, 2, 1 },
		{ "direct", MUSTER_COLL_BARRIER, 32, 1 },
		{ "direct", MUSTER_COLL_ALLREDUCE, 4, 1 },
		{ "double-tree", MUSTER_COLL_BROADCAST, 2, 2 },
		{ "double-tree", MUSTER_COLL_BROADCAST, 8, 10 },
		{ "double-tree", MUSTER_COLL_BROADCAST, 32, 18 },
		{ "halving-doubling", MUSTER_COLL_REDUCE, 32, 10 },
		{ "halving-doubling", MUSTER_COLL_ALLREDUCE, 12, 8 },
		{ "pairwise", MUSTER_COLL_ALLREDUCE, 1, 0 },
		{ "pairwise", MUSTER_COLL_ALLREDUCE, 5, 8 },
		{ "pairwise", MUSTER_COLL_REDUCE_SCATTER, 5, 4 },
		{ "pairwise", MUSTER_COLL_ALLGATHER, 5, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct muster_schedule *schedule = generate(known[i].name, known[i].coll,
							    known[i].ranks, 0, 8);

		assert_int_equal(schedule->steps, known[i].steps);
		muster_schedule_free(schedule);
	}
}

static void assert_choice(enum muster_coll coll, uint32_t ranks, uint64_t bytes, const char *name)
{
	struct muster_schedule *schedule;
	char why[200];

	assert_int_equal(muster_schedule_by_rank(NULL, coll, ranks, 0, bytes, &schedule, why,
						 sizeof(why)), 0);
	assert_string_equal(schedule->name, name);
	muster_schedule_free(schedule);
}

static void the_choice_follows_size_and_ranks(void **state)
{
	(void)state;
	assert_choice(MUSTER_COLL_BARRIER, 2, 0, "recursive-doubling");
	assert_choice(MUSTER_COLL_BARRIER, 3, 0, "direct");
	assert_choice(MUSTER_COLL_BARRIER, 4, 0, "recursive-doubling");
	assert_choice(MUSTER_COLL_BARRIER, 5, 0, "direct");
	assert_choice(MUSTER_COLL_BARRIER, 7, 0, "direct");
	assert_choice(MUSTER_COLL_BARRIER, 8, 0, "recursive-doubling");
	assert_choice(MUSTER_COLL_BROADCAST, 7, 1 << 20, "binomial");
	assert_choice(MUSTER_COLL_REDUCE, 7, 1 << 20, "binomial");
	assert_choice(MUSTER_COLL_ALLREDUCE, 4, 8, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 4, 2 << 10, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 3, 16 << 10, "direct");
	assert_choice(MUSTER_COLL_ALLREDUCE, 3, (16 << 10) + 8, "pairwise");
	assert_choice(MUSTER_COLL_ALLREDUCE, 6, 2 << 10, "direct");
	assert_choice(MUSTER_COLL_ALLREDUCE, 6, (2 << 10) + 8, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 7, 8, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 4, 1 << 20, "pairwise");
	assert_choice(MUSTER_COLL_ALLREDUCE, 5, 1 << 20, "pairwise");
	assert_choice(MUSTER_COLL_ALLREDUCE, 2, 1 << 30, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 4, 128 << 10, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 4, (128 << 10) + 8, "pairwise");
	assert_choice(MUSTER_COLL_ALLREDUCE, 8, 96 << 10, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 8, (96 << 10) + 8, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLREDUCE, 1024, 64 << 10, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLREDUCE, 5, 10000, "recursive-doubling");
	assert_choice(MUSTER_COLL_ALLREDUCE, 5, 17000, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLREDUCE, 17, 1 << 20, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLREDUCE, 2000, 1 << 20, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLREDUCE, 65536, 1 << 30, "rabenseifner");
	assert_choice(MUSTER_COLL_ALLGATHER, 7, 1000, "bruck");
	assert_choice(MUSTER_COLL_ALLGATHER, 7, 1 << 20, "pairwise");
	assert_choice(MUSTER_COLL_REDUCE_SCATTER, 17, 1 << 20, "bruck");
	assert_choice(MUSTER_COLL_GATHER, 7, 1000, "binomial");
	assert_choice(MUSTER_COLL_SCATTER, 7, 1 << 20, "linear");
	assert_choice(MUSTER_COLL_SCATTER, 2000, 1 << 30, "binomial");
	assert_choice(MUSTER_COLL_ALLTOALL, 7, 1 << 20, "pairwise");
	assert_choice(MUSTER_COLL_EXSCAN, 7, 1 << 20, "hillis-steele");
}

static uint64_t hash_of(const char *name, uint32_t ranks, uint32_t root)
{
	struct muster_schedule *schedule;
	char why[200];
	uint64_t hash;

	assert_int_equal(muster_schedule_by_rank(name, MUSTER_COLL_REDUCE, ranks, root, 0,
						 &schedule, why, sizeof(why)), 0);
	hash = muster_schedule_hash(schedule);
	muster_schedule_free(schedule);
	return hash;
}

static void generator_and_parameters_are_told_apart(void **state)
{
	/* of two ranks both do the same */
	uint64_t hash = hash_of("binomial", 2, 0);

	(void)state;
	assert_true(hash == hash_of("binomial", 2, 0));
	assert_true(hash != hash_of("rabenseifner", 2, 0));
	assert_true(hash != hash_of("binomial", 3, 0));
	assert_true(hash != hash_of("binomial", 2, 1));
}

static void assert_refused(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root,
			   int err, const char *reason)
{
	struct muster_schedule *schedule = NULL;
	char why[300] = "";

	assert_int_equal(muster_schedule_generate(name, coll, ranks, root, 8, &schedule, why,
						  sizeof(why)), err);
	assert_string_equal(why, reason);
	assert_null(schedule);
}

static void wrong_arguments_are_refused(void **state)
{
	(void)state;
	assert_refused("rings", MUSTER_COLL_ALLREDUCE, 4, 0, -EINVAL, "there is no schedule named "
		       "\"rings\": there are binomial, recursive-doubling, rabenseifner, ring, "
		       "bruck, linear, pairwise, hillis-steele, blelloch, 4-nomial, 8-nomial, "
		       "double-ring, dissemination, direct, double-tree, halving-doubling");
	assert_refused("ring", MUSTER_COLL_REDUCE, 4, 0, -EOPNOTSUPP, "ring does not do reduce");
	assert_refused("direct", MUSTER_COLL_BARRIER, 33, 0, -EOPNOTSUPP,
		       "direct of 33 ranks: there can be 1 to 32");
	assert_refused("ring", 99, 4, 0, -EINVAL, "there is no collective 99");
	assert_refused("ring", MUSTER_COLL_ALLREDUCE, 0, 0, -EINVAL,
		       "ring of 0 ranks: there can be 1 to 65536");
	assert_refused("ring", MUSTER_COLL_ALLREDUCE, 4097, 0, -EINVAL,
		       "all transfers of ring of 4097 ranks: there can be 1 to 4096");
	assert_refused("pairwise", MUSTER_COLL_ALLTOALL, 257, 0, -EINVAL,
		       "all transfers of pairwise of 257 ranks: there can be 1 to 256");
	assert_refused("binomial", MUSTER_COLL_REDUCE, 4, 4, -EINVAL,
		       "root 4, but it can be 0 to 3 in reduce of 4 ranks");
	assert_refused("binomial", MUSTER_COLL_ALLREDUCE, 4, 1, -EINVAL,
		       "root 1, but it can be 0 to 0 in allreduce of 4 ranks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_generated_is_proved),
		cmocka_unit_test(large_ones_are_proved),
		cmocka_unit_test(parts_agree),
		cmocka_unit_test(parts_of_thousands_agree),
		cmocka_unit_test(steps_are_as_few_as_known),
		cmocka_unit_test(the_choice_follows_size_and_ranks),
		cmocka_unit_test(generator_and_parameters_are_told_apart),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
