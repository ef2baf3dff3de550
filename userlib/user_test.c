// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of the caller's own: products of matrices, which do not commute, come out in the
 * order of ranks for each reduction, on both paths, started, persistent and in place.
 */
#include "testing.h"

enum { RANKS = 5, CELLS = 4, ROOM = 4096 };	/* elements: a matrix of 2 x 2 is four */

enum what { ALLREDUCE, REDUCE, BLOCK, BLOCKS, SCAN, EXSCAN, WHATS };

static void multiply(const void *in, void *inout, uint64_t count, void *opaque)
{
	const uint32_t *a = in;
	uint32_t *b = inout;

	++*(uint32_t *)opaque;
	for (uint64_t i = 0; i < count; i += CELLS, a += CELLS, b += CELLS) {
		uint32_t product[CELLS] = {
			a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
			a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3],
		};

		memcpy(b, product, sizeof(product));
	}
}

static void given(uint32_t *data, uint32_t rank, uint64_t count, uint32_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		data[i] = (uint32_t)(i * 2654435761u + rank * 40503u + seed * 97u) | 1;
}

static uint64_t block(uint64_t count, uint32_t rank)
{
	return count + rank * CELLS;
}

static uint64_t first_of(uint64_t count, uint32_t rank)
{
	uint64_t first = 0;

	while (rank--)
		first += block(count, rank);
	return first;
}

/* What a rank must have: a plain loop. Return: elements of it. */
static uint64_t plain(enum what what, uint32_t rank, uint64_t count, uint32_t seed, uint32_t *result)
{
	uint32_t nr = what == SCAN ? rank + 1 : what == EXSCAN ? rank : RANKS, calls = 0;
	uint64_t all = what == BLOCK ? RANKS * count : what == BLOCKS ? first_of(count, RANKS) : count;
	uint64_t first = what == BLOCK ? rank * count : what == BLOCKS ? first_of(count, rank) : 0;
	uint64_t mine = what == BLOCKS ? block(count, rank) : count;
	static uint32_t total[ROOM], next[ROOM];

	if (!nr || (what == REDUCE && rank != 1))
		return 0;
	given(total, 0, all, seed);
	for (uint32_t i = 1; i < nr; i++) {
		given(next, i, all, seed);
		multiply(total, next, all, &calls);
		memcpy(total, next, all * sizeof(*total));
	}
	memcpy(result, total + first, mine * sizeof(*result));
	return mine;
}

static int make(struct muster_comm *comm, enum what what, uint64_t count, uint32_t *in, uint32_t *out,
		enum muster_op op, bool persistent, struct muster_request **request)
{
	uint64_t counts[RANKS];

	for (uint32_t i = 0; i < RANKS; i++)
		counts[i] = block(count, i);
#define CALL(name, n, ...) (persistent ? muster_##name##_init : muster_##name##_start) \
	(comm, in, out, n, MUSTER_U32, op, ##__VA_ARGS__, request)
	switch (what) {
	case ALLREDUCE:
		return CALL(allreduce, count);
	case REDUCE:
		return CALL(reduce, count, 1);
	case BLOCK:
		return CALL(reduce_scatter_block, count);
	case BLOCKS:
		return CALL(reduce_scatter, counts);
	case SCAN:
		return CALL(scan, count);
	default:
		return CALL(exscan, count);
	}
#undef CALL
}

static void try(struct test_world *world, const enum muster_op *ops, enum what what, uint64_t count,
		bool in_place, bool persistent)
{
	static uint32_t in[RANKS][ROOM], out[RANKS][ROOM], expected[ROOM];
	struct muster_request *all[RANKS], *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < RANKS; i++) {
		given(in[i], i, ROOM, 0);
		memset(out[i], 0xee, sizeof(out[i]));
		assert_int_equal(make(world->comms[i], what, count, in[i], in_place ? in[i] : out[i], ops[i],
				      persistent, &all[i]), 0);
	}
	for (uint32_t seed = 0; seed < (persistent ? 3 : 1); seed++) {
		for (uint32_t i = 0; i < RANKS; i++) {
			requests[i] = all[i];
			if (!persistent)
				continue;
			given(in[i], i, ROOM, seed);
			memset(out[i], 0xee, sizeof(out[i]));
			assert_int_equal(muster_start(all[i]), 0);
		}
		test_finish(world, requests, results);
		for (uint32_t i = 0; i < RANKS; i++) {
			uint64_t mine = plain(what, i, count, seed, expected);
			uint32_t *got = in_place ? in[i] : out[i];

			assert_int_equal(results[i], 0);
			assert_memory_equal(got, expected, mine * sizeof(*got));
			assert_true(in_place || got[mine] == 0xeeeeeeee);
		}
	}
	for (uint32_t i = 0; i < RANKS && persistent; i++)
		assert_int_equal(muster_request_free(all[i]), 0);
}

