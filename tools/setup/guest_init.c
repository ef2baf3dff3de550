// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * First process of a guest: makes the host's root the guest's own, without being able to
 * change the host, and becomes the guest agent. The kernel command line names, as paths on the host,
 * muster_agent (the program), muster_kernel (the unpacked kernel packages) and, if it is to be loaded,
 * muster_driver. One program and no script, because under emulation each command takes as long as a
 * device does to come up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static char agent[PATH_MAX], kernel[PATH_MAX], driver[PATH_MAX];

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	int err = errno;
	va_list args;

	printf("guest init: ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(": %s\n", strerror(err));
	fflush(stdout);
	sleep(1);
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* At a folder that is made where it is missing. */
static void lay(const char *source, const char *where, const char *type, unsigned long flags,
		const char *options)
{
	mkdir(where, 0755);
	if (mount(source, where, type, flags, options))
		fail("cannot mount %s at %s", source, where);
}

/* Nothing, if it is not there. */
static void word_read(const char *line, const char *name, char *value)
{
	const char *at = strstr(line, name);

	if (!at)
		return;
	at += strlen(name);
	snprintf(value, PATH_MAX, "%.*s", (int)strcspn(at, " \n"), at);
}

static void command_line_read(void)
{
	char line[2 * PATH_MAX] = "";
	FILE *file = fopen("/proc/cmdline", "re");

	if (!file || !fgets(line, sizeof(line), file))
		fail("cannot read /proc/cmdline");
	fclose(file);
	word_read(line, " muster_agent=", agent);
	word_read(line, " muster_kernel=", kernel);
	word_read(line, " muster_driver=", driver);
	errno = EINVAL;
	if (!agent[0] || !kernel[0])
		fail("no muster_agent= or muster_kernel= on the kernel's command line");
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void module_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		fail("cannot load %s", path);
	close(fd);
}

/* In the order of their names; there are none where all is built in. */
static void modules_load(void)
{
	struct dirent **names;
	char path[PATH_MAX];
	int nr = scandir("/modules", &names, is_file, alphasort);

	for (int i = 0; i < nr; i++) {
		snprintf(path, sizeof(path), "/modules/%s", names[i]->d_name);
		module_load(path);
		unlink(path);
	}
}

/* The host's root below, what the guest writes above it. */
static void root_lay(void)
{
	lay("hostroot", "/host", "9p", MS_RDONLY, "trans=virtio,version=9p2000.L,msize=512000,cache=loose");
	lay("tmpfs", "/upper", "tmpfs", 0, "size=75%");
	mkdir("/upper/data", 0755);
	mkdir("/upper/work", 0755);
	lay("overlay", "/root", "overlay", 0, "lowerdir=/host,upperdir=/upper/data,workdir=/upper/work");
}

/* Of this kernel and no other. */
static void modules_show(void)
{
	struct utsname name;
	char from[PATH_MAX + 128], to[PATH_MAX];

	uname(&name);
	lay("tmpfs", "/root/lib/modules", "tmpfs", 0, "mode=755");
	snprintf(from, sizeof(from), "%s/lib/modules/%s", kernel, name.release);
	snprintf(to, sizeof(to), "/root/lib/modules/%s", name.release);
	if (symlink(from, to))
		fail("cannot link %s to %s", to, from);
}

static void root_switch(void)
{
	static const char *const moved[] = { "/proc", "/sys", "/dev" };
	char to[PATH_MAX];

	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		snprintf(to, sizeof(to), "/root%s", moved[i]);
		lay(moved[i], to, NULL, MS_MOVE, NULL);
	}
	lay("tmpfs", "/root/run", "tmpfs", 0, "mode=755");
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		fail("cannot make the host's root the guest's");
}

int main(void)
{
	lay("proc", "/proc", "proc", 0, NULL);
	lay("sysfs", "/sys", "sysfs", 0, NULL);
	lay("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	command_line_read();
	modules_load();
	root_lay();
	modules_show();
	lay("devpts", "/dev/pts", "devpts", 0, NULL);
	lay("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	root_switch();
	if (driver[0])
		module_load(driver);
	execl(agent, agent, (char *)NULL);
	fail("cannot run the agent %s", agent);
}
