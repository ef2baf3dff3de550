// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Orders to a running manager (am_order.h): each is one message, and its answer.
 */
#include "am_order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"
#include "muster_manager.h"

struct order {
	struct muster_manager_message head;
	struct muster_manager_member ends[2];
};

struct answer {
	struct muster_manager_message head;
	char why[MUSTER_MANAGER_WHY_MAX + 1];
};

static int ask(int fd, const struct order *order, struct answer *answer)
{
	size_t bytes = sizeof(order->head) + order->head.nr_members * sizeof(order->ends[0]);

	if (send(fd, order, bytes, MSG_NOSIGNAL) < 0)
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

static int give(const char *manager, const struct order *order, char *why, size_t why_len)
{
	struct answer answer = { .head.status = 0 };
	int fd = daemon_connect(manager, 0), err = fd;

	if (fd >= 0) {
		err = ask(fd, order, &answer);
		close(fd);
	}
	if (err)
		strncpy(why, *answer.why ? answer.why : strerror(-err), why_len - 1);
	return err;
}

int am_order_cut(const char *manager, uint32_t first, uint32_t second, char *why, size_t why_len)
{
	const struct order order = {
		.head = {
			.version = MUSTER_MANAGER_VERSION, .kind = MUSTER_MANAGER_CUT, .nr_members = 2,
		},
		.ends = {
			{ .host = MUSTER_NODE_AGGREGATION + first },
			{ .host = MUSTER_NODE_AGGREGATION + second },
		},
	};

	return give(manager, &order, why, why_len);
}

int am_order_clean(const char *manager, char *why, size_t why_len)
{
	const struct order order = {
		.head = { .version = MUSTER_MANAGER_VERSION, .kind = MUSTER_MANAGER_CLEAN },
	};

	return give(manager, &order, why, why_len);
}

int am_order_drain(const char *manager, uint32_t number, bool back, char *why, size_t why_len)
{
	const struct order order = {
		.head = {
			.version = MUSTER_MANAGER_VERSION, .nr_members = 1,
			.kind = back ? MUSTER_MANAGER_UNDRAIN : MUSTER_MANAGER_DRAIN,
		},
		.ends = { { .host = MUSTER_NODE_AGGREGATION + number } },
	};

	return give(manager, &order, why, why_len);
}