/* The operation, made by each rank; calls: how often all together ran it. */
static void products(struct test_world *world, enum muster_op *ops, uint32_t *calls)
{
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_op_create(world->jobs[i], multiply, calls, &ops[i]), 0);
}

static void test_contributions_are_folded_in_the_order_of_ranks(void **state)
{
	static const uint64_t counts[] = { 0, CELLS, 40, 200 };
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	enum muster_op ops[RANKS];
	uint32_t calls = 0;

	(void)state;
	products(world, ops, &calls);
	for (enum muster_offload offload = MUSTER_OFFLOAD_OFF; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		offload_all(world, offload);
		for (enum what what = 0; what < WHATS; what++)
			for (int c = 0; c < 4; c++)
				for (int form = 0; form < 3; form++)
					try(world, ops, what, counts[c], form == 1, form == 2);
	}
	assert_true(calls > 0);
	test_world_free(world);
}

static void test_an_operation_that_was_freed_is_refused_and_its_place_used_again(void **state)
{
	struct test_world *world = test_joined(1, TEST_RING_MAX);
	enum muster_op first, second, third;
	struct muster_request *request;
	uint32_t in[CELLS] = { 1, 2, 3, 4 }, out[CELLS] = { 0 }, calls = 0;

	(void)state;
	assert_int_equal(muster_op_create(world->jobs[0], multiply, &calls, &first), 0);
	assert_int_equal(muster_op_create(world->jobs[0], multiply, &calls, &second), 0);
	assert_true(first >= MUSTER_OP_USER && first != second);
	assert_int_equal(muster_op_free(world->jobs[0], first), 0);
	assert_int_equal(muster_op_free(world->jobs[0], first), -EINVAL);
	assert_int_equal(muster_op_free(world->jobs[0], MUSTER_SUM), -EINVAL);
	assert_int_equal(muster_op_create(world->jobs[0], NULL, NULL, &third), -EINVAL);
	assert_int_equal(muster_allreduce(world->comms[0], in, out, CELLS, MUSTER_U32, first), -EINVAL);
	assert_int_equal(muster_reduce_start(world->comms[0], in, NULL, CELLS, MUSTER_U32, second, 0, &request),
			 -EFAULT);
	assert_int_equal(muster_reduce_start(world->comms[0], in, out, CELLS, MUSTER_U32, second, 1, &request),
			 -EINVAL);
	assert_int_equal(muster_allreduce(world->comms[0], in, out, CELLS, MUSTER_U32, second), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(muster_op_create(world->jobs[0], multiply, &calls, &third), 0);
	assert_int_equal(third, first);
	test_world_free(world);
}

/* Whoever makes progress: until its owner looks at one it only ends. */
static void end_all(struct test_world *world, struct muster_request **requests)
{
	uint32_t ended;

	do {
		ended = 0;
		for (uint32_t i = 0; i < RANKS; i++) {
			muster_progress(world->jobs[i]);
			ended += requests[i]->state == MUSTER_REQUEST_DONE;
		}
	} while (ended < RANKS);
}

static void test_it_runs_in_the_wait_or_test_of_its_owner_alone(void **state)
{
	static uint32_t in[RANKS][ROOM], out[RANKS][ROOM], expected[ROOM];
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct muster_request *requests[RANKS];
	enum muster_op ops[RANKS];
	uint32_t calls[RANKS] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_op_create(world->jobs[i], multiply, &calls[i], &ops[i]), 0);
	for (int persistent = 0; persistent < 2; persistent++) {
		for (uint32_t i = 0; i < RANKS; i++) {
			given(in[i], i, ROOM, 0);
			assert_int_equal(make(world->comms[i], ALLREDUCE, 40, in[i], out[i], ops[i],
					      persistent, &requests[i]), 0);
			assert_int_equal(persistent ? muster_start(requests[i]) : 0, 0);
		}
		end_all(world, requests);
		for (uint32_t i = 0; i < RANKS; i++) {
			bool done = false;

			assert_int_equal(calls[i], 0);
			assert_int_equal(i % 2 ? muster_wait(requests[i]) : muster_test(requests[i], &done),
					 0);
			assert_int_equal(calls[i], RANKS - 1);
			calls[i] = 0;
			plain(ALLREDUCE, i, 40, 0, expected);
			assert_memory_equal(out[i], expected, 40 * sizeof(**out));
			assert_int_equal(persistent ? muster_request_free(requests[i]) : 0, 0);
			assert_int_equal(calls[i], 0);
		}
	}
	test_world_free(world);
}

