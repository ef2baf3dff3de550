// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A NIC is opened here, for a job or only to be asked what it is.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "musterdv.h"

struct ibv_context *muster_verbs_context(const char *name, int *err, char *why, size_t why_len)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *device = NULL;
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !device; i++)
		if (musterdv_is_supported(list[i]) &&
		    (!name || !strcmp(name, ibv_get_device_name(list[i]))))
			device = list[i];
	if (device)
		ctx = ibv_open_device(device);
	*err = ctx ? 0 : errno ? -errno : -EIO;
	if (device && !ctx)
		snprintf(why, why_len, "%s does not open: %s; the provider's own message, if any, is above",
			 ibv_get_device_name(device), strerror(-*err));
	if (list)
		ibv_free_device_list(list);
	if (!device)
		*err = muster_verbs_say_none(name, why, why_len);
	return ctx;
}

static int query(struct ibv_context *ctx, struct muster_verbs_info *info)
{
	struct musterdv_info own;
	struct ibv_device_attr attr;
	int err = musterdv_query(ctx, &own);

	if (!err)
		err = -ibv_query_device(ctx, &attr);
	if (err)
		return err;
	*info = (struct muster_verbs_info){
		.node = own.node,
		.incarnation = own.incarnation,
		.device_version = own.device_version,
		.capabilities = own.capabilities,
		.vps_max = (uint32_t)attr.max_qp,
		.cqs_max = (uint32_t)attr.max_cq,
		.mrs_max = (uint32_t)attr.max_mr,
		.contexts_max = own.contexts_max,
		.dq_entries_max = own.dq_entries_max,
		.rq_entries_max = own.rq_entries_max,
		.cq_entries_max = own.cq_entries_max,
		.vendor_id = attr.vendor_id,
		.vendor_part_id = attr.vendor_part_id,
		.hw_ver = attr.hw_ver,
		.mr_bytes_max = attr.max_mr_size,
	};
	return 0;
}

int muster_verbs_query(const char *name, struct muster_verbs_info *info, char *why, size_t why_len)
{
	struct ibv_context *ctx;
	int err;

	ctx = muster_verbs_context(name, &err, why, why_len);
	if (!ctx)
		return err;
	err = query(ctx, info);
	if (err)
		snprintf(why, why_len, "%s does not say what it is: %s", name, strerror(-err));
	ibv_close_device(ctx);
	return err;
}
