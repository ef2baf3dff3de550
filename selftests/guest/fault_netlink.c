// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Questions by netlink, put together by hand: a library would allocate, and hide what failed.
 */
#include "fault_netlink.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/muster-netlink.h"

enum { QUESTION_BYTES = 256, ANSWER_BYTES = 8192, PORT = 1 };

struct question {
	struct nlmsghdr head;
	char body[QUESTION_BYTES];
};

/* A number that is looked for in the answers, at their top; those of a family have a header of its own. */
struct wanted {
	uint16_t attr;
	size_t header_len;
	uint32_t value;
};

static int rdma = -1, generic = -1;
static uint16_t family;

/* ---- questions ----------------------------------------------------------------------- */

static struct question question(uint16_t type, uint16_t flags)
{
	return (struct question){ .head = { .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = type,
					    .nlmsg_flags = NLM_F_REQUEST | flags } };
}

static void put(struct question *to, const void *bytes, size_t len)
{
	memcpy((char *)to + to->head.nlmsg_len, bytes, len);
	to->head.nlmsg_len += NLMSG_ALIGN(len);
}

static void put_attr(struct question *to, uint16_t type, const void *bytes, size_t len)
{
	const struct nlattr attr = { .nla_len = NLA_HDRLEN + len, .nla_type = type };

	put(to, &attr, sizeof(attr));
	put(to, bytes, len);
}

static void put_u32(struct question *to, uint16_t type, uint32_t value)
{
	put_attr(to, type, &value, sizeof(value));
}

static struct question question_generic(uint16_t to, uint8_t cmd, uint8_t version, uint16_t flags)
{
	const struct genlmsghdr head = { .cmd = cmd, .version = version };
	struct question ask = question(to, flags);

	put(&ask, &head, sizeof(head));
	return ask;
}

/* ---- answers ------------------------------------------------------------------------- */

static void look_for(struct wanted *wanted, const struct nlmsghdr *msg)
{
	const char *at = (const char *)NLMSG_DATA(msg) + wanted->header_len, *end = (const char *)msg + msg->nlmsg_len;
	const struct nlattr *attr;

	for (; end - at >= NLA_HDRLEN; at += NLA_ALIGN(attr->nla_len)) {
		attr = (const void *)at;
		if (attr->nla_len < NLA_HDRLEN)
			return;
		if (attr->nla_type == wanted->attr)
			memcpy(&wanted->value, at + NLA_HDRLEN, attr->nla_len == NLA_HDRLEN + 2 ? 2 : 4);
	}
}

/* Return: whether that was the last, which says how it went. */
static bool answer_take(const struct nlmsghdr *msg, struct wanted *wanted, int *error)
{
	if (msg->nlmsg_type == NLMSG_ERROR || msg->nlmsg_type == NLMSG_DONE) {
		memcpy(error, NLMSG_DATA(msg), sizeof(*error));
		return true;
	}
	if (wanted)
		look_for(wanted, msg);
	return false;
}

static int ask(int fd, const struct question *question, struct wanted *wanted)
{
	static char answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *msg;
	int bytes, error = 0;

	if (send(fd, question, question->head.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		bytes = recv(fd, answer, sizeof(answer), 0);
		if (bytes < 0)
			return -errno;
		for (msg = (const void *)answer; NLMSG_OK(msg, (unsigned int)bytes); msg = NLMSG_NEXT(msg, bytes))
			if (answer_take(msg, wanted, &error))
				return error;
	}
}

/* ---- sockets ------------------------------------------------------------------------- */

static int socket_open(int *fd, int protocol)
{
	const struct sockaddr_nl any = { .nl_family = AF_NETLINK };

	if (*fd >= 0)
		close(*fd);
	*fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	return *fd < 0 || bind(*fd, (const void *)&any, sizeof(any)) ? -errno : 0;
}

static int family_find(void)
{
	struct question question = question_generic(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, NLM_F_ACK);
	struct wanted id = { .attr = CTRL_ATTR_FAMILY_ID, .header_len = GENL_HDRLEN };
	int err;

	put_attr(&question, CTRL_ATTR_FAMILY_NAME, MUSTER_NL_FAMILY, sizeof(MUSTER_NL_FAMILY));
	err = ask(generic, &question, &id);
	family = id.value;
	return err;
}

int fault_netlink_open(void)
{
	int err = socket_open(&rdma, NETLINK_RDMA);

	if (!err)
		err = socket_open(&generic, NETLINK_GENERIC);
	return err ? err : family_find();
}

/* ---- what is asked ------------------------------------------------------------------- */

static struct question question_stat(int cmd, uint32_t device)
{
	struct question ask = question(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd), NLM_F_ACK);

	put_u32(&ask, RDMA_NLDEV_ATTR_DEV_INDEX, device);
	put_u32(&ask, RDMA_NLDEV_ATTR_PORT_INDEX, PORT);
	return ask;
}

static void put_qp(struct question *to, uint32_t qp)
{
	put_u32(to, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	put_u32(to, RDMA_NLDEV_ATTR_RES_LQPN, qp);
}

int fault_counter_bind(uint32_t device, uint32_t qp, uint32_t *counter)
{
	struct question question = question_stat(RDMA_NLDEV_CMD_STAT_SET, device);
	struct wanted id = { .attr = RDMA_NLDEV_ATTR_STAT_COUNTER_ID };
	int err;

	put_qp(&question, qp);
	put_u32(&question, RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_MANUAL);
	err = ask(rdma, &question, &id);
	*counter = id.value;
	return err;
}

int fault_counter_unbind(uint32_t device, uint32_t qp, uint32_t counter)
{
	struct question question = question_stat(RDMA_NLDEV_CMD_STAT_DEL, device);

	put_qp(&question, qp);
	put_u32(&question, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, counter);
	return ask(rdma, &question, NULL);
}

int fault_counters_read(uint32_t device, uint32_t counter)
{
	struct question question = question_stat(RDMA_NLDEV_CMD_STAT_GET, device);

	if (counter) {
		put_u32(&question, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
		put_u32(&question, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, counter);
	}
	return ask(rdma, &question, NULL);
}

int fault_family_dump(uint8_t cmd)
{
	const struct question question = question_generic(family, cmd, MUSTER_NL_VERSION, NLM_F_DUMP);

	return ask(generic, &question, NULL);
}
