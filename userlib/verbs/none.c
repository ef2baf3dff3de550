// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Why there is no NIC to open: none of that name, none in the machine, no driver that
 * has it, or no provider that knows it; each with what to do about it.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "muster_regs.h"
#include "sysfs.h"

int muster_verbs_say_none(const char *name, char *why, size_t why_len)
{
	struct muster_sysfs_nic nic;

	if (name)
		snprintf(why, why_len, "MUSTER_NIC=%s: there is no Muster NIC of that name; ibv_devices lists them",
			 name);
	else if (!muster_sysfs_nics(MUSTER_SYSFS, &nic, 1))
		snprintf(why, why_len, "this machine has no Muster NIC (PCI %04x:%04x); run the program under muster-run --vm, or with MUSTER_DEVICE=local",
			 MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE);
	else if (!nic.driver[0] && !access(MUSTER_SYSFS "/module/muster", F_OK))
		snprintf(why, why_len, "there is a Muster NIC, but its driver, which is loaded, has not taken it or has been told to let it go: dmesg says why");
	else if (!nic.driver[0])
		snprintf(why, why_len, "there is a Muster NIC, but no driver has it: load muster.ko (insmod build/kernel/muster.ko)");
	else
		snprintf(why, why_len, "there is a Muster NIC, but libibverbs does not know it: load ib_uverbs, and name the provider with IBV_DRIVERS=.../libmuster or in /etc/libibverbs.d/muster.driver");
	return -ENODEV;
}
