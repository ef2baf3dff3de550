/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a copy that a peer will read is written. By way of the cache it is there when the peer is
 * near, one that shares this processor's last level of cache, and quickest. When the peer is far,
 * the lines that it has read must come back from there first, and to write takes four times as
 * long; past the cache (non-temporal stores) it takes the same wherever the peer is. So both ways
 * are timed, and the quicker one is gone: whoever moves, as virtual processors do, is followed.
 */
#ifndef MUSTER_FILL_H
#define MUSTER_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MUSTER_FILL_TIMED = 8 << 10,	/* bytes from which on it is worth a look at the clock */
	MUSTER_FILL_FAR = 3,		/* halves of what it takes past the cache: who takes longer is far */
	MUSTER_FILL_AGAIN = 64,		/* copies after which the other way is tried */
};

/* Of one peer. All zero at first. */
struct muster_fill {
	uint64_t took[2];	/* when it was gone last: by the cache, past it; ns for MUSTER_FILL_TIMED; 0: never */
	uint32_t copies;	/* since the other way was tried */
	bool past;
};

/**
 * muster_fill() - memcpy(), for who reads it elsewhere.
 * @to: at the start of a line of a cache.
 */
void muster_fill(struct muster_fill *fill, void *to, const void *from, size_t bytes);

/** muster_fill_past() - is the next copy to go past the cache? */
bool muster_fill_past(struct muster_fill *fill);
/** muster_fill_took() - bytes took so long. */
void muster_fill_took(struct muster_fill *fill, bool past, uint64_t ns, size_t bytes);

#endif /* MUSTER_FILL_H */
