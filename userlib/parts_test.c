// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives of which ranks have and need different parts, by N ranks over real engines:
 * on both paths each out holds what a plain reference says, to the bit, and nothing else
 * was written; in place and apart.
 */
#include "testing.h"
#include "test_vectors.h"

enum { RUBBISH = 0xee, GUARD_BYTES = 64 };

struct scene {
	enum muster_coll coll;
	enum muster_type type;
	uint32_t ranks;
	uint32_t root;
	uint64_t count;		/* of a block, or of the message */
	bool in_place;
	bool at_place;		/* in place as the place of the smaller buffer in the larger one */
	bool device_memory;
	bool fractions;		/* sums differ by their order */
};

static const enum muster_coll colls[] = {
	MUSTER_COLL_ALLGATHER, MUSTER_COLL_REDUCE_SCATTER, MUSTER_COLL_ALLTOALL,
	MUSTER_COLL_GATHER, MUSTER_COLL_SCATTER, MUSTER_COLL_SCAN, MUSTER_COLL_EXSCAN,
};

enum { NR_COLLS = sizeof(colls) / sizeof(colls[0]) };

static const char *const schedules[] = { NULL, "ring", "double-ring", "bruck", "linear", "binomial", "pairwise" };

/* ---- the reference -------------------------------------------------------------- */

static size_t size_of(const struct scene *scene)
{
	return scene->type == MUSTER_I32 ? 4 : 8;
}

/* Every buffer has room for a block of each. */
static size_t room_of(const struct scene *scene)
{
	return scene->ranks * scene->count * size_of(scene);
}

static int64_t number_of(uint32_t rank, uint64_t i)
{
	return (int64_t)((rank * 2654435761u + (uint32_t)i * 40503u + 17) % 1000003);
}

/* Element i of what a rank gives. */
static void put(const struct scene *scene, void *to, uint32_t rank, uint64_t i)
{
	int64_t number = number_of(rank, i);
	double fraction = scene->fractions ? (double)number / 7.0 : (double)number;

	if (scene->type == MUSTER_I32)
		*(int32_t *)to = (int32_t)number;
	else if (scene->type == MUSTER_I64)
		*(int64_t *)to = number << 20;
	else
		*(double *)to = fraction;
}

static void add(const struct scene *scene, void *to, const void *other)
{
	if (scene->type == MUSTER_I32)
		*(int32_t *)to += *(const int32_t *)other;
	else if (scene->type == MUSTER_I64)
		*(int64_t *)to += *(const int64_t *)other;
	else
		*(double *)to += *(const double *)other;
}

/* Elements [first, first + count) of what a rank gives. */
static void put_block(const struct scene *scene, uint8_t *to, uint32_t rank, uint64_t first)
{
	for (uint64_t i = 0; i < scene->count; i++)
		put(scene, to + i * size_of(scene), rank, first + i);
}

static void add_blocks(const struct scene *scene, uint8_t *to, uint32_t ranks, uint64_t first)
{
	uint8_t other[8];

	put_block(scene, to, 0, first);
	for (uint32_t rank = 1; rank < ranks; rank++) {
		for (uint64_t i = 0; i < scene->count; i++) {
			put(scene, other, rank, first + i);
			add(scene, to + i * size_of(scene), other);
		}
	}
}

/* What the operation does to a rank's out. */
static void reference(const struct scene *scene, uint32_t rank, uint8_t *out)
{
	size_t block = scene->count * size_of(scene);

	switch (scene->coll) {
	case MUSTER_COLL_ALLGATHER:
	case MUSTER_COLL_GATHER:
		for (uint32_t i = 0; i < scene->ranks; i++)
			if (scene->coll == MUSTER_COLL_ALLGATHER || rank == scene->root)
				put_block(scene, out + i * block, i, 0);
		break;
	case MUSTER_COLL_SCATTER:
		if (!scene->in_place || rank != scene->root)
			put_block(scene, out, scene->root, rank * scene->count);
		break;
	case MUSTER_COLL_ALLTOALL:
		for (uint32_t i = 0; i < scene->ranks; i++)
			put_block(scene, out + i * block, i, rank * scene->count);
		break;
	case MUSTER_COLL_REDUCE_SCATTER:
		add_blocks(scene, out, scene->ranks, rank * scene->count);
		break;
	case MUSTER_COLL_SCAN:
		add_blocks(scene, out, rank + 1, 0);
		break;
	default:
		if (rank)
			add_blocks(scene, out, rank, 0);
	}
}

/* ---- buffers ---------------------------------------------------------------------- */

