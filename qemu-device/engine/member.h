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
	uint16_t reserved;		/* 0: compared as it lies there */
};

/* Of all contexts with these members; one that is being opened has its own. */
struct member_table {
	struct member_table *next;	/* of its bucket */
	uint64_t digest;		/* of the members */
	size_t bytes;
	uint32_t refs;
	uint32_t nr;			/* there so far */
	uint32_t wanted;
	bool shared;			/* in its bucket: whole */
	struct member *members;		/* behind the bits */
	uint16_t *places;		/* finds them: index; 0: empty. NULL: they are in order */
	uint32_t nr_places;
	uint32_t nr_bits;
	uint64_t nodes[];		/* a bit per node, modulo their number: a member is there */
};

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

_Static_assert(sizeof(struct member) == 12, "what a member costs at rest");
_Static_assert(sizeof(struct peer) == 16, "what one more costs that was met; of a power of two");
_Static_assert(MUSTER_MEMBERS_MAX <= 1 << 16, "an index has 16 bits; as has that of a peer, + 1");
_Static_assert(MUSTER_WINDOW <= 8, "bits of asking.wanted");

#endif /* MUSTER_ENGINE_MEMBER_H */
