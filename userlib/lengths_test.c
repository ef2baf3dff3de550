// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives in which a rank knows only the lengths of its own blocks, by N ranks over real
 * engines: what each block is to hold is where it is to be, on both paths, and nothing else
 * was written; and lengths that do not agree are found, and by whom.
 */
#include "testing.h"

enum { RUBBISH = 0xee, GAP = 2 };

enum pattern { EQUAL, SKEWED, ONE_LONG, NOTHING, PATTERNS };

struct scene {
	enum muster_coll coll;
	enum pattern pattern;
	bool in_place;
	bool spread;		/* blocks backwards, with gaps */
	bool device_memory;
	uint32_t ranks;
	uint32_t root;
	uint64_t longest;
};

/* The blocks of one buffer, by rank. */
struct blocks {
	uint64_t counts[TEST_RANKS_MAX];
	uint64_t displs[TEST_RANKS_MAX];
	uint64_t end;
};

struct part {
	struct blocks in, out;
	int64_t *given, *result;	/* before, in place the same */
};

/* ---- the reference -------------------------------------------------------------------- */

/* How many elements go from one rank to another. */
static uint64_t length(const struct scene *scene, uint32_t from, uint32_t to)
{
	if ((scene->coll == MUSTER_COLL_GATHERV && to != scene->root) ||
	    (scene->coll == MUSTER_COLL_SCATTERV && from != scene->root))
		return 0;
	if (scene->in_place && from > to)	/* one layout serves both directions */
		return length(scene, to, from);
	switch (scene->pattern) {
	case EQUAL:
		return scene->longest;
	case SKEWED:
		return (from * 7 + to * 3) % 5 * scene->longest / 4;
	case ONE_LONG:
		return from + to == scene->ranks ? scene->longest : (from + to) % 2;
	default:
		return 0;
	}
}

static int64_t value(uint32_t from, uint32_t to, uint64_t i)
{
	return (int64_t)(from * 1000003ull + to * 7919 + i * 31 + 1);
}

static void lay(const struct scene *scene, struct blocks *blocks)
{
	uint64_t at = scene->spread ? 5 : 0;

	for (uint32_t k = 0; k < scene->ranks; k++) {
		uint32_t i = scene->spread ? scene->ranks - 1 - k : k;

		blocks->displs[i] = at;
		at += blocks->counts[i] + (scene->spread ? GAP : 0);
	}
	blocks->end = at;
}

static bool is_rooted(const struct scene *scene)
{
	return scene->coll < MUSTER_COLL_ALLTOALLV;
}

static bool is_in_place(const struct scene *scene, uint32_t rank)
{
	return scene->in_place && (!is_rooted(scene) || rank == scene->root);
}

static int64_t *memory_new(struct muster *job, const struct scene *scene, uint64_t count)
{
	size_t bytes = (count + GAP) * sizeof(int64_t);
	void *memory = NULL;

	if (!scene->device_memory)
		memory = malloc(bytes);
	else
		assert_int_equal(muster_alloc(job, bytes, &memory), 0);
	memset(memory, RUBBISH, bytes);
	return memory;
}

static void memory_free(struct muster *job, const struct scene *scene, int64_t *memory)
{
	if (scene->device_memory)
		muster_free(job, memory);
	else
		free(memory);
}

static void blocks_set(const struct scene *scene, uint32_t rank, struct part *part)
{
	for (uint32_t i = 0; i < scene->ranks; i++) {
		part->in.counts[i] = length(scene, rank, i);
		part->out.counts[i] = length(scene, i, rank);
	}
	lay(scene, &part->in);
	lay(scene, &part->out);
	/* Who is no root has one block, without a place. */
	if (is_rooted(scene) && rank != scene->root)
		part->in.displs[scene->root] = part->out.displs[scene->root] = 0;
}

/* What the root of a scatter has lies in in, of a gather in out. */
static void part_set(struct muster *job, const struct scene *scene, uint32_t rank,
		     struct part *part)
{
	struct blocks *in = &part->in;

