/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reduction trees of communicators: who makes their groups (manager.c), operations
 * that run on them (tree.c) or combine as they do (order.c), and whose turn it is (lock.c).
 */
#ifndef MUSTER_TREE_H
#define MUSTER_TREE_H

#include "internal.h"
#include "pair.h"

enum muster_tree_type {
	MUSTER_TREE_LLT = 0,	/* low latency */
	MUSTER_TREE_SAT = 1,	/* streaming aggregation */
	MUSTER_TREE_TYPES,
};

/* A communicator's group on a tree of one type. */
struct muster_tree {
	uint16_t tree;
	uint32_t group;
	uint64_t key;		/* 0: there is none */
	uint32_t payload_max;	/* bytes of one packet */
	bool locks;		/* others use it as well */
	bool moved;		/* since `order` was told */
	struct muster_give *order;	/* how it combines the members' contributions; NULL: nobody asks */
};

/* Of a communicator's streaming tree. */
struct muster_tree_lock {
	uint64_t left;		/* operations that may be posted yet */
	uint64_t going;		/* that were, and have not ended, */
	uint64_t given;		/* of so many, */
	uint64_t given_us;	/* got then */
	uint64_t most;		/* fit into a time slice; 0: not known yet */
	uint64_t since_us;	/* when it was asked for; 0: it is not */
	uint32_t sequence;	/* of the request, */
	bool asked;		/* if the device has one */
	bool refused;		/* it is not to be had, and was given up */
	bool waits;		/* the next request waits until it may be had */
};

/* On the way to other groups (move.c). */
struct muster_moving {
	bool begun;		/* no operation begins on the old ones but those before `at`, */
	bool known;		/* which is known */
	uint32_t at;		/* or the largest so far */
	uint32_t unheard;	/* of the members that we ask, by bit; */
	uint32_t untold;	/* that are yet to be told what is due, */
	bool parent_untold;	/* and so is who asks us */
	struct muster_tree next[MUSTER_TREE_TYPES];
};

struct muster_trees {
	struct muster_tree by_type[MUSTER_TREE_TYPES];
	struct muster_tree_lock lock;
	struct muster_moving move;
	bool everywhere;	/* all members have theirs */
};

/* ---- manager.c: the connection to who makes groups ---------------------------------------- */

/** muster_manager_open() - of a job with its key. Return: 0; -errno, and why. */
int muster_manager_open(struct muster *job, char *why, size_t why_len);
void muster_manager_close(struct muster *job);

/**
 * muster_manager_create() - have a group made of a communicator's members, one of which asks.
 * Operations go on meanwhile.
 * @pair: of a streaming one, the low-latency one that locks it; or one without a key.
 * Return: 0; -errno, and why.
 */
int muster_manager_create(struct muster_comm *comm, enum muster_tree_type type,
			  const struct muster_tree *pair, struct muster_tree *tree, char *why,
			  size_t why_len);

/**
 * muster_manager_renew() - connect again, if the manager has gone and another has come: before all members
 * agree upon a communicator, for whose groups all must be connected, and before all is left.
 */
void muster_manager_renew(struct muster *job);

/** muster_manager_words() - for an error of these, where the manager's own are not known. */
const char *muster_manager_words(int err);

/** muster_manager_hold() - this rank is in a group that another created, until it leaves. 0; -ENOMEM. */
int muster_manager_hold(struct muster *job, const struct muster_tree *tree);
/** muster_manager_leave() - this rank needs a group no more; moved: as it is in another that stands for it. */
void muster_manager_leave(struct muster *job, const struct muster_tree *tree, bool moved);
/** muster_manager_look() - has it something to say that was not asked for? Now and then. */
void muster_manager_look(struct muster *job);

/* ---- move.c: from groups to others ------------------------------------------------------------ */

struct muster_control;

