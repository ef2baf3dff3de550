// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The schedule as an object: chunks cover the message, the builder keeps the
 * form, hash and signature tell different operations apart.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "build.h"

static struct muster_schedule *pair(enum muster_coll coll, bool reduce)
{
	struct muster_schedule *schedule = NULL;
	struct muster_builder builder;

	muster_builder_init(&builder, "pair", coll, 2, 1, 0);
	muster_builder_add(&builder, 0, 0, 1, reduce);
	assert_int_equal(muster_builder_end(&builder, &schedule), 0);
	return schedule;
}

static void chunks_follow_each_other_and_cover_the_message(void **state)
{
	static const uint64_t counts[] = { 0, 1, 6, 7, 8, 1000003, 1ull << 40, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t end = 0, first, nr, longest;

		muster_chunk_range(counts[i], 7, 0, &first, &longest);
		for (uint32_t chunk = 0; chunk < 7; chunk++) {
			muster_chunk_range(counts[i], 7, chunk, &first, &nr);
			assert_true(first == end);
			assert_true(nr == longest || nr + 1 == longest);
			end = first + nr;
		}
		assert_true(end == counts[i]);
	}
}

static void a_step_without_transfers_is_not_counted(void **state)
{
	struct muster_schedule *schedule;
	struct muster_builder builder;

	(void)state;
	muster_builder_init(&builder, "x", MUSTER_COLL_BROADCAST, 3, 1, 0);
	muster_builder_step(&builder);
	muster_builder_add(&builder, 0, 0, 1, false);
	muster_builder_step(&builder);
	muster_builder_step(&builder);
	muster_builder_add(&builder, 0, 1, 2, false);
	muster_builder_step(&builder);
	assert_int_equal(muster_builder_end(&builder, &schedule), 0);
	assert_int_equal(schedule->steps, 2);
	assert_int_equal(schedule->transfers[1].step, 1);
	muster_schedule_free(schedule);
}

static void the_builder_keeps_its_first_error(void **state)
{
	static const uint32_t bad[][3] = { { 0, 0, 3 }, { 0, 3, 0 }, { 2, 0, 1 }, { 0, 1, 1 } };
	struct muster_schedule *schedule = NULL;
	struct muster_builder builder;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		muster_builder_init(&builder, "x", MUSTER_COLL_BROADCAST, 3, 2, 0);
		muster_builder_add(&builder, 0, 0, 1, false);
		muster_builder_add(&builder, bad[i][0], bad[i][1], bad[i][2], false);
		muster_builder_add(&builder, 0, 0, 2, false);
		assert_int_equal(muster_builder_end(&builder, &schedule), -EINVAL);
		assert_null(schedule);
	}
	muster_builder_init(&builder, "x", MUSTER_COLL_BROADCAST, 3, 2, 3);
	assert_int_equal(muster_builder_end(&builder, &schedule), -EINVAL);
}

static void the_hash_covers_everything_but_the_name(void **state)
{
	struct muster_schedule *a = pair(MUSTER_COLL_REDUCE, true),
			       *b = pair(MUSTER_COLL_REDUCE, true);
	struct muster_schedule *copies = pair(MUSTER_COLL_REDUCE, false);
	uint64_t hash = muster_schedule_hash(a);

	(void)state;
	b->name[0] = 'q';
	assert_int_equal(muster_schedule_hash(b), hash);
	assert_int_not_equal(muster_schedule_hash(copies), hash);
	b->root = 1;
	assert_int_not_equal(muster_schedule_hash(b), hash);
	b->root = 0;
	b->coll = MUSTER_COLL_ALLREDUCE;
	assert_int_not_equal(muster_schedule_hash(b), hash);
	muster_schedule_free(a);
	muster_schedule_free(b);
	muster_schedule_free(copies);
}

static bool agrees(const struct muster_signature *a, struct muster_signature b)
{
	return muster_signatures_agree(a, &b);
}

static void signatures_differ_with_each_part(void **state)
{
	const enum muster_coll coll = MUSTER_COLL_REDUCE;
	const uint8_t type = MUSTER_DTYPE_F64, op = MUSTER_REDOP_SUM;
	struct muster_signature base = muster_signature(coll, type, op, 1, 100, 7);

	(void)state;
	assert_int_equal(base.coll, coll);
	assert_int_equal(base.type, type);
	assert_int_equal(base.op, op);
	assert_int_equal(base.root, 1);
	assert_true(agrees(&base, muster_signature(coll, type, op, 1, 100, 7)));
	assert_false(agrees(&base, muster_signature(coll + 1, type, op, 1, 100, 7)));
	assert_false(agrees(&base, muster_signature(coll, type + 1, op, 1, 100, 7)));
	assert_false(agrees(&base, muster_signature(coll, type, op + 1, 1, 100, 7)));
	assert_false(agrees(&base, muster_signature(coll, type, op, 257, 100, 7)));
	assert_false(agrees(&base, muster_signature(coll, type, op, 1, 101, 7)));
	assert_false(agrees(&base, muster_signature(coll, type, op, 1, 100, 8)));
}

/* 12 bits of digest let one pair in 4,096 pass. */
static void many_counts_have_as_many_signatures(void **state)
{
	enum { COUNTS = 20000 };
	static uint64_t seen[1 << 16];

	(void)state;
	for (uint64_t count = 1; count <= COUNTS; count++) {
		uint64_t digest = muster_signature(MUSTER_COLL_REDUCE, MUSTER_DTYPE_F64,
						   MUSTER_REDOP_SUM, 0, count, 7).digest;
		uint32_t at = digest % (1 << 16);

		for (; seen[at]; at = (at + 1) % (1 << 16))
			assert_int_not_equal(seen[at], digest);
		seen[at] = digest;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_follow_each_other_and_cover_the_message),
		cmocka_unit_test(a_step_without_transfers_is_not_counted),
		cmocka_unit_test(the_builder_keeps_its_first_error),
		cmocka_unit_test(the_hash_covers_everything_but_the_name),
		cmocka_unit_test(signatures_differ_with_each_part),
		cmocka_unit_test(many_counts_have_as_many_signatures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