	blocks_set(scene, rank, part);
	part->given = memory_new(job, scene, part->in.end);
	part->result = memory_new(job, scene, part->out.end);
	if (scene->coll == MUSTER_COLL_GATHERV && is_in_place(scene, rank)) {
		for (uint64_t k = 0; k < in->counts[rank]; k++)
			part->result[part->out.displs[rank] + k] = value(rank, rank, k);
		return;
	}
	if (scene->coll == MUSTER_COLL_GATHERV)
		in->displs[scene->root] = 0;
	for (uint32_t i = 0; i < scene->ranks; i++)
		for (uint64_t k = 0; k < in->counts[i]; k++)
			(!is_rooted(scene) && scene->in_place ? part->result :
				part->given)[in->displs[i] + k] = value(rank, i, k);
}

static void check_block(const struct scene *scene, const int64_t *at, uint64_t nr, uint32_t from,
			uint32_t to)
{
	for (uint64_t k = 0; k < nr; k++)
		if (at[k] != value(from, to, k))
			fail_msg("%s of %u ranks, pattern %d, root %u%s%s: rank %u has a wrong element %lu of rank %u",
				 muster_coll_name(scene->coll), scene->ranks, scene->pattern,
				 scene->root, scene->in_place ? ", in place" : "",
				 scene->spread ? ", spread" : "", to, (unsigned long)k, from);
}

static void part_check(const struct scene *scene, uint32_t rank, const struct part *part)
{
	const struct blocks *out = &part->out;
	uint64_t written = 0, found = 0, end = out->end + GAP;
	bool stays = scene->coll == MUSTER_COLL_SCATTERV && is_in_place(scene, rank);
	uint64_t rubbish;

	memset(&rubbish, RUBBISH, sizeof(rubbish));
	if (scene->coll == MUSTER_COLL_SCATTERV) {
		if (!stays)
			check_block(scene, part->result, out->counts[scene->root], scene->root, rank);
	} else {
		for (uint32_t i = 0; i < scene->ranks; i++)
			check_block(scene, part->result + out->displs[i], out->counts[i], i, rank);
	}
	for (uint32_t i = 0; i < scene->ranks && !stays; i++)
		written += out->counts[i];
	for (uint64_t k = 0; k < end; k++)
		found += (uint64_t)part->result[k] != rubbish;
	assert_int_equal(found, written);
}

/* ---- alltoallw: the same blocks, of other types on either side -------------------------- */

enum { TYPES = 4 };

static const enum muster_type types[TYPES] = { MUSTER_U8, MUSTER_C32, MUSTER_F64_I32, MUSTER_I16 };
static const uint64_t type_bytes[TYPES] = { 1, 8, 16, 2 };

struct typed {
	uint64_t counts[TEST_RANKS_MAX];
	uint64_t displs[TEST_RANKS_MAX];
	enum muster_type types[TEST_RANKS_MAX];
};

/* The type that suits a length of int64_t's, another one for each side. */
static void typed_set(const struct scene *scene, const struct blocks *blocks, uint32_t shift,
		      struct typed *typed)
{
	for (uint32_t i = 0; i < scene->ranks; i++) {
		uint64_t bytes = blocks->counts[i] * sizeof(int64_t);
		uint32_t k = (i + shift) % TYPES;

		k = bytes % type_bytes[k] ? 0 : k;
		typed->types[i] = types[k];
		typed->counts[i] = bytes / type_bytes[k];
		typed->displs[i] = blocks->displs[i] * sizeof(int64_t);
	}
}

static int alltoallw_start(struct muster_comm *comm, const struct scene *scene,
			   const struct part *part, struct muster_request **request)
{
	struct typed in, out;

	typed_set(scene, &part->in, 0, &in);
	typed_set(scene, &part->out, 1, &out);
	return muster_alltoallw_start(comm, scene->in_place ? part->result : part->given, in.counts,
				      scene->spread ? in.displs : NULL, in.types, part->result,
				      out.counts, scene->spread ? out.displs : NULL, out.types,
				      request);
}

/* ---- playing ---------------------------------------------------------------------------- */

