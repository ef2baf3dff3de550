// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Neighbour collectives by N ranks over real engines, along graphs of all kinds: on both paths
 * each block is where a plain reference says, and nothing else was written; called, or started
 * again and again. And what is wrong with a graph, or a call along it, is found by all.
 */
#include "testing.h"

enum { RUBBISH = 0xee, GAP = 2, EDGES_MAX = 64 };

enum graph { RING, NONE, STAR, SPARSE, DENSE, LONELY, GRAPHS };
enum form { ALLGATHER, ALLTOALL, ALLGATHERV, ALLTOALLV, ALLTOALLW, FORMS };

struct scene {
	enum graph graph;
	enum form form;
	bool spread;		/* blocks backwards, with gaps */
	bool persistent;
	bool empty;		/* no elements anywhere */
	uint32_t ranks;
	uint64_t longest;
};

/* ---- the graphs ----------------------------------------------------------------------- */

/* How often one names another as a destination. */
static uint32_t edges(const struct scene *scene, uint32_t from, uint32_t to)
{
	uint32_t n = scene->ranks;

	switch (scene->graph) {
	case RING:	/* of two, the same one twice; alone, itself */
		return (to == (from + 1) % n) + (from == (to + 1) % n);
	case STAR:
		return to == n / 2;
	case SPARSE:	/* some twice, some in one direction, some themselves */
		return (from * 7 + to * 11) % 5 / 3 * (1 + (from + to) % 2);
	case DENSE:
		return 1 + (from == to);
	case LONELY:	/* odd ranks have none */
		return from % 2 || to % 2 ? 0 : from != to;
	default:
		return 0;
	}
}

/* In rounds, so that several edges to one rank are not neighbours in the list. */
static uint32_t list(const struct scene *scene, uint32_t rank, bool sources, uint32_t *ranks)
{
	uint32_t nr = 0;

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t k = 0; k < scene->ranks; k++) {
			uint32_t other = sources ? k : (scene->ranks - 1 - k + rank) % scene->ranks;

			if (round < (sources ? edges(scene, other, rank) : edges(scene, rank, other)))
				ranks[nr++] = other;
		}
	assert_true(nr <= EDGES_MAX);
	return nr;
}

/* What the blocks of one buffer are. */
struct side {
	uint32_t nr;
	uint32_t ranks[EDGES_MAX];
	uint64_t counts[EDGES_MAX];
	uint64_t displs[EDGES_MAX];
	uint64_t end;
	enum muster_type types[EDGES_MAX];
};

struct part {
	struct side in, out;
	int64_t *given, *result;
};

/* Which of a rank's blocks for another is the k-th. */
static uint32_t nth(const struct side *side, uint32_t rank, uint32_t k)
{
	uint32_t i = 0;

	while (side->ranks[i] != rank || k--)
		i++;
	assert_true(i < side->nr);
	return i;
}

static uint32_t earlier(const struct side *side, uint32_t index)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < index; i++)
		nr += side->ranks[i] == side->ranks[index];
	return nr;
}

/* ---- the reference ---------------------------------------------------------------------- */

static bool gathers(const struct scene *scene)
{
	return scene->form == ALLGATHER || scene->form == ALLGATHERV;
}

/* Of a rank's block for its index-th destination. */
static uint64_t length(const struct scene *scene, uint32_t from, uint32_t index)
{
	if (scene->empty)
		return 0;
	if (scene->form == ALLGATHER || scene->form == ALLTOALL)
		return scene->longest;
	if (gathers(scene))
		return (from * 7 + 3) % 4 * scene->longest / 3;
	return (from * 5 + index * 3) % 4 * scene->longest / 3;
}

static int64_t value(const struct scene *scene, uint32_t from, uint32_t index, uint64_t i)
{
	return (int64_t)(from * 1000003ull + (gathers(scene) ? 0 : index * 7919) + i * 31 + 1);
}

static void lay(const struct scene *scene, struct side *side)
{
	bool spread = scene->spread && scene->form >= ALLGATHERV;
	uint64_t at = spread ? 5 : 0;

	for (uint32_t k = 0; k < side->nr; k++) {
		uint32_t i = spread ? side->nr - 1 - k : k;

		side->displs[i] = at;
		at += side->counts[i] + (spread ? GAP : 0);
	}
	side->end = at;
}

