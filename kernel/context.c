// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: one communicator at one virtual port. The device is told its members
 * and the job's key once, and knows it from then on by port, job and id.
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <linux/uaccess.h>

#define UVERBS_MODULE_NAME muster
#include <rdma/uverbs_named_ioctl.h>

/* The members as the device reads them; freed when it has. */
struct member_list {
	struct muster_admin_member *members;
	dma_addr_t dma;
	u32 nr;
};

struct open_args {
	struct muster_job *job;
	struct ib_qp *vp;
	u32 id;
	u32 life;
	u32 self;
	struct muster_abi_members members;
};

static size_t member_list_bytes(const struct member_list *list)
{
	return list->nr * sizeof(*list->members);
}

static void member_list_free(struct muster_dev *dev, struct member_list *list)
{
	dma_free_coherent(&dev->fn->pdev->dev, member_list_bytes(list), list->members, list->dma);
}

/* Checked and turned in place, in a copy that the process cannot reach. */
static int members_convert(struct member_list *list, const struct muster_abi_member *from)
{
	u32 i;

	for (i = 0; i < list->nr; i++) {
		if (from[i].node >= MUSTER_NODES_MAX || from[i].vp >= MUSTER_VPS_MAX ||
		    from[i].reserved || from[i].reserved2)
			return -EINVAL;
		list->members[i].node = cpu_to_le32(from[i].node);
		list->members[i].vp = cpu_to_le16(from[i].vp);
		list->members[i].incarnation = cpu_to_le32(from[i].incarnation);
	}
	return 0;
}

static int member_list_create(struct muster_dev *dev, const struct muster_abi_members *abi,
			      struct member_list *list)
{
	struct muster_abi_member *from;
	int err;

	list->nr = abi->nr;
	from = vmemdup_user(u64_to_user_ptr(abi->addr), abi->nr * sizeof(*from));
	if (IS_ERR(from))
		return PTR_ERR(from);
	list->members = dma_alloc_coherent(&dev->fn->pdev->dev, member_list_bytes(list),
					   &list->dma, GFP_KERNEL | __GFP_NOWARN);
	if (!list->members) {
		err = -ENOMEM;
		goto err_from;
	}
	err = members_convert(list, from);
	if (err)
		member_list_free(dev, list);
err_from:
	kvfree(from);
	return err;
}

static struct muster_admin_command command(const struct muster_context *context, u8 opcode)
{
	return (struct muster_admin_command) {
		.opcode = opcode,
		.context.vp = cpu_to_le16(context->vp->qp_num),
		.context.context = cpu_to_le32(context->id),
		.context.job = context->job->id,
	};
}

static int admin_open(const struct muster_context *context, const struct open_args *args)
{
	struct muster_admin_command cmd = command(context, MUSTER_ADMIN_CONTEXT_OPEN);
	struct member_list list = { };
	int err;

	err = member_list_create(context->dev, &args->members, &list);
	if (err)
		return err;
	cmd.context.job_key = cpu_to_le64(context->job->key);
	cmd.context.members = cpu_to_le64(list.dma);
	cmd.context.nr_members = cpu_to_le32(list.nr);
	cmd.context.life = cpu_to_le32(args->life);
	cmd.context.self = cpu_to_le32(args->self);
	err = muster_admin_run(context->dev, &cmd);
	member_list_free(context->dev, &list);
	return err;
}

static int decode(struct uverbs_attr_bundle *attrs, struct open_args *args)
{
	int err;

	args->job = uverbs_attr_get_obj(attrs, MUSTER_ATTR_CONTEXT_OPEN_JOB);
	args->vp = uverbs_attr_get_obj(attrs, MUSTER_ATTR_CONTEXT_OPEN_VP);
	if (IS_ERR(args->job) || IS_ERR(args->vp) || args->vp->qp_type != IB_QPT_DRIVER)
		return -EINVAL;
	err = uverbs_copy_from(&args->id, attrs, MUSTER_ATTR_CONTEXT_OPEN_ID);
	if (!err)
		err = uverbs_copy_from(&args->life, attrs, MUSTER_ATTR_CONTEXT_OPEN_LIFE);
	if (!err)
		err = uverbs_copy_from(&args->self, attrs, MUSTER_ATTR_CONTEXT_OPEN_SELF);
	if (!err)
		err = uverbs_copy_from(&args->members, attrs, MUSTER_ATTR_CONTEXT_OPEN_MEMBERS);
	if (err)
		return err;
	if (args->members.reserved || !args->members.nr ||
	    args->members.nr > MUSTER_MEMBERS_MAX || args->self >= args->members.nr)
		return -EINVAL;
	return 0;
}

