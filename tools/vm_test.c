// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The virtual machine runner against real guests. It needs what 'make setup'
 * builds and takes some seconds; without it, it skips (exit 4) and says why.
 * Most cases share one cluster, as most of the time goes into booting it.
 * Run from the top of the checkout. MUSTER_VM_NICS=0 leaves the NICs out.
 */
#include "vm.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"

static char *const environment[] = { "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C", NULL };

enum { GUESTS = 4 };

struct heard {
	char out[GUESTS][8192];
	size_t len[GUESTS];
	int ended[GUESTS], status[GUESTS], died[GUESTS];
};

static void on_output(void *arg, unsigned int guest, uint16_t id, int fd, const char *data,
		      size_t len)
{
	struct heard *heard = arg;
	size_t room = sizeof(heard->out[0]) - 1 - heard->len[guest];

	(void)id;
	(void)fd;
	if (len > room)
		len = room;
	memcpy(heard->out[guest] + heard->len[guest], data, len);
	heard->len[guest] += len;
}

static void on_exit_of(void *arg, unsigned int guest, uint16_t id, int status)
{
	struct heard *heard = arg;

	(void)id;
	heard->ended[guest]++;
	heard->status[guest] = status;
}

static void on_death(void *arg, unsigned int guest)
{
	((struct heard *)arg)->died[guest]++;
}

static const struct muster_vm_events events = {
	.output = on_output, .exited = on_exit_of, .died = on_death,
};

static struct muster_vm_config config_for(unsigned int nr_guests)
{
	static char dir[PATH_MAX], agent[PATH_MAX + 32];
	const char *nics = getenv("MUSTER_VM_NICS");
	char cwd[PATH_MAX - 64];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	snprintf(dir, sizeof(dir), "%s/build/vm", cwd);
	snprintf(agent, sizeof(agent), "%s/build/tools/guest_agent", cwd);
	return (struct muster_vm_config){
		.nr_guests = nr_guests, .nr_nics = nics ? strtoul(nics, NULL, 10) : 1,
		.nr_ports = MUSTER_VM_PORTS_MAX, .dir = dir, .agent = agent,
	};
}

static double now_s(void)
{
	return (double)muster_clock_ns() / 1e9;
}

static struct muster_vm_program shell(char *const argv[], uint16_t id)
{
	return (struct muster_vm_program){ .id = id, .argv = argv, .envp = environment };
}

/* ---- what guests do -------------------------------------------------------- */

/* The cluster that these cases share, which counts; and what it has said in this one. */
static struct muster_vm *vm;
static struct heard heard;
static int server = -1;			/* to which its programs may connect, */
static char server_name[64];		/* with an @ in front */

static int server_open(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int len = snprintf(server_name, sizeof(server_name), "@muster-vm-test-%d", getpid());

	memcpy(un.sun_path + 1, server_name + 1, len - 1);
	server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return bind(server, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + len) ||
	       listen(server, 8);
}

static int cluster_start(void **state)
{
	struct muster_vm_config config = config_for(GUESTS);
	double start = now_s();
	int err;

	(void)state;
	assert_int_equal(server_open(), 0);
	config.server = server_name;
	config.count_instructions = true;
	err = muster_vm_start(&config, &events, &heard, &vm);
	print_message("four guests are up: %.1f s\n", now_s() - start);
	return err;
}

static int cluster_stop(void **state)
{
	(void)state;
	muster_vm_stop(vm);
	return 0;
}

static int hear(void **state)
{
	(void)state;
	memset(&heard, 0, sizeof(heard));
	return 0;
}

static void four_guests_boot_side_by_side(void **state)
{
	char *argv[] = { "true", NULL };
	struct muster_vm_program program = shell(argv, 1);

	(void)state;
	for (unsigned int i = 0; i < GUESTS; i++)
		assert_int_equal(muster_vm_call(vm, i, &program), 0);
}

static void a_program_gives_its_output_and_status(void **state)
{
	char *argv[] = { "sh", "-c", "cat /sys/bus/pci/devices/*/device; pwd; read x; echo $x; exit 7",
			 NULL };
	struct muster_vm_program program = shell(argv, 3);

	(void)state;
	program.cwd = "/usr/lib";
	assert_int_equal(muster_vm_run(vm, 0, &program), 0);
	assert_int_equal(muster_vm_input(vm, 0, 3, "salt\n", 5), 0);
	while (!heard.ended[0])
		muster_vm_step(vm, 100);
	assert_int_equal(WEXITSTATUS(heard.status[0]), 7);
	assert_non_null(strstr(heard.out[0], "/usr/lib\nsalt\n"));
	if (config_for(1).nr_nics)
		assert_non_null(strstr(heard.out[0], "0x10f0"));
}

