/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages to a socket that keeps their bounds and may be full: those that it has no room for wait in
 * their order, and nobody else does.
 */
#ifndef MUSTER_OUTBOX_H
#define MUSTER_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct outbox_message;

struct outbox {
	struct outbox_message *first;	/* NULL: none waits */
	struct outbox_message *last;	/* if any does */
	size_t bytes;			/* of all that wait, and what keeps them */
};

/** outbox_say() - Return: 0: it is said, or waits; -errno: the connection is over. */
int outbox_say(struct outbox *outbox, int fd, const void *message, size_t bytes);
/** outbox_flush() - what there is room for. Return: 0; -errno: the connection is over. */
int outbox_flush(struct outbox *outbox, int fd);
/** outbox_drop() - forget all. */
void outbox_drop(struct outbox *outbox);

#endif /* MUSTER_OUTBOX_H */
