/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All that differs between the kernels that muster.ko is built for, 6.1 to 6.12.
 * The rest of the driver is written for the newest of them.
 */
#ifndef MUSTER_COMPAT_H
#define MUSTER_COMPAT_H

#include <linux/mm.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* What ib_device_ops.create_cq is given last. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define MUSTER_CREATE_CQ_ARG	struct ib_udata
#define MUSTER_CREATE_CQ_UDATA(arg) (arg)
#else
#define MUSTER_CREATE_CQ_ARG	struct uverbs_attr_bundle
#define MUSTER_CREATE_CQ_UDATA(arg) (&(arg)->driver_udata)
#endif

/* And reg_user_mr_dmabuf. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define MUSTER_REG_DMABUF_ARG	struct ib_udata
#define MUSTER_REG_DMABUF_UDATA(arg) (arg)
#else
#define MUSTER_REG_DMABUF_ARG	struct uverbs_attr_bundle
#define MUSTER_REG_DMABUF_UDATA(arg) (&(arg)->driver_udata)
#endif

/* Newer kernels take the driver's name from the device. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define MUSTER_DRIVER_NAME_PUT(req) devlink_info_driver_name_put(req, KBUILD_MODNAME)
#else
#define MUSTER_DRIVER_NAME_PUT(req) 0
#endif

/* In TP_fast_assign(): the source is what __string() was given. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define MUSTER_ASSIGN_STR(field, source) __assign_str(field, source)
#else
#define MUSTER_ASSIGN_STR(field, source) __assign_str(field)
#endif

/* What the request of a dump said. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define muster_dump_attrs(cb)	(genl_dumpit_info(cb)->attrs)
#else
#define muster_dump_attrs(cb)	(genl_info_dump(cb)->attrs)
#endif

#endif /* MUSTER_COMPAT_H */
