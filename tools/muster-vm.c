// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-vm: run a command in virtual machines that share this machine's root,
 * or open a shell in one. For tests of driver and device, and for looking
 * around; jobs of ranks are muster-run's. Guests, output and exit status come
 * from vm.c; this file reads the options and prints.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "model.h"
#include "version.h"
#include "vm.h"

enum {
	LINE_BYTES = 4096,	/* a longer line is printed in pieces */
	CLOCK_STEP_MS = 1000,	/* how often the guests' time is looked at */
	EXIT_USAGE = 2,
	EXIT_TIMEOUT = 124,	/* as timeout(1) */
	EXIT_BROKEN = 125,
	PROGRAM = 1,		/* its id in every guest */
};

static const char help[] =
	"Usage: muster-vm [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"       muster-vm [OPTION]... --shell\n"
	"Run COMMAND as root in virtual machines that see this machine's files, read-only\n"
	"under a layer in memory, and that have Muster NICs joined by a wire.\n"
	"\n"
	"  -n, --guests=N        how many guests, side by side (1)\n"
	"      --nics=N          Muster NICs of each (1)\n"
	"      --memory=MIB      of each (768)\n"
	"      --lines=N         streams that guests 0 and 1 share (0): what one writes to\n"
	"                        /dev/virtio-ports/org.muster.rendezvous.I the other reads there\n"
	"      --net             an Ethernet between guests 0 and 1 (modprobe virtio_net)\n"
	"      --count           each guest's port after its lines tells how many instructions\n"
	"                        it has executed: for each byte written, 64 bits\n"
	"      --hotplug         NICs can be unplugged: NIC I is nicI, in slotI, and the guest\n"
	"                        speaks QMP with its QEMU at /dev/virtio-ports/org.muster.monitor\n"
	"      --engine=LIST     of NICs: units=1 to 64, buffer=BYTES, window=1 to 8,\n"
	"                        pulses=1 to 4, engine-threads=1 to units\n"
	"      --count-time      a nanosecond of a guest is an instruction, however slow it is\n"
	"      --seconds=N           end them after N seconds in which each had a CPU or wanted none\n"
	"      --accel=NAME      tcg, or kvm where a guest really runs (tcg)\n"
	"      --shell           a shell in guest 0, on this terminal\n"
	"  -h, --help            show this\n"
	"  -V, --version         show the version\n"
	"\n"
	"COMMAND runs in this directory with this environment and MUSTER_GUEST, the guest's\n"
	"number, without input. With several guests lines begin with \"[guest] \". Exit\n"
	"status: that of the first guest that fails, 128+N for signal N; 2 wrong usage, 124\n"
	"their time is over, 125 muster-vm itself failed.\n";

struct line {
	size_t len;
	char text[LINE_BYTES];
};

struct run {
	bool prefix;
	unsigned int left;		/* guests whose command still runs */
	unsigned int seconds;		/* that they may take; 0: any */
	int status;
	struct line lines[MUSTER_VM_GUESTS_MAX][2];
};

/* ---- output ---------------------------------------------------------------- */

static void line_print(struct run *run, unsigned int guest, int fd)
{
	struct line *line = &run->lines[guest][fd - 1];
	FILE *to = fd == 2 ? stderr : stdout;

	if (!line->len)
		return;
	fprintf(to, "[%u] %.*s%s", guest, (int)line->len, line->text,
		line->text[line->len - 1] == '\n' ? "" : "\n");
	fflush(to);
	line->len = 0;
}

static void on_output(void *arg, unsigned int guest, uint16_t id, int fd, const char *data,
		      size_t len)
{
	struct run *run = arg;
	struct line *line = &run->lines[guest][fd - 1];

	(void)id;
	if (!run->prefix) {
		fwrite(data, 1, len, fd == 2 ? stderr : stdout);
		fflush(fd == 2 ? stderr : stdout);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		line->text[line->len++] = data[i];
		if (data[i] == '\n' || line->len == sizeof(line->text))
			line_print(run, guest, fd);
	}
}

