// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Jobs and contexts: the driver's own objects, by ioctl.
 */
#include "muster.h"

#include <errno.h>
#include <infiniband/cmd_ioctl.h>
#include <stdlib.h>

struct musterdv_job {
	struct ibv_context *ibvctx;
	uint32_t handle;
};

struct musterdv_context {
	struct ibv_context *ibvctx;
	uint32_t handle;
};

static int job_ioctl(struct musterdv_job *job, uint32_t id, const uint64_t *join_key,
		     uint64_t *key)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_JOB, MUSTER_METHOD_JOB_CREATE, 4);
	struct ib_uverbs_attr *handle = fill_attr_out_obj(cmd, MUSTER_ATTR_JOB_CREATE_HANDLE);
	int err;

	fill_attr_in_uint32(cmd, MUSTER_ATTR_JOB_CREATE_ID, id);
	if (join_key)
		fill_attr_in_uint64(cmd, MUSTER_ATTR_JOB_CREATE_KEY, *join_key);
	fill_attr_out_ptr(cmd, MUSTER_ATTR_JOB_CREATE_RESP_KEY, key);
	err = execute_ioctl(job->ibvctx, cmd);
	if (!err)
		job->handle = read_attr_obj(MUSTER_ATTR_JOB_CREATE_HANDLE, handle);
	return -err;
}

int musterdv_job_create(struct ibv_context *ibvctx, uint32_t id, const uint64_t *join_key,
			struct musterdv_job **result, uint64_t *key)
{
	struct musterdv_job *job;
	uint64_t told;
	int err;

	if (!musterdv_is_supported(ibvctx->device))
		return -EOPNOTSUPP;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->ibvctx = ibvctx;
	err = job_ioctl(job, id, join_key, &told);
	if (err) {
		free(job);
		return err;
	}
	if (key)
		*key = told;
	*result = job;
	return 0;
}

int musterdv_job_destroy(struct musterdv_job *job)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_JOB, MUSTER_METHOD_JOB_DESTROY, 1);
	int err;

	fill_attr_in_obj(cmd, MUSTER_ATTR_JOB_DESTROY_HANDLE, job->handle);
	err = -destroyed(execute_ioctl(job->ibvctx, cmd));
	if (!err)
		free(job);
	return err;
}

static struct muster_abi_member *members_copy(const struct musterdv_context_attr *attr)
{
	struct muster_abi_member *members = calloc(attr->nr_members, sizeof(*members));

	for (uint32_t i = 0; members && i < attr->nr_members; i++) {
		members[i].node = attr->members[i].node;
		members[i].vp = attr->members[i].vp;
		members[i].reserved = attr->members[i].reserved;
		members[i].incarnation = attr->members[i].incarnation;
	}
	return members;
}

static int context_ioctl(struct musterdv_context *context, const struct musterdv_job *job,
			 const struct musterdv_vp *vp, const struct musterdv_context_attr *attr,
			 const struct muster_abi_member *members)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_OPEN, 7);
	struct ib_uverbs_attr *handle = fill_attr_out_obj(cmd, MUSTER_ATTR_CONTEXT_OPEN_HANDLE);
	struct muster_abi_members list = {
		.addr = (uintptr_t)members,
		.nr = attr->nr_members,
	};
	int err;

	fill_attr_in_obj(cmd, MUSTER_ATTR_CONTEXT_OPEN_JOB, job->handle);
	fill_attr_in_obj(cmd, MUSTER_ATTR_CONTEXT_OPEN_VP, vp->qp->handle);
	fill_attr_in_uint32(cmd, MUSTER_ATTR_CONTEXT_OPEN_ID, attr->id);
	fill_attr_in_uint32(cmd, MUSTER_ATTR_CONTEXT_OPEN_LIFE, attr->life);
	fill_attr_in_uint32(cmd, MUSTER_ATTR_CONTEXT_OPEN_SELF, attr->self);
	fill_attr_in_ptr(cmd, MUSTER_ATTR_CONTEXT_OPEN_MEMBERS, &list);
	err = execute_ioctl(context->ibvctx, cmd);
	if (!err)
		context->handle = read_attr_obj(MUSTER_ATTR_CONTEXT_OPEN_HANDLE, handle);
	return -err;
}

int musterdv_context_open(struct musterdv_job *job, struct musterdv_vp *vp,
			  const struct musterdv_context_attr *attr,
			  struct musterdv_context **result)
{
	struct musterdv_context *context;
	struct muster_abi_member *members;
	int err = -ENOMEM;

	if (!attr->nr_members || attr->nr_members > MUSTER_MEMBERS_MAX ||
	    job->ibvctx != vp->qp->context)
		return -EINVAL;
	members = members_copy(attr);
	context = calloc(1, sizeof(*context));
	if (!members || !context)
		goto err_free;
	context->ibvctx = job->ibvctx;
	err = context_ioctl(context, job, vp, attr, members);
	if (err)
		goto err_free;
	free(members);
	*result = context;
	return 0;

err_free:
	free(context);
	free(members);
	return err;
}

int musterdv_context_close(struct musterdv_context *context)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_CLOSE, 1);
	int err;

	fill_attr_in_obj(cmd, MUSTER_ATTR_CONTEXT_CLOSE_HANDLE, context->handle);
	err = -destroyed(execute_ioctl(context->ibvctx, cmd));
	if (!err)
		free(context);
	return err;
}

int musterdv_context_abort(struct musterdv_context *context, uint8_t status, uint32_t culprit)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_ABORT, 3);

	fill_attr_in_obj(cmd, MUSTER_ATTR_CONTEXT_ABORT_HANDLE, context->handle);
	fill_attr_in_uint32(cmd, MUSTER_ATTR_CONTEXT_ABORT_STATUS, status);
	fill_attr_in_uint32(cmd, MUSTER_ATTR_CONTEXT_ABORT_CULPRIT, culprit);
	return -execute_ioctl(context->ibvctx, cmd);
}

/* A driver that has no such method says so in words of its own. */
static int tree_ioctl(const struct musterdv_context *context, const struct musterdv_tree *tree,
		      uint32_t flags)
{
	DECLARE_COMMAND_BUFFER(cmd, MUSTER_OBJECT_CONTEXT, MUSTER_METHOD_CONTEXT_TREE, 2);
	const struct muster_abi_tree abi = {
		.key = tree->key,
		.node = tree->node,
		.incarnation = tree->incarnation,
		.group = tree->group,
		.tree = tree->tree,
		.payload_max = tree->payload_max,
		.flags = flags,
	};
	int err;

	fill_attr_in_obj(cmd, MUSTER_ATTR_CONTEXT_TREE_HANDLE, context->handle);
	fill_attr_in_ptr(cmd, MUSTER_ATTR_CONTEXT_TREE_GROUP, &abi);
	err = execute_ioctl(context->ibvctx, cmd);
	return err == EPROTONOSUPPORT ? -EOPNOTSUPP : -err;
}

int musterdv_context_tree_join(struct musterdv_context *context, const struct musterdv_tree *tree)
{
	return tree_ioctl(context, tree, 0);
}

int musterdv_context_tree_move(struct musterdv_context *context, const struct musterdv_tree *tree)
{
	return tree_ioctl(context, tree, MUSTER_TREE_MOVE);
}