static void sides_set(const struct scene *scene, uint32_t rank, struct part *part)
{
	struct side other;

	part->in.nr = list(scene, rank, false, part->in.ranks);
	part->out.nr = list(scene, rank, true, part->out.ranks);
	for (uint32_t i = 0; i < part->in.nr; i++)
		part->in.counts[i] = length(scene, rank, i);
	for (uint32_t i = 0; i < part->out.nr; i++) {
		uint32_t from = part->out.ranks[i];

		other.nr = list(scene, from, false, other.ranks);
		part->out.counts[i] = length(scene, from, nth(&other, rank, earlier(&part->out, i)));
	}
	lay(scene, &part->in);
	lay(scene, &part->out);
	if (gathers(scene))	/* one block, at the beginning */
		part->in.end = length(scene, rank, 0);
}

static int64_t *rubbish_new(uint64_t count)
{
	size_t bytes = (count + GAP) * sizeof(int64_t);

	return memset(malloc(bytes), RUBBISH, bytes);
}

static void part_set(const struct scene *scene, uint32_t rank, struct part *part)
{
	sides_set(scene, rank, part);
	part->given = rubbish_new(part->in.end);
	part->result = rubbish_new(part->out.end);
	for (uint64_t k = 0; gathers(scene) && k < part->in.end; k++)
		part->given[k] = value(scene, rank, 0, k);
	for (uint32_t i = 0; i < part->in.nr && !gathers(scene); i++)
		for (uint64_t k = 0; k < part->in.counts[i]; k++)
			part->given[part->in.displs[i] + k] = value(scene, rank, i, k);
}

static void part_check(const struct scene *scene, uint32_t rank, const struct part *part)
{
	uint64_t written = 0, found = 0, rubbish;
	const struct side *out = &part->out;
	struct side other;

	memset(&rubbish, RUBBISH, sizeof(rubbish));
	for (uint32_t i = 0; i < out->nr; i++) {
		uint32_t from = out->ranks[i], index;

		other.nr = list(scene, from, false, other.ranks);
		index = nth(&other, rank, earlier(out, i));
		for (uint64_t k = 0; k < out->counts[i]; k++)
			if (part->result[out->displs[i] + k] != value(scene, from, index, k))
				fail_msg("form %d, graph %d of %u ranks: rank %u has a wrong element %lu of source %u",
					 scene->form, scene->graph, scene->ranks, rank,
					 (unsigned long)k, i);
		written += out->counts[i];
	}
	for (uint64_t k = 0; k < out->end + GAP; k++)
		found += (uint64_t)part->result[k] != rubbish;
	assert_int_equal(found, written);
}

/* ---- playing ------------------------------------------------------------------------------ */

static void *graph_run(void *opaque)
{
	const struct test_thread *thread = opaque;
	struct part part;

	sides_set(thread->argument, thread->rank, &part);
	thread->world->results[thread->rank] =
		muster_comm_neighbours(thread->world->comms[thread->rank], part.out.nr, part.out.ranks,
				       part.in.nr, part.in.ranks);
	return NULL;
}

static void graph_set(struct test_world *world, const struct scene *scene)
{
	test_all(world, graph_run, scene);
	for (uint32_t i = 0; i < world->size; i++)
		if (world->results[i])
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
}

/* Lengths in other types, and places in bytes. */
static void typed_set(const struct side *side, enum muster_type type, uint64_t size,
		      struct side *typed)
{
	for (uint32_t i = 0; i < side->nr; i++) {
		typed->types[i] = type;
		typed->counts[i] = side->counts[i] * sizeof(int64_t) / size;
		typed->displs[i] = side->displs[i] * sizeof(int64_t);
	}
}

static int make(struct muster_comm *comm, const struct scene *scene, const struct part *part,
		struct muster_request **request)
{
	const uint64_t *in_displs = scene->spread ? part->in.displs : NULL;
	const uint64_t *out_displs = scene->spread ? part->out.displs : NULL;
	struct side in, out;

#define CALL(name, ...)	\
	(scene->persistent ? muster_neighbour_##name##_init : muster_neighbour_##name##_start)(comm, \
		part->given, __VA_ARGS__, request)
	switch (scene->form) {
	case ALLGATHER:
		return CALL(allgather, part->result, length(scene, 0, 0), MUSTER_I64);
	case ALLTOALL:
		return CALL(alltoall, part->result, length(scene, 0, 0), MUSTER_I64);
	case ALLGATHERV:
		return CALL(allgatherv, part->in.end, part->result, part->out.counts, out_displs,
			    MUSTER_I64);
	case ALLTOALLV:
		return CALL(alltoallv, part->in.counts, in_displs, part->result, part->out.counts,
			    out_displs, MUSTER_I64);
	default:
		typed_set(&part->in, MUSTER_C32, 8, &in);
		typed_set(&part->out, MUSTER_I16, 2, &out);
		return CALL(alltoallw, in.counts, scene->spread ? in.displs : NULL, in.types,
			    part->result, out.counts, scene->spread ? out.displs : NULL, out.types);
	}
#undef CALL
}

