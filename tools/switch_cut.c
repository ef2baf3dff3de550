// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The link between two switches of a running network is taken down: muster-am --cut asks for it, and the
 * network's manager has both switches see it as lost. What they still send each other is dropped.
 */
#include "switch_cut.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"
#include "muster_manager.h"

struct request {
	struct muster_manager_message head;
	struct muster_manager_member ends[2];
};

struct answer {
	struct muster_manager_message head;
	char why[MUSTER_MANAGER_WHY_MAX + 1];
};

static int ask(int fd, uint32_t first, uint32_t second, struct answer *answer)
{
	const struct request request = {
		.head = {
			.version = MUSTER_MANAGER_VERSION, .kind = MUSTER_MANAGER_CUT, .nr_members = 2,
		},
		.ends = {
			{ .host = MUSTER_NODE_AGGREGATION + first },
			{ .host = MUSTER_NODE_AGGREGATION + second },
		},
	};

	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return -errno;
	/* One that does not know what it is asked ends the connection. */
	switch (recv(fd, answer, sizeof(*answer) - 1, 0)) {
	case -1:
		return -errno;
	case 0:
		return -EPROTO;
	}
	return answer->head.kind == MUSTER_MANAGER_DONE ? -(int)answer->head.status : -EPROTO;
}

int switch_cut(const char *manager, uint32_t first, uint32_t second, char *why, size_t why_len)
{
	struct answer answer = { .head.status = 0 };
	int fd = daemon_connect(manager, 0), err = fd;

	if (fd >= 0) {
		err = ask(fd, first, second, &answer);
		close(fd);
	}
	if (err)
		strncpy(why, *answer.why ? answer.why : strerror(-err), why_len - 1);
	return err;
}