static void a_program_gets_signals_and_a_missing_one_is_refused(void **state)
{
	char *sleeper[] = { "sleep", "1000", NULL }, *absent[] = { "no-such-program", NULL };
	struct muster_vm_program program = shell(sleeper, 9);

	(void)state;
	assert_int_equal(muster_vm_run(vm, 0, &program), 0);
	assert_int_equal(muster_vm_signal(vm, 0, 9, SIGTERM), 0);
	while (!heard.ended[0])
		muster_vm_step(vm, 100);
	assert_true(WIFSIGNALED(heard.status[0]) && WTERMSIG(heard.status[0]) == SIGTERM);
	program = shell(absent, 10);
	assert_int_equal(muster_vm_call(vm, 0, &program), -ENOENT);
}

/* The last of as many as there may be. */
static void a_rendezvous_port_is_a_stream_both_ways(void **state)
{
	char *argv[] = { "sh", "-c", "exec 3<>/dev/virtio-ports/org.muster.rendezvous.$LAST; "
			 "echo from guest >&3; head -c 9 <&3", NULL };
	char last[32], *with_last[] = { "PATH=/bin", last, NULL };
	struct muster_vm_program program = { .id = 1, .argv = argv, .envp = with_last };
	char line[32] = "";
	int fd;

	(void)state;
	snprintf(last, sizeof(last), "LAST=%d", MUSTER_VM_PORTS_MAX - 1);
	fd = muster_vm_port_fd(vm, 0, MUSTER_VM_PORTS_MAX - 1);
	assert_int_equal(muster_vm_run(vm, 0, &program), 0);
	for (size_t have = 0; have < strlen("from guest\n");) {
		ssize_t n = read(fd, line + have, sizeof(line) - 1 - have);

		assert_true(n > 0);
		have += n;
	}
	assert_string_equal(line, "from guest\n");
	assert_int_equal(write(fd, "from host", 9), 9);
	while (!heard.ended[0])
		muster_vm_step(vm, 100);
	assert_string_equal(heard.out[0], "from host");
}

static int server_accept(void)
{
	int fd;

	while ((fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) < 0)
		muster_vm_step(vm, 100);
	return fd;
}

/* The next message; 0: the connection has ended. */
static ssize_t message_from(int fd, char *message, size_t size)
{
	ssize_t n;

	while ((n = recv(fd, message, size, MSG_DONTWAIT)) < 0)
		muster_vm_step(vm, 100);
	return n;
}

/* If it is root's. It ends with either end: by itself, with its program, and at once if there is no server. */
static void a_program_connects_to_the_server_of_the_host(void **state)
{
	static char script[] =
		"import os, socket, time\n"
		"def dial():\n"
		"  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
		"  s.connect(chr(0) + os.environ['SERVER'][1:])\n"
		"  return s\n"
		"if not os.fork():\n"
		"  os.setuid(65534)\n"
		"  try: dial().send(b'stranger'); time.sleep(1)\n"
		"  finally: os._exit(0)\n"
		"os.wait()\n"
		"a = dial(); a.send(b'from guest'); print(a.recv(100).decode(), len(a.recv(100)), flush=True)\n"
		"b = dial(); b.recv(1)\n"
		"print(len(dial().recv(100)), flush=True)\n"
		"time.sleep(1000)\n";
	char *argv[] = { "python3", "-c", script, NULL }, setting[80], message[100];
	char *env[] = { "PATH=/usr/bin:/bin", setting, NULL };
	struct muster_vm_program program = { .id = 1, .argv = argv, .envp = env };
	int a, b;

	(void)state;
	snprintf(setting, sizeof(setting), "SERVER=%s", server_name);
	assert_int_equal(muster_vm_run(vm, 0, &program), 0);
	a = server_accept();
	assert_int_equal(message_from(a, message, sizeof(message)), 10);
	assert_memory_equal(message, "from guest", 10);
	assert_int_equal(send(a, "from host", 9, 0), 9);
	close(a);
	b = server_accept();
	close(server);
	assert_int_equal(send(b, "x", 1, 0), 1);
	while (!strstr(heard.out[0], "from host 0\n0\n"))
		muster_vm_step(vm, 100);
	assert_false(heard.ended[0]);
	assert_int_equal(muster_vm_signal(vm, 0, 1, SIGKILL), 0);
	assert_int_equal(message_from(b, message, sizeof(message)), 0);
	close(b);
	while (!heard.ended[0])
		muster_vm_step(vm, 100);
}

