// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided writes (Documentation/sequence.md, section 7): packets of type WRITE, which take no
 * slot, and the answers to them. Each has a number, counted by pair of members, and up to
 * MUSTER_WRITES_OPEN of a pair have no answer yet, so a bit each is all that either end keeps: a
 * packet that comes again is known, and written once. Who is owed an answer is on a list through
 * the peers. Whose packets they are (p2p.c, transfer.c) hears of the answers.
 */
#include "write.h"

#include "credit.h"
#include "packet.h"

_Static_assert(MUSTER_WRITES_OPEN == 32, "bits of a word");

/* ---- what is kept of each peer ------------------------------------------------------ */

static struct writing *writing_of(const struct context *ctx, uint32_t member)
{
	return &ctx->writes->of[ctx->peer_of[member] - 1];
}

/* The same, where there may be none yet. NULL: the context has failed. */
static struct writing *writing_meet(struct context *ctx, uint32_t member)
{
	if (!muster_member_meet(ctx, member) || !muster_writes_take(ctx))
		return NULL;
	return writing_of(ctx, member);
}

/* ---- who writes --------------------------------------------------------------------- */

static uint32_t bit_of(uint32_t number)
{
	return 1u << number % MUSTER_WRITES_OPEN;
}

static int send(struct context *ctx, uint32_t member, uint32_t number, const struct remote *to,
		uint32_t at, uint32_t len, const void *data)
{
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_WRITE, member, &packet);
	packet.number = number;
	packet.seq_id = number % MUSTER_WRITES_OPEN;
	packet.signature.digest = to->addr;
	packet.arg = to->key;
	packet.offset = at;
	packet.total = to->bytes;
	packet.length = len;
	return muster_packet_try(ctx, member, &packet, data);
}

/* The next packet. Return: 0; 1: it waits for an answer; as muster_packet_try(); -ECANCELED: the context has failed. */
static int send_next(struct context *ctx, struct outgoing *out)
{
	struct writing *writing = writing_meet(ctx, out->member);
	uint32_t left = out->to.bytes - out->at, number, len = left < MUSTER_MTU ? left : MUSTER_MTU;
	const void *data;
	int ret;

	if (!writing)
		return -ECANCELED;
	number = writing->next;
	if (writing->open & bit_of(number))
		return 1;
	data = muster_memory_source(ctx, out->key, out->addr + out->at, len);
	if (!data)
		return -ECANCELED;
	ret = send(ctx, out->member, number, &out->to, out->at, len, data);
	if (ret)
		return ret;
	writing->next++;
	writing->open |= bit_of(number);
	out->open |= bit_of(number);
	out->at += len;
	out->gone = out->at == out->to.bytes;
	return 0;
}

int muster_write_go_on(struct context *ctx, struct outgoing *out)
{
	int ret = 0;

	while (!out->gone && !out->refused && !ret)
		ret = send_next(ctx, out);
	return ret < 0 ? ret : 0;
}

bool muster_write_is_hopeless(const struct context *ctx, const struct outgoing *out)
{
	const struct peer *peer = muster_member_peer(ctx, out->member);

	return muster_farewell_complete(peer);
}

/* Of those that it is about; whether one was. */
static bool answered(struct outgoing *out, uint32_t member, uint32_t numbers, uint32_t refused)
{
	if (out->member != member || !(out->open & numbers))
		return false;
	out->refused |= out->open & numbers & refused;
	out->open &= ~numbers;
	return true;
}

static void tell_messages(struct context *ctx, uint32_t member, uint32_t numbers, uint32_t refused)
{
	struct message *message;

	for (message = ctx->messages; message; message = message->next)
		if (message->writes)
			answered(&message->out, member, numbers, refused);
}

