/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is asked of the driver by netlink, as steps whose allocations fail: rdma's counters, and the
 * driver's own family. Each returns 0 or -errno, also of what no word has come of (ENOBUFS).
 */
#ifndef GUEST_FAULT_NETLINK_H
#define GUEST_FAULT_NETLINK_H

#include <stdint.h>

/* Before each try, since a question that has failed leaves its socket busy; closes what there was. */
int fault_netlink_open(void);
int fault_counter_bind(uint32_t device, uint32_t qp, uint32_t *counter);
int fault_counter_unbind(uint32_t device, uint32_t qp, uint32_t counter);
/* Of the port; counter: 0, or this one. */
int fault_counters_read(uint32_t device, uint32_t counter);
/* cmd: MUSTER_NL_CMD_.. */
int fault_family_dump(uint8_t cmd);

#endif /* GUEST_FAULT_NETLINK_H */
