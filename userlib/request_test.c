// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of N ranks over real engines: what they compute on both paths, and
 * in which order they finish.
 */
#include "testing.h"

#include "arith.h"
#include "test_vectors.h"

static const char *const schedules[] = { NULL, "binomial", "recursive-doubling", "rabenseifner",
					 "ring", "pairwise" };

/* An operation of all ranks, with buffers of its own. */
struct scene {
	enum muster_coll coll;
	enum muster_type type;
	enum muster_op op;
	uint32_t root;
	uint64_t count;
	bool in_place;
	bool device_memory;
};

static void fill_bits(uint8_t *at, size_t size, uint32_t state)
{
	uint64_t bits = (uint64_t)state << 30 ^ state >> 24 ^ state << 8;
	uint64_t two[2] = { bits, ~bits * 3 };

	memcpy(at, two, size);
}

static void fill(void *buf, const struct scene *scene, uint32_t rank)
{
	uint32_t state = rank * 7919 + 17;

	for (uint64_t i = 0; i < scene->count; i++) {
		state = state * 1664525 + 1013904223;
		double value = ((double)(int32_t)state) / 65537.0;

		if (scene->type == MUSTER_F32)
			((float *)buf)[i] = (float)value;
		else if (scene->type == MUSTER_F64)
			((double *)buf)[i] = value;
		else
			fill_bits((uint8_t *)buf + i * muster_dtype_size(scene->type),
				  muster_dtype_size(scene->type), state);
	}
}

static int start(struct muster_comm *comm, const struct scene *scene, void *in, void *out,
		 struct muster_request **request)
{
	switch (scene->coll) {
	case MUSTER_COLL_BARRIER:
		return muster_barrier_start(comm, request);
	case MUSTER_COLL_BROADCAST:
		return muster_broadcast_start(comm, out, scene->count, scene->type, scene->root,
					      request);
	case MUSTER_COLL_REDUCE:
		return muster_reduce_start(comm, in, out, scene->count, scene->type, scene->op,
					   scene->root, request);
	default:
		return muster_allreduce_start(comm, in, out, scene->count, scene->type, scene->op,
					      request);
	}
}

struct buffers {
	uint8_t *in;
	uint8_t *out;
};

static void buffers_new(struct test_world *world, uint32_t rank, const struct scene *scene,
			struct buffers *b)
{
	size_t bytes = scene->count * muster_dtype_size(scene->type) + 1;

	if (scene->device_memory) {
		assert_int_equal(muster_alloc(world->jobs[rank], bytes, (void **)&b->in), 0);
		assert_int_equal(muster_alloc(world->jobs[rank], bytes, (void **)&b->out), 0);
	} else {
		b->in = vector_new(bytes);
		b->out = vector_new(bytes);
	}
	memset(b->out, 0xee, bytes);
	fill(b->in, scene, rank);
	if (scene->coll == MUSTER_COLL_BROADCAST && rank == scene->root)
		fill(b->out, scene, rank);
	if (scene->in_place)
		memcpy(b->out, b->in, bytes - 1);
}

static void buffers_free(struct test_world *world, uint32_t rank, const struct scene *scene,
			 struct buffers *b)
{
	if (!scene->device_memory)
		return;
	muster_free(world->jobs[rank], b->in);
	muster_free(world->jobs[rank], b->out);
}