/* A loop of a known length: what it costs more than a short one is what it executes. */
static void instructions_are_counted(void **state)
{
	char *argv[] = { "sh", "-c", "i=0; while [ $i -lt $N ]; do i=$((i + 1)); done", NULL };
	char *few[] = { "PATH=/bin", "N=1", NULL }, *many[] = { "PATH=/bin", "N=20000", NULL };
	struct muster_vm_program program = { .id = 1, .argv = argv };
	uint64_t counts[3];

	(void)state;
	counts[0] = muster_vm_instructions(vm, 0);
	program.envp = few;
	assert_int_equal(muster_vm_call(vm, 0, &program), 0);
	counts[1] = muster_vm_instructions(vm, 0);
	program.envp = many;
	assert_int_equal(muster_vm_call(vm, 0, &program), 0);
	counts[2] = muster_vm_instructions(vm, 0);
	print_message("boot %.0f, a short shell %.1f, a long one %.1f million instructions\n",
		      counts[0] / 1e6, (counts[1] - counts[0]) / 1e6, (counts[2] - counts[1]) / 1e6);
	assert_true(counts[0] > 0 && counts[2] - counts[1] > 20000 * 100ull);
	assert_true(counts[2] - counts[1] > 3 * (counts[1] - counts[0]));
}

static void a_guest_that_dies_ends_its_programs_and_is_named(void **state)
{
	char *argv[] = { "sleep", "1000", NULL };
	struct muster_vm_program program = shell(argv, 1);

	(void)state;
	assert_int_equal(muster_vm_run(vm, 0, &program), 0);
	kill(muster_vm_pid(vm, 0), SIGKILL);
	while (!heard.died[0])
		muster_vm_step(vm, 100);
	assert_true(heard.ended[0] == 1 && WIFSIGNALED(heard.status[0]));
	assert_false(muster_vm_alive(vm, 0));
	assert_int_equal(muster_vm_run(vm, 0, &program), -EPIPE);
}

static void the_host_cannot_be_changed_from_a_guest(void **state)
{
	char *argv[] = { "sh", "-c", "echo gone >$PROBE; cat $PROBE", NULL }, probe[PATH_MAX];
	char *env[] = { "PATH=/usr/bin:/bin", probe, NULL };
	struct muster_vm_program program = { .id = 1, .argv = argv, .envp = env };

	(void)state;
	snprintf(probe, sizeof(probe), "PROBE=%.4000s/probe-of-a-guest", config_for(1).dir);
	assert_int_equal(muster_vm_call(vm, 0, &program), 0);
	assert_string_equal(heard.out[0], "gone\n");
	assert_int_equal(access(probe + strlen("PROBE="), F_OK), -1);
}

/* ---- how they boot --------------------------------------------------------- */

enum { HOGS = 3 };

static pid_t hogs[HOGS];
static cpu_set_t cpus;

/* A process that wants a CPU all the time; its session gives it a share like QEMU's own. */
static pid_t hog_start(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	for (;;)
		;
}

static int hogs_start(void **state)
{
	cpu_set_t one;

	(void)state;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	for (int i = 0; i < HOGS; i++)
		hogs[i] = 0;
	return sched_setaffinity(0, sizeof(one), &one);
}