static void play(struct test_world *world, const struct scene *scene, enum muster_path path)
{
	struct muster_request *requests[TEST_RANKS_MAX], *kept[TEST_RANKS_MAX];
	static struct part parts[TEST_RANKS_MAX];
	struct muster_op_info info;
	int errs[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		part_set(scene, i, &parts[i]);
		if (make(world->comms[i], scene, &parts[i], &kept[i]))
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
	}
	for (int times = 0; times < 1 + 2 * scene->persistent; times++) {
		memcpy(requests, kept, sizeof(requests));
		for (uint32_t i = 0; i < world->size && scene->persistent; i++)
			assert_int_equal(muster_start(kept[i]), 0);
		test_finish(world, requests, errs);
		for (uint32_t i = 0; i < world->size; i++) {
			if (errs[i])
				fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
			muster_comm_last(world->comms[i], &info);
			assert_int_equal(info.path, path);
			part_check(scene, i, &parts[i]);
			memset(parts[i].result, RUBBISH, parts[i].out.end * sizeof(int64_t));
		}
	}
	for (uint32_t i = 0; i < world->size; i++) {
		if (scene->persistent)
			assert_int_equal(muster_request_free(kept[i]), 0);
		free(parts[i].given);
		free(parts[i].result);
	}
}

/* Of equal blocks all know the length, and need not know whether there are any. */
static bool is_nothing(const struct scene *scene)
{
	struct part part;
	uint64_t all = 0;

	for (uint32_t i = 0; i < scene->ranks; i++) {
		sides_set(scene, i, &part);
		for (uint32_t k = 0; k < part.out.nr; k++)
			all += part.out.counts[k];
	}
	return scene->ranks == 1 || scene->empty || (scene->form >= ALLGATHERV && !all);
}

static void play_both(struct test_world *world, const struct scene *scene)
{
	bool nothing = is_nothing(scene);

	offload_all(world, MUSTER_OFFLOAD_FORCE);
	play(world, scene, nothing ? MUSTER_PATH_NONE : MUSTER_PATH_NIC);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	play(world, scene, nothing ? MUSTER_PATH_NONE : MUSTER_PATH_HOST);
}

static void play_all(struct test_world *world, struct scene scene)
{
	scene.ranks = world->size;
	for (scene.graph = 0; scene.graph < GRAPHS; scene.graph++) {
		graph_set(world, &scene);
		for (scene.form = 0; scene.form < FORMS; scene.form++)
			for (int k = 0; k < 4; k++) {
				scene.spread = k & 1;
				scene.persistent = k & 2;
				play_both(world, &scene);
			}
	}
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_each_block_comes_to_its_place(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 7, 13 };

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct test_world *world = test_joined(sizes[n], TEST_RING_MAX);

		play_all(world, (struct scene){ .longest = 2 + 30 * n });
		test_world_free(world);
	}
}

static void test_blocks_of_many_pulses_come_out_right(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	(void)state;
	world->seed = 3;
	play_all(world, (struct scene){ .longest = 9001 });
	test_world_free(world);
}

static void test_no_elements_are_nothing_to_do(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	(void)state;
	play_all(world, (struct scene){ .empty = true });
	test_world_free(world);
}

/* Who has no neighbours knows each call's length, and not only that of the last. */
static void test_who_has_no_neighbours_follows(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct scene scene = { .graph = LONELY, .ranks = 3 };

	(void)state;
	graph_set(world, &scene);
	for (scene.longest = 1; scene.longest < 5; scene.longest++) {
		play_both(world, &scene);
		assert_true(muster_signatures_agree(&world->comms[0]->warm->recent->signature,
						    &world->comms[1]->warm->recent->signature));
	}
	test_world_free(world);
}

/* ---- limits and errors ------------------------------------------------------------------------ */

enum { MANY = 40 };

static void *many_run(void *opaque)
{
	const struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	uint32_t other[MANY];

	for (uint32_t i = 0; i < MANY; i++)
		other[i] = !thread->rank;
	thread->world->results[thread->rank] = muster_comm_neighbours(comm, MANY, other, MANY, other);
	return NULL;
}

static void test_more_neighbours_than_slots_go_by_the_host(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[2];
	struct muster_op_info info;
	int64_t in[2][MANY], out[2][MANY];
	int errs[2];

	(void)state;
	test_all(world, many_run, NULL);
	assert_int_equal(world->results[0], 0);
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < MANY; k++)
			in[i][k] = i * MANY + k;
		assert_int_equal(muster_neighbour_alltoall_start(world->comms[i], in[i], out[i], 1,
								 MUSTER_I64, &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(errs[i], 0);
		assert_memory_equal(out[i], in[!i], sizeof(out[i]));
		muster_comm_last(world->comms[i], &info);
		assert_int_equal(info.path, MUSTER_PATH_HOST);
		assert_non_null(strstr(info.why, "40 neighbours to receive from, more than 32"));
		muster_comm_offload(world->comms[i], MUSTER_OFFLOAD_FORCE);
		assert_int_equal(muster_neighbour_alltoall_start(world->comms[i], in[i], out[i], 1,
								 MUSTER_I64, &requests[i]),
				 -EOPNOTSUPP);
	}
	test_world_free(world);
}