/* Run it; results[rank * bytes] gets each rank's out. Checks that in stays as it was. */
static void play(struct test_world *world, const struct scene *scene, enum muster_path path,
		 uint8_t *results)
{
	size_t bytes = scene->count * muster_dtype_size(scene->type);
	struct muster_request *requests[TEST_RANKS_MAX];
	uint8_t *expected = vector_new(bytes + 1);
	struct buffers buffers[TEST_RANKS_MAX];
	int errs[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		struct buffers *b = &buffers[i];

		buffers_new(world, i, scene, b);
		assert_int_equal(start(world->comms[i], scene, scene->in_place ? b->out : b->in,
				       b->out, &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < world->size; i++) {
		struct muster_op_info info;

		if (errs[i])
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
		muster_comm_last(world->comms[i], &info);
		assert_int_equal(info.path, path);
		fill(expected, scene, i);
		assert_memory_equal(expected, buffers[i].in, bytes);
		memcpy(results + i * bytes, buffers[i].out, bytes);
		buffers_free(world, i, scene, &buffers[i]);
	}
}

/* What every rank must have, up to the order of combining: exact for integers. */
static void reference(struct test_world *world, const struct scene *scene, uint8_t *expected)
{
	size_t bytes = scene->count * muster_dtype_size(scene->type);
	uint8_t *other = vector_new(bytes + 1);

	fill(expected, scene, scene->coll == MUSTER_COLL_BROADCAST ? scene->root : 0);
	for (uint32_t i = 1; i < world->size && scene->coll != MUSTER_COLL_BROADCAST; i++) {
		fill(other, scene, i);
		assert_int_equal(muster_arith(scene->type, scene->op, expected, expected, other,
					      bytes), 0);
	}
}

static bool has_result(const struct scene *scene, uint32_t rank)
{
	return scene->coll != MUSTER_COLL_REDUCE || rank == scene->root;
}

static bool is_exact(const struct scene *scene)
{
	return muster_arith_supported(scene->type, MUSTER_BAND) ||
	       (scene->op != MUSTER_SUM && scene->op != MUSTER_PROD) ||
	       scene->coll == MUSTER_COLL_BROADCAST;
}

static void check(struct test_world *world, const struct scene *scene, const uint8_t *nic,
		  const uint8_t *host)
{
	size_t bytes = scene->count * muster_dtype_size(scene->type);
	uint8_t *expected = vector_new(bytes + 1);
	const uint8_t *first = NULL;

	reference(world, scene, expected);
	for (uint32_t i = 0; i < world->size; i++) {
		const uint8_t *mine = nic + i * bytes;

		assert_memory_equal(mine, host + i * bytes, bytes);
		if (!has_result(scene, i))
			continue;
		if (!first)
			first = mine;
		assert_memory_equal(first, mine, bytes);
		if (is_exact(scene))
			assert_memory_equal(expected, mine, bytes);
	}
}

/* The same on both paths. */
static void compare(struct test_world *world, const struct scene *scene)
{
	size_t bytes = world->size * scene->count * muster_dtype_size(scene->type) + 1;
	bool alone = world->size == 1;
	uint8_t *nic = vector_new(bytes), *host = vector_new(bytes);

	offload_all(world, MUSTER_OFFLOAD_FORCE);
	play(world, scene, alone ? MUSTER_PATH_NONE : MUSTER_PATH_NIC, nic);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	play(world, scene, alone ? MUSTER_PATH_NONE : MUSTER_PATH_HOST, host);
	if (scene->coll != MUSTER_COLL_BARRIER)
		check(world, scene, nic, host);
	vectors_free();
}

static void compare_colls(struct test_world *world, struct scene scene)
{
	for (int coll = MUSTER_COLL_BROADCAST; coll <= MUSTER_COLL_ALLREDUCE; coll++) {
		scene.coll = coll;
		scene.root = coll == MUSTER_COLL_ALLREDUCE ? 0 : world->size - 1;
		compare(world, &scene);
		scene.in_place = coll == MUSTER_COLL_ALLREDUCE;
		if (scene.in_place)
			compare(world, &scene);
		scene.in_place = false;
	}
}

static void schedule_all(struct test_world *world, const char *name)
{
	for (uint32_t i = 0; i < world->size; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], name), 0);
}

static void test_both_paths_give_the_same_bits_for_1_to_17_ranks(void **state)
{
	static const uint64_t counts[] = { 1, 7, 100, 3001 };

	(void)state;
	for (uint32_t n = 1; n <= 17; n++) {
		struct test_world *world = test_joined(n, TEST_RING_MAX);
		struct scene scene = { .type = MUSTER_F64, .op = MUSTER_SUM };

		for (size_t s = 0; s < sizeof(schedules) / sizeof(schedules[0]); s++) {
			schedule_all(world, schedules[s]);
			for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
				scene.count = counts[c];
				compare_colls(world, scene);
			}
		}
		scene = (struct scene){ .coll = MUSTER_COLL_BARRIER };
		compare(world, &scene);
		test_world_free(world);
	}
}

static void test_both_paths_give_the_same_bits_for_all_types_and_operations(void **state)
{
	struct test_world *world = test_joined(5, TEST_RING_MAX);

	(void)state;
	for (int type = MUSTER_F32; type <= (int)MUSTER_DTYPE_LAST; type++) {
		for (int op = MUSTER_SUM; op <= (int)MUSTER_REDOP_LAST; op++) {
			struct scene scene = { .type = type, .op = op };

			if (!muster_arith_supported(type, op) || op == MUSTER_REPLACE)
				continue;
			for (scene.count = 3; scene.count < 1000; scene.count *= 31)
				compare_colls(world, scene);
		}
	}
	test_world_free(world);
}

