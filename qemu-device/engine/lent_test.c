// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is longer than a packet and copied for its receiver, in a sequence of one pulse: the send is
 * closed at once, and the copy is the context's until it was read, sent in packets, or is
 * needed by nobody. Then its place is given back, but where somebody may be reading still.
 */
#include "test_world.h"

enum { BYTES = 3 * MUSTER_MTU + 100, SEEDS = 40, RESULT = 512 << 10 };

static struct muster_desc send_to(uint32_t node, uint32_t slot, uint64_t from)
{
	struct muster_desc desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					    0, BYTES, 4 * MUSTER_MTU);

	desc_load(&desc, from);
	desc_to(&desc, node, slot);
	return desc;
}

static struct muster_desc take(uint64_t to)
{
	struct muster_desc desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, BYTES,
					    4 * MUSTER_MTU);

	desc_store(&desc, to);
	return desc;
}

static uint8_t *at(struct world *w, uint32_t node, uint64_t addr)
{
	return (uint8_t *)world_double(w, node, addr);
}

static void fill(struct world *w, uint32_t node, uint64_t addr, uint8_t value)
{
	memset(at(w, node, addr), value, BYTES);
}

static void expect(struct world *w, uint32_t node, uint64_t addr, uint8_t value)
{
	for (uint32_t i = 0; i < BYTES; i++)
		assert_int_equal(at(w, node, addr)[i], value);
}

static struct world *some(uint32_t nr, uint64_t seed)
{
	static const uint32_t rooms[] = { MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, 0 };
	struct world *w = world_create(nr, seed);

	w->refuse_percent = seed % 4 * 15;
	w->map = seed & 1;
	w->share = w->copy = w->keep = true;
	w->peers_hidden = seed & 2;
	w->model.buffer = rooms[seed % 3];
	world_start(w);
	return w;
}

static void close_context(struct world *w, uint32_t r)
{
	muster_engine_context_close(w->nodes[r].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
}

static void expect_nothing_left(struct world *w)
{
	for (uint32_t r = 0; r < w->nr; r++) {
		assert_int_equal(world_counters(w, r).buffer_entries_used, 0);
		assert_int_equal(world_counters(w, r).contexts_closing, 0);
		assert_int_equal(w->nodes[r].copied, 0);
	}
}

/* A few numbers, which end before their receiver begins; read there, or sent in packets after all. */
static void its_sender_goes_on(void **state)
{
	enum { NUMBERS = 3 };

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(2, seed);

		for (uint32_t i = 0; i < NUMBERS; i++) {
			struct muster_desc send = send_to(1, 0, 0);

			fill(w, 0, 0, 1 + i);
			world_post(w, 0, &send, 1);
			world_run(w);
			assert_int_equal(w->nodes[0].nr_cqes, 1 + i);
			assert_int_equal(w->nodes[0].copied, (1u << (1 + i)) - 1);
		}
		fill(w, 0, 0, 0xee);
		for (uint32_t i = 0; i < NUMBERS; i++) {
			struct muster_desc desc = take(RESULT + i * BYTES);

			world_post(w, 1, &desc, 1);
		}
		world_run(w);
		assert_int_equal(w->nodes[1].nr_cqes, NUMBERS);
		for (uint32_t i = 0; i < NUMBERS; i++)
			expect(w, 1, RESULT + i * BYTES, 1 + i);
		assert_int_equal(world_counters(w, 1).bytes_referenced, w->peers_hidden ? 0 : NUMBERS * BYTES);
		assert_int_equal(w->nr_sent[MUSTER_PACKET_DATA], w->peers_hidden ? NUMBERS * 4 : 0);
		assert_int_equal(w->nodes[0].copied, 0);
		close_context(w, 0);
		close_context(w, 1);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* More than there are places: the others wait until they were read. */
static void who_finds_no_place_waits(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(WORLD_COPIES + 2, seed);
		struct muster_desc descs[WORLD_COPIES + 1];
		uint32_t i;

		fill(w, 0, 0, 7);
		for (i = 0; i <= WORLD_COPIES; i++) {
			descs[i] = desc_rdma(i ? 0 : MUSTER_DESC_CH, 0, BYTES, 4 * MUSTER_MTU);
			desc_load(&descs[i], i * 8);	/* nothing that an earlier one has */
			desc_to(&descs[i], 1 + i, 0);
		}
		memset(at(w, 0, BYTES), 7, 8 * WORLD_COPIES);
		descs[WORLD_COPIES].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
		world_post(w, 0, descs, WORLD_COPIES + 1);
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 0);
		assert_int_equal(w->nodes[0].copied, (1u << WORLD_COPIES) - 1);
		for (uint32_t r = 1; r < w->nr; r++) {
			struct muster_desc desc = take(RESULT);

			world_post(w, r, &desc, 1);
		}
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 1);
		for (uint32_t r = 1; r < w->nr; r++)
			expect(w, r, RESULT, 7);
		assert_int_equal(w->nodes[0].copied, 0);
		world_destroy(w);
	}
}

