// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What `rdma -dd resource show qp` of newer iproute2 shows of virtual ports, where the
 * installed one hides them: number and driver details of each queue pair, a line each.
 *
 * usage: nldev INDEX      (of the device, as `rdma dev` prints it)
 */
#include <err.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	DRIVER_DETAILS = 97,	/* RDMA_NLDEV_ATTR_DRIVER_DETAILS, newer than Debian 12's header */
	MESSAGE_BYTES = 65536,
};

static const struct nlattr *attr_next(const struct nlattr *attr, size_t *left)
{
	size_t bytes = NLA_ALIGN(attr->nla_len);

	*left -= bytes < *left ? bytes : *left;
	return (const void *)((const char *)attr + bytes);
}

static int attr_ok(const struct nlattr *attr, size_t left)
{
	return left >= sizeof(*attr) && attr->nla_len >= sizeof(*attr) && attr->nla_len <= left;
}

static uint32_t attr_u32(const struct nlattr *attr)
{
	uint32_t value;

	memcpy(&value, attr + 1, sizeof(value));
	return value;
}

static void attrs_print(const struct nlattr *attr, size_t left)
{
	for (; attr_ok(attr, left); attr = attr_next(attr, &left)) {
		switch (attr->nla_type & NLA_TYPE_MASK) {
		case RDMA_NLDEV_ATTR_RES_QP:
		case RDMA_NLDEV_ATTR_DRIVER:
			attrs_print(attr + 1, attr->nla_len - sizeof(*attr));
			break;
		case RDMA_NLDEV_ATTR_RES_QP_ENTRY:
			attrs_print(attr + 1, attr->nla_len - sizeof(*attr));
			printf("\n");
			break;
		case RDMA_NLDEV_ATTR_RES_LQPN:
			printf("lqpn %u", attr_u32(attr));
			break;
		case RDMA_NLDEV_ATTR_DRIVER_STRING:
			printf(" %s", (const char *)(attr + 1));
			break;
		case RDMA_NLDEV_ATTR_DRIVER_U32:
			printf(" %u", attr_u32(attr));
			break;
		}
	}
}

/* Return: whether that was the end. */
static int message_print(const struct nlmsghdr *msg)
{
	if (msg->nlmsg_type == NLMSG_ERROR)
		errx(1, "error %d", *(const int *)NLMSG_DATA(msg));
	if (msg->nlmsg_type == NLMSG_DONE)
		return 1;
	attrs_print(NLMSG_DATA(msg), msg->nlmsg_len - NLMSG_HDRLEN);
	return 0;
}

static void ask(int fd, uint32_t index)
{
	struct {
		struct nlmsghdr head;
		struct nlattr index_attr;
		uint32_t index;
		struct nlattr details_attr;
		uint8_t details[4];
	} request = {
		.head.nlmsg_len = sizeof(request),
		.head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET),
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.index_attr = { sizeof(struct nlattr) + 4, RDMA_NLDEV_ATTR_DEV_INDEX },
		.index = index,
		.details_attr = { sizeof(struct nlattr) + 1, DRIVER_DETAILS },
		.details = { 1 },
	};

	if (send(fd, &request, sizeof(request), 0) != sizeof(request))
		err(1, "send");
}

int main(int argc, char **argv)
{
	static char buffer[MESSAGE_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	int done = 0;

	if (argc != 2)
		errx(1, "usage: nldev INDEX");
	if (fd < 0)
		err(1, "socket");
	ask(fd, strtoul(argv[1], NULL, 0));
	while (!done) {
		ssize_t bytes = recv(fd, buffer, sizeof(buffer), 0);
		const struct nlmsghdr *msg = (const void *)buffer;

		if (bytes < 0)
			err(1, "recv");
		for (; NLMSG_OK(msg, bytes) && !done; msg = NLMSG_NEXT(msg, bytes))
			done = message_print(msg);
	}
	close(fd);
	return 0;
}
