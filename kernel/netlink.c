// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Generic netlink family "muster" (Documentation/netlink.md): what rdma netlink cannot carry.
 * Everybody sees the devices of his network namespace, and how much of them is taken; jobs and
 * contexts are shown to who made them and to CAP_NET_ADMIN, keys to nobody.
 *
 * A dump goes on in further messages while objects come and go. It says by NLM_F_DUMP_INTR if
 * they did; each object that is there all the time is told once.
 */
#include "muster.h"
#include "rdma/muster-netlink.h"

#include <net/genetlink.h>
#include <net/sock.h>

static DEFINE_MUTEX(devs_lock);		/* protects devs, and that those in it live */
static LIST_HEAD(devs);			/* by number */
static u32 next_dev = 1;
static atomic_t changes = ATOMIC_INIT(1);

static struct genl_family family;

/* Who asks, and sees what. */
struct viewer {
	struct user_namespace *user_ns;
	kuid_t uid;
	bool sees_all;
};

static bool sees(const struct viewer *viewer, kuid_t owner)
{
	return viewer->sees_all || uid_eq(viewer->uid, owner);
}

/* ---- what there is ----------------------------------------------------------------- */

void muster_netlink_changed(void)
{
	atomic_inc(&changes);
}

void muster_netlink_add(struct muster_dev *dev)
{
	mutex_lock(&devs_lock);
	dev->netlink_number = next_dev++;
	list_add_tail(&dev->netlink_entry, &devs);
	mutex_unlock(&devs_lock);
	muster_netlink_changed();
}

void muster_netlink_remove(struct muster_dev *dev)
{
	mutex_lock(&devs_lock);
	list_del(&dev->netlink_entry);
	mutex_unlock(&devs_lock);
	muster_netlink_changed();
}

/* ---- messages ---------------------------------------------------------------------- */

static void *message_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	void *head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &family,
				 NLM_F_MULTI, cmd);

	if (head)
		genl_dump_check_consistent(cb, head);
	return head;
}

/* It is taken back if something in it did not fit: the next message begins with it. */
static int message_end(struct sk_buff *skb, void *head, bool full)
{
	if (full) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

static bool put_uid(struct sk_buff *skb, const struct viewer *viewer, kuid_t uid)
{
	return nla_put_u32(skb, MUSTER_NL_ATTR_UID, from_kuid_munged(viewer->user_ns, uid));
}

static bool put_unit(struct sk_buff *skb, const struct muster_share *share)
{
	struct nlattr *unit = nla_nest_start(skb, MUSTER_NL_ATTR_UNIT);

	if (!unit || nla_put_string(skb, MUSTER_NL_ATTR_UNIT_NAME, share->what) ||
	    nla_put_u32(skb, MUSTER_NL_ATTR_UNIT_USED, READ_ONCE(share->used)) ||
	    nla_put_u32(skb, MUSTER_NL_ATTR_UNIT_MAX, share->max))
		return true;
	nla_nest_end(skb, unit);
	return false;
}

static bool put_buffers(struct sk_buff *skb, struct muster_dev *dev)
{
	struct muster_mapping *mapping;
	u64 bytes = 0;
	u32 nr = 0;

	mutex_lock(&dev->mappings_lock);
	list_for_each_entry(mapping, &dev->mappings, dev_entry) {
		bytes += mapping->bytes;
		nr++;
	}
	mutex_unlock(&dev->mappings_lock);
	return nla_put_u32(skb, MUSTER_NL_ATTR_BUFFERS, nr) ||
	       nla_put_u64_64bit(skb, MUSTER_NL_ATTR_BUFFER_BYTES, bytes, MUSTER_NL_ATTR_PAD);
}

static int dump_device(struct sk_buff *skb, struct netlink_callback *cb, struct muster_dev *dev,
		       const struct viewer *viewer)
{
	void *head = message_begin(skb, cb, MUSTER_NL_CMD_DEVICE_GET);
	char name[IB_DEVICE_NAME_MAX];

	if (!head)
		return -EMSGSIZE;
	strscpy(name, dev->ibdev.name, sizeof(name));	/* it may be renamed */
	return message_end(skb, head,
			   nla_put_u32(skb, MUSTER_NL_ATTR_DEVICE_INDEX, dev->ibdev.index) ||
			   nla_put_string(skb, MUSTER_NL_ATTR_DEVICE_NAME, name) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_NODE, dev->node) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_INCARNATION, dev->incarnation) ||
			   put_unit(skb, &dev->vps_share) || put_unit(skb, &dev->cqs_share) ||
			   put_unit(skb, &dev->contexts_share) || put_unit(skb, &dev->qps_share) ||
			   put_unit(skb, &dev->srqs_share) || put_buffers(skb, dev));
}

static int put_job(struct sk_buff *skb, struct netlink_callback *cb, struct muster_dev *dev,
		   const struct viewer *viewer, const struct muster_job *job)
{
	void *head = message_begin(skb, cb, MUSTER_NL_CMD_JOB_GET);

	if (!head)
		return -EMSGSIZE;
	return message_end(skb, head,
			   nla_put_u32(skb, MUSTER_NL_ATTR_DEVICE_INDEX, dev->ibdev.index) ||
			   put_uid(skb, viewer, job->user) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_JOB, job->id) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_JOB_CONTEXTS, atomic_read(&job->users)));
}

