// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The sends of an instance. Inline data goes as one packet within the window; so does
 * what lies in memory, if it is one packet and there is room for a copy of it (copy.c).
 * The rest asks with RTS, and goes in fragments when the GRANT has come, or is read by
 * the receiver itself (Documentation/sequence.md, section 4). A send that is not closed
 * at once, as one whose copy was lent is, stays open as a bit of its instance; if nothing but the wire or the window is
 * in its way it is also a bit of `todo`. With FORWARD a send is opened when its message
 * begins to come, and each fragment goes as soon as it is combined.
 */
#include "credit.h"
#include "write.h"

#include <errno.h>

#include <string.h>

static void prepare(const struct context *ctx, uint8_t type, const struct instance *inst,
		    const struct send *send, struct muster_packet *packet)
{
	const struct sequence *seq = muster_sequence_current(ctx);

	muster_packet_prepare(ctx, type, send->member, packet);
	packet->flags = send->flags;
	if (muster_credit_wanted(ctx, send->member))
		packet->flags |= MUSTER_PACKET_CREDIT_WANTED;
	packet->seq_id = send->slot;
	packet->stage = seq->stage;
	packet->signature = seq->signature;
	packet->number = ctx->base;
	packet->pulse = inst->pulse;
	packet->total = send->total;
}

static bool send_inline(struct context *ctx, const struct instance *inst, const struct send *send,
			const void *data)
{
	struct muster_packet packet;

	prepare(ctx, MUSTER_PACKET_DATA, inst, send, &packet);
	packet.length = send->total;
	return muster_packet_send(ctx, send->member, &packet, data);
}

/* One packet, at once. What its receiver cannot put anywhere is kept here until it can. */
static bool send_eager(struct context *ctx, const struct instance *inst, struct send *send)
{
	bool is_short = send->total <= MUSTER_MP_MAX;	/* an entry has room for it */
	struct entry *copy = is_short ? NULL : muster_copy_new(ctx, send);
	struct muster_packet packet;
	const void *data;

	send->eager = is_short || copy;
	if (!send->eager)
		return false;
	prepare(ctx, MUSTER_PACKET_DATA, inst, send, &packet);
	packet.length = send->total;
	if (copy && muster_room_is_scarce(ctx))
		packet.flags |= MUSTER_PACKET_CREDIT_WANTED;
	data = muster_memory_source(ctx, send->key, send->addr, send->total);
	if (!data || !muster_packet_send(ctx, send->member, &packet, data)) {
		if (copy)
			muster_entry_give(copy);
		return false;
	}
	if (copy)
		muster_copy_keep(ctx, copy, data);
	return true;
}

/* Where that lies which a step sends. */
static struct muster_reference source_of(const struct sequence *seq, const struct step *step,
					 uint32_t pulse)
{
	uint64_t offset = (uint64_t)pulse * seq->pulse_len;

	return (struct muster_reference){
		.addr = (step->store_key ? step->store_addr : step->load_addr) + offset,
		.length = muster_step_bytes(seq, step, pulse),
		.key = step->store_key ? step->store_key : step->load_key,
	};
}

/* The same, or its copy. */
static struct muster_reference range_of(const struct send *send)
{
	return (struct muster_reference){
		.addr = send->addr, .length = send->total, .key = send->key,
	};
}

static bool stores_into(const struct sequence *seq, const struct step *step, uint32_t pulse,
			const struct muster_reference *range)
{
	uint64_t addr = step->store_addr + (uint64_t)pulse * seq->pulse_len;

	return step->store_key && addr < range->addr + range->length &&
	       range->addr < addr + muster_step_bytes(seq, step, pulse);
}

/* A send that is closed counts while the context has what it lent. */
static bool has_copy(const struct context *ctx, const struct instance *inst, uint32_t index)
{
	const struct send *send = &inst->sends[index];

	if (inst->open >> index & 1)
		return !send->is_inline && send->is_copy;
	return inst->kept >> index & 1 && muster_copy_is_lent(ctx, send);
}

/* An earlier send with a copy of the same range, in which nothing has been stored since: several members read one. */
static const struct send *same_copy(const struct context *ctx, const struct instance *inst,
				    const struct send *send)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct muster_reference range = range_of(send);
	uint32_t index = send - inst->sends;

	while (index && !stores_into(seq, &seq->steps[index], inst->pulse, &range)) {
		const struct send *other = &inst->sends[--index];
		const struct muster_reference source = source_of(seq, &seq->steps[index], inst->pulse);

		if (source.key == range.key && source.addr == range.addr && source.length == range.length &&
		    has_copy(ctx, inst, index))
			return other;
	}
	return NULL;
}

