// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The host path where packets are unkind: they come in any order, from members
 * on another path, or they lie.
 */
#include "testing.h"

#include "pair.h"

enum { RANKS = 7, COUNT = 3000 };

/* ---- the order of combining ------------------------------------------------------- */

static void choose(struct test_world *world, const struct muster_schedule *schedule)
{
	char path[] = "/tmp/muster-host-test-XXXXXX";
	int fd = mkstemp(path);
	FILE *to = fdopen(fd, "w");

	assert_int_equal(muster_schedule_write(schedule, to), 0);
	fclose(to);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
}

/* All send to rank 0 in one step, the highest first. */
static void choose_flat_reduce(struct test_world *world)
{
	struct muster_transfer transfers[RANKS - 1];
	const struct muster_schedule flat = { .name = "flat", .coll = MUSTER_COLL_REDUCE,
					      .ranks = RANKS, .chunks = 1, .steps = 1,
					      .nr_transfers = RANKS - 1, .transfers = transfers };

	for (uint32_t i = 0; i < RANKS - 1; i++)
		transfers[i] = (struct muster_transfer){ .from = RANKS - 1 - i, .reduce = true };
	choose(world, &flat);
}

/* Ranks away from the root exchange what they have, then one of them tells the root. */
static void choose_exchanging_reduce(struct test_world *world)
{
	static struct muster_transfer transfers[] = {
		{ 0, 0, 1, 2, true }, { 0, 0, 2, 1, true },
		{ 0, 0, 3, 4, true }, { 0, 0, 4, 3, true },
		{ 1, 0, 1, 3, true }, { 1, 0, 3, 1, true }, { 1, 0, 5, 6, true },
		{ 2, 0, 1, 0, true }, { 2, 0, 6, 0, true },
	};
	const struct muster_schedule schedule = { .name = "exchanging", .coll = MUSTER_COLL_REDUCE,
						  .ranks = RANKS, .chunks = 1, .steps = 3,
						  .nr_transfers = 9, .transfers = transfers };

	choose(world, &schedule);
}

static void reduce(struct test_world *world, enum muster_offload offload, double *out)
{
	static double in[RANKS][COUNT];
	struct muster_request *requests[RANKS];
	int results[RANKS];

	for (uint32_t i = 0; i < RANKS; i++) {
		for (int c = 0; c < COUNT; c++)
			in[i][c] = i % 2 ? -1e16 + c : 1e16 + 0.37 * (c + i);
		muster_comm_offload(world->comms[i], offload);
		assert_int_equal(muster_reduce_start(world->comms[i], in[i], out, COUNT, MUSTER_F64,
						     MUSTER_SUM, 0, &requests[i]), 0);
	}
	test_finish(world, requests, results);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(results[i], 0);
}

static void test_what_comes_in_one_step_is_combined_as_listed(void **state)
{
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	static double expected[COUNT], got[COUNT];

	(void)state;
	choose_flat_reduce(world);
	reduce(world, MUSTER_OFFLOAD_FORCE, expected);
	for (uint32_t seed = 1; seed < 20; seed++) {
		world->seed = seed;
		reduce(world, seed % 4 ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE, got);
		assert_memory_equal(expected, got, sizeof(got));
	}
	test_world_free(world);
}

static void test_ranks_without_a_result_may_exchange(void **state)
{
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	static double expected[COUNT], got[COUNT];

	(void)state;
	choose_exchanging_reduce(world);
	reduce(world, MUSTER_OFFLOAD_OFF, expected);
	for (uint32_t seed = 1; seed < 20; seed++) {
		world->seed = seed;
		reduce(world, MUSTER_OFFLOAD_FORCE, got);
		assert_memory_equal(got, expected, sizeof(got));
	}
	test_world_free(world);
}

/* ---- packets that lie ------------------------------------------------------------------ */

static const struct muster_signature none;

/* A packet from rank 1 for rank 0, as the engine would deliver it. */
static void forge(struct test_world *world, uint8_t stage, uint32_t number, uint32_t place,
		  const struct muster_signature *signature, uint16_t length)
{
	static const uint8_t payload[MUSTER_MTU];
	const struct muster_packet packet = {
		.type = MUSTER_PACKET_P2P,
		.job = world->jobs[0]->id,
		.context = world->comms[0]->context,
		.src_node = 1,
		.src_member = 1,
		.stage = stage,
		.number = number,
		.pulse = place,
		.signature = *signature,
		.length = length,
	};

	assert_int_equal(test_deliver(&world->nodes[0], 0, &packet, payload), 0);
}