static int put_context(struct sk_buff *skb, struct netlink_callback *cb, struct muster_dev *dev,
		       const struct viewer *viewer, const struct muster_context *context)
{
	void *head = message_begin(skb, cb, MUSTER_NL_CMD_CONTEXT_GET);

	if (!head)
		return -EMSGSIZE;
	return message_end(skb, head,
			   nla_put_u32(skb, MUSTER_NL_ATTR_DEVICE_INDEX, dev->ibdev.index) ||
			   put_uid(skb, viewer, context->user) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_JOB, context->job->id) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_CONTEXT, context->id) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_VP, context->vp->qp_num) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_LIFE, context->life) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_SELF, context->self) ||
			   nla_put_u32(skb, MUSTER_NL_ATTR_MEMBERS, context->nr_members));
}

/* ---- dumps: cb->args say with which device, and which object of it, to go on --------- */

/* Under the lock, so that none of them goes meanwhile. */
static int dump_jobs(struct sk_buff *skb, struct netlink_callback *cb, struct muster_dev *dev,
		     const struct viewer *viewer)
{
	struct muster_job *job;
	unsigned long at;
	int err = 0;

	xa_lock(&dev->jobs);
	xa_for_each_start(&dev->jobs, at, job, cb->args[1]) {
		cb->args[1] = at;
		if (sees(viewer, job->user))
			err = put_job(skb, cb, dev, viewer, job);
		if (err)
			break;
	}
	xa_unlock(&dev->jobs);
	return err;
}

static int dump_contexts(struct sk_buff *skb, struct netlink_callback *cb, struct muster_dev *dev,
			 const struct viewer *viewer)
{
	struct muster_context *context;
	unsigned long at;
	int err = 0;

	xa_lock(&dev->contexts);
	xa_for_each_start(&dev->contexts, at, context, cb->args[1]) {
		cb->args[1] = at;
		if (sees(viewer, context->user))
			err = put_context(skb, cb, dev, viewer, context);
		if (err)
			break;
	}
	xa_unlock(&dev->contexts);
	return err;
}

static bool asked_for(struct netlink_callback *cb, const struct muster_dev *dev)
{
	const struct nlattr *index = muster_dump_attrs(cb)[MUSTER_NL_ATTR_DEVICE_INDEX];

	return rdma_dev_access_netns(&dev->ibdev, sock_net(cb->skb->sk)) &&
	       (!index || nla_get_u32(index) == dev->ibdev.index);
}

static int dump(struct sk_buff *skb, struct netlink_callback *cb,
		int (*dump_of)(struct sk_buff *skb, struct netlink_callback *cb,
			       struct muster_dev *dev, const struct viewer *viewer))
{
	const struct viewer viewer = {
		.user_ns = sk_user_ns(NETLINK_CB(cb->skb).sk),
		.uid = NETLINK_CB(cb->skb).creds.uid,
		.sees_all = netlink_capable(cb->skb, CAP_NET_ADMIN),
	};
	struct muster_dev *dev;
	int err = 0;

	mutex_lock(&devs_lock);
	cb->seq = atomic_read(&changes);
	list_for_each_entry(dev, &devs, netlink_entry) {
		if (dev->netlink_number < cb->args[0] || !asked_for(cb, dev))
			continue;
		if (dev->netlink_number > cb->args[0])
			cb->args[1] = 0;
		cb->args[0] = dev->netlink_number;
		err = dump_of(skb, cb, dev, &viewer);
		if (err)
			break;
		cb->args[0]++;
		cb->args[1] = 0;
	}
	mutex_unlock(&devs_lock);
	return skb->len ?: err;
}

static int devices_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump(skb, cb, dump_device);
}

static int jobs_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump(skb, cb, dump_jobs);
}

static int contexts_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump(skb, cb, dump_contexts);
}

/* ---- the family -------------------------------------------------------------------- */

/* What a request may say: nothing but this. */
static const struct nla_policy policy[] = {
	[MUSTER_NL_ATTR_DEVICE_INDEX] = { .type = NLA_U32 },
};

static const struct genl_ops ops[] = {
	{ .cmd = MUSTER_NL_CMD_DEVICE_GET, .dumpit = devices_get },
	{ .cmd = MUSTER_NL_CMD_JOB_GET, .dumpit = jobs_get },
	{ .cmd = MUSTER_NL_CMD_CONTEXT_GET, .dumpit = contexts_get },
};

static struct genl_family family __ro_after_init = {
	.name = MUSTER_NL_FAMILY,
	.version = MUSTER_NL_VERSION,
	.maxattr = ARRAY_SIZE(policy) - 1,
	.policy = policy,
	.netnsok = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = __MUSTER_NL_CMD_END,
};

int __init muster_netlink_open(void)
{
	return genl_register_family(&family);
}

void muster_netlink_close(void)
{
	genl_unregister_family(&family);
}