/* Of a copy all else goes, too, so that what it was made of may be overwritten. */
static bool lend_for(struct context *ctx, struct send *send, const struct send *same, uint32_t context)
{
	const struct muster_engine *engine = ctx->engine;
	struct muster_reference lent = range_of(same ? same : send);

	if (!engine->world.lend(engine->opaque, ctx->vp, context, muster_member(ctx, send->member)->node,
				&lent))
		return false;
	send->is_copy = lent.key != send->key;
	send->key = lent.key;
	send->addr = lent.addr;
	return true;
}

/* So that nobody waits until it was read. */
static bool lend_kept(struct context *ctx, struct send *send, const struct send *same)
{
	struct entry *copy = muster_copy_new_lent(ctx, send);
	struct muster_reference lent;

	if (!copy)
		return false;
	if (!lend_for(ctx, send, same, MUSTER_LEND_KEPT)) {
		muster_entry_give(copy);
		return false;
	}
	lent = range_of(send);
	muster_copy_keep_lent(ctx, copy, &lent);
	return true;
}

static void lend(struct context *ctx, struct instance *inst, struct send *send)
{
	const struct send *same = same_copy(ctx, inst, send);
	const bool may_keep = muster_sequence_current(ctx)->pulse_count == 1 && (!same || same->is_kept);

	send->is_kept = may_keep && lend_kept(ctx, send, same);
	send->by_reference = send->is_kept ||
			     lend_for(ctx, send, same && same->is_kept ? NULL : same, ctx->id);
	if (send->is_kept)
		inst->kept |= 1ull << (send - inst->sends);
}

/* Of what it sends: all, unless the message comes still. */
static uint64_t fragments_here(const struct instance *inst, const struct send *send)
{
	uint32_t index = send - inst->sends;

	return index < inst->next || !(inst->early >> index & 1) ? UINT64_MAX : inst->here;
}

static bool send_rts(struct context *ctx, struct instance *inst, struct send *send)
{
	struct muster_reference reference;
	struct muster_packet packet;

	prepare(ctx, MUSTER_PACKET_RTS, inst, send, &packet);
	if (send->total && ctx->engine->world.lend && !send->is_copy &&
	    fragments_here(inst, send) == UINT64_MAX)
		lend(ctx, inst, send);
	reference = range_of(send);
	if (send->by_reference) {
		packet.flags |= MUSTER_PACKET_REFERENCE;
		packet.length = sizeof(reference);
	}
	return muster_packet_send(ctx, send->member, &packet, &reference);
}

static bool send_fragment(struct context *ctx, struct send *send, struct muster_packet *packet,
			  uint32_t at)
{
	uint32_t left = send->total - at;
	const void *data;

	packet->offset = at;
	packet->length = left < MUSTER_MTU ? left : MUSTER_MTU;
	data = muster_memory_source(ctx, send->key, send->addr + at, packet->length);
	if (!data || !muster_packet_send(ctx, send->member, packet, data))
		return false;
	send->gone |= 1ull << at / MUSTER_MTU;
	return true;
}

/* Those that are here. Whether all have gone. */
static bool send_fragments(struct context *ctx, struct instance *inst, struct send *send,
			   uint64_t bit)
{
	const uint64_t here = fragments_here(inst, send);
	struct muster_packet packet;
	bool all = true;
	uint32_t at;

	prepare(ctx, MUSTER_PACKET_DATA, inst, send, &packet);
	for (at = 0; at < send->total; at += MUSTER_MTU) {
		uint64_t fragment = 1ull << at / MUSTER_MTU;

		all &= !!((here | send->gone) & fragment);
		if (here & ~send->gone & fragment && !send_fragment(ctx, send, &packet, at))
			return false;
	}
	if (!all)
		inst->todo &= ~bit;
	return all;
}

