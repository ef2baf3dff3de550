/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What tests of the mesh between real processes share: a mesh of each rank, and what it hears. */
#ifndef MUSTER_TEST_MESH_H
#define MUSTER_TEST_MESH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mesh_internal.h"
#include "test_ranks.h"

struct heard {
	struct muster_mesh_message message;
	uint32_t from;
	int fd;
	int nr;
	int lost[TEST_RANKS_MAX];	/* times */
	bool left[TEST_RANKS_MAX];
};

static inline void on_message(void *owner, uint32_t rank,
			      const struct muster_mesh_message *message, int fd)
{
	struct heard *heard = owner;

	heard->message = *message;
	heard->from = rank;
	heard->fd = fd;
	heard->nr++;
}

static inline void on_lost(void *owner, uint32_t rank, bool left)
{
	struct heard *heard = owner;

	heard->lost[rank]++;
	heard->left[rank] = left;
}

static inline struct muster_mesh *mesh_open(struct muster_oob *oob, struct heard *heard)
{
	static const struct muster_mesh_events events = { .message = on_message, .lost = on_lost };
	struct muster_mesh_config config = { .events = &events, .owner = heard,
					     .deadline_us = TEST_EVER_US, .memory_fd = -1 };
	struct muster_mesh *mesh;
	char why[256] = "";

	memset(heard, 0, sizeof(*heard));
	if (muster_mesh_open(oob, &config, &mesh, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	EXPECT(!*why);
	return mesh;
}

static inline int nr_lost(const struct heard *heard)
{
	int nr = 0;

	for (int rank = 0; rank < TEST_RANKS_MAX; rank++)
		nr += heard->lost[rank];
	return nr;
}

#endif
