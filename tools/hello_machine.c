// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is there, and may be used: library, memory, limits, and of a NIC the driver, its
 * file and the versions of all that must fit together. Nothing is changed.
 */
#include "hello.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "muster_regs.h"
#include "rdma/muster-abi.h"
#include "verbs/verbs.h"
#include "version.h"

#define LIBRARY "libmuster.so.0"

enum {
	ROOM_BYTES = 16 << 20,		/* of shared memory: more than the runs of hello_run.c take */
	FILES_A_RANK = 4,		/* rank 0 has for each other rank (muster(7)) */
	FILES_OWN = 32,
	RUN_LOCKED_BYTES = 4 << 20,	/* what hello_run.c has registered at most, beside the rings */
	CAP_IPC_LOCK_BIT = 14,		/* linux/capability.h */
};

/* ---- of every machine --------------------------------------------------------------- */

void hello_library(const struct hello_machine *machine, struct hello_line *line)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const char *(*version)(void);
	Dl_info where;

	(void)machine;
	if (!library) {
		hello_say(line, HELLO_FAIL, "%s", dlerror());
		hello_cure(line, "install the library (make install, then ldconfig), or say with LD_LIBRARY_PATH where %s is",
			   LIBRARY);
		return;
	}
	version = (const char *(*)(void))dlsym(library, "muster_version");
	if (!version || strcmp(version(), MUSTER_VERSION)) {
		hello_say(line, HELLO_FAIL, "%s is version %s, this tool is " MUSTER_VERSION, LIBRARY,
			  version ? version() : "unknown");
		hello_cure(line, "install library and tools from one build (make install)");
		return;
	}
	hello_say(line, HELLO_OK, "%s, version %s", dladdr((void *)version, &where) ?
		  where.dli_fname : LIBRARY, version());
}

void hello_memory(const struct hello_machine *machine, struct hello_line *line)
{
	int fd = memfd_create("muster-hello", MFD_CLOEXEC);
	int err = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM_BYTES);

	(void)machine;
	if (fd >= 0)
		close(fd);
	if (!err) {
		hello_say(line, HELLO_OK, "%d MiB of shared memory (memfd) could be had",
			  ROOM_BYTES >> 20);
		return;
	}
	hello_say(line, HELLO_FAIL, "no %d MiB of shared memory (memfd): %s", ROOM_BYTES >> 20,
		  strerror(err));
	hello_cure(line, "free memory, or raise the limit of it (memory.max of the control group, ulimit -v, ulimit -f)");
}

void hello_files(const struct hello_machine *machine, struct hello_line *line)
{
	rlim_t cpus = (rlim_t)sysconf(_SC_NPROCESSORS_ONLN), wanted;
	struct rlimit limit = { 0 };

	(void)machine;
	getrlimit(RLIMIT_NOFILE, &limit);
	wanted = FILES_OWN + FILES_A_RANK * (cpus > 2 ? cpus : 2);
	if (limit.rlim_max < wanted) {
		hello_say(line, HELLO_FAIL, "%ju open files (ulimit -Hn); %ju local ranks need %ju",
			  (uintmax_t)limit.rlim_max, (uintmax_t)(cpus > 2 ? cpus : 2),
			  (uintmax_t)wanted);
		hello_cure(line, "raise the limit of open files: ulimit -n %ju, or a line '* hard nofile 65536' in /etc/security/limits.conf",
			   (uintmax_t)wanted);
		return;
	}
	if (limit.rlim_max == RLIM_INFINITY)
		hello_say(line, HELLO_OK, "open files without limit (ulimit -Hn)");
	else
		hello_say(line, HELLO_OK, "%ju open files (ulimit -Hn), enough for about %ju local ranks",
			  (uintmax_t)limit.rlim_max,
			  (uintmax_t)(limit.rlim_max - FILES_OWN) / FILES_A_RANK);
}

/* ---- of a NIC ---------------------------------------------------------------------------- */

void hello_nic(const struct hello_machine *machine, struct hello_line *line)
{
	if (machine->nic)
		hello_say(line, HELLO_OK, "%s, at PCI %s", machine->nic->name[0] ?
			  machine->nic->name : "a Muster NIC", machine->nic->pci);
	else if (machine->local_only)
		hello_say(line, HELLO_NONE, "not asked for");
	else
		hello_say(line, HELLO_NONE, "no PCI device %04x:%04x: jobs use the local device",
			  MUSTER_PCI_VENDOR, MUSTER_PCI_DEVICE);
}

/* Whether depmod knows of our module for the kernel that runs. */
static bool module_installed(void)
{
	struct utsname kernel;
	char path[256], text[512];
	bool found = false;
	FILE *file;

	uname(&kernel);
	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", kernel.release);
	file = fopen(path, "re");
	while (file && !found && fgets(text, sizeof(text), file)) {
		text[strcspn(text, ":")] = 0;
		found = strstr(text, "/muster.ko");
	}
	if (file)
		fclose(file);
	return found;
}

