// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From records to the file: what is shown where some of a rank's records were lost, which is
 * seen by the numbers of operations alone.
 */
#include "trace_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 64 };

static struct muster_trace_record records[RECORDS];
static struct trace_rank only = { .pid = 1, .records = records };
static json_t *document;

static void record(uint8_t kind, uint32_t number)
{
	only.records[only.nr] = (struct muster_trace_record){
		.time = 1000 * (only.nr + 1), .kind = kind, .number = number, .slot = 1,
	};
	only.nr++;
}

static void whole(uint32_t number)
{
	record(MUSTER_TRACE_CALL, number);
	record(MUSTER_TRACE_TAKE, 0);
	record(MUSTER_TRACE_DONE, number);
}

static int setup(void **state)
{
	(void)state;
	only.nr = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(document);
	return 0;
}

/* Parts are the whole, and no slice of the track lies across the end of another. */
static void operation_check(json_t *operation)
{
	json_int_t sum = 0;
	json_t *part;
	size_t i;

	json_array_foreach(json_object_get(operation, "parts"), i, part)
		sum += json_integer_value(json_array_get(part, 2));
	assert_int_equal(sum, json_integer_value(json_object_get(operation, "ended")) -
			      json_integer_value(json_object_get(operation, "began")));
}

static double end_of(const json_t *slice)
{
	return json_real_value(json_object_get(slice, "ts")) + json_real_value(json_object_get(slice, "dur"));
}

static bool is_across(const json_t *one, const json_t *other)
{
	double from = json_real_value(json_object_get(one, "ts"));
	double begin = json_real_value(json_object_get(other, "ts"));

	return from < begin && begin < end_of(one) && end_of(one) < end_of(other);
}

static void slices_check(json_t *events)
{
	json_t *one, *other;
	size_t i, j;

	json_array_foreach(events, i, one)
		json_array_foreach(events, j, other)
			assert_false(json_object_get(one, "dur") && json_object_get(other, "dur") &&
				     is_across(one, other));
}

/* The numbers of the operations in the file, as in "0 1 4". */
static void expect(const char *numbers)
{
	struct trace trace = { .size = 1, .command = "test", .ranks = &only };
	json_t *operation, *all;
	char text[256] = "";
	size_t i;

	document = trace_json(&trace);
	assert_non_null(document);
	assert_int_equal(json_unpack(document, "{s:{s:[{s:o}]}}", "muster", "ranks", "operations", &all), 0);
	json_array_foreach(all, i, operation) {
		json_int_t number = json_integer_value(json_object_get(operation, "number"));

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i ? " " : "", (int)number);
		operation_check(operation);
	}
	assert_string_equal(text, numbers);
	slices_check(json_object_get(document, "traceEvents"));
}

static void test_without_a_loss_all_are_there(void **state)
{
	(void)state;
	whole(0);
	record(MUSTER_TRACE_CALL, 1);
	record(MUSTER_TRACE_CALL, 2);
	record(MUSTER_TRACE_DONE, 1);
	record(MUSTER_TRACE_DONE, 2);
	whole(3);
	expect("0 1 2 3");
}

static void test_after_a_lost_end_it_goes_on(void **state)
{
	(void)state;
	whole(0);
	record(MUSTER_TRACE_CALL, 1);
	/* Here some are lost. */
	whole(2);
	whole(3);
	expect("0 2 3");
}

static void test_after_a_lost_end_and_beginning_it_goes_on(void **state)
{
	(void)state;
	whole(0);
	record(MUSTER_TRACE_CALL, 1);
	record(MUSTER_TRACE_TAKE, 0);
	/* Here some are lost. */
	record(MUSTER_TRACE_TAKE, 0);
	record(MUSTER_TRACE_DONE, 7);
	whole(8);
	whole(9);
	expect("0 8 9");
}

static void test_of_several_at_once_those_that_are_known_are_shown(void **state)
{
	(void)state;
	for (uint32_t number = 0; number < 4; number++)
		record(MUSTER_TRACE_CALL, number);
	record(MUSTER_TRACE_DONE, 0);
	/* The end of 1 is lost. */
	record(MUSTER_TRACE_TAKE, 0);
	record(MUSTER_TRACE_DONE, 2);
	record(MUSTER_TRACE_DONE, 3);
	whole(4);
	expect("0 2 3 4");
}

/* ---- packets ------------------------------------------------------------------------------ */

static struct muster_trace_record pair[3][RECORDS];
static struct trace_rank three[3] = {
	{ .pid = 1, .records = pair[0] }, { .pid = 2, .records = pair[1] }, { .pid = 3, .records = pair[2] },
};

static void packet(uint32_t rank, uint8_t kind, uint64_t time, uint32_t life, uint32_t member)
{
	three[rank].records[three[rank].nr++] = (struct muster_trace_record){
		.time = time, .kind = kind, .context = 2, .life = life, .member = member, .type = 1,
	};
}

/* A barrier of two: `first` has called it before the other one did. */
static void barrier(uint32_t life, uint32_t lead, uint32_t first, uint64_t time)
{
	uint32_t last = 2 * lead + 1 - first;

	packet(first, MUSTER_TRACE_SEND, time, life, last - lead);
	packet(last, MUSTER_TRACE_RECEIVE, time + 1000, life, first - lead);
	packet(last, MUSTER_TRACE_SEND, time + 5000, life, first - lead);
	packet(first, MUSTER_TRACE_RECEIVE_TAKE, time + 6000, life, last - lead);
}

static double time_of(json_t *events, const char *ph, const char *id)
{
	json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
		if (!strcmp(json_string_value(json_object_get(event, "ph")), ph) &&
		    !strcmp(json_string_value(json_object_get(event, "id")), id))
			return json_real_value(json_object_get(event, "ts"));
	return -1;
}

/* The same context is of ranks 0 and 1, and later of 1 and 2, each time from operation 0 on. */
static void test_packets_of_a_context_that_is_used_again_are_not_taken_for_each_other(void **state)
{
	struct trace_member members[] = {
		{ 2, 6, 1, 1, 2 }, { 2, 5, 0, 0, 0 }, { 2, 6, 1, 0, 1 }, { 2, 5, 0, 1, 1 },
	};
	const struct trace trace = {
		.size = 3, .command = "test", .ranks = three, .members = members, .nr_members = 4,
	};
	json_t *events, *event;
	size_t i, nr = 0;

	(void)state;
	barrier(5, 0, 0, 10000);
	barrier(6, 1, 1, 20000);
	document = trace_json(&trace);
	events = json_object_get(document, "traceEvents");
	json_array_foreach(events, i, event) {
		const char *id = json_string_value(json_object_get(event, "id"));

		if (strcmp(json_string_value(json_object_get(event, "ph")), "s"))
			continue;
		assert_true(time_of(events, "f", id) == time_of(events, "s", id) + 1);
		nr++;
	}
	assert_int_equal(nr, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_without_a_loss_all_are_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_a_lost_end_it_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_a_lost_end_and_beginning_it_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_several_at_once_those_that_are_known_are_shown, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_packets_of_a_context_that_is_used_again_are_not_taken_for_each_other, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
