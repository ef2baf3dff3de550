// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the packet buffer costs: 8-byte packets come shuffled, lie in the buffer, and are matched
 * and added in order, as many as fill 90 % of the 8,192 slots of 64 bytes that the Tianhe paper's
 * 512 KiB have. They come as many at once as a socket gives. Beside it the same keys in a bare hash
 * table of that size, by open addressing: inserted shuffled, found in order, added and deleted. What
 * the table has nothing like, the checking of descriptors as they are posted, counts apart. Times are
 * the processor's, the least of many rounds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "zeroed.h"

enum {
	SLOTS = 8192,
	SOURCES = 16,				/* packets of one descriptor */
	CONTEXTS = SLOTS * 9 / 10 / SOURCES,
	PACKETS = CONTEXTS * SOURCES,
	BURST = MUSTER_ENGINE_EXPECT_MAX,
	ROUNDS = 200,
	JOB = 3, VP = 5, PEER_VP = 7, NODE = 0, PEER = 1,
};

_Static_assert(PACKETS % BURST == 0, "whole bursts");

static struct muster_packet packets[PACKETS];	/* shuffled */
static double values[PACKETS];
static struct muster_engine *engine;
static uint32_t ended;
static uint64_t seed = 1;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint32_t below(uint32_t bound)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % bound;
}

/* ---- the engine --------------------------------------------------------------------- */

static int world_read(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, void *to, uint32_t len)
{
	(void)opaque;
	(void)vp;
	(void)key;
	(void)addr;
	(void)to;
	(void)len;
	return -1;
}

static int world_write(void *opaque, uint16_t vp, uint32_t key, uint64_t addr, const void *from,
		       uint32_t len)
{
	(void)opaque;
	(void)vp;
	(void)key;
	(void)addr;
	(void)from;
	(void)len;
	return -1;
}

static int world_deliver(void *opaque, uint16_t vp, const struct muster_packet *packet,
			 const void *payload)
{
	(void)opaque;
	(void)vp;
	(void)packet;
	(void)payload;
	return -1;
}

static uint64_t world_key_life(void *opaque, uint16_t vp, uint32_t key)
{
	(void)opaque;
	(void)vp;
	(void)key;
	return 0;
}

static int world_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
		      const void *payload)
{
	(void)opaque;
	(void)incarnation;
	(void)packet;
	(void)payload;
	return 0;
}

static int world_complete(void *opaque, uint16_t vp, const struct muster_cqe *cqe)
{
	(void)opaque;
	(void)vp;
	ended += !cqe->status;
	return 0;
}

static const struct muster_signature signature = {
	.coll = 3, .type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_SUM,
};

static bool begin(void)
{
	static const struct muster_engine_world world = {
		.dma_read = world_read, .dma_write = world_write,
		.key_life = world_key_life, .send = world_send, .complete = world_complete,
		.deliver = world_deliver, .alloc = muster_zeroed, .free = muster_zeroed_free,
	};
	static const struct muster_member members[] = {
		{ .node = NODE, .vp = VP, .incarnation = 1 },
		{ .node = PEER, .vp = PEER_VP, .incarnation = 1 },
	};
	const struct muster_engine_config config = { .node = NODE, .model.units = 1 };

	if (muster_engine_create(&config, &world, NULL, &engine) || muster_engine_vp_open(engine, VP))
		return false;
	for (uint32_t c = 0; c < CONTEXTS; c++) {
		const struct muster_context_config context = {
			.job = JOB, .context = c, .vp = VP, .nr_members = 2, .members = members,
		};

		if (muster_engine_context_open(engine, &context))
			return false;
	}
	return true;
}

static void shuffle(uint32_t number)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		packets[i] = (struct muster_packet){
			.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .job = JOB,
			.src_node = PEER, .src_vp = PEER_VP, .src_member = 1, .dst_node = NODE,
			.dst_vp = VP, .context = i / SOURCES, .seq_id = i % SOURCES,
			.number = number, .base = number, .incarnation = 1,
			.signature = signature, .total = sizeof(double), .length = sizeof(double),
		};
	}
	for (uint32_t i = PACKETS; i > 1; i--) {
		uint32_t j = below(i);
		struct muster_packet one = packets[i - 1];

		packets[i - 1] = packets[j];
		packets[j] = one;
	}
}

