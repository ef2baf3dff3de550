// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ioctls, as they should be or bent: jobs and contexts, and whatever else has a number.
 */
#include "fuzz_state.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include "rdma/muster-abi.h"

#define VERBS_IOCTL _IOWR(RDMA_IOCTL_MAGIC, 1, struct ib_uverbs_ioctl_hdr)

enum { ATTRS = 8 };

struct request {
	struct ib_uverbs_ioctl_hdr head;
	struct ib_uverbs_attr attrs[ATTRS];
};

static void attr_put(struct request *request, uint16_t id, uint16_t len, uint64_t data)
{
	request->attrs[request->head.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
}

/* Return: the handle of what it made, if it did. */
static bool request_run(struct request *request, uint16_t object, uint16_t method, uint32_t *handle)
{
	request->head.object_id = object;
	request->head.method_id = method;
	request->head.driver_id = MUSTER_DRIVER_ID;
	request->head.length = sizeof(request->head) +
			       request->head.num_attrs * sizeof(request->attrs[0]);
	fuzz_bend_bytes(request, request->head.length);
	if (ioctl(fuzz_file->fd, VERBS_IOCTL, request))
		return false;
	if (handle)
		*handle = request->attrs[0].data;
	return true;
}

static void job_create(const uint32_t *args)
{
	struct request request = { };
	uint64_t key = args[1], told;
	uint32_t id = args[0] % 512, handle;

	attr_put(&request, MUSTER_ATTR_JOB_CREATE_HANDLE, 0, 0);
	attr_put(&request, MUSTER_ATTR_JOB_CREATE_ID, 4, id);
	if (args[2] % 2)
		attr_put(&request, MUSTER_ATTR_JOB_CREATE_KEY, 8, key);
	attr_put(&request, MUSTER_ATTR_JOB_CREATE_RESP_KEY, 8, (uintptr_t)&told);
	if (request_run(&request, MUSTER_OBJECT_JOB, MUSTER_METHOD_JOB_CREATE, &handle))
		fuzz_made(JOB, handle);
}

static void context_open(const uint32_t *args)
{
	struct muster_abi_member members[4] = { };
	struct muster_abi_members list = {
		.addr = (uintptr_t)members, .nr = args[1] % 4 ? 1 + args[1] % 4 : args[1],
	};
	struct request request = { };
	uint64_t state = args[2] | 1;
	uint32_t handle;

	for (int i = 0; i < 4; i++)
		members[i] = (struct muster_abi_member){
			.node = fuzz_random(&state) % 4, .vp = fuzz_random(&state) % 8,
			.incarnation = fuzz_random(&state),
		};
	fuzz_bend_bytes(fuzz_bend & 1 ? (void *)members : &list, fuzz_bend & 1 ? sizeof(members) : sizeof(list));
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_HANDLE, 0, 0);
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_JOB, 0, fuzz_chosen(JOB, args[0]));
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_VP, 0, fuzz_chosen(QP, args[0]));
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_ID, 4, args[2] % 8);
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_LIFE, 4, args[2]);
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_SELF, 4, args[1] % 2);
	attr_put(&request, MUSTER_ATTR_CONTEXT_OPEN_MEMBERS, sizeof(list), (uintptr_t)&list);
	if (request_run(&request, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_OPEN, &handle))
		fuzz_made(CONTEXT, handle);
}

static void abort_context(const uint32_t *args)
{
	struct request request = { };

	attr_put(&request, MUSTER_ATTR_CONTEXT_ABORT_HANDLE, 0, fuzz_chosen(CONTEXT, args[0]));
	attr_put(&request, MUSTER_ATTR_CONTEXT_ABORT_STATUS, 4, args[1] % 16);
	attr_put(&request, MUSTER_ATTR_CONTEXT_ABORT_CULPRIT, 4, args[2]);
	request_run(&request, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_ABORT, NULL);
}

static void tree_of_context(const uint32_t *args)
{
	struct muster_abi_tree tree = {
		.key = args[2], .node = args[1] % 4 ? 0xff0000 + args[1] % 4 : args[1], .incarnation = args[2],
		.group = args[1], .tree = args[2] % 4, .payload_max = args[1] % 8192, .flags = args[2] % 2,
	};
	struct request request = { };

	fuzz_bend_bytes(&tree, sizeof(tree));
	attr_put(&request, MUSTER_ATTR_CONTEXT_TREE_HANDLE, 0, fuzz_chosen(CONTEXT, args[0]));
	attr_put(&request, MUSTER_ATTR_CONTEXT_TREE_GROUP, sizeof(tree), (uintptr_t)&tree);
	request_run(&request, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_TREE, NULL);
}

static void end(uint16_t object, uint16_t method, uint16_t attr, uint32_t handle)
{
	struct request request = { };

	attr_put(&request, attr, 0, handle);
	request_run(&request, object, method, NULL);
}

static void any_ioctl(const uint32_t *args)
{
	struct request request = { };
	uint64_t state = args[2] | 1, answer[32];
	uint16_t own = args[1] % 2 ? 1 << MUSTER_UVERBS_ID_SHIFT : 0;

	for (int i = fuzz_random(&state) % ATTRS; i > 0; i--)
		attr_put(&request, (fuzz_random(&state) % 2 ? own : 0) + fuzz_random(&state) % 8,
			 fuzz_random(&state) % 3 ? 0 : fuzz_random(&state) % 64,
			 fuzz_random(&state) % 2 ? fuzz_random(&state) % 8 : (uintptr_t)answer);
	request_run(&request, own + args[0] % 18, (args[1] % 4 ? own : 0) + args[1] / 4 % 6, NULL);
}

void fuzz_ioctl_run(const struct fuzz_call *call)
{
	switch (call->kind) {
	case JOB_CREATE:
		job_create(call->args);
		break;
	case JOB_DESTROY:
		end(MUSTER_OBJECT_JOB, MUSTER_METHOD_JOB_DESTROY, MUSTER_ATTR_JOB_DESTROY_HANDLE,
		    fuzz_chosen(JOB, call->args[0]));
		break;
	case CONTEXT_OPEN:
		context_open(call->args);
		break;
	case CONTEXT_CLOSE:
		end(MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_CLOSE,
		    MUSTER_ATTR_CONTEXT_CLOSE_HANDLE, fuzz_chosen(CONTEXT, call->args[0]));
		break;
	case CONTEXT_ABORT:
		abort_context(call->args);
		break;
	case CONTEXT_TREE:
		tree_of_context(call->args);
		break;
	case IOCTL:
		any_ioctl(call->args);
		break;
	}
}
