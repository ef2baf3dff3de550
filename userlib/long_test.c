// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of more stages than a context's queue holds: run by the device alone, or posted stage
 * by stage.
 */
#include "testing.h"

enum { LONG = 1280 };

/* A program of some forty sequences: each chunk to rank 0, and back as `what`, in so many steps. */
static void schedule_of(struct test_world *world, const char *what, int steps)
{
	char path[] = "/tmp/muster-long-test-XXXXXX";
	FILE *to = fdopen(mkstemp(path), "w");

	assert_non_null(to);
	fprintf(to, "muster-schedule 1\nname long\ncollective allreduce\nranks 2\nchunks %d\n",
		LONG);
	for (int c = 0; c < LONG; c++) {
		fprintf(to, "step %d\n1 -> 0 chunk %d reduce\n", steps * c, c);
		if (steps == 2)
			fprintf(to, "step %d\n", 2 * c + 1);
		fprintf(to, "0 -> 1 chunk %d %s\n", c, what);
	}
	fprintf(to, "end\n");
	fclose(to);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_comm_schedule(world->comms[i], path), 0);
	remove(path);
}

/* Chunk by chunk to rank 0 and back. */
static void long_schedule(struct test_world *world)
{
	schedule_of(world, "copy", 2);
}

/* Chunk by chunk both to each other: what comes is stored beside what goes, in the scratch. */
static void exchange_schedule(struct test_world *world)
{
	schedule_of(world, "reduce", 1);
}

/* Longer than a context's queue: its own stages make room for each other. */
static void long_ones_come_to_their_end(bool fetched)
{
	static int64_t values[3][2][LONG];
	static struct muster_request *requests[3][TEST_RANKS_MAX];
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_op_info info;
	int results[TEST_RANKS_MAX];

	world->one_queue = true;
	for (uint32_t i = 0; i < 2 && !fetched; i++)
		world->nodes[i].dev.limits.program_descs = 0;
	offload_all(world, MUSTER_OFFLOAD_FORCE);
	long_schedule(world);
	for (int k = 0; k < 3; k++)
		for (uint32_t i = 0; i < 2; i++) {
			values[k][i][LONG - 1] = 10 * k + i;
			assert_int_equal(muster_allreduce_start(world->comms[i], values[k][i],
								values[k][i], LONG, MUSTER_I64,
								MUSTER_SUM, &requests[k][i]), 0);
		}
	for (int k = 0; k < 3; k++) {
		test_finish(world, requests[k], results);
		assert_int_equal(results[0] | results[1], 0);
		assert_int_equal(values[k][0][LONG - 1], 20 * k + 1);
		assert_int_equal(values[k][1][LONG - 1], 20 * k + 1);
	}
	muster_comm_last(world->comms[0], &info);
	assert_true(info.sequences > 2 * MUSTER_SEQ_QUEUE_MAX);
	test_world_free(world);
}

static void test_programs_of_more_stages_than_a_queue_holds_come_to_their_end(void **state)
{
	(void)state;
	long_ones_come_to_their_end(true);
	long_ones_come_to_their_end(false);
}

/* Both ranks have started, and values[rank] are theirs. */
struct scene {
	struct test_world *world;
	struct muster_request *requests[TEST_RANKS_MAX];
	double values[2][LONG];
};

static void scene_start(struct scene *scene)
{
	uint64_t random = 1;

	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t k = 0; k < LONG; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			scene->values[i][k] = (double)(random >> 20) / (double)(1 + (random & 1023));
		}
		assert_int_equal(muster_allreduce_start(scene->world->comms[i], scene->values[i],
							scene->values[i], LONG, MUSTER_F64, MUSTER_SUM,
							&scene->requests[i]), 0);
	}
}

static void scene_make(struct scene *scene)
{
	scene->world = test_joined(2, TEST_RING_MAX);
	offload_all(scene->world, MUSTER_OFFLOAD_FORCE);
	long_schedule(scene->world);
}

static void scene_end(struct scene *scene, int err)
{
	int results[TEST_RANKS_MAX];

	test_finish(scene->world, scene->requests, results);
	assert_int_equal(results[0], err);
	assert_int_equal(results[1], err);
	test_world_free(scene->world);
}

/* From here on nobody calls the library, and the devices run on. */
static void devices_run(struct scene *scene)
{
	for (int i = 0; i < 2000; i++)
		test_step(scene->world);
}

static void test_they_run_to_their_end_while_their_caller_is_away(void **state)
{
	static struct scene scene;
	double expected;

	(void)state;
	scene_make(&scene);
	scene_start(&scene);
	expected = scene.values[0][LONG - 1] + scene.values[1][LONG - 1];
	assert_int_equal(scene.requests[0]->stage, scene.requests[0]->entry->program->nr_stages);
	devices_run(&scene);
	assert_true(scene.values[0][LONG - 1] == expected);
	assert_true(scene.values[1][LONG - 1] == expected);
	scene_end(&scene, 0);
}

