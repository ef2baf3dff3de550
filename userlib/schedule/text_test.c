// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The text form: what is written reads back equal, and each kind of wrong text is
 * refused with the number of its line and the reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule.h"

#define HEAD	"muster-schedule 1\nname x\ncollective allreduce\nranks 4\nchunks 2\n"
#define CUSTOM	"muster-schedule 1\nname x\ncollective custom\nranks 4\nchunks 2\n"
#define STEP	HEAD "step 0\n"
#define LINE	"0 -> 1 chunk 0 reduce\n"

static int read_bytes(const char *text, size_t len, struct muster_schedule **schedule, char *why,
		      size_t why_len)
{
	FILE *in = fmemopen((void *)text, len, "r");
	int err;

	assert_non_null(in);
	err = muster_schedule_read(in, schedule, why, why_len);
	fclose(in);
	return err;
}

static void assert_refused(const char *text, size_t len, const char *reason)
{
	struct muster_schedule *schedule = NULL;
	char why[400] = "";

	if (read_bytes(text, len, &schedule, why, sizeof(why)) != -EINVAL || strcmp(why, reason))
		fail_msg("\"%s\"\ngave     \"%s\"\nexpected \"%s\"", text, why, reason);
	assert_null(schedule);
}

static const struct {
	const char *text;
	const char *reason;
} refused[] = {
	{ "schedule 1\n", "line 1: \"muster-schedule\" and one word expected, not \"schedule\"" },
	{ "muster-schedule 2\n", "line 1: version 2 of the form, but this reads version 1" },
	{ "muster-schedule\n",
	  "line 1: \"muster-schedule\" and one word expected, not \"muster-schedule\" alone" },
	{ "muster-schedule 1\nname\n",
	  "line 2: \"name\" and one word expected, not \"name\" alone" },
	{ "muster-schedule 1\nname a b\n",
	  "line 2: \"name\" and one word expected, not \"name\" and more" },
	{ "muster-schedule 1\nname abcdefghijabcdefghijabcdefghij12\n",
	  "line 2: the name is longer than 31 bytes" },
	{ "muster-schedule 1\nname ../x\n",
	  "line 2: a name has only letters, digits, '.', '_' and '-'" },
	{ "muster-schedule 1\nranks 4\n", "line 2: \"name\" and one word expected, not \"ranks\"" },
	{ "muster-schedule 1\nname x\ncollective gossip\n",
	  "line 3: collective \"gossip\", but there are: barrier broadcast reduce allreduce "
	  "reduce-scatter allgather gather scatter alltoall scan custom exscan" },
	{ "muster-schedule 1\nname x\ncollective allgather\nranks 4\nchunks 6\n",
	  "line 5: chunks 6, but in allgather of 4 ranks it is a multiple of 4" },
	{ "muster-schedule 1\nname x\ncollective alltoall\nranks 4\nchunks 12\n",
	  "line 5: chunks 12, but in alltoall of 4 ranks it is a multiple of 16" },
	{ "muster-schedule 1\nname x\ncollective scatter\nranks 4\nchunks 4\nstep 0\n",
	  "line 6: \"root\" and one word expected, not \"step\"" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks 0\n",
	  "line 4: ranks 0, but it can be 1 to 65536" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks 99999999999999999999999\n",
	  "line 4: ranks 99999999999999999999999, but it can be 1 to 65536" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks -1\n",
	  "line 4: ranks \"-1\" is not a number" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks 4\nchunks 65537\n",
	  "line 5: chunks 65537, but it can be 1 to 65536" },
	{ "muster-schedule 1\nname x\ncollective barrier\nranks 4\nchunks 2\n",
	  "line 5: chunks 2, but it can be 1 to 1" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks 4\nchunks 1\nstep 0\n",
	  "line 6: \"root\" and one word expected, not \"step\"" },
	{ "muster-schedule 1\nname x\ncollective reduce\nranks 4\nchunks 1\nroot 4\n",
	  "line 6: root 4, but it can be 0 to 3" },
	{ "", "line 1: the text ends where \"muster-schedule\" should follow" },
	{ "muster-schedule 1\nname x\n",
	  "line 3: the text ends where \"collective\" should follow" },
	{ HEAD, "line 6: the text ends without \"end\": it is cut off" },
	{ HEAD "root 0\n", "line 6: \"step 0\" or \"end\" expected, not \"root\"" },
	{ HEAD LINE, "line 6: \"step 0\" or \"end\" expected, not \"0\"" },
	{ HEAD "step 1\n", "line 6: step 1, but 0 is next" },
	{ HEAD "step\n", "line 6: \"step\" and its number expected" },
	{ STEP "9 -> 1 chunk 0 reduce\n", "line 7: rank 9, but there are 4 ranks (0 to 3)" },
	{ STEP "0 -> 4 chunk 0 reduce\n", "line 7: rank 4, but there are 4 ranks (0 to 3)" },
	{ STEP "0 -> 4294967297 chunk 0 reduce\n",
	  "line 7: rank 4294967297, but there are 4 ranks (0 to 3)" },
	{ STEP "0 -> 1 chunk 2 reduce\n", "line 7: chunk 2, but there are 2 chunks (0 to 1)" },
	{ STEP "2 -> 2 chunk 0 copy\n", "line 7: rank 2 sends to itself: what it has it can only reduce" },
	{ STEP "0 -> 1 chunk 0 add\n", "line 7: \"add\", but it can be reduce or copy" },
	{ STEP "0 -> x chunk 0 copy\n", "line 7: rank \"x\" is not a number" },
	{ STEP "0 -> 1 chunk 0\n",
	  "line 7: \"FROM -> TO chunk CHUNK reduce\" (or copy), \"step\" or \"end\" expected" },
	{ STEP "0 <- 1 chunk 0 copy\n",
	  "line 7: \"FROM -> TO chunk CHUNK reduce\" (or copy), \"step\" or \"end\" expected" },
	{ STEP "0 -> 1 chunk 0 copy 1 2 3\n",
	  "line 7: \"FROM -> TO chunk CHUNK reduce\" (or copy), \"step\" or \"end\" expected" },
	{ CUSTOM "step 0\n",
	  "line 6: \"chunk 0 at RANK ... to RANK ...\" expected (or sum instead of at)" },
	{ CUSTOM "chunk 1 at 0 to 1\n", "line 6: chunk 1, but it can be 0 to 0" },
	{ CUSTOM "chunk 0 at 0 to 4\n", "line 6: rank 4, but there are 4 ranks (0 to 3)" },
	{ CUSTOM "chunk 0 at 0 1 2\n", "line 6: \"to\" and the ranks that need it are missing" },
	{ CUSTOM "chunk 0 at 0 1 to\n",
	  "line 6: \"to\" and the ranks that need it are missing" },
	{ CUSTOM "chunk 0 at to 1 2\n", "line 6: rank \"to\" is not a number" },
	{ CUSTOM "chunk 0 at 0 to 1\nstep 0\n",
	  "line 7: \"chunk 1 at RANK ... to RANK ...\" expected (or sum instead of at)" },
	{ "muster-schedule 1\nname x\ncollective custom\nranks 65536\nchunks 65536\n",
	  "line 5: 65536 chunks of 65536 ranks are more than 16777216" },
	{ STEP LINE "0 -> 1 chunk 1 copy\n" LINE "end\n",
	  "line 9: 0 -> 1 chunk 0 stands in line 7 already" },
	{ STEP "step 1\n", "line 7: step 0 is empty" },
	{ STEP "end\n", "line 7: step 0 is empty" },
	{ STEP LINE "step 1\nend\n", "line 9: step 1 is empty" },
	{ STEP LINE "step 0\n", "line 8: step 0, but 1 is next" },
	{ STEP LINE "step 2\n", "line 8: step 2, but 1 is next" },
	{ STEP LINE, "line 8: the text ends without \"end\": it is cut off" },
	{ STEP LINE "en",
	  "line 8: \"FROM -> TO chunk CHUNK reduce\" (or copy), \"step\" or \"end\" "
	  "expected" },
	{ STEP LINE "end 1\n", "line 8: \"end\" stands alone" },
	{ STEP LINE "end\n# fine\nstep 1\n", "line 10: \"step\" follows after \"end\"" },
};