static int start(struct muster_comm *comm, const struct scene *scene, uint32_t rank,
		 const struct part *part, struct muster_request **request)
{
	const struct blocks *in = &part->in, *out = &part->out;
	uint32_t root = scene->root;
	bool in_place = is_in_place(scene, rank);

	if (scene->coll == MUSTER_COLL_GATHERV)
		return muster_gatherv_start(comm, in_place ? part->result : part->given,
					    in->counts[root], rank == root ? part->result : NULL,
					    rank == root ? out->counts : NULL,
					    scene->spread ? out->displs : NULL, MUSTER_I64, root,
					    request);
	if (scene->coll == MUSTER_COLL_SCATTERV)
		return muster_scatterv_start(comm, rank == root ? part->given : NULL,
					     rank == root ? in->counts : NULL,
					     scene->spread ? in->displs : NULL,
					     in_place ? part->given : part->result,
					     out->counts[root], MUSTER_I64, root, request);
	if (scene->coll == MUSTER_COLL_ALLTOALLW)
		return alltoallw_start(comm, scene, part, request);
	return muster_alltoallv_start(comm, in_place ? part->result : part->given,
				      in_place ? NULL : in->counts,
				      scene->spread ? in->displs : NULL, part->result, out->counts,
				      scene->spread ? out->displs : NULL, MUSTER_I64, request);
}

static bool is_nothing(const struct scene *scene)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < scene->ranks * scene->ranks; i++)
		all += length(scene, i / scene->ranks, i % scene->ranks);
	return scene->ranks == 1 || !all;
}

static void play(struct test_world *world, const struct scene *scene, enum muster_path path)
{
	struct muster_request *requests[TEST_RANKS_MAX];
	static struct part parts[TEST_RANKS_MAX];
	struct muster_op_info info;
	int errs[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		part_set(world->jobs[i], scene, i, &parts[i]);
		if (start(world->comms[i], scene, i, &parts[i], &requests[i]))
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < world->size; i++) {
		if (errs[i])
			fail_msg("rank %u: %s", i, muster_error(world->jobs[i]));
		muster_comm_last(world->comms[i], &info);
		assert_int_equal(info.path, is_nothing(scene) ? MUSTER_PATH_NONE : path);
		part_check(scene, i, &parts[i]);
		memory_free(world->jobs[i], scene, parts[i].given);
		memory_free(world->jobs[i], scene, parts[i].result);
	}
}

static void play_both(struct test_world *world, struct scene scene)
{
	scene.ranks = world->size;
	scene.root = is_rooted(&scene) ? scene.root % world->size : 0;
	offload_all(world, MUSTER_OFFLOAD_FORCE);
	play(world, &scene, MUSTER_PATH_NIC);
	offload_all(world, MUSTER_OFFLOAD_OFF);
	play(world, &scene, MUSTER_PATH_HOST);
}

static void play_all(struct test_world *world, struct scene scene)
{
	for (scene.coll = MUSTER_COLL_GATHERV; scene.coll <= MUSTER_COLL_ALLTOALLW; scene.coll++)
		for (int k = 0; k < 4; k++) {
			scene.in_place = k & 1;
			scene.spread = k & 2;
			play_both(world, scene);
		}
}

/* ---- tests -------------------------------------------------------------------------------- */

static void test_each_block_comes_to_its_place(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 8, 13, 17 };

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		struct test_world *world = test_joined(sizes[n], TEST_RING_MAX);
		struct scene scene = { .longest = 1 + 37 * n };

		for (scene.pattern = 0; scene.pattern < PATTERNS; scene.pattern++, scene.root += n)
			play_all(world, scene);
		test_world_free(world);
	}
}

static void test_any_rank_can_be_the_root(void **state)
{
	struct test_world *world = test_joined(5, TEST_RING_MAX);
	struct scene scene = { .pattern = SKEWED, .longest = 700, .spread = true };

	(void)state;
	for (scene.root = 0; scene.root < 5; scene.root++)
		for (scene.coll = MUSTER_COLL_GATHERV; scene.coll < MUSTER_COLL_ALLTOALLV;
		     scene.coll++)
			play_both(world, scene);
	test_world_free(world);
}

static void test_blocks_of_many_pulses_come_out_right(void **state)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);

	(void)state;
	for (int k = 0; k < 2; k++) {
		world->seed = 3 * k;
		play_all(world, (struct scene){ .pattern = k ? ONE_LONG : SKEWED, .longest = 20001,
						.root = 1, .device_memory = k });
	}
	test_world_free(world);
}

