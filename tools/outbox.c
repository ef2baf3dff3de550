// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What waits for room in a socket (outbox.h).
 */
#include "outbox.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct outbox_message {
	struct outbox_message *next;
	size_t bytes;
	uint8_t said[];
};

/* 0; -EAGAIN: later; -errno. */
static int try(int fd, const void *message, size_t bytes)
{
	if (send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return errno == EINTR ? -EAGAIN : -errno;
}

static int keep(struct outbox *outbox, const void *message, size_t bytes)
{
	struct outbox_message *kept = malloc(sizeof(*kept) + bytes);

	if (!kept)
		return -ENOMEM;
	*kept = (struct outbox_message){ .bytes = bytes };
	memcpy(kept->said, message, bytes);
	if (outbox->first)
		outbox->last->next = kept;
	else
		outbox->first = kept;
	outbox->last = kept;
	outbox->bytes += sizeof(*kept) + bytes;
	return 0;
}

static void forget_first(struct outbox *outbox)
{
	struct outbox_message *first = outbox->first;

	outbox->first = first->next;
	outbox->bytes -= sizeof(*first) + first->bytes;
	free(first);
}

int outbox_say(struct outbox *outbox, int fd, const void *message, size_t bytes)
{
	int err = outbox->first ? -EAGAIN : try(fd, message, bytes);

	return err == -EAGAIN ? keep(outbox, message, bytes) : err;
}

int outbox_flush(struct outbox *outbox, int fd)
{
	int err = 0;

	while (outbox->first) {
		err = try(fd, outbox->first->said, outbox->first->bytes);
		if (err)
			break;
		forget_first(outbox);
	}
	return err == -EAGAIN ? 0 : err;
}

void outbox_drop(struct outbox *outbox)
{
	while (outbox->first)
		forget_first(outbox);
}
