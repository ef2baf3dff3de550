// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One guest's QEMU: its command line, and the process that dies with its parent.
 * The guest has the host's root by 9p, a console in a file, its ports as
 * descriptors that QEMU inherits, and Muster NICs numbered through the cluster.
 */
#include "vm_qemu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum {
	ARGS_MAX = 128,
	ARG_LEN = 3 * PATH_MAX,
	CONSOLE_LINES = 15,		/* shown of a guest that died */
	CLOCK_READS = 16,		/* of which that counts which nothing has come between */
	PAGES = 64, PAGE = 4096,	/* so many are tried, of so many bytes */
	PAGE_DEAR_US = 4,
	CLOCK_US = 10000,
};

struct args {
	char *argv[ARGS_MAX];
	int nr;
	bool failed;
};

__attribute__((format(printf, 2, 3)))
static void args_add(struct args *args, const char *fmt, ...)
{
	char text[ARG_LEN];
	va_list list;
	int len;

	va_start(list, fmt);
	len = vsnprintf(text, sizeof(text), fmt, list);
	va_end(list);
	if (len >= (int)sizeof(text) || args->nr >= ARGS_MAX - 1 ||
	    !(args->argv[args->nr] = strdup(text))) {
		args->failed = true;
		return;
	}
	args->argv[++args->nr] = NULL;
}

static void args_option(struct args *args, const char *option, const char *value)
{
	args_add(args, "%s", option);
	args_add(args, "%s", value);
}

static void args_free(struct args *args)
{
	while (args->nr)
		free(args->argv[--args->nr]);
}

/* What a kernel wants besides: one line in a file beside it. */
static void read_line(const char *dir, const char *name, char *words, int size)
{
	char path[PATH_MAX + 16];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	if (!file || !fgets(words, size, file))
		words[0] = 0;
	words[strcspn(words, "\n")] = 0;
	if (file)
		fclose(file);
}

unsigned int vm_qemu_memory_mib(const char *dir, unsigned int otherwise)
{
	unsigned int mib = otherwise;
	char words[32];

	read_line(dir, "memory", words, sizeof(words));
	return sscanf(words, "%u", &mib) == 1 ? mib : otherwise;
}

/* The clock, and the counter of cycles that guests have as theirs: read as near each other as can be. */
#ifdef __x86_64__
static void clocks_read(uint64_t *ns, uint64_t *cycles)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < CLOCK_READS; i++) {
		uint64_t before = __builtin_ia32_rdtsc(), took;
		struct timespec time;

		clock_gettime(CLOCK_MONOTONIC_RAW, &time);
		took = __builtin_ia32_rdtsc() - before;
		if (took >= least)
			continue;
		least = took;
		*ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
		*cycles = before + took / 2;
	}
}
#else
static void clocks_read(uint64_t *ns, uint64_t *cycles)
{
	*ns = *cycles = 0;
}
#endif

/*
 * A guest that measures how fast its counter goes while this machine is busy is wrong by far, and its clock
 * with it: it is told. Nothing is where that is not known, or guests count instructions.
 */
static void tell_clock(char *words, size_t size, bool count_time)
{
	uint64_t ns[2] = { 0 }, cycles[2] = { 0 };

	words[0] = 0;
	if (count_time)
		return;
	clocks_read(&ns[0], &cycles[0]);
	usleep(CLOCK_US);
	clocks_read(&ns[1], &cycles[1]);
	if (ns[1] > ns[0])
		snprintf(words, size, "tsc=reliable tsc_early_khz=%" PRIu64,
			 (cycles[1] - cycles[0]) * 1000000 / (ns[1] - ns[0]));
}

