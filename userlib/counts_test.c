// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives with blocks of lengths of their own, by N ranks over real engines: on both
 * paths each buffer holds what a plain reference says, to the bit, and nothing else was
 * written; for vectors of all kinds, blocks anywhere in the buffers, in place and apart.
 */
#include <unistd.h>

#include "testing.h"

enum { RUBBISH = 0xee, GAP = 3, GUARD_BYTES = 64 };

enum vector { EQUAL, RISING, ONE_LONG, EVERY_OTHER, NONE, VECTORS };
enum order { PACKED, SHIFTED, GAPS, BACKWARDS, ORDERS };
enum place { APART, WHOLE, AT_PLACE, PLACES };

struct scene {
	enum muster_coll coll;
	enum muster_type type;
	enum vector vector;
	enum order order;
	enum place place;
	bool fractions;
	bool device_memory;
	uint32_t ranks;
	size_t room;		/* bytes of each buffer */
	uint64_t longest;
	uint64_t counts[TEST_RANKS_MAX];
	uint64_t displs[TEST_RANKS_MAX];	/* of the larger buffer */
};

/* ---- what is called ------------------------------------------------------------------ */

static uint64_t count_of(const struct scene *scene, uint32_t rank)
{
	switch (scene->vector) {
	case EQUAL:
		return scene->longest;
	case RISING:
		return scene->longest * rank / scene->ranks;
	case ONE_LONG:
		return rank == scene->ranks / 2 ? scene->longest : !(rank % 2);
	case EVERY_OTHER:
		return rank % 2 ? 0 : scene->longest / 2 + rank;
	default:
		return 0;
	}
}

/* What is no result of one block, as a reduce-scatter's in, is always packed. */
static bool is_free(const struct scene *scene)
{
	return scene->coll != MUSTER_COLL_REDUCE_SCATTERV;
}

static void set(struct scene *scene)
{
	uint64_t at = is_free(scene) && scene->order != PACKED ? 7 : 0;

	for (uint32_t i = 0; i < scene->ranks; i++)
		scene->counts[i] = count_of(scene, i);
	for (uint32_t k = 0; k < scene->ranks; k++) {
		uint32_t i = is_free(scene) && scene->order == BACKWARDS ? scene->ranks - 1 - k : k;

		scene->displs[i] = at;
		at += scene->counts[i] + (is_free(scene) && scene->order >= GAPS ? GAP : 0);
	}
	scene->room = at * 8 + GUARD_BYTES;
}

static size_t size_of(const struct scene *scene)
{
	return scene->type == MUSTER_I32 ? 4 : 8;
}

static size_t at(const struct scene *scene, uint32_t rank)
{
	return scene->displs[rank] * size_of(scene);
}

/* ---- the reference -------------------------------------------------------------------- */

/* Element i of what a rank has for a block's owner. */
static void put(const struct scene *scene, uint8_t *to, uint32_t rank, uint32_t owner, uint64_t i)
{
	int64_t number = (int64_t)((rank * 2654435761u + owner * 97003u + (uint32_t)i * 40503u +
				    17) % 1000003);
	double fraction = (double)number / 7.0;

	if (scene->type == MUSTER_I32)
		memcpy(to, &number, 4);
	else if (scene->type == MUSTER_F64)
		memcpy(to, &fraction, 8);
	else
		memcpy(to, &number, 8);
}

static void put_block(const struct scene *scene, uint8_t *to, uint32_t rank, uint32_t owner)
{
	for (uint64_t i = 0; i < scene->counts[owner]; i++)
		put(scene, to + i * size_of(scene), rank, owner, i);
}

static void add(const struct scene *scene, uint8_t *to, const uint8_t *other)
{
	int64_t a = 0, b = 0;
	double x, y;

	if (scene->type == MUSTER_F64) {
		memcpy(&x, to, 8);
		memcpy(&y, other, 8);
		x += y;
		memcpy(to, &x, 8);
		return;
	}
	memcpy(&a, to, size_of(scene));
	memcpy(&b, other, size_of(scene));
	a += b;
	memcpy(to, &a, size_of(scene));
}

