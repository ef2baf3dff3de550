// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the driver's generic netlink family tells, a line an object: kind, then names and values.
 *
 * usage: family devices|jobs|contexts [INDEX]     all, or those of one device
 *        family odd                               says how what is not in the policy is refused
 *
 * Exit status 2: it was interrupted, since objects came or went.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "rdma/muster-netlink.h"

static const char *const names[__MUSTER_NL_ATTR_END] = {
	[MUSTER_NL_ATTR_DEVICE_INDEX] = "device", [MUSTER_NL_ATTR_NODE] = "node",
	[MUSTER_NL_ATTR_INCARNATION] = "incarnation", [MUSTER_NL_ATTR_UNIT_USED] = "used",
	[MUSTER_NL_ATTR_UNIT_MAX] = "max", [MUSTER_NL_ATTR_BUFFERS] = "buffers",
	[MUSTER_NL_ATTR_UID] = "uid", [MUSTER_NL_ATTR_JOB] = "job",
	[MUSTER_NL_ATTR_JOB_CONTEXTS] = "contexts", [MUSTER_NL_ATTR_CONTEXT] = "context",
	[MUSTER_NL_ATTR_VP] = "vp", [MUSTER_NL_ATTR_LIFE] = "life", [MUSTER_NL_ATTR_SELF] = "self",
	[MUSTER_NL_ATTR_MEMBERS] = "members",
};

static void attrs_print(struct nlattr *attrs, int bytes)
{
	struct nlattr *attr;
	int left;

	nla_for_each_attr(attr, attrs, bytes, left) {
		int type = nla_type(attr);

		if (type == MUSTER_NL_ATTR_UNIT)
			attrs_print(nla_data(attr), nla_len(attr));
		else if (type == MUSTER_NL_ATTR_DEVICE_NAME || type == MUSTER_NL_ATTR_UNIT_NAME)
			printf(" %s", nla_get_string(attr));
		else if (type == MUSTER_NL_ATTR_BUFFER_BYTES)
			printf(" bytes %" PRIu64, nla_get_u64(attr));
		else if (type < __MUSTER_NL_ATTR_END && names[type])
			printf(" %s %" PRIu32, names[type], nla_get_u32(attr));
	}
}

static int message_print(struct nl_msg *msg, void *kind)
{
	struct genlmsghdr *head = nlmsg_data(nlmsg_hdr(msg));

	printf("%s", (const char *)kind);
	attrs_print(genlmsg_attrdata(head, 0), genlmsg_attrlen(head, 0));
	printf("\n");
	return NL_OK;
}

/* attr: beside the command, unless 0. */
static int ask(struct nl_sock *sock, int family, int cmd, int flags, int attr, uint32_t value)
{
	struct nl_msg *msg = nlmsg_alloc();
	int err;

	if (!genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, flags, cmd, MUSTER_NL_VERSION) ||
	    (attr && nla_put_u32(msg, attr, value)))
		errx(1, "message");
	err = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	if (err >= 0)
		err = nl_recvmsgs_default(sock);
	return err;
}

static void refused(struct nl_sock *sock, int family, const char *what, int cmd, int flags, int attr)
{
	printf("%s: %s\n", what, nl_geterror(ask(sock, family, cmd, flags, attr, 0)));
}

static void odd_ask(struct nl_sock *sock, int family)
{
	refused(sock, family, "no dump", MUSTER_NL_CMD_DEVICE_GET, NLM_F_ACK, 0);
	refused(sock, family, "an attribute of answers", MUSTER_NL_CMD_DEVICE_GET, NLM_F_DUMP, MUSTER_NL_ATTR_UID);
	refused(sock, family, "an unknown attribute", MUSTER_NL_CMD_JOB_GET, NLM_F_DUMP, __MUSTER_NL_ATTR_END);
	refused(sock, family, "an unknown command", __MUSTER_NL_CMD_END, NLM_F_DUMP, 0);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { [MUSTER_NL_CMD_DEVICE_GET] = "devices",
		[MUSTER_NL_CMD_JOB_GET] = "jobs", [MUSTER_NL_CMD_CONTEXT_GET] = "contexts" };
	struct nl_sock *sock = nl_socket_alloc();
	int family, cmd, result;

	if (argc < 2 || argc > 3)
		errx(1, "usage: family devices|jobs|contexts|odd [INDEX]");
	if (!sock || genl_connect(sock))
		errx(1, "no socket");
	family = genl_ctrl_resolve(sock, MUSTER_NL_FAMILY);
	if (family < 0)
		errx(1, "no family: %s", nl_geterror(family));
	for (cmd = MUSTER_NL_CMD_CONTEXT_GET; cmd && strcmp(kinds[cmd], argv[1]); cmd--)
		;
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, message_print, argv[1]);
	if (!cmd) {
		odd_ask(sock, family);
		return 0;
	}
	result = ask(sock, family, cmd, NLM_F_DUMP, argc == 3 ? MUSTER_NL_ATTR_DEVICE_INDEX : 0,
		     argc == 3 ? strtoul(argv[2], NULL, 0) : 0);
	nl_socket_free(sock);
	if (result == -NLE_DUMP_INTR)
		return 2;
	if (result < 0)
		errx(1, "%s: %s", argv[1], nl_geterror(result));
	return 0;
}