/* Several at once, with others between them; each takes its turn. */
static void test_they_take_their_turns_with_others(void **state)
{
	struct scene scene = { .coll = MUSTER_COLL_ALLTOALLV, .pattern = SKEWED, .ranks = 4,
			       .longest = 100 };
	struct test_world *world = test_joined(4, TEST_RING_MAX);
	struct muster_request *requests[3][4];
	static struct part parts[2][4];
	int64_t sums[4];
	int errs[4];

	(void)state;
	for (enum muster_offload offload = 0; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		offload_all(world, offload);
		for (uint32_t i = 0; i < 4; i++) {
			for (int k = 0; k < 2; k++)
				part_set(world->jobs[i], &scene, i, &parts[k][i]);
			sums[i] = i;
			assert_int_equal(start(world->comms[i], &scene, i, &parts[0][i],
					       &requests[0][i]), 0);
			assert_int_equal(muster_allreduce_start(world->comms[i], &sums[i], &sums[i],
								1, MUSTER_I64, MUSTER_SUM,
								&requests[1][i]), 0);
			assert_int_equal(start(world->comms[i], &scene, i, &parts[1][i],
					       &requests[2][i]), 0);
		}
		for (int k = 2; k >= 0; k--) {
			test_finish(world, requests[k], errs);
			for (uint32_t i = 0; i < 4; i++)
				assert_int_equal(errs[i], 0);
		}
		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(sums[i], 6);
			for (int k = 0; k < 2; k++) {
				part_check(&scene, i, &parts[k][i]);
				free(parts[k][i].given);
				free(parts[k][i].result);
			}
		}
	}
	test_world_free(world);
}

/* ---- errors --------------------------------------------------------------------------------- */

