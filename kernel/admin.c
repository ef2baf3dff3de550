// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The admin queue: one command at a time, each answered in the reply ring at the
 * same index. A reply that is late, or that answers something that was not asked,
 * means that nothing more can be known about the device: it is fenced.
 */
#include "muster.h"
#include "trace.h"

#include <linux/dma-mapping.h>

static const size_t commands_bytes = MUSTER_ADMIN_ENTRIES * sizeof(struct muster_admin_command);
static const size_t replies_bytes = MUSTER_ADMIN_ENTRIES * sizeof(struct muster_admin_reply);

int muster_admin_open(struct muster_dev *dev)
{
	struct device *dma = &dev->fn->pdev->dev;
	struct muster_admin *admin = &dev->admin;

	mutex_init(&admin->lock);
	init_waitqueue_head(&admin->wait);
	admin->commands = dma_alloc_coherent(dma, commands_bytes, &admin->commands_dma,
					     GFP_KERNEL);
	if (!admin->commands)
		return -ENOMEM;
	admin->replies = dma_alloc_coherent(dma, replies_bytes, &admin->replies_dma, GFP_KERNEL);
	if (!admin->replies) {
		dma_free_coherent(dma, commands_bytes, admin->commands, admin->commands_dma);
		return -ENOMEM;
	}
	muster_reg_write64(dev, MUSTER_REG_ADMIN_BASE_LO, admin->commands_dma);
	muster_reg_write64(dev, MUSTER_REG_ADMIN_REPLY_LO, admin->replies_dma);
	muster_reg_write(dev, MUSTER_REG_ADMIN_ENTRIES, MUSTER_ADMIN_ENTRIES);
	return 0;
}

void muster_admin_close(struct muster_dev *dev)
{
	struct device *dma = &dev->fn->pdev->dev;
	struct muster_admin *admin = &dev->admin;

	dma_free_coherent(dma, replies_bytes, admin->replies, admin->replies_dma);
	dma_free_coherent(dma, commands_bytes, admin->commands, admin->commands_dma);
}

/* Whether command number index is answered: 1 in the ring's first lap, then 0 ... */
static bool answered(const struct muster_admin *admin, u32 index)
{
	const struct muster_admin_reply *slot = &admin->replies[index % MUSTER_ADMIN_ENTRIES];

	return le32_to_cpu(READ_ONCE(slot->valid)) == !(index & MUSTER_ADMIN_ENTRIES);
}

/* Without the lock, which may be held by who waits for the device. */
void muster_admin_fault(const struct muster_dev *dev, struct muster_fault *fault)
{
	const struct muster_admin *admin = &dev->admin;
	u32 last = READ_ONCE(admin->tail) - 1;

	fault->commands = last + 1;
	fault->opcode = READ_ONCE(admin->commands[last % MUSTER_ADMIN_ENTRIES].opcode);
	fault->answered = answered(admin, last);
}

static int errno_of(u8 status)
{
	switch (status) {
	case MUSTER_ADMIN_OK:
		return 0;
	case MUSTER_ADMIN_BAD_PARAMETER:
		return -EINVAL;
	case MUSTER_ADMIN_NO_OBJECT:
		return -ENOENT;
	case MUSTER_ADMIN_BUSY:
		return -EBUSY;
	case MUSTER_ADMIN_NO_ROOM:
		return -ENOSPC;
	case MUSTER_ADMIN_DMA:
		return -EFAULT;
	default:
		return -EPROTO;
	}
}

static int reply_take(struct muster_dev *dev, u32 index, const struct muster_admin_command *cmd,
		      u32 *detail)
{
	struct muster_admin_reply reply;

	dma_rmb();	/* the rest of the reply after its valid word */
	reply = dev->admin.replies[index % MUSTER_ADMIN_ENTRIES];
	trace_muster_admin_reply(dev, &reply);
	if (reply.tag != cmd->tag || reply.opcode != cmd->opcode) {
		muster_dev_fence(dev, "device answers an admin command that was not given");
		return -EIO;
	}
	if (reply.status)
		dev_dbg(&dev->fn->pdev->dev, "admin command %u refused: status %u, byte %u\n",
			cmd->opcode, reply.status, le32_to_cpu(reply.detail));
	else
		*detail = le32_to_cpu(reply.detail);
	return errno_of(reply.status);
}

