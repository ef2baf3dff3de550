// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The largest receive ring that can be had, which lies in parts that need not adjoin: it takes
 * a whole message in each slot, also where that goes on in the next part, and dies to its end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port.h"

enum { LAST_OF_ONE_PIECE = 512 };	/* what 4 MiB hold */

struct ring {
	struct pair pair;
	uint8_t *memory;		/* message i is MUSTER_MTU bytes from its i-th on */
	struct ibv_mr *mr;
	uint32_t entries;
};

static int one_ring(void **state)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	struct musterdv_info info;
	struct ibv_context *ctx = device_open();
	size_t bytes;

	assert_non_null(ctx);
	musterdv_query(ctx, &info);
	ring->entries = info.rq_entries_max;
	assert_int_equal(pair_open_sized(&ring->pair, ctx, ring->entries), 0);
	bytes = 2 * ring->entries + MUSTER_MTU;
	ring->memory = malloc(bytes);
	for (size_t i = 0; i < bytes; i++)
		ring->memory[i] = (i * 2654435761u >> 24) | 1;
	ring->mr = ibv_reg_mr(ring->pair.pd, ring->memory, bytes, 0);
	assert_non_null(ring->mr);
	*state = ring;
	return 0;
}

static int no_ring(void **state)
{
	struct ring *ring = *state;
	int err;

	ibv_dereg_mr(ring->mr);
	err = pair_close(&ring->pair);
	free(ring->memory);
	free(ring);
	return err;
}

static void message_put(struct ring *ring, uint32_t i)
{
	struct muster_desc desc = pair_message(&ring->pair, "");

	desc.kind = MUSTER_DESC_RDMA;
	desc.range.load_addr = htole64((uintptr_t)(ring->memory + i));
	desc.range.load_key = htole32(ring->mr->lkey);
	desc.length = htole64(MUSTER_MTU);
	pair_put(&ring->pair, desc);
}

/* Messages [from, to), a queue at a time; nothing is given back of the receive ring. */
static void messages_send(struct ring *ring, uint32_t from, uint32_t to)
{
	while (from < to) {
		uint32_t end = to - from < PORT_ENTRIES ? to : from + PORT_ENTRIES;

		for (uint32_t i = from; i < end; i++)
			message_put(ring, i);
		pair_ring(&ring->pair);
		for (; from < end; from++) {
			while (!port_completion(ring->pair.vps[0], from))
				usleep(50);
			assert_int_equal(port_completion(ring->pair.vps[0], from)->status,
					 MUSTER_STATUS_OK);
		}
		musterdv_doorbell(ring->pair.vps[0], MUSTER_DOORBELL_CQ_HEAD, end);
	}
}

static void messages_are_there(const struct ring *ring, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		while (!port_packet(ring->pair.vps[1], i))
			usleep(50);
		assert_memory_equal(port_packet(ring->pair.vps[1], i)->payload, ring->memory + i,
				    MUSTER_MTU);
	}
}

static void each_slot_holds_a_whole_message_in_each_lap(void **state)
{
	struct ring *ring = *state;
	uint32_t nr = ring->entries;

	assert_true(nr > LAST_OF_ONE_PIECE);
	messages_send(ring, 0, nr);
	messages_are_there(ring, 0, nr);
	musterdv_doorbell(ring->pair.vps[1], MUSTER_DOORBELL_RQ_HEAD, nr);
	messages_send(ring, nr, 2 * nr);
	messages_are_there(ring, nr, 2 * nr);
}

/* Returns when all is over, so somebody else calls it. */
static void *device_reset(void *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, "1", 1) == 1;

	close(fd);
	return done ? path : NULL;
}

static void fatal_await(const struct ring *ring)
{
	struct pollfd fd = { .fd = ring->pair.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	assert_int_equal(poll(&fd, 1, PORT_WAIT_MS), 1);
	assert_int_equal(ibv_get_async_event(ring->pair.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
}

/* The end first: soon after this is told the kernel puts a page of zeros in the place of each. */
static void all_of_it_is_zero_when_the_device_has_died(void **state)
{
	struct ring *ring = *state;
	const struct musterdv_vp *vp = ring->pair.vps[1];
	size_t page = sysconf(_SC_PAGESIZE), bytes = vp->rq_entries * sizeof(*vp->rq);
	const uint64_t *words = (const void *)vp->rq;
	char path[IBV_SYSFS_PATH_MAX + 16];
	pthread_t resetter;
	void *done;

	messages_send(ring, 0, ring->entries);
	messages_are_there(ring, ring->entries - 1, ring->entries);
	snprintf(path, sizeof(path), "%s/device/reset", ring->pair.ctx->device->ibdev_path);
	assert_int_equal(pthread_create(&resetter, NULL, device_reset, path), 0);
	fatal_await(ring);
	for (size_t i = ((bytes + page - 1) & ~(page - 1)) / sizeof(*words); i--; )
		if (words[i])
			fail_msg("word %zu of a dead ring is not zero", i);
	pthread_join(resetter, &done);
	assert_non_null(done);
}

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, one_ring, no_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(each_slot_holds_a_whole_message_in_each_lap),
		WITH_RING(all_of_it_is_zero_when_the_device_has_died),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
