/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Symmetries of an instance: a permutation of the nodes that keeps the topology,
 * with one of the chunks that keeps where they are and where they must be. Some of
 * them together make a quotient: a solver that looks only for solutions that they
 * keep has fewer unknowns. What it finds is a solution; that it finds none says
 * nothing.
 */
#ifndef MUSTER_SYNTH_QUOTIENT_H
#define MUSTER_SYNTH_QUOTIENT_H

#include "instance.h"

struct muster_quotient {
	uint32_t *send;			/* by chunk and link: the least index of its orbit */
	uint32_t *place;		/* by chunk and node */
	uint32_t *link;			/* by link */
	uint32_t nr_sends;		/* orbits of chunks and links: what is unknown */
	bool free;			/* all orbits of places are of one size */
};

/**
 * muster_quotients() - free ones first, then by what they leave unknown.
 * @max: no more than these.
 * Return: how many; -ENOMEM. To be freed by muster_quotients_free().
 */
int muster_quotients(const struct muster_instance *instance, uint32_t max,
		     struct muster_quotient **quotients);

void muster_quotients_free(struct muster_quotient *quotients, int nr);

#endif /* MUSTER_SYNTH_QUOTIENT_H */
