// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What sysfs says of Muster NICs (sysfs.h). Devices come and go while it is read: what is
 * not there any more reads as empty, and is no error.
 */
#include "sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster_regs.h"

#define PCI	"bus/pci/devices"

int muster_sysfs_read(const char *root, char *line, size_t len, const char *path, ...)
{
	char whole[PATH_MAX];
	int at = snprintf(whole, sizeof(whole), "%s/", root);
	FILE *file;
	va_list args;
	int err = 0;

	va_start(args, path);
	vsnprintf(whole + at, sizeof(whole) - (size_t)at, path, args);
	va_end(args);
	line[0] = 0;
	file = fopen(whole, "re");
	if (!file)
		return -errno;
	errno = 0;
	if (!fgets(line, (int)len, file)) {
		err = ferror(file) && errno ? -errno : 0;
		line[0] = 0;
	}
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	return err;
}

/* The only entry of a function's folder, as infiniband/muster0. */
static void read_entry(const char *root, const char *pci, const char *folder, char *name, size_t len)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	name[0] = 0;
	snprintf(path, sizeof(path), "%s/" PCI "/%s/%s", root, pci, folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(name, len, "%.*s", (int)len - 1, entry->d_name);
	if (dir)
		closedir(dir);
}

static void read_driver(const char *root, const char *pci, char *driver, size_t len)
{
	char path[PATH_MAX], line[256];
	FILE *file;

	driver[0] = 0;
	snprintf(path, sizeof(path), "%s/" PCI "/%s/uevent", root, pci);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "DRIVER=", 7))
			snprintf(driver, len, "%.*s", (int)strcspn(line + 7, "\n"), line + 7);
	if (file)
		fclose(file);
}

static unsigned long number(const char *root, const char *pci, const char *attribute)
{
	char line[32];

	muster_sysfs_read(root, line, sizeof(line), PCI "/%s/%s", pci, attribute);
	return strtoul(line, NULL, 16);
}

static int by_address(const void *a, const void *b)
{
	const struct muster_sysfs_nic *one = a, *other = b;

	return strcmp(one->pci, other->pci);
}

unsigned int muster_sysfs_nics(const char *root, struct muster_sysfs_nic *nics, unsigned int max)
{
	char path[PATH_MAX];
	struct dirent *entry;
	unsigned int found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" PCI, root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const char *pci = entry->d_name;

		if (number(root, pci, "vendor") != MUSTER_PCI_VENDOR ||
		    number(root, pci, "device") != MUSTER_PCI_DEVICE || found++ >= max)
			continue;
		snprintf(nics[found - 1].pci, sizeof(nics->pci), "%.31s", pci);
		read_driver(root, pci, nics[found - 1].driver, sizeof(nics->driver));
		read_entry(root, pci, "infiniband", nics[found - 1].name, sizeof(nics->name));
		read_entry(root, pci, "infiniband_verbs", nics[found - 1].uverbs,
			   sizeof(nics->uverbs));
	}
	if (dir)
		closedir(dir);
	qsort(nics, found < max ? found : max, sizeof(*nics), by_address);
	return found;
}
