// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sizes of completion queues, and how often they are told. Part of cq.c where the kernel has KUnit. */
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

/* A queue that has been armed so often, and was told so often. */
static u32 tells(u32 armed, u32 told)
{
	struct muster_cq_record record = { .arm = cpu_to_le32(armed) };
	struct muster_mapping mapping = { .cpu = &record };
	struct muster_cq cq = { .record = &mapping, .told = told };
	u32 nr = 0;

	while (take_arm(&cq) && nr < 100)
		nr++;
	return nr;
}

static void a_queue_is_told_as_often_as_it_was_armed(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, tells(0, 0), 0u);
	KUNIT_EXPECT_EQ(test, tells(2, 0), 1u);
	KUNIT_EXPECT_EQ(test, tells(3, 0), 1u);		/* for what is solicited */
	KUNIT_EXPECT_EQ(test, tells(4, 0), 2u);
	KUNIT_EXPECT_EQ(test, tells(4, 2), 1u);
	KUNIT_EXPECT_EQ(test, tells(0, U32_MAX - 1), 1u);
	KUNIT_EXPECT_EQ(test, tells(2000, 0), (u32)MUSTER_CQ_ARMS_MAX);
	KUNIT_EXPECT_EQ(test, tells(2, 4), (u32)MUSTER_CQ_ARMS_MAX);	/* nonsense is bounded */
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(sizes_are_powers_of_two_up_to_the_limit),
	KUNIT_CASE(the_largest_ring_is_in_one_piece_that_can_be_had),
	KUNIT_CASE(a_queue_is_told_as_often_as_it_was_armed),
	{ }
};

static struct kunit_suite cq_suite = { .name = "muster-cq", .test_cases = cq_cases };

kunit_test_suite(cq_suite);
