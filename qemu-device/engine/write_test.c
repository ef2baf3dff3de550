// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided writes: what is written lies whole where it was meant for, once; what is refused
 * changes nothing and is told; and an address that a packet brings is where a program's write goes.
 */
#define WORLD_NODES 3
#include "test_world.h"

enum { FROM = 0, TO = 400000, LONG = 200000, FILL = 0x5a, ELSEWHERE = 0xc3 };

static struct muster_desc write_desc(uint32_t to, uint32_t length)
{
	return (struct muster_desc){
		.kind = MUSTER_DESC_RDMA, .flags = MUSTER_DESC_COLL_END, .src_vp = WORLD_VP,
		.dst_vp = WORLD_VP, .job = WORLD_JOB, .context = WORLD_CONTEXT, .dest = to,
		.cookie = 77, .length = length,
		.range = {
			.load_key = WORLD_KEY, .load_addr = FROM,
			.remote_key = WORLD_KEY, .remote_addr = TO,
		},
	};
}

static struct world *begin(uint64_t seed)
{
	struct world *w = world_create(3, seed);

	w->map = seed & 1;
	w->refuse_percent = seed & 2 ? 50 : 0;
	world_start(w);
	memset(w->nodes[0].memory, FILL, WORLD_MEMORY);
	memset(w->nodes[1].memory, ELSEWHERE, WORLD_MEMORY);
	return w;
}

/* Whether so much of what was written is there, and nothing else has changed. */
static void check_written(const struct world *w, uint64_t addr, uint32_t length)
{
	for (uint64_t i = 0; i < WORLD_MEMORY; i++)
		if (w->nodes[1].memory[i] != (i - addr < length ? FILL : ELSEWHERE))
			fail_msg("byte %d of %u at %d", (int)i, length, (int)addr);
}

static void check_send(struct world *w, uint32_t status, uint32_t culprit)
{
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_SEND);
	assert_int_equal(w->nodes[0].cqes[0].status, status);
	assert_int_equal(w->nodes[0].cqes[0].cookie, 77);
	assert_int_equal(w->nodes[0].cqes[0].culprit, culprit);
}

static void what_is_written_lies_where_it_was_meant_for(void **state)
{
	static const uint32_t lengths[] = { 0, 1, MUSTER_MTU, MUSTER_MTU + 1, 5000, LONG };

	(void)state;
	for (uint32_t i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct world *w = begin(i);
		struct muster_desc desc = write_desc(1, lengths[i / 4]);

		world_post(w, 0, &desc, 1);
		world_run(w);
		check_send(w, MUSTER_STATUS_OK, MUSTER_CULPRIT_NONE);
		check_written(w, TO, lengths[i / 4]);
		assert_int_equal(w->nodes[1].nr_cqes + w->nodes[1].nr_delivered, 0);
		world_destroy(w);
	}
}

/* More than may be open, to two members, and between them a sequence. */
static void many_writes_and_a_sequence_go_on_beside_each_other(void **state)
{
	struct world *w = begin(3);
	struct muster_desc desc, one = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, &(double){ 4.5 });
	struct muster_desc sum = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL);

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		desc = write_desc(1 + i % 2, 30000);
		desc.range.remote_addr = TO + i / 2 * 30000;
		world_post(w, 0, &desc, 1);
	}
	desc_to(&one, 1, 0);
	desc_store(&sum, 0);
	world_post(w, 0, &one, 1);
	world_post(w, 1, &sum, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 12);
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(w->nodes[0].cqes[i].status, MUSTER_STATUS_OK);
	assert_int_equal(w->nodes[1].nr_cqes, 1);
	assert_true(*world_double(w, 1, 0) == 4.5);
	for (uint32_t i = 0; i < 6 * 30000; i++)
		assert_int_equal(w->nodes[1].memory[TO + i], FILL);
	world_destroy(w);
}

/* Of those that were not answered there are so many; the next waits for one of them. */
static void one_write_too_many_is_taken_later(void **state)
{
	struct world *w = begin(0);
	struct muster_desc desc = write_desc(1, 8);

	(void)state;
	for (uint32_t i = 0; i < MUSTER_SEQ_QUEUE_MAX; i++)
		world_post(w, 0, &desc, 1);
	while (muster_engine_step(w->nodes[0].engine, 100))
		;
	assert_int_equal(w->nr_flight, MUSTER_SEQ_QUEUE_MAX);
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, &desc, 1, NULL), -EAGAIN);
	world_run(w);
	world_post(w, 0, &desc, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, MUSTER_SEQ_QUEUE_MAX + 1);
	world_destroy(w);
}