struct buffers {
	uint8_t *in, *out;	/* with room for a block of each */
	const void *given_in;
	void *given_out;
};

static bool is_gather(const struct scene *scene)
{
	return scene->coll == MUSTER_COLL_ALLGATHER || scene->coll == MUSTER_COLL_GATHER;
}

static bool has_root(const struct scene *scene)
{
	return scene->coll == MUSTER_COLL_GATHER || scene->coll == MUSTER_COLL_SCATTER;
}

/* What is in place is in out. */
static bool is_in_place(const struct scene *scene, uint32_t rank)
{
	return scene->in_place && (!has_root(scene) || rank == scene->root);
}

static void fill(const struct scene *scene, uint32_t rank, struct buffers *b)
{
	uint64_t all = scene->ranks * scene->count;
	size_t own = rank * scene->count * size_of(scene);

	memset(b->in, RUBBISH, room_of(scene) + GUARD_BYTES);
	memset(b->out, RUBBISH, room_of(scene) + GUARD_BYTES);
	for (uint64_t i = 0; i < all; i++)
		put(scene, b->in + i * size_of(scene), rank, i);
	if (!is_in_place(scene, rank))
		return;
	if (is_gather(scene))
		put_block(scene, b->out + own, rank, 0);
	else
		memcpy(b->out, b->in, room_of(scene));
}

static void give(const struct scene *scene, uint32_t rank, struct buffers *b)
{
	size_t own = rank * scene->count * size_of(scene);

	b->given_in = b->in;
	b->given_out = b->out;
	if (is_in_place(scene, rank))
		b->given_in = b->out + (scene->at_place && is_gather(scene) ? own : 0);
	if (is_in_place(scene, rank) && scene->at_place && scene->coll == MUSTER_COLL_SCATTER)
		b->given_out = b->out + own;
	if (scene->coll == MUSTER_COLL_GATHER && rank != scene->root)
		b->given_out = NULL;
	if (scene->coll == MUSTER_COLL_SCATTER && rank != scene->root)
		b->given_in = NULL;
}

static void *memory_new(struct muster *job, const struct scene *scene)
{
	void *memory;

	if (!scene->device_memory)
		return vector_new(room_of(scene) + GUARD_BYTES);
	assert_int_equal(muster_alloc(job, room_of(scene) + GUARD_BYTES, &memory), 0);
	return memory;
}

static void memory_free(struct muster *job, const struct scene *scene, void *memory)
{
	if (scene->device_memory)
		muster_free(job, memory);
}

/* ---- playing ------------------------------------------------------------------------ */

static int start(struct muster_comm *comm, const struct scene *scene, const void *in, void *out,
		 struct muster_request **request)
{
	switch (scene->coll) {
	case MUSTER_COLL_ALLGATHER:
		return muster_allgather_start(comm, in, out, scene->count, scene->type, request);
	case MUSTER_COLL_REDUCE_SCATTER:
		return muster_reduce_scatter_block_start(comm, in, out, scene->count, scene->type,
							 MUSTER_SUM, request);
	case MUSTER_COLL_ALLTOALL:
		return muster_alltoall_start(comm, in, out, scene->count, scene->type, request);
	case MUSTER_COLL_GATHER:
		return muster_gather_start(comm, in, out, scene->count, scene->type, scene->root,
					   request);
	case MUSTER_COLL_SCATTER:
		return muster_scatter_start(comm, in, out, scene->count, scene->type, scene->root,
					    request);
	case MUSTER_COLL_SCAN:
		return muster_scan_start(comm, in, out, scene->count, scene->type, MUSTER_SUM,
					 request);
	default:
		return muster_exscan_start(comm, in, out, scene->count, scene->type, MUSTER_SUM,
					   request);
	}
}

static void assert_near(const struct scene *scene, const uint8_t *out, const uint8_t *expected)
{
	const double *a = (const void *)out, *b = (const void *)expected;

	for (uint64_t i = 0; i < scene->ranks * scene->count; i++) {
		double off = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];

		if (memcmp(&a[i], &b[i], sizeof(a[i])) && !(off <= 1e-9 * b[i]))
			fail_msg("%s: element %lu is %g, not %g", muster_coll_name(scene->coll),
				 (unsigned long)i, a[i], b[i]);
	}
}