static void test_vectors_of_many_pulses_come_out_right(void **state)
{
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct scene scene = { .type = MUSTER_I32, .op = MUSTER_SUM, .count = 300001 };

	(void)state;
	for (size_t s = 0; s < sizeof(schedules) / sizeof(schedules[0]); s++) {
		schedule_all(world, schedules[s]);
		compare_colls(world, scene);
	}
	scene.device_memory = true;
	compare_colls(world, scene);
	test_world_free(world);
}

static void test_packets_that_overtake_each_other_change_nothing(void **state)
{
	struct test_world *world = test_joined(6, TEST_RING_MAX);
	struct scene scene = { .type = MUSTER_F64, .op = MUSTER_SUM, .count = 20000 };

	(void)state;
	for (world->seed = 1; world->seed < 4; world->seed++) {
		uint32_t seed = world->seed;

		compare_colls(world, scene);
		world->seed = seed;
	}
	test_world_free(world);
}

static void test_credits_keep_the_smallest_receive_ring_from_overflowing(void **state)
{
	struct test_world *world = test_joined(9, 8 * (MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS));
	struct scene scene = { .type = MUSTER_F64, .op = MUSTER_SUM, .count = 9000 };

	(void)state;
	for (size_t s = 0; s < sizeof(schedules) / sizeof(schedules[0]); s++) {
		schedule_all(world, schedules[s]);
		compare_colls(world, scene);
	}
	assert_true(world->sent_p2p > 1000);
	assert_int_equal(world->drops, 0);
	test_world_free(world);
}

/* ---- order ---------------------------------------------------------------------------- */

enum { MANY = 100 };

/* Start MANY on every rank before any is waited for; later sums build on nothing but order. */
static void start_many(struct test_world *world)
{
	static struct muster_request *requests[MANY][TEST_RANKS_MAX];
	static int64_t values[MANY][TEST_RANKS_MAX][9];
	int results[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		for (int k = 0; k < MANY; k++) {
			uint64_t count = k % 3 ? 1 : 9;	/* inline, and from memory */

			for (uint64_t c = 0; c < count; c++)
				values[k][i][c] = (int64_t)(k * i + c);
			assert_int_equal(muster_allreduce_start(world->comms[i], values[k][i],
								values[k][i], count, MUSTER_I64,
								MUSTER_SUM, &requests[k][i]), 0);
		}
	}
	for (int k = MANY - 1; k >= 0; k--) {	/* whoever asks last is served all the same */
		test_finish(world, requests[k], results);
		for (uint32_t i = 0; i < world->size; i++) {
			assert_int_equal(results[i], 0);
			assert_int_equal(values[k][i][0], k * world->size * (world->size - 1) / 2);
		}
	}
}

static void test_a_hundred_started_operations_finish_in_order_on_both_paths(void **state)
{
	struct test_world *world = test_joined(4, TEST_RING_MAX);

	(void)state;
	offload_all(world, MUSTER_OFFLOAD_FORCE);
	start_many(world);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	start_many(world);
	test_world_free(world);
}

static void *pair_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;

	world->results[thread->rank] = muster_comm_dup(muster_world(world->jobs[thread->rank]),
						       &world->comms[thread->rank]);
	return NULL;
}

/* MANY on one communicator, then one on another: the peer wants that one first. */
static void test_a_communicator_that_waits_holds_up_no_other(void **state)
{
	static double values[MANY + 1][2][1000];
	static struct muster_request *requests[MANY + 1][TEST_RANKS_MAX];
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	int results[TEST_RANKS_MAX], k;

	(void)state;
	test_all(world, pair_run, NULL);
	world->one_queue = true;
	for (k = 0; k <= MANY; k++) {
		struct muster_comm *comm = k < MANY ? muster_world(world->jobs[0]) :
						      world->comms[0];

		values[k][0][7] = k;
		assert_int_equal(muster_allreduce_start(comm, values[k][0], values[k][0], 1000,
							MUSTER_F64, MUSTER_SUM,
							&requests[k][0]), 0);
	}
	for (k = MANY; k >= 0; k--) {
		struct muster_comm *comm = k < MANY ? muster_world(world->jobs[1]) :
						      world->comms[1];
		int turn = k < MANY ? MANY - 1 - k : MANY;

		values[turn][1][7] = 1;
		assert_int_equal(muster_allreduce_start(comm, values[turn][1], values[turn][1],
							1000, MUSTER_F64, MUSTER_SUM,
							&requests[turn][1]), 0);
		test_finish(world, requests[turn], results);
		assert_int_equal(results[0] | results[1], 0);
		assert_true(values[turn][0][7] == turn + 1);
	}
	test_world_free(world);
}