/** muster_move_wish() - the manager wants it of a communicator's first member. False: it is not known yet. */
bool muster_move_wish(struct muster *job, const struct muster_moved *moved);
/** muster_move_hear() - a rank has said something of it. */
void muster_move_hear(struct muster *job, uint32_t rank, const struct muster_control *control);
/** muster_move_visit() - say what found no room before, and go over if it is time. */
void muster_move_visit(struct muster_comm *comm);
/** muster_move_holds() - an operation on a tree has to wait until its group is known. */
static inline bool muster_move_holds(const struct muster_request *request)
{
	const struct muster_moving *move = &request->comm->trees->move;

	return __builtin_expect(move->begun, 0) &&
	       !(move->known && (int32_t)(request->number - move->at) < 0);
}

/* ---- tree.c: the path by them ---------------------------------------------------------- */

/** muster_trees_open() - of a job with its key. 0: there is a manager, or none is named; -errno. */
int muster_trees_open(struct muster *job);
/** muster_trees_close() - no tree is used any more; why: to be said of operations, or NULL. */
void muster_trees_close(struct muster *job, const char *why);
/** muster_tree_config() - a group, for the device. */
struct muster_dev_tree muster_tree_config(const struct muster *job, const struct muster_tree *tree);
/**
 * muster_comm_tree_join() - collective over a communicator that is open at all members: it gets a
 * group, or comm->no_tree says why not. Return: 0; -errno of this rank, of which the others do
 * not know: it cannot be used.
 */
int muster_comm_tree_join(struct muster_comm *comm);
/** muster_comm_tree_joined() - all members have agreed that they have joined. */
void muster_comm_tree_joined(struct muster_comm *comm);
void muster_comm_tree_leave(struct muster_comm *comm);
/** muster_trees_cannot() - why an operation is not for it, the same on every rank; NULL: it is. */
const char *muster_trees_cannot(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_missing() - why a communicator has none; empty: nobody makes any. */
const char *muster_trees_missing(const struct muster_comm *comm);

/* What an error says of that. */
static inline const char *muster_no_tree_words(const char *why)
{
	return *why ? why : "there is no tree";
}

/** muster_trees_serves() - whether trees have such a collective at all. */
bool muster_trees_serves(const struct muster_call *call);
/** muster_trees_of() - the one that an operation is for, if its communicator has one; else NULL. */
const struct muster_tree *muster_trees_of(const struct muster_comm *comm, const struct muster_call *call);
/** muster_trees_why() - what is to be said of an operation that took it. */
const char *muster_trees_why(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_schedule() - and which kind of tree that was. */
const char *muster_trees_schedule(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_lower() - see that entry->program is the tree's. 0; -ENOMEM. */
int muster_trees_lower(struct muster_comm *comm, struct muster_entry *entry);
/** muster_trees_locks() - whether an operation for it needs a lock. */
bool muster_trees_locks(const struct muster_comm *comm, const struct muster_entry *entry);

/* ---- order.c: other paths in their order ------------------------------------------------- */

/** muster_order_counts() - whether an operation's bits depend on the order in which it combines. */
bool muster_order_counts(const struct muster_call *call);
/** muster_order_share() - collective: what the first member has been told of a tree, all know. 0; -errno. */
int muster_order_share(struct muster_comm *comm, struct muster_tree *tree);
/** muster_order_schedule() - 1: entry->schedule has the tree's order; 0: another one is needed; -errno. */
int muster_order_schedule(struct muster_comm *comm, struct muster_entry *entry);
/** muster_order_words() - what is to be said of that on another path than the tree's. */
void muster_order_words(const struct muster_comm *comm, const struct muster_entry *entry, char *words, size_t len);

/* ---- lock.c: locks of the streaming one ---------------------------------------------------- */

/** muster_lock_have() - 0: the operation may be posted; -EAGAIN: later; -EBUSY: not on it; -errno. */
int muster_lock_have(struct muster_request *request);
/** muster_lock_hear() - a sequence has ended. Return: whether it was a request for a lock. */
bool muster_lock_hear(struct muster_comm *comm, const struct muster_cqe *cqe);
/** muster_lock_used() - an operation that had it has ended. */
void muster_lock_used(struct muster_request *request);

#endif /* MUSTER_TREE_H */