static void wrong_text_is_refused_with_line_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_refused(refused[i].text, strlen(refused[i].text), refused[i].reason);
}

static void long_lines_and_binary_are_refused(void **state)
{
	static char text[20000] = HEAD;
	size_t len = strlen(text);

	(void)state;
	memset(text + len, ' ', 16384);
	assert_refused(text, len + 16384, "line 6: longer than 16383 bytes");
	text[len + 4] = '\0';
	assert_refused(text, len + 100, "line 6: byte 0: this is not text");
}

static void every_cut_of_a_text_is_refused(void **state)
{
	static const char text[] = STEP LINE "1 -> 2 chunk 1 copy\nend";
	struct muster_schedule *schedule;
	char why[200];

	(void)state;
	for (size_t len = 1; len < strlen(text); len++) {
		assert_int_equal(read_bytes(text, len, &schedule, why, sizeof(why)), -EINVAL);
		assert_int_equal(strncmp(why, "line ", 5), 0);
	}
	assert_int_equal(read_bytes(text, strlen(text), &schedule, why, sizeof(why)), 0);
	muster_schedule_free(schedule);
}

static void comments_blank_lines_and_spaces_are_free(void **state)
{
	static const char text[] =
		"# made by hand\n\nmuster-schedule 1 # form\r\n name\tfree\ncollective reduce\n"
		"ranks 3\nchunks 1\nroot 2\nstep 0\n0->1\n";
	static const char good[] =
		"# made by hand\n\nmuster-schedule 1 # form\r\n name\tfree\ncollective reduce\n"
		"ranks 3\nchunks 1\nroot 2\nstep 0\n\t0 ->   2 chunk 0 reduce # one\n\n"
		"1 -> 2 chunk 0 reduce\nend\n\n# over\n";
	struct muster_schedule *schedule;
	char why[200];

	(void)state;
	assert_refused(text, strlen(text), "line 10: \"FROM -> TO chunk CHUNK reduce\" (or copy), "
		       "\"step\" or \"end\" expected");
	assert_int_equal(read_bytes(good, strlen(good), &schedule, why, sizeof(why)), 0);
	assert_string_equal(schedule->name, "free");
	assert_int_equal(schedule->coll, MUSTER_COLL_REDUCE);
	assert_int_equal(schedule->root, 2);
	assert_int_equal(schedule->nr_transfers, 2);
	assert_int_equal(schedule->transfers[1].from, 1);
	assert_true(schedule->transfers[1].reduce);
	muster_schedule_free(schedule);
}