static void mismatch(const struct scene *scene, enum muster_offload offload, int64_t off)
{
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	struct muster_request *requests[3];
	static struct part parts[3];
	bool named = false;
	int errs[3];

	offload_all(world, offload);
	for (uint32_t i = 0; i < 3; i++) {
		part_set(world->jobs[i], scene, i, &parts[i]);
		if (i == 2)	/* it has more or less for rank 0 */
			parts[i].in.counts[0] += (uint64_t)off;
		assert_int_equal(start(world->comms[i], scene, i, &parts[i], &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < 3; i++) {
		named |= errs[i] == -EPROTO && strstr(muster_error(world->jobs[i]), "rank 2");
		free(parts[i].given);
		free(parts[i].result);
	}
	assert_int_equal(errs[0], -EPROTO);
	assert_true(named);
	if (off > 0)
		assert_non_null(strstr(muster_error(world->jobs[2]), "that is this rank"));
	test_world_free(world);
}

/* Each member gives rank 0 so many elements. Return: the program that member 1 had for it. */
static const struct muster_program *gather(struct test_world *world, const uint64_t counts[3])
{
	enum { MOST = 40, EACH = 3 * MOST };
	static int64_t in[3][MOST], out[EACH];
	uint64_t displs[3] = { 0, MOST, 2 * MOST };
	struct muster_request *requests[TEST_RANKS_MAX];
	int errs[TEST_RANKS_MAX];

	memset(out, RUBBISH, sizeof(out));
	for (uint32_t i = 0; i < 3; i++) {
		for (uint64_t k = 0; k < MOST; k++)
			in[i][k] = value(i, 0, k);
		assert_int_equal(muster_gatherv_start(world->comms[i], in[i], counts[i], out, counts, displs,
						      MUSTER_I64, 0, &requests[i]), 0);
	}
	test_finish(world, requests, errs);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(errs[i], 0);
		for (uint64_t k = 0; k < counts[i]; k++)
			assert_int_equal(out[displs[i] + k], value(i, 0, k));
	}
	return world->comms[1]->warm->hidden->program;
}

/* What is called again is not made again, unless others' lengths ask for it: member 1 does not know them. */
static void test_the_last_one_is_kept(void **state)
{
	static const uint64_t counts[3] = { 5, 7, 11 }, others[3] = { 5, 7, 40 };
	struct test_world *world = test_joined(3, TEST_RING_MAX);
	const struct muster_program *program = gather(world, counts);
	const struct muster_entry *entry = world->comms[1]->warm->hidden;

	(void)state;
	assert_non_null(program);
	assert_ptr_equal(gather(world, counts), program);
	assert_int_equal(entry->call.cut->longest, 11);
	gather(world, others);
	assert_ptr_equal(world->comms[1]->warm->hidden, entry);
	assert_int_equal(entry->call.cut->longest, 40);
	program = gather(world, others);
	assert_ptr_equal(gather(world, others), program);
	gather(world, counts);
	assert_int_equal(entry->call.cut->longest, 11);
	test_world_free(world);
}

/* Each with a longest block of its own. */
static void test_two_at_once_do_not_share_it(void **state)
{
	static int64_t in[2][50], out[2][2][50];
	struct test_world *world = test_joined(2, TEST_RING_MAX);

	(void)state;
	for (uint64_t turn = 0; turn < 6; turn++) {
		struct muster_request *requests[2][2];
		int errs[2];

		offload_all(world, turn % 2 ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE);
		memset(out, RUBBISH, sizeof(out));
		for (uint32_t i = 0; i < 2; i++)
			for (uint64_t k = 0; k < 2; k++) {	/* the root gives the second more */
				uint64_t counts[2] = { k ? 10 + turn : 3, 4 };

				for (uint64_t e = 0; e < 50; e++)
					in[i][e] = value(i, 0, e);
				assert_int_equal(muster_gatherv_start(world->comms[i], in[i], counts[i], out[k][0], counts,
								      (uint64_t[]){ 0, 50 }, MUSTER_I64, 0,
								      &requests[k][i]), 0);
				assert_int_equal(world->comms[i]->warm->hidden->refs, 1);
			}
		test_finish(world, requests[0], errs);
		assert_int_equal(errs[0] | errs[1], 0);
		test_finish(world, requests[1], errs);
		assert_int_equal(errs[0] | errs[1], 0);
		for (uint64_t k = 0; k < 2; k++) {
			for (uint64_t e = 0; e < (k ? 10 + turn : 3); e++)
				assert_int_equal(out[k][0][e], value(0, 0, e));
			for (uint64_t e = 0; e < 4; e++)
				assert_int_equal(out[k][1][e], value(1, 0, e));
		}
	}
	test_world_free(world);
}

static void test_lengths_that_do_not_agree_name_the_rank(void **state)
{
	static const int64_t offs[] = { -1, -512, -511 };	/* a whole packet less, too */
	struct scene scene = { .pattern = EQUAL, .ranks = 3, .longest = 1024 };

	(void)state;
	for (enum muster_offload offload = 0; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		for (size_t i = 0; i < 3; i++) {
			scene.coll = MUSTER_COLL_GATHERV;
			mismatch(&scene, offload, offs[i]);
			scene.coll = MUSTER_COLL_ALLTOALLV;
			mismatch(&scene, offload, offs[i]);
			scene.coll = MUSTER_COLL_ALLTOALLW;
			mismatch(&scene, offload, offs[i]);
		}
	}
}

/* The root has not heard of so many, and the device would send only part of them. */
static void test_more_than_the_longest_is_found_by_who_has_it(void **state)
{
	struct scene scene = { .coll = MUSTER_COLL_GATHERV, .pattern = EQUAL, .ranks = 3,
			       .longest = 1024 };
	(void)state;
	mismatch(&scene, MUSTER_OFFLOAD_FORCE, 2);
	mismatch(&scene, MUSTER_OFFLOAD_OFF, 2);
}

/* One calls another collective, or names another root. */
static void test_other_calls_are_told(void **state)
{
	(void)state;
	for (int k = 0; k < 4; k++) {
		struct scene scene = { .coll = MUSTER_COLL_GATHERV, .pattern = EQUAL, .ranks = 2,
				       .longest = 4 };
		struct test_world *world = test_joined(2, TEST_RING_MAX);
		struct muster_request *requests[2];
		static struct part parts[2];
		uint64_t told = 0;
		int errs[2] = { 0 };

		offload_all(world, k & 1 ? MUSTER_OFFLOAD_FORCE : MUSTER_OFFLOAD_OFF);
		part_set(world->jobs[0], &scene, 0, &parts[0]);
		assert_int_equal(start(world->comms[0], &scene, 0, &parts[0], &requests[0]), 0);
		scene.root = 1;
		part_set(world->jobs[1], &scene, 1, &parts[1]);
		if (k & 2)
			assert_int_equal(start(world->comms[1], &scene, 1, &parts[1],
					       &requests[1]), 0);
		else
			assert_int_equal(muster_broadcast_start(world->comms[1], &told, 1,
								MUSTER_U64, 0, &requests[1]), 0);
		test_finish(world, requests, errs);
		assert_int_equal(errs[1], -EPROTO);
		if (!strstr(muster_error(world->jobs[1]), k & 2 ? "gatherv with root 0" : "gatherv"))
			fail_msg("%s", muster_error(world->jobs[1]));
		for (int i = 0; i < 2; i++) {
			free(parts[i].given);
			free(parts[i].result);
		}
		test_world_free(world);
	}
}

static void test_arguments_are_checked_before_anything_is_sent(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[1];
	const uint64_t counts[] = { 2, 2 }, far[] = { 1ull << 62, 0 };
	struct muster_request *request;
	int64_t b[8];

	(void)state;
#define GATHERV(in, count, out, counts, displs, root) \
	muster_gatherv_start(comm, in, count, out, counts, displs, MUSTER_I64, root, &request)
	assert_int_equal(GATHERV(b, 2, b + 4, NULL, NULL, 1), -EFAULT);
	assert_non_null(strstr(muster_error(world->jobs[1]), "gatherv: counts is NULL"));
	assert_int_equal(GATHERV(b, 3, b + 4, counts, NULL, 1), -EINVAL);
	assert_int_equal(GATHERV(b, 2, b + 1, counts, NULL, 1), -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[1]), "gatherv: in and out overlap"));
	assert_int_equal(GATHERV(b, 2, b + 4, counts, NULL, 2), -EINVAL);
	assert_int_equal(GATHERV(b, 2, b + 4, counts, far, 1), -EOVERFLOW);
	assert_int_equal(GATHERV(NULL, 2, NULL, NULL, NULL, 0), -EFAULT);
	assert_int_equal(GATHERV(b, 1ull << 62, NULL, NULL, NULL, 0), -EOVERFLOW);
	assert_int_equal(muster_alltoallv_start(comm, b, counts, NULL, b + 4, NULL, NULL,
						MUSTER_I64, &request), -EFAULT);
	assert_int_equal(muster_alltoallv_start(comm, b, counts, NULL, b + 2, counts, NULL,
						MUSTER_I64, &request), -EINVAL);
	assert_int_equal(muster_alltoallv_start(comm, b, counts, NULL, b + 4, counts, NULL, 99,
						&request), -EINVAL);
	test_world_free(world);
}

