// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sizes of completion queues. Part of cq.c where the kernel has KUnit. */
#include <kunit/test.h>

static void sizes_are_powers_of_two_up_to_the_limit(struct kunit *test)
{
	static const u32 odd[] = { 0, 3, MUSTER_CQ_ENTRIES_MAX - 1, MUSTER_CQ_ENTRIES_MAX + 1,
				   2 * MUSTER_CQ_ENTRIES_MAX, 1u << 31, U32_MAX };
	size_t i;
	u32 n;

	for (n = 1; n <= MUSTER_CQ_ENTRIES_MAX; n *= 2)
		KUNIT_EXPECT_TRUE(test, entries_valid(n));
	for (i = 0; i < ARRAY_SIZE(odd); i++)
		KUNIT_EXPECT_FALSE(test, entries_valid(odd[i]));
}

static void the_largest_ring_is_in_one_piece_that_can_be_had(struct kunit *test)
{
	KUNIT_EXPECT_LE(test, ring_bytes(MUSTER_CQ_ENTRIES_MAX), (size_t)4 << 20);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(sizes_are_powers_of_two_up_to_the_limit),
	KUNIT_CASE(the_largest_ring_is_in_one_piece_that_can_be_had),
	{ }
};

static struct kunit_suite cq_suite = { .name = "muster-cq", .test_cases = cq_cases };

kunit_test_suite(cq_suite);
