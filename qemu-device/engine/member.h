/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is known of the members of a context: who they are (member.c), which contexts share, and
 * what was exchanged with them (peer.c), which is each context's own. Part of internal.h.
 */
#ifndef MUSTER_ENGINE_MEMBER_H
#define MUSTER_ENGINE_MEMBER_H

#include "engine.h"

struct member {
	uint32_t node;
	uint32_t incarnation;
	uint16_t vp;
};

/* One that is in some context. */
struct known {
	struct member member;
	uint32_t refs;			/* of tables; 0: its number is free */
	uint32_t next;			/* number + 1, of its bucket or of those that are free */
};

/* All of an engine (known.c). */
struct book {
	struct known *known;		/* by number */
	uint32_t *buckets;		/* number + 1 */
	uint32_t max;			/* of both, */
	uint32_t nr;			/* numbers that were used since nobody was in it, */
	uint32_t used;			/* those that are now, */
	uint32_t free;			/* and the first that is not now, + 1 */
};

/*
 * Of all contexts with these members; one that is being opened has its own. Behind the numbers of
 * the members, in one allocation: what finds them by address, if they are not in order, and a bit
 * per node, modulo the bits' number: a member is there.
 */
struct member_table {
	struct member_table *next;	/* of its bucket */
	uint64_t digest;		/* of the members */
	uint32_t refs;
	uint32_t nr;			/* there so far */
	uint32_t wanted;
	uint32_t nr_places;		/* that find them: index; 0: empty */
	bool ordered;			/* no places are needed */
	bool shared;			/* in its bucket: whole */
	uint8_t log_bits;
	uint32_t numbers[];		/* in the book, by index */
};

static inline uint16_t *muster_member_places(const struct member_table *table)
{
	return (uint16_t *)&table->numbers[table->wanted];
}

/* Of a member that something was exchanged with. */
struct peer {
	uint16_t member;		/* its index */
	bool left;			/* its context is closed: base is final */
	bool all_came;			/* what it had sent has been received, says the caller */
	uint32_t base;			/* newest that it has told; or at least so much */
	uint32_t sent;			/* packets to it, but for the farewell */
	uint32_t received;		/* packets from it, likewise; less those that it tells of there */
};

/* What a peer waits to be told (credit.c). */
struct asking {
	uint32_t asked;			/* when this number has ended, if `asks`; */
	uint8_t wanted;			/* bit number % MUSTER_WINDOW: when that has */
	bool asks;
	bool due;			/* CREDIT is due now */
	bool listed;
	uint16_t next;			/* index of the next peer that asks + 1 */
};

_Static_assert(sizeof(struct known) == 20, "what a member costs in all contexts together");
_Static_assert(sizeof(struct peer) == 16, "what one more costs that was met");
_Static_assert(MUSTER_MEMBERS_MAX <= 1 << 16, "an index has 16 bits; as has that of a peer, + 1");
_Static_assert(MUSTER_WINDOW <= 8, "bits of asking.wanted");

#endif /* MUSTER_ENGINE_MEMBER_H */
