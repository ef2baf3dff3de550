// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided writes: in half of the worlds a third of the messages are written to a place of their
 * own in their receiver's memory instead. When that completes they lie there whole; from then on
 * the place is its owner's again, and must not change any more. Some go beyond their place by a
 * byte: these are refused. By chance that no other draw hears of.
 */
#include "dst.h"

#include <string.h>

enum {
	FIRST_KEY = 1 + DST_COMMS_MAX * DST_OPS_MAX * DST_CALL_REGIONS,
	KEYS = 2,			/* of each: its source's, its place's */
	LENGTH_MAX = 9000,
	EMPTY = 0xe3, SEAL = 0xa7,	/* what a place holds before and after */
};

static uint64_t chance(const struct dst_world *w, const struct dst_comm *comm, uint32_t from, uint32_t index)
{
	struct dst_rng rng = { w->plan.seed ^ (uint64_t)comm->id << 32 ^ from << 8 ^ index };

	return dst_draw(&rng);
}

static uint8_t byte_of(uint32_t from, uint32_t index, uint32_t i)
{
	return (uint8_t)(from * 53 + index * 29 + i * 7 + i / 256);
}

bool dst_write_make(struct dst_world *w, struct dst_comm *comm, uint32_t from, uint32_t index)
{
	struct dst_write *write = &comm->writes[from][index];
	uint64_t how = chance(w, comm, from, index);

	*write = (struct dst_write){ 0 };
	if (w->plan.seed % 2 || how % 3)
		return false;
	write->length = 1 + (uint32_t)(how >> 8) % LENGTH_MAX;
	write->beyond = how >> 32 & 3 ? 0 : 1;
	write->source = dst_memory(w, write->length);
	write->place = dst_memory(w, write->length);
	if (!write->source || !write->place)
		return false;
	for (uint32_t i = 0; i < write->length; i++)
		write->source[i] = byte_of(from, index, i);
	memset(write->place, EMPTY, write->length);
	return true;
}

/* Of the source; the place's is the next one. */
static uint32_t key_of(uint32_t c, uint32_t from, uint32_t index)
{
	return FIRST_KEY + KEYS * ((c * DST_RANKS_MAX + from) * DST_MESSAGES_MAX + index);
}

void dst_write_describe(const struct dst_rank *rank, uint32_t c, uint32_t index, struct muster_desc *desc)
{
	uint32_t from = rank->parts[c].self, key = key_of(c, from, index);
	const struct dst_write *write = &rank->world->comms[c].writes[from][index];

	desc->kind = MUSTER_DESC_RDMA;
	desc->length = write->length;
	desc->range.load_key = key;
	desc->range.load_addr = (uint64_t)key << 32;
	desc->range.remote_key = key + 1;
	desc->range.remote_addr = ((uint64_t)(key + 1) << 32) + write->beyond;
}

/* Where a range lies that belongs to this rank; NULL: there is none. */
uint8_t *dst_write_range(const struct dst_rank *rank, uint32_t key, uint64_t addr, uint64_t len, bool remote)
{
	uint32_t any = (key - FIRST_KEY) / KEYS, index = any % DST_MESSAGES_MAX;
	uint32_t from = any / DST_MESSAGES_MAX % DST_RANKS_MAX, c = any / DST_MESSAGES_MAX / DST_RANKS_MAX;
	uint64_t offset = addr - ((uint64_t)key << 32);
	const struct dst_write *write;
	const struct dst_part *part;
	bool is_place = (key - FIRST_KEY) % KEYS;

	if (!rank || key < FIRST_KEY || c >= rank->world->plan.comms)
		return NULL;
	write = &rank->world->comms[c].writes[from][index];
	part = &rank->parts[c];
	if (!part->member || is_place != remote || offset > write->length || len > write->length - offset ||
	    part->self != (remote ? rank->world->comms[c].message_to[from][index] : from))
		return NULL;
	return (remote ? write->place : write->source) + offset;
}

static bool all_are(const struct dst_write *write, uint8_t value)
{
	for (uint32_t i = 0; i < write->length; i++)
		if (write->place[i] != value)
			return false;
	return true;
}

/* Whom it was for may have closed before, or with it. */
static bool may_be_flushed(const struct dst_world *w, uint32_t c, uint32_t to)
{
	return dst_plan_touches(&w->plan, c) || w->ranks[w->comms[c].members[to]].parts[c].closed;
}

void dst_write_complete(struct dst_rank *rank, uint32_t c, uint32_t index, uint8_t status)
{
	struct dst_comm *comm = &rank->world->comms[c];
	uint32_t from = rank->parts[c].self, to = comm->message_to[from][index];
	struct dst_write *write = &comm->writes[from][index];
	const char *what = NULL;

	if (status == MUSTER_STATUS_OK && write->beyond)
		what = "was stored though it is longer than its place";
	else if (status == MUSTER_STATUS_OK && memcmp(write->place, write->source, write->length))
		what = "has completed and does not lie in its place";
	else if (status == MUSTER_STATUS_MEMORY && !write->beyond)
		what = "was refused";
	else if (status == MUSTER_STATUS_MEMORY && !all_are(write, EMPTY))
		what = "was refused, and has changed its place";
	else if (status != MUSTER_STATUS_OK && status != MUSTER_STATUS_MEMORY &&
		 (status != MUSTER_STATUS_FLUSHED || !may_be_flushed(rank->world, c, to)))
		what = "has failed";
	if (what)
		dst_fail(rank->world, "rank %u, communicator %u: write %u to member %u %s: status %u", rank->index, c,
			 index, to, what, status);
	if (status != MUSTER_STATUS_OK)
		return;
	memset(write->place, SEAL, write->length);
	write->done = true;
}

void dst_writes_check(struct dst_world *w, uint32_t c)
{
	struct dst_comm *comm = &w->comms[c];

	for (uint32_t m = 0; m < comm->nr; m++)
		for (uint32_t i = 0; i < comm->nr_messages; i++)
			if (comm->writes[m][i].done && !all_are(&comm->writes[m][i], SEAL))
				dst_fail(w, "communicator %u: write %u of member %u was stored again", c, i, m);
}
