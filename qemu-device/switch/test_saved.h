/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: what a switch has, kept in memory. */
#ifndef MUSTER_SWITCH_TEST_SAVED_H
#define MUSTER_SWITCH_TEST_SAVED_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct saved {
	uint8_t *bytes;
	size_t len, room, at;
};

static inline int saved_write(void *opaque, void *bytes, size_t len)
{
	struct saved *saved = opaque;

	if (saved->len + len > saved->room) {
		saved->room = 2 * (saved->len + len);
		saved->bytes = realloc(saved->bytes, saved->room);
	}
	if (!saved->bytes)
		return -ENOMEM;
	memcpy(saved->bytes + saved->len, bytes, len);
	saved->len += len;
	return 0;
}

static inline int saved_read(void *opaque, void *bytes, size_t len)
{
	struct saved *saved = opaque;

	if (saved->len - saved->at < len)
		return -EIO;
	memcpy(bytes, saved->bytes + saved->at, len);
	saved->at += len;
	return 0;
}

#endif /* MUSTER_SWITCH_TEST_SAVED_H */
