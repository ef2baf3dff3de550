// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Descriptors and packets that are almost right, to one of two engines that otherwise talk to
 * each other, and to a reduction tree of which the input is the switch; contexts come and go, and
 * programs that are kept. What comes is taken in any of the ways that there are. Nothing is left in
 * the end, and nothing was written to memory that was closed to others.
 */
#define WORLD_NODES 2
#define WORLD_BYTES (64 << 10)
#define WORLD_COPIES 1
#define WORLD_CQES_MAX 64
#define WORLD_FLIGHT_MAX 128
#include "fuzz.h"
#include "test_world.h"

enum {
	BUFFER = 4 * MUSTER_MTU, ACTS_MAX = 64, DESCS_MAX = 4, PROGRAM = 0xc000, RUNS = 12,
	TREE_NODE = MUSTER_NODE_AGGREGATION, TREE = 3, GROUP = 7, TREE_LIFE = 500, TREE_KEY = 0x7e,
	COOKIES = 2,		/* of programs that are kept */
};

/* What it sends goes there; or, if it is inline, says where another one's shall go. */
static void to_memory(struct muster_desc *desc, bool is_inline)
{
	const struct muster_reference where = { .addr = 0x4000, .length = 4096, .key = WORLD_KEY };

	if (is_inline) {
		desc->flags |= MUSTER_DESC_SWAP_REMOTE_ADDR;
		desc->length = desc->inline_len = sizeof(where);
		memcpy(desc->data, &where, sizeof(where));
		return;
	}
	desc->range.remote_key = WORLD_KEY;
	desc->range.remote_addr = 0x4000;
	desc->store_key = 0;
	desc->cp_count %= 2;
}

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
	if (how & 4 && more % 16 == 15) {
		desc.dest = TREE_NODE | (desc.dest & MUSTER_DEST_SEQ);
		desc.dst_vp = TREE;
	}
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
	if (how & 4 && more % 16 == 14)
		to_memory(&desc, how % 2);
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
	if (how & 0x20)		/* kept, so it brings nothing itself */
		for (uint32_t i = 0; i < nr; i++) {
			descs[i].flags |= i ? 0 : MUSTER_DESC_KEEP;
			descs[i].cookie = how / 16 % COOKIES;
			if (descs[i].inline_len)
				memset(&descs[i].range, 0, sizeof(descs[i].range));
			descs[i].inline_len = 0;
			if (descs[i].kind == MUSTER_DESC_MP && !descs[i].cp_count)
				desc_load(&descs[i], 0x8000);
		}
	if (how & 0x40)
		post_from_memory(fuzz, w, node, descs, nr);
	else
		muster_engine_post(w->nodes[node].engine, WORLD_VP, descs, nr, &bad);
}

/* A message, or a write, beside all sequences. */
static void post_message(struct fuzz *fuzz, struct world *w, uint32_t node)
{
	uint8_t how = fuzz_byte(fuzz);
	struct muster_desc desc = {
		.kind = MUSTER_DESC_RDMA, .flags = how & 1 ? MUSTER_DESC_COLL_END : 0,
		.src_vp = WORLD_VP, .dst_vp = WORLD_VP, .job = WORLD_JOB, .context = WORLD_CONTEXT,
		.dest = !node, .length = how / 8 * 300,
		.range = { .load_key = WORLD_KEY, .load_addr = 0x8000 },
	};

	if (how & 2) {
		desc.range.remote_key = WORLD_KEY + !(how & 4);
		desc.range.remote_addr = 0x4000;
	}
	fuzz_change(fuzz, &desc, sizeof(desc));
	muster_engine_post(w->nodes[node].engine, WORLD_VP, &desc, 1, NULL);
}

/* What is kept once more, or no more. */
static void start(struct fuzz *fuzz, struct world *w, uint32_t node)
{
	uint8_t how = fuzz_byte(fuzz);
	struct muster_desc desc = {
		.kind = how & 0x80 ? MUSTER_DESC_FORGET : MUSTER_DESC_START, .src_vp = WORLD_VP,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT, .job = WORLD_JOB,
		.context = WORLD_CONTEXT, .cookie = how % COOKIES,
	};
	bool left;

	if (how & 0x40)
		fuzz_change(fuzz, &desc, sizeof(desc));
	if (how & 0x20)
		muster_engine_start_run(w->nodes[node].engine, WORLD_VP, &desc, &left);
	else
		muster_engine_post(w->nodes[node].engine, WORLD_VP, &desc, 1, NULL);
}

static void join(struct world *w, uint32_t node)
{
	const struct muster_tree_config config = {
		.node = TREE_NODE, .incarnation = TREE_LIFE, .tree = TREE, .group = GROUP,
		.key = TREE_KEY, .payload_max = MUSTER_MTU,
	};

	muster_engine_tree_join(w->nodes[node].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &config);
}