static void test_a_device_that_fetches_none_computes_the_same_bits(void **state)
{
	static struct scene fetched, posted;

	(void)state;
	scene_make(&fetched);
	scene_start(&fetched);
	scene_make(&posted);
	posted.world->nodes[0].dev.limits.program_descs = 0;
	scene_start(&posted);
	assert_true(posted.requests[0]->stage <= MUSTER_SEQ_QUEUE_MAX);
	assert_null(posted.requests[0]->fetched);
	scene_end(&fetched, 0);
	scene_end(&posted, 0);
	assert_memory_equal(fetched.values, posted.values, sizeof(fetched.values));
}

/* Its buffers are registered already. */
static void test_without_memory_for_its_descriptors_its_stages_are_posted(void **state)
{
	static struct scene scene;
	struct muster_request *both[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	(void)state;
	scene_make(&scene);
	for (uint32_t i = 0; i < 2; i++) {
		scene.values[i][LONG - 1] = 1 + i;
		assert_int_equal(muster_allreduce_init(scene.world->comms[i], scene.values[i],
						       scene.values[i], LONG, MUSTER_F64, MUSTER_SUM,
						       &scene.requests[i]), 0);
	}
	scene.world->nodes[0].register_err = -ENOMEM;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_start(scene.requests[i]), 0);
	assert_null(scene.requests[0]->fetched);
	assert_non_null(scene.requests[1]->fetched);
	memcpy(both, scene.requests, sizeof(both));
	test_finish(scene.world, both, results);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(results[i], 0);
		assert_true(scene.values[i][LONG - 1] == 3);
		assert_int_equal(muster_request_free(scene.requests[i]), 0);
	}
	test_world_free(scene.world);
}

/* The device's queue is full for a while: all is made, bound and registered once. */
static void test_what_is_laid_down_stays_until_there_is_room(void **state)
{
	static struct scene scene;
	const struct muster_desc *fetched;
	struct test_node *node;
	uint64_t lives;

	(void)state;
	scene_make(&scene);
	node = &scene.world->nodes[0];
	node->post_err = -EAGAIN;
	scene_start(&scene);
	fetched = scene.requests[0]->fetched;
	assert_non_null(fetched);
	assert_int_equal(scene.requests[0]->stage, 0);
	lives = node->lives;
	for (int i = 0; i < 20; i++)
		muster_progress(scene.world->jobs[0]);
	assert_ptr_equal(scene.requests[0]->fetched, fetched);
	assert_int_equal(node->lives, lives);
	node->post_err = 0;
	scene_end(&scene, 0);
}

/* A larger one finds the scratch too small: it lies elsewhere then. */
static void scratch_moves(struct test_world *world)
{
	enum { NR = 4 * LONG };
	static double values[2][NR];
	const void *scratch = world->comms[0]->warm->scratch;
	struct muster_request *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	assert_non_null(scratch);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_start(world->comms[i], values[i], values[i], NR,
							MUSTER_F64, MUSTER_SUM, &requests[i]), 0);
	test_finish(world, requests, results);
	assert_int_equal(results[0] | results[1], 0);
	assert_ptr_not_equal(world->comms[0]->warm->scratch, scratch);
}

/* Nothing is made or registered after the first start, and the operands are those of each. */
static void test_a_persistent_one_keeps_what_it_has_laid_down(void **state)
{
	static struct scene scene;
	struct muster_request *both[TEST_RANKS_MAX];
	const struct muster_desc *fetched = NULL;
	int results[TEST_RANKS_MAX];

	(void)state;
	scene_make(&scene);
	exchange_schedule(scene.world);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_allreduce_init(scene.world->comms[i], scene.values[i], scene.values[i],
						       LONG, MUSTER_F64, MUSTER_SUM, &scene.requests[i]), 0);
	for (int start = 0; start < 6; start++) {
		uint64_t lives = scene.world->nodes[0].lives;

		for (uint32_t i = 0; i < 2; i++) {
			for (uint32_t k = 0; k < LONG; k++)
				scene.values[i][k] = 100 * start + 10 * i + k;
			assert_int_equal(muster_start(scene.requests[i]), 0);
		}
		assert_non_null(scene.requests[0]->fetched);
		assert_true(!start || (scene.requests[0]->fetched == fetched &&
				       scene.world->nodes[0].lives == lives));
		fetched = scene.requests[0]->fetched;
		memcpy(both, scene.requests, sizeof(both));
		test_finish(scene.world, both, results);
		assert_int_equal(results[0] | results[1], 0);
		for (uint32_t i = 0; i < 2; i++)
			for (uint32_t k = 0; k < LONG; k++)
				assert_true(scene.values[i][k] == 200 * start + 10 + 2.0 * k);
		if (start == 2)
			scratch_moves(scene.world);
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(muster_request_free(scene.requests[i]), 0);
	test_world_free(scene.world);
}

