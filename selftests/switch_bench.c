// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How fast a switch reduces: packets of one MTU with their headers, from sources whose
 * data is larger than the caches, through the whole of muster_switch_receive(); beside memcpy
 * of the same data, in turns. What a reduction must move is what it reads; memcpy reads and
 * writes, so twice its bytes a second is the limit. Times are CPU times of this thread.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "switch.h"

enum {
	TURNS = 21,
	SOURCES_MAX = 40,
	TOTAL = 320 << 20,	/* bytes of all sources together */
	KEY = 77,
};

static uint8_t *data, *copy;
static uint64_t results;

static int discard(void *world, uint32_t port, const struct muster_packet *packet,
		   const void *payload)
{
	(void)world;
	(void)port;
	(void)packet;
	(void)payload;
	results++;
	return 0;
}

static void discard_once(void *world, uint32_t port, const struct muster_packet *packet,
			 const void *payload)
{
	discard(world, port, packet, payload);
}

static void *allocate(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static void release(void *world, void *p, size_t bytes)
{
	(void)world;
	(void)bytes;
	free(p);
}

static const struct muster_switch_world world = {
	.send = discard, .send_once = discard_once, .alloc = allocate, .free = release,
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static struct muster_switch *open_switch(uint32_t sources)
{
	struct muster_switch_config config = { .node = MUSTER_NODE_AGGREGATION, .radix = sources };
	struct muster_switch_child children[SOURCES_MAX];
	struct muster_switch_group group = {
		.tree = 1, .type = MUSTER_SWITCH_SAT, .group = 1, .key = KEY,
		.parent_port = MUSTER_SWITCH_NO_PORT, .nr_children = sources, .children = children,
	};
	struct muster_switch *sw;

	for (uint32_t i = 0; i < sources; i++)
		children[i] = (struct muster_switch_child){ .node = i, .port = i, .member = i };
	if (muster_switch_create(&config, &world, NULL, &sw) || muster_switch_group_add(sw, &group))
		errx(1, "no switch");
	return sw;
}

/* Bytes a second of all sources together. */
static double reduce(uint32_t sources)
{
	struct muster_switch *sw = open_switch(sources);
	uint32_t segments = TOTAL / sources / MUSTER_MTU;
	size_t each = (size_t)segments * MUSTER_MTU;
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP,
		.dst_node = MUSTER_NODE_AGGREGATION, .tree = 1, .group = 1, .job_key = KEY,
		.total = MUSTER_MTU, .length = MUSTER_MTU,
		.signature = { .type = MUSTER_DTYPE_F32, .op = MUSTER_REDOP_SUM },
	};
	double begin, end;

	results = 0;
	begin = now();
	for (packet.pulse = 0; packet.pulse < segments; packet.pulse++)
		for (uint32_t i = 0; i < sources; i++) {
			packet.src_node = packet.src_member = i;
			muster_switch_receive(sw, i, &packet,
					      data + i * each + (size_t)packet.pulse * MUSTER_MTU,
					      MUSTER_MTU);
		}
	end = now();
	if (results != (uint64_t)segments * sources)
		errx(1, "%llu results of %llu", (unsigned long long)results,
		     (unsigned long long)segments * sources);
	muster_switch_destroy(sw);
	return each * sources / (end - begin);
}

static double copying(void)
{
	double begin = now();

	memcpy(copy, data, TOTAL);
	return TOTAL / (now() - begin);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, TURNS, sizeof(*values), compare);
	return values[TURNS / 2];
}

int main(void)
{
	double copied[TURNS], of_8[TURNS], of_40[TURNS], limit, eight, forty;

	data = malloc(TOTAL);
	copy = malloc(TOTAL);
	if (!data || !copy)
		err(1, NULL);
	for (size_t i = 0; i < TOTAL / sizeof(float); i++)
		((float *)data)[i] = i % 1000;
	memset(copy, 0, TOTAL);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		copied[turn] = copying();
		of_8[turn] = reduce(8);
		of_40[turn] = reduce(40);
	}
	limit = 2 * median(copied);
	eight = median(of_8);
	forty = median(of_40);
	printf("memcpy: %.2f GB/s, so reading: %.2f GB/s\n", limit / 2e9, limit / 1e9);
	printf("8 sources: %.2f GB/s, %.0f %% of that\n", eight / 1e9, 100 * eight / limit);
	printf("40 sources: %.2f GB/s, %.1f %% of 8 sources, byte by byte\n", forty / 1e9,
	       100 * forty / eight);
	free(data);
	free(copy);
	return 0;
}
