// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Other forms of a schedule: JSON comes back equal, spoiled JSON is refused, and
 * the paper's words and the picture say what the schedule says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "baseline.h"
#include "show.h"

static struct muster_schedule *make(enum muster_coll coll)
{
	struct muster_schedule *schedule;
	char why[300];

	if (muster_baseline("dgx1", coll, 0, 2, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	return schedule;
}

static char *to_json(const struct muster_schedule *schedule)
{
	size_t len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(muster_show_json(schedule, out), 0);
	fclose(out);
	return text;
}

static int from_json(const char *text, struct muster_schedule **schedule, char *why, size_t len)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int err = muster_show_json_read(in, schedule, why, len);

	fclose(in);
	return err;
}

static void json_comes_back_equal(void **state)
{
	static const enum muster_coll colls[] = {
		MUSTER_COLL_BROADCAST, MUSTER_COLL_REDUCE, MUSTER_COLL_ALLREDUCE,
		MUSTER_COLL_ALLGATHER,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
		struct muster_schedule *first = make(colls[i]), *second;
		char *text = to_json(first), why[300];

		if (from_json(text, &second, why, sizeof(why)))
			fail_msg("%s", why);
		assert_true(muster_schedule_hash(first) == muster_schedule_hash(second));
		assert_string_equal(first->name, second->name);
		free(text);
		muster_schedule_free(first);
		muster_schedule_free(second);
	}
}

static void spoiled_json_is_read_or_refused(void **state)
{
	static const char bytes[] = "0123456789 \n{}[]:,\"-etfx";
	struct muster_schedule *schedule = make(MUSTER_COLL_BROADCAST), *read;
	char *text = to_json(schedule), why[300];
	size_t len = strlen(text);
	uint64_t seed = 9;

	(void)state;
	for (int i = 0; i < 1500; i++) {
		char before;
		size_t at;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (seed >> 33) % (i & 1 ? len : 200);
		before = text[at];
		text[at] = bytes[(seed >> 50) % (sizeof(bytes) - 1)];
		*why = '\0';
		if (!from_json(text, &read, why, sizeof(why)))
			muster_schedule_free(read);
		else
			assert_true(*why);
		text[at] = before;
	}
	free(text);
	muster_schedule_free(schedule);
}

static void sends_are_told_in_the_papers_words(void **state)
{
	struct muster_schedule *schedule = make(MUSTER_COLL_ALLGATHER);
	struct muster_topology *topology;
	char why[300], *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(muster_topology_make("dgx1", &topology, why, sizeof(why)), 0);
	assert_int_equal(muster_show_sends(schedule, topology, out, why, sizeof(why)), 0);
	fclose(out);
	assert_non_null(strstr(text, "send 0 from 0 to 1 at step 0\n"));
	assert_non_null(strstr(text, "send 6 from 1 to 4 at step 0\n"));
	assert_non_null(strstr(text, "all links, all steps: 100.0 % used\n"));
	free(text);
	muster_topology_free(topology);
	assert_int_equal(muster_topology_make("ring:8", &topology, why, sizeof(why)), 0);
	out = open_memstream(&text, &len);
	assert_int_equal(muster_show_sends(schedule, topology, out, why, sizeof(why)), -EINVAL);
	fclose(out);
	free(text);
	assert_non_null(strstr(why, "there is no link"));
	muster_topology_free(topology);
	muster_schedule_free(schedule);
}

static struct muster_topology *read_topology(const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct muster_topology *topology;
	char why[300];

	if (muster_topology_read(in, &topology, why, sizeof(why)))
		fail_msg("%s", why);
	fclose(in);
	return topology;
}

static struct muster_schedule *read_broadcast(void)
{
	static const char text[] = "muster-schedule 1\nname x\ncollective broadcast\nranks 3\n"
		"chunks 2\nroot 0\nstep 0\n0 -> 2 chunk 0 copy\n0 -> 2 chunk 1 copy\n"
		"step 1\n2 -> 1 chunk 0 copy\nstep 2\n2 -> 1 chunk 1 copy\nend\n";
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct muster_schedule *schedule;
	char why[300];

	if (muster_schedule_read(in, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	fclose(in);
	return schedule;
}

/* Whatever the bandwidth, as it is measured: no line covers what stands beside it. */
static void a_picture_names_all_and_has_no_broad_lines(void **state)
{
	struct muster_topology *topology = read_topology("muster-topology 1\nname measured\n"
		"nodes 3\nlink 0 -> 2 1\nlink 2 -> 1 60000\nlink 1 -> 0 9\nswitch 2\nend\n");
	struct muster_schedule *schedule = read_broadcast();
	char why[300], *text, *at;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(muster_show_picture(schedule, topology, out, why, sizeof(why)), 0);
	fclose(out);
	assert_non_null(strstr(text, ">x: broadcast, 2 chunks, 3 steps. "));
	assert_non_null(strstr(text, ">measured<"));
	assert_non_null(strstr(text, ">step 0: 2 rounds<"));
	assert_non_null(strstr(text, ">step 2: 1 round<"));
	assert_non_null(strstr(text, "rx=\"2\""));
	for (at = text; (at = strstr(at, "stroke-width=\"")); at++)
		assert_in_range(atoi(at + strlen("stroke-width=\"")), 0, 3);
	free(text);
	muster_topology_free(topology);
	muster_schedule_free(schedule);
}

static void a_link_that_carries_nothing_is_none(void **state)
{
	struct muster_topology *topology = read_topology("muster-topology 1\nname x\nnodes 3\n"
		"link 0 -> 2 1\nlink 2 -> 1 0\nend\n");
	struct muster_schedule *schedule = read_broadcast();
	uint32_t rounds;
	char why[300];

	(void)state;
	assert_int_equal(muster_synth_cost(schedule, topology, &rounds, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "step 1: there is no link 2 -> 1 that carries anything");
	muster_topology_free(topology);
	muster_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_comes_back_equal),
		cmocka_unit_test(spoiled_json_is_read_or_refused),
		cmocka_unit_test(sends_are_told_in_the_papers_words),
		cmocka_unit_test(a_picture_names_all_and_has_no_broad_lines),
		cmocka_unit_test(a_link_that_carries_nothing_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