static void test_an_operation_waits_for_those_before_it_on_the_other_path(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[6][TEST_RANKS_MAX];
	int32_t values[6][TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		for (int k = 0; k < 6; k++) {
			values[k][i] = k;
			muster_comm_offload(world->comms[i],
					    k % 2 ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
			assert_int_equal(muster_allreduce_start(world->comms[i], &values[k][i],
								&values[k][i], 1, MUSTER_I32,
								MUSTER_SUM, &requests[k][i]), 0);
		}
	}
	for (int k = 5; k >= 0; k--) {
		test_finish(world, requests[k], results);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(results[i], 0);
			assert_int_equal(values[k][i], 3 * k);
		}
	}
	test_world_free(world);
}

static void test_reduces_share_a_scratch_that_grows(void **state)
{
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_request *requests[8][TEST_RANKS_MAX];
	static int32_t in[4][8][4096], out[8][4096];
	int results[TEST_RANKS_MAX];

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		for (int k = 0; k < 8; k++) {
			for (int c = 0; c < 4096; c++)
				in[i][k][c] = (int32_t)(i + 1) * k + c;
			assert_int_equal(muster_reduce_start(world->comms[i], in[i][k],
							     i ? NULL : out[k], 512ull * (k + 1),
							     MUSTER_I32, MUSTER_SUM, 0,
							     &requests[k][i]), 0);
		}
	}
	for (int k = 0; k < 8; k++) {
		test_finish(world, requests[k], results);
		for (int c = 0; c < 512 * (k + 1); c++)
			assert_int_equal(out[k][c], 10 * k + 4 * c);
	}
	test_world_free(world);
}

static void test_the_cache_forgets_the_oldest_and_stays_right(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct scene scene = { .coll = MUSTER_COLL_ALLREDUCE, .type = MUSTER_I32,
			       .op = MUSTER_SUM };
	int entries = 0;

	(void)state;
	for (int turn = 0; turn < 2; turn++)
		for (scene.count = 1; scene.count < 3 * MUSTER_CACHE_MAX; scene.count += 2)
			compare(world, &scene);
	for (int i = 0; i < MUSTER_CACHE_MAX; i++)
		entries += world->comms[0]->warm->cache[i] != NULL;
	assert_int_equal(entries, MUSTER_CACHE_MAX);
	test_world_free(world);
}

static void test_wait_returns_when_the_others_have_posted(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3];
	double values[3] = { 1, 2, 4 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], &values[i], &values[i], 1,
							MUSTER_F64, MUSTER_SUM, &requests[i]), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(muster_wait(requests[i]), 0);
		assert_true(values[i] == 7);
	}
	test_world_free(world);
}

static void test_a_request_that_was_freed_is_refused(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	bool done = false;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_barrier_start(world->comms[i], &requests[i]), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_wait(requests[i]), 0);
	assert_int_equal(muster_wait(requests[0]), -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[0]), "finished and freed before"));
	assert_int_equal(muster_test(requests[1], &done), -EINVAL);
	assert_true(done);
	assert_int_equal(muster_barrier_start(world->comms[0], &requests[0]), 0);
	assert_int_equal(muster_barrier_start(world->comms[1], &requests[1]), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_wait(requests[i]), 0);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_paths_give_the_same_bits_for_1_to_17_ranks),
		cmocka_unit_test(test_both_paths_give_the_same_bits_for_all_types_and_operations),
		cmocka_unit_test(test_vectors_of_many_pulses_come_out_right),
		cmocka_unit_test(test_packets_that_overtake_each_other_change_nothing),
		cmocka_unit_test(test_credits_keep_the_smallest_receive_ring_from_overflowing),
		cmocka_unit_test(test_a_hundred_started_operations_finish_in_order_on_both_paths),
		cmocka_unit_test(test_a_communicator_that_waits_holds_up_no_other),
		cmocka_unit_test(test_an_operation_waits_for_those_before_it_on_the_other_path),
		cmocka_unit_test(test_reduces_share_a_scratch_that_grows),
		cmocka_unit_test(test_the_cache_forgets_the_oldest_and_stays_right),
		cmocka_unit_test(test_wait_returns_when_the_others_have_posted),
		cmocka_unit_test(test_a_request_that_was_freed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
