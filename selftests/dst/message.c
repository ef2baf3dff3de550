// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Point-to-point messages beside the operations: each member sends some to others,
 * and what it sent must come once, whole, and to nobody else. The cookie says what
 * a message is: whose, and which.
 */
#include "dst.h"

#include <errno.h>
#include <string.h>

static uint64_t cookie_of(uint32_t from, uint32_t index)
{
	return (uint64_t)(from + 7) << 32 | (0x1000 + index);
}

static uint32_t fill(uint32_t from, uint32_t index, uint8_t *bytes)
{
	uint32_t len = (from * 31 + index * 17) % (MUSTER_INLINE_MAX + 1);

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = from * 100 + index * 7 + i;
	return len;
}

void dst_messages_make(struct dst_world *w, struct dst_comm *comm)
{
	comm->nr_messages = dst_below(&w->data, 2) ? dst_below(&w->data, DST_MESSAGES_MAX + 1) : 0;
	if (!w->plan.messages)
		comm->nr_messages = 0;
	if (w->plan.cause == DST_CLOSE && &w->comms[w->plan.cause_comm] == comm)
		comm->nr_messages = 0;	/* nobody could tell which of them must come */
	for (uint32_t m = 0; m < comm->nr; m++) {
		for (uint32_t i = 0; i < comm->nr_messages; i++) {
			uint32_t to = (m + 1 + dst_below(&w->data, comm->nr - 1)) % comm->nr;

			comm->message_to[m][i] = to;
			if (!dst_write_make(w, comm, m, i))
				comm->messages_for[to]++;
		}
	}
}

int dst_message_post(struct dst_rank *rank, uint32_t c)
{
	const struct dst_comm *comm = &rank->world->comms[c];
	struct dst_part *part = &rank->parts[c];
	uint32_t index = part->messages_posted;
	const struct muster_address *to;
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP,
		.flags = MUSTER_DESC_COLL_END,	/* closing forgets what has not left */
		.src_vp = rank->vp,
		.job = rank->world->job,
		.context = comm->id,
		.cookie = cookie_of(part->self, index),
	};
	int err;

	if (!part->member || part->closed || index == comm->nr_messages)
		return -ENOENT;
	to = &comm->addresses[comm->message_to[part->self][index]];
	desc.dest = to->node;
	desc.dst_vp = to->vp;
	if (comm->writes[part->self][index].length) {
		dst_write_describe(rank, c, index, &desc);
	} else {
		desc.inline_len = fill(part->self, index, desc.data);
		desc.length = desc.inline_len;
	}
	err = muster_engine_post(rank->node->engine, rank->vp, &desc, 1, NULL);
	if (err && err != -EAGAIN)
		dst_fail(rank->world, "rank %u, communicator %u: message %u is refused: %d",
			 rank->index, c, index, err);
	part->messages_posted += !err;
	return err;
}

/* Completions come in the order in which the wire took them, each once. */
void dst_message_complete(struct dst_rank *rank, uint32_t c, const struct muster_cqe *cqe)
{
	const struct dst_comm *comm = &rank->world->comms[c];
	struct dst_part *part = &rank->parts[c];
	uint32_t index = (uint32_t)cqe->cookie - 0x1000;

	if (index >= part->messages_posted || cqe->cookie != cookie_of(part->self, index) ||
	    part->messages_left >> index & 1 || cqe->number != comm->message_to[part->self][index])
		dst_fail(rank->world, "rank %u, communicator %u: a completion of message %llx to member %u",
			 rank->index, c, (unsigned long long)cqe->cookie, cqe->number);
	else if (comm->writes[part->self][index].length)
		dst_write_complete(rank, c, index, cqe->status);
	else if (cqe->status && (cqe->status != MUSTER_STATUS_FLUSHED ||
				 !dst_plan_touches(&rank->world->plan, c)))
		dst_fail(rank->world, "rank %u, communicator %u: message %u has failed with status %u",
			 rank->index, c, index, cqe->status);
	if (rank->world->failed)
		return;
	part->messages_left |= 1u << index;
	part->messages_completed++;
}

void dst_message_deliver(struct dst_rank *rank, const struct muster_packet *packet,
			 const void *payload)
{
	struct dst_world *w = rank->world;
	uint64_t cookie = (uint64_t)packet->pulse << 32 | packet->number;
	uint32_t from = packet->pulse - 7, index = packet->number - 0x1000, c = 0;
	uint8_t want[MUSTER_INLINE_MAX];
	struct dst_part *part;

	while (c < w->plan.comms && w->comms[c].id != packet->context)
		c++;
	part = &rank->parts[c];
	if (c == w->plan.comms || !part->member || part->closed || from >= w->comms[c].nr ||
	    index >= w->comms[c].nr_messages || w->comms[c].message_to[from][index] != part->self)
		dst_fail(w, "rank %u: message %llx of context %u is not for it", rank->index,
			 (unsigned long long)cookie, packet->context);
	else if (part->messages_from[from] >> index & 1)
		dst_fail(w, "rank %u: message %u of member %u comes twice", rank->index, index, from);
	else if (packet->length != fill(from, index, want) ||
		 memcmp(payload, want, packet->length))
		dst_fail(w, "rank %u: message %u of member %u was changed", rank->index, index, from);
	if (w->failed)
		return;
	part->messages_from[from] |= 1u << index;
	part->messages_came++;
	dst_turn_at(rank, w->now_us + 1 + dst_below(&w->host, w->plan.host_us));
}

/* All own ones have left or failed, and those of others are here, unless all has failed. */
bool dst_messages_done(const struct dst_rank *rank, uint32_t c)
{
	const struct dst_comm *comm = &rank->world->comms[c];
	const struct dst_part *part = &rank->parts[c];

	return part->messages_completed == comm->nr_messages &&
	       (part->told || part->messages_came == comm->messages_for[part->self]);
}