static void check(const struct scene *scene, uint32_t rank, const struct buffers *b)
{
	size_t room = room_of(scene);
	struct buffers expected = { .in = vector_new(room + GUARD_BYTES),
				    .out = vector_new(room + GUARD_BYTES) };

	fill(scene, rank, &expected);
	assert_memory_equal(b->in, expected.in, room + GUARD_BYTES);
	if (scene->count)
		reference(scene, rank, expected.out);
	if (scene->fractions)
		assert_near(scene, b->out, expected.out);
	else if (memcmp(b->out, expected.out, room))
		fail_msg("%s of %u ranks, %lu elements, root %u%s%s: rank %u has other bits",
			 muster_coll_name(scene->coll), scene->ranks, (unsigned long)scene->count,
			 scene->root, scene->in_place ? ", in place" : "",
			 scene->at_place ? " at its place" : "", rank);
	assert_memory_equal(b->out + room, expected.out + room, GUARD_BYTES);
}

static void play(struct test_world *world, const struct scene *scene, enum muster_path path,
		 uint8_t *results)
{
	struct muster_request *requests[TEST_RANKS_MAX];
	struct buffers buffers[TEST_RANKS_MAX];
	int errs[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		struct buffers *b = &buffers[i];

		b->in = memory_new(world->jobs[i], scene);
		b->out = memory_new(world->jobs[i], scene);
		fill(scene, i, b);
		give(scene, i, b);
		if (start(world->comms[i], scene, b->given_in, b->given_out, &requests[i]))
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < world->size; i++) {
		struct muster_op_info info;

		if (errs[i])
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
		muster_comm_last(world->comms[i], &info);
		assert_int_equal(info.path, path);
		check(scene, i, &buffers[i]);
		memcpy(results + i * room_of(scene), buffers[i].out, room_of(scene));
		memory_free(world->jobs[i], scene, buffers[i].in);
		memory_free(world->jobs[i], scene, buffers[i].out);
	}
}

static void compare(struct test_world *world, struct scene scene)
{
	bool nothing = world->size == 1 || !scene.count;
	uint8_t *nic, *host;

	scene.ranks = world->size;
	scene.root = has_root(&scene) ? scene.root % world->size : 0;
	nic = vector_new(world->size * room_of(&scene) + 1);
	host = vector_new(world->size * room_of(&scene) + 1);
	offload_all(world, MUSTER_OFFLOAD_FORCE);
	play(world, &scene, nothing ? MUSTER_PATH_NONE : MUSTER_PATH_NIC, nic);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	play(world, &scene, nothing ? MUSTER_PATH_NONE : MUSTER_PATH_HOST, host);
	assert_memory_equal(nic, host, world->size * room_of(&scene));
	vectors_free();
}

static void compare_places(struct test_world *world, struct scene scene)
{
	compare(world, scene);
	scene.in_place = true;
	compare(world, scene);
	scene.at_place = true;
	if (is_gather(&scene) || scene.coll == MUSTER_COLL_SCATTER)
		compare(world, scene);
}

static void schedule_all(struct test_world *world, const char *name)
{
	for (uint32_t i = 0; i < world->size; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], name), 0);
}

/* ---- tests ---------------------------------------------------------------------------- */

static void test_both_paths_give_what_the_reference_says(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 13, 17 };
	static const uint64_t counts[] = { 0, 1, 7, 600 };

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct test_world *world = test_joined(sizes[n], TEST_RING_MAX);

		for (size_t s = 0; s < sizeof(schedules) / sizeof(schedules[0]); s++) {
			schedule_all(world, schedules[s]);
			for (size_t i = 0; i < NR_COLLS * sizeof(counts) / sizeof(counts[0]); i++)
				compare_places(world, (struct scene){
					.coll = colls[i % NR_COLLS], .type = MUSTER_I64,
					.root = sizes[n] / 2 + s, .count = counts[i / NR_COLLS] });
		}
		test_world_free(world);
	}
}

static void test_blocks_of_many_pulses_come_out_right(void **state)
{
	struct test_world *world = test_joined(5, TEST_RING_MAX);

	(void)state;
	for (size_t i = 0; i < NR_COLLS; i++) {
		struct scene scene = { .coll = colls[i], .type = MUSTER_I32, .root = 3,
				       .count = 20001 };

		schedule_all(world, NULL);
		compare_places(world, scene);
		scene.device_memory = true;
		schedule_all(world, has_root(&scene) ? "binomial" : "bruck");
		compare_places(world, scene);
	}
	test_world_free(world);
}

static void test_fractions_have_the_same_bits_on_both_paths(void **state)
{
	struct test_world *world = test_joined(7, TEST_RING_MAX);

	(void)state;
	for (size_t s = 0; s < sizeof(schedules) / sizeof(schedules[0]); s++) {
		schedule_all(world, schedules[s]);
		for (size_t i = 0; i < NR_COLLS; i++)
			compare(world, (struct scene){ .coll = colls[i], .type = MUSTER_F64,
						       .count = 300, .fractions = true });
	}
	test_world_free(world);
}

