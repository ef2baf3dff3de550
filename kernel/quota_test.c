// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Who gets some of what there is little of. Part of quota.c where the kernel has KUnit. */
#include <kunit/test.h>

enum { MAX = 64, RESERVE = MAX / 8 };

/* One user takes until he gets no more: what is left is for others. */
static void one_user_leaves_an_eighth(struct kunit *test)
{
	u32 used = 0;

	while (share_allows(MAX, used, used, false))
		used++;
	KUNIT_EXPECT_EQ(test, used, MAX - RESERVE);
	KUNIT_EXPECT_TRUE(test, share_allows(MAX, used, used, true));
}

static void who_has_little_may_take_of_the_last_eighth(struct kunit *test)
{
	u32 held = 0;

	while (share_allows(MAX, MAX - RESERVE + held, held, false))
		held++;
	KUNIT_EXPECT_EQ(test, held, RESERVE);
}

static void nobody_gets_more_than_there_is(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, share_allows(MAX, MAX, 0, false));
	KUNIT_EXPECT_FALSE(test, share_allows(MAX, MAX, 0, true));
}

static struct kunit_case quota_cases[] = {
	KUNIT_CASE(one_user_leaves_an_eighth),
	KUNIT_CASE(who_has_little_may_take_of_the_last_eighth),
	KUNIT_CASE(nobody_gets_more_than_there_is),
	{ }
};

static struct kunit_suite quota_suite = { .name = "muster-quota", .test_cases = quota_cases };

kunit_test_suite(quota_suite);