/* Whether all of it lies where it goes to. It is looked at until then, as its member may have left. */
static bool write_out(struct context *ctx, struct send *send)
{
	struct outgoing *out = &send->out;
	int ret = muster_write_go_on(ctx, out);

	if (out->gone)
		send->phase = SEND_ASKED;
	if (ret == -EHOSTUNREACH || (!ret && !muster_write_is_over(out) && muster_write_is_hopeless(ctx, out)))
		muster_context_fail(ctx, MUSTER_STATUS_PEER_LOST, send->member, NULL);
	else if (!ret && muster_write_is_over(out) && out->refused)
		muster_context_fail(ctx, MUSTER_STATUS_MEMORY, send->member, NULL);
	return !ctx->failure.status && muster_write_is_over(out);
}

/* Whether the send is closed. data: of an inline send. */
static bool advance(struct context *ctx, struct instance *inst, struct send *send, uint64_t bit,
		    const void *data)
{
	if (send->to_tree)
		return muster_tree_send(ctx, inst, send, data);
	if (send->writes)
		return write_out(ctx, send);
	if (send->phase == SEND_GRANTED)
		return send_fragments(ctx, inst, send, bit);
	if (!muster_credit_allows(ctx, send->member)) {
		if (send->phase == SEND_HELD && muster_credit_ask(ctx, send->member))
			send->phase = SEND_HELD_ASKED;
		return false;
	}
	if (send->is_inline)
		return send_inline(ctx, inst, send, data);
	if (send->eager && send_eager(ctx, inst, send))
		return true;
	if (!send->eager && send_rts(ctx, inst, send)) {
		send->phase = SEND_ASKED;
		inst->todo &= ~bit;
		return send->is_kept;
	}
	return false;
}

static void send_close(struct context *ctx, struct instance *inst, uint32_t index)
{
	const struct muster_engine *engine = ctx->engine;
	struct send *send = &inst->sends[index];
	struct muster_reference lent = range_of(send);

	inst->open &= ~(1ull << index);
	inst->todo &= ~(1ull << index);
	if (send->is_inline || !send->is_copy || send->is_kept)
		return;
	engine->world.lent_back(engine->opaque, &lent);
}

static uint16_t packet_flags(const struct step *step)
{
	return (step->flags & MUSTER_DESC_SWAP_REMOTE_DATA ? MUSTER_PACKET_SWAP_DATA : 0) |
	       (step->flags & MUSTER_DESC_SWAP_REMOTE_ADDR ? MUSTER_PACKET_SWAP_ADDR : 0) |
	       (step->flags & MUSTER_DESC_COLL_END ? MUSTER_PACKET_COLL_END : 0);
}

/* Of what lies in memory: where, and whether it asks. Nobody looks at these of an inline send. */
static void source_set(struct send *send, const struct sequence *seq, const struct step *step,
		       uint32_t pulse)
{
	const struct muster_reference source = source_of(seq, step, pulse);

	send->eager = seq->pulse_count == 1 && send->total <= MUSTER_MTU;
	send->is_copy = false;
	send->is_kept = false;
	send->by_reference = false;
	send->key = source.key;
	send->addr = source.addr;
}

void muster_send_prepare(const struct context *ctx, const struct sequence *seq,
			 const struct step *step, struct muster_packet *packet)
{
	muster_packet_prepare(ctx, MUSTER_PACKET_DATA, step->member_dest, packet);
	packet->flags = packet_flags(step);
	packet->seq_id = step->slot_dest;
	packet->stage = seq->stage;
	packet->signature = seq->signature;
	packet->total = step->length;
	packet->length = step->length;
}

/* It is open from now on. */
static struct send *begin(struct context *ctx, struct instance *inst, uint32_t index)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	const struct step *step = &seq->steps[index];
	struct send *send = &inst->sends[index];

	send->phase = SEND_HELD;
	send->slot = step->slot_dest;
	send->flags = packet_flags(step);
	send->to_tree = step->to_tree;
	send->member = step->flags & MUSTER_DESC_SWAP_LOCAL_VP ? inst->member_last :
								 step->member_dest;
	send->total = muster_step_bytes(seq, step, inst->pulse);
	send->gone = 0;
	send->is_inline = step->kind == MUSTER_DESC_MP;
	if (!send->is_inline)
		source_set(send, seq, step, inst->pulse);
	send->writes = step->writes;
	if (send->writes)
		send->out = (struct outgoing){
			.to = send->out.to, .addr = send->addr, .key = send->key, .member = send->member,
		};

	inst->open |= 1ull << index;
	inst->todo |= 1ull << index;
	return send;
}