static void test_what_nobody_waits_for_is_never_folded(void **state)
{
	static uint32_t in[RANKS][ROOM], out[RANKS][ROOM];
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct muster_request *requests[2][RANKS];
	enum muster_op ops[RANKS];
	uint32_t calls = 0;

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(muster_op_create(world->jobs[i], multiply, &calls, &ops[i]), 0);
		for (int persistent = 0; persistent < 2; persistent++)
			assert_int_equal(make(world->comms[i], persistent ? BLOCK : SCAN, 40, in[i], out[i],
					      ops[i], persistent, &requests[persistent][i]), 0);
		assert_int_equal(muster_start(requests[1][i]), 0);
	}
	end_all(world, requests[0]);
	end_all(world, requests[1]);
	test_world_free(world);
	assert_int_equal(calls, 0);
}

/* Of these vectors some ranks' own counts and the longest are those of the other one, and all sums are. */
static const uint64_t vectors[2][RANKS] = { { 4, 8, 12, 0, 4 }, { 4, 12, 8, 0, 4 } };

static void blocks_start(struct test_world *world, const enum muster_op *ops, const uint64_t *const *counts,
			 uint32_t (*in)[ROOM], uint32_t (*out)[ROOM], int *results)
{
	struct muster_request *requests[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < RANKS; i++) {
		given(in[i], i, ROOM, 0);
		assert_int_equal(muster_reduce_scatter_start(world->comms[i], in[i], out[i], counts[i], MUSTER_U32, ops[i],
							     &requests[i]), 0);
	}
	test_finish(world, requests, results);
}

static void test_blocks_go_by_the_counts_of_this_call(void **state)
{
	static uint32_t in[RANKS][ROOM], out[RANKS][ROOM], expected[ROOM];
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	int results[TEST_RANKS_MAX];
	enum muster_op ops[RANKS];
	uint32_t calls = 0;

	(void)state;
	products(world, ops, &calls);
	plain(ALLREDUCE, 0, ROOM / RANKS, 0, expected);
	for (int call = 0; call < 8; call++) {
		const uint64_t *counts = vectors[call % 2], *all[RANKS] = { counts, counts, counts, counts, counts };
		const uint32_t *at = expected;

		offload_all(world, call < 4 ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
		blocks_start(world, ops, all, in, out, results);
		for (uint32_t i = 0; i < RANKS; at += counts[i++]) {
			assert_int_equal(results[i], 0);
			assert_memory_equal(out[i], at, counts[i] * sizeof(**out));
		}
	}
	test_world_free(world);
}

static void test_whose_counts_differ_is_named_though_their_sum_does_not(void **state)
{
	for (enum muster_offload offload = MUSTER_OFFLOAD_OFF; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		static uint32_t in[RANKS][ROOM], out[RANKS][ROOM];
		struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
		const uint64_t *counts[RANKS] = { vectors[0], vectors[0], vectors[1], vectors[0], vectors[0] };
		int results[TEST_RANKS_MAX];
		enum muster_op ops[RANKS];
		uint32_t calls = 0;

		(void)state;
		products(world, ops, &calls);
		offload_all(world, offload);
		blocks_start(world, ops, counts, in, out, results);
		for (uint32_t i = 0; i < RANKS; i++) {
			assert_int_equal(results[i], -EPROTO);
			assert_true(i == 2 || strstr(muster_error(world->jobs[i]), "rank 2"));
		}
		test_world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contributions_are_folded_in_the_order_of_ranks),
		cmocka_unit_test(test_it_runs_in_the_wait_or_test_of_its_owner_alone),
		cmocka_unit_test(test_what_nobody_waits_for_is_never_folded),
		cmocka_unit_test(test_blocks_go_by_the_counts_of_this_call),
		cmocka_unit_test(test_whose_counts_differ_is_named_though_their_sum_does_not),
		cmocka_unit_test(test_an_operation_that_was_freed_is_refused_and_its_place_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
