// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Regions: what is asked for, and the list of pages. Part of mr.c where the kernel has KUnit. */
#include <kunit/test.h>

static void what_no_region_has_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, check(1, 0), 0);
	KUNIT_EXPECT_EQ(test, check(U64_MAX, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_RELAXED_ORDERING), 0);
	KUNIT_EXPECT_EQ(test, check(0, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, check(1, IB_ACCESS_MW_BIND), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, check(1, IB_ACCESS_ON_DEMAND), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, check(1, IB_ZERO_BASED), -EOPNOTSUPP);
}

static void the_device_is_told_what_was_asked_for(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, device_access(0), MUSTER_MR_READ);
	KUNIT_EXPECT_EQ(test, device_access(IB_ACCESS_LOCAL_WRITE),
			MUSTER_MR_READ | MUSTER_MR_WRITE);
	KUNIT_EXPECT_EQ(test, device_access(IB_ACCESS_REMOTE_READ),
			MUSTER_MR_READ | MUSTER_MR_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, device_access(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
					    IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC),
			MUSTER_MR_ACCESS);
}

static void a_list_has_parts_for_all_its_pages(struct kunit *test)
{
	static const size_t pages[] = { 1, 511, 512, 513, MUSTER_MR_PAGES_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		size_t parts = page_list_parts(pages[i]);

		KUNIT_EXPECT_GE(test, parts * MUSTER_MR_PART_PAGES, pages[i]);
		KUNIT_EXPECT_LT(test, (parts - 1) * MUSTER_MR_PART_PAGES, pages[i]);
	}
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(what_no_region_has_is_refused),
	KUNIT_CASE(the_device_is_told_what_was_asked_for),
	KUNIT_CASE(a_list_has_parts_for_all_its_pages),
	{ }
};

static struct kunit_suite mr_suite = { .name = "muster-mr", .test_cases = mr_cases };

kunit_test_suite(mr_suite);