static void add_machine(struct args *args, const struct vm_qemu *qemu)
{
	const struct muster_vm_config *config = qemu->config;
	char kernel[PATH_MAX + 16], path[PATH_MAX], words[256], clock[64];

	snprintf(kernel, sizeof(kernel), "%s/kernel", config->dir);
	if (!realpath(kernel, path))
		args->failed = true;
	args_add(args, "%s/qemu-system-x86_64", config->dir);
	args_option(args, "-L", "/usr/share/seabios");
	args_option(args, "-L", "/usr/share/qemu");
	args_add(args, "-nodefaults");
	args_add(args, "-no-user-config");
	args_add(args, "-no-reboot");
	args_option(args, "-display", "none");
	args_option(args, "-vga", "none");
	args_option(args, "-machine", "q35");
	args_option(args, "-accel", config->accel);
	args_option(args, "-name", "muster");
	args_add(args, "-m");
	args_add(args, "%u", config->memory_mib);
	args_add(args, "-kernel");
	args_add(args, "%s/vmlinux", config->dir);
	args_add(args, "-initrd");
	args_add(args, "%s/initrd", config->dir);
	read_line(config->dir, "cmdline", words, sizeof(words));
	tell_clock(clock, sizeof(clock), config->count_time);
	args_add(args, "-append");
	/*
	 * A host that is busy gives no ticks while the kernel counts them: it must not look. Nor
	 * is a guest stuck that got no CPU for a while: 120 s for a lockup, 300 s for a stall.
	 * What emulation is slow at: code is translated again wherever it lies in another process,
	 * a jump by way of a return is three, and each lock prefix that one CPU does not need would
	 * be patched; and nobody waits for tests of the kernel's ciphers.
	 */
	args_add(args, "console=ttyS0 loglevel=5 panic=-1 no_timer_check watchdog_thresh=60 "
		 "rcupdate.rcu_cpu_stall_timeout=300 norandmaps mitigations=off noreplace-smp "
		 "cryptomgr.notests "
		 "muster_agent=%s muster_kernel=%s muster_guest=%u %s%s %s %s",
		 config->agent, path, qemu->index, config->driver ? "muster_driver=" : "",
		 config->driver ? config->driver : "", clock, words);
	args_add(args, "-serial");
	args_add(args, "file:%s", qemu->console);
	args_option(args, "-fsdev",
		    "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap");
	args_option(args, "-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot");
	args_option(args, "-device", "virtio-rng-pci");
	if (config->count_time)
		args_option(args, "-icount", "shift=0");
}

/* What else QEMU is told for this kernel, if there is such a file. */
static void add_options(struct args *args, const struct vm_qemu *qemu)
{
	char words[256], *word, *rest;

	read_line(qemu->config->dir, "options", words, sizeof(words));
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		args_add(args, "%s", word);
}

static void add_port(struct args *args, const char *id, int fd, const char *name)
{
	args_add(args, "-chardev");
	args_add(args, "socket,id=%s,fd=%d", id, fd);
	args_add(args, "-device");
	args_add(args, "virtserialport,chardev=%s,name=%s", id, name);
}

static void add_ports(struct args *args, const struct vm_qemu *qemu)
{
	char id[32], name[64];

	args_add(args, "-device");
	args_add(args, "virtio-serial-pci,max_ports=%d", MUSTER_VM_PORTS_MAX + 2);
	add_port(args, "control", qemu->ports[0], VM_PORT_CONTROL);
	for (unsigned int i = 0; i + 1 < qemu->nr_ports; i++) {
		snprintf(id, sizeof(id), "rendezvous%u", i);
		snprintf(name, sizeof(name), "%s.%u", VM_PORT_RENDEZVOUS, i);
		add_port(args, id, qemu->ports[1 + i], name);
	}
}

static void add_nics(struct args *args, const struct vm_qemu *qemu)
{
	const struct muster_vm_config *config = qemu->config;
	const char *options = config->nic_options;
	char wire[PATH_MAX], slot[64] = "", uplink[64] = "";

	snprintf(wire, sizeof(wire), "unix:%s", qemu->dir);
	for (unsigned int i = 0; i < config->nr_nics; i++) {
		unsigned int node = qemu->index * config->nr_nics + i;

		if (config->uplinks)
			snprintf(uplink, sizeof(uplink), ",uplink=%u,uplink-life=%u", config->uplinks[node],
				 config->uplink_life);
		if (config->hotplug) {
			args_add(args, "-device");
			args_add(args, "pcie-root-port,id=slot%u,chassis=%u", i, i + 1);
			snprintf(slot, sizeof(slot), ",id=nic%u,bus=slot%u", i, i);
		}
		args_add(args, "-device");
		args_add(args, "muster,node=%u,wire=%s%s%s%s%s", node, config->wire ? config->wire : wire,
			 uplink, slot, options ? "," : "", options ? options : "");
	}
}

/* The guest itself tells its QEMU what to plug and unplug: two ends of one socket pair. */
static int add_monitor(struct args *args, int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	args_add(args, "-chardev");
	args_add(args, "socket,id=qmp,fd=%d", fds[0]);
	args_option(args, "-mon", "chardev=qmp,mode=control");
	add_port(args, "monitor", fds[1], VM_PORT_MONITOR);
	return 0;
}