static void add_blocks(const struct scene *scene, uint8_t *to, uint32_t owner)
{
	uint8_t other[8];

	put_block(scene, to, 0, owner);
	for (uint32_t rank = 1; rank < scene->ranks; rank++) {
		for (uint64_t i = 0; i < scene->counts[owner]; i++) {
			put(scene, other, rank, owner, i);
			add(scene, to + i * size_of(scene), other);
		}
	}
}

/* What a rank's buffers hold before, or after the operation. */
static void fill(const struct scene *scene, uint32_t rank, uint8_t *in, uint8_t *out, bool after)
{
	bool gathers = scene->coll == MUSTER_COLL_ALLGATHERV;
	uint8_t *own = scene->place == APART ? in : out + (gathers ? at(scene, rank) : 0);

	memset(in, RUBBISH, scene->room);
	memset(out, RUBBISH, scene->room);
	if (gathers) {
		put_block(scene, own, rank, rank);
		for (uint32_t i = 0; i < scene->ranks && after; i++)
			put_block(scene, out + at(scene, i), i, i);
		return;
	}
	for (uint32_t i = 0; i < scene->ranks; i++)
		put_block(scene, own + at(scene, i), rank, i);
	if (after)
		add_blocks(scene, out + (scene->place == AT_PLACE ? at(scene, rank) : 0), rank);
}

/* ---- playing ---------------------------------------------------------------------------- */

static int start(struct muster_comm *comm, const struct scene *scene, uint32_t rank,
		 const uint8_t *in, uint8_t *out, struct muster_request **request)
{
	const uint64_t *displs = scene->order == PACKED ? NULL : scene->displs;
	size_t own = scene->place == AT_PLACE ? at(scene, rank) : 0;

	if (scene->coll == MUSTER_COLL_ALLGATHERV)
		return muster_allgatherv_start(comm, scene->place == APART ? in : out + own, out,
					       scene->counts, displs, scene->type, request);
	return muster_reduce_scatter_start(comm, scene->place == APART ? in : out, out + own,
					   scene->counts, scene->type, MUSTER_SUM, request);
}

struct buffers {
	uint8_t *in, *out;
};

static uint8_t *memory_new(struct muster *job, const struct scene *scene)
{
	void *memory;

	if (!scene->device_memory)
		return malloc(scene->room);
	assert_int_equal(muster_alloc(job, scene->room, &memory), 0);
	return memory;
}

static void memory_free(struct muster *job, const struct scene *scene, uint8_t *memory)
{
	if (scene->device_memory)
		muster_free(job, memory);
	else
		free(memory);
}

static void assert_near(const uint8_t *found, const uint8_t *expected, size_t room)
{
	const double *a = (const void *)found, *b = (const void *)expected;

	for (size_t i = 0; i < room / sizeof(*a); i++)
		if (memcmp(&a[i], &b[i], 8) && !(a[i] - b[i] < 1e-6 && b[i] - a[i] < 1e-6))
			fail_msg("element %zu is %g, not %g", i, a[i], b[i]);
}

static void check(const struct scene *scene, uint32_t rank, const struct buffers *b)
{
	uint8_t *in = malloc(scene->room), *out = malloc(scene->room);

	fill(scene, rank, in, out, true);
	assert_memory_equal(b->in, in, scene->room);
	if (scene->fractions)
		assert_near(b->out, out, scene->room);
	else if (memcmp(b->out, out, scene->room))
		fail_msg("%s of %u ranks, vector %d, order %d, place %d: rank %u has other bits",
			 muster_coll_name(scene->coll), scene->ranks, scene->vector, scene->order,
			 scene->place, rank);
	free(in);
	free(out);
}

static bool is_nothing(const struct scene *scene)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < scene->ranks; i++)
		all += scene->counts[i];
	return !all || scene->ranks == 1;
}