/* One way after the other in which a range is not for it. Half of them ask for no completion. */
static void what_is_refused_changes_nothing_and_is_told(void **state)
{
	(void)state;
	for (uint32_t way = 0; way < 10; way++) {
		struct world *w = begin(way / 5);
		struct muster_desc desc = write_desc(1, 3 * MUSTER_MTU), again = write_desc(1, 8);

		desc.flags = way / 5 ? 0 : MUSTER_DESC_COLL_END;
		desc.range.remote_key += way % 5 == 0;
		if (way % 5 == 1)	/* its first packets alone would be inside */
			desc.range.remote_addr = WORLD_MEMORY - 3 * MUSTER_MTU + 1;
		if (way % 5 == 2)
			desc.range.remote_addr = 1ull << 60;
		w->closed = way % 5 == 3;
		w->nodes[1].key_life = way % 5 != 4;
		world_post(w, 0, &desc, 1);
		world_run(w);
		check_send(w, MUSTER_STATUS_MEMORY, 1);
		check_written(w, 0, 0);
		assert_int_equal(world_counters(w, 1).writes, 0);
		assert_true(world_counters(w, 1).writes_refused);
		w->closed = false;
		w->nodes[1].key_life = 1;
		w->nodes[0].nr_cqes = 0;
		world_post(w, 0, &again, 1);
		world_run(w);
		check_send(w, MUSTER_STATUS_OK, MUSTER_CULPRIT_NONE);
		check_written(w, TO, 8);
		world_destroy(w);
	}
}

static void a_packet_that_comes_again_is_written_once(void **state)
{
	struct world *w = begin(0);
	struct muster_desc desc = write_desc(1, 100);
	struct world_packet copy;

	(void)state;
	world_post(w, 0, &desc, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	assert_int_equal(w->nr_flight, 1);
	copy = *w->flight[0];
	world_run(w);
	check_written(w, TO, 100);
	memset(w->nodes[1].memory, ELSEWHERE, WORLD_MEMORY);	/* its owner uses it for something else */
	for (uint32_t i = 0; i < 40; i++) {
		muster_engine_receive(w->nodes[1].engine, &copy.packet, copy.payload, 100);
		if (!i)
			world_run(w);
		world_post(w, 0, &desc, 1);
		world_run(w);
		check_written(w, TO, 100);
		memset(w->nodes[1].memory, ELSEWHERE, WORLD_MEMORY);
	}
	assert_int_equal(world_counters(w, 1).drop_duplicate, 40);
	assert_int_equal(world_counters(w, 1).writes, 41);
	copy.packet.number = 41 + MUSTER_WRITES_OPEN;		/* not sent before 41 was answered */
	copy.packet.seq_id = copy.packet.number % MUSTER_WRITES_OPEN;
	muster_engine_receive(w->nodes[1].engine, &copy.packet, copy.payload, 100);
	assert_int_equal(world_counters(w, 1).drop_window, 1);
	check_written(w, 0, 0);
	world_destroy(w);
}

static void an_answer_to_nothing_is_dropped(void **state)
{
	struct world *w = begin(0);
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_WRITTEN, .job = WORLD_JOB,
		.src_node = 1, .src_vp = WORLD_VP, .dst_vp = WORLD_VP, .src_member = 1,
		.context = WORLD_CONTEXT, .life = WORLD_LIFE, .incarnation = 101,
		.job_key = WORLD_JOB_KEY, .arg = 1, .pulse = 1,
	};
	struct muster_desc desc = write_desc(1, 8);

	(void)state;
	muster_engine_receive(w->nodes[0].engine, &packet, NULL, 0);
	assert_int_equal(world_counters(w, 0).drop_duplicate, 1);
	world_post(w, 0, &desc, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	packet.arg = packet.pulse = ~1u;
	muster_engine_receive(w->nodes[0].engine, &packet, NULL, 0);
	assert_int_equal(world_counters(w, 0).drop_duplicate, 2);
	world_run(w);
	check_send(w, MUSTER_STATUS_OK, MUSTER_CULPRIT_NONE);
	world_destroy(w);
}

/* Who closes answers before it says so, whichever comes first. */
static void who_closes_has_answered(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world *w = begin(seed);
		struct muster_desc desc = write_desc(1, 8);

		world_post(w, 0, &desc, 1);
		while (!w->nr_flight)
			muster_engine_step(w->nodes[0].engine, 10);
		world_deliver_one(w, 0);
		muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
		world_run(w);
		check_send(w, MUSTER_STATUS_OK, MUSTER_CULPRIT_NONE);
		check_written(w, TO, 8);
		world_destroy(w);
	}
}

