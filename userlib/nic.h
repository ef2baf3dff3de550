/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The NIC path: what nic.c and long.c, which posts programs of many stages, share. */
#ifndef MUSTER_LIBRARY_NIC_H
#define MUSTER_LIBRARY_NIC_H

#include "internal.h"

/** muster_nic_bind() - fill in what of a template is this operation's. */
void muster_nic_bind(const struct muster_request *request, const struct muster_desc *template,
		     struct muster_desc *desc);
/**
 * muster_long_post() - have the device fetch all stages: 0; 1: they must be posted, as there are
 * few, or there is no memory for them; -EAGAIN: later; -errno.
 */
int muster_long_post(struct muster_request *request);

#endif /* MUSTER_LIBRARY_NIC_H */
