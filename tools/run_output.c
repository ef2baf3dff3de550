// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Many ranks, one terminal: each rank's output is cut into lines, each line gets
 * its rank's prefix, and only whole lines reach the common stream. Nothing here
 * blocks, so that a reader who stalls cannot keep muster-run from its duties.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sink_put(struct run_sink *sink, const char *data, size_t len)
{
	if (sink->error)
		return;
	if (sink->len + len > sink->size) {
		size_t size = (sink->len + len) * 2;
		char *grown = realloc(sink->data, size);

		if (!grown) {
			sink->error = ENOMEM;
			return;
		}
		sink->data = grown;
		sink->size = size;
	}
	memcpy(sink->data + sink->len, data, len);
	sink->len += len;
}

void run_sink_print(struct run_sink *sink, const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	sink_put(sink, line, strlen(line));
}

/*
 * POLLOUT on a pipe means room for PIPE_BUF bytes, so that a write of no more
 * does not block. O_NONBLOCK would: it belongs to whoever shares our stdout.
 */
void run_sink_flush(struct run_sink *sink)
{
	struct pollfd ready = { .fd = sink->fd, .events = POLLOUT };
	size_t done = 0;

	if (!sink->len)
		return;
	while (done < sink->len && !sink->error && poll(&ready, 1, 0) > 0) {
		size_t rest = sink->len - done;
		ssize_t put = write(sink->fd, sink->data + done, rest < PIPE_BUF ? rest : PIPE_BUF);

		if (put >= 0)
			done += (size_t)put;
		else if (errno != EINTR && errno != EAGAIN)
			sink->error = errno;
	}
	sink->len = sink->error ? 0 : sink->len - done;
	memmove(sink->data, sink->data + done, sink->len);
}

/* The prefix of a line's second and later pieces has a plus: "[2]+ ". */
static void stream_put_prefix(struct run_stream *stream)
{
	size_t len = strlen(stream->prefix);

	if (!len)
		return;
	sink_put(stream->sink, stream->prefix, len - 1);
	sink_put(stream->sink, stream->inside ? "+ " : " ", stream->inside ? 2 : 1);
}

static void stream_put(struct run_stream *stream, const char *data, size_t len, bool whole)
{
	stream_put_prefix(stream);
	sink_put(stream->sink, data, len);
	if (!whole && stream->prefix[0])
		sink_put(stream->sink, "\n", 1);
	stream->inside = !whole;
}

static void stream_put_lines(struct run_stream *stream)
{
	char *line = stream->line, *end = stream->line + stream->len, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		stream_put(stream, line, (size_t)(newline + 1 - line), true);
		line = newline + 1;
	}
	stream->len = (size_t)(end - line);
	memmove(stream->line, line, stream->len);
	if (stream->len == RUN_LINE_MAX) {
		stream_put(stream, stream->line, stream->len, false);
		stream->len = 0;
	}
}

void run_stream_end(struct run_stream *stream)
{
	if (stream->len)
		stream_put(stream, stream->line, stream->len, false);
	stream->len = 0;
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
}

void run_stream_put(struct run_stream *stream, const char *data, size_t len)
{
	while (len) {
		size_t room = RUN_LINE_MAX - stream->len;
		size_t part = len < room ? len : room;

		memcpy(stream->line + stream->len, data, part);
		stream->len += part;
		stream_put_lines(stream);
		data += part;
		len -= part;
	}
}

int run_stream_fd(const struct run_stream *stream)
{
	return stream->sink && stream->sink->len < RUN_SINK_MAX ? stream->fd : -1;
}

void run_stream_open(struct run *run, struct run_stream *stream, struct run_sink *sink,
		     uint32_t rank, int fd)
{
	if (run->options->prefix)
		snprintf(stream->prefix, sizeof(stream->prefix), "[%u] ", rank);
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	stream->sink = sink;
	stream->fd = fd;
}

bool run_stream_read(struct run_stream *stream)
{
	ssize_t got;

	if (stream->fd < 0)
		return false;
	got = read(stream->fd, stream->line + stream->len, RUN_LINE_MAX - stream->len);

	if (got > 0) {
		stream->len += (size_t)got;
		stream_put_lines(stream);
	} else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
		run_stream_end(stream);
	}
	return got > 0;
}