static void tell_sends(struct context *ctx, uint32_t member, uint32_t numbers, uint32_t refused)
{
	struct instance *inst;
	uint64_t open;

	if (!ctx->running || ctx->pulse_first == ctx->pulse_next)
		return;
	inst = muster_instance(ctx, ctx->pulse_first);
	for (open = inst->open; open; open &= open - 1) {
		struct send *s = &inst->sends[__builtin_ctzll(open)];

		if (s->writes)
			answered(&s->out, member, numbers, refused);
	}
}

void muster_write_answered(struct context *ctx, uint32_t member, const struct muster_packet *packet)
{
	uint32_t numbers = ctx->writes ? packet->arg & writing_of(ctx, member)->open : 0;

	if (!numbers) {
		ctx->engine->counters->drop_duplicate++;
		return;
	}
	writing_of(ctx, member)->open &= ~numbers;
	tell_messages(ctx, member, numbers, packet->pulse);
	tell_sends(ctx, member, numbers, packet->pulse);
	muster_context_ready(ctx);
}

/* ---- who is written to -------------------------------------------------------------- */

static void owe(struct context *ctx, struct writing *writing, uint32_t bit)
{
	writing->owed |= bit;
	if (!writing->listed) {
		writing->listed = true;
		writing->next_owed = ctx->writes->owed_first;
		ctx->writes->owed_first = (uint16_t)(writing - ctx->writes->of) + 1;
	}
	muster_context_ready(ctx);
}

/* Whether it has not come before. What lies too far ahead its sender could not send. */
static bool is_new(struct context *ctx, const struct writing *writing, uint32_t number)
{
	uint32_t ahead = number - writing->from;

	if (ahead < MUSTER_WRITES_OPEN && !(writing->came >> ahead & 1))
		return true;
	if (ahead < MUSTER_WRITES_OPEN || (int32_t)ahead < 0)
		ctx->engine->counters->drop_duplicate++;
	else
		ctx->engine->counters->drop_window++;
	return false;
}

static void note(struct writing *writing, uint32_t number)
{
	writing->came |= 1u << (number - writing->from);
	for (; writing->came & 1; writing->came >>= 1)
		writing->from++;
}

/* Region and range of the whole, each time: what was there before may be withdrawn. */
static bool store(const struct context *ctx, const struct muster_packet *packet, const void *payload)
{
	struct muster_engine *engine = ctx->engine;

	if (!engine->world.remote_write ||
	    engine->world.remote_write(engine->opaque, ctx->vp, packet->arg, packet->signature.digest,
				       packet->total, packet->offset, payload, packet->length)) {
		engine->counters->writes_refused++;
		return false;
	}
	engine->counters->writes++;
	engine->counters->dma_write_bytes += packet->length;
	return true;
}

void muster_write_receive(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			  const void *payload)
{
	struct writing *writing = writing_meet(ctx, member);

	if (!writing || !is_new(ctx, writing, packet->number))
		return;
	note(writing, packet->number);
	if (!store(ctx, packet, payload))
		writing->refused |= bit_of(packet->number);
	owe(ctx, writing, bit_of(packet->number));
}

/* False: the wire is full. Who cannot be reached needs no answer. */
static bool answer(struct context *ctx, uint32_t index)
{
	struct writing *writing = &ctx->writes->of[index];
	uint32_t member = ctx->peers[index].member;
	struct muster_packet packet;

	muster_packet_prepare(ctx, MUSTER_PACKET_WRITTEN, member, &packet);
	packet.arg = writing->owed;
	packet.pulse = writing->refused;
	if (muster_packet_try(ctx, member, &packet, NULL) == -EAGAIN)
		return false;
	writing->owed = writing->refused = 0;
	return true;
}

bool muster_writes_answer(struct context *ctx)
{
	uint16_t *first = ctx->writes ? &ctx->writes->owed_first : NULL;

	while (first && *first) {
		struct writing *writing = &ctx->writes->of[*first - 1];

		if (!answer(ctx, *first - 1u))
			return false;
		writing->listed = false;
		*first = writing->next_owed;
	}
	return true;
}
