// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How fast a switch reduces: packets of one MTU with their headers, from sources whose data is larger
 * than the caches, one packet of each port in turn; through the whole of muster_switch_lend(), and of
 * muster_switch_receive(), for which nothing stays where it has come. Beside it memcpy of the same data,
 * in turns. What a reduction must move is what it reads, each byte once, as its results stay in the cache;
 * memcpy of so much reads and writes past the cache. So twice its bytes a second is the limit. A bare loop
 * that only adds up the same sources, eight side by side, shows what is left of that without any switch; packets of
 * one line that are in the caches show what a packet costs whatever its length.
 * Times are CPU times of this thread.
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
	LINE = 64,		/* of a cache */
	FEW = 8,
};

#ifdef __x86_64__
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

typedef float floats __attribute__((vector_size(32), may_alias));

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

typedef int take_packet(struct muster_switch *sw, uint32_t port, const struct muster_packet *packet,
		    const void *payload, uint32_t len);

/* As their wire has put them there, long before they are looked at. */
static void headers_write(struct muster_packet *headers, uint32_t sources, uint32_t len)
{
	for (uint32_t i = 0; i < sources; i++)
		headers[i] = (struct muster_packet){
			.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP,
			.src_node = i, .src_member = i, .dst_node = MUSTER_NODE_AGGREGATION, .tree = 1, .group = 1,
			.job_key = KEY, .total = len, .length = (uint16_t)len,
			.signature = { .type = MUSTER_DTYPE_F32, .op = MUSTER_REDOP_SUM },
		};
}

/* So many bytes of each packet are data. Return: packets a second, of all sources together. */
static double reduce(uint32_t sources, take_packet *take, uint32_t len)
{
	struct muster_switch *sw = open_switch(sources);
	struct muster_packet headers[SOURCES_MAX];
	uint32_t segments = TOTAL / sources / MUSTER_MTU;
	size_t each = (size_t)segments * len;
	double begin = 0, end;

	results = 0;
	headers_write(headers, sources, len);
	for (uint32_t pulse = 0; pulse < segments; pulse++) {
		if (pulse == 1)
			begin = now();	/* what the switch keeps of a segment is there */
		for (uint32_t i = 0; i < sources; i++) {
			take(sw, i, &headers[i], data + i * each + (size_t)pulse * len, len);
			headers[i].pulse++;
		}
		muster_switch_give_back(sw);
	}
	end = now();
	if (results != (uint64_t)segments * sources)
		errx(1, "%llu results of %llu", (unsigned long long)results,
		     (unsigned long long)segments * sources);
	muster_switch_destroy(sw);
	return (double)(segments - 1) * sources / (end - begin);
}

static double bytes(uint32_t sources, take_packet *take)
{
	return MUSTER_MTU * reduce(sources, take, MUSTER_MTU);
}

/* A line of eight sources, which lie so far apart, and what others have come to. */
#define ADD(from, each, begin)                                                                   \
	(*(const floats *)(from) + *(const floats *)((from) + (each)) +                          \
	 *(const floats *)((from) + 2 * (each)) + *(const floats *)((from) + 3 * (each)) +       \
	 *(const floats *)((from) + 4 * (each)) + *(const floats *)((from) + 5 * (each)) +       \
	 *(const floats *)((from) + 6 * (each)) + *(const floats *)((from) + 7 * (each)) + (begin))

/* The same bytes in the same order, eight sources at a time, and nothing else. */
CLONES
static double adding(uint32_t sources)
{
	static uint8_t sums[MUSTER_MTU] __attribute__((aligned(LINE)));
	size_t segments = TOTAL / sources / MUSTER_MTU, each = segments * MUSTER_MTU;
	double begin = now();

	for (size_t segment = 0; segment < segments; segment++) {
		for (uint32_t first = 0; first < sources; first += FEW) {
			const uint8_t *from = data + first * each + segment * MUSTER_MTU;

			for (size_t at = 0; at < MUSTER_MTU; at += sizeof(floats)) {
				floats *sum = (floats *)(sums + at);

				*sum = ADD(from + at, each, first ? *sum : (floats){ 0 });
			}
		}
	}
	return (double)segments * sources * MUSTER_MTU / (now() - begin);
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

/* Beside another measure: turn by turn, as the machine may be slower in one turn than in the next. */
static void row(const char *what, const double *values, const double *beside, const char *of)
{
	double sorted[TURNS], ratios[TURNS];

	for (uint32_t turn = 0; turn < TURNS; turn++) {
		sorted[turn] = values[turn];
		ratios[turn] = 100 * values[turn] / beside[turn];
	}
	median(sorted);
	median(ratios);
	printf("%-44s %6.2f GB/s (%.2f to %.2f), %5.1f %% (%.1f to %.1f) of %s\n", what,
	       sorted[TURNS / 2] / 1e9, sorted[0] / 1e9, sorted[TURNS - 1] / 1e9, ratios[TURNS / 2],
	       ratios[TURNS / 4], ratios[3 * TURNS / 4], of);
}

/* Nanoseconds, if 85 % of the limit are to be reached and nothing is hidden behind memory. */
static double left_for_a_head(double limit, double bare)
{
	return 1e9 * MUSTER_MTU * (1 / (0.85 * limit) - 1 / bare);
}

int main(void)
{
	double copied[TURNS], bare[TURNS], bare_40[TURNS], of_8[TURNS], of_40[TURNS], alone[TURNS], heads[TURNS];

	data = aligned_alloc(MUSTER_MTU, TOTAL);
	copy = aligned_alloc(MUSTER_MTU, TOTAL);
	if (!data || !copy)
		err(1, NULL);
	for (size_t i = 0; i < TOTAL / sizeof(float); i++)
		((float *)data)[i] = i % 1000;
	memset(copy, 0, TOTAL);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		copied[turn] = 2 * copying();
		bare[turn] = adding(8);
		bare_40[turn] = adding(40);
		of_8[turn] = bytes(8, muster_switch_lend);
		of_40[turn] = bytes(40, muster_switch_lend);
		alone[turn] = bytes(8, muster_switch_receive);
		heads[turn] = 1e9 / reduce(8, muster_switch_lend, LINE);
	}
	printf("median of %d turns, the least and the most; ratios turn by turn, their median and quartiles\n", TURNS);
	row("memcpy, read and written", copied, copied, "memcpy's traffic");
	row("a bare loop that adds 8 sources", bare, copied, "memcpy's traffic");
	row("the same of 40, eight at a time", bare_40, bare, "8 sources, byte by byte");
	row("8 sources, packets lent", of_8, copied, "memcpy's traffic");
	row("40 sources, packets lent", of_40, of_8, "8 sources, byte by byte");
	row("8 sources, packets gone after each call", alone, copied, "memcpy's traffic");
	printf("%-44s %6.1f ns a packet; the limit leaves %.1f for it beside the bare loop\n", "8 sources, packets of one line, in the caches",
	       median(heads), left_for_a_head(median(copied), median(bare)));
	free(data);
	free(copy);
	return 0;
}
