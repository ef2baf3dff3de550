// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The ib_device: what it is, what it can do, and its table of operations. One
 * port; its GID and, where 16 bits suffice, its LID are made from the node.
 */
#include "muster.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* A locally administered EUI-64: "MST" and the node. */
static __be64 guid(const struct muster_dev *dev)
{
	return cpu_to_be64(MUSTER_GUID + dev->node);
}

/* Node n has n + 1; those for which 16 bits do not suffice have none, and are found by GID. */
static u32 lid(const struct muster_dev *dev)
{
	return dev->node + 1 < be16_to_cpu(IB_MULTICAST_LID_BASE) ? dev->node + 1 : 0;
}

/* Whether the provider sent nothing, or nothing but zeros, beside the verb's own. */
bool muster_udata_unused(struct ib_udata *udata)
{
	return !udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen);
}

/* What the provider sent, as far as it goes; more than is known must be zeros. */
int muster_udata_read(struct ib_udata *udata, void *cmd, size_t bytes)
{
	int err = ib_copy_from_udata(cmd, udata, min(bytes, udata->inlen));

	if (err)
		return err;
	if (udata->inlen > bytes && !ib_is_udata_cleared(udata, bytes, udata->inlen - bytes))
		return -EINVAL;
	return 0;
}

static int query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibdev);

	if (!muster_udata_unused(udata))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = MUSTER_DEVICE_VERSION;
	attr->hw_ver = MUSTER_DEVICE_VERSION;
	attr->vendor_id = MUSTER_PCI_VENDOR;
	attr->vendor_part_id = MUSTER_PCI_DEVICE;
	attr->sys_image_guid = guid(dev);
	attr->max_mr_size = (u64)MUSTER_MR_PAGES_MAX << PAGE_SHIFT;
	attr->page_size_cap = GENMASK(30, PAGE_SHIFT);
	attr->max_qp = MUSTER_VPS_MAX;
	attr->max_qp_wr = MUSTER_QP_ENTRIES_MAX;
	attr->max_send_sge = MUSTER_QP_SGES_MAX;
	attr->max_recv_sge = MUSTER_QP_RECEIVE_SGES_MAX;
	attr->max_sge_rd = MUSTER_QP_SGES_MAX;
	attr->max_qp_rd_atom = MUSTER_QP_READS_MAX;
	attr->max_qp_init_rd_atom = MUSTER_QP_READS_MAX;
	attr->max_res_rd_atom = MUSTER_QP_READS_MAX * MUSTER_QPS_MAX;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_ah = MUSTER_NODES_MAX;
	attr->max_cq = MUSTER_CQS_MAX;
	attr->max_cqe = MUSTER_CQ_ENTRIES_MAX;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	attr->max_mr = MUSTER_MRS_MAX;
	attr->max_pd = MUSTER_MRS_MAX;
	attr->max_pkeys = 1;
	attr->max_srq = MUSTER_SRQS_MAX;
	attr->max_srq_wr = MUSTER_QP_ENTRIES_MAX;
	attr->max_srq_sge = MUSTER_QP_RECEIVE_SGES_MAX;
	return 0;
}

/* A device that is gone reads as all ones, and is down too. */
static bool link_up(struct muster_dev *dev)
{
	return !(muster_reg_read(dev, MUSTER_REG_STATUS) & MUSTER_STATE_LINK_DOWN);
}

void muster_link_changed(struct muster_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = link_up(dev) ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = 1,
	};

	mutex_lock(&dev->link_lock);
	if (dev->registered)
		ib_dispatch_event(&event);
	mutex_unlock(&dev->link_lock);
}

static int query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	bool up = link_up(to_mdev(ibdev));

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_POLLING;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->max_msg_sz = MUSTER_QP_MESSAGE_MAX;
	attr->lid = lid(to_mdev(ibdev));
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->active_width = IB_WIDTH_1X;
	attr->active_speed = IB_SPEED_SDR;
	return 0;
}

static int get_port_immutable(struct ib_device *ibdev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static int query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(MUSTER_GID_PREFIX);
	gid->global.interface_id = guid(to_mdev(ibdev));
	return 0;
}

