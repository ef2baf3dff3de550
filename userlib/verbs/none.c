// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Why there is no NIC to open: none of that name, none in the machine, no driver that
 * has it, or no provider that knows it; each with what to do about it.
 */
#include "verbs.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "muster_regs.h"

/* Whether some PCI function is a Muster NIC, and whether a driver has it. */
static bool find_pci(bool *driven)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	struct dirent *entry;
	bool found = false;

	while (dir && (entry = readdir(dir))) {
		char path[512], id[32] = "";
		unsigned int vendor = 0, device = 0;
		FILE *file;

		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/uevent", entry->d_name);
		file = fopen(path, "re");
		*driven = false;
		while (file && fgets(path, sizeof(path), file)) {
			if (!strncmp(path, "DRIVER=", 7))
				*driven = true;
			if (sscanf(path, "PCI_ID=%31s", id) == 1)
				sscanf(id, "%x:%x", &vendor, &device);
		}
		if (file)
			fclose(file);
		found = vendor == MUSTER_PCI_VENDOR && device == MUSTER_PCI_DEVICE;
		if (found)
			break;
	}
	if (dir)
		closedir(dir);
	return found;
}

int muster_verbs_say_none(const char *name, char *why, size_t why_len)
{
	bool driven;

	if (name)
		snprintf(why, why_len, "MUSTER_NIC=%s: there is no Muster NIC of that name; ibv_devices lists them",
			 name);
	else if (!find_pci(&driven))
		snprintf(why, why_len, "this machine has no Muster NIC (PCI %04x:%04x); run the program under muster-run --vm, or with MUSTER_DEVICE=local",
			 MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE);
	else if (!driven)
		snprintf(why, why_len, "there is a Muster NIC, but no driver has it: load muster.ko (insmod build/kernel/muster.ko)");
	else
		snprintf(why, why_len, "there is a Muster NIC, but libibverbs does not know it: load ib_uverbs, and name the provider with IBV_DRIVERS=.../libmuster or in /etc/libibverbs.d/muster.driver");
	return -ENODEV;
}
