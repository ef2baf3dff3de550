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

/* A message of a dump: whom it goes to, and which device it is about. */
struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct muster_dev *dev;
	struct user_namespace *user_ns;	/* of who asks: these three */
	kuid_t uid;
	bool sees_all;
};

/* What one says of an object, or of the device. True: it did not fit. */
typedef bool put_fn(const struct dump *dump, const struct muster_shown *shown);

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

static bool put_head(const struct dump *dump, const struct muster_shown *shown)
{
	return nla_put_u32(dump->skb, MUSTER_NL_ATTR_DEVICE_INDEX, dump->dev->ibdev.index) ||
	       (shown && nla_put_u32(dump->skb, MUSTER_NL_ATTR_UID,
				     from_kuid_munged(dump->user_ns, shown->user)));
}

/* It is taken back if something in it did not fit: the next message begins with it. */
static int message(const struct dump *dump, u8 cmd, put_fn *put, const struct muster_shown *shown)
{
	void *head = genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid,
				 dump->cb->nlh->nlmsg_seq, &family, NLM_F_MULTI, cmd);

	if (!head)
		return -EMSGSIZE;
	genl_dump_check_consistent(dump->cb, head);
	if (put_head(dump, shown) || put(dump, shown)) {
		genlmsg_cancel(dump->skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(dump->skb, head);
	return 0;
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

static bool put_nic(const struct dump *dump, const struct muster_shown *none)
{
	struct muster_dev *dev = dump->dev;
	struct sk_buff *skb = dump->skb;
	char name[IB_DEVICE_NAME_MAX];

	strscpy(name, dev->ibdev.name, sizeof(name));	/* it may be renamed */
	return nla_put_string(skb, MUSTER_NL_ATTR_DEVICE_NAME, name) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_NODE, dev->node) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_INCARNATION, dev->incarnation) ||
	       put_unit(skb, &dev->vps_share) || put_unit(skb, &dev->cqs_share) ||
	       put_unit(skb, &dev->contexts_share) || put_unit(skb, &dev->qps_share) ||
	       put_unit(skb, &dev->srqs_share) || put_buffers(skb, dev);
}

static bool put_job(const struct dump *dump, const struct muster_shown *shown)
{
	const struct muster_job *job = container_of(shown, struct muster_job, shown);

	return nla_put_u32(dump->skb, MUSTER_NL_ATTR_JOB, job->id) ||
	       nla_put_u32(dump->skb, MUSTER_NL_ATTR_JOB_CONTEXTS, atomic_read(&job->users));
}

static bool put_context(const struct dump *dump, const struct muster_shown *shown)
{
	const struct muster_context *context = container_of(shown, struct muster_context, shown);
	struct sk_buff *skb = dump->skb;

	return nla_put_u32(skb, MUSTER_NL_ATTR_JOB, context->job->id) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_CONTEXT, context->id) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_VP, context->vp->qp_num) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_LIFE, context->life) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_SELF, context->self) ||
	       nla_put_u32(skb, MUSTER_NL_ATTR_MEMBERS, context->nr_members);
}

/* ---- dumps: cb->args say with which device, and which object of it, to go on --------- */

static bool sees(const struct dump *dump, const struct muster_shown *shown)
{
	return dump->sees_all || uid_eq(dump->uid, shown->user);
}

/* Under the lock, so that none of them goes meanwhile. */
static int dump_objects(const struct dump *dump, u8 cmd, put_fn *put, struct xarray *objects)
{
	const struct muster_shown *shown;
	unsigned long at;
	int err = 0;

	xa_lock(objects);
	xa_for_each_start(objects, at, shown, dump->cb->args[1]) {
		dump->cb->args[1] = at;
		if (sees(dump, shown))
			err = message(dump, cmd, put, shown);
		if (err)
			break;
	}
	xa_unlock(objects);
	return err;
}

static int dump_device(const struct dump *dump)
{
	return message(dump, MUSTER_NL_CMD_DEVICE_GET, put_nic, NULL);
}

static int dump_jobs(const struct dump *dump)
{
	return dump_objects(dump, MUSTER_NL_CMD_JOB_GET, put_job, &dump->dev->jobs);
}

static int dump_contexts(const struct dump *dump)
{
	return dump_objects(dump, MUSTER_NL_CMD_CONTEXT_GET, put_context, &dump->dev->contexts);
}

static bool asked_for(struct netlink_callback *cb, const struct muster_dev *dev)
{
	const struct nlattr *index = muster_dump_attrs(cb)[MUSTER_NL_ATTR_DEVICE_INDEX];

	return rdma_dev_access_netns(&dev->ibdev, sock_net(cb->skb->sk)) &&
	       (!index || nla_get_u32(index) == dev->ibdev.index);
}

static int dump_devices(struct sk_buff *skb, struct netlink_callback *cb,
			int (*dump_of)(const struct dump *dump))
{
	struct dump dump = {
		.skb = skb,
		.cb = cb,
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
		dump.dev = dev;
		err = dump_of(&dump);
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
	return dump_devices(skb, cb, dump_device);
}

static int jobs_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_devices(skb, cb, dump_jobs);
}

static int contexts_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_devices(skb, cb, dump_contexts);
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