static void play(struct test_world *world, const struct scene *scene, enum muster_path path,
		 uint8_t *results)
{
	struct muster_request *requests[TEST_RANKS_MAX];
	struct buffers buffers[TEST_RANKS_MAX];
	struct muster_op_info info;
	int errs[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		struct buffers *b = &buffers[i];

		b->in = memory_new(world->jobs[i], scene);
		b->out = memory_new(world->jobs[i], scene);
		fill(scene, i, b->in, b->out, false);
		if (start(world->comms[i], scene, i, b->in, b->out, &requests[i]))
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < world->size; i++) {
		if (errs[i])
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
		muster_comm_last(world->comms[i], &info);
		assert_int_equal(info.path, is_nothing(scene) ? MUSTER_PATH_NONE : path);
		check(scene, i, &buffers[i]);
		memcpy(results + i * scene->room, buffers[i].out, scene->room);
		memory_free(world->jobs[i], scene, buffers[i].in);
		memory_free(world->jobs[i], scene, buffers[i].out);
	}
}

static void compare(struct test_world *world, struct scene scene)
{
	uint8_t *nic, *host;

	scene.ranks = world->size;
	set(&scene);
	nic = malloc(world->size * scene.room);
	host = malloc(world->size * scene.room);
	offload_all(world, MUSTER_OFFLOAD_FORCE);
	play(world, &scene, MUSTER_PATH_NIC, nic);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	play(world, &scene, MUSTER_PATH_HOST, host);
	assert_memory_equal(nic, host, world->size * scene.room);
	free(nic);
	free(host);
}

static void schedule_all(struct test_world *world, const char *name)
{
	for (uint32_t i = 0; i < world->size; i++)
		if (muster_comm_schedule(world->comms[i], name))
			fail_msg("%s", muster_error(world->jobs[i]));
}

/* ---- tests -------------------------------------------------------------------------------- */

static const enum muster_coll colls[] = { MUSTER_COLL_ALLGATHERV, MUSTER_COLL_REDUCE_SCATTERV };

enum { NR_COLLS = sizeof(colls) / sizeof(colls[0]) };

static void compare_all(struct test_world *world, struct scene scene)
{
	for (scene.vector = 0; scene.vector < VECTORS; scene.vector++) {
		scene.order = (scene.vector + scene.longest) % ORDERS;
		for (scene.place = 0; scene.place < PLACES; scene.place++)
			compare(world, scene);
	}
}

static void test_both_paths_give_what_the_reference_says(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 13, 17 };
	static const char *const schedules[] = { NULL, "ring", "bruck", "double-ring", "pairwise" };

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct test_world *world = test_joined(sizes[n], TEST_RING_MAX);

		for (size_t s = 0; s < 4 * NR_COLLS; s++) {
			schedule_all(world, schedules[s / NR_COLLS]);
			compare_all(world, (struct scene){ .coll = colls[s % NR_COLLS],
							   .type = MUSTER_I64,
							   .longest = s / NR_COLLS * 150 + n });
		}
		test_world_free(world);
	}
}

static void test_blocks_may_lie_anywhere_in_the_buffer(void **state)
{
	struct test_world *world = test_joined(5, TEST_RING_MAX);
	struct scene scene = { .coll = MUSTER_COLL_ALLGATHERV, .type = MUSTER_I32, .longest = 40 };

	(void)state;
	for (scene.vector = 0; scene.vector < VECTORS; scene.vector++)
		for (scene.order = 0; scene.order < ORDERS; scene.order++)
			for (scene.place = 0; scene.place < PLACES; scene.place++)
				compare(world, scene);
	test_world_free(world);
}

