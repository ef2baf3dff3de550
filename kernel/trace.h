/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tracepoints of the control path and of what goes wrong, for tracefs, perf and the like:
 * events/muster. Nothing of a collective passes here. Each begins with the device's PCI
 * address; numbers are those of the device (uapi/muster_regs.h), not the core's.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM muster

#if !defined(MUSTER_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MUSTER_TRACE_H

#include <linux/tracepoint.h>

#include "muster.h"

TRACE_DEFINE_ENUM(MUSTER_ADMIN_NOP);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CQ_CREATE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CQ_DESTROY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_VP_CREATE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_VP_DESTROY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_MR_REGISTER);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_MR_DEREGISTER);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CONTEXT_OPEN);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CONTEXT_CLOSE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CONTEXT_ABORT);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_COUNTERS);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_QP_CREATE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_QP_MODIFY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_QP_QUERY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_QP_DESTROY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_SRQ_CREATE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_SRQ_LIMIT);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_SRQ_QUERY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_SRQ_DESTROY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CQ_MODERATE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_CQ_RESIZE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_QP_COUNT);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_TREE_JOIN);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_TREE_MOVE);

#define show_muster_opcode(opcode) \
	__print_symbolic(opcode, \
		{ MUSTER_ADMIN_NOP, "nop" }, \
		{ MUSTER_ADMIN_CQ_CREATE, "cq_create" }, \
		{ MUSTER_ADMIN_CQ_DESTROY, "cq_destroy" }, \
		{ MUSTER_ADMIN_VP_CREATE, "vp_create" }, \
		{ MUSTER_ADMIN_VP_DESTROY, "vp_destroy" }, \
		{ MUSTER_ADMIN_MR_REGISTER, "mr_register" }, \
		{ MUSTER_ADMIN_MR_DEREGISTER, "mr_deregister" }, \
		{ MUSTER_ADMIN_CONTEXT_OPEN, "context_open" }, \
		{ MUSTER_ADMIN_CONTEXT_CLOSE, "context_close" }, \
		{ MUSTER_ADMIN_CONTEXT_ABORT, "context_abort" }, \
		{ MUSTER_ADMIN_COUNTERS, "counters" }, \
		{ MUSTER_ADMIN_QP_CREATE, "qp_create" }, \
		{ MUSTER_ADMIN_QP_MODIFY, "qp_modify" }, \
		{ MUSTER_ADMIN_QP_QUERY, "qp_query" }, \
		{ MUSTER_ADMIN_QP_DESTROY, "qp_destroy" }, \
		{ MUSTER_ADMIN_SRQ_CREATE, "srq_create" }, \
		{ MUSTER_ADMIN_SRQ_LIMIT, "srq_limit" }, \
		{ MUSTER_ADMIN_SRQ_QUERY, "srq_query" }, \
		{ MUSTER_ADMIN_SRQ_DESTROY, "srq_destroy" }, \
		{ MUSTER_ADMIN_CQ_MODERATE, "cq_moderate" }, \
		{ MUSTER_ADMIN_CQ_RESIZE, "cq_resize" }, \
		{ MUSTER_ADMIN_QP_COUNT, "qp_count" }, \
		{ MUSTER_ADMIN_TREE_JOIN, "tree_join" }, \
		{ MUSTER_ADMIN_TREE_MOVE, "tree_move" })

TRACE_DEFINE_ENUM(MUSTER_ADMIN_OK);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_BAD_OPCODE);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_BAD_PARAMETER);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_NO_OBJECT);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_BUSY);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_NO_ROOM);
TRACE_DEFINE_ENUM(MUSTER_ADMIN_DMA);

#define show_muster_status(status) \
	__print_symbolic(status, \
		{ MUSTER_ADMIN_OK, "ok" }, \
		{ MUSTER_ADMIN_BAD_OPCODE, "bad_opcode" }, \
		{ MUSTER_ADMIN_BAD_PARAMETER, "bad_parameter" }, \
		{ MUSTER_ADMIN_NO_OBJECT, "no_object" }, \
		{ MUSTER_ADMIN_BUSY, "busy" }, \
		{ MUSTER_ADMIN_NO_ROOM, "no_room" }, \
		{ MUSTER_ADMIN_DMA, "dma" })

TRACE_DEFINE_ENUM(MUSTER_EVENT_VP_ERROR);
TRACE_DEFINE_ENUM(MUSTER_EVENT_CQ_OVERRUN);
TRACE_DEFINE_ENUM(MUSTER_EVENT_PEER_LOST);
TRACE_DEFINE_ENUM(MUSTER_EVENT_FATAL);
TRACE_DEFINE_ENUM(MUSTER_EVENT_QP_ERROR);
TRACE_DEFINE_ENUM(MUSTER_EVENT_QP_ACCESS);
TRACE_DEFINE_ENUM(MUSTER_EVENT_QP_DRAINED);
TRACE_DEFINE_ENUM(MUSTER_EVENT_SRQ_LIMIT);
TRACE_DEFINE_ENUM(MUSTER_EVENT_SRQ_ERROR);
TRACE_DEFINE_ENUM(MUSTER_EVENT_LINK);