static void a_write_to_who_has_left_is_flushed(void **state)
{
	struct world *w = begin(0);
	struct muster_desc desc = write_desc(1, LONG);

	(void)state;
	muster_engine_context_close(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_post(w, 0, &desc, 1);
	world_run(w);
	check_send(w, MUSTER_STATUS_FLUSHED, 1);
	check_written(w, 0, 0);
	world_destroy(w);
}

/* By its own count more of it is to come; then its node says that all has. */
static void a_write_to_whose_node_has_left_is_flushed(void **state)
{
	struct world *w = begin(0);
	struct muster_packet farewell = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_CREDIT,
		.flags = MUSTER_PACKET_COLL_END, .job = WORLD_JOB, .src_node = 1, .src_vp = WORLD_VP,
		.dst_vp = WORLD_VP, .src_member = 1, .context = WORLD_CONTEXT, .life = WORLD_LIFE,
		.incarnation = 101, .job_key = WORLD_JOB_KEY, .number = 5,
	};
	struct muster_desc desc = write_desc(1, 8);

	(void)state;
	world_post(w, 0, &desc, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	free(w->flight[--w->nr_flight]);
	muster_engine_receive(w->nodes[0].engine, &farewell, NULL, 0);
	assert_false(muster_engine_step(w->nodes[0].engine, 10));
	assert_int_equal(w->nodes[0].nr_cqes, 0);
	muster_engine_peer_left(w->nodes[0].engine, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	check_send(w, MUSTER_STATUS_FLUSHED, 1);
	world_destroy(w);
}

static void a_context_that_fails_flushes_its_writes(void **state)
{
	struct world *w = begin(0);
	struct muster_desc desc = write_desc(1, LONG);

	(void)state;
	w->nodes[1].full = true;
	world_post(w, 0, &desc, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	w->nodes[1].full = false;
	w->nodes[2].dead = true;
	muster_engine_peer_lost(w->nodes[0].engine, 2);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_SEND);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_FLUSHED);
	world_destroy(w);
}

/* The context fails by another one before there is room to tell it. */
static void of_what_was_refused_the_receiver_is_the_culprit_whatever_follows(void **state)
{
	struct world *w = begin(0);
	struct muster_desc desc = write_desc(1, 8);

	(void)state;
	desc.range.remote_key++;
	w->cq_max = 0;
	world_post(w, 0, &desc, 1);
	world_run(w);
	assert_int_equal(world_counters(w, 1).writes_refused, 1);
	assert_int_equal(muster_engine_abort(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
					     MUSTER_STATUS_ABORTED, 2), 0);
	w->cq_max = WORLD_CQES_MAX;
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_MEMORY);
	assert_int_equal(w->nodes[0].cqes[0].culprit, 1);
	assert_int_equal(w->nodes[0].cqes[1].culprit, 2);
	world_destroy(w);
}

/* A member's guesses; and those who are none, with the right one. */
static void forged_keys_write_nothing(void **state)
{
	const char *settable = getenv("MUSTER_TRIES");
	const uint32_t tries = settable ? (uint32_t)strtoul(settable, NULL, 0) : 50000;
	struct world *w = begin(0);
	struct muster_packet packet;
	struct muster_desc desc = write_desc(1, 8);
	struct world_packet *honest;

	(void)state;
	world_post(w, 0, &desc, 1);
	muster_engine_step(w->nodes[0].engine, 10);
	honest = w->flight[0];
	packet = honest->packet;
	for (uint32_t i = 0; i < tries; i++) {
		struct muster_packet forged = packet;

		forged.seq_id = forged.number % MUSTER_WRITES_OPEN;
		if (i % 4) {
			packet.number++;
			forged.arg = i % 4 == 1 ? i : i % 4 == 2 ? packet.arg ^ 1u << i / 4 % 32 :
				     world_random(w, UINT32_MAX);
			forged.arg += forged.arg == WORLD_KEY;
		} else {
			forged.job_key ^= 1 + world_random(w, UINT32_MAX);
		}
		muster_engine_receive(w->nodes[1].engine, &forged, honest->payload, 8);
		muster_engine_step(w->nodes[1].engine, 10);
		while (w->nr_flight > 1)
			free(w->flight[--w->nr_flight]);
	}
	assert_int_equal(world_counters(w, 1).writes, 0);
	assert_int_equal(world_counters(w, 1).writes_refused + world_counters(w, 1).drop_stranger, tries);
	check_written(w, 0, 0);
	world_destroy(w);
}