/* What an inline send that is held back will send, as the instance's own goes on. */
static uint8_t *held(const struct sequence *seq, struct instance *inst, uint32_t index)
{
	return (uint8_t *)&inst->sends[seq->nr_steps] + index * seq->held_bytes;
}

void muster_send_open(struct context *ctx, struct instance *inst, uint32_t index)
{
	struct send *send = begin(ctx, inst, index);

	if (advance(ctx, inst, send, 1ull << index, inst->data))
		send_close(ctx, inst, index);
	else if (send->is_inline)
		memcpy(held(muster_sequence_current(ctx), inst, index), inst->data, send->total);
}

void muster_send_hold(struct context *ctx, struct instance *inst, uint32_t index)
{
	struct send *send = begin(ctx, inst, index);

	memcpy(held(muster_sequence_current(ctx), inst, index), inst->data, send->total);
}

void muster_sends_run(struct context *ctx, struct instance *inst)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint64_t todo = inst->todo;

	for (; todo && !ctx->failure.status; todo &= todo - 1) {
		uint32_t index = (uint32_t)__builtin_ctzll(todo);
		struct send *send = &inst->sends[index];

		if (advance(ctx, inst, send, 1ull << index, held(seq, inst, index))) {
			send_close(ctx, inst, index);
			ctx->moved = true;
		}
	}
}

void muster_sends_forward(struct context *ctx, struct instance *inst)
{
	const struct sequence *seq = muster_sequence_current(ctx);
	uint32_t index = inst->next;

	inst->here = 0;
	do {
		inst->early |= 1ull << index;
		muster_send_open(ctx, inst, index++);
	} while (index < seq->nr_steps && seq->steps[index].flags & MUSTER_DESC_FORWARD &&
		 !seq->steps[index].cp_count && !ctx->failure.status);
}

void muster_sends_forward_more(struct context *ctx, struct instance *inst, uint64_t fragments)
{
	uint64_t open = inst->open & inst->early & ~0ull << inst->next;

	inst->here |= fragments;
	for (; open; open &= open - 1)
		if (inst->sends[__builtin_ctzll(open)].phase == SEND_GRANTED)
			inst->todo |= open & -open;
	if (inst->todo)
		muster_context_ready(ctx);
}

/*
 * Addresses decide, whatever the keys: two regions may name the same bytes. Sends of steps that
 * have not been executed go as what they send is stored.
 */
bool muster_sends_overlap(const struct instance *inst, uint64_t addr, uint64_t len)
{
	uint64_t open = inst->open & ~(~0ull << inst->next);

	for (; open; open &= open - 1) {
		const struct send *send = &inst->sends[__builtin_ctzll(open)];

		if (!send->is_inline && send->addr < addr + len && addr < send->addr + send->total)
			return true;
	}
	return false;
}

/* The send that a GRANT means, by its place at the receiver. */
static struct instance *find_asked(struct context *ctx, uint32_t member,
				   const struct muster_packet *packet, uint32_t *index)
{
	struct instance *inst;
	uint64_t open;

	if (packet->pulse - ctx->pulse_first >= ctx->pulse_next - ctx->pulse_first)
		return NULL;
	inst = muster_instance(ctx, packet->pulse);
	for (open = inst->open; open; open &= open - 1) {
		const struct send *send = &inst->sends[__builtin_ctzll(open)];

		*index = __builtin_ctzll(open);
		if (send->phase == SEND_ASKED && !send->writes && send->member == member &&
		    send->slot == packet->seq_id && send->total == packet->total)
			return inst;
	}
	return NULL;
}

void muster_send_granted(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	struct muster_engine_counters *counters = ctx->engine->counters;
	bool taken = packet->flags & MUSTER_PACKET_TAKEN;
	struct instance *inst;
	struct send *send;
	uint32_t index;

	if (muster_copy_granted(ctx, member, packet))
		return;
	if (!ctx->running || packet->number != ctx->base) {
		counters->drop_window++;
		return;
	}
	inst = find_asked(ctx, member, packet, &index);
	if (!inst) {
		counters->drop_duplicate++;
		return;
	}
	send = &inst->sends[index];
	if (taken && send->total && !send->by_reference) {
		counters->drop_malformed++;
		return;
	}
	if (taken) {
		send_close(ctx, inst, index);
	} else {
		send->phase = SEND_GRANTED;
		inst->todo |= 1ull << index;
	}
	muster_context_ready(ctx);
}
