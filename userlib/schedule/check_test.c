// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The checker finds planted faults, each for the right reason, and nothing else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule.h"

#define SCHEDULE(coll, ranks, chunks, rest)                                                        \
	"muster-schedule 1\nname x\ncollective " coll "\nranks " #ranks "\nchunks " #chunks        \
	"\n" rest "end\n"

static struct muster_schedule *read_text(const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct muster_schedule *schedule;
	char why[200];

	assert_non_null(in);
	if (muster_schedule_read(in, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	fclose(in);
	return schedule;
}

static const struct {
	const char *text;
	const char *reason;	/* NULL: it is right */
} planted[] = {
	/* counted twice: at once, and by way of another rank */
	{ SCHEDULE("allreduce", 2, 1,
		   "step 0\n0 -> 1 chunk 0 reduce\nstep 1\n0 -> 1 chunk 0 reduce\n"),
	  "step 1, 0 -> 1, chunk 0: counts the contribution of rank 0 twice" },
	{ SCHEDULE("reduce", 3, 2,
		   "root 2\nstep 0\n0 -> 1 chunk 1 reduce\n0 -> 2 chunk 1 reduce\n"
		   "0 -> 2 chunk 0 reduce\n1 -> 2 chunk 0 reduce\nstep 1\n1 -> 2 chunk 1 reduce\n"),
	  "step 1, 1 -> 2, chunk 1: counts the contribution of rank 0 twice" },
	/* missing */
	{ SCHEDULE("reduce", 3, 1, "root 0\nstep 0\n1 -> 0 chunk 0 reduce\n"),
	  "chunk 0: rank 0 ends without the contribution of rank 2" },
	{ SCHEDULE("reduce", 2, 2, "root 0\nstep 0\n1 -> 0 chunk 0 reduce\n"),
	  "chunk 1: rank 0 ends without the contribution of rank 1" },
	{ SCHEDULE("reduce", 3, 1,
		   "root 0\nstep 0\n2 -> 1 chunk 0 reduce\n1 -> 0 chunk 0 reduce\n"),
	  "chunk 0: rank 0 ends without the contribution of rank 2" },
	{ SCHEDULE("allreduce", 2, 1, "step 0\n0 -> 1 chunk 0 reduce\n"),
	  "chunk 0: rank 0 ends without the contribution of rank 1" },
	{ SCHEDULE("barrier", 2, 1, "step 0\n0 -> 1 chunk 0 copy\n"),
	  "chunk 0: rank 0 ends without the contribution of rank 1" },
	{ SCHEDULE("allreduce", 2, 1, ""),
	  "chunk 0: rank 0 ends without the contribution of rank 1" },
	/* a copy over a partial sum */
	{ SCHEDULE("reduce", 3, 1,
		   "root 0\nstep 0\n1 -> 0 chunk 0 reduce\nstep 1\n"
		   "2 -> 0 chunk 0 copy\n"),
	  "chunk 0: rank 0 ends without the contribution of rank 0; in step 1 rank 2 replaced what "
	  "it had" },
	/* nothing there to send, or to be had */
	{ SCHEDULE("broadcast", 3, 1, "root 0\nstep 0\n0 -> 1 chunk 0 copy\n1 -> 2 chunk 0 copy\n"),
	  "step 0, 1 -> 2, chunk 0: rank 1 has nothing to send yet" },
	{ SCHEDULE("broadcast", 3, 1, "root 0\nstep 0\n0 -> 1 chunk 0 copy\n"),
	  "chunk 0: rank 2 ends without it" },
	{ SCHEDULE("broadcast", 2, 1, "root 0\nstep 0\n0 -> 1 chunk 0 reduce\n"),
	  "step 0, 0 -> 1, chunk 0: there is nothing to reduce in broadcast" },
	/* everything is there, but (0 + 1) + 2 is not (1 + 2) + 0 */
	{ SCHEDULE("allreduce", 3, 1,
		   "step 0\n1 -> 0 chunk 0 reduce\n2 -> 0 chunk 0 reduce\n"
		   "2 -> 1 chunk 0 reduce\n0 -> 1 chunk 0 reduce\n"
		   "0 -> 2 chunk 0 reduce\n1 -> 2 chunk 0 reduce\n"),
	  "chunk 0: ranks 0 and 1 combine in different orders: their bits could differ" },
	/* who owns a chunk, whose it shall be */
	{ SCHEDULE("allgather", 2, 4,
		   "step 0\n0 -> 1 chunk 0 copy\n0 -> 1 chunk 1 copy\n1 -> 0 chunk 2 copy\n"),
	  "chunk 3: rank 0 ends without it" },
	{ SCHEDULE("allgather", 2, 2, "step 0\n1 -> 0 chunk 0 copy\n"),
	  "step 0, 1 -> 0, chunk 0: rank 1 has nothing to send yet" },
	{ SCHEDULE("scatter", 2, 2, "root 1\nstep 0\n1 -> 0 chunk 1 copy\n"),
	  "chunk 0: rank 0 ends without it" },
	{ SCHEDULE("gather", 3, 3, "root 2\nstep 0\n0 -> 2 chunk 0 copy\n"),
	  "chunk 1: rank 2 ends without it" },
	{ SCHEDULE("alltoall", 2, 4, "step 0\n0 -> 1 chunk 1 copy\n1 -> 0 chunk 3 copy\n"),
	  "chunk 2: rank 0 ends without it" },
	{ SCHEDULE("reduce-scatter", 2, 2, "step 0\n1 -> 0 chunk 0 reduce\n"),
	  "chunk 1: rank 1 ends without the contribution of rank 0" },
	{ SCHEDULE("alltoall", 2, 4, "step 0\n0 -> 1 chunk 1 reduce\n1 -> 0 chunk 2 copy\n"),
	  "step 0, 0 -> 1, chunk 1: there is nothing to reduce in alltoall" },
	{ SCHEDULE("allgather", 2, 2, "step 0\n0 -> 1 chunk 0 copy\n1 -> 0 chunk 1 copy\n"), NULL },
	{ SCHEDULE("gather", 3, 3, "root 2\nstep 0\n0 -> 2 chunk 0 copy\n1 -> 2 chunk 1 copy\n"),
	  NULL },
	{ SCHEDULE("scatter", 2, 2, "root 1\nstep 0\n1 -> 0 chunk 0 copy\n"), NULL },
	{ SCHEDULE("alltoall", 2, 4, "step 0\n0 -> 1 chunk 1 copy\n1 -> 0 chunk 2 copy\n"), NULL },
	{ SCHEDULE("reduce-scatter", 2, 2,
		   "step 0\n1 -> 0 chunk 0 reduce\n0 -> 1 chunk 1 reduce\n"), NULL },
	/* scan: of oneself and those before */
	{ SCHEDULE("scan", 3, 1,
		   "step 0\n0 -> 1 chunk 0 reduce\n1 -> 2 chunk 0 reduce\nstep 1\n"
		   "0 -> 2 chunk 0 reduce\n"), NULL },
	{ SCHEDULE("scan", 3, 1, "step 0\n0 -> 1 chunk 0 reduce\n1 -> 2 chunk 0 reduce\n"),
	  "chunk 0: rank 2 ends without the contribution of rank 0" },
	{ SCHEDULE("scan", 2, 1, "step 0\n0 -> 1 chunk 0 reduce\n1 -> 0 chunk 0 reduce\n"),
	  "chunk 0: rank 0 ends with the contribution of rank 1, which is behind it" },
	/* exscan: of those before alone, and rank 0 gets nothing */
	{ SCHEDULE("exscan", 3, 1,
		   "step 0\n0 -> 1 chunk 0 copy\n1 -> 2 chunk 0 copy\nstep 1\n"
		   "1 -> 2 chunk 0 reduce\n"), NULL },
	{ SCHEDULE("exscan", 2, 1, "step 0\n0 -> 1 chunk 0 reduce\n"),
	  "chunk 0: rank 1 ends with the contribution of rank 1, which is its own" },
	{ SCHEDULE("exscan", 3, 1, "step 0\n0 -> 1 chunk 0 copy\n1 -> 2 chunk 0 copy\n"),
	  "chunk 0: rank 2 ends without the contribution of rank 0; in step 0 rank 1 replaced what "
	  "it had" },
	/* custom: the same at several, or contributions, and who only helps */
	{ SCHEDULE("custom", 4, 2, "chunk 0 at 0 1 to 2 3\nchunk 1 sum 0 1 to 2 3\n"
		   "step 0\n0 -> 2 chunk 0 copy\n1 -> 3 chunk 0 copy\n0 -> 2 chunk 1 copy\n"
		   "1 -> 2 chunk 1 reduce\nstep 1\n2 -> 3 chunk 1 copy\n"), NULL },
	{ SCHEDULE("custom", 3, 1, "chunk 0 at 0 1 to 2\n"
		   "step 0\n0 -> 2 chunk 0 copy\n1 -> 2 chunk 0 reduce\n"),
	  "step 0, 1 -> 2, chunk 0: counts the contribution of rank 0 twice" },
	{ SCHEDULE("custom", 3, 1, "chunk 0 sum 0 1 to 2\nstep 0\n0 -> 2 chunk 0 reduce\n"
		   "1 -> 2 chunk 0 reduce\n"),
	  "step 0, 0 -> 2, chunk 0: rank 2 has nothing yet to combine it with" },
	{ SCHEDULE("custom", 3, 1, "chunk 0 sum 0 1 to 1 2\nstep 0\n0 -> 2 chunk 0 copy\n"
		   "1 -> 2 chunk 0 reduce\n"),
	  "chunk 0: rank 1 ends without the contribution of rank 0" },
	/* right: 0 + 1 is 1 + 0 */
	{ SCHEDULE("allreduce", 2, 1, "step 0\n1 -> 0 chunk 0 reduce\n0 -> 1 chunk 0 reduce\n"),
	  NULL },
	/* right: what is read in a step is what was there before it */
	{ SCHEDULE("reduce", 3, 1,
		   "root 0\nstep 0\n1 -> 2 chunk 0 reduce\nstep 1\n"
		   "1 -> 2 chunk 0 copy\n2 -> 0 chunk 0 reduce\n"),
	  NULL },
	/* right: ranks may hear of each other twice in a barrier */
	{ SCHEDULE("barrier", 3, 1,
		   "step 0\n0 -> 1 chunk 0 reduce\n1 -> 2 chunk 0 copy\n"
		   "2 -> 0 chunk 0 reduce\nstep 1\n0 -> 2 chunk 0 reduce\n1 -> 0 chunk 0 copy\n"
		   "2 -> 1 chunk 0 reduce\n"),
	  NULL },
};

static void planted_faults_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		struct muster_schedule *schedule = read_text(planted[i].text);
		char why[200] = "";
		int err = muster_schedule_check(schedule, why, sizeof(why));

		if (err != (planted[i].reason ? -EINVAL : 0) ||
		    strcmp(why, planted[i].reason ? planted[i].reason : ""))
			fail_msg("%s\ngave     %d \"%s\"\nexpected \"%s\"", planted[i].text, err,
				 why, planted[i].reason ? planted[i].reason : "");
		muster_schedule_free(schedule);
	}
}

