/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the manager of a network's aggregation groups hears from hosts and from switches, and says
 * to them, over connections that keep the bounds of messages (Documentation/switch.md, section 11).
 * Layouts only.
 *
 * Little endian, naturally aligned, reserved fields zero. A host's connection is a lease: when it
 * ends, its host has left all its groups. A switch's is not: its groups outlive the manager.
 */
#ifndef MUSTER_MANAGER_H
#define MUSTER_MANAGER_H

#include "muster_desc.h"

#define MUSTER_MANAGER_VERSION		6

enum muster_manager_kind {
	/*
	 * First of all from a host: host, life, proof; and all groups that it is in already, as
	 * struct muster_manager_claim: where another manager made them.
	 */
	MUSTER_MANAGER_HELLO = 1,
	MUSTER_MANAGER_WELCOME = 2,	/* the answer: status */
	/*
	 * A group of these members: tag, job, context, life, type, flags; of a streaming one tree and
	 * group of the low-latency one that locks it, if there is one.
	 */
	MUSTER_MANAGER_CREATE = 3,
	/* Its answer: tag, status; tree, group, key, payload_max, flags; and how it combines, if that was asked for. */
	MUSTER_MANAGER_CREATED = 4,
	/*
	 * This host needs it no more: tree, group, flags. With the tag of a CREATE of this host, instead:
	 * nobody will hear of what that makes or has made, and all members have left it; no answer.
	 */
	MUSTER_MANAGER_LEAVE = 5,
	MUSTER_MANAGER_LEFT = 6,	/* the answer: tree, group, status; the switch knows, and the host may go */

	/* From whoever runs the network, who is neither: the link between two members' nodes is down. */
	MUSTER_MANAGER_CUT = 7,
	MUSTER_MANAGER_DONE = 8,	/* an answer: tag, status */

	/*
	 * First of all from a switch, and answered by WELCOME: host, life, key (of the network), context (its ways),
	 * flags; and what is at each of its ports.
	 */
	MUSTER_MANAGER_SWITCH = 9,
	MUSTER_MANAGER_HOLD = 10,	/* and then for each group that it has, as ADD; no answer */
	MUSTER_MANAGER_GONE = 11,	/* from it: nobody is at its link to that host; no answer */

	/*
	 * To a switch: be in a group, with these children. tag, tree, group, key, job, type, payload_max,
	 * flags; proof: its owner; host, life, context: its parent, that one's life and the port to it.
	 */
	MUSTER_MANAGER_ADD = 12,	/* DONE */
	MUSTER_MANAGER_REMOVE = 13,	/* tree, group; no answer */
	MUSTER_MANAGER_CHILD_LEFT = 14,	/* tag, tree, group, host; DONE */
	MUSTER_MANAGER_UNLINK = 15,	/* tag, host: the link to that node is down; DONE */
	MUSTER_MANAGER_FAIL = 16,	/* tree, group: its members are told that it has failed; no answer */

	/* From whoever runs the network: all groups fail. DONE when none of them is left. */
	MUSTER_MANAGER_CLEAN = 17,
	/* Also: nothing is to lie on that member's node any more, or may again. DONE when that is so. */
	MUSTER_MANAGER_DRAIN = 18,
	MUSTER_MANAGER_UNDRAIN = 19,

	/*
	 * To a host that is the first member of groups: their members are to go over to others, which are there.
	 * The claims that follow are of a group and of the one that stands for it, and so on. No answer.
	 */
	MUSTER_MANAGER_MOVE = 20,

	/* To a switch, of the ways that it has: context which of the two. */
	MUSTER_MANAGER_WAYS = 21,	/* tag; lay it around these children's nodes; DONE */
	MUSTER_MANAGER_TAKE = 22,	/* tag; new packets take it; DONE */
	MUSTER_MANAGER_PASSED = 23,	/* tag; DONE: group: flows that are on it; key: packets that have gone by it */
	MUSTER_MANAGER_MEET = 24,	/* tag, host, life: its neighbour is there, with another life than its own; DONE */
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
	__le64 key;		/* the group's; SWITCH: the same for all that lay their ways by the same network */
	__le64 proof;		/* HELLO: follows from the job's key, which is not told */
	__le32 host;		/* NodeID */
	__le32 context;
	__le32 life;		/* of the context; HELLO, SWITCH: the sender's incarnation */
	__le32 group;
	__le16 tree;
	__u8 job;
	__u8 type;		/* of the tree: 0: low latency; 1: streaming */
	__le32 payload_max;	/* bytes of one packet of it */
	/*
	 * That follow: CREATE, CUT, DRAIN: members; HELLO, MOVE: claims; ADD, HOLD, WAYS: children; CREATED: gives;
	 * SWITCH: ports, all that it has.
	 */
	__le32 nr_members;
	__le32 flags;		/* MUSTER_MANAGER_* */
};

/* struct muster_manager_message.flags */
#define MUSTER_MANAGER_LOCKS	0x1	/* nothing goes by this group but under a lock */
#define MUSTER_MANAGER_MOVED	0x2	/* LEAVE: the host is in the group that stands for it; else it leaves that, too */
#define MUSTER_MANAGER_ORDER	0x4	/* CREATE: how it combines is to be told, too */
#define MUSTER_MANAGER_PLAIN	0x8	/* SWITCH: it has no aggregation node, and only forwards */

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

/* A group that a host is in. */
struct muster_manager_claim {
	__le64 key;
	__le32 group;
	__le16 tree;
	__le16 reserved;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_claim) == 16, "size");

/*
 * What a member has come to is combined into what another one has. One less than members of them, done one
 * after the other, are how a group's tree combines; each but one gives once, behind all that it takes.
 */
struct muster_manager_give {
	__le16 from;		/* places among the members */
	__le16 to;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_give) == 4, "size");

/* Who contributes to a group at a switch, in the order in which they are combined. */
struct muster_manager_child {
	__le32 node;
	__le32 incarnation;
	__le32 context;		/* of a host, as are the next three */
	__le32 life;
	__le32 member;
	__le16 vp;
	__u8 port;
	__u8 reserved;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_child) == 24, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_manager_child, vp) == 20, "offset");

/* What is at a switch's port; they stand in the order of their numbers. */
struct muster_manager_port {
	__le32 node;		/* the host; MUSTER_NODE_AGGREGATION + the switch, also if it only forwards; */
};

#define MUSTER_MANAGER_NOTHING	0xffffffffu	/* or nothing */

MUSTER_STATIC_ASSERT(sizeof(struct muster_manager_port) == 4, "size");

#endif /* MUSTER_MANAGER_H */
