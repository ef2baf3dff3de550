// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every collective, started and persistent, several at once, whose communicator loses its network at any
 * time while all members live: each is begun anew with its input, and its result is that of a communicator
 * that has lost nothing. With a member lost: restart_test.c.
 */
#include "restart.h"
#include "test_calls.h"

enum { RANKS = TEST_CALL_RANKS, ROUNDS = 40, AT_ONCE = 4, POLLS_MAX = 120, ROOM = TEST_CALL_ROOM };

struct operation {
	enum test_call what;
	uint64_t count;
	bool persistent;
};

/* A rank's; what is persistent has buffers of its own. */
struct rank {
	struct muster_comm *comm, *plain;
	struct muster_request *kept[TEST_CALLS_ALL];
	int64_t in[AT_ONCE][ROOM], out[AT_ONCE][ROOM], expected[ROOM], given[ROOM];
	int64_t kept_in[TEST_CALLS_ALL][ROOM], kept_out[TEST_CALLS_ALL][ROOM];
	uint32_t errors, losses;
};

struct scene {
	enum muster_restart how;
	enum muster_offload offload;
};

static struct rank ranks[RANKS];

enum { KEPT_COUNT = 40 };

static uint64_t drawn(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* The same on all ranks; each persistent one once at most. */
static uint32_t draw(uint64_t round, struct operation *operations)
{
	static const uint64_t counts[] = { 0, 1, KEPT_COUNT, TEST_CALL_LONG };
	uint64_t state = round * 0x9e3779b97f4a7c15u;
	uint32_t nr = 1 + (uint32_t)(drawn(&state) % AT_ONCE);

	for (uint32_t i = 0; i < nr; i++) {
		operations[i] = (struct operation){
			.what = (enum test_call)((round * AT_ONCE + i) % TEST_CALLS_ALL),
			.count = counts[drawn(&state) % 4],
			.persistent = drawn(&state) % 2,
		};
		if (operations[i].persistent)
			operations[i].count = KEPT_COUNT;
	}
	return nr;
}

static void fill(int64_t *data, uint64_t seed)
{
	for (uint64_t i = 0; i < ROOM; i++)
		data[i] = (int64_t)(i * 7 + seed * 1000003);
}

static void graph_set(struct muster_comm *comm)
{
	const uint32_t all[RANKS] = { 0, 1, 2 };

	assert_int_equal(muster_comm_neighbours(comm, RANKS, all, RANKS, all), 0);
}

static void rank_open(struct test_thread *thread, const struct scene *scene)
{
	struct rank *rank = &ranks[thread->rank];
	enum muster_op op;

	rank->comm = thread->world->comms[thread->rank];
	rank->errors = rank->losses = 0;
	assert_int_equal(muster_comm_offload(rank->comm, scene->offload), 0);
	assert_int_equal(muster_comm_dup(rank->comm, &rank->plain), 0);
	assert_int_equal(muster_comm_restart(rank->comm, scene->how), 0);
	assert_int_equal(muster_op_create(rank->comm->job, test_call_add, NULL, &op), 0);
	assert_int_equal(op, MUSTER_OP_USER);
	graph_set(rank->comm);
	graph_set(rank->plain);
	for (uint32_t what = 0; what < TEST_CALLS_ALL; what++)
		assert_int_equal(test_call(rank->comm, (enum test_call)what, KEPT_COUNT, rank->kept_in[what],
					   rank->kept_out[what], true, &rank->kept[what]), 0);
}

static void expect_ended_elsewhere(const struct rank *rank)
{
	if (!strstr(muster_error(rank->comm->job), "others had ended"))
		fail_msg("rank %u: %s", rank->comm->rank, muster_error(rank->comm->job));
}

static void start(struct rank *rank, uint32_t index, const struct operation *operation, uint64_t seed,
		  struct muster_request **request)
{
	int64_t *in = operation->persistent ? rank->kept_in[operation->what] : rank->in[index];
	int64_t *out = operation->persistent ? rank->kept_out[operation->what] : rank->out[index];
	int err;

	fill(in, seed);
	fill(out, seed + 500);
	*request = rank->kept[operation->what];
	err = operation->persistent ? muster_start(*request) :
	      test_call(rank->comm, operation->what, operation->count, in, out, false, request);
	if (!err)
		return;
	expect_ended_elsewhere(rank);
	*request = NULL;
}

static bool is_in_place(enum test_call what)
{
	return what >= REDUCE_IN_PLACE && what <= EXSCAN_IN_PLACE;
}

static void expect_result(struct rank *rank, uint32_t index, const struct operation *operation, uint64_t seed, int err)
{
	const int64_t *out = operation->persistent ? rank->kept_out[operation->what] : rank->out[index];
	struct muster_request *plain;

	fill(rank->given, seed);
	fill(rank->expected, seed + 500);
	assert_int_equal(test_call(rank->plain, operation->what, operation->count, rank->given, rank->expected, false,
				   &plain), 0);
	assert_int_equal(muster_wait(plain), 0);
	if (err && is_in_place(operation->what))	/* the input is what it was */
		fill(rank->expected, seed + 500);
	if ((!err || is_in_place(operation->what)) && memcmp(out, rank->expected, sizeof(rank->expected)))
		fail_msg("rank %u: call %d of %d, persistent: %d, result %d: something else came", rank->comm->rank,
			 operation->what, (int)operation->count, operation->persistent, err);
}

/* All hear that a part of the network has gone, and nobody in particular. */
static void lose_network(struct rank *rank, uint64_t polls)
{
	struct muster_comm *comm = muster_comm_heir(rank->comm);

	while (polls--)
		muster_progress(comm->job);
	muster_comm_abort(comm, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL, NULL);
}

static void round_run(struct rank *rank, uint64_t round, uint32_t self, bool agreed)
{
	struct operation operations[AT_ONCE];
	struct muster_request *requests[AT_ONCE];
	uint32_t nr = draw(round, operations);
	struct muster_comm *before = muster_comm_heir(rank->comm);
	uint64_t state = round * 7 + self;
	int errs[AT_ONCE];

	for (uint32_t i = 0; i < nr; i++)
		start(rank, i, &operations[i], round * 100 + i * 10 + self, &requests[i]);
	if (round % 4 == self)
		lose_network(rank, drawn(&state) % POLLS_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t index = (i + self) % nr;	/* in an order of its own */

		errs[index] = requests[index] ? muster_wait(requests[index]) : -ECONNRESET;
		if (errs[index] && requests[index])
			expect_ended_elsewhere(rank);
		assert_true(!errs[index] || !agreed);
		rank->errors += errs[index] != 0;
	}
	for (uint32_t i = 0; i < nr; i++)
		expect_result(rank, i, &operations[i], round * 100 + i * 10 + self, errs[i]);
	rank->losses += muster_comm_heir(rank->comm) != before;
}

static void *rounds_run(void *opaque)
{
	struct test_thread *thread = opaque;
	const struct scene *scene = thread->argument;
	struct rank *rank = &ranks[thread->rank];

	rank_open(thread, scene);
	for (uint64_t round = 0; round < ROUNDS; round++)
		round_run(rank, round, thread->rank, scene->how == MUSTER_RESTART_AGREED);
	return NULL;
}

static void every_call(enum muster_restart how, enum muster_offload offload)
{
	const struct scene scene = { how, offload };
	struct test_world *world = test_world_new(RANKS);

	world->tells_deaths = true;
	test_all(world, test_join_run, NULL);
	test_all(world, rounds_run, &scene);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_true(ranks[i].losses > ROUNDS / 4);
		assert_true(ranks[i].errors < ROUNDS / 2);
	}
	test_world_free(world);
}

static void test_every_call_is_begun_anew_with_its_input(void **state)
{
	(void)state;
	every_call(MUSTER_RESTART_AGREED, MUSTER_OFFLOAD_TRY);
	every_call(MUSTER_RESTART_AGREED, MUSTER_OFFLOAD_OFF);
	every_call(MUSTER_RESTART_TRY, MUSTER_OFFLOAD_TRY);
	every_call(MUSTER_RESTART_TRY, MUSTER_OFFLOAD_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_call_is_begun_anew_with_its_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