/* Nor does it stay behind when the communicator ends before. */
static void test_what_is_laid_down_goes_with_a_communicator_that_fails(void **state)
{
	static struct scene scene;
	struct test_node *node;
	bool done;

	(void)state;
	scene_make(&scene);
	node = &scene.world->nodes[0];
	node->post_err = -EAGAIN;
	scene_start(&scene);
	assert_non_null(scene.requests[0]->fetched);
	test_abort(&node->dev, scene.world->jobs[0]->id, scene.world->comms[0]->context,
		   MUSTER_STATUS_ABORTED, MUSTER_CULPRIT_NONE);
	while (!scene.world->comms[0]->failed || !scene.world->comms[1]->failed)
		for (uint32_t i = 0; i < 2; i++)
			muster_progress(scene.world->jobs[i]);
	assert_int_not_equal(muster_test(scene.requests[0], &done), 0);
	assert_int_not_equal(muster_test(scene.requests[1], &done), 0);
	node->post_err = 0;
	test_world_free(scene.world);
}

static void test_how_far_one_is_can_be_seen(void **state)
{
	static struct scene scene;
	uint32_t done = 7, all = 7, before = 0, seen = 0, nr;

	(void)state;
	scene_make(&scene);
	scene_start(&scene);
	assert_int_equal(muster_request_progress(scene.requests[0], &done, &all), 0);
	assert_int_equal(done, 0);
	nr = scene.requests[0]->entry->program->nr_stages;
	while (done < all) {
		assert_int_equal(all, nr);
		assert_true(done >= before);
		seen += done > before;
		before = done;
		for (uint32_t i = 0; i < 2; i++)
			muster_progress(scene.world->jobs[i]);
		assert_int_equal(muster_request_progress(scene.requests[0], &done, &all), 0);
	}
	assert_int_equal(scene.requests[0]->state, MUSTER_REQUEST_DONE);
	assert_true(seen > 2);
	assert_int_equal(muster_request_progress(NULL, &done, &all), -EINVAL);
	assert_int_equal(muster_request_progress(scene.requests[0], NULL, &all), -EINVAL);
	scene_end(&scene, 0);
}

/* What lies in memory is read when there is room, and checked then. */
static void test_a_stage_that_is_spoilt_ends_the_communicator(void **state)
{
	static struct scene scene;
	struct muster_request *request;

	(void)state;
	scene_make(&scene);
	scene_start(&scene);
	request = scene.requests[0];
	assert_non_null(request->fetched);
	request->fetched[request->entry->program->nr_descs - 1].kind = 99;
	devices_run(&scene);
	for (int k = 0; k < 20; k++)
		for (uint32_t i = 0; i < 2; i++)
			muster_progress(scene.world->jobs[i]);
	assert_int_equal(scene.world->comms[0]->failed, scene.world->comms[1]->failed);
	assert_int_not_equal(scene.world->comms[0]->failed, 0);
	scene_end(&scene, scene.world->comms[0]->failed);
}

/* A small one behind it finds its place, and one elsewhere is not held up. */
static void test_what_is_started_behind_it_waits_for_room(void **state)
{
	static struct scene scene;
	struct muster_request *small[TEST_RANKS_MAX] = { NULL };
	int64_t values[2] = { 1, 2 };
	int results[TEST_RANKS_MAX];

	(void)state;
	scene_make(&scene);
	scene.world->one_queue = true;
	scene_start(&scene);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(muster_comm_schedule(scene.world->comms[i], "recursive-doubling"), 0);
		assert_int_equal(muster_allreduce_start(scene.world->comms[i], &values[i], &values[i], 1,
							MUSTER_I64, MUSTER_SUM, &small[i]), 0);
		assert_int_equal(small[i]->stage, 0);
	}
	test_finish(scene.world, small, results);
	assert_int_equal(results[0] | results[1], 0);
	assert_int_equal(values[0], 3);
	assert_int_equal(values[1], 3);
	scene_end(&scene, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_of_more_stages_than_a_queue_holds_come_to_their_end),
		cmocka_unit_test(test_they_run_to_their_end_while_their_caller_is_away),
		cmocka_unit_test(test_a_device_that_fetches_none_computes_the_same_bits),
		cmocka_unit_test(test_without_memory_for_its_descriptors_its_stages_are_posted),
		cmocka_unit_test(test_what_is_laid_down_stays_until_there_is_room),
		cmocka_unit_test(test_what_is_laid_down_goes_with_a_communicator_that_fails),
		cmocka_unit_test(test_a_persistent_one_keeps_what_it_has_laid_down),
		cmocka_unit_test(test_how_far_one_is_can_be_seen),
		cmocka_unit_test(test_a_stage_that_is_spoilt_ends_the_communicator),
		cmocka_unit_test(test_what_is_started_behind_it_waits_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