static void test_one_block_of_many_pulses_among_short_ones_comes_out_right(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct scene scene = { .type = MUSTER_I64, .vector = ONE_LONG, .longest = 15001 };

	(void)state;
	for (size_t i = 0; i < 2 * NR_COLLS; i++) {
		scene.coll = colls[i % NR_COLLS];
		scene.device_memory = i < NR_COLLS;
		schedule_all(world, scene.device_memory ? "ring" : "bruck");
		for (scene.place = 0; scene.place < PLACES; scene.place++) {
			scene.order = scene.place ? BACKWARDS : PACKED;
			compare(world, scene);
		}
	}
	test_world_free(world);
}

/* Packets that overtake each other let a later pulse end before an earlier one. */
static void test_a_result_in_place_spares_what_is_still_to_be_read(void **state)
{
	struct scene scene = { .coll = MUSTER_COLL_REDUCE_SCATTERV, .type = MUSTER_I64,
			       .vector = RISING, .place = WHOLE, .longest = 24001 };

	(void)state;
	for (uint32_t seed = 1; seed <= 4; seed++) {
		struct test_world *world = test_joined(3, TEST_RING_MAX);

		world->seed = seed;
		compare(world, scene);
		test_world_free(world);
	}
}

static void test_fractions_have_the_same_bits_on_both_paths(void **state)
{
	struct test_world *world = test_joined(6, TEST_RING_MAX);

	(void)state;
	for (size_t i = 0; i < NR_COLLS; i++)
		compare_all(world, (struct scene){ .coll = colls[i], .type = MUSTER_F64,
						   .longest = 211, .fractions = true });
	test_world_free(world);
}

/* Nothing was called before, so there is no scratch that it could load nothing from. */
static void test_a_rank_without_elements_needs_no_memory(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	(void)state;
	schedule_all(world, "bruck");
	compare(world, (struct scene){ .coll = MUSTER_COLL_REDUCE_SCATTERV, .type = MUSTER_I64,
				       .vector = RISING, .longest = 6 });
	test_world_free(world);
}

/* A schedule of two chunks a rank: a block is cut into two. */
static void test_a_file_with_several_chunks_a_block_serves_them(void **state)
{
	static const char words[] = "muster-schedule 1\nname halves\ncollective allgather\nranks 2\n"
				    "chunks 4\nstep 0\n0 -> 1 chunk 0 copy\n1 -> 0 chunk 3 copy\n"
				    "step 1\n0 -> 1 chunk 1 copy\n1 -> 0 chunk 2 copy\nend\n";
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	char path[] = "/tmp/muster-counts-XXXXXX";
	struct muster_op_info info;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, words, sizeof(words) - 1), sizeof(words) - 1);
	close(fd);
	schedule_all(world, path);
	unlink(path);
	compare_all(world, (struct scene){ .coll = MUSTER_COLL_ALLGATHERV, .type = MUSTER_I64,
					   .longest = 25 });
	compare(world, (struct scene){ .coll = MUSTER_COLL_ALLGATHERV, .type = MUSTER_I64,
				       .longest = 25 });
	muster_comm_last(world->comms[0], &info);
	assert_string_equal(info.schedule, "halves");
	test_world_free(world);
}