/* ---- errors ----------------------------------------------------------------------------- */

static void assert_says(struct muster *job, const char *words)
{
	if (!strstr(muster_error(job), words))
		fail_msg("\"%s\" is not in: %s", words, muster_error(job));
}

/* Rank 2 calls another one, in which it speaks to the others: all are told, and who met it is told what. */
static void mismatch(enum muster_coll others, enum muster_coll odd, enum muster_offload offload)
{
	struct scene scene = { .coll = others, .type = MUSTER_I64, .ranks = 3, .count = 5 };
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3];
	struct buffers buffers[3];
	bool told = false, named = false;
	int errs[3];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 3; i++) {
		buffers[i].in = memory_new(NULL, &scene);
		buffers[i].out = memory_new(NULL, &scene);
		fill(&scene, i, &buffers[i]);
	}
	/* A rank that only sends may be through already, but with this operation only. */
	for (int k = 0; k < 3 && !told; k++) {
		for (uint32_t i = 0; i < 3; i++) {
			scene.coll = i == 2 ? odd : others;
			if (start(world->comms[i], &scene, buffers[i].in, buffers[i].out,
				  &requests[i])) {
				requests[i] = NULL;
				errs[i] = -EPROTO;
			}
		}
		test_finish(world, requests, errs);
		told = errs[0] == -EPROTO && errs[1] == -EPROTO;
	}
	assert_true(told);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(start(world->comms[i], &scene, buffers[i].in, buffers[i].out,
				       &requests[i]), -EPROTO);
		named |= strstr(muster_error(world->jobs[i]), "this rank called ") &&
			 strstr(muster_error(world->jobs[i]), muster_coll_name(odd)) &&
			 strstr(muster_error(world->jobs[i]), muster_coll_name(others));
	}
	vectors_free();
	assert_true(named);
	test_world_free(world);
}

static void test_ranks_that_call_different_operations_are_told_which(void **state)
{
	(void)state;
	for (enum muster_offload offload = 0; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		for (size_t i = 0; i < NR_COLLS; i++)
			mismatch(colls[i], colls[i] == MUSTER_COLL_GATHER ?
						   MUSTER_COLL_ALLGATHER :
						   colls[(i + 1) % NR_COLLS], offload);
	}
}

static void test_arguments_are_checked_before_anything_is_sent(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[1];
	struct muster_request *request;
	int64_t buffer[8];

	(void)state;
	assert_int_equal(muster_allgather_start(comm, NULL, buffer, 1, MUSTER_I64, &request),
			 -EFAULT);
	assert_says(world->jobs[1], "allgather: in is NULL");
	assert_int_equal(muster_allgather_start(comm, buffer + 1, buffer, 2, MUSTER_I64, &request),
			 -EINVAL);
	assert_says(world->jobs[1], "allgather: in and out overlap");
	assert_int_equal(muster_alltoall_start(comm, buffer, buffer + 3, 2, MUSTER_I64, &request),
			 -EINVAL);
	assert_int_equal(muster_gather_start(comm, buffer, NULL, 1, MUSTER_I64, 2, &request),
			 -EINVAL);
	assert_says(world->jobs[1], "gather: root 2, but the communicator has 2 ranks");
	assert_int_equal(muster_scatter_start(comm, NULL, NULL, 1, MUSTER_I64, 0, &request),
			 -EFAULT);
	assert_says(world->jobs[1], "scatter: out is NULL");
	assert_int_equal(muster_alltoall_start(comm, buffer, buffer, 1ull << 63, MUSTER_I64,
					       &request), -EOVERFLOW);
	assert_int_equal(muster_allgather_start(comm, buffer, buffer, 1ull << 59, MUSTER_I64,
						&request), -EOVERFLOW);
	assert_int_equal(muster_scan_start(comm, buffer, buffer, 1, MUSTER_F64, MUSTER_BXOR,
					   &request), -EINVAL);
	assert_int_equal(muster_exscan_start(comm, buffer, buffer, 1, 99, MUSTER_SUM, &request),
			 -EINVAL);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_paths_give_what_the_reference_says),
		cmocka_unit_test(test_blocks_of_many_pulses_come_out_right),
		cmocka_unit_test(test_fractions_have_the_same_bits_on_both_paths),
		cmocka_unit_test(test_ranks_that_call_different_operations_are_told_which),
		cmocka_unit_test(test_arguments_are_checked_before_anything_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