void hello_module(const struct hello_machine *machine, struct hello_line *line)
{
	bool loaded = !access("/sys/module/muster", F_OK), installed = module_installed();
	const char *where = loaded ? "loaded" : installed ? "installed, not loaded" : "not installed";

	if (!machine->nic) {
		hello_say(line, HELLO_NONE, "muster.ko is %s; nothing needs it", where);
	} else if (machine->nic->driver[0] && machine->nic->name[0]) {
		hello_say(line, HELLO_OK, "muster.ko is loaded; driver %s has the NIC",
			  machine->nic->driver);
	} else if (machine->nic->driver[0] || loaded) {
		hello_say(line, HELLO_FAIL, "muster.ko is %s, but has made no device of the NIC", where);
		hello_cure(line, "see why in the kernel log (dmesg | grep muster); then bind it: echo %s > /sys/bus/pci/drivers/muster/bind",
			   machine->nic->pci);
	} else {
		hello_say(line, HELLO_FAIL, "muster.ko is %s: no driver has the NIC", where);
		hello_cure(line, "load the driver, as root: %s", installed ? "modprobe muster" :
			   "make kernel, modprobe ib_uverbs, insmod build/kernel/muster.ko");
	}
}

void hello_node(const struct hello_machine *machine, struct hello_line *line)
{
	const struct muster_sysfs_nic *nic = machine->nic;
	struct stat file;
	struct passwd *user;
	struct group *group;
	char path[64];

	if (!nic) {
		hello_say(line, HELLO_NONE, "no NIC has one");
		return;
	}
	if (!nic->uverbs[0]) {
		hello_say(line, HELLO_FAIL, "%s has no file to open it by", nic->name);
		hello_cure(line, "load ib_uverbs, as root: modprobe ib_uverbs");
		return;
	}
	snprintf(path, sizeof(path), "/dev/infiniband/%s", nic->uverbs);
	if (!diag_file_opens(nic, line->text, sizeof(line->text))) {
		hello_say(line, HELLO_OK, "%s can be opened", path);
		return;
	}
	if (stat(path, &file)) {
		hello_say(line, HELLO_FAIL, "%s: %s", path, strerror(errno));
		hello_cure(line, "have %s made: udev does, or as root: mknod from /sys/class/infiniband_verbs/%s/dev",
			   path, nic->uverbs);
		return;
	}
	user = getpwuid(file.st_uid);
	group = getgrgid(file.st_gid);
	hello_say(line, HELLO_FAIL, "%s is not yours to open: mode %04o, of %s, group %s", path,
		  file.st_mode & 07777, user ? user->pw_name : "?", group ? group->gr_name : "?");
	hello_cure(line, "let users open %s: install rdma-core, whose udev rules do, or as root: chmod 666 %s",
		   path, path);
}

/* Driver against provider by the number of their interface, then what the device itself says. */
void hello_versions(const struct hello_machine *machine, struct hello_line *line)
{
	const struct muster_sysfs_nic *nic = machine->nic;
	struct muster_verbs_info info;
	char why[DIAG_WHY_BYTES], abi[32];

	if (!nic) {
		hello_say(line, HELLO_NONE, "library and tools are of version " MUSTER_VERSION);
		return;
	}
	muster_sysfs_read(MUSTER_SYSFS, abi, sizeof(abi), "class/infiniband_verbs/%s/abi_version",
			  nic->uverbs);
	if (atoi(abi) != MUSTER_ABI_VERSION) {
		hello_say(line, HELLO_FAIL, "the driver has interface %s, the provider %d", abi,
			  MUSTER_ABI_VERSION);
		hello_cure(line, "install driver and provider from one release");
	} else if (diag_query(nic->name, &info, why, sizeof(why))) {
		hello_say(line, HELLO_FAIL, "%s", why);
		hello_cure(line, "%s", why);
	} else {
		hello_say(line, HELLO_OK, "driver and provider have interface %s, the device is of version %" PRIu32,
			  abi, info.device_version);
	}
}

static bool may_lock_all(void)
{
	uint64_t capabilities = 0;
	char text[128];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(text, sizeof(text), file))
		if (sscanf(text, "CapEff: %" SCNx64, &capabilities) == 1)
			break;
	if (file)
		fclose(file);
	return capabilities >> CAP_IPC_LOCK_BIT & 1;
}

/* What the NIC works on is locked; the local device locks nothing. */
void hello_memlock(const struct hello_machine *machine, struct hello_line *line)
{
	const rlim_t wanted = MUSTER_VERBS_RING_BYTES + RUN_LOCKED_BYTES;
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || may_lock_all())
		hello_say(line, HELLO_OK, "locked memory without limit");
	else if (!machine->nic)
		hello_say(line, HELLO_NONE, "%ju KiB of locked memory (ulimit -l); the local device locks none",
			  (uintmax_t)limit.rlim_cur >> 10);
	else if (limit.rlim_cur >= wanted)
		hello_say(line, HELLO_OK, "%ju KiB of locked memory (ulimit -l): rings take %d KiB, the rest is for buffers",
			  (uintmax_t)limit.rlim_cur >> 10, MUSTER_VERBS_RING_BYTES >> 10);
	else
		hello_say(line, HELLO_FAIL, "%ju KiB of locked memory (ulimit -l): a rank's rings take %d KiB, and its buffers the rest",
			  (uintmax_t)limit.rlim_cur >> 10, MUSTER_VERBS_RING_BYTES >> 10);
	hello_cure(line, "raise the limit of locked memory: ulimit -l unlimited, or a line '* - memlock unlimited' in /etc/security/limits.conf (LimitMEMLOCK=infinity in a systemd unit)");
}
