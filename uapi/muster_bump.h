/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The bump in the wire: the header of its UDP datagrams, between a host and its
 * bump and between bumps. Layouts only; the protocol is Documentation/bump.md.
 *
 * Little endian, naturally aligned, reserved fields zero. What decides about a
 * packet's way comes first, so that a datapath of 64 bits knows it early.
 */
#ifndef MUSTER_BUMP_H
#define MUSTER_BUMP_H

#include "muster_desc.h"

#define MUSTER_BUMP_MAGIC		0x504d424du	/* "MBMP" in memory */
#define MUSTER_BUMP_VERSION		1
#define MUSTER_BUMP_PORT		19778		/* UDP, the destination of all datagrams */

enum muster_bump_limit {
	MUSTER_BUMP_DATA_MAX = 1408,	/* bytes of elements: 1500 less IPv4, UDP and our header */
	MUSTER_BUMP_HOSTS_MAX = 1024,	/* members of a group; elements are numbered below it */
	MUSTER_BUMP_LOCAL_MAX = 16,	/* ranks of a group at one host */
	MUSTER_BUMP_PORTS_MAX = 16,	/* the host's and 15 neighbours' */
	MUSTER_BUMP_WINDOW = 16,	/* operations of a group that a rank may have unanswered */
	MUSTER_BUMP_KEPT = 32,		/* operations of a group that a bump remembers */
	MUSTER_BUMP_GROUPS_MAX = 16,	/* of one key */
	MUSTER_BUMP_KEYS_MAX = 16,	/* that a bump accepts */
};

enum muster_bump_message {
	MUSTER_BUMP_REQUEST = 1,	/* host to bump: an operation, and this rank's elements */
	MUSTER_BUMP_RESPONSE = 2,	/* bump to host: the result */
	MUSTER_BUMP_ERROR = 3,		/* bump to host: there is none; status says why */
	MUSTER_BUMP_ABORT = 4,		/* host to bump: this rank gives the operation up */
	MUSTER_BUMP_DATA = 5,		/* bump to bump: a step of the algorithm */
	MUSTER_BUMP_WANT = 6,		/* bump to bump: send me that step again */
};

enum muster_bump_operation {
	MUSTER_BUMP_ALLREDUCE = 1,
	MUSTER_BUMP_REDUCE = 2,		/* as allreduce; all but the root ignore the response */
	MUSTER_BUMP_BARRIER = 3,
	MUSTER_BUMP_SCAN = 4,		/* inclusive, in the order of ranks */
};

enum muster_bump_algorithm {
	MUSTER_BUMP_RING = 1,
	MUSTER_BUMP_TREE = 2,		/* reduce up and broadcast down a binomial tree */
	MUSTER_BUMP_DOUBLING = 3,	/* recursive doubling */
	MUSTER_BUMP_TORUS = 4,		/* two dimensions: rows, then columns */
};

enum muster_bump_status {
	MUSTER_BUMP_OK = 0,
	MUSTER_BUMP_EVERSION = 1,	/* another version; ours is in the answer */
	MUSTER_BUMP_EFIELD = 2,		/* a field has no such value, or a reserved one is not 0 */
	MUSTER_BUMP_ESIZE = 3,		/* count and datagram do not fit, or too large */
	MUSTER_BUMP_EMEMBER = 4,	/* this host, or this rank, is not in the group so described */
	MUSTER_BUMP_EMISMATCH = 5,	/* another rank has asked for something else under this id */
	MUSTER_BUMP_EWINDOW = 6,	/* too far ahead of, or behind, what is still running */
	MUSTER_BUMP_EROOM = 7,		/* no more groups of this key, all are in use */
	MUSTER_BUMP_EABORTED = 8,	/* a rank has given up */
	MUSTER_BUMP_ELOST = 9,		/* a bump no longer has what another one needs */
};

#define MUSTER_BUMP_TO_NEIGHBOUR	0xffffu	/* struct muster_bump_header.to: who receives it */

struct muster_bump_header {
	__le32 magic;
	__u8 version;
	__u8 message;		/* enum muster_bump_message */
	__u8 status;		/* enum muster_bump_status */
	__u8 step;		/* between bumps: which step of the algorithm; else 0 */
	__le32 group;
	__le32 id;		/* of the operation: counts a group's from any number */
	__le16 from;		/* between bumps, and in errors: index of the member that says it */
	__le16 to;		/* between bumps: element, or MUSTER_BUMP_TO_NEIGHBOUR */
	/* What all ranks of an operation must share. */
	__u8 operation;		/* enum muster_bump_operation */
	__u8 algorithm;		/* enum muster_bump_algorithm */
	__u8 type;		/* enum muster_dtype: i32, u32 or f64; a barrier: 0 */
	__u8 redop;		/* enum muster_redop, sum to lxor; a barrier: 0 */
	__le16 count;		/* elements; a barrier: 0 */
	__le16 root;		/* rank; 0 but for reduce */
	__le16 hosts;		/* members: elements first, first + stride, ... */
	__le16 first;
	__le16 stride;
	__le16 ranks;		/* of all hosts */
	/* Of one rank. Those of a host follow each other. */
	__le16 rank;
	__u8 local_rank;	/* of this host's, from 0 */
	__u8 local_ranks;	/* how many this host has */
	__le64 key;
	__u8 reserved[16];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_bump_header) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_bump_header, from) == 16, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_bump_header, operation) == 20, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_bump_header, rank) == 36, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_bump_header, key) == 40, "offset");

#endif /* MUSTER_BUMP_H */