static int hogs_end(void **state)
{
	(void)state;
	for (int i = 0; i < HOGS && hogs[i] > 0; i++) {
		kill(hogs[i], SIGKILL);
		waitpid(hogs[i], NULL, 0);
	}
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* Return: how many seconds of a CPU it took. */
static double boot(const struct muster_vm_config *config)
{
	struct muster_vm *one;
	struct timespec used;
	clockid_t clock;

	assert_int_equal(muster_vm_start(config, &events, &heard, &one), 0);
	assert_int_equal(clock_getcpuclockid(muster_vm_pid(one, 0), &clock), 0);
	assert_int_equal(clock_gettime(clock, &used), 0);
	muster_vm_stop(one);
	return used.tv_sec + used.tv_nsec / 1e9;
}

/* The same, of one that has all that it wants; measured once. */
static double alone(void)
{
	static double seconds;
	struct muster_vm_config config = config_for(1);

	if (!seconds)
		seconds = boot(&config);
	return seconds;
}

/* Four processes share a CPU, and the guest may take twice what it takes alone. */
static void a_guest_that_waits_for_a_cpu_has_not_hung(void **state)
{
	struct muster_vm_config config = config_for(1);
	double start;

	(void)state;
	config.boot_timeout_ms = 1000 + 2000 * alone();
	start = now_s();
	for (int i = 0; i < HOGS; i++)
		hogs[i] = hog_start();
	boot(&config);
	print_message("%.1f s of a CPU alone, %.1f s beside three others\n", alone(), now_s() - start);
}

/* A folder of guests whose QEMU is that script. */
static void fake_start(struct muster_vm_config *config, const char *script)
{
	static char dir[] = "/tmp/muster-vm-test-XXXXXX";
	char command[4 * PATH_MAX];

	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "cd %s && ln -s %s/* . && rm qemu-system-x86_64 && "
		 "cat >qemu-system-x86_64 <<'END' && chmod +x qemu-system-x86_64\n"
		 "#!/bin/sh\nreal=%s/qemu-system-x86_64\n"
		 "for word; do case $word in file:*) console=${word#file:} ;; esac; done\n%s\nEND\n",
		 dir, config->dir, config->dir, script);
	assert_int_equal(system(command), 0);
	config->dir = dir;
}

static void fake_end(const struct muster_vm_config *config)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -r %s", config->dir);
	assert_int_equal(system(command), 0);
}

/* Longer than it may be silent; then it boots, which may take as long again. */
static void a_guest_that_goes_on_saying_something_has_not_hung(void **state)
{
	struct muster_vm_config config = config_for(1);
	char script[256];

	(void)state;
	config.boot_timeout_ms = 1000 + 2000 * alone();
	snprintf(script, sizeof(script), "for i in $(seq %u); do echo $i >>$console; sleep 0.2; done\n"
		 "exec $real \"$@\"", config.boot_timeout_ms / 160);
	fake_start(&config, script);
	boot(&config);
	fake_end(&config);
}

static void a_guest_that_says_nothing_is_given_up(void **state)
{
	struct muster_vm_config config = config_for(1);
	struct muster_vm *none;

	(void)state;
	config.boot_timeout_ms = 500;
	fake_start(&config, "echo once >$console; exec sleep 1000");
	assert_int_equal(muster_vm_start(&config, &events, &heard, &none), -ETIMEDOUT);
	fake_end(&config);
}

/* They are not all heard of by the guest's kernel. */
static void more_ports_than_a_guest_has_room_for_are_refused(void **state)
{
	struct muster_vm_config config = config_for(1);
	struct muster_vm *none;

	(void)state;
	config.hotplug = true;
	assert_int_equal(muster_vm_start(&config, &events, &heard, &none), -EINVAL);
	config.hotplug = false;
	config.nr_ports++;
	assert_int_equal(muster_vm_start(&config, &events, &heard, &none), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest shared[] = {
		cmocka_unit_test_setup(four_guests_boot_side_by_side, hear),
		cmocka_unit_test_setup(a_program_gives_its_output_and_status, hear),
		cmocka_unit_test_setup(a_program_gets_signals_and_a_missing_one_is_refused, hear),
		cmocka_unit_test_setup(a_rendezvous_port_is_a_stream_both_ways, hear),
		cmocka_unit_test_setup(a_program_connects_to_the_server_of_the_host, hear),
		cmocka_unit_test_setup(the_host_cannot_be_changed_from_a_guest, hear),
		cmocka_unit_test_setup(instructions_are_counted, hear),
		cmocka_unit_test_setup(a_guest_that_dies_ends_its_programs_and_is_named, hear),
	};
	const struct CMUnitTest boots[] = {
		cmocka_unit_test_setup_teardown(a_guest_that_waits_for_a_cpu_has_not_hung,
						hogs_start, hogs_end),
		cmocka_unit_test(a_guest_that_goes_on_saying_something_has_not_hung),
		cmocka_unit_test(a_guest_that_says_nothing_is_given_up),
		cmocka_unit_test(more_ports_than_a_guest_has_room_for_are_refused),
	};

	if (access("build/vm/initrd", F_OK) || access("build/vm/qemu-system-x86_64", F_OK)) {
		printf("1..0 # SKIP the guests are not built; run 'make setup'\n");
		return 4;
	}
	return cmocka_run_group_tests(shared, cluster_start, cluster_stop) +
		cmocka_run_group_tests(boots, NULL, NULL);
}
