// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QMP over the guest's own port: one line at a time, each answered before the next.
 */
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MONITOR "/dev/virtio-ports/org.muster.monitor"

enum { QUIET_MS = 600 * 1000 };	/* after which QEMU says nothing more, as of a slot that nobody empties */

static int qmp = -1;

/* The next line that has one of the words, in answer to what was told or without being asked. */
static int line_wait(const char *word, char *line, size_t size)
{
	size_t len = 0;

	for (;;) {
		struct pollfd ready = { .fd = qmp, .events = POLLIN };
		ssize_t n = poll(&ready, 1, QUIET_MS);

		if (!n)
			fprintf(stderr, "QEMU: nothing like %s\n", word);
		if (n != 1)
			return n < 0 ? -errno : -ETIMEDOUT;
		n = read(qmp, line + len, 1);
		if (n != 1)
			return n < 0 ? -errno : -EPIPE;
		if (line[len] != '\n' && len + 2 < size) {
			len++;
			continue;
		}
		line[len] = 0;
		if (strstr(line, "\"error\""))
			fprintf(stderr, "QEMU: %s\n", line);
		if (strstr(line, "\"error\""))
			return -EPROTO;
		if (strstr(line, word))
			return 0;
		len = 0;
	}
}

int monitor_tell(const char *command, const char *answer, char *line, size_t size)
{
	if (write(qmp, command, strlen(command)) != (ssize_t)strlen(command))
		return -errno;
	return line_wait(answer, line, size);
}

int monitor_open(void)
{
	char line[1024];

	qmp = open(MONITOR, O_RDWR | O_CLOEXEC);
	if (qmp < 0)
		return -errno;
	return monitor_tell("{\"execute\":\"qmp_capabilities\"}\n", "\"return\"", line, sizeof(line));
}