/* A line between two, by datagrams in the cluster's own folder. */
static void add_network(struct args *args, const struct vm_qemu *qemu)
{
	if (qemu->index > 1)
		return;
	args_add(args, "-netdev");
	args_add(args, "dgram,id=net,local.type=unix,local.path=%s/net.%u,"
		 "remote.type=unix,remote.path=%s/net.%u", qemu->dir, qemu->index, qemu->dir,
		 !qemu->index);
	args_add(args, "-device");
	args_add(args, "virtio-net-pci,netdev=net,romfile=,mac=52:54:00:4d:53:%02x", qemu->index);
}

static void add_count(struct args *args, const struct vm_qemu *qemu)
{
	args_add(args, "-plugin");
	args_add(args, "%s/libmuster-count.so,into=%s", qemu->config->dir, qemu->count);
}

/*
 * To touch a page for the first time takes half a microsecond. In some virtual machines it takes 15, while all of
 * 2 MiB take 150.
 */
static bool pages_are_dear(void)
{
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t began = muster_clock_us();

	if (pages == MAP_FAILED)
		return false;
	for (size_t i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * PAGE] = 1;
	munmap(pages, PAGES * PAGE);
	return muster_clock_us() - began > PAGES * PAGE_DEAR_US;
}

/*
 * In the child. Its own session gives QEMU its own scheduling group, and keeps
 * the terminal's Ctrl-C to the runner, which ends guests in order.
 */
static void qemu_exec(struct args *args, pid_t parent, const struct vm_qemu *qemu,
		      const int monitor[2])
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A guest that boots touches a little of everything: 2 MiB for each place would be cleared. */
	if (!pages_are_dear())
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, 0);
	dup2(null, 1);
	for (unsigned int i = 0; i < qemu->nr_ports; i++)
		fcntl(qemu->ports[i], F_SETFD, 0);
	for (int i = 0; i < 2 && monitor[i] >= 0; i++)
		fcntl(monitor[i], F_SETFD, 0);
	execv(args->argv[0], args->argv);
	fprintf(stderr, "cannot run %s: %s\n", args->argv[0], strerror(errno));
	_exit(127);
}

int vm_qemu_spawn(const struct vm_qemu *qemu, pid_t *pid)
{
	struct args args = { .nr = 0 };
	int monitor[2] = { -1, -1 }, err = 0;
	pid_t parent = getpid();

	add_machine(&args, qemu);
	add_options(&args, qemu);
	add_ports(&args, qemu);
	if (qemu->config->hotplug)
		err = add_monitor(&args, monitor);
	add_nics(&args, qemu);
	if (qemu->config->network)
		add_network(&args, qemu);
	if (qemu->config->count_instructions)
		add_count(&args, qemu);
	if (err || args.failed) {
		err = err ? err : -E2BIG;
		goto free_args;
	}
	*pid = fork();
	if (*pid == 0)
		qemu_exec(&args, parent, qemu, monitor);
	if (*pid < 0) {
		err = -errno;
		*pid = 0;
	}
free_args:
	for (int i = 0; i < 2 && monitor[i] >= 0; i++)
		close(monitor[i]);
	args_free(&args);
	return err;
}

/* How long a thread was ready to run and did not. */
static uint64_t thread_delay_ns(pid_t pid, const char *thread)
{
	unsigned long long delay = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", pid, thread);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*u %llu", &delay) != 1)
		delay = 0;
	if (file)
		fclose(file);
	return delay;
}

int64_t vm_qemu_clock_ms(pid_t pid)
{
	struct dirent *thread;
	struct timespec ts;
	uint64_t delay = 0;
	char path[32];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && (thread = readdir(threads)))
		if (thread->d_name[0] != '.')
			delay += thread_delay_ns(pid, thread->d_name);
	if (threads)
		closedir(threads);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ((int64_t)ts.tv_nsec - (int64_t)delay) / 1000000;
}

/* ---- its console ------------------------------------------------------------------- */

long long vm_qemu_console_bytes(const char *path)
{
	struct stat stat_buf;

	return stat(path, &stat_buf) ? 0 : stat_buf.st_size;
}

void vm_qemu_console_show(const char *path, unsigned int index)
{
	char text[4096];
	FILE *file = fopen(path, "re");
	size_t len = 0, start;
	int lines = 0;

	if (file) {
		if (fseek(file, -(long)sizeof(text), SEEK_END))
			rewind(file);
		len = fread(text, 1, sizeof(text), file);
		fclose(file);
	}
	for (start = len; start > 0; start--)
		if (text[start - 1] == '\n' && start < len && ++lines == CONSOLE_LINES)
			break;
	fprintf(stderr, "guest %u: %s\n", index, len ? "its console ends with" :
		"it said nothing on its console");
	fwrite(text + start, 1, len - start, stderr);
}
