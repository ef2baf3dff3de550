/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A rank's stream to the hub (stream.c).
 */
#ifndef MUSTER_STREAM_H
#define MUSTER_STREAM_H

#include "hub.h"

uint64_t muster_stream_now_us(void);
/**
 * muster_stream_read() - len bytes.
 * @end_us: when to give up; UINT64_MAX: only when the stream ends.
 * Return: 0; -ETIMEDOUT; -ECONNRESET.
 */
int muster_stream_read(int fd, void *to, size_t len, uint64_t end_us);
/** muster_head_read() - the same of a head, and the descriptor that may come with it. */
int muster_head_read(int fd, struct muster_frame *head, int *passed, uint64_t end_us);
/** muster_stream_write() - 0; -ECONNRESET. */
int muster_stream_write(int fd, const void *from, size_t len);

#endif /* MUSTER_STREAM_H */
