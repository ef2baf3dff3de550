/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reduction trees of communicators: who makes their groups (manager.c), and operations
 * that run on them (tree.c).
 */
#ifndef MUSTER_TREE_H
#define MUSTER_TREE_H

#include "internal.h"

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
};

struct muster_trees {
	struct muster_tree by_type[MUSTER_TREE_TYPES];
};

/* ---- manager.c: the connection to who makes groups ---------------------------------------- */

/** muster_manager_open() - of a job with its key. Return: 0; -errno, and why. */
int muster_manager_open(struct muster *job, char *why, size_t why_len);
void muster_manager_close(struct muster *job);

/**
 * muster_manager_create() - have a group made of a communicator's members, one of which asks.
 * Operations go on meanwhile. Return: 0; -errno, and why.
 */
int muster_manager_create(struct muster_comm *comm, enum muster_tree_type type,
			  struct muster_tree *tree, char *why, size_t why_len);

/** muster_manager_leave() - this rank needs a group no more. */
void muster_manager_leave(struct muster *job, const struct muster_tree *tree);

/* ---- tree.c: the path by them ---------------------------------------------------------- */

/** muster_trees_open() - of a job with its key. 0: there is a manager, or none is named; -errno. */
int muster_trees_open(struct muster *job);
/** muster_trees_close() - no tree is used any more; why: to be said of operations, or NULL. */
void muster_trees_close(struct muster *job, const char *why);
/**
 * muster_comm_tree_join() - collective over a communicator that is open at all members: it gets a
 * group, or comm->no_tree says why not. Return: 0; -errno of this rank, of which the others do
 * not know: it cannot be used.
 */
int muster_comm_tree_join(struct muster_comm *comm);
void muster_comm_tree_leave(struct muster_comm *comm);
/** muster_trees_cannot() - why an operation is not for it, the same on every rank; NULL: it is. */
const char *muster_trees_cannot(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_serves() - whether trees have such a collective at all. */
bool muster_trees_serves(const struct muster_call *call);
/** muster_trees_why() - what is to be said of an operation that took it. */
const char *muster_trees_why(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_schedule() - and which kind of tree that was. */
const char *muster_trees_schedule(const struct muster_comm *comm, const struct muster_entry *entry);
/** muster_trees_lower() - see that entry->program is the tree's. 0; -ENOMEM. */
int muster_trees_lower(struct muster_comm *comm, struct muster_entry *entry);

#endif /* MUSTER_TREE_H */