static void a_schedule_of_a_wrong_form_is_refused(void **state)
{
	struct muster_transfer transfers[] = { { 0, 0, 0, 1, false }, { 1, 0, 1, 2, false } };
	struct muster_schedule good = {
		.coll = MUSTER_COLL_BROADCAST, .ranks = 3, .chunks = 1, .steps = 2,
		.nr_transfers = 2, .transfers = transfers,
	};
	struct muster_schedule bad;
	char why[200];

	(void)state;
	assert_int_equal(muster_schedule_check(&good, why, sizeof(why)), 0);
	bad = good;
	bad.ranks = 2;
	assert_int_equal(muster_schedule_check(&bad, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "step 1, 1 -> 2, chunk 0: no such pair among 2 ranks");
	bad = good;
	bad.steps = 3;
	assert_int_equal(muster_schedule_check(&bad, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "3 steps are announced, but 2 are there");
	bad = good;
	bad.coll = 0;
	assert_int_equal(muster_schedule_check(&bad, why, sizeof(why)), -EINVAL);
	bad = good;
	bad.chunks = 0;
	assert_int_equal(muster_schedule_check(&bad, why, sizeof(why)), -EINVAL);
	bad = good;
	bad.coll = MUSTER_COLL_ALLGATHER;
	bad.chunks = 2;
	assert_int_equal(muster_schedule_check(&bad, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "2 chunks, but in allgather of 3 ranks it is a multiple of 3");
	transfers[1].step = 2;
	assert_int_equal(muster_schedule_check(&good, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "step 2, 1 -> 2, chunk 0: out of order after 1 steps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(planted_faults_are_found),
		cmocka_unit_test(a_schedule_of_a_wrong_form_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
