// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is cleared first of a ring in parts. Part of ucontext.c where the kernel has KUnit. */
#include <kunit/test.h>

enum { ENTRY_BYTES = 40, MARK = 7, PART_BYTES = 128, PARTS = 5 };

/* All marks of a ring are found, each in the part where it lies, and nothing else. */
static void each_mark_of_a_ring_in_parts_is_found_once(struct kunit *test)
{
	struct muster_ring_layout layout = { .stride = ENTRY_BYTES, .mark = MARK };
	u8 *ring = kunit_kzalloc(test, PARTS * PART_BYTES, GFP_KERNEL);
	size_t at;

	KUNIT_ASSERT_NOT_NULL(test, ring);
	for (; layout.before < PARTS * PART_BYTES; layout.before += PART_BYTES)
		for (at = first_mark(&layout); at < PART_BYTES; at += ENTRY_BYTES)
			ring[layout.before + at]++;
	for (at = 0; at < PARTS * PART_BYTES; at++)
		KUNIT_EXPECT_EQ(test, ring[at], at % ENTRY_BYTES == MARK ? 1 : 0);
}

static void a_ring_dies_to_its_end(struct kunit *test)
{
	struct muster_mapping mapping = {
		.bytes = PART_BYTES,
		.layout = { .stride = ENTRY_BYTES, .mark = MARK },
		.cpu = kunit_kzalloc(test, PART_BYTES + 1, GFP_KERNEL),
	};

	KUNIT_ASSERT_NOT_NULL(test, mapping.cpu);
	memset(mapping.cpu, 0xff, PART_BYTES + 1);
	mapping_clear(&mapping);
	KUNIT_EXPECT_NULL(test, memchr_inv(mapping.cpu, 0, PART_BYTES));
	KUNIT_EXPECT_EQ(test, ((u8 *)mapping.cpu)[PART_BYTES], 0xff);
}

static struct kunit_case ucontext_cases[] = {
	KUNIT_CASE(each_mark_of_a_ring_in_parts_is_found_once),
	KUNIT_CASE(a_ring_dies_to_its_end),
	{ }
};

static struct kunit_suite ucontext_suite = {
	.name = "muster-ucontext", .test_cases = ucontext_cases,
};

kunit_test_suite(ucontext_suite);