static struct muster_ucontext *ucontext_of(const struct muster_context *context)
{
	return to_mucontext(context->vp->pd->uobject->context);
}

static void context_enlist(struct muster_context *context)
{
	struct muster_ucontext *ucontext = ucontext_of(context);

	mutex_lock(&ucontext->lock);
	list_add(&context->entry, &ucontext->contexts);
	mutex_unlock(&ucontext->lock);
}

static void context_delist(struct muster_context *context)
{
	struct muster_ucontext *ucontext = ucontext_of(context);

	mutex_lock(&ucontext->lock);
	list_del_init(&context->entry);
	mutex_unlock(&ucontext->lock);
}

/* Their process ends: the other members learn that it is lost, before anything is taken away. */
void muster_contexts_orphan(struct muster_ucontext *ucontext)
{
	struct muster_context *context, *next;

	mutex_lock(&ucontext->lock);
	list_for_each_entry_safe(context, next, &ucontext->contexts, entry) {
		struct muster_admin_command cmd = command(context, MUSTER_ADMIN_CONTEXT_ABORT);

		cmd.context.status = MUSTER_STATUS_PEER_LOST;
		cmd.context.culprit = cpu_to_le32(context->self);
		muster_admin_run(context->dev, &cmd);
		list_del_init(&context->entry);
	}
	mutex_unlock(&ucontext->lock);
}

static int UVERBS_HANDLER(MUSTER_METHOD_CONTEXT_OPEN)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, MUSTER_ATTR_CONTEXT_OPEN_HANDLE);
	struct muster_context *context;
	struct open_args args;
	int err;

	err = decode(attrs, &args);
	if (err)
		return err;
	context = kzalloc(sizeof(*context), GFP_KERNEL_ACCOUNT);
	if (!context)
		return -ENOMEM;
	context->dev = to_mdev(args.vp->device);
	context->job = args.job;
	context->vp = args.vp;
	context->id = args.id;
	context->self = args.self;
	context->life = args.life;
	context->nr_members = args.members.nr;
	err = muster_share_take(context->dev, &context->dev->contexts_share, &context->shown.user);
	if (err)
		goto err_free;
	err = xa_alloc_cyclic(&context->dev->contexts, &context->shown.number, NULL, xa_limit_32b,
			      &context->dev->next_context, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		goto err_share;
	err = admin_open(context, &args);
	if (err)
		goto err_number;
	atomic_inc(&context->job->users);
	atomic_inc(&context->vp->usecnt);
	context_enlist(context);
	xa_store(&context->dev->contexts, context->shown.number, &context->shown, GFP_KERNEL);
	muster_netlink_changed();
	uobj->object = context;
	uverbs_finalize_uobj_create(attrs, MUSTER_ATTR_CONTEXT_OPEN_HANDLE);
	return 0;

err_number:
	xa_erase(&context->dev->contexts, context->shown.number);
err_share:
	muster_share_give(&context->dev->contexts_share, context->shown.user);
err_free:
	kfree(context);
	return err;
}

static int context_cleanup(struct ib_uobject *uobj, enum rdma_remove_reason why,
			   struct uverbs_attr_bundle *attrs)
{
	struct muster_context *context = uobj->object;
	struct muster_admin_command cmd = command(context, MUSTER_ADMIN_CONTEXT_CLOSE);

	context_delist(context);
	xa_erase(&context->dev->contexts, context->shown.number);
	muster_netlink_changed();
	muster_admin_end(context->dev, &cmd);
	atomic_dec(&context->vp->usecnt);
	atomic_dec(&context->job->users);
	muster_share_give(&context->dev->contexts_share, context->shown.user);
	kfree(context);
	return 0;
}