/* The same vector again costs no schedule, and another one is another call. */
static void test_calls_are_told_apart_by_their_vectors(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct scene scene = { .coll = MUSTER_COLL_ALLGATHERV, .type = MUSTER_I64, .ranks = 2,
			       .vector = EQUAL, .longest = 4 };
	struct muster_entry *first;

	(void)state;
	compare(world, scene);
	first = world->comms[0]->warm->recent;
	compare(world, scene);
	assert_ptr_equal(world->comms[0]->warm->recent, first);
	scene.vector = EVERY_OTHER;	/* as many elements */
	scene.longest = 16;
	compare(world, scene);
	assert_ptr_not_equal(world->comms[0]->warm->recent, first);
	test_world_free(world);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void assert_says(struct muster *job, const char *words)
{
	if (!strstr(muster_error(job), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(job));
}

/* Rank 1 of 3 has moved an element from one block to another. */
static void mismatch(enum muster_coll coll, enum muster_offload offload)
{
	struct scene scene = { .coll = coll, .type = MUSTER_I64, .ranks = 3, .longest = 9 };
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	static uint8_t in[3][1024], out[3][1024];
	struct muster_request *requests[3];
	bool named = false;
	int errs[3];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 3; i++) {
		set(&scene);
		scene.counts[0] += i == 1;
		scene.counts[2] -= i == 1;
		assert_int_equal(start(world->comms[i], &scene, i, in[i], out[i], &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(errs[i], -EPROTO);
		named |= strstr(muster_error(world->jobs[i]), "another count vector") &&
			 strstr(muster_error(world->jobs[i]), muster_coll_name(coll));
	}
	assert_true(named);
	test_world_free(world);
}

static void test_ranks_with_different_vectors_are_told_so(void **state)
{
	(void)state;
	for (enum muster_offload offload = 0; offload <= MUSTER_OFFLOAD_FORCE; offload += 2)
		for (size_t i = 0; i < NR_COLLS; i++)
			mismatch(colls[i], offload);
}

static void test_arguments_are_checked_before_anything_is_sent(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[1];
	const uint64_t counts[] = { 2, 2 }, many[] = { UINT64_MAX, 2 }, far[] = { 0, 1ull << 61 };
	const uint64_t shifted[] = { 1, 3 };
	struct muster_request *request;
	int64_t buffer[8];

	(void)state;
#define ALLGATHERV(in, out, counts, displs) \
	muster_allgatherv_start(comm, in, out, counts, displs, MUSTER_I64, &request)
	assert_int_equal(ALLGATHERV(buffer + 4, buffer, NULL, NULL), -EFAULT);
	assert_says(world->jobs[1], "allgatherv: counts is NULL");
	assert_int_equal(ALLGATHERV(NULL, buffer, counts, NULL), -EFAULT);
	assert_says(world->jobs[1], "allgatherv: in is NULL");
	assert_int_equal(ALLGATHERV(buffer, NULL, counts, shifted), -EFAULT);
	assert_int_equal(ALLGATHERV(buffer + 4, buffer, many, NULL), -EOVERFLOW);
	assert_int_equal(ALLGATHERV(buffer + 4, buffer, counts, far), -EOVERFLOW);
	assert_says(world->jobs[1], "allgatherv: block 1 ends further");
	assert_int_equal(ALLGATHERV(buffer + 1, buffer, counts, NULL), -EINVAL);
	assert_says(world->jobs[1], "allgatherv: in and out overlap");
	/* It begins where the blocks do, but is another rank's place. */
	assert_int_equal(ALLGATHERV(buffer + 1, buffer, counts, shifted), -EINVAL);
	assert_int_equal(muster_reduce_scatter_start(comm, buffer, buffer + 1, counts, MUSTER_I64,
						     MUSTER_SUM, &request), -EINVAL);
	assert_says(world->jobs[1], "reduce-scatter by counts: in and out overlap");
	assert_int_equal(muster_reduce_scatter_start(comm, buffer, buffer + 4, counts, MUSTER_F64,
						     MUSTER_BXOR, &request), -EINVAL);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_paths_give_what_the_reference_says),
		cmocka_unit_test(test_blocks_may_lie_anywhere_in_the_buffer),
		cmocka_unit_test(test_one_block_of_many_pulses_among_short_ones_comes_out_right),
		cmocka_unit_test(test_a_result_in_place_spares_what_is_still_to_be_read),
		cmocka_unit_test(test_fractions_have_the_same_bits_on_both_paths),
		cmocka_unit_test(test_a_rank_without_elements_needs_no_memory),
		cmocka_unit_test(test_a_file_with_several_chunks_a_block_serves_them),
		cmocka_unit_test(test_calls_are_told_apart_by_their_vectors),
		cmocka_unit_test(test_ranks_with_different_vectors_are_told_so),
		cmocka_unit_test(test_arguments_are_checked_before_anything_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
