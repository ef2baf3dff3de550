/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a place hangs in a k-nomial tree, k a power of two. Links are counted as they are used
 * on the way up: link i is of digit i % (k - 1) + 1 at k^(i / (k - 1)), a child's distance from
 * its parent. A place hears its children by the links from 0 on, then its parent by a later one;
 * on the way down, by the same backwards. All in constant time, for parts with few messages; who
 * calls with a constant for the bits of a digit (k = 2^bits) has no divisions.
 */
#ifndef MUSTER_BRANCH_H
#define MUSTER_BRANCH_H

#include "part.h"

struct muster_branch {
	uint32_t children;	/* by links 0 to children - 1 */
	uint32_t above;		/* the link to its parent; MUSTER_NOBODY: the root's */
};

/* Links no longer than a distance, where a digit has so many bits. */
static inline uint32_t muster_links(uint32_t bits, uint32_t distance)
{
	uint32_t digits;

	if (!distance)
		return 0;
	digits = (31 - (uint32_t)__builtin_clz(distance)) / bits;
	return (digits << bits) - digits + (distance >> digits * bits);
}

/* How long a link is, and the bits up to those of its digit. */
struct muster_link {
	uint32_t distance, mask;
};

static inline struct muster_link muster_link_of(uint32_t bits, uint32_t link)
{
	uint32_t most = (1u << bits) - 1, shift = link / most * bits;

	return (struct muster_link){ (link % most + 1) << shift, (most << shift) | ((1u << shift) - 1) };
}

/* Whether a place hangs by the link; else it may have a child by it. */
static inline bool muster_link_is_above(struct muster_link link, uint32_t place)
{
	return (place & link.mask) == link.distance;
}

static inline bool muster_link_is_below(struct muster_link link, uint32_t place, uint32_t places)
{
	return !(place & link.mask) && link.distance < places - place;
}

static inline struct muster_branch muster_branch_of(const struct muster_schedule *schedule,
						    uint32_t bits, uint32_t place)
{
	struct muster_branch branch = {
		.children = muster_links(bits, schedule->ranks - 1 - place), .above = MUSTER_NOBODY,
	};
	uint32_t zeros, below;

	if (!place)
		return branch;
	zeros = (uint32_t)__builtin_ctz(place) / bits;
	below = (zeros << bits) - zeros;
	branch.children = branch.children < below ? branch.children : below;
	branch.above = below + (place >> zeros * bits & ((1u << bits) - 1)) - 1;
	return branch;
}

/* The first link from one on that the place uses on the way up; MUSTER_NOBODY: none. */
static inline uint32_t muster_branch_up(const struct muster_branch *branch, uint32_t link)
{
	if (link < branch->children)
		return link;
	return link <= branch->above ? branch->above : MUSTER_NOBODY;
}

/* The same on the way down, on which links come backwards. */
static inline uint32_t muster_branch_down(const struct muster_branch *branch, uint32_t link)
{
	if (link >= branch->above)
		return branch->above;
	return link < branch->children ? link : branch->children - 1;	/* NOBODY, if there are none */
}

#endif /* MUSTER_BRANCH_H */
