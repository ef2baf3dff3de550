// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MUSTER_STATS: what was called is counted, by the path that it took and why.
 */
#include <unistd.h>

#include "stats.h"
#include "testing.h"

enum { RANKS = 3, COUNT = 5 };

static char *said(const struct muster *job)
{
	size_t bytes;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	muster_stats_write(job, out);
	fclose(out);
	return text;
}

/* There is one line that begins with the words, and it has these. */
static void expect_row(const char *text, const char *name, const char *path, uint64_t calls,
		       uint64_t bytes, const char *why)
{
	char row[64];
	const char *line;
	unsigned long long got_calls, got_bytes;
	char got_path[16], got_schedule[40];
	int at = 0;

	snprintf(row, sizeof(row), "\n  %-34s ", name);
	line = strstr(text, row);
	if (!line || strstr(line + 1, row))
		fail_msg("not one row \"%s\" in %s", name, text);
	line += strlen(row);
	assert_int_equal(sscanf(line, "%15s %39s %llu %llu %*f %n", got_path, got_schedule,
				&got_calls, &got_bytes, &at), 4);
	if (strcmp(got_path, path) || got_calls != calls || got_bytes != bytes ||
	    strncmp(line + at, why, strlen(why)))
		fail_msg("%s: expected %s, %lu calls, %lu bytes, %s, in %s", name, path,
			 (unsigned long)calls, (unsigned long)bytes, why, text);
}

/* Ranks of one thread cannot wait for each other to leave. */
static void leave(struct test_world *world)
{
	for (uint32_t i = 0; i < RANKS; i++)
		world->jobs[i]->settings.stats = false;
	test_world_free(world);
	unsetenv("MUSTER_STATS");
}

static void run(struct test_world *world, bool alltoallv, uint64_t count)
{
	static int64_t in[RANKS][RANKS * COUNT], out[RANKS][RANKS * COUNT];
	struct muster_request *requests[RANKS];
	uint64_t counts[RANKS];
	int errs[RANKS];

	for (uint32_t i = 0; i < RANKS; i++)
		counts[i] = count;
	for (uint32_t i = 0; i < RANKS; i++) {
		struct muster_comm *comm = world->comms[i];

		assert_int_equal(alltoallv ?
			muster_alltoallv_start(comm, in[i], counts, NULL, out[i], counts, NULL,
					       MUSTER_I64, &requests[i]) :
			muster_allreduce_start(comm, in[i], out[i], count, MUSTER_I64, MUSTER_SUM,
					       &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(errs[i], 0);
}

static void test_calls_are_counted_by_path_and_reason(void **state)
{
	struct test_world *world;
	char *text;

	(void)state;
	setenv("MUSTER_STATS", "1", 1);
	world = test_joined(RANKS, TEST_RING_MAX);
	run(world, false, COUNT);
	run(world, false, 1);
	run(world, true, COUNT);
	text = said(world->jobs[1]);
	assert_non_null(strstr(text, "rank 1 of 3\n"));
	expect_row(text, "allreduce", "nic", 2, (COUNT + 1) * 8, "NIC: offloaded\n");
	expect_row(text, "allreduce for alltoallv", "nic", 1, 8, "NIC: offloaded\n");
	expect_row(text, "alltoallv", "nic", 1, RANKS * COUNT * 8, "NIC: offloaded\n");
	free(text);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	run(world, true, 0);
	run(world, true, COUNT);
	text = said(world->jobs[2]);
	assert_non_null(strstr(text, "host: offload is off\n"));
	assert_non_null(strstr(text, "nothing to do: no elements\n"));
	free(text);
	leave(world);
}

/* That which an exact sum begins with: there is none before it whose path could stand there. */
static void test_own_operations_tell_of_themselves(void **state)
{
	static double in[RANKS], out[RANKS];
	struct muster_request *requests[RANKS];
	struct test_world *world;
	int errs[RANKS];
	char *text;

	(void)state;
	setenv("MUSTER_STATS", "1", 1);
	world = test_joined(RANKS, TEST_RING_MAX);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &in[i], &out[i], 1, MUSTER_F64,
							MUSTER_SUM_EXACT, &requests[i]), 0);
	test_finish(world, requests, errs);
	text = said(world->jobs[0]);
	expect_row(text, "allreduce for exact sum", "nic", 2, 20, "NIC: offloaded\n");
	free(text);
	leave(world);
}

/* What is said on standard error while it runs. */
static void run_logged(struct test_world *world, FILE *to, uint64_t count)
{
	int kept = dup(STDERR_FILENO);

	fflush(stderr);
	assert_true(kept >= 0 && dup2(fileno(to), STDERR_FILENO) >= 0);
	run(world, false, count);
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
}

static void test_each_kind_is_told_once(void **state)
{
	static const char line[] = "muster: allreduce, first with 40 bytes: nic, direct, "
				   "because NIC: offloaded\n";
	static const char nothing[] = "muster: allreduce, first with 0 bytes: -, because nothing to do: "
				      "no elements\n";
	struct test_world *world;
	FILE *told = tmpfile();
	char text[512] = "", expected[512];

	(void)state;
	assert_non_null(told);
	setenv("MUSTER_LOG", "info", 1);
	world = test_joined(RANKS, TEST_RING_MAX);
	run_logged(world, told, COUNT);
	run_logged(world, told, 1);
	run_logged(world, told, 0);
	rewind(told);
	assert_true(fread(text, 1, sizeof(text) - 1, told) > 0);
	snprintf(expected, sizeof(expected), "%s%s", line, nothing);
	assert_string_equal(text, expected);
	fclose(told);
	test_world_free(world);
	unsetenv("MUSTER_LOG");
}

static void test_without_it_nothing_is_counted(void **state)
{
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);

	(void)state;
	run(world, false, COUNT);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_null(world->jobs[i]->stats);
	test_world_free(world);
}

static void test_another_value_is_refused(void **state)
{
	struct muster_settings settings;
	char why[MUSTER_SENTENCE_MAX];

	(void)state;
	setenv("MUSTER_STATS", "yes", 1);
	assert_int_equal(muster_settings_read(&settings, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "MUSTER_STATS=yes: allowed is 0 or 1");
	unsetenv("MUSTER_STATS");
	setenv("MUSTER_LOG", "debug", 1);
	assert_int_equal(muster_settings_read(&settings, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "off or info"));
	unsetenv("MUSTER_LOG");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_are_counted_by_path_and_reason),
		cmocka_unit_test(test_own_operations_tell_of_themselves),
		cmocka_unit_test(test_each_kind_is_told_once),
		cmocka_unit_test(test_without_it_nothing_is_counted),
		cmocka_unit_test(test_another_value_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
