// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations that are called again are kept by the device, if their message is no more than a packet: from
 * the third call on a START is all that is posted. What does not fit, or runs already, is posted as always.
 */
#include "testing.h"

enum { COUNT_MAX = MUSTER_MTU / sizeof(int32_t) + 1, LONG = 300 };

static struct test_world *world;

static int setup(void **state)
{
	(void)state;
	world = test_joined(2, TEST_RING_MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	test_world_free(world);
	return 0;
}

/* A sum of `count` numbers, `depth` of them at once. */
static void sum(uint64_t count, uint32_t depth, int32_t value)
{
	static int32_t in[2][8][COUNT_MAX], out[2][8][COUNT_MAX];
	struct muster_request *requests[8][2];
	int results[2];

	for (uint32_t d = 0; d < depth; d++)
		for (uint32_t r = 0; r < 2; r++) {
			for (uint64_t i = 0; i < count; i++)
				in[r][d][i] = (value + (int32_t)d) * (r ? 100 : 1) + (int32_t)i;
			assert_int_equal(muster_allreduce_start(world->comms[r], in[r][d], out[r][d],
								count, MUSTER_I32, MUSTER_SUM,
								&requests[d][r]), 0);
		}
	for (uint32_t d = 0; d < depth; d++) {
		test_finish(world, requests[d], results);
		for (uint32_t r = 0; r < 2; r++) {
			assert_int_equal(results[r], 0);
			for (uint64_t i = 0; i < count; i++)
				assert_int_equal(out[r][d][i],
						 (value + (int32_t)d) * 101 + 2 * (int32_t)i);
		}
	}
}

static void test_the_third_call_is_a_start(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 20; i++)
		sum(2, 1, i);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(world->nodes[r].keeps, 1);
		assert_int_equal(world->nodes[r].starts, 18);
	}
}

static void test_so_it_is_of_one_that_fills_a_packet(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 20; i++)
		sum(COUNT_MAX - 1, 1, i);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(world->nodes[r].keeps, 1);
		assert_int_equal(world->nodes[r].starts, 18);
	}
	for (int32_t i = 0; i < 5; i++)
		sum(COUNT_MAX, 1, i);
	assert_int_equal(world->nodes[0].keeps, 1);
	assert_int_equal(world->nodes[0].starts, 18);
}

static void sum_in_place(int32_t value)
{
	static int32_t data[2][LONG];
	struct muster_request *requests[2];
	int results[2];

	for (uint32_t r = 0; r < 2; r++) {
		for (int32_t i = 0; i < LONG; i++)
			data[r][i] = value * (r ? 100 : 1) + i;
		assert_int_equal(muster_allreduce_start(world->comms[r], data[r], data[r], LONG, MUSTER_I32,
							MUSTER_SUM, &requests[r]), 0);
	}
	test_finish(world, requests, results);
	for (uint32_t r = 0; r < 2; r++)
		for (int32_t i = 0; i < LONG; i++)
			assert_int_equal(data[r][i], value * 101 + 2 * i);
}

static void test_in_place_and_apart_are_kept_apart(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 10; i++) {
		sum_in_place(i);
		sum(LONG, 1, i);
	}
	assert_int_equal(world->nodes[0].keeps, 2);
	assert_int_equal(world->nodes[0].starts, 16);
}

/* ---- every collective ------------------------------------------------------------- */

enum { BLOCK = 40, ROOT = 1 };

static int32_t sent[2][2 * BLOCK], got[2][2 * BLOCK];

static int32_t element(uint32_t rank, uint32_t at, int32_t value)
{
	return value * (rank ? 100 : 1) + (int32_t)at;
}

static int32_t total(uint32_t at, int32_t value)
{
	return element(0, at, value) + element(1, at, value);
}