static void assert_round_trip(const struct muster_schedule *schedule)
{
	struct muster_schedule *again;
	char *text, why[200];
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(muster_schedule_write(schedule, out), 0);
	fclose(out);
	if (read_bytes(text, len, &again, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(muster_schedule_hash(again), muster_schedule_hash(schedule));
	assert_string_equal(again->name, schedule->name);
	assert_int_equal(again->steps, schedule->steps);
	muster_schedule_free(again);
	free(text);
}

static void what_is_written_reads_back_equal(void **state)
{
	static const char *const names[] = {
		"binomial", "recursive-doubling", "rabenseifner", "ring", "bruck", "linear",
		"pairwise", "hillis-steele", "blelloch", "4-nomial", "8-nomial", "double-ring", "double-tree", "halving-doubling",
		"dissemination", "direct",
	};
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++) {
			for (uint32_t ranks = 1; ranks < 20; ranks += 3) {
				struct muster_schedule *schedule;

				if (muster_schedule_generate(names[i], coll, ranks, 0, 8, &schedule,
							     why, sizeof(why)))
					continue;
				assert_round_trip(schedule);
				muster_schedule_free(schedule);
			}
		}
	}
}

/* Damaged at a few places it is refused, or still a schedule of the right form. */
static void damaged_text_does_no_harm(void **state)
{
	static const char text[] = STEP LINE "1 -> 2 chunk 1 copy\nstep 1\n" LINE "end\n";
	unsigned int nr_read = 0;

	(void)state;
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		struct muster_schedule *schedule;
		char damaged[sizeof(text)], why[200];

		memcpy(damaged, text, sizeof(text));
		for (int n = random() % 3; n >= 0; n--) {
			int byte = random() % 4 ? "0 19#\n-cs"[random() % 9] : random();

			damaged[random() % strlen(text)] = byte;
		}
		if (read_bytes(damaged, strlen(text), &schedule, why, sizeof(why))) {
			assert_int_equal(strncmp(why, "line ", 5), 0);
			continue;
		}
		nr_read++;
		assert_round_trip(schedule);
		muster_schedule_free(schedule);
	}
	assert_in_range(nr_read, 100, 10000);
}

