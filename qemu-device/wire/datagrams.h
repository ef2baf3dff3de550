/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What has come to a socket, some datagrams with one system call: their bytes, from which
 * address and of which user. In the wire's own room only.
 */
#ifndef MUSTER_WIRE_DATAGRAMS_H
#define MUSTER_WIRE_DATAGRAMS_H

#include "address.h"

enum { MUSTER_DATAGRAMS_BATCH = 16 };

struct muster_datagrams;

struct muster_datagram {
	const struct muster_address *from;	/* NULL: another user than ours sent it */
	const uint8_t *bytes;			/* 8-byte aligned */
	size_t len;				/* of what is longer than a frame, more than that */
};

/** muster_datagrams_new() - has_users: the socket is UNIX, with SO_PASSCRED. NULL: no memory. */
struct muster_datagrams *muster_datagrams_new(bool has_users);

/** muster_datagrams_receive() - as recvmmsg() of at most a batch, without waiting. */
int muster_datagrams_receive(struct muster_datagrams *datagrams, int fd, int most);

/** muster_datagrams_get() - one of those that have come, until more are received. */
struct muster_datagram muster_datagrams_get(struct muster_datagrams *datagrams, int i);

/** muster_datagrams_peek() - its bytes, whoever sent it; NULL: they are fewer than len. */
const void *muster_datagrams_peek(const struct muster_datagrams *datagrams, int i, size_t len);

#endif /* MUSTER_WIRE_DATAGRAMS_H */