static int start_one(enum muster_coll coll, uint32_t r, bool in_place, struct muster_request **request)
{
	struct muster_comm *comm = world->comms[r];
	int32_t *from = in_place ? got[r] : sent[r];

	switch (coll) {
	case MUSTER_COLL_BROADCAST:
		return muster_broadcast_start(comm, got[r], BLOCK, MUSTER_I32, ROOT, request);
	case MUSTER_COLL_REDUCE:
		return muster_reduce_start(comm, r == ROOT ? from : sent[r], r == ROOT ? got[r] : NULL, BLOCK,
					   MUSTER_I32, MUSTER_SUM, ROOT, request);
	case MUSTER_COLL_ALLGATHER:
		return muster_allgather_start(comm, in_place ? got[r] + r * BLOCK : sent[r], got[r], BLOCK, MUSTER_I32,
					      request);
	case MUSTER_COLL_GATHER:
		return muster_gather_start(comm, in_place && r == ROOT ? got[r] + r * BLOCK : sent[r],
					   r == ROOT ? got[r] : NULL, BLOCK, MUSTER_I32, ROOT, request);
	case MUSTER_COLL_SCATTER:
		return muster_scatter_start(comm, r == ROOT ? sent[r] : NULL, got[r], BLOCK, MUSTER_I32, ROOT, request);
	case MUSTER_COLL_ALLTOALL:
		return muster_alltoall_start(comm, from, got[r], BLOCK, MUSTER_I32, request);
	case MUSTER_COLL_REDUCE_SCATTER:
		return muster_reduce_scatter_block_start(comm, from, got[r], BLOCK, MUSTER_I32, MUSTER_SUM, request);
	case MUSTER_COLL_SCAN:
		return muster_scan_start(comm, from, got[r], BLOCK, MUSTER_I32, MUSTER_SUM, request);
	default:
		return muster_exscan_start(comm, from, got[r], BLOCK, MUSTER_I32, MUSTER_SUM, request);
	}
}

/* What is at a place of got, where nothing is written what was there before. */
static int32_t expected(enum muster_coll coll, uint32_t r, uint32_t at, int32_t value, int32_t before)
{
	const uint32_t block = at / BLOCK, i = at % BLOCK;
	const bool is_first = at < BLOCK;

	switch (coll) {
	case MUSTER_COLL_BROADCAST:
		return is_first ? element(ROOT, at, value) : before;
	case MUSTER_COLL_REDUCE:
		return r == ROOT && is_first ? total(at, value) : before;
	case MUSTER_COLL_ALLGATHER:
		return element(block, i, value);
	case MUSTER_COLL_GATHER:
		return r == ROOT ? element(block, i, value) : before;
	case MUSTER_COLL_SCATTER:
		return is_first ? element(ROOT, r * BLOCK + i, value) : before;
	case MUSTER_COLL_ALLTOALL:
		return element(block, r * BLOCK + i, value);
	case MUSTER_COLL_REDUCE_SCATTER:
		return is_first ? total(r * BLOCK + i, value) : before;
	case MUSTER_COLL_SCAN:
		return !is_first ? before : r ? total(at, value) : element(0, at, value);
	default:
		return r && is_first ? element(0, at, value) : before;
	}
}

/* Where a rank's contribution lies in got, when it is there. */
static uint32_t own_place(enum muster_coll coll, uint32_t r)
{
	return coll == MUSTER_COLL_ALLGATHER || coll == MUSTER_COLL_GATHER ? r * BLOCK : 0;
}

static void run_one(enum muster_coll coll, bool in_place, int32_t value)
{
	static int32_t before[2][2 * BLOCK];
	struct muster_request *requests[2];
	int results[2];

	for (uint32_t r = 0; r < 2; r++) {
		bool has = in_place || (coll == MUSTER_COLL_BROADCAST && r == ROOT);

		memset(got[r], 0xa5, sizeof(got[r]));
		for (uint32_t i = 0; i < 2 * BLOCK; i++)
			sent[r][i] = element(r, i, value);
		for (uint32_t i = own_place(coll, r); has && i < 2 * BLOCK; i++)
			got[r][i] = element(r, i - own_place(coll, r), value);
		memcpy(before[r], got[r], sizeof(got[r]));
		assert_int_equal(start_one(coll, r, in_place, &requests[r]), 0);
	}
	test_finish(world, requests, results);
	assert_int_equal(results[0] | results[1], 0);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < 2 * BLOCK; i++) {
			assert_int_equal(got[r][i], expected(coll, r, i, value, before[r][i]));
			assert_int_equal(sent[r][i], element(r, i, value));
		}
}

static void test_every_collective_is_kept(void **state)
{
	static const struct {
		enum muster_coll coll;
		bool in_place;		/* also */
	} rows[] = {
		{ MUSTER_COLL_BROADCAST, false }, { MUSTER_COLL_REDUCE, true }, { MUSTER_COLL_ALLGATHER, true },
		{ MUSTER_COLL_GATHER, true }, { MUSTER_COLL_SCATTER, false }, { MUSTER_COLL_ALLTOALL, true },
		{ MUSTER_COLL_REDUCE_SCATTER, true }, { MUSTER_COLL_SCAN, true }, { MUSTER_COLL_EXSCAN, true },
	};
	uint32_t kinds = 0;

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int in_place = 0; in_place <= rows[i].in_place; in_place++) {
			uint32_t starts[2] = { world->nodes[0].starts, world->nodes[1].starts };

			for (uint32_t r = 0; r < 2; r++)	/* all entries go, and with them their slots */
				assert_int_equal(muster_comm_schedule(world->comms[r], NULL), 0);
			for (int32_t value = 1; value <= 6; value++)
				run_one(rows[i].coll, in_place, value);
			kinds++;
			for (uint32_t r = 0; r < 2; r++) {
				assert_int_equal(world->nodes[r].keeps, kinds);
				assert_int_equal(world->nodes[r].starts - starts[r], 4);
			}
		}
}