/* ---- by programs --------------------------------------------------------------------- */

/* Rank 0 says where; rank 1 writes there, or to its own address if it is told none, then says so. */
static void post_program(struct world *w, const struct muster_reference *where, uint32_t length)
{
	struct muster_desc say = desc_base(MUSTER_DESC_CH | MUSTER_DESC_CT), heard, put, told;

	say.kind = MUSTER_DESC_MP;
	if (where) {
		say.flags |= MUSTER_DESC_SWAP_REMOTE_ADDR;
		say.length = say.inline_len = sizeof(*where);
		memcpy(say.data, where, sizeof(*where));
	}
	desc_to(&say, 1, 0);
	heard = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL);
	desc_store(&heard, TO - 8);
	put = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_CP | MUSTER_DESC_SWAP_LOCAL_VP, 1,
			length, MUSTER_PULSE_MAX);
	desc_load(&put, FROM);
	put.range.remote_key = WORLD_KEY;
	put.range.remote_addr = TO + 100000;
	told = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, &(double){ 1 });
	desc_to(&told, 0, 0);
	world_post(w, 0, &say, 1);
	world_post(w, 0, &heard, 1);
	world_post(w, 1, &put, 1);
	world_post(w, 1, &told, 1);
}

static void an_address_that_a_packet_brings_is_written_to(void **state)
{
	static const uint32_t lengths[] = { 8, 5000, MUSTER_PULSE_MAX, 0 };

	(void)state;
	for (uint32_t seed = 0; seed < 32; seed++) {
		struct world *w = begin(seed);
		uint32_t length = lengths[seed / 8], turn;
		struct muster_reference where = { .addr = TO, .length = length, .key = WORLD_KEY };
		uint64_t at = seed & 4 ? TO : TO + 100000;

		memset(w->nodes[1].memory, FILL, WORLD_MEMORY);
		memset(w->nodes[0].memory, ELSEWHERE, WORLD_MEMORY);
		post_program(w, seed & 4 ? &where : NULL, length);
		for (turn = 0; turn < 100000 && !w->nodes[0].nr_cqes; turn++) {
			muster_engine_step(w->nodes[turn % 2].engine, 5);
			if (w->nr_flight)
				world_deliver_one(w, world_random(w, w->nr_flight));
		}
		/* The completion says that it is there. */
		assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
		for (uint32_t i = 0; i < length; i++)
			assert_int_equal(w->nodes[0].memory[at + i], FILL);
		assert_int_equal(w->nodes[0].memory[at + length], ELSEWHERE);
		world_run(w);
		assert_int_equal(w->nodes[1].cqes[0].status, MUSTER_STATUS_OK);
		world_destroy(w);
	}
}

static void a_program_whose_write_is_refused_fails_by_whom_it_was_told(void **state)
{
	(void)state;
	for (uint32_t way = 0; way < 5; way++) {
		struct world *w = begin(way);
		struct muster_reference where = { .addr = TO, .length = 5000, .key = WORLD_KEY };

		where.key += way == 0;
		where.addr = way == 1 ? WORLD_MEMORY - 4999 : TO;
		where.length -= way == 2;
		where.reserved = way == 3;
		where.key = way == 4 ? 0 : where.key;
		post_program(w, &where, 5000);
		world_run(w);
		assert_int_equal(w->nodes[1].nr_cqes, 2);
		assert_int_equal(w->nodes[1].cqes[0].status, way < 2 ? MUSTER_STATUS_MEMORY :
								       MUSTER_STATUS_PROTOCOL);
		assert_int_equal(w->nodes[1].cqes[0].culprit, 0);
		assert_int_equal(w->nodes[0].cqes[0].status, w->nodes[1].cqes[0].status);
		world_destroy(w);
	}
}

