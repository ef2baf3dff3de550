// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains: a number that a virtual port and the memory it may use
 * have in common. The device has no object for it.
 */
#include "muster.h"

#include <rdma/uverbs_ioctl.h>

int muster_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibpd->device);
	struct muster_alloc_pd_resp resp = { };
	int id, err;

	if (!muster_udata_unused(udata) || udata->outlen < sizeof(resp))
		return -EINVAL;
	id = ida_alloc_min(&dev->pds, 1, GFP_KERNEL);
	if (id < 0)
		return id;
	resp.pd = id;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err) {
		ida_free(&dev->pds, id);
		return err;
	}
	to_mpd(ibpd)->id = id;
	return 0;
}

int muster_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	ida_free(&to_mdev(ibpd->device)->pds, to_mpd(ibpd)->id);
	return 0;
}