static int query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

static void get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u", MUSTER_DEVICE_VERSION);
}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)MUSTER_DRIVER_ID,
	.uverbs_abi_ver = MUSTER_ABI_VERSION,

	.query_device = query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.get_dev_fw_str = get_dev_fw_str,
	.alloc_hw_port_stats = muster_alloc_hw_port_stats,
	.get_hw_stats = muster_get_hw_stats,
	.counter_bind_qp = muster_counter_bind_qp,
	.counter_unbind_qp = muster_counter_unbind_qp,
	.counter_dealloc = muster_counter_dealloc,
	.counter_alloc_stats = muster_counter_alloc_stats,
	.counter_update_stats = muster_counter_update_stats,
	.fill_res_mr_entry = muster_fill_res_mr,
	.fill_res_cq_entry = muster_fill_res_cq,
	.fill_res_qp_entry = muster_fill_res_qp,

	.alloc_ucontext = muster_alloc_ucontext,
	.dealloc_ucontext = muster_dealloc_ucontext,
	.disassociate_ucontext = muster_disassociate_ucontext,
	.mmap = muster_mmap,
	.mmap_free = muster_mmap_free,
	.alloc_pd = muster_alloc_pd,
	.dealloc_pd = muster_dealloc_pd,
	.create_cq = muster_create_cq,
	.destroy_cq = muster_destroy_cq,
	.modify_cq = muster_modify_cq,
	.resize_cq = muster_resize_cq,
	.reg_user_mr = muster_reg_user_mr,
	.reg_user_mr_dmabuf = muster_reg_user_mr_dmabuf,
	.dereg_mr = muster_dereg_mr,
	.create_qp = muster_create_qp,
	.destroy_qp = muster_destroy_qp,
	.modify_qp = muster_modify_qp,
	.query_qp = muster_query_qp,
	.create_srq = muster_create_srq,
	.destroy_srq = muster_destroy_srq,
	.modify_srq = muster_modify_srq,
	.query_srq = muster_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, muster_ucontext, ibucontext),
	INIT_RDMA_OBJ_SIZE(ib_pd, muster_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_cq, muster_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_qp, muster_any_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, muster_srq, ibsrq),
};

static const struct uapi_definition defs[] = {
	UAPI_DEF_CHAIN(muster_job_defs),
	UAPI_DEF_CHAIN(muster_context_defs),
	{ }
};

static int is_uverbs(struct device *dev, void *unused)
{
	return dev->class && !strcmp(dev->class->name, "infiniband_verbs");
}

/*
 * A client that has found no memory verbs' core leaves out, and says nothing of it. Without that of
 * processes, which this module needs anyway, nobody could open the device.
 */
static bool can_be_opened(struct muster_dev *dev)
{
	struct device *uverbs = device_find_child(&dev->fn->pdev->dev, NULL, is_uverbs);

	put_device(uverbs);
	return uverbs;
}

int muster_ibdev_register(struct muster_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	ibdev->node_type = RDMA_NODE_UNSPECIFIED;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->fn->nr_vectors - 1;
	ibdev->dev.parent = &dev->fn->pdev->dev;
	ibdev->node_guid = guid(dev);
	ibdev->driver_def = defs;
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	snprintf(ibdev->node_desc, sizeof(ibdev->node_desc), "Muster node %u", dev->node);
	ib_set_device_ops(ibdev, &ops);
	err = ib_register_device(ibdev, "muster%d", &dev->fn->pdev->dev);
	if (err)
		return err;
	if (!can_be_opened(dev)) {
		ib_unregister_device(ibdev);
		return -ENOMEM;
	}
	mutex_lock(&dev->link_lock);
	dev->registered = true;
	mutex_unlock(&dev->link_lock);
	muster_netlink_add(dev);
	/* What was told meanwhile nobody has heard. */
	muster_link_changed(dev);
	return 0;
}

void muster_ibdev_unregister(struct muster_dev *dev)
{
	muster_netlink_remove(dev);
	mutex_lock(&dev->link_lock);
	dev->registered = false;
	mutex_unlock(&dev->link_lock);
	ib_unregister_device(&dev->ibdev);
}