static void ended(struct run *run, unsigned int guest, int status)
{
	line_print(run, guest, 1);
	line_print(run, guest, 2);
	if (status && !run->status)
		run->status = status;
	run->left--;
}

static void on_exit_of(void *arg, unsigned int guest, uint16_t id, int status)
{
	(void)id;
	ended(arg, guest, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void on_refused(void *arg, unsigned int guest, uint16_t id, int error)
{
	(void)id;
	fprintf(stderr, "muster-vm: guest %u cannot run the command: %s\n", guest, strerror(error));
	ended(arg, guest, error == ENOENT ? 127 : 126);
}

static const struct muster_vm_events events = {
	.output = on_output, .exited = on_exit_of, .refused = on_refused,
};

/* ---- lines ----------------------------------------------------------------- */

/* From one guest to the other, by way of a buffer, so that neither is waited for. */
struct line_way {
	int from, to;
	size_t len, sent;
	char data[LINE_BYTES];
};

enum { WAYS_MAX = 2 * MUSTER_VM_PORTS_MAX };

static unsigned int ways_open(const struct muster_vm *vm, unsigned int lines,
			      struct line_way *ways)
{
	for (unsigned int i = 0; i < 2 * lines; i++) {
		ways[i].from = muster_vm_port_fd(vm, i % 2, i / 2);
		ways[i].to = muster_vm_port_fd(vm, !(i % 2), i / 2);
	}
	return 2 * lines;
}

static struct pollfd way_wants(const struct line_way *way)
{
	return way->sent < way->len ? (struct pollfd){ way->to, POLLOUT, 0 } :
				      (struct pollfd){ way->from, POLLIN, 0 };
}

static void way_run(struct line_way *way)
{
	ssize_t n;

	if (way->sent == way->len) {
		n = read(way->from, way->data, sizeof(way->data));
		way->sent = 0;
		way->len = n > 0 ? n : 0;
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			way->from = -1;
	}
	n = send(way->to, way->data + way->sent, way->len - way->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		way->sent += n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		way->sent = way->len;
}

/* ---- running --------------------------------------------------------------- */

/* This environment, and the guest's number. The caller frees the array, and [0]. */
static char **environment(unsigned int guest)
{
	size_t nr = 0, at = 1;
	char **env;

	while (environ[nr])
		nr++;
	env = calloc(nr + 2, sizeof(*env));
	if (!env || asprintf(&env[0], "MUSTER_GUEST=%u", guest) < 0) {
		free(env);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		if (strncmp(environ[i], "MUSTER_GUEST=", strlen("MUSTER_GUEST=")))
			env[at++] = environ[i];
	return env;
}

static int start_in(struct muster_vm *vm, unsigned int guest, char *const *argv, int flags)
{
	char **env = environment(guest), *cwd = getcwd(NULL, 0);
	struct muster_vm_program program = {
		.id = PROGRAM, .flags = flags, .cwd = cwd, .argv = argv, .envp = env,
	};
	int err = env ? muster_vm_run(vm, guest, &program) : -ENOMEM;

	if (!err && !(flags & VM_RUN_TERMINAL))
		err = muster_vm_input(vm, guest, PROGRAM, NULL, 0);
	if (err)
		fprintf(stderr, "muster-vm: guest %u: %s\n", guest, strerror(-err));
	if (env)
		free(env[0]);
	free(env);
	free(cwd);
	return err;
}

static int signals_open(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* What is typed goes to guest 0. False at the end of input. */
static bool pass_input(struct muster_vm *vm)
{
	char data[1024];
	ssize_t n = read(0, data, sizeof(data));

	muster_vm_input(vm, 0, PROGRAM, data, n > 0 ? n : 0);
	return n > 0;
}

/* Is their time over? It is that of the one that got the least. */
static bool time_is_over(const struct muster_vm *vm, const struct run *run, int64_t began)
{
	if (!run->seconds || muster_vm_clock_ms(vm) - began < run->seconds * 1000ll)
		return false;
	fprintf(stderr, "muster-vm: %u guests still run after %u s\n", run->left, run->seconds);
	return true;
}

/* The ports that tell instructions. */
static unsigned int counts_open(const struct muster_vm *vm, const struct muster_vm_config *config,
				int *ports)
{
	if (!config->count_instructions)
		return 0;
	for (unsigned int i = 0; i < config->nr_guests; i++)
		ports[i] = muster_vm_port_fd(vm, i, config->nr_ports - 1);
	return config->nr_guests;
}

static void count_tell(const struct muster_vm *vm, unsigned int guest, int *port)
{
	uint64_t count = muster_vm_instructions(vm, guest);
	char asked;

	if (read(*port, &asked, 1) != 1 ||
	    send(*port, &count, sizeof(count), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(count))
		*port = -1;
}

static void watch(struct muster_vm *vm, struct run *run, const struct muster_vm_config *config,
		  int signals, bool input)
{
	static struct line_way ways[WAYS_MAX];
	int counts[MUSTER_VM_GUESTS_MAX];
	unsigned int nr_counts = counts_open(vm, config, counts);
	unsigned int nr_ways = ways_open(vm, config->nr_ports - !!nr_counts, ways);
	int64_t began = muster_vm_clock_ms(vm);
	struct signalfd_siginfo info;

	while (run->left) {
		struct pollfd fds[3 + WAYS_MAX + MUSTER_VM_GUESTS_MAX] = {
			{ muster_vm_fd(vm), POLLIN, 0 },
			{ signals, POLLIN, 0 },
			{ input ? 0 : -1, POLLIN, 0 },
		};

		for (unsigned int i = 0; i < nr_ways; i++)
			fds[3 + i] = way_wants(&ways[i]);
		for (unsigned int i = 0; i < nr_counts; i++)
			fds[3 + nr_ways + i] = (struct pollfd){ counts[i], POLLIN, 0 };
		if (poll(fds, 3 + nr_ways + nr_counts, run->seconds ? CLOCK_STEP_MS : -1) < 0)
			continue;
		for (unsigned int i = 0; i < nr_ways; i++)
			if (fds[3 + i].revents)
				way_run(&ways[i]);
		for (unsigned int i = 0; i < nr_counts; i++)
			if (fds[3 + nr_ways + i].revents)
				count_tell(vm, i, &counts[i]);
		if (fds[0].revents)
			muster_vm_step(vm, 0);
		if (fds[2].revents)
			input = pass_input(vm);
		if (fds[1].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			run->status = 128 + info.ssi_signo;
			return;
		}
		if (run->left && time_is_over(vm, run, began)) {
			run->status = EXIT_TIMEOUT;
			return;
		}
	}
}

static int run_all(const struct muster_vm_config *config, char *const *argv, unsigned int seconds,
		   bool shell)
{
	struct run *run = calloc(1, sizeof(*run));
	int signals = signals_open(), err, status;
	struct muster_vm *vm;

	if (!run || signals < 0) {
		free(run);
		return EXIT_BROKEN;
	}
	run->prefix = config->nr_guests > 1;
	run->seconds = seconds;
	err = muster_vm_start(config, &events, run, &vm);
	if (err) {
		fprintf(stderr, "muster-vm: the guests did not start: %s\n", strerror(-err));
		free(run);
		return EXIT_BROKEN;
	}
	run->left = shell ? 1 : config->nr_guests;
	for (unsigned int i = 0; i < run->left && !err; i++)
		err = start_in(vm, i, argv, shell ? VM_RUN_TERMINAL : 0);
	if (!err)
		watch(vm, run, config, signals, shell);
	status = err ? EXIT_BROKEN : run->status;
	muster_vm_stop(vm);
	free(run);
	return status;
}

/* The guest's terminal does what this one otherwise would. */
static int run_shell(const struct muster_vm_config *config)
{
	char *const argv[] = { "bash", "-i", NULL };
	struct termios before, raw;
	bool terminal = tcgetattr(0, &before) == 0;
	int status;

	if (terminal) {
		raw = before;
		cfmakeraw(&raw);
		tcsetattr(0, TCSANOW, &raw);
	}
	status = run_all(config, argv, 0, true);
	if (terminal)
		tcsetattr(0, TCSANOW, &before);
	return status;
}

/* ---- options --------------------------------------------------------------- */

static int usage(const char *what)
{
	fprintf(stderr, "muster-vm: %s\nTry 'muster-vm --help'.\n", what);
	return EXIT_USAGE;
}

static int parse_number(const char *text, unsigned int min, unsigned int max, unsigned int *number)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max) {
		fprintf(stderr, "muster-vm: '%s' is not a number from %u to %u\n", text, min, max);
		return -EINVAL;
	}
	*number = value;
	return 0;
}

static const struct option options[] = {
	{ "guests", required_argument, NULL, 'n' },
	{ "nics", required_argument, NULL, 'N' },
	{ "memory", required_argument, NULL, 'm' },
	{ "lines", required_argument, NULL, 'l' },
	{ "net", no_argument, NULL, 'e' },
	{ "count", no_argument, NULL, 'c' },
	{ "hotplug", no_argument, NULL, 'p' },
	{ "count-time", no_argument, NULL, 't' },
	{ "engine", required_argument, NULL, 'E' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "accel", required_argument, NULL, 'a' },
	{ "shell", no_argument, NULL, 's' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static int parse_engine(const char *text, struct muster_vm_config *config)
{
	struct muster_engine_model model;
	char why[256];

	if (muster_model_read("--engine", text, &model, why, sizeof(why))) {
		fprintf(stderr, "muster-vm: %s\n", why);
		return -EINVAL;
	}
	config->nic_options = text;
	return 0;
}

/* 0; -EINVAL: it was explained; -ENOENT: there is no such option. */
static int option_take(int option, struct muster_vm_config *config, unsigned int *seconds, bool *shell)
{
	switch (option) {
	case 'n':
		return parse_number(optarg, 1, MUSTER_VM_GUESTS_MAX, &config->nr_guests);
	case 'N':
		return parse_number(optarg, 0, MUSTER_VM_NICS_MAX, &config->nr_nics);
	case 'm':
		return parse_number(optarg, 256, 1 << 20, &config->memory_mib);
	case 'l':
		return parse_number(optarg, 0, MUSTER_VM_PORTS_MAX, &config->nr_ports);
	case 'e':
		config->network = true;
		return 0;
	case 'c':
		config->count_instructions = true;
		return 0;
	case 'p':
		config->hotplug = true;
		return 0;
	case 't':
		config->count_time = true;
		return 0;
	case 'E':
		return parse_engine(optarg, config);
	case 'S':
		return parse_number(optarg, 1, 1 << 30, seconds);
	case 'a':
		config->accel = optarg;
		return 0;
	case 's':
		*shell = true;
		return 0;
	default:
		return -ENOENT;
	}
}

int main(int argc, char **argv)
{
	struct muster_vm_config config = { .nr_guests = 1, .nr_nics = 1 };
	unsigned int seconds = 0;
	bool shell = false;
	int option, err = 0;

	while (!err && (option = getopt_long(argc, argv, "+n:hV", options, NULL)) != -1) {
		if (option == 'h' || option == 'V') {
			fputs(option == 'h' ? help : "muster-vm " MUSTER_VERSION "\n", stdout);
			return 0;
		}
		err = option_take(option, &config, &seconds, &shell);
	}
	if (err == -ENOENT)
		return usage("that option is not known");
	if (err)
		return EXIT_USAGE;
	if (shell != (optind == argc))
		return usage(shell ? "--shell takes no command" : "there is no command");
	if ((config.nr_ports || config.network) && config.nr_guests < 2)
		return usage("--lines and --net are for two guests at least");
	config.nr_ports += config.count_instructions;
	if (muster_vm_find(&config))
		return EXIT_BROKEN;
	return shell ? run_shell(&config) : run_all(&config, argv + optind, seconds, false);
}
