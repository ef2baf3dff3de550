// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is taken of NICs, and who are members of jobs there, as their driver tells it in a generic
 * netlink family of its own (Documentation/netlink.md). A machine without the driver has no such
 * family; then nothing is known, and nothing is wrong.
 */
#include "stat.h"

#include <stdlib.h>
#include <string.h>

#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "rdma/muster-netlink.h"

enum { DUMPS_MAX = 8 };	/* of one kind, until none of its objects came or went meanwhile */

static struct nla_policy policy[__MUSTER_NL_ATTR_END] = {
	[MUSTER_NL_ATTR_DEVICE_INDEX] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_DEVICE_NAME] = { .type = NLA_STRING },
	[MUSTER_NL_ATTR_INCARNATION] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_UNIT] = { .type = NLA_NESTED },
	[MUSTER_NL_ATTR_UNIT_NAME] = { .type = NLA_STRING },
	[MUSTER_NL_ATTR_UNIT_USED] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_UNIT_MAX] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_BUFFERS] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_BUFFER_BYTES] = { .type = NLA_U64 },
	[MUSTER_NL_ATTR_UID] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_JOB] = { .type = NLA_U32 },
	[MUSTER_NL_ATTR_JOB_CONTEXTS] = { .type = NLA_U32 },
};

/* 0 where the driver does not tell. */
static uint64_t number(struct nlattr **attrs, int which)
{
	struct nlattr *attr = attrs[which];

	if (!attr)
		return 0;
	return policy[which].type == NLA_U64 ? nla_get_u64(attr) : nla_get_u32(attr);
}

static struct stat_taken *taken_of(struct stat_sample *sample, uint32_t index)
{
	for (uint32_t i = 0; i < sample->nr_nics; i++)
		if (sample->nics[i].taken.known && sample->nics[i].taken.index == index)
			return &sample->nics[i].taken;
	return NULL;
}

/* ---- messages ------------------------------------------------------------------------ */

static void unit_take(struct stat_taken *taken, struct nlattr *nest)
{
	struct stat_unit *unit = &taken->units[taken->nr_units];
	struct nlattr *attrs[__MUSTER_NL_ATTR_END];

	if (taken->nr_units == STAT_UNITS_MAX ||
	    nla_parse_nested(attrs, __MUSTER_NL_ATTR_END - 1, nest, policy) ||
	    !attrs[MUSTER_NL_ATTR_UNIT_NAME])
		return;
	nla_strlcpy(unit->name, attrs[MUSTER_NL_ATTR_UNIT_NAME], sizeof(unit->name));
	unit->used = (uint32_t)number(attrs, MUSTER_NL_ATTR_UNIT_USED);
	unit->max = (uint32_t)number(attrs, MUSTER_NL_ATTR_UNIT_MAX);
	taken->nr_units++;
}

static int device_take(struct nl_msg *msg, void *arg)
{
	struct genlmsghdr *head = nlmsg_data(nlmsg_hdr(msg));
	struct nlattr *attrs[__MUSTER_NL_ATTR_END], *attr;
	struct stat_sample *sample = arg;
	struct stat_taken *taken = NULL;
	int left;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, attrs, __MUSTER_NL_ATTR_END - 1, policy) ||
	    !attrs[MUSTER_NL_ATTR_DEVICE_NAME])
		return NL_SKIP;
	for (uint32_t i = 0; i < sample->nr_nics; i++)
		if (!nla_strcmp(attrs[MUSTER_NL_ATTR_DEVICE_NAME], sample->nics[i].nic.name))
			taken = &sample->nics[i].taken;
	if (!taken)
		return NL_SKIP;
	*taken = (struct stat_taken){
		.known = true, .index = (uint32_t)number(attrs, MUSTER_NL_ATTR_DEVICE_INDEX),
		.incarnation = (uint32_t)number(attrs, MUSTER_NL_ATTR_INCARNATION),
		.buffers = (uint32_t)number(attrs, MUSTER_NL_ATTR_BUFFERS),
		.buffer_bytes = number(attrs, MUSTER_NL_ATTR_BUFFER_BYTES),
	};
	nla_for_each_attr(attr, genlmsg_attrdata(head, 0), genlmsg_attrlen(head, 0), left)
		if (nla_type(attr) == MUSTER_NL_ATTR_UNIT)
			unit_take(taken, attr);
	return NL_OK;
}