/* All tell rank 0, which names rank 2 only once. */
static void *unlike_run(void *opaque)
{
	const struct test_thread *thread = opaque;
	struct muster_comm *comm = thread->world->comms[thread->rank];
	const uint32_t zero[] = { 0, 0 }, sources[] = { 0, 1, 2 };
	int err;

	if (!thread->rank)
		err = muster_comm_neighbours(comm, 3, sources, 1, zero);
	else
		err = muster_comm_neighbours(comm, 0, NULL, thread->rank, zero);
	thread->world->results[thread->rank] = err;
	return NULL;
}

static void test_a_graph_on_which_ranks_do_not_agree_is_refused_by_all(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct scene scene = { .graph = RING, .ranks = 3, .longest = 5 };

	(void)state;
	graph_set(world, &scene);
	test_all(world, unlike_run, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world->results[i], -EINVAL);
		assert_non_null(strstr(muster_error(world->jobs[i]), "rank 2 does not name rank 0"));
	}
	play_both(world, &scene);	/* the last one is still there */
	test_world_free(world);
}

/* Two sources whose lengths differ; who has them knows better. */
static void test_other_lengths_are_told(void **state)
{
	(void)state;
	for (enum muster_offload offload = 0; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		struct test_world *world = test_joined(3, TEST_RING_MAX);
		struct scene scene = { .graph = RING, .ranks = 3 };
		struct muster_request *requests[3];
		int64_t in[8] = { 0 }, out[3][8];
		int errs[3];

		graph_set(world, &scene);
		offload_all(world, offload);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(muster_neighbour_allgather_start(world->comms[i], in, out[i],
									  1 + (i == 1), MUSTER_I64,
									  &requests[i]), 0);
		test_finish(world, requests, errs);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(errs[i], -EPROTO);
		test_world_free(world);
	}
}

static void test_arguments_are_checked_before_anything_is_sent(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[1];
	const uint32_t far[] = { 0, 2 };
	const uint64_t counts[] = { 1, 1 };
	struct scene scene = { .graph = RING, .ranks = 2 };
	struct muster_request *request;
	int64_t b[8];

	(void)state;
	assert_int_equal(muster_neighbour_allgather_start(comm, b, b + 1, 1, MUSTER_I64, &request),
			 -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[1]), "muster_comm_neighbours() names them"));
	assert_int_equal(muster_comm_neighbours(comm, 2, far, 0, NULL), -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[1]), "rank 2 among sources"));
	assert_int_equal(muster_comm_neighbours(comm, 0, NULL, 2, NULL), -EFAULT);
	graph_set(world, &scene);
	assert_int_equal(muster_neighbour_allgather_start(comm, b, b, 1, MUSTER_I64, &request),
			 -EINVAL);
	assert_int_equal(muster_neighbour_alltoall_start(comm, b, b + 4, 1ull << 60, MUSTER_I64,
							 &request), -EOVERFLOW);
	assert_int_equal(muster_neighbour_alltoall_start(comm, b, NULL, 1, MUSTER_I64, &request),
			 -EFAULT);
	assert_int_equal(muster_neighbour_alltoall_start(comm, b, b + 4, 1, 99, &request), -EINVAL);
	assert_int_equal(muster_neighbour_alltoallv_start(comm, b, counts, NULL, b + 4, NULL, NULL,
							  MUSTER_I64, &request), -EFAULT);
	assert_int_equal(muster_neighbour_alltoallw_start(comm, b, counts, NULL, NULL, b + 4, counts,
							  NULL, NULL, &request), -EFAULT);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_block_comes_to_its_place),
		cmocka_unit_test(test_blocks_of_many_pulses_come_out_right),
		cmocka_unit_test(test_no_elements_are_nothing_to_do),
		cmocka_unit_test(test_who_has_no_neighbours_follows),
		cmocka_unit_test(test_more_neighbours_than_slots_go_by_the_host),
		cmocka_unit_test(test_a_graph_on_which_ranks_do_not_agree_is_refused_by_all),
		cmocka_unit_test(test_other_lengths_are_told),
		cmocka_unit_test(test_arguments_are_checked_before_anything_is_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