static void test_types_of_blocks_are_checked(void **state)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	const enum muster_type right[] = { MUSTER_I64, MUSTER_U8 }, wrong[] = { MUSTER_I64, 99 };
	const uint64_t counts[] = { 2, 2 }, far[] = { 1ull << 61, 0 };
	struct muster_request *request;
	int64_t b[16];

	(void)state;
#define ALLTOALLW(in_counts, in_types, out_types) \
	muster_alltoallw_start(world->comms[1], b, in_counts, NULL, in_types, b + 8, counts, NULL, \
			       out_types, &request)
	assert_int_equal(ALLTOALLW(counts, right, wrong), -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[1]), "no element type 99, of block 1"));
	assert_int_equal(ALLTOALLW(counts, NULL, right), -EFAULT);
	assert_non_null(strstr(muster_error(world->jobs[1]), "alltoallw: in_types is NULL"));
	assert_int_equal(ALLTOALLW(far, right, right), -EOVERFLOW);
	test_world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_block_comes_to_its_place),
		cmocka_unit_test(test_any_rank_can_be_the_root),
		cmocka_unit_test(test_blocks_of_many_pulses_come_out_right),
		cmocka_unit_test(test_they_take_their_turns_with_others),
		cmocka_unit_test(test_the_last_one_is_kept),
		cmocka_unit_test(test_two_at_once_do_not_share_it),
		cmocka_unit_test(test_lengths_that_do_not_agree_name_the_rank),
		cmocka_unit_test(test_more_than_the_longest_is_found_by_who_has_it),
		cmocka_unit_test(test_other_calls_are_told),
		cmocka_unit_test(test_arguments_are_checked_before_anything_is_sent),
		cmocka_unit_test(test_types_of_blocks_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