/* The switch has room now and then, and answers nothing by itself. */
static int to_switch(struct world_node *from, uint32_t incarnation, const struct muster_packet *packet,
		     const void *payload)
{
	(void)incarnation;
	(void)payload;
	return packet->dst_node == TREE_NODE && world_random(from->world, 4) ? 0 : -EAGAIN;
}

/* By its aggregation node instead of a member. */
static void from_switch(struct muster_packet *packet)
{
	packet->src_node = TREE_NODE;
	packet->src_vp = packet->src_member = 0;
	packet->incarnation = TREE_LIFE;
	packet->tree = TREE;
	packet->group = GROUP;
	packet->job_key = TREE_KEY;
}

/* A write to a place that may be open, or an answer to some. */
static void as_write(struct muster_packet *packet, uint8_t how)
{
	packet->signature = (struct muster_signature){ .digest = 0x4000 };
	packet->arg = WORLD_KEY + how / 64 % 2;
	packet->number = how % 64;
	packet->seq_id = how % MUSTER_WRITES_OPEN;
	if (packet->type == MUSTER_PACKET_WRITE)
		return;
	packet->signature.digest = packet->number = packet->seq_id = packet->total = packet->length = 0;
	packet->arg = how;
	packet->pulse = how / 2;
}

/* In one of the ways that there are. */
static void give(struct world *w, const struct muster_packet *packet, const void *payload, uint8_t how)
{
	struct muster_engine *engine = w->nodes[0].engine;
	bool left;

	if (how % 4 == 1)
		muster_engine_receive_run(engine, packet, payload, packet->length);
	else if (how % 4 != 2 ||
		 !muster_engine_take_run(engine, packet->src_node, packet, payload, packet->length, &left))
		muster_engine_receive(engine, packet, payload, packet->length);
}

static void receive(struct fuzz *fuzz, struct world *w)
{
	static const uint8_t more[] = {
		MUSTER_PACKET_WRITE, MUSTER_PACKET_WRITTEN, MUSTER_PACKET_TREE_DOWN,
	};
	uint8_t any = fuzz_byte(fuzz), how = fuzz_byte(fuzz), type = any % 13 < 10 ? any % 13 : more[any % 13 - 10];
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = type, .job = WORLD_JOB, .src_node = 1,
		.src_vp = WORLD_VP, .dst_vp = WORLD_VP, .src_member = 1, .seq_id = how % 4,
		.context = WORLD_CONTEXT, .life = WORLD_LIFE, .number = how / 4 % 8,
		.signature = SIGNATURE, .incarnation = 101, .job_key = WORLD_JOB_KEY,
	};
	bool has_data = type == MUSTER_PACKET_DATA || type == MUSTER_PACKET_TREE_DOWN ||
			type == MUSTER_PACKET_WRITE;
	uint8_t *payload;

	packet.total = how & 0x80 ? 5000 : 8;
	if (type == MUSTER_PACKET_TREE_DOWN) {
		packet.total = how & 0x80 ? MUSTER_MTU : 8;
		from_switch(&packet);
	}
	packet.length = !has_data ? 0 : how & 0x80 ? 4096 : 8;
	if (type == MUSTER_PACKET_WRITE || type == MUSTER_PACKET_WRITTEN)
		as_write(&packet, how);
	fuzz_change(fuzz, &packet, sizeof(packet));
	if (packet.length > MUSTER_MTU)
		packet.length = MUSTER_MTU;
	payload = calloc(1, packet.length + 1);
	give(w, &packet, payload, any / 16);
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
		if (what & 0x80)
			join(w, what / 16 % 2);
		else
			muster_engine_abort(engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
					    MUSTER_STATUS_ABORTED, 0);
		break;
	case 4 ... 7:
		post(fuzz, w, what / 16 % 2);
		break;
	case 8 ... 9:
		move(fuzz, w);
		break;
	case 10:
		if (what & 0x80)
			start(fuzz, w, what / 16 % 2);
		else
			move(fuzz, w);
		break;
	case 11:
		if (what & 0x80)
			post_message(fuzz, w, what / 16 % 2);
		else
			receive(fuzz, w);
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
	w->closed = how & 16;
	w->at_once = how & 32;
	w->elsewhere = to_switch;
	world_start(w);
	for (uint32_t i = 0; i < 2 && how & 64; i++)
		join(w, i);
	for (int i = 0; fuzz.left && i < ACTS_MAX; i++)
		act(&fuzz, w);
	for (uint32_t i = 0; i < 2 && w->closed; i++)
		if (world_counters(w, i).writes)
			abort();
	world_destroy(w);
	return 0;
}
