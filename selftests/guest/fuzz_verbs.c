// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands of verbs, with the driver's part behind the core's, as they should be or bent.
 */
#include "fuzz_state.h"

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "muster_regs.h"
#include "rdma/muster-abi.h"

#define DEVICE "/dev/infiniband/uverbs0"

enum { COMMAND_BYTES = 256 };

/* Types of queue pairs, as the core has them. */
enum { QPT_RC = 2, QPT_UD = 4, QPT_DRIVER = 255 };

/* ---- commands ------------------------------------------------------------------------ */

void fuzz_bend_bytes(void *bytes, size_t len)
{
	uint32_t odd;

	if (!fuzz_bend || !len)
		return;
	for (int i = fuzz_random(&fuzz_bend) % 3; i >= 0; i--) {
		size_t at = fuzz_random(&fuzz_bend) % len;

		if (fuzz_random(&fuzz_bend) % 2) {
			((uint8_t *)bytes)[at] ^= 1u << fuzz_random(&fuzz_bend) % 8;
			continue;
		}
		odd = fuzz_odd_number(&fuzz_bend);
		at &= ~(size_t)3;
		memcpy((char *)bytes + at, &odd, len - at < sizeof(odd) ? len - at : sizeof(odd));
	}
}

static size_t bend_length(size_t len)
{
	if (!fuzz_bend || fuzz_random(&fuzz_bend) % 4)
		return len;
	return (len + fuzz_random(&fuzz_bend) % 17 * 4 - 32) % COMMAND_BYTES & ~(size_t)3;
}

/*
 * A command, of the core's part and the driver's behind it; where its answer goes is the
 * first field of most. Return: whether the kernel took it.
 */
static bool command(uint32_t number, const void *body, size_t len, void *answer, size_t answer_len)
{
	struct {
		struct ib_uverbs_cmd_hdr head;
		char body[COMMAND_BYTES];
	} cmd = { .head.command = number };
	size_t bytes = bend_length(len);

	memcpy(cmd.body, body, len);
	memset(answer, 0, answer_len);
	fuzz_bend_bytes(cmd.body, len);
	cmd.head.in_words = (sizeof(cmd.head) + bytes) / 4;
	cmd.head.out_words = bend_length(answer_len) / 4;
	return write(fuzz_file->fd, &cmd, sizeof(cmd.head) + bytes) == (ssize_t)(sizeof(cmd.head) + bytes);
}

/*
 * The same of the newer kind, which tells both parts' lengths, in words of 8 bytes; the answer of
 * the driver's follows that of the core's.
 */
struct parts {
	const void *core, *own;
	size_t core_len, own_len;
	size_t core_answer, own_answer;
};

static bool command_ex(uint32_t number, const struct parts *parts, void *answer)
{
	struct {
		struct ib_uverbs_cmd_hdr head;
		struct ib_uverbs_ex_cmd_hdr ex;
		char body[2 * COMMAND_BYTES];
	} cmd = { .head.command = number | IB_USER_VERBS_CMD_FLAG_EXTENDED, .ex.response = (uintptr_t)answer };
	size_t core = bend_length(parts->core_len) & ~(size_t)7, own = bend_length(parts->own_len) & ~(size_t)7;

	memcpy(cmd.body, parts->core, parts->core_len < core ? parts->core_len : core);
	if (parts->own)
		memcpy(cmd.body + core, parts->own, parts->own_len < own ? parts->own_len : own);
	memset(answer, 0, parts->core_answer + parts->own_answer);
	fuzz_bend_bytes(cmd.body, core + own);
	cmd.head.in_words = core / 8;
	cmd.head.out_words = parts->core_answer / 8;
	cmd.ex.provider_in_words = own / 8;
	cmd.ex.provider_out_words = parts->own_answer / 8;
	core += own + sizeof(cmd.head) + sizeof(cmd.ex);
	return write(fuzz_file->fd, &cmd, core) == (ssize_t)core;
}

void fuzz_made(enum fuzz_type type, uint32_t handle)
{
	fuzz_file->objects[type][fuzz_file->nr_objects[type]++ % FUZZ_OBJECTS] = handle;
}

