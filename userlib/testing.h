/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests only: N ranks in one process. Each has a job of its own on a device of
 * test_device.h. Joining and making communicators block, so each rank does them on a
 * thread; afterwards one thread drives all ranks.
 */
#ifndef MUSTER_TESTING_H
#define MUSTER_TESTING_H

#include "test_device.h"

static inline int test_allgather(void *opaque, const void *in, void *out, size_t bytes)
{
	struct test_node *node = opaque;
	struct test_world *world = node->world;

	assert_true(bytes * world->size <= TEST_GATHER_MAX);
	memcpy(world->gathered + node->node * bytes, in, bytes);
	pthread_barrier_wait(&world->barrier);
	memcpy(out, world->gathered, bytes * world->size);
	pthread_barrier_wait(&world->barrier);
	return 0;
}

static inline struct test_world *test_world_new(uint32_t size)
{
	struct test_world *world = calloc(1, sizeof(*world));

	world->size = size;
	world->ring_slots = TEST_RING_MAX;
	for (uint32_t i = 0; i < size; i++) {
		world->nodes[i].world = world;
		world->nodes[i].node = i;
		world->nodes[i].inbox_end = &world->nodes[i].inbox;
	}
	pthread_barrier_init(&world->barrier, NULL, size);
	pthread_mutex_init(&world->lock, NULL);
	return world;
}

struct test_thread {
	struct test_world *world;
	uint32_t rank;
	void *(*run)(void *thread);
	const void *argument;
};

/* Run the same on every rank at once, each on its own thread. */
static inline void test_all(struct test_world *world, void *(*run)(void *thread),
			    const void *argument)
{
	struct test_thread all[TEST_RANKS_MAX];
	pthread_t threads[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < world->size; i++) {
		all[i] = (struct test_thread){ world, i, run, argument };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &all[i]), 0);
	}
	for (uint32_t i = 0; i < world->size; i++)
		pthread_join(threads[i], NULL);
}

static inline void *test_join_run(void *opaque)
{
	struct test_thread *thread = opaque;
	struct test_world *world = thread->world;
	const struct muster_oob oob = {
		.rank = thread->rank,
		.size = world->size,
		.allgather = test_allgather,
		.opaque = &world->nodes[thread->rank],
	};
	int err = muster_job_join(&oob, false, test_dev_open, &world->jobs[thread->rank]);

	world->results[thread->rank] = err;
	strcpy(world->said[thread->rank], err ? muster_error(NULL) : "");
	if (!err)
		world->comms[thread->rank] = muster_world(world->jobs[thread->rank]);
	return NULL;
}

/* A world whose ranks have all joined. */
static inline struct test_world *test_joined(uint32_t size, uint32_t ring_slots)
{
	struct test_world *world = test_world_new(size);

	world->ring_slots = ring_slots;
	test_all(world, test_join_run, NULL);
	for (uint32_t i = 0; i < size; i++) {
		if (world->results[i])
			fail_msg("rank %u: %s", i, world->said[i]);
	}
	return world;
}

static inline void test_world_free(struct test_world *world)
{
	for (uint32_t i = 0; i < world->size; i++) {
		muster_finalize(world->jobs[i]);
		assert_int_equal(world->nodes[i].registered, 0);
	}
	pthread_mutex_destroy(&world->lock);
	pthread_barrier_destroy(&world->barrier);
	free(world);
}

/* The node's process is gone: it says nothing any more, and the others notice. */
static inline void test_kill(struct test_world *world, uint32_t rank)
{
	world->nodes[rank].dead = true;
	for (uint32_t i = 0; i < world->size; i++)
		if (i != rank)
			muster_engine_peer_lost(world->nodes[i].engine, rank);
}

/*
 * Drive all ranks in turn until all requests (NULL: none) are done; results by rank. Not inline: compilers would
 * take `size` for more than the caller has.
 */
static __attribute__((noinline, unused)) void test_finish(struct test_world *world,
							 struct muster_request **requests, int *results)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < world->size; i++)
		left += requests[i] != NULL;
	for (uint32_t turn = 0; left; turn++) {
		if (turn == 100000)
			fail_msg("%u ranks do not finish", left);
		for (uint32_t i = 0; i < world->size; i++) {
			bool done = false;

			if (!requests[i])
				continue;
			results[i] = muster_test(requests[i], &done);
			if (!done)
				continue;
			requests[i] = NULL;
			left--;
		}
	}
}

static inline void offload_all(struct test_world *world, enum muster_offload offload)
{
	for (uint32_t i = 0; i < world->size; i++)
		assert_int_equal(muster_comm_offload(world->comms[i], offload), 0);
}

#endif /* MUSTER_TESTING_H */