/* Nobody overwrites it between them, so both read one; the third has what was stored then. */
static void members_read_one_copy(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(4, seed);
		struct muster_desc descs[4], part[2] = { send_to(0, 0, 0), take(RESULT) };
		uint32_t i;

		w->refuse_percent = 0;
		for (i = 0; i < 4; i++) {
			descs[i] = desc_rdma(0, i == 2, BYTES, 4 * MUSTER_MTU);
			desc_load(&descs[i], 0);
			if (i != 2)
				desc_to(&descs[i], 1 + i - i / 3, 0);
		}
		descs[2] = desc_rdma(0, 1, BYTES, 4 * MUSTER_MTU);
		desc_store(&descs[2], 0);
		descs[0].flags |= MUSTER_DESC_CH;
		descs[3].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
		fill(w, 0, 0, 5);
		fill(w, 3, 0, 9);
		world_post(w, 0, descs, 4);
		part[0].flags &= ~(MUSTER_DESC_CT | MUSTER_DESC_COLL_END);
		part[1].flags &= ~MUSTER_DESC_CH;
		world_post(w, 3, part, 2);
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 1);
		assert_int_equal(w->nodes[0].copies_made, 2);
		for (uint32_t r = 1; r < 3; r++) {
			struct muster_desc desc = take(RESULT);

			world_post(w, r, &desc, 1);
		}
		world_run(w);
		expect(w, 1, RESULT, 5);
		expect(w, 2, RESULT, 5);
		expect(w, 3, RESULT, 9);
		assert_int_equal(w->nodes[0].copied, 0);
		world_destroy(w);
	}
}

/* Of two that are sent again one copy was read meanwhile, and its place has what lies elsewhere. */
static void what_was_read_is_copied_again(void **state)
{
	enum { ELSEWHERE = 100 << 10 };

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = some(2, seed);
		struct muster_desc descs[4], others[4];
		uint32_t i;

		for (i = 0; i < 4; i++) {
			descs[i] = desc_rdma(0, i == 1, BYTES, 4 * MUSTER_MTU);
			others[i] = desc_rdma(0, i != 1, BYTES, 4 * MUSTER_MTU);
			if (i == 1) {
				desc_store(&descs[i], 2 * ELSEWHERE);
				desc_load(&others[i], 0);
				desc_to(&others[i], 0, 0);
				continue;
			}
			desc_load(&descs[i], i == 2 ? ELSEWHERE : 0);
			desc_to(&descs[i], 1, i - (i > 1));
			desc_store(&others[i], RESULT + i * BYTES);
		}
		descs[0].flags |= MUSTER_DESC_CH;
		others[0].flags |= MUSTER_DESC_CH;
		descs[3].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
		others[3].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
		fill(w, 0, 0, 1);
		fill(w, 0, ELSEWHERE, 2);
		world_post(w, 0, descs, 4);
		world_post(w, 1, others, 4);
		world_run(w);
		expect(w, 1, RESULT, 1);
		expect(w, 1, RESULT + 2 * BYTES, 2);
		expect(w, 1, RESULT + 3 * BYTES, 1);
		assert_int_equal(w->nodes[0].copied, 0);
		world_destroy(w);
	}
}

static struct world *sent(uint32_t nr, uint64_t seed)
{
	struct world *w = some(nr, seed);

	fill(w, 0, 0, 3);
	for (uint32_t r = 1; r < nr; r++) {
		struct muster_desc send = send_to(r, 0, 0);

		world_post(w, 0, &send, 1);
	}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, nr - 1);
	return w;
}

static void it_outlives_its_context(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = sent(2, seed);
		struct muster_desc desc = take(RESULT);

		close_context(w, 0);
		assert_int_equal(world_context_open_life(w, 0, WORLD_CONTEXT, 99), 0);
		fill(w, 0, 0, 0xee);
		world_run(w);
		assert_int_equal(world_counters(w, 0).contexts_closing, 1);
		world_post(w, 1, &desc, 1);
		world_run(w);
		expect(w, 1, RESULT, 3);
		assert_int_equal(w->nodes[0].copied, 0);
		close_context(w, 0);
		close_context(w, 1);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* Its owner hears of it, and tells, before it closes. */
static void a_context_that_fails_has_it_until_it_closes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = sent(2, seed);

		muster_engine_abort(w->nodes[seed % 2].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
				    MUSTER_STATUS_ABORTED, seed % 2);
		world_run(w);
		assert_int_equal(w->nodes[0].copied, 1);
		close_context(w, 0);
		close_context(w, 1);
		world_run(w);
		expect_nothing_left(w);
		world_destroy(w);
	}
}

/* Node 1 fails; whether node 2, which reads the other copy, has heard of that nobody can tell. */
static void what_may_be_read_still_is_not_given_back(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = sent(3, seed);

		close_context(w, 0);
		world_run(w);
		assert_int_equal(world_counters(w, 0).contexts_closing, 1);
		muster_engine_abort(w->nodes[1].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, MUSTER_STATUS_ABORTED, 1);
		world_run(w);
		assert_int_equal(world_counters(w, 0).contexts_closing, 0);
		assert_int_equal(world_counters(w, 0).buffer_entries_used, 0);
		assert_int_equal(w->nodes[0].copied, 3);
		world_destroy(w);
	}
}

static void who_is_lost_or_leaves_reads_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = sent(2, seed);

		if (seed % 8 < 4) {
			close_context(w, 0);
			world_run(w);
			w->nodes[1].dead = true;
			muster_engine_peer_lost(w->nodes[0].engine, 1);
		} else {
			close_context(w, 1);
			world_run(w);
			close_context(w, 0);
		}
		world_run(w);
		assert_int_equal(world_counters(w, 0).contexts_closing, 0);
		assert_int_equal(world_counters(w, 0).buffer_entries_used, 0);
		assert_int_equal(w->nodes[0].copied, 0);
		world_destroy(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_sender_goes_on),
		cmocka_unit_test(who_finds_no_place_waits),
		cmocka_unit_test(members_read_one_copy),
		cmocka_unit_test(what_was_read_is_copied_again),
		cmocka_unit_test(it_outlives_its_context),
		cmocka_unit_test(a_context_that_fails_has_it_until_it_closes),
		cmocka_unit_test(what_may_be_read_still_is_not_given_back),
		cmocka_unit_test(who_is_lost_or_leaves_reads_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
