// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How an operation is cut for rails, and which ones are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rails.h"

enum { BYTES = 4096 };

static void parts_check(uint64_t count, uint32_t nr)
{
	uint64_t next = 0, first, least = UINT64_MAX, most = 0;

	for (uint32_t rail = 0; rail < nr; rail++) {
		uint64_t part = muster_rails_part(count, nr, rail, &first);

		assert_true(first == next);
		least = part < least ? part : least;
		most = part > most ? part : most;
		next += part;
	}
	assert_true(next == count);
	assert_true(most - least <= 1);
}

static void test_parts_are_all_of_it_one_behind_the_other_and_alike(void **state)
{
	static const uint64_t counts[] = { 97, 4099, 65536, 1000003, 1ull << 40, PTRDIFF_MAX };

	(void)state;
	for (uint32_t nr = 1; nr <= MUSTER_RAILS_MAX; nr++) {
		for (uint64_t count = 0; count < 40; count++)
			parts_check(count, nr);
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			parts_check(counts[i], nr);
	}
}

static void test_who_has_elements_has_some_in_the_first_part(void **state)
{
	uint64_t first;

	(void)state;
	assert_true(muster_rails_part(1, MUSTER_RAILS_MAX, 0, &first) == 1 && first == 0);
	assert_true(muster_rails_part(1, MUSTER_RAILS_MAX, 1, &first) == 0 && first == 1);
}

static void test_only_what_is_long_and_a_tree_does_whole_is_cut(void **state)
{
	struct muster job = { .settings.rail_bytes = BYTES };
	struct muster_comm rail = { .job = &job }, comm = { .job = &job, .next_rail = &rail };
	struct muster_call call = { .coll = MUSTER_COLL_ALLREDUCE, .bytes = BYTES + 1 };

	(void)state;
	rail.whole = &comm;
	assert_true(muster_rails_take(&comm, &call));
	call.bytes = BYTES;
	assert_false(muster_rails_take(&comm, &call));
	call.bytes++;
	assert_false(muster_rails_take(&rail, &call));		/* a part is no more */
	call.own = true;
	assert_false(muster_rails_take(&comm, &call));
	call.own = false;
	call.as = MUSTER_COLL_SCAN;
	assert_false(muster_rails_take(&comm, &call));
	call.as = 0;
	call.coll = MUSTER_COLL_ALLGATHER;
	assert_false(muster_rails_take(&comm, &call));
	call.coll = MUSTER_COLL_BROADCAST;
	assert_true(muster_rails_take(&comm, &call));
	comm.next_rail = NULL;
	assert_false(muster_rails_take(&comm, &call));
}

static void test_an_operation_has_ended_when_all_its_parts_are_done_well(void **state)
{
	struct muster_request third = { .state = MUSTER_REQUEST_DONE }, second = { .next_rail = &third };
	const struct muster_request first = { .next_rail = &second };

	(void)state;
	second.state = MUSTER_REQUEST_RUNNING;
	assert_false(muster_rails_ended(&first));
	second.state = MUSTER_REQUEST_DONE;
	assert_true(muster_rails_ended(&first));
	third.result = -1;
	assert_false(muster_rails_ended(&first));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_all_of_it_one_behind_the_other_and_alike),
		cmocka_unit_test(test_who_has_elements_has_some_in_the_first_part),
		cmocka_unit_test(test_only_what_is_long_and_a_tree_does_whole_is_cut),
		cmocka_unit_test(test_an_operation_has_ended_when_all_its_parts_are_done_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