/* What the command is about, for who traces it. */
static u32 command_object(const struct muster_admin_command *cmd)
{
	switch (cmd->opcode) {
	case MUSTER_ADMIN_CQ_CREATE:
		return le32_to_cpu(cmd->cq.id);
	case MUSTER_ADMIN_CQ_MODERATE:
		return le32_to_cpu(cmd->cq_moderate.id);
	case MUSTER_ADMIN_CQ_RESIZE:
		return le32_to_cpu(cmd->cq_resize.id);
	case MUSTER_ADMIN_VP_CREATE:
		return le32_to_cpu(cmd->vp.id);
	case MUSTER_ADMIN_MR_REGISTER:
		return le32_to_cpu(cmd->mr.id);
	case MUSTER_ADMIN_CONTEXT_OPEN:
	case MUSTER_ADMIN_CONTEXT_CLOSE:
	case MUSTER_ADMIN_CONTEXT_ABORT:
		return le32_to_cpu(cmd->context.context);
	case MUSTER_ADMIN_TREE_JOIN:
	case MUSTER_ADMIN_TREE_MOVE:
		return le32_to_cpu(cmd->tree.context);
	case MUSTER_ADMIN_CQ_DESTROY:
	case MUSTER_ADMIN_VP_DESTROY:
	case MUSTER_ADMIN_MR_DEREGISTER:
	case MUSTER_ADMIN_QP_QUERY:
	case MUSTER_ADMIN_QP_DESTROY:
	case MUSTER_ADMIN_SRQ_QUERY:
	case MUSTER_ADMIN_SRQ_DESTROY:
		return le32_to_cpu(cmd->id.id);
	case MUSTER_ADMIN_QP_CREATE:
		return le32_to_cpu(cmd->qp.id);
	case MUSTER_ADMIN_QP_MODIFY:
		return le32_to_cpu(cmd->qp_modify.id);
	case MUSTER_ADMIN_QP_COUNT:
		return le32_to_cpu(cmd->qp_count.id);
	case MUSTER_ADMIN_COUNTERS:
		return le32_to_cpu(cmd->counters.set);
	case MUSTER_ADMIN_SRQ_CREATE:
		return le32_to_cpu(cmd->srq.id);
	case MUSTER_ADMIN_SRQ_LIMIT:
		return le32_to_cpu(cmd->srq_limit.id);
	default:
		return 0;
	}
}

static int command_give(struct muster_dev *dev, struct muster_admin_command *cmd, u32 *detail)
{
	struct muster_admin *admin = &dev->admin;
	u32 index = admin->tail++;

	cmd->tag = cpu_to_le16(index);
	admin->commands[index % MUSTER_ADMIN_ENTRIES] = *cmd;
	trace_muster_admin_command(dev, cmd, command_object(cmd));
	muster_reg_write(dev, MUSTER_REG_ADMIN_TAIL, admin->tail);
	wait_event_timeout(admin->wait, answered(admin, index) || READ_ONCE(dev->fenced),
			   msecs_to_jiffies(MUSTER_ADMIN_TIMEOUT_MS));
	if (READ_ONCE(dev->fenced))
		return -EIO;
	if (answered(admin, index))
		return reply_take(dev, index, cmd, detail);
	muster_dev_fence(dev, "device does not answer an admin command");
	return -EIO;
}

/*
 * Run a command, its tag apart, and get the detail of the reply if it succeeds. Sleeps.
 * Return: 0; -EIO: the device is fenced; or what it refused: -EINVAL, -ENOENT,
 * -EBUSY, -ENOSPC, -EFAULT, -EPROTO, having changed nothing.
 */
int muster_admin_ask(struct muster_dev *dev, struct muster_admin_command *cmd, u32 *detail)
{
	int err = -EIO;

	mutex_lock(&dev->admin.lock);
	if (!READ_ONCE(dev->fenced))
		err = command_give(dev, cmd, detail);
	mutex_unlock(&dev->admin.lock);
	return err;
}

int muster_admin_run(struct muster_dev *dev, struct muster_admin_command *cmd)
{
	u32 detail;

	return muster_admin_ask(dev, cmd, &detail);
}

/* Run a command that ends the device's use of something; afterwards it does not use it. */
void muster_admin_end(struct muster_dev *dev, struct muster_admin_command *cmd)
{
	int err = muster_admin_run(dev, cmd);

	if (err && err != -EIO)
		muster_dev_fence(dev, "device refuses to let go of an object");
}

void muster_admin_destroy(struct muster_dev *dev, u8 opcode, u32 id)
{
	struct muster_admin_command cmd = { .opcode = opcode, .id.id = cpu_to_le32(id) };

	muster_admin_end(dev, &cmd);
}
