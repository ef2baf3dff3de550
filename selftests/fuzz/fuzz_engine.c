// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Descriptors and packets that are almost right, to one of two engines that otherwise talk to
 * each other; contexts come and go. Nothing is left in the end.
 */
#define WORLD_NODES 2
#define WORLD_BYTES (64 << 10)
#define WORLD_COPIES 1
#define WORLD_CQES_MAX 64
#define WORLD_FLIGHT_MAX 128
#include "fuzz.h"
#include "test_world.h"

enum { BUFFER = 4 * MUSTER_MTU, ACTS_MAX = 64, DESCS_MAX = 4, PROGRAM = 0xc000, RUNS = 12 };

static struct muster_desc desc_of(struct fuzz *fuzz, uint32_t self, uint32_t flags)
{
	static const uint32_t lengths[] = { 8, 64, 4096, 5000, 0, 9000 };
	uint8_t how = fuzz_byte(fuzz), more = fuzz_byte(fuzz);
	double value = how;
	struct muster_desc desc =
		how % 2 ? desc_mp(flags, more % 3, how % 4 == 1 ? &value : NULL) :
			  desc_rdma(flags, more % 3, lengths[how / 8 % 6] / 8 * 8, 4096);

	if (how & 4)
		desc_to(&desc, !self, more / 4 % 8);
	if (how & 8)
		desc_store(&desc, more * 64);
	if (!(how % 2) || !desc.inline_len)
		desc_load(&desc, 0x8000 + more * 64);
	if (how % 2 && desc.inline_len == 0 && more & 0x80)
		memset(&desc.range, 0, sizeof(desc.range));
	desc.flags |= (more & 0x40 ? MUSTER_DESC_REDUCE : 0) |
		      (how & 0x40 ? MUSTER_DESC_SWAP_LOCAL_DATA : 0) |
		      (how & 0x80 ? MUSTER_DESC_FORWARD : 0);
	if (!(how % 2) && flags & MUSTER_DESC_CH && more & 0x80) {
		desc.range.pulses_live = how / 16 % 6;
		desc.range.numbers = desc.length ? 0 : more / 16;
	}
	fuzz_change(fuzz, &desc, sizeof(desc));
	return desc;
}

/* The same sequence some times over, in memory. */
static void post_from_memory(struct fuzz *fuzz, struct world *w, uint32_t node,
			     const struct muster_desc *descs, uint32_t nr)
{
	struct muster_desc program = {
		.kind = MUSTER_DESC_PROGRAM, .src_vp = WORLD_VP, .job = WORLD_JOB,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.context = WORLD_CONTEXT, .length = RUNS * nr * sizeof(*descs),
		.range = { .load_key = WORLD_KEY, .load_addr = PROGRAM },
	};
	uint32_t bad;

	for (uint32_t i = 0; i < RUNS; i++)
		memcpy(w->nodes[node].memory + PROGRAM + i * nr * sizeof(*descs), descs,
		       nr * sizeof(*descs));
	fuzz_change(fuzz, &program, sizeof(program));
	muster_engine_post(w->nodes[node].engine, WORLD_VP, &program, 1, &bad);
}

static void post(struct fuzz *fuzz, struct world *w, uint32_t node)
{
	struct muster_desc descs[DESCS_MAX];
	uint8_t how = fuzz_byte(fuzz);
	uint32_t nr = 1 + how % DESCS_MAX, bad;

	for (uint32_t i = 0; i < nr; i++)
		descs[i] = desc_of(fuzz, node, (i ? 0 : MUSTER_DESC_CH) |
				   (i + 1 < nr ? 0 : MUSTER_DESC_CT | MUSTER_DESC_COLL_END));
	if (how & 0x40)
		post_from_memory(fuzz, w, node, descs, nr);
	else
		muster_engine_post(w->nodes[node].engine, WORLD_VP, descs, nr, &bad);
}

static void receive(struct fuzz *fuzz, struct world *w)
{
	uint8_t type = fuzz_byte(fuzz) % 10, how = fuzz_byte(fuzz);
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = type, .job = WORLD_JOB, .src_node = 1,
		.src_vp = WORLD_VP, .dst_vp = WORLD_VP, .src_member = 1, .seq_id = how % 4,
		.context = WORLD_CONTEXT, .life = WORLD_LIFE, .number = how / 4 % 8,
		.signature = SIGNATURE, .incarnation = 101, .job_key = WORLD_JOB_KEY,
	};
	uint8_t *payload;

	packet.total = how & 0x80 ? 5000 : 8;
	packet.length = type != MUSTER_PACKET_DATA ? 0 : how & 0x80 ? 4096 : 8;
	fuzz_change(fuzz, &packet, sizeof(packet));
	if (packet.length > MUSTER_MTU)
		packet.length = MUSTER_MTU;
	payload = calloc(1, packet.length + 1);
	muster_engine_receive(w->nodes[0].engine, &packet, payload, packet.length);
	free(payload);
}

static void move(struct fuzz *fuzz, struct world *w)
{
	for (uint8_t turns = fuzz_byte(fuzz) % 16; turns; turns--) {
		muster_engine_step(w->nodes[turns % 2].engine, 1 + turns % 4);
		while (w->nr_flight && world_random(w, 4))
			world_deliver_one(w, world_random(w, w->nr_flight));
	}
}

static void act(struct fuzz *fuzz, struct world *w)
{
	struct muster_engine *engine = w->nodes[0].engine;
	uint8_t what = fuzz_byte(fuzz);

	switch (what % 16) {
	case 0:
		muster_engine_context_close(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
		break;
	case 1:
		world_context_open_life(w, 0, WORLD_CONTEXT, WORLD_LIFE + what / 16 % 2);
		break;
	case 2:
		muster_engine_peer_lost(engine, what / 16 % 3);
		break;
	case 3:
		muster_engine_abort(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
				    MUSTER_STATUS_ABORTED, 0);
		break;
	case 4 ... 7:
		post(fuzz, w, what / 16 % 2);
		break;
	case 8 ... 10:
		move(fuzz, w);
		break;
	default:
		receive(fuzz, w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz fuzz = { data, len };
	uint8_t how = fuzz_byte(&fuzz);
	struct world *w = world_create(WORLD_NODES, 1 + how);

	w->model.buffer = BUFFER;
	w->map = how & 1;
	w->share = how & 2;
	w->refuse_percent = how & 4 ? 10 : 0;
	w->model.units = 1 + (how >> 3 & 1);
	world_start(w);
	for (int i = 0; fuzz.left && i < ACTS_MAX; i++)
		act(&fuzz, w);
	world_destroy(w);
	return 0;
}
