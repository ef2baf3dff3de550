/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What hosts and the manager of a network's aggregation groups say to each other, over a
 * connection that keeps the bounds of messages (Documentation/switch.md, section 11). Layouts only.
 *
 * Little endian, naturally aligned, reserved fields zero. A connection is a lease: when it
 * ends, its host has left all its groups.
 */
#ifndef MUSTER_MANAGER_H
#define MUSTER_MANAGER_H

#include "muster_desc.h"

#define MUSTER_MANAGER_VERSION		1

enum muster_manager_kind {
	MUSTER_MANAGER_HELLO = 1,	/* first of all from a host: host, life, proof */
	MUSTER_MANAGER_WELCOME = 2,	/* the answer: status */
	/*
	 * A group of these members: tag, job, context, life, type; of a streaming one tree and group
	 * of the low-latency one that locks it, if there is one.
	 */
	MUSTER_MANAGER_CREATE = 3,
	MUSTER_MANAGER_CREATED = 4,	/* its answer: tag, status; tree, group, key, payload_max, flags */
	/*
	 * This host needs it no more: tree, group; no answer. With the tag of a CREATE of this host,
	 * instead: nobody will hear of what that makes or has made, and all members have left it.
	 */
	MUSTER_MANAGER_LEAVE = 5,
	/* From whoever runs the network, who is no host: the link between two members' nodes is down. */
	MUSTER_MANAGER_CUT = 6,
	MUSTER_MANAGER_DONE = 7,	/* its answer: status */
};

enum muster_manager_limit {
	MUSTER_MANAGER_MEMBERS_MAX = 4096,
	MUSTER_MANAGER_WHY_MAX = 192,	/* bytes of the sentence behind an answer, if status is not 0 */
};

struct muster_manager_message {
	__le16 version;		/* MUSTER_MANAGER_VERSION */
	__le16 kind;		/* enum muster_manager_kind */
	__le32 status;		/* answers: 0, or an errno */
	__le64 tag;		/* of a request, not 0, and of its answer */
	__le64 key;		/* CREATED: the group's */
	__le64 proof;		/* HELLO: follows from the job's key, which is not told */
	__le32 host;		/* HELLO: NodeID */
	__le32 context;
	__le32 life;		/* of the context; HELLO: the host's incarnation */
	__le32 group;
	__le16 tree;
	__u8 job;
	__u8 type;		/* of the tree: 0: low latency; 1: streaming */
	__le32 payload_max;	/* bytes of one packet of it */
	__le32 nr_members;	/* CREATE, CUT: that follow, as struct muster_manager_member */
	__le32 flags;		/* MUSTER_MANAGER_* */
};

/* struct muster_manager_message.flags */
#define MUSTER_MANAGER_LOCKS	0x1	/* nothing goes by this group but under a lock */

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_message) == 64, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_manager_message, host) == 32, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_manager_message, payload_max) == 52, "offset");

struct muster_manager_member {
	__le32 host;		/* NodeID */
	__le32 incarnation;
	__le16 vp;
	__le16 reserved[3];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_member) == 16, "size");

#endif /* MUSTER_MANAGER_H */