static int UVERBS_HANDLER(MUSTER_METHOD_CONTEXT_ABORT)(struct uverbs_attr_bundle *attrs)
{
	struct muster_context *context =
		uverbs_attr_get_obj(attrs, MUSTER_ATTR_CONTEXT_ABORT_HANDLE);
	struct muster_admin_command cmd;
	u32 status, culprit;
	int err;

	if (IS_ERR(context))
		return PTR_ERR(context);
	err = uverbs_copy_from(&status, attrs, MUSTER_ATTR_CONTEXT_ABORT_STATUS);
	if (!err)
		err = uverbs_copy_from(&culprit, attrs, MUSTER_ATTR_CONTEXT_ABORT_CULPRIT);
	if (err)
		return err;
	if (status == MUSTER_STATUS_OK || status > MUSTER_STATUS_FLUSHED)
		return -EINVAL;
	cmd = command(context, MUSTER_ADMIN_CONTEXT_ABORT);
	cmd.context.status = status;
	cmd.context.culprit = cpu_to_le32(culprit);
	return muster_admin_run(context->dev, &cmd);
}

/* What else is wrong with it the device says. */
static int tree_decode(struct uverbs_attr_bundle *attrs, struct muster_abi_tree *tree)
{
	int err = uverbs_copy_from(tree, attrs, MUSTER_ATTR_CONTEXT_TREE_GROUP);

	if (err)
		return err;
	return tree->reserved || tree->flags & ~MUSTER_TREE_MOVE ? -EINVAL : 0;
}

static int UVERBS_HANDLER(MUSTER_METHOD_CONTEXT_TREE)(struct uverbs_attr_bundle *attrs)
{
	struct muster_context *context =
		uverbs_attr_get_obj(attrs, MUSTER_ATTR_CONTEXT_TREE_HANDLE);
	struct muster_admin_command cmd = { .opcode = MUSTER_ADMIN_TREE_JOIN };
	struct muster_abi_tree tree;
	int err;

	if (IS_ERR(context))
		return PTR_ERR(context);
	if (!(context->dev->capabilities & MUSTER_CAP_TREE))
		return -EOPNOTSUPP;
	err = tree_decode(attrs, &tree);
	if (err)
		return err;
	if (tree.flags & MUSTER_TREE_MOVE)
		cmd.opcode = MUSTER_ADMIN_TREE_MOVE;
	cmd.tree.key = cpu_to_le64(tree.key);
	cmd.tree.context = cpu_to_le32(context->id);
	cmd.tree.node = cpu_to_le32(tree.node);
	cmd.tree.incarnation = cpu_to_le32(tree.incarnation);
	cmd.tree.group = cpu_to_le32(tree.group);
	cmd.tree.tree = cpu_to_le16(tree.tree);
	cmd.tree.payload_max = cpu_to_le16(tree.payload_max);
	cmd.tree.vp = cpu_to_le16(context->vp->qp_num);
	cmd.tree.job = context->job->id;
	return muster_admin_run(context->dev, &cmd);
}

DECLARE_UVERBS_NAMED_METHOD(MUSTER_METHOD_CONTEXT_OPEN,
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_OPEN_HANDLE, MUSTER_OBJECT_CONTEXT,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_OPEN_JOB, MUSTER_OBJECT_JOB,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_OPEN_VP, UVERBS_OBJECT_QP,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_OPEN_ID, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_OPEN_LIFE, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_OPEN_SELF, UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_OPEN_MEMBERS,
			   UVERBS_ATTR_TYPE(struct muster_abi_members), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(MUSTER_METHOD_CONTEXT_CLOSE,
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_CLOSE_HANDLE, MUSTER_OBJECT_CONTEXT,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(MUSTER_METHOD_CONTEXT_ABORT,
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_ABORT_HANDLE, MUSTER_OBJECT_CONTEXT,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_ABORT_STATUS, UVERBS_ATTR_TYPE(u32),
			   UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_ABORT_CULPRIT, UVERBS_ATTR_TYPE(u32),
			   UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(MUSTER_METHOD_CONTEXT_TREE,
	UVERBS_ATTR_IDR(MUSTER_ATTR_CONTEXT_TREE_HANDLE, MUSTER_OBJECT_CONTEXT,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(MUSTER_ATTR_CONTEXT_TREE_GROUP,
			   UVERBS_ATTR_TYPE(struct muster_abi_tree), UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(MUSTER_OBJECT_CONTEXT, UVERBS_TYPE_ALLOC_IDR(context_cleanup),
	&UVERBS_METHOD(MUSTER_METHOD_CONTEXT_OPEN),
	&UVERBS_METHOD(MUSTER_METHOD_CONTEXT_CLOSE),
	&UVERBS_METHOD(MUSTER_METHOD_CONTEXT_ABORT),
	&UVERBS_METHOD(MUSTER_METHOD_CONTEXT_TREE));

const struct uapi_definition muster_context_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(MUSTER_OBJECT_CONTEXT),
	{ }
};