/* Who is written to has nothing to do there and goes: the writer is not left waiting. */
static void a_program_that_writes_to_who_has_left_fails(void **state)
{
	struct world *w = begin(0);
	struct muster_desc idle = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 0, 64), put;

	(void)state;
	put = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, 5000, 5000);
	desc_load(&put, FROM);
	desc_to(&put, 0, 0);
	put.range.remote_key = WORLD_KEY;
	world_post(w, 0, &idle, 1);
	world_run(w);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_post(w, 1, &put, 1);
	world_run(w);
	assert_int_equal(w->nodes[1].cqes[0].status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(w->nodes[1].cqes[0].culprit, 0);
	world_destroy(w);
}

/* ---- refused at once ------------------------------------------------------------------- */

static void expect_refused(struct world *w, const struct muster_desc *desc)
{
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, desc, 1, NULL), -EINVAL);
}

static void writes_that_make_no_sense_are_refused(void **state)
{
	struct world *w = begin(0);
	struct muster_desc put = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 64, 64);
	struct muster_desc say = desc_base(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_SWAP_REMOTE_ADDR);

	(void)state;
	for (uint32_t way = 0; way < 8; way++) {
		struct muster_desc desc = write_desc(1, way == 0 ? MUSTER_WRITE_MAX + 1u : 100);

		desc.range.remote_addr = way == 1 ? UINT64_MAX - 10 : TO;
		desc.range.load_key = way != 2;
		desc.stage = way == 3;
		desc.dest |= way == 4 ? MUSTER_FIELD_PREP(MUSTER_DEST_SEQ, 1) : 0;
		desc.range.pulse_len = way == 5;
		desc.kind = way == 6 ? MUSTER_DESC_MP : MUSTER_DESC_RDMA;
		desc.store_key = way == 7;
		expect_refused(w, &desc);
	}
	desc_load(&put, FROM);
	desc_to(&put, 1, 0);
	put.range.remote_key = WORLD_KEY;
	for (uint32_t way = 0; way < 8; way++) {
		struct muster_desc desc = put;

		desc.flags ^= way == 0 ? MUSTER_DESC_CP : way == 1 ? MUSTER_DESC_REDUCE :
			      way == 2 ? MUSTER_DESC_FORWARD : way == 3 ? MUSTER_DESC_SWAP_REMOTE_ADDR : 0;
		desc.cp_count = way == 4 ? 2 : 0;
		desc.range.pulse_count += way == 5;
		desc.range.load_key = way != 6;
		desc.store_key = way == 7 ? WORLD_KEY : 0;
		desc.store_addr = way == 7 ? TO : 0;
		expect_refused(w, &desc);
	}
	say.kind = MUSTER_DESC_MP;
	say.length = say.inline_len = sizeof(struct muster_reference);
	expect_refused(w, &say);		/* to nobody */
	desc_to(&say, 1, 0);
	say.length = say.inline_len = 8;
	expect_refused(w, &say);
	say.length = say.inline_len = sizeof(struct muster_reference);
	say.flags |= MUSTER_DESC_SWAP_REMOTE_DATA;
	expect_refused(w, &say);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_lies_where_it_was_meant_for),
		cmocka_unit_test(many_writes_and_a_sequence_go_on_beside_each_other),
		cmocka_unit_test(one_write_too_many_is_taken_later),
		cmocka_unit_test(what_is_refused_changes_nothing_and_is_told),
		cmocka_unit_test(a_packet_that_comes_again_is_written_once),
		cmocka_unit_test(an_answer_to_nothing_is_dropped),
		cmocka_unit_test(who_closes_has_answered),
		cmocka_unit_test(a_write_to_who_has_left_is_flushed),
		cmocka_unit_test(a_write_to_whose_node_has_left_is_flushed),
		cmocka_unit_test(a_context_that_fails_flushes_its_writes),
		cmocka_unit_test(of_what_was_refused_the_receiver_is_the_culprit_whatever_follows),
		cmocka_unit_test(forged_keys_write_nothing),
		cmocka_unit_test(an_address_that_a_packet_brings_is_written_to),
		cmocka_unit_test(a_program_whose_write_is_refused_fails_by_whom_it_was_told),
		cmocka_unit_test(a_program_that_writes_to_who_has_left_fails),
		cmocka_unit_test(writes_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
