// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lowered programs, descriptor by descriptor: the examples of
 * Documentation/sequence.md, and what is refused because a limit does not allow it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev.h"
#include "build.h"

#define C	MUSTER_DESC_C
#define CH	MUSTER_DESC_CH
#define CT	MUSTER_DESC_CT
#define CP	MUSTER_DESC_CP
#define LOCAL	MUSTER_DESC_SWAP_LOCAL_DATA
#define REMOTE	MUSTER_DESC_SWAP_REMOTE_DATA
#define REDUCE	MUSTER_DESC_REDUCE
#define END	MUSTER_DESC_COLL_END
#define IN	MUSTER_SPACE_IN
#define OUT	MUSTER_SPACE_OUT
#define SCRATCH	MUSTER_SPACE_SCRATCH

enum { RANKS_MAX = 65536 };

static struct muster_address members[RANKS_MAX];

static struct muster_schedule *generate(const char *name, enum muster_coll coll, uint32_t ranks)
{
	struct muster_schedule *schedule;
	char why[200];

	if (muster_schedule_generate(name, coll, ranks, 0, 8, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	return schedule;
}

static struct muster_schedule *by_rank(const char *name, enum muster_coll coll, uint32_t ranks)
{
	struct muster_schedule *schedule;
	char why[200];

	if (muster_schedule_by_rank(name, coll, ranks, 0, 8, &schedule, why, sizeof(why)))
		fail_msg("%s", why);
	return schedule;
}

static int try_lower(const struct muster_schedule *schedule, uint32_t rank, uint64_t count,
		     bool in_place, struct muster_program **program, char *why, size_t why_len)
{
	struct muster_lower_params params = {
		.rank = rank, .count = count, .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM,
		.addresses = members, .in_place = in_place,
	};

	return muster_schedule_lower(schedule, &params, program, why, why_len);
}

static struct muster_program *lower(const struct muster_schedule *schedule, uint32_t rank,
				    uint64_t count, bool in_place)
{
	struct muster_program *program;
	char why[300];

	if (try_lower(schedule, rank, count, in_place, &program, why, sizeof(why)))
		fail_msg("%s", why);
	return program;
}

static void assert_refused(struct muster_schedule *schedule, uint64_t count, const char *reason)
{
	struct muster_program *program = NULL;
	char why[300] = "";

	assert_int_equal(try_lower(schedule, 0, count, false, &program, why, sizeof(why)), -E2BIG);
	assert_string_equal(why, reason);
	assert_null(program);
	muster_schedule_free(schedule);
}

/* What a descriptor does, in short. */
struct expected {
	uint16_t flags;
	uint8_t cp_count;
	uint32_t to, slot;	/* with CP */
	uint8_t load, store;
	uint64_t at, length;	/* in elements */
};

static void assert_program(const struct muster_program *program, const struct expected *expected,
			   uint32_t nr)
{
	assert_int_equal(program->nr_descs, nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct muster_desc *d = &program->descs[i];
		const struct expected *e = &expected[i];

		assert_int_equal(d->flags, e->flags | C);
		assert_int_equal(d->cp_count, e->cp_count);
		assert_int_equal(d->range.load_key, e->load);
		assert_int_equal(d->store_key, e->store);
		assert_int_equal(d->length, e->length * 8);
		if (e->load)
			assert_int_equal(d->range.load_addr, e->at * 8);
		if (e->store)
			assert_int_equal(d->store_addr, e->at * 8);
		assert_int_equal(d->dst_vp, e->flags & CP ? members[e->to].vp : 0);
		assert_int_equal(d->dest, e->flags & CP ? e->slot << 24 | members[e->to].node : 0);
	}
}

static void assert_lowers_to(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t rank,
			     uint64_t count, bool in_place, const struct expected *expected,
			     uint32_t nr)
{
	struct muster_schedule *schedule = generate(name, coll, ranks);
	struct muster_program *program = lower(schedule, rank, count, in_place);

	assert_int_equal(program->nr_stages, 1);
	assert_program(program, expected, nr);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

#define ASSERT_LOWERS_TO(name, coll, ranks, rank, count, in_place, ...)				   \
	assert_lowers_to(name, MUSTER_COLL_##coll, ranks, rank, count, in_place,		   \
			 (const struct expected[]){ __VA_ARGS__ },				   \
			 sizeof((const struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected))

static void recursive_doubling_of_one_element_is_three_descriptors(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("recursive-doubling", ALLREDUCE, 4, 1, 1, false,
			 { CH | CP, 0, 0, 0, IN, 0, 0, 1 },
			 { LOCAL | REDUCE | CP, 1, 3, 1, 0, 0, 0, 1 },
			 { LOCAL | REDUCE | CT | END, 1, 0, 0, 0, OUT, 0, 1 });
}

static void an_inner_node_takes_three_children_in_one_descriptor(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("binomial", REDUCE, 16, 8, 1, false,
			 { CH | CT | REDUCE | CP | END, 3, 0, 3, IN, 0, 0, 1 });
	/* the same from memory; what is no result yet is kept in OUT */
	ASSERT_LOWERS_TO("binomial", REDUCE, 16, 8, 1000, false,
			 { CH | CT | REDUCE | CP | END, 3, 0, 3, IN, OUT, 0, 1000 });
	ASSERT_LOWERS_TO("binomial", REDUCE, 16, 0, 1000, true,
			 { CH | CT | REDUCE | END, 4, 0, 0, OUT, OUT, 0, 1000 });
}

static void halving_and_doubling_send_from_where_they_wrote(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("rabenseifner", ALLREDUCE, 2, 0, 1001, false,
			 { CH | CP, 0, 1, 0, IN, 0, 501, 500 },
			 { REDUCE | CP | REMOTE, 1, 1, 1, IN, OUT, 0, 501 },
			 { CT | END, 1, 0, 0, 0, OUT, 501, 500 });
}

static void a_chunk_that_is_sent_twice_is_sent_from_a_descriptor_of_its_own(void **state)
{
	(void)state;
	/* rank 0 gets its chunk complete, sends it to 1 at once and to 2 next, before it waits */
	ASSERT_LOWERS_TO("rabenseifner", ALLREDUCE, 4, 0, 400, false,
			 { CH | CP, 0, 2, 0, IN, 0, 200, 100 },
			 { CP, 0, 2, 1, IN, 0, 300, 100 },
			 { REDUCE, 1, 0, 0, IN, OUT, 0, 100 },
			 { REDUCE | CP, 1, 1, 2, IN, OUT, 100, 100 },
			 { REDUCE | CP | REMOTE, 1, 1, 3, OUT, OUT, 0, 100 },
			 { CP | REMOTE, 0, 2, 4, OUT, 0, 0, 100 },
			 { CP | REMOTE, 1, 2, 5, 0, OUT, 100, 100 },
			 { 0, 1, 0, 0, 0, OUT, 200, 100 },
			 { CT | END, 1, 0, 0, 0, OUT, 300, 100 });
}

static void assert_by_rank(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t rank,
			   uint64_t count, const struct expected *expected, uint32_t nr)
{
	struct muster_schedule *schedule = by_rank(name, coll, ranks);
	struct muster_program *program = lower(schedule, rank, count, false);

	assert_program(program, expected, nr);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

static void what_is_generated_sends_ranges_of_chunks(void **state)
{
	static const struct expected halves[] = {
		{ CH | CP, 0, 2, 0, IN, 0, 200, 200 },
		{ REDUCE, 1, 0, 0, IN, OUT, 0, 200 },
		{ CP, 0, 1, 1, OUT, 0, 100, 100 },
		{ REDUCE | CP | REMOTE, 1, 1, 2, OUT, OUT, 0, 100 },
		{ 0, 1, 0, 0, 0, OUT, 100, 100 },
		{ CP | REMOTE, 0, 2, 3, OUT, 0, 0, 200 },
		{ CT | END, 1, 0, 0, 0, OUT, 200, 200 },
	};
	static const struct expected doubles[] = {
		{ CH | CP, 0, 1, 0, IN, 0, 0, 1000 },
		{ REDUCE | CP, 1, 2, 1, IN, SCRATCH, 0, 1000 },
		{ CT | REDUCE | END, 1, 0, 0, SCRATCH, OUT, 0, 1000 },
	};

	(void)state;
	assert_by_rank("rabenseifner", MUSTER_COLL_ALLREDUCE, 4, 0, 400, halves, 7);
	assert_by_rank("recursive-doubling", MUSTER_COLL_ALLREDUCE, 4, 0, 1000, doubles, 3);
}

/* Nobody waits for a copy of what lies in IN already; a list may have no room for one. */
static void an_own_block_is_sent_from_where_it_is(void **state)
{
	static const struct expected passed_on[] = {
		{ CH | CP | REMOTE, 0, 1, 0, IN, 0, 0, 100 },
		{ 0, 0, 0, 0, IN, OUT, 0, 100 },
		{ CP | REMOTE, 1, 1, 1, 0, OUT, 200, 100 },
		{ CT | END, 1, 0, 0, 0, OUT, 100, 100 },
	};

	(void)state;
	assert_by_rank("ring", MUSTER_COLL_ALLGATHER, 3, 0, 300, passed_on, 4);
	ASSERT_LOWERS_TO("ring", ALLGATHER, 3, 0, 300, false,
			 { CH | CP | REMOTE, 0, 1, 0, IN, OUT, 0, 100 },
			 { CP | REMOTE, 1, 1, 1, 0, OUT, 200, 100 },
			 { CT | END, 1, 0, 0, 0, OUT, 100, 100 });
}

static uint32_t count_sends(const struct muster_program *program)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < program->nr_descs; i++)
		nr += program->descs[i].flags & CP ? 1 : 0;
	return nr;
}

static void as_few_messages_as_pulses_allow(void **state)
{
	static const struct {
		uint32_t bytes, sends, stages, pulses;
	} known[] = {
		{ 16 << 10, 16, 1, 1 },			/* 64 bytes a chunk: 8 steps each way */
		{ 256 << 10, 2 * (4 + 2 + 6), 1, 1 },	/* 1 KiB: 32 of them are a pulse */
		{ 8 << 20, 2 * 255, 16, 1 },		/* 32 KiB: each chunk a message */
		{ 16 << 20, 2 * 255, 16, 2 },
	};
	struct muster_schedule *schedule = by_rank("rabenseifner", MUSTER_COLL_ALLREDUCE, 256);

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct muster_program *program = lower(schedule, 77, known[i].bytes / 8, false);

		assert_int_equal(count_sends(program), known[i].sends);
		assert_int_equal(program->nr_stages, known[i].stages);
		assert_int_equal(program->descs[0].range.pulse_count, known[i].pulses);
		muster_program_free(program);
	}
	muster_schedule_free(schedule);
}

static void a_part_of_65536_ranks_is_lowered_by_itself(void **state)
{
	struct muster_schedule *schedule = by_rank("rabenseifner", MUSTER_COLL_ALLREDUCE, 65536);
	struct muster_program *program = lower(schedule, 17, 1 << 17, false);

	(void)state;
	assert_int_equal(program->nr_stages, 3);	/* 16 messages in the first and last step */
	muster_program_free(program);
	muster_schedule_free(schedule);
	assert_refused(by_rank("ring", MUSTER_COLL_ALLREDUCE, 65536), 1 << 20,
		       "the schedule needs 4096 stages, more than 256");
}

/* What it receives it sends to two others; the root and the last have nothing to forward. */
static void a_rank_in_the_middle_forwards(void **state)
{
	struct muster_schedule *schedule = generate("binomial", MUSTER_COLL_BROADCAST, 8);
	struct muster_lower_params params = {
		.count = 10000, .type = MUSTER_DTYPE_F64, .addresses = members, .forwards = true,
	};
	const uint16_t forwards[][3] = {
		{ 0, 0, 0 }, [4] = { MUSTER_DESC_FORWARD, MUSTER_DESC_FORWARD, 0 }, [7] = { 0, 0, 0 },
	};
	struct muster_program *program;
	char why[200];

	(void)state;
	for (params.rank = 0; params.rank < 8; params.rank += params.rank ? 3 : 4) {
		assert_int_equal(muster_schedule_lower(schedule, &params, &program, why, sizeof(why)), 0);
		for (uint32_t i = 0; i < program->nr_descs && i < 3; i++)
			assert_int_equal(program->descs[i].flags & MUSTER_DESC_FORWARD,
					 forwards[params.rank][i]);
		muster_program_free(program);
	}
	muster_schedule_free(schedule);
}

static void a_broadcast_copies(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("binomial", BROADCAST, 4, 0, 1, true,
			 { CH | CP | REMOTE, 0, 2, 0, IN, 0, 0, 1 },
			 { CT | CP | REMOTE | LOCAL | END, 0, 1, 0, 0, 0, 0, 1 });
	ASSERT_LOWERS_TO("binomial", BROADCAST, 4, 2, 1, true,
			 { CH | CT | CP | REMOTE | END, 1, 3, 0, 0, OUT, 0, 1 });
	ASSERT_LOWERS_TO("binomial", BROADCAST, 4, 2, 1000, true,
			 { CH | CT | CP | REMOTE | END, 1, 3, 0, 0, OUT, 0, 1000 });
	ASSERT_LOWERS_TO("binomial", BROADCAST, 4, 0, 1000, true,
			 { CH | CP | REMOTE, 0, 2, 0, OUT, 0, 0, 1000 },
			 { CT | CP | REMOTE | END, 0, 1, 0, OUT, 0, 0, 1000 });
	/* the root's own result, where it is not in place: with its first send */
	ASSERT_LOWERS_TO("binomial", BROADCAST, 4, 0, 1000, false,
			 { CH | CP | REMOTE, 0, 2, 0, IN, OUT, 0, 1000 },
			 { CT | CP | REMOTE | END, 0, 1, 0, OUT, 0, 0, 1000 });
}

static void one_rank_copies_or_does_nothing(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("binomial", ALLREDUCE, 1, 0, 1, false,
			 { CH | CT | END, 0, 0, 0, IN, OUT, 0, 1 });
	ASSERT_LOWERS_TO("ring", ALLREDUCE, 1, 0, 1000, false,
			 { CH | CT | END, 0, 0, 0, IN, OUT, 0, 1000 });
	ASSERT_LOWERS_TO("ring", ALLREDUCE, 1, 0, 1000, true,
			 { CH | CT | END, 0, 0, 0, 0, 0, 0, 0 });
}

static void a_barrier_has_no_data(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("recursive-doubling", BARRIER, 3, 2, 0, false,
			 { CH | CP, 0, 0, 0, 0, 0, 0, 0 },
			 { CT | END, 1, 0, 0, 0, 0, 0, 0 });
}

static void a_large_message_is_the_same_few_descriptors_for_each_pulse(void **state)
{
	struct muster_schedule *schedule = generate("rabenseifner", MUSTER_COLL_ALLREDUCE, 4);
	struct muster_program *small = lower(schedule, 0, 400, false);
	struct muster_program *large = lower(schedule, 0, 8 << 20, false);

	(void)state;
	assert_int_equal(small->descs[0].range.pulse_len, 832);
	assert_int_equal(small->descs[0].range.pulse_count, 1);
	assert_int_equal(large->descs[0].range.pulse_len, 32 << 10);
	assert_int_equal(large->descs[0].range.pulse_count, (16 << 20) / (32 << 10));
	assert_int_equal(large->nr_descs, small->nr_descs);
	muster_program_free(large);
	large = lower(schedule, 0, 4 * 4097, false);	/* chunks of 32776 bytes */
	assert_int_equal(large->descs[0].range.pulse_len, 5 * MUSTER_MTU);
	assert_int_equal(large->descs[0].range.pulse_count, 2);
	muster_program_free(large);
	muster_program_free(small);
	muster_schedule_free(schedule);
}

static void between_two_ranks_pulses_are_as_long_as_can_be(void **state)
{
	struct muster_schedule *schedule = generate("recursive-doubling", MUSTER_COLL_ALLREDUCE, 2);
	struct muster_program *program = lower(schedule, 0, 1 << 20, false);

	(void)state;
	assert_int_equal(program->descs[0].range.pulse_len, MUSTER_PULSE_MAX);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

static struct muster_schedule *built(struct muster_builder *builder)
{
	struct muster_schedule *schedule;

	assert_int_equal(muster_builder_end(builder, &schedule), 0);
	return schedule;
}

/* Ranks 1 to nr send to rank 0, in one step. */
static struct muster_schedule *star(enum muster_coll coll, uint32_t nr)
{
	struct muster_builder builder;

	muster_builder_init(&builder, "star", coll, nr + 1, 1, 0);
	for (uint32_t r = 1; r <= nr; r++)
		muster_builder_add(&builder, 0, coll == MUSTER_COLL_REDUCE ? r : 0,
				   coll == MUSTER_COLL_REDUCE ? 0 : r, coll == MUSTER_COLL_REDUCE);
	return built(&builder);
}

static void sixteen_packets_go_into_one_descriptor(void **state)
{
	static const struct expected expected[] = {
		{ CH | REDUCE, 16, 0, 0, IN, OUT, 0, 100 },
		{ CT | REDUCE | END, 16, 0, 0, OUT, OUT, 0, 100 },
	};
	struct muster_schedule *schedule = star(MUSTER_COLL_REDUCE, 32);
	struct muster_program *program = lower(schedule, 0, 100, false);

	(void)state;
	assert_program(program, expected, 2);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

static void limits_are_named(void **state)
{
	struct muster_builder builder;

	(void)state;
	assert_refused(star(MUSTER_COLL_REDUCE, 33), 1,
		       "step 0: rank 0 receives more than 32 messages "
		       "(MUSTER_SLOTS_MAX); split the step");
	assert_refused(star(MUSTER_COLL_BROADCAST, 65), 1,
		       "step 0: rank 0 sends and receives more than "
		       "64 messages (MUSTER_SEQ_DESCS_MAX); split the step");
	assert_refused(generate("binomial", MUSTER_COLL_REDUCE, 4), 1ull << 61,
		       "step 0: 2305843009213693952 elements are more than 2^64 bytes");
	assert_refused(generate("binomial", MUSTER_COLL_REDUCE, 4), 1ull << 60,
		       "step 0: a chunk of "
		       "9223372036854775808 bytes has more than 1073741824 pulses "
		       "(MUSTER_PULSE_COUNT_MAX)");
	muster_builder_init(&builder, "ping", MUSTER_COLL_BARRIER, 2, 1, 0);
	for (uint32_t i = 0; i < 256 * 32 + 1; i++, muster_builder_step(&builder))
		muster_builder_add(&builder, 0, 0, 1, false);
	assert_refused(built(&builder), 0, "step 8192: the schedule needs more than 256 stages");
}

static void what_comes_is_not_stored_over_what_is_sent(void **state)
{
	(void)state;
	ASSERT_LOWERS_TO("recursive-doubling", ALLREDUCE, 2, 0, 100, false,
			 { CH | CP, 0, 1, 0, IN, 0, 0, 100 },
			 { CT | REDUCE | END, 1, 0, 0, IN, OUT, 0, 100 });
	ASSERT_LOWERS_TO("recursive-doubling", ALLREDUCE, 2, 0, 100, true,
			 { CH | CP, 0, 1, 0, OUT, 0, 0, 100 },
			 { REDUCE, 1, 0, 0, OUT, SCRATCH, 0, 100 },
			 { CT | END, 0, 0, 0, SCRATCH, OUT, 0, 100 });
	/* where a chunk moves twice it ends where it shall, without a copy */
	ASSERT_LOWERS_TO("recursive-doubling", ALLREDUCE, 4, 0, 100, false,
			 { CH | CP, 0, 1, 0, IN, 0, 0, 100 },
			 { REDUCE | CP, 1, 2, 1, IN, SCRATCH, 0, 100 },
			 { CT | REDUCE | END, 1, 0, 0, SCRATCH, OUT, 0, 100 });
	ASSERT_LOWERS_TO("recursive-doubling", ALLREDUCE, 4, 0, 100, true,
			 { CH | CP, 0, 1, 0, OUT, 0, 0, 100 },
			 { REDUCE | CP, 1, 2, 1, OUT, SCRATCH, 0, 100 },
			 { CT | REDUCE | END, 1, 0, 0, SCRATCH, OUT, 0, 100 });
}

static void several_messages_may_come_into_what_is_sent(void **state)
{
	static const struct expected expected[] = {
		{ CH | CP, 0, 1, 1, OUT, 0, 0, 1000 },
		{ REDUCE, 2, 0, 0, OUT, SCRATCH, 0, 1000 },
		{ CT | END, 0, 0, 0, SCRATCH, OUT, 0, 1000 },
	};
	struct muster_schedule *schedule;
	struct muster_program *program;
	struct muster_builder builder;

	(void)state;
	muster_builder_init(&builder, "cross", MUSTER_COLL_ALLREDUCE, 4, 1, 0);
	muster_builder_add(&builder, 0, 2, 0, true);
	muster_builder_add(&builder, 0, 3, 1, true);
	muster_builder_add(&builder, 0, 0, 1, true);
	muster_builder_add(&builder, 0, 1, 0, true);
	schedule = built(&builder);
	program = lower(schedule, 0, 1000, true);
	assert_program(program, expected, 3);
	assert_int_equal(program->scratch_bytes, 8000);
	muster_program_free(program);
	program = lower(schedule, 0, 1, true);	/* inline: nothing is in memory */
	assert_int_equal(program->scratch_bytes, 0);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

static void slots_are_in_the_order_of_step_and_listing(void **state)
{
	static const struct expected expected[] = {
		{ CH | CP, 0, 1, 0, OUT, 0, 0, 100 },
		{ REDUCE, 1, 0, 0, OUT, SCRATCH, 0, 100 },
		{ REDUCE, 1, 0, 0, OUT, OUT, 100, 100 },
		{ CT | END, 0, 0, 0, SCRATCH, OUT, 0, 100 },
	};
	struct muster_schedule *schedule;
	struct muster_program *program;
	struct muster_builder builder;

	(void)state;
	muster_builder_init(&builder, "cross", MUSTER_COLL_ALLREDUCE, 3, 2, 0);
	muster_builder_add(&builder, 0, 0, 1, true);
	muster_builder_add(&builder, 0, 1, 0, true);
	muster_builder_add(&builder, 1, 2, 0, true);
	muster_builder_add(&builder, 1, 2, 1, true);
	schedule = built(&builder);
	program = lower(schedule, 0, 200, true);
	assert_program(program, expected, 4);
	assert_int_equal(program->scratch_bytes, 800);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

/* Two ranks exchange 65 chunks, 32 in a step. */
static struct muster_schedule *exchange_of_65(void)
{
	struct muster_builder builder;

	muster_builder_init(&builder, "cross", MUSTER_COLL_ALLREDUCE, 2, 65, 0);
	for (uint32_t i = 0; i < 65; i++) {
		muster_builder_add(&builder, i, 0, 1, true);
		muster_builder_add(&builder, i, 1, 0, true);
		if (i % 32 == 31)
			muster_builder_step(&builder);
	}
	return built(&builder);
}

static void copies_that_have_no_room_take_stages_of_their_own_on_all_ranks(void **state)
{
	struct muster_schedule *schedule = exchange_of_65();

	(void)state;
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct muster_program *program = lower(schedule, rank, 6500, !rank);
		uint32_t first = program->stage_first[3];

		assert_int_equal(program->nr_stages, 5);
		assert_int_equal(program->stage_first[4] - first, rank ? 1 : 64);
		assert_int_equal(program->nr_descs - program->stage_first[4], 1);
		assert_int_equal(program->descs[first].store_key, rank ? 0 : OUT);
		assert_int_equal(program->descs[first].range.load_key, rank ? 0 : SCRATCH);
		assert_int_equal(program->descs[first].cp_count, 0);
		muster_program_free(program);
	}
	muster_schedule_free(schedule);
}

static void all_ranks_have_the_same_stages(void **state)
{
	struct muster_schedule *schedule = generate("ring", MUSTER_COLL_ALLREDUCE, 20);

	(void)state;
	for (uint32_t rank = 0; rank < 20; rank++) {
		struct muster_program *program = lower(schedule, rank, 1000, rank % 2);

		assert_int_equal(program->nr_stages, 2);
		assert_int_equal(program->stage_first[1], 33);
		assert_int_equal(program->stage_first[2], program->nr_descs);
		assert_int_equal(program->descs[32].flags & ~(CP | REMOTE | REDUCE), C | CT);
		assert_int_equal(program->descs[33].flags & CH, CH);
		assert_int_equal(program->descs[33].stage, 1);
		muster_program_free(program);
	}
	muster_schedule_free(schedule);
}

static void a_rank_without_work_has_an_empty_sequence_for_each_stage(void **state)
{
	static const struct expected idle[] = {
		{ CH | CT, 0, 0, 0, 0, 0, 0, 0 },
		{ CH | CT, 0, 0, 0, 0, 0, 0, 0 },
		{ CH | CT | END, 1, 0, 0, 0, 0, 0, 0 },
	};
	struct muster_schedule *schedule;
	struct muster_program *program;
	struct muster_builder builder;

	(void)state;
	muster_builder_init(&builder, "ping", MUSTER_COLL_BARRIER, 3, 1, 0);
	for (uint32_t i = 0; i < 70; i++, muster_builder_step(&builder))
		muster_builder_add(&builder, 0, 0, i < 69 ? 1 : 2, false);
	schedule = built(&builder);
	program = lower(schedule, 2, 0, false);
	assert_true(program->is_inline);
	assert_int_equal(program->nr_stages, 3);
	assert_program(program, idle, 3);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

/* A gather of many: who has sent its own has nothing more to do, for eight stages at once. */
static void idle_stages_have_one_descriptor(void **state)
{
	enum { RANKS = 1024, SENDS = 25 * 32 + 5 };
	struct muster_schedule *schedule = generate("linear", MUSTER_COLL_GATHER, RANKS);
	struct muster_lower_params params = {
		.rank = SENDS, .count = RANKS * 1024, .type = MUSTER_DTYPE_F64, .addresses = members,
		.idles = true,
	};
	struct muster_program *program;
	uint32_t numbers = 0;
	char why[200];

	(void)state;
	assert_int_equal(muster_schedule_lower(schedule, &params, &program, why, sizeof(why)), 0);
	assert_true(program->nr_stages >= RANKS / 32);
	assert_true(program->nr_descs <= program->nr_stages / MUSTER_STAGES_TELL + 3);
	for (uint32_t i = 0; i < program->nr_descs; i++) {
		const struct muster_desc *desc = &program->descs[i];

		numbers += desc->range.numbers ? desc->range.numbers : 1;
		assert_int_equal(desc->flags & END, i == program->nr_descs - 1 ? END : 0);
	}
	assert_int_equal(numbers, program->nr_stages);
	for (uint32_t stage = MUSTER_STAGES_TELL; stage < program->nr_stages; stage += MUSTER_STAGES_TELL)
		assert_true(program->stage_first[stage] < program->stage_first[stage + 1]);
	muster_program_free(program);
	muster_schedule_free(schedule);
}

static void the_signature_is_the_operations(void **state)
{
	struct muster_schedule *schedule = generate("ring", MUSTER_COLL_ALLREDUCE, 3);
	struct muster_program *program = lower(schedule, 1, 100, false);
	struct muster_signature signature =
		muster_signature(MUSTER_COLL_ALLREDUCE, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 0, 100,
				 muster_schedule_hash(schedule));

	(void)state;
	for (uint32_t i = 0; i < program->nr_descs; i++)
		assert_true(muster_signatures_agree(&program->descs[i].signature, &signature));
	muster_program_free(program);
	muster_schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursive_doubling_of_one_element_is_three_descriptors),
		cmocka_unit_test(an_inner_node_takes_three_children_in_one_descriptor),
		cmocka_unit_test(halving_and_doubling_send_from_where_they_wrote),
		cmocka_unit_test(a_chunk_that_is_sent_twice_is_sent_from_a_descriptor_of_its_own),
		cmocka_unit_test(what_is_generated_sends_ranges_of_chunks),
		cmocka_unit_test(an_own_block_is_sent_from_where_it_is),
		cmocka_unit_test(as_few_messages_as_pulses_allow),
		cmocka_unit_test(a_part_of_65536_ranks_is_lowered_by_itself),
		cmocka_unit_test(a_rank_in_the_middle_forwards),
		cmocka_unit_test(a_broadcast_copies),
		cmocka_unit_test(one_rank_copies_or_does_nothing),
		cmocka_unit_test(a_barrier_has_no_data),
		cmocka_unit_test(a_large_message_is_the_same_few_descriptors_for_each_pulse),
		cmocka_unit_test(between_two_ranks_pulses_are_as_long_as_can_be),
		cmocka_unit_test(sixteen_packets_go_into_one_descriptor),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(what_comes_is_not_stored_over_what_is_sent),
		cmocka_unit_test(several_messages_may_come_into_what_is_sent),
		cmocka_unit_test(slots_are_in_the_order_of_step_and_listing),
		cmocka_unit_test(copies_that_have_no_room_take_stages_of_their_own_on_all_ranks),
		cmocka_unit_test(all_ranks_have_the_same_stages),
		cmocka_unit_test(a_rank_without_work_has_an_empty_sequence_for_each_stage),
		cmocka_unit_test(idle_stages_have_one_descriptor),
		cmocka_unit_test(the_signature_is_the_operations),
	};

	for (uint32_t r = 0; r < RANKS_MAX; r++)
		members[r] = (struct muster_address){ .node = 1000 + r, .vp = 5 + r % 1024 };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