#define show_muster_event(kind) \
	__print_symbolic(kind, \
		{ MUSTER_EVENT_VP_ERROR, "vp_error" }, \
		{ MUSTER_EVENT_CQ_OVERRUN, "cq_overrun" }, \
		{ MUSTER_EVENT_PEER_LOST, "peer_lost" }, \
		{ MUSTER_EVENT_FATAL, "fatal" }, \
		{ MUSTER_EVENT_QP_ERROR, "qp_error" }, \
		{ MUSTER_EVENT_QP_ACCESS, "qp_access" }, \
		{ MUSTER_EVENT_QP_DRAINED, "qp_drained" }, \
		{ MUSTER_EVENT_SRQ_LIMIT, "srq_limit" }, \
		{ MUSTER_EVENT_SRQ_ERROR, "srq_error" }, \
		{ MUSTER_EVENT_LINK, "link" })

/* The object is that which the command names by a number; 0 if it names none. */
TRACE_EVENT(muster_admin_command,
	TP_PROTO(const struct muster_dev *dev, const struct muster_admin_command *cmd, u32 object),
	TP_ARGS(dev, cmd, object),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__field(u16, tag)
		__field(u8, opcode)
		__field(u32, object)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		__entry->tag = le16_to_cpu(cmd->tag);
		__entry->opcode = cmd->opcode;
		__entry->object = object;
	),
	TP_printk("%s tag=%u %s object=%u", __get_str(device), __entry->tag,
		  show_muster_opcode(__entry->opcode), __entry->object)
);

TRACE_EVENT(muster_admin_reply,
	TP_PROTO(const struct muster_dev *dev, const struct muster_admin_reply *reply),
	TP_ARGS(dev, reply),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__field(u16, tag)
		__field(u8, opcode)
		__field(u8, status)
		__field(u32, detail)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		__entry->tag = le16_to_cpu(reply->tag);
		__entry->opcode = reply->opcode;
		__entry->status = reply->status;
		__entry->detail = le32_to_cpu(reply->detail);
	),
	TP_printk("%s tag=%u %s %s detail=%u", __get_str(device), __entry->tag,
		  show_muster_opcode(__entry->opcode), show_muster_status(__entry->status),
		  __entry->detail)
);

/* The object is a port, a completion queue or, of peer_lost, a node. */
TRACE_EVENT(muster_event,
	TP_PROTO(const struct muster_dev *dev, const struct muster_event *event),
	TP_ARGS(dev, event),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__field(u8, kind)
		__field(u32, object)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		__entry->kind = event->kind;
		__entry->object = le32_to_cpu(event->id);
	),
	TP_printk("%s %s object=%u", __get_str(device), show_muster_event(__entry->kind),
		  __entry->object)
);

DECLARE_EVENT_CLASS(muster_life,
	TP_PROTO(const struct muster_dev *dev),
	TP_ARGS(dev),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__field(u32, node)
		__field(u32, incarnation)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		__entry->node = dev->node;
		__entry->incarnation = dev->incarnation;
	),
	TP_printk("%s node=%u incarnation=%u", __get_str(device), __entry->node,
		  __entry->incarnation)
);

DEFINE_EVENT(muster_life, muster_up, TP_PROTO(const struct muster_dev *dev), TP_ARGS(dev));
DEFINE_EVENT(muster_life, muster_down, TP_PROTO(const struct muster_dev *dev), TP_ARGS(dev));

TRACE_EVENT(muster_stays_down,
	TP_PROTO(const struct muster_function *fn, int err),
	TP_ARGS(fn, err),
	TP_STRUCT__entry(
		__string(device, pci_name(fn->pdev))
		__field(int, err)
		__field(unsigned int, delay_ms)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(fn->pdev));
		__entry->err = err;
		__entry->delay_ms = fn->recover_delay_ms;
	),
	TP_printk("%s err=%d delay_ms=%u", __get_str(device), __entry->err, __entry->delay_ms)
);

/* No reason: by whoever resets, unbinds or unloads. */
TRACE_EVENT(muster_fence,
	TP_PROTO(const struct muster_dev *dev, const char *why),
	TP_ARGS(dev, why),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__field(u32, incarnation)
		__string(why, why ?: "as asked")
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		__entry->incarnation = dev->incarnation;
		MUSTER_ASSIGN_STR(why, why ?: "as asked");
	),
	TP_printk("%s incarnation=%u: %s", __get_str(device), __entry->incarnation, __get_str(why))
);

/* The driver's own limits: what one user may have of things, and pages of locked memory. */
TRACE_EVENT(muster_refused,
	TP_PROTO(const struct muster_dev *dev, const char *what, u64 held, u64 max, int err),
	TP_ARGS(dev, what, held, max, err),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->fn->pdev))
		__string(what, what)
		__field(u32, uid)
		__field(u64, held)
		__field(u64, max)
		__field(int, err)
	),
	TP_fast_assign(
		MUSTER_ASSIGN_STR(device, pci_name(dev->fn->pdev));
		MUSTER_ASSIGN_STR(what, what);
		__entry->uid = from_kuid(&init_user_ns, current_uid());
		__entry->held = held;
		__entry->max = max;
		__entry->err = err;
	),
	TP_printk("%s %s uid=%u held=%llu max=%llu err=%d", __get_str(device), __get_str(what),
		  __entry->uid, __entry->held, __entry->max, __entry->err)
);

#endif /* MUSTER_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