static void forge_control(struct test_world *world, uint8_t kind, uint32_t value)
{
	const struct muster_control control = {
		.kind = kind,
		.limit = 1000000,
		.context = world->comms[0]->context,
		.life = world->comms[0]->life,
		.about.value = value,
	};
	const struct muster_packet packet = {
		.type = MUSTER_PACKET_P2P,
		.job = world->jobs[0]->id,
		.context = world->comms[0]->context,
		.src_node = 1,
		.src_member = 1,
		.stage = MUSTER_STAGE_CONTROL,
		.length = sizeof(control),
	};

	assert_int_equal(test_deliver(&world->nodes[0], 0, &packet, &control), 0);
}

static struct muster_request *start_host(struct test_world *world)
{
	static double values[100];
	struct muster_request *request;

	muster_comm_offload(world->comms[0], MUSTER_OFFLOAD_OFF);
	assert_int_equal(muster_allreduce_start(world->comms[0], values, values, 100, MUSTER_F64,
						MUSTER_SUM, &request), 0);
	return request;
}

static void assert_forged_is_refused(uint32_t place, uint16_t length)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *request = start_host(world);

	forge(world, 0, 0, place, &world->comms[0]->warm->recent->signature, length);
	assert_int_equal(muster_wait(request), -EPROTO);
	assert_non_null(strstr(muster_error(world->jobs[0]), "rank 1 sent what does not fit"));
	test_world_free(world);
}

static void test_a_fragment_of_a_wrong_length_ends_the_communicator(void **state)
{
	(void)state;
	assert_forged_is_refused(0, 799);
	assert_forged_is_refused(0, 808);
	assert_forged_is_refused(0, 0);
}

static void test_a_fragment_beyond_the_credits_ends_the_communicator(void **state)
{
	(void)state;
	assert_forged_is_refused(MUSTER_STREAM_FLOOR, 800);
	assert_forged_is_refused(UINT32_MAX, 800);
}

static void test_credits_that_were_never_given_are_not_believed(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	static double values[2][20000];
	int results[2];

	(void)state;
	forge_control(world, MUSTER_CONTROL_STREAM, 1000000);	/* far more than anybody grants */
	forge_control(world, MUSTER_CONTROL_RETURN, 1000000);	/* nobody asked */
	forge_control(world, 99, 0);				/* a kind that does not exist */
	forge(world, 9, 0, 0, &none, 0);			/* nor that */
	for (uint32_t i = 0; i < 2; i++) {
		muster_comm_offload(world->comms[i], MUSTER_OFFLOAD_OFF);
		muster_comm_schedule(world->comms[i], "recursive-doubling");
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i],
							20000, MUSTER_F64, MUSTER_SUM,
							&requests[i]), 0);
	}
	test_finish(world, requests, results);
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], 0);
	assert_int_equal(world->drops, 0);
	test_world_free(world);
}

static void test_packets_of_strangers_are_dropped(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_packet packet = { .type = MUSTER_PACKET_P2P, .src_node = 5,
					.job = world->jobs[0]->id };
	struct muster_request *requests[2];
	int results[2];

	(void)state;
	test_deliver(&world->nodes[0], 0, &packet, NULL);
	packet.src_node = 1;
	packet.context = 77;
	test_deliver(&world->nodes[0], 0, &packet, NULL);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_barrier_start(world->comms[i], &requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(results[0], 0);
	test_world_free(world);
}

/* ---- paths that differ ------------------------------------------------------------------- */

static void test_what_came_early_on_the_host_path_ends_the_nic_path(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	double values[2] = { 1, 2 };
	int results[2];
	bool done;

	(void)state;
	muster_comm_offload(world->comms[1], MUSTER_OFFLOAD_OFF);
	assert_int_equal(muster_allreduce_start(world->comms[1], &values[1], &values[1], 1,
						MUSTER_F64, MUSTER_SUM, &requests[1]), 0);
	for (int turn = 0; turn < 10; turn++) {
		assert_int_equal(muster_test(requests[1], &done), 0);
		muster_progress(world->jobs[0]);
	}
	assert_int_equal(muster_allreduce_start(world->comms[0], &values[0], &values[0], 1,
						MUSTER_F64, MUSTER_SUM, &requests[0]), 0);
	assert_int_equal(world->comms[0]->failed, -EPROTO);
	test_finish(world, requests, results);
	assert_int_equal(results[0], -EPROTO);
	assert_int_equal(results[1], -EPROTO);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_comes_in_one_step_is_combined_as_listed),
		cmocka_unit_test(test_ranks_without_a_result_may_exchange),
		cmocka_unit_test(test_a_fragment_of_a_wrong_length_ends_the_communicator),
		cmocka_unit_test(test_a_fragment_beyond_the_credits_ends_the_communicator),
		cmocka_unit_test(test_credits_that_were_never_given_are_not_believed),
		cmocka_unit_test(test_packets_of_strangers_are_dropped),
		cmocka_unit_test(test_what_came_early_on_the_host_path_ends_the_nic_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