static void writing_to_a_full_disk_fails(void **state)
{
	struct muster_schedule *schedule;
	FILE *out = fopen("/dev/full", "w");
	char why[200];

	(void)state;
	if (!out)
		skip();
	assert_int_equal(muster_schedule_generate("ring", MUSTER_COLL_ALLREDUCE, 4, 0, 8, &schedule,
						  why, sizeof(why)), 0);
	assert_int_equal(muster_schedule_write(schedule, out), -EIO);
	fclose(out);
	muster_schedule_free(schedule);
}

static void a_directory_cannot_be_read(void **state)
{
	struct muster_schedule *schedule;
	FILE *in = fopen("/", "r");
	char why[200];

	(void)state;
	assert_non_null(in);
	assert_int_equal(muster_schedule_read(in, &schedule, why, sizeof(why)), -EIO);
	assert_string_equal(why, "line 1: cannot be read: Is a directory");
	fclose(in);
}

static void a_custom_schedule_reads_back_equal(void **state)
{
	static const char text[] =
		CUSTOM "chunk 0 at 0 1 to 2 3\nchunk 1 sum 0 3 to 1\nstep 0\n"
		"  0 -> 2  chunk 0  copy\n  1 -> 3  chunk 0  copy\n  0 -> 1  chunk 1  copy\n"
		"  3 -> 1  chunk 1  reduce\nend\n";
	struct muster_schedule *schedule;
	char written[1000] = "", why[200];
	FILE *out = fmemopen(written, sizeof(written), "w");
	uint64_t hash;

	(void)state;
	if (read_bytes(text, strlen(text), &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(muster_schedule_write(schedule, out), 0);
	fclose(out);
	assert_string_equal(written, text);
	hash = muster_schedule_hash(schedule);
	schedule->places[0] ^= MUSTER_PLACE_NEEDS;
	assert_int_not_equal(muster_schedule_hash(schedule), hash);
	muster_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_custom_schedule_reads_back_equal),
		cmocka_unit_test(wrong_text_is_refused_with_line_and_reason),
		cmocka_unit_test(long_lines_and_binary_are_refused),
		cmocka_unit_test(every_cut_of_a_text_is_refused),
		cmocka_unit_test(comments_blank_lines_and_spaces_are_free),
		cmocka_unit_test(what_is_written_reads_back_equal),
		cmocka_unit_test(damaged_text_does_no_harm),
		cmocka_unit_test(writing_to_a_full_disk_fails),
		cmocka_unit_test(a_directory_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