/* Who is not called any more leaves its slot to those who are. */
static void test_slots_follow_what_is_called(void **state)
{
	(void)state;
	for (uint64_t kind = 0; kind < 2 * MUSTER_KEPT_LONG; kind++)
		for (int32_t i = 0; i < MUSTER_CACHE_MAX; i++)
			sum(LONG + kind, 1, i);
	assert_int_equal(world->nodes[0].keeps, 2 * MUSTER_KEPT_LONG);
	assert_true(world->nodes[0].starts > MUSTER_KEPT_LONG * MUSTER_CACHE_MAX);
}

/* ---- places ------------------------------------------------------------------------- */

/* More kinds than there are places for; those that find none are posted. */
static void test_few_longer_ones_are_kept(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 6; i++)
		for (uint64_t kind = 0; kind < MUSTER_KEPT_LONG + 3; kind++)
			sum(LONG + kind, 1 + i % 2 * 3, i);
	assert_int_equal(world->nodes[0].keeps, MUSTER_KEPT_LONG);
}

/* One that its caller keeps runs by the kept program or, beside another that does, by itself. */
static void test_a_persistent_one_has_its_own_result(void **state)
{
	static int32_t in[2][LONG], out[2][LONG];
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_allreduce_init(world->comms[r], in[r], out[r], LONG, MUSTER_I32,
						       MUSTER_SUM, &requests[r]), 0);
	for (int32_t i = 0; i < 12; i++) {
		static int32_t others[2][LONG], sums[2][LONG];
		struct muster_request *beside[2], *started[2] = { requests[0], requests[1] };
		bool alone = i % 2;

		for (uint32_t r = 0; r < 2; r++) {
			in[r][0] = i + (int32_t)r;
			others[r][0] = 1000 + i;
			if (!alone)
				assert_int_equal(muster_allreduce_start(world->comms[r], others[r], sums[r],
									LONG, MUSTER_I32, MUSTER_SUM,
									&beside[r]), 0);
			assert_int_equal(muster_start(requests[r]), 0);
		}
		if (!alone)
			test_finish(world, beside, results);
		test_finish(world, started, results);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(out[r][0], 2 * i + 1);
		sum(LONG, 1, i);
	}
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_request_free(requests[r]), 0);
}

static int refuse(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	(void)dev;
	(void)descs;
	(void)nr;
	return -EAGAIN;
}

/* What would have been a START is posted from its caller's memory, when there is room. */
static void test_a_device_without_room_gets_it_later(void **state)
{
	static int32_t in[2][LONG], out[2][LONG];
	struct muster_dev *dev = world->jobs[0]->dev;
	const struct muster_dev_ops *own = dev->ops;
	struct muster_dev_ops ops = *own;
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	for (int32_t i = 0; i < 5; i++)
		sum(LONG, 1, i);
	ops.start = NULL;
	ops.post = refuse;
	for (uint32_t r = 0; r < 2; r++) {
		in[r][LONG - 1] = 5 + (int32_t)r;
		dev->ops = r ? own : &ops;
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[r], LONG, MUSTER_I32,
							MUSTER_SUM, &requests[r]), 0);
	}
	test_finish(world, requests, results);
	assert_int_equal(results[0] | results[1], 0);
	assert_int_equal(out[0][LONG - 1], 11);
	assert_int_equal(out[1][LONG - 1], 11);
	sum(LONG, 1, 7);
}

static void test_a_barrier_is_kept_too(void **state)
{
	int results[2];

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		struct muster_request *requests[2];

		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_barrier_start(world->comms[r], &requests[r]), 0);
		test_finish(world, requests, results);
		assert_int_equal(results[0] | results[1], 0);
	}
	assert_int_equal(world->nodes[0].starts, 3);
}

static void test_those_that_run_at_once_do_not_share_a_place(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 10; i++)
		sum(3, 8, 1000 * i);
	assert_int_equal(world->nodes[0].keeps, 1);
	assert_true(world->nodes[0].starts >= 9);
}