/* A sequence of one descriptor in each context, in order. */
static bool post(void)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .src_vp = VP, .job = JOB, .signature = signature,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
			 MUSTER_DESC_COLL_END,
		.cp_count = SOURCES, .inline_len = sizeof(double), .length = sizeof(double),
	};

	for (uint32_t c = 0; c < CONTEXTS; c++) {
		desc.context = (uint16_t)c;
		if (muster_engine_post(engine, VP, &desc, 1, NULL))
			return false;
	}
	return true;
}

static void receive(void)
{
	const struct muster_packet *next[BURST];

	for (uint32_t i = 0; i < PACKETS; i++) {
		if (i % BURST == 0) {
			for (uint32_t j = 0; j < BURST; j++)
				next[j] = &packets[i + j];
			muster_engine_expect(engine, next, BURST);
		}
		muster_engine_receive(engine, &packets[i], &values[i], sizeof(values[i]));
	}
}

/* Nanoseconds for a packet; 0: something went wrong. Of them those for posting are not. */
static double by_engine(uint32_t number, double *posting)
{
	double began, came, posted, done;

	shuffle(number);
	ended = 0;
	began = now_ns();
	receive();
	came = now_ns();
	if (!post())
		return 0;
	posted = now_ns();
	while (muster_engine_step(engine, 1 << 20))
		;
	done = now_ns();
	*posting = (posted - came) / PACKETS;
	return ended == CONTEXTS ? (came - began + done - posted) / PACKETS : 0;
}

/* ---- a bare table ------------------------------------------------------------------- */

static struct slot {
	_Alignas(64) uint64_t key;		/* 0: empty */
	double value;
} table[SLOTS];

static uint32_t place_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 51);
}

static uint64_t key_of(const struct muster_packet *packet)
{
	return (uint64_t)packet->job << 40 | (uint64_t)packet->context << 16 |
	       (uint64_t)(packet->number & 0x3ff) << 6 | packet->seq_id << 1 | 1;
}

/* What lies behind it and would not be found any more moves up. */
static void delete(uint32_t at)
{
	for (uint32_t next = (at + 1) % SLOTS; table[next].key; next = (next + 1) % SLOTS)
		if ((next - place_of(table[next].key)) % SLOTS >= (next - at) % SLOTS) {
			table[at] = table[next];
			at = next;
		}
	table[at].key = 0;
}

static double by_table(uint32_t number, volatile double *sum)
{
	double began = now_ns();
	uint32_t at;

	for (uint32_t i = 0; i < PACKETS; i++) {
		uint64_t key = key_of(&packets[i]);

		for (at = place_of(key); table[at].key; at = (at + 1) % SLOTS)
			;
		table[at].key = key;
		table[at].value = values[i];
	}
	for (uint32_t i = 0; i < PACKETS; i++) {
		const struct muster_packet packet = {
			.job = JOB, .context = i / SOURCES, .number = number, .seq_id = i % SOURCES,
		};
		uint64_t key = key_of(&packet);

		for (at = place_of(key); table[at].key != key; at = (at + 1) % SLOTS)
			;
		*sum += table[at].value;
		delete(at);
	}
	return (now_ns() - began) / PACKETS;
}

int main(void)
{
	double engine_ns = 0, table_ns = 0, posting_ns = 0;
	volatile double sum = 0;

	if (!begin()) {
		fprintf(stderr, "muster_match: no engine\n");
		return 1;
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		double posting = 0, ns = by_engine(round, &posting), bare = by_table(round, &sum);

		if (!ns) {
			fprintf(stderr, "muster_match: a sequence has not ended\n");
			return 1;
		}
		engine_ns = !round || ns < engine_ns ? ns : engine_ns;
		posting_ns = !round || posting < posting_ns ? posting : posting_ns;
		table_ns = !round || bare < table_ns ? bare : table_ns;
	}
	printf("%d packets of 8 bytes, shuffled, in %d slots of 64 bytes (%d %%)\n", PACKETS, SLOTS,
	       100 * PACKETS / SLOTS);
	printf("bare hash table     %6.1f ns a packet, %6.1f M a second\n", table_ns, 1e3 / table_ns);
	printf("engine              %6.1f ns a packet, %6.1f M a second: %.0f %% of it\n", engine_ns,
	       1e3 / engine_ns, 100 * table_ns / engine_ns);
	printf("posting beside it   %6.1f ns a packet: a descriptor for each %d\n", posting_ns, SOURCES);
	muster_engine_destroy(engine);
	return 0;
}