static int member_take(struct nl_msg *msg, void *arg)
{
	struct nlattr *attrs[__MUSTER_NL_ATTR_END];
	struct stat_member *members;
	struct stat_taken *taken;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, attrs, __MUSTER_NL_ATTR_END - 1, policy))
		return NL_SKIP;
	taken = taken_of(arg, (uint32_t)number(attrs, MUSTER_NL_ATTR_DEVICE_INDEX));
	members = taken ? realloc(taken->members, (taken->nr_members + 1) * sizeof(*members)) : NULL;
	if (!members)
		return NL_SKIP;
	taken->members = members;
	members[taken->nr_members++] = (struct stat_member){
		.uid = (uint32_t)number(attrs, MUSTER_NL_ATTR_UID),
		.job = (uint32_t)number(attrs, MUSTER_NL_ATTR_JOB),
		.contexts = (uint32_t)number(attrs, MUSTER_NL_ATTR_JOB_CONTEXTS),
	};
	return NL_OK;
}

/* ---- asking -------------------------------------------------------------------------- */

static void members_forget(struct stat_sample *sample)
{
	for (uint32_t i = 0; i < sample->nr_nics; i++) {
		free(sample->nics[i].taken.members);
		sample->nics[i].taken.members = NULL;
		sample->nics[i].taken.nr_members = 0;
	}
}

static int ask(struct nl_sock *sock, int family, int cmd)
{
	struct nl_msg *msg = nlmsg_alloc();
	int err = -NLE_NOMEM;

	if (msg && genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, NLM_F_DUMP, (uint8_t)cmd,
			       MUSTER_NL_VERSION))
		err = nl_send_auto(sock, msg);
	nlmsg_free(msg);
	return err < 0 ? err : nl_recvmsgs_default(sock);
}

/* Where objects came or went meanwhile it is asked once more; who is always late takes what there is. */
static void dump(struct nl_sock *sock, int family, int cmd, nl_recvmsg_msg_cb_t take,
		 struct stat_sample *sample)
{
	int err = -NLE_DUMP_INTR;

	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, take, sample);
	for (int i = 0; i < DUMPS_MAX && err == -NLE_DUMP_INTR; i++) {
		members_forget(sample);
		err = ask(sock, family, cmd);
	}
}

void stat_taken_read(struct stat_sample *sample)
{
	struct nl_sock *sock = sample->nr_nics ? nl_socket_alloc() : NULL;
	int family;

	if (!sock)
		return;
	if (!genl_connect(sock)) {
		family = genl_ctrl_resolve(sock, MUSTER_NL_FAMILY);
		if (family > 0) {
			dump(sock, family, MUSTER_NL_CMD_DEVICE_GET, device_take, sample);
			dump(sock, family, MUSTER_NL_CMD_JOB_GET, member_take, sample);
		}
	}
	nl_socket_free(sock);
}

void stat_taken_free(struct stat_sample *sample)
{
	members_forget(sample);
}

/* ---- a report ------------------------------------------------------------------------ */

static json_t *units_json(const struct stat_taken *taken)
{
	json_t *units = json_object();

	for (uint32_t i = 0; i < taken->nr_units; i++) {
		json_t *unit = json_object();

		diag_set_number(unit, "used", taken->units[i].used);
		diag_set_number(unit, "max", taken->units[i].max);
		diag_set(units, taken->units[i].name, unit);
	}
	return units;
}

static json_t *members_json(const struct stat_taken *taken)
{
	json_t *members = json_array();

	for (uint32_t i = 0; i < taken->nr_members; i++) {
		json_t *member = json_object();

		diag_set_number(member, "uid", taken->members[i].uid);
		diag_set_number(member, "job", taken->members[i].job);
		diag_set_number(member, "contexts", taken->members[i].contexts);
		json_array_append_new(members, member);
	}
	return members;
}

json_t *stat_taken_json(const struct stat_taken *taken)
{
	json_t *json = taken->known ? json_object() : json_null();

	if (!taken->known)
		return json;
	diag_set_number(json, "incarnation", taken->incarnation);
	diag_set(json, "units", units_json(taken));
	diag_set_number(json, "buffers", taken->buffers);
	diag_set_number(json, "buffer_bytes", taken->buffer_bytes);
	diag_set(json, "members", members_json(taken));
	return json;
}