/* The device replaces what it has kept under a cookie. */
static void test_places_are_used_again_when_entries_go(void **state)
{
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++)
		for (uint64_t kind = 0; kind < 16; kind++)
			for (int32_t i = 0; i < 4; i++)
				sum(1 + kind, 1, i);
	assert_int_equal(world->nodes[0].keeps, 16);
	for (uint32_t r = 0; r < 2; r++)	/* all entries go, and their places are free */
		assert_int_equal(muster_comm_schedule(world->comms[r], NULL), 0);
	for (uint64_t kind = 0; kind < 16; kind++)
		for (int32_t i = 0; i < 4; i++)
			sum(1 + kind, 1, i);
	assert_int_equal(world->nodes[0].keeps, 32);
	assert_int_equal(world->jobs[0]->kept_descs, 32);
}

static void test_a_device_that_keeps_nothing_is_not_asked_to(void **state)
{
	(void)state;
	world->nodes[0].dev.limits.kept_descs = 1;	/* the other rank's keeps them */
	for (int32_t i = 0; i < 6; i++)
		sum(2, 1, i);
	assert_int_equal(world->nodes[0].keeps, 0);
	assert_int_equal(world->nodes[1].keeps, 1);
}

static void last(const char *schedule, enum muster_path path)
{
	struct muster_op_info info;

	for (uint32_t r = 0; r < 2; r++) {
		muster_comm_last(world->comms[r], &info);
		assert_int_equal(info.path, path);
		assert_string_equal(info.schedule, schedule);
	}
}

static void offload_and_sum(enum muster_offload offload)
{
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_comm_offload(world->comms[r], offload), 0);
	for (int32_t i = 0; i < 5; i++)
		sum(2, 1, i);
}

/* A call that is like the last one is started in a shorter way, which must not hide what has changed. */
static void test_what_changes_between_two_calls_is_heeded(void **state)
{
	(void)state;
	for (uint32_t turn = 0; turn < 3; turn++) {
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		last("recursive-doubling", MUSTER_PATH_NIC);
		offload_and_sum(MUSTER_OFFLOAD_OFF);
		last("recursive-doubling", MUSTER_PATH_HOST);
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_comm_schedule(world->comms[r], "binomial"), 0);
		offload_and_sum(MUSTER_OFFLOAD_TRY);
		last("binomial", MUSTER_PATH_NIC);
		for (uint32_t r = 0; r < 2; r++)
			assert_int_equal(muster_comm_schedule(world->comms[r], NULL), 0);
	}
}

/* The rank that waits for the older one last must not run as that one did. */
static void test_a_choice_holds_though_ranks_wait_in_another_order(void **state)
{
	static int32_t in[2][2], out[2][2][2];
	struct muster_request *older[2], *newer[2];
	int results[2];

	(void)state;
	offload_and_sum(MUSTER_OFFLOAD_TRY);
	for (uint32_t r = 0; r < 2; r++)
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[0][r], 2,
							MUSTER_I32, MUSTER_SUM, &older[r]), 0);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(muster_comm_offload(world->comms[r], MUSTER_OFFLOAD_OFF), 0);
		assert_int_equal(muster_allreduce_start(world->comms[r], in[r], out[1][r], 2,
							MUSTER_I32, MUSTER_SUM, &newer[r]), 0);
	}
	test_finish(world, (struct muster_request *[]){ newer[0], older[1] }, results);
	assert_int_equal(results[0] | results[1], 0);
	test_finish(world, (struct muster_request *[]){ older[0], newer[1] }, results);
	assert_int_equal(results[0] | results[1], 0);
	sum(2, 1, 1);
	last("recursive-doubling", MUSTER_PATH_HOST);
}

/* One runs by a START, others that run beside it are posted, and again. */
static void test_one_at_once_and_several_take_turns(void **state)
{
	(void)state;
	for (int32_t i = 0; i < 12; i++)
		sum(2, i % 4 ? 1 : 5, i);
	assert_int_equal(world->nodes[0].keeps, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_third_call_is_a_start),
		TEST(so_it_is_of_one_that_fills_a_packet),
		TEST(in_place_and_apart_are_kept_apart),
		TEST(every_collective_is_kept),
		TEST(slots_follow_what_is_called),
		TEST(few_longer_ones_are_kept),
		TEST(a_persistent_one_has_its_own_result),
		TEST(a_device_without_room_gets_it_later),
		TEST(a_barrier_is_kept_too),
		TEST(those_that_run_at_once_do_not_share_a_place),
		TEST(places_are_used_again_when_entries_go),
		TEST(a_device_that_keeps_nothing_is_not_asked_to),
		TEST(what_changes_between_two_calls_is_heeded),
		TEST(a_choice_holds_though_ranks_wait_in_another_order),
		TEST(one_at_once_and_several_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
