/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the host path knows of the streams of a communicator, for message.c, which runs
 * them, and farewell.c, which ends them.
 */
#ifndef MUSTER_CHANNEL_H
#define MUSTER_CHANNEL_H

#include "pair.h"

/* A fragment that came before its operation. */
struct kept {
	struct kept *next;
	uint32_t place;
	uint32_t number;
	struct muster_signature signature;
	uint32_t len;
	bool last;		/* of its message */
	uint8_t data[];
};

struct peer {
	uint32_t sent;		/* fragments that it was sent */
	uint32_t limit;		/* it takes so many */
	uint32_t came;		/* fragments of its own that have come */
	uint32_t taken;		/* and were taken */
	uint32_t told;		/* the limit that it knows */
	uint32_t awaited;	/* by the running step, of those that were not taken */
	uint32_t said;		/* how many it has sent in all, by its farewell */
	uint32_t place;		/* in the job's operations, by its last reply, or its last of all */
	struct muster_waiter says;	/* in line, to tell it what is due */
	bool left;		/* for good, at that place */
	bool settled;		/* its farewell has come */
	bool leave_due;		/* it is to be told that we leave */
	bool told_due;		/* it is to be told another limit */
	bool replied;
	bool reply_due;
	uint8_t probes;		/* since its last reply */
	uint8_t gone;		/* replies that it does not know the communicator any more */
	struct kept *kept;	/* what it sent early, by place */
};

struct muster_channel {
	struct muster_channel *next;	/* among those whose communicator is closed */
	uint32_t context;
	uint32_t life;
	uint32_t size;
	const uint32_t *ranks;	/* then: the members' */
	uint32_t unsettled;	/* then: members whose farewell has not come */
	uint32_t open;		/* fragments that have not left */
	uint32_t nr_kept;
	uint32_t nr_left;
	uint32_t nr_say;	/* members to whom something is due that found no room */
	struct muster_waiter sends;	/* in line, for the next fragment */
	bool leaving;		/* all who should be were told, or will be */
	bool farewells_due;	/* once nothing is open */
	struct peer peers[];
};

/* message.c */
/** muster_channel_is_calm() - no fragment has come early that an operation could clash with. */
static inline bool muster_channel_is_calm(const struct muster_comm *comm)
{
	return !comm->channel || !comm->channel->nr_kept;
}
/** muster_kept_drop() - forget the first fragment that a member sent early. */
void muster_kept_drop(struct muster_channel *channel, struct peer *peer);

/* farewell.c */
/** muster_channel_closed() - a farewell has come; here the communicator is closed already. */
void muster_channel_closed(struct muster *job, uint32_t rank,
			   const struct muster_control *control);

#endif /* MUSTER_CHANNEL_H */
