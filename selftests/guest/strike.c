// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Taking the device away: by files of sysfs, by system calls for modules, and by QMP, which
 * the guest speaks with its own QEMU.
 */
#include "strike.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor.h"

#define DRIVER "/sys/bus/pci/drivers/muster"

const char *const strike_names[STRIKES] = { "unbind", "reload", "unplug", "reset" };

static char device[64];			/* its PCI address */
static char wire[256];			/* the property that it was plugged with */

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = -errno;
	close(fd);
	return err;
}

/* ---- QMP ------------------------------------------------------------------------- */

static int wire_learn(void)
{
	char line[1024], *text;
	int err = monitor_open();

	if (!err)
		err = monitor_tell("{\"execute\":\"qom-get\",\"arguments\":{\"path\":\"/machine/peripheral/"
			   "nic0\",\"property\":\"wire\"}}\n", "\"return\"", line, sizeof(line));
	if (err)
		return err;
	text = strstr(line, "\"return\": \"");
	return text && sscanf(text, "\"return\": \"%255[^\"]", wire) == 1 ? 0 : -EPROTO;
}

static int unplug(void)
{
	char line[1024];

	/* The event may come before the answer. */
	return monitor_tell("{\"execute\":\"device_del\",\"arguments\":{\"id\":\"nic0\"}}\n",
		    "\"DEVICE_DELETED\", \"data\": {\"device\"", line, sizeof(line));
}

static int plug(void)
{
	char command[512], line[1024];

	snprintf(command, sizeof(command), "{\"execute\":\"device_add\",\"arguments\":{\"driver\":"
		 "\"muster\",\"id\":\"nic0\",\"bus\":\"slot0\",\"node\":0,\"wire\":\"%s\"}}\n", wire);
	return monitor_tell(command, "\"return\"", line, sizeof(line));
}

/* ---- modules --------------------------------------------------------------------- */

static int module_load(void)
{
	const char *named = getenv("MUSTER_MODULE"), *build = getenv("MUSTER_BUILD");
	char path[512];
	int fd, err;

	snprintf(path, sizeof(path), "%s/kernel/muster.ko", build ? build : "build");
	fd = open(named ? named : path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return err;
}

/* ---- any of them ------------------------------------------------------------------- */

/* The only device that the driver has. */
static int device_find(void)
{
	DIR *dir = opendir(DRIVER);
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir)))
		if (strchr(entry->d_name, ':'))
			snprintf(device, sizeof(device), "%.63s", entry->d_name);
	closedir(dir);
	return device[0] ? 0 : -ENODEV;
}

int strike_open(enum strike how)
{
	int err = device_find();

	return err || how != STRIKE_UNPLUG ? err : wire_learn();
}

int strike_down(enum strike how)
{
	char path[128];

	switch (how) {
	case STRIKE_UNBIND:
		return write_to(DRIVER "/unbind", device);
	case STRIKE_RELOAD:
		return syscall(SYS_delete_module, "muster", O_NONBLOCK) ? -errno : 0;
	case STRIKE_UNPLUG:
		return unplug();
	case STRIKE_RESET:
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", device);
		return write_to(path, "1");
	default:
		return -EINVAL;
	}
}

int strike_up(enum strike how)
{
	switch (how) {
	case STRIKE_UNBIND:
		return write_to(DRIVER "/bind", device);
	case STRIKE_RELOAD:
		return module_load();
	case STRIKE_UNPLUG:
		return plug();
	default:
		return 0;
	}
}
