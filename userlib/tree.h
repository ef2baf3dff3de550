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

#endif /* MUSTER_TREE_H */