uint32_t fuzz_chosen(enum fuzz_type type, uint32_t which)
{
	uint32_t nr = fuzz_file->nr_objects[type] < FUZZ_OBJECTS ? fuzz_file->nr_objects[type] : FUZZ_OBJECTS;

	return nr && which % 16 ? fuzz_file->objects[type][which % nr] : which;
}

static void mappable(uint64_t offset, uint64_t bytes)
{
	if (!offset && !bytes)
		return;
	fuzz_file->offsets[fuzz_file->nr_offsets % FUZZ_OFFSETS].offset = offset;
	fuzz_file->offsets[fuzz_file->nr_offsets++ % FUZZ_OFFSETS].bytes = bytes ? bytes : FUZZ_PAGE;
}

static void open_file(void)
{
	struct {
		struct ib_uverbs_get_context_resp ibv;
		struct muster_alloc_ucontext_resp own;
	} resp;
	struct ib_uverbs_get_context cmd = { .response = (uintptr_t)&resp };

	fuzz_file_close();
	memset(fuzz_file, 0, sizeof(*fuzz_file));
	fuzz_file->fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (!command(IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return;
	fuzz_file->async = resp.ibv.async_fd;
	mappable(resp.own.bells_offset, FUZZ_PAGE);
}

static void pd_alloc(void)
{
	struct {
		struct ib_uverbs_alloc_pd_resp ibv;
		struct muster_alloc_pd_resp own;
	} resp;
	struct ib_uverbs_alloc_pd cmd = { .response = (uintptr_t)&resp };

	if (command(IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		fuzz_made(PD, resp.ibv.pd_handle);
}

static void mr_reg(const uint32_t *args)
{
	struct {
		struct ib_uverbs_reg_mr_resp ibv;
		struct muster_reg_mr_resp own;
	} resp = {};
	struct {
		struct ib_uverbs_reg_mr ibv;
		struct muster_reg_mr_cmd own;
	} cmd = {
		.ibv = {
			.response = (uintptr_t)&resp,
			.start = (uintptr_t)fuzz_memory_new() + args[0] % FUZZ_MEMORY_BYTES,
			.length = args[1] % 2 ? args[1] : args[1] % FUZZ_MEMORY_BYTES,
			.pd_handle = fuzz_chosen(PD, args[2]), .access_flags = args[0] % 4 ? 1 : args[0] % 256,
		},
		.own.flags = args[2] % 2,
	};

	cmd.ibv.hca_va = cmd.ibv.start;
	if (command(IB_USER_VERBS_CMD_REG_MR, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		fuzz_made(MR, resp.ibv.mr_handle);
	mappable((uint64_t)resp.own.changes * MUSTER_CHANGES_BYTES, 0);
}

static void channel_create(void)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct ib_uverbs_create_comp_channel cmd = { .response = (uintptr_t)&resp };

	/* Of a bent command it is not known whose descriptor that is. */
	if (fuzz_file->nr_objects[CHANNEL] < FUZZ_OBJECTS && !fuzz_bend &&
	    command(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		fuzz_made(CHANNEL, resp.fd);
}

static void cq_create(const uint32_t *args)
{
	struct {
		struct ib_uverbs_create_cq_resp ibv;
		struct muster_create_cq_resp own;
	} resp;
	struct {
		struct ib_uverbs_create_cq ibv;
		struct muster_create_cq_cmd own;
	} cmd = {
		.ibv = { .response = (uintptr_t)&resp, .cqe = args[0] % 4 ? 8 : args[0],
			 .comp_vector = args[1] % 8,
			 .comp_channel = args[2] % 2 ? -1 : (int)fuzz_chosen(CHANNEL, args[2]) },
		.own.flags = args[1] % 2,
	};

	if (!command(IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return;
	fuzz_made(CQ, resp.ibv.cq_handle);
	mappable(resp.own.ring_offset, resp.own.ring_bytes);
	mappable(resp.own.record_offset, FUZZ_PAGE);
}

static void cq_create_ex(const uint32_t *args)
{
	struct {
		struct ib_uverbs_ex_create_cq_resp ibv;
		struct muster_create_cq_resp own;
	} resp;
	const struct muster_create_cq_cmd own = { .flags = args[1] % 2 };
	const struct ib_uverbs_ex_create_cq cmd = {
		.cqe = args[0] % 4 ? 8 : args[0], .comp_vector = args[1] % 8,
		.comp_channel = args[2] % 2 ? -1 : (int)fuzz_chosen(CHANNEL, args[2]),
		.flags = args[2] % 8 ? 0 : args[2] / 8 % 8,
	};
	const struct parts parts = { &cmd, &own, sizeof(cmd), sizeof(own), sizeof(resp.ibv), sizeof(resp.own) };

	if (!command_ex(IB_USER_VERBS_EX_CMD_CREATE_CQ, &parts, &resp))
		return;
	fuzz_made(CQ, resp.ibv.base.cq_handle);
	mappable(resp.own.ring_offset, resp.own.ring_bytes);
	mappable(resp.own.record_offset, FUZZ_PAGE);
}

static void cq_moderate(const uint32_t *args)
{
	const struct ib_uverbs_ex_modify_cq cmd = {
		.cq_handle = fuzz_chosen(CQ, args[0]), .attr_mask = args[1] % 4 ? 1 : args[1],
		.attr = { .cq_count = args[1], .cq_period = args[2] },
	};
	const struct parts parts = { .core = &cmd, .core_len = sizeof(cmd) };
	uint64_t unused;

	command_ex(IB_USER_VERBS_EX_CMD_MODIFY_CQ, &parts, &unused);
}

static void cq_resize(const uint32_t *args)
{
	uint64_t answer[8];
	struct {
		struct ib_uverbs_resize_cq ibv;
		struct muster_resize_cq_cmd own;
	} cmd = {
		.ibv.response = (uintptr_t)answer, .ibv.cq_handle = fuzz_chosen(CQ, args[0]),
		.ibv.cqe = args[1] % 4 ? 1u << args[1] % 17 : args[1],
		.own.flags = args[2] % 4 ? args[2] % 2 : args[2],
	};

	if (command(IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), answer, sizeof(answer)))
		mappable(answer[1], answer[2]);
}

static void srq_create(const uint32_t *args)
{
	struct {
		struct ib_uverbs_create_srq_resp ibv;
		struct muster_create_srq_resp own;
	} resp;
	struct ib_uverbs_create_srq cmd = {
		.response = (uintptr_t)&resp, .pd_handle = fuzz_chosen(PD, args[0]),
		.max_wr = args[1] % 4 ? 8 : args[1], .max_sge = args[2] % 6, .srq_limit = args[2],
	};

	if (!command(IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return;
	fuzz_made(SRQ, resp.ibv.srq_handle);
	mappable(resp.own.queue_offset, resp.own.queue_bytes);
}

static void srq_modify(const uint32_t *args)
{
	struct ib_uverbs_modify_srq cmd = {
		.srq_handle = fuzz_chosen(SRQ, args[0]), .attr_mask = args[1] % 4 ? 2 : args[1],
		.max_wr = args[2], .srq_limit = args[2] % 2 ? args[2] % 9 : args[2],
	};
	uint32_t unused;

	command(IB_USER_VERBS_CMD_MODIFY_SRQ, &cmd, sizeof(cmd), &unused, 0);
}

static void srq_query(const uint32_t *args)
{
	struct ib_uverbs_query_srq_resp resp;
	struct ib_uverbs_query_srq cmd = {
		.response = (uintptr_t)&resp, .srq_handle = fuzz_chosen(SRQ, args[0]),
	};

	command(IB_USER_VERBS_CMD_QUERY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

static void vp_create(const uint32_t *args)
{
	struct {
		struct ib_uverbs_create_qp_resp ibv;
		struct muster_create_vp_resp own;
	} resp;
	struct {
		struct ib_uverbs_create_qp ibv;
		struct muster_create_vp_cmd own;
	} cmd = {
		.ibv = { .response = (uintptr_t)&resp, .pd_handle = fuzz_chosen(PD, args[0]),
			 .send_cq_handle = fuzz_chosen(CQ, args[1]), .recv_cq_handle = fuzz_chosen(CQ, args[1]),
			 .qp_type = QPT_DRIVER },
		.own = { .dq_entries = args[2] % 4 ? 8 : args[2], .rq_entries = 8 },
	};

	if (!command(IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return;
	fuzz_made(QP, resp.ibv.qp_handle);
	mappable(resp.own.doorbell_offset, FUZZ_PAGE);
	mappable(resp.own.dq_offset, resp.own.dq_bytes);
	mappable(resp.own.rq_offsets[0], resp.own.rq_bytes);
	mappable(resp.own.status_offset, FUZZ_PAGE);
}

static void qp_create(const uint32_t *args)
{
	struct {
		struct ib_uverbs_create_qp_resp ibv;
		struct muster_create_qp_resp own;
	} resp;
	struct ib_uverbs_create_qp cmd = {
		.response = (uintptr_t)&resp, .pd_handle = fuzz_chosen(PD, args[0]),
		.send_cq_handle = fuzz_chosen(CQ, args[1]), .recv_cq_handle = fuzz_chosen(CQ, args[2]),
		.max_send_wr = args[0] % 4 ? 8 : args[0], .max_recv_wr = args[1] % 4 ? 8 : args[1],
		.max_send_sge = 1, .max_recv_sge = args[2] % 6,
		.qp_type = args[2] % 2 ? QPT_UD : QPT_RC,
		.is_srq = args[2] / 2 % 2, .srq_handle = fuzz_chosen(SRQ, args[0]),
	};

	if (!command(IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp)))
		return;
	fuzz_made(QP, resp.ibv.qp_handle);
	mappable(resp.own.queues_offset, resp.own.queues_bytes);
}

static void qp_create_ex(const uint32_t *args)
{
	struct {
		struct ib_uverbs_ex_create_qp_resp ibv;
		struct muster_create_qp_resp own;
	} resp;
	const struct ib_uverbs_ex_create_qp cmd = {
		.pd_handle = fuzz_chosen(PD, args[0]), .send_cq_handle = fuzz_chosen(CQ, args[1]),
		.recv_cq_handle = fuzz_chosen(CQ, args[2]), .srq_handle = fuzz_chosen(SRQ, args[1]),
		.max_send_wr = args[0] % 4 ? 8 : args[0], .max_recv_wr = args[1] % 4 ? 8 : 0,
		.max_send_sge = 1, .max_recv_sge = args[2] % 6, .max_inline_data = args[0] % 300,
		.qp_type = args[2] % 2 ? QPT_UD : QPT_RC, .is_srq = args[2] / 2 % 2,
		.create_flags = args[2] % 8 ? 0 : args[1],
	};
	const struct parts parts = { &cmd, NULL, sizeof(cmd), 0, sizeof(resp.ibv), sizeof(resp.own) };

	if (!command_ex(IB_USER_VERBS_EX_CMD_CREATE_QP, &parts, &resp))
		return;
	fuzz_made(QP, resp.ibv.base.qp_handle);
	mappable(resp.own.queues_offset, resp.own.queues_bytes);
}

static void qp_modify(const uint32_t *args)
{
	struct ib_uverbs_modify_qp cmd = {
		.qp_handle = fuzz_chosen(QP, args[0]), .qp_state = args[1] % 8, .port_num = 1,
		.qkey = args[2], .dest_qp_num = args[2], .path_mtu = 5,
	};
	uint32_t unused;

	/* What each step asks for, of UD and of RC; or anything. */
	static const uint32_t masks[] = { 0x71, 0x39, 0x1, 0x101801, 0x1, 0x10001, 0x13e01 };

	cmd.attr_mask = args[0] % 8 ? masks[args[0] / 8 % 7] : args[0];
	command(IB_USER_VERBS_CMD_MODIFY_QP, &cmd, sizeof(cmd), &unused, 0);
}

/* Of any object: what it is called by is at the same place in each of these commands. */
static void destroy(uint32_t number, enum fuzz_type type, uint32_t which)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct {
		__aligned_u64 response;
		__u32 handle;
		__u32 reserved;
	} cmd = { (uintptr_t)&resp, fuzz_chosen(type, which), 0 };
	bool answered = type == CQ || type == QP || type == SRQ;

	command(number, answered ? &cmd : (void *)&cmd.handle, answered ? sizeof(cmd) : 4, &resp,
		answered ? sizeof(resp) : 0);
}

static void arm(const uint32_t *args)
{
	struct ib_uverbs_req_notify_cq cmd = {
		.cq_handle = fuzz_chosen(CQ, args[0]), .solicited_only = args[1] % 2,
	};
	uint32_t unused;

	command(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, &cmd, sizeof(cmd), &unused, 0);
}

static void query(const uint32_t *args)
{
	struct ib_uverbs_query_device_resp device;
	struct ib_uverbs_query_device cmd = { .response = (uintptr_t)&device };
	struct ib_uverbs_query_port_resp port;
	struct ib_uverbs_query_port port_cmd = {
		.response = (uintptr_t)&port, .port_num = args[1] % 4,
	};

	if (args[0] % 2)
		command(IB_USER_VERBS_CMD_QUERY_DEVICE, &cmd, sizeof(cmd), &device, sizeof(device));
	else
		command(IB_USER_VERBS_CMD_QUERY_PORT, &port_cmd, sizeof(port_cmd), &port, sizeof(port));
}

static void query_ex(const uint32_t *args)
{
	struct ib_uverbs_ex_query_device_resp resp;
	const struct ib_uverbs_ex_query_device cmd = { .comp_mask = args[0] % 4 ? 0 : args[0] };
	const struct parts parts = {
		.core = &cmd, .core_len = sizeof(cmd), .core_answer = args[1] % sizeof(resp) & ~7u,
	};

	command_ex(IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &parts, &resp);
}

static void qp_query(const uint32_t *args)
{
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_query_qp cmd = {
		.response = (uintptr_t)&resp, .qp_handle = fuzz_chosen(QP, args[0]), .attr_mask = args[1],
	};

	command(IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

/* Whatever there is a number for; its answer goes where there is room. */
static void any_command(const uint32_t *args)
{
	uint64_t words[COMMAND_BYTES / 16], state = args[1] | 1, answer[64];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = fuzz_random(&state) % 2 ? fuzz_odd_number(&state) : fuzz_random(&state) % 8;
	words[0] = (uintptr_t)answer;
	command(args[0] % 64 | (args[2] % 4 ? 0 : IB_USER_VERBS_CMD_FLAG_EXTENDED), words,
		args[2] % (sizeof(words) / 4) * 4, answer, sizeof(answer));
}

/* ---- any of them ----------------------------------------------------------------------- */

static void end_run(const struct fuzz_call *call)
{
	const uint32_t which = call->args[0];

	switch (call->kind) {
	case PD_DEALLOC:
		destroy(IB_USER_VERBS_CMD_DEALLOC_PD, PD, which);
		break;
	case MR_DEREG:
		destroy(IB_USER_VERBS_CMD_DEREG_MR, MR, which);
		break;
	case CQ_DESTROY:
		destroy(IB_USER_VERBS_CMD_DESTROY_CQ, CQ, which);
		break;
	case QP_DESTROY:
		destroy(IB_USER_VERBS_CMD_DESTROY_QP, QP, which);
		break;
	case SRQ_DESTROY:
		destroy(IB_USER_VERBS_CMD_DESTROY_SRQ, SRQ, which);
		break;
	}
}

void fuzz_verbs_run(const struct fuzz_call *call)
{
	static void (*const plain[FUZZ_KINDS])(void) = {
		[OPEN] = open_file, [CLOSE] = fuzz_file_close, [PD_ALLOC] = pd_alloc,
		[CHANNEL_CREATE] = channel_create,
	};
	static void (*const with_args[FUZZ_KINDS])(const uint32_t *args) = {
		[MR_REG] = mr_reg, [CQ_CREATE] = cq_create, [CQ_ARM] = arm, [VP_CREATE] = vp_create,
		[QP_CREATE] = qp_create, [QP_MODIFY] = qp_modify, [QP_QUERY] = qp_query,
		[QUERY] = query, [COMMAND] = any_command, [SRQ_CREATE] = srq_create, [SRQ_MODIFY] = srq_modify,
		[SRQ_QUERY] = srq_query, [CQ_CREATE_EX] = cq_create_ex, [CQ_MODERATE] = cq_moderate,
		[CQ_RESIZE] = cq_resize, [QP_CREATE_EX] = qp_create_ex, [QUERY_EX] = query_ex,
	};

	if (plain[call->kind])
		plain[call->kind]();
	else if (with_args[call->kind])
		with_args[call->kind](call->args);
	else
		end_run(call);
}
