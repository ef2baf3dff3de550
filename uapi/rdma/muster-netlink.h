/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Generic netlink family of the driver: devices, and what is theirs alone. Told in
 * Documentation/netlink.md. Numbers stay what they are; new ones come behind.
 */
#ifndef MUSTER_NETLINK_H
#define MUSTER_NETLINK_H

#define MUSTER_NL_FAMILY	"muster"
#define MUSTER_NL_VERSION	1

/* Each is only dumped: one message an object. */
enum muster_nl_command {
	MUSTER_NL_CMD_UNSPEC,
	MUSTER_NL_CMD_DEVICE_GET,
	MUSTER_NL_CMD_JOB_GET,
	MUSTER_NL_CMD_CONTEXT_GET,
	__MUSTER_NL_CMD_END,
};

enum muster_nl_attr {
	MUSTER_NL_ATTR_UNSPEC,
	MUSTER_NL_ATTR_PAD,
	MUSTER_NL_ATTR_DEVICE_INDEX,	/* u32, as rdma netlink has it; in a request: of this device alone */
	MUSTER_NL_ATTR_DEVICE_NAME,	/* string */
	MUSTER_NL_ATTR_NODE,		/* u32 */
	MUSTER_NL_ATTR_INCARNATION,	/* u32 */
	MUSTER_NL_ATTR_UNIT,		/* nest, one for each kind of object: */
	MUSTER_NL_ATTR_UNIT_NAME,	/* string */
	MUSTER_NL_ATTR_UNIT_USED,	/* u32 */
	MUSTER_NL_ATTR_UNIT_MAX,	/* u32 */
	MUSTER_NL_ATTR_BUFFERS,		/* u32: pieces of memory that processes share with the device */
	MUSTER_NL_ATTR_BUFFER_BYTES,	/* u64 */
	MUSTER_NL_ATTR_UID,		/* u32, of who made the object */
	MUSTER_NL_ATTR_JOB,		/* u32, JobID */
	MUSTER_NL_ATTR_JOB_CONTEXTS,	/* u32, open */
	MUSTER_NL_ATTR_CONTEXT,		/* u32, id */
	MUSTER_NL_ATTR_VP,		/* u32, virtual port */
	MUSTER_NL_ATTR_LIFE,		/* u32 */
	MUSTER_NL_ATTR_SELF,		/* u32 */
	MUSTER_NL_ATTR_MEMBERS,		/* u32, how many */
	__MUSTER_NL_ATTR_END,
};

#endif /* MUSTER_NETLINK_H */
