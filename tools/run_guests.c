// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks in guests: one of each guest, or several that share its NIC, all with this machine's
 * files, joined by the wire of the NICs, or by a network of switches. The ranks meet at a hub in
 * this process, to which each rank has a port of its guest. Guests load the driver as they boot.
 * Everything is driven by one descriptor of the cluster (vm.h) and those of the hub.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "folder.h"
#include "hub.h"
#include "vm.h"

enum {
	HUB_POLLS = 2 * (RUN_RANKS_MAX + MUSTER_HUB_STRANGERS_MAX) + 1,
	POLLS = 1 + MUSTER_VM_GUESTS_MAX + HUB_POLLS,	/* cluster, counts, hub */
	OWN_SETTINGS = 7,
	NET_SETTINGS = 3,		/* of those at a network of switches */
	COUNT_PORT = 1,			/* of a guest with one rank, whose rendezvous is port 0 */
};

enum program_id {
	SHELL = 1,
	RANK,		/* and behind it the guest's other ranks */
};

#define PORT "/dev/virtio-ports/" VM_PORT_RENDEZVOUS

struct run_guests {
	struct muster_vm *vm;
	char build[PATH_MAX - 64];	/* where everything was built */
	char module[PATH_MAX];		/* the driver of the guests' kernel */
	char nic_options[2 * PATH_MAX];
	bool shell;			/* a shell runs in guest 0 */
	int stop;			/* readable: somebody wants us to end */
	int counts[MUSTER_VM_GUESTS_MAX];	/* ports that tell instructions; -1: none */
};

/* ---- who is where ---------------------------------------------------------------- */

/* Neighbours share a guest. */
static uint32_t guest_of(const struct run *run, uint32_t rank)
{
	return rank / run->options->per_host;
}

/* Its place among the ranks of its guest. */
static uint32_t local_of(const struct run *run, uint32_t rank)
{
	return rank % run->options->per_host;
}

static uint32_t nr_guests(const struct run *run)
{
	return run_in_guests(run->options) / run->options->per_host;
}

static uint32_t rank_of(const struct run *run, uint32_t guest, uint16_t id)
{
	return guest * run->options->per_host + id - RANK;
}

static int port_of(const struct run *run, uint32_t rank)
{
	const struct run_guests *guests = run->guests;

	return muster_vm_port_fd(guests->vm, guest_of(run, rank), local_of(run, rank));
}

/* ---- what a program in a guest is given -------------------------------------- */

static bool is_ours(const char *setting, char *const *ours)
{
	size_t name = strcspn(setting, "=") + 1;

	for (; *ours; ours++)
		if (!strncmp(setting, *ours, name))
			return true;
	return false;
}

/* It is about the device, and was said to QEMU. */
static bool is_nics(const char *setting)
{
	return !strncmp(setting, "MUSTER_DUMP=", 12) || !strncmp(setting, "MUSTER_ENGINE=", 14);
}

/* Those come first, and are to be freed. */
static size_t nr_own(const struct run *run)
{
	return OWN_SETTINGS + (run->net ? NET_SETTINGS : 0);
}

static void environment_free(const struct run *run, char **env)
{
	for (size_t i = 0; env && i < nr_own(run) && env[i]; i++)
		free(env[i]);
	free(env);
}

/* Of the network, if there is one: 0, or -1. */
static int network_settings(const struct run *run, uint32_t rank, char **env)
{
	struct run_port port;

	if (!run->net)
		return 0;
	run_switch_port(run, rank, &port);
	return asprintf(&env[0], "MUSTER_FABRIC=%s", port.wire) < 0 ||
	       asprintf(&env[1], "MUSTER_UPLINK=%u,%u", port.uplink, port.life) < 0 ||
	       asprintf(&env[2], "MUSTER_MANAGER=%s", port.manager) < 0 ? -1 : 0;
}

/* This environment, and what that rank needs. */
static char **environment(const struct run *run, uint32_t rank)
{
	const struct run_guests *guests = run->guests;
	const char *libraries = getenv("LD_LIBRARY_PATH");
	size_t nr = 0, at = nr_own(run);
	char **env;

	while (environ[nr])
		nr++;
	env = calloc(nr + at + 1, sizeof(*env));
	if (!env)
		return NULL;
	if (asprintf(&env[0], "MUSTER_RANK=%u", rank) < 0 ||
	    asprintf(&env[1], "MUSTER_SIZE=%u", run->options->nr) < 0 ||
	    asprintf(&env[2], "MUSTER_RENDEZVOUS=" PORT ".%u", local_of(run, rank)) < 0 ||
	    asprintf(&env[3], "MUSTER_DEVICE=verbs") < 0 ||
	    asprintf(&env[4], "IBV_DRIVERS=%s/provider/libmuster", guests->build) < 0 ||
	    asprintf(&env[5], "LD_LIBRARY_PATH=%s:%s/provider%s%s", guests->build, guests->build,
		     libraries ? ":" : "", libraries ? libraries : "") < 0 ||
	    asprintf(&env[6], "MUSTER_INSTRUCTIONS=%s",
		     run->options->count ? PORT ".1" : "") < 0 ||
	    network_settings(run, rank, &env[OWN_SETTINGS])) {
		environment_free(run, env);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		if (!is_ours(environ[i], env) && !is_nics(environ[i]))
			env[at++] = environ[i];
	return env;
}

/* With the place in the job of that rank, in whose guest it runs. */
static int program_start(struct run *run, uint32_t rank, uint16_t id, char *const *argv)
{
	struct run_guests *guests = run->guests;
	uint32_t guest = guest_of(run, rank);
	char **env = environment(run, rank), *cwd = getcwd(NULL, 0);
	struct muster_vm_program program = {
		.id = id, .cwd = cwd, .argv = argv, .envp = env,
		.flags = id == SHELL ? VM_RUN_TERMINAL : 0,
	};
	int err = env ? muster_vm_run(guests->vm, guest, &program) : -ENOMEM;

	if (!err && id != SHELL)
		err = muster_vm_input(guests->vm, guest, id, NULL, 0);
	environment_free(run, env);
	free(cwd);
	return err;
}

/* ---- what guests say ----------------------------------------------------------- */

static void on_output(void *arg, unsigned int guest, uint16_t id, int fd, const char *data,
		      size_t len)
{
	struct run *run = arg;
	struct run_rank *rank;

	if (id == SHELL) {
		fwrite(data, 1, len, stdout);
		fflush(stdout);
		return;
	}
	rank = &run->ranks[rank_of(run, guest, id)];
	run_stream_put(fd == 2 ? &rank->err : &rank->out, data, len);
}

/* Its port is closed for the hub, which tells those that wait for it. */
static void rank_gone(struct run *run, uint32_t rank, int status)
{
	if (!run->ranks[rank].live)
		return;
	shutdown(port_of(run, rank), SHUT_RD);
	run_rank_ended(run, rank, status, !run->status);
}

static void on_exited(void *arg, unsigned int guest, uint16_t id, int status)
{
	struct run *run = arg;
	struct run_guests *guests = run->guests;

	if (id >= RANK)
		rank_gone(run, rank_of(run, guest, id), status);
	else
		guests->shell = false;
}

static void on_refused(void *arg, unsigned int guest, uint16_t id, int error)
{
	struct run *run = arg;

	if (id < RANK)
		on_exited(arg, guest, id, RUN_EXIT_NOT_FOUND << 8);
	else if (run->ranks[rank_of(run, guest, id)].live)
		run_launch_failed(run, rank_of(run, guest, id), -error);
}

static const struct muster_vm_events events = {
	.output = on_output, .exited = on_exited, .refused = on_refused,
};

/* ---- starting --------------------------------------------------------------------- */

static void nic_option(struct run_guests *guests, const char *name, const char *value)
{
	size_t len = strlen(guests->nic_options);

	snprintf(guests->nic_options + len, sizeof(guests->nic_options) - len, "%s%s=",
		 len ? "," : "", name);
	len = strlen(guests->nic_options);
	for (; *value && len < sizeof(guests->nic_options) - 2; value++) {
		if (*value == ',')	/* QEMU reads two as one */
			guests->nic_options[len++] = ',';
		guests->nic_options[len++] = *value;
	}
	guests->nic_options[len] = 0;
}

/*
 * A guest's NIC waits for its peers as long as the library waits for other ranks, writes
 * down its packets in the place of the ranks, and has the engine that is asked for.
 */
static void nic_options(struct run_guests *guests)
{
	const char *deadline = getenv("MUSTER_DEADLINE"), *dump = getenv("MUSTER_DUMP");
	const char *engine = getenv("MUSTER_ENGINE");
	double seconds = deadline ? strtod(deadline, NULL) : 0;
	char text[PATH_MAX];

	if (seconds >= 0.001 && seconds <= 86400) {
		snprintf(text, sizeof(text), "%.0f", seconds * 1000);
		nic_option(guests, "deadline-ms", text);
	}
	if (dump)
		nic_option(guests, "dump", dump);
	if (engine) {	/* its words are QEMU's, too */
		size_t len = strlen(guests->nic_options);

		snprintf(guests->nic_options + len, sizeof(guests->nic_options) - len, "%s%s",
			 len ? "," : "", engine);
	}
}

/* Each NIC is the host with its number, and ranks find the manager of groups where it is here. */
static void network_options(const struct run *run, struct muster_vm_config *config, uint32_t *uplinks)
{
	struct run_port port;

	if (!run->net)
		return;
	for (uint32_t i = 0; i < nr_guests(run); i++) {
		run_switch_port(run, i, &port);
		uplinks[i] = port.uplink;
	}
	config->wire = port.wire;
	config->uplinks = uplinks;
	config->uplink_life = port.life;
	config->server = port.manager;
}

static int boot(struct run *run)
{
	struct run_guests *guests = run->guests;
	uint32_t uplinks[MUSTER_VM_GUESTS_MAX];
	struct muster_vm_config config = {
		.nr_guests = nr_guests(run), .nr_nics = run->options->nics,
		.nr_ports = run->options->per_host + run->options->count,
		.count_instructions = run->options->count, .cancel_fd = guests->stop,
		.driver = guests->module,
	};
	int err = muster_vm_find(&config);

	nic_options(guests);
	network_options(run, &config, uplinks);
	if (guests->nic_options[0])
		config.nic_options = guests->nic_options;
	if (!err)
		err = muster_vm_start(&config, &events, run, &guests->vm);
	for (uint32_t i = 0; i < MUSTER_VM_GUESTS_MAX; i++)
		guests->counts[i] = err || !run->options->count || i >= nr_guests(run) ? -1 :
			muster_vm_port_fd(guests->vm, i, COUNT_PORT);
	return err;
}

/* Wait until something happens in the cluster, or is typed. Return: 0; -EINTR if somebody wants us to end. */
static int wait_cluster(struct run *run)
{
	struct run_guests *guests = run->guests;
	struct pollfd fds[] = {
		{ muster_vm_fd(guests->vm), POLLIN, 0 },
		{ guests->stop, POLLIN, 0 },
		{ STDIN_FILENO, POLLIN, 0 },
	};

	if (poll(fds, 3, -1) < 0)
		return 0;
	if (fds[0].revents)
		muster_vm_step(guests->vm, 0);
	if (fds[2].revents && guests->shell) {
		char data[1024];
		ssize_t n = read(STDIN_FILENO, data, sizeof(data));

		muster_vm_input(guests->vm, 0, SHELL, data, n > 0 ? (size_t)n : 0);
	}
	return fds[1].revents ? -EINTR : 0;
}

static int hub_open(struct run *run)
{
	int err = muster_hub_create(run->options->nr, &run->hub);

	for (uint32_t i = 0; i < run_in_guests(run->options) && !err; i++) {
		int fd = fcntl(port_of(run, i), F_DUPFD_CLOEXEC, 0);

		err = fd < 0 ? -errno : muster_hub_add(run->hub, fd, 0);
	}
	return err;
}

/* What ended the start: a signal, or a failure of ours that was explained. */
static int start_status(struct run *run, int err)
{
	struct run_guests *guests = run->guests;
	struct signalfd_siginfo info;

	if (err == -EINTR && read(guests->stop, &info, sizeof(info)) == sizeof(info))
		return RUN_EXIT_SIGNAL + (int)info.ssi_signo;
	run_sink_print(&run->err, "muster-run: the guests did not start: %s\n", strerror(-err));
	return RUN_EXIT_FAILED;
}

static void guests_launch(struct run *run)
{
	uint32_t nr = run_in_guests(run->options);
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		run_stream_open(run, &run->ranks[i].out, &run->out, i, -1);
		run_stream_open(run, &run->ranks[i].err, &run->err, i, -1);
	}
	err = boot(run);
	if (!err)
		err = hub_open(run);
	if (err) {
		run->status = start_status(run, err);
		return;
	}
	for (uint32_t i = 0; i < nr && run->options->argv; i++) {
		err = program_start(run, i, (uint16_t)(RANK + local_of(run, i)), run->options->argv);
		if (err) {
			run_launch_failed(run, i, err);
			return;
		}
		run->ranks[i].live = true;
		run->live++;
	}
}

/* ---- watching ----------------------------------------------------------------------- */

/* One that has to be killed ends with its guest, whatever state that is in. */
static void guests_signal(struct run *run, uint32_t rank, int signal)
{
	struct run_guests *guests = run->guests;

	muster_vm_signal(guests->vm, guest_of(run, rank), (uint16_t)(RANK + local_of(run, rank)), signal);
	if (signal == SIGKILL)
		rank_gone(run, rank, SIGKILL);
}

static void guests_fill(struct run *run, struct pollfd *fds)
{
	struct run_guests *guests = run->guests;
	bool full = run->out.len >= RUN_SINK_MAX || run->err.len >= RUN_SINK_MAX;
	uint32_t nr = 1;

	fds[0] = (struct pollfd){ .fd = full ? -1 : muster_vm_fd(guests->vm), .events = POLLIN };
	for (uint32_t i = 0; i < MUSTER_VM_GUESTS_MAX; i++)
		fds[nr++] = (struct pollfd){ .fd = guests->counts[i], .events = POLLIN };
	nr += muster_hub_fds(run->hub, fds + nr);
	for (; nr < POLLS; nr++)
		fds[nr] = (struct pollfd){ .fd = -1 };
}

/* Each byte asks how many instructions that guest has executed. */
static void tell_instructions(struct run_guests *guests, uint32_t guest)
{
	uint64_t count = muster_vm_instructions(guests->vm, guest);
	char asked;

	if (read(guests->counts[guest], &asked, 1) != 1 ||
	    send(guests->counts[guest], &count, sizeof(count), MSG_DONTWAIT) != sizeof(count))
		guests->counts[guest] = -1;
}

static void guests_step(struct run *run, const struct pollfd *fds)
{
	struct run_guests *guests = run->guests;

	for (uint32_t i = 0; i < MUSTER_VM_GUESTS_MAX; i++)
		if (fds[1 + i].revents)
			tell_instructions(guests, i);
	muster_hub_step(run->hub, 0);
	if (fds[0].revents)
		muster_vm_step(guests->vm, 0);
}

static void guests_reap(struct run *run)
{
	run_switch_reap(run);	/* that of a QEMU the cluster sees by its ports */
}

static void guests_drain(struct run *run, uint32_t rank)
{
	(void)run;
	(void)rank;	/* a program's output comes before its end */
}

/* ---- afterwards ------------------------------------------------------------------------ */

/* The terminal of the shell in guest 0 does what ours otherwise would. */
static void shell_run(struct run *run)
{
	struct run_guests *guests = run->guests;
	char *const argv[] = { "bash", "-i", NULL };
	struct termios before, raw;
	bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;

	run_sink_flush(&run->out);
	run_sink_flush(&run->err);
	fprintf(stderr, "muster-run: a shell in guest 0 of %u; its end ends the guests\n",
		nr_guests(run));
	guests->shell = !program_start(run, 0, SHELL, argv);
	if (terminal) {
		raw = before;
		cfmakeraw(&raw);
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	while (guests->shell && !wait_cluster(run))
		;
	if (terminal)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void guests_finish(struct run *run)
{
	struct run_guests *guests = run->guests;

	if (run->options->keep && run->hub && muster_vm_alive(guests->vm, 0) &&
	    run->phase <= RUN_GRACE)
		shell_run(run);
	muster_hub_destroy(run->hub);
	run->hub = NULL;
	muster_vm_stop(guests->vm);
	guests->vm = NULL;
}

/* As run->signals, but for SIGCHLD: a guest that dies is the cluster's matter; and what ranks get. */
static int open_stop(void)
{
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	sigdelset(&set, SIGCHLD);
	sigdelset(&set, SIGUSR1);
	sigdelset(&set, SIGUSR2);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int check_file(const char *path, const char *target)
{
	if (!access(path, R_OK))
		return 0;
	fprintf(stderr, "muster-run: %s is missing: run 'make %s'\n", path, target);
	return -ENOENT;
}

static int check_built(const struct run_guests *guests, const char *file, const char *target)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", guests->build, file);
	return check_file(path, target);
}

/* Guests look for it from their own root. */
static int find_module(struct run_guests *guests)
{
	const char *named = getenv("MUSTER_MODULE");
	char path[PATH_MAX];

	if (named)
		snprintf(path, sizeof(path), "%s", named);
	else
		snprintf(path, sizeof(path), "%s/kernel/muster.ko", guests->build);
	return realpath(path, guests->module) ? 0 : check_file(path, "kernel");
}

static int guests_open(struct run *run)
{
	struct run_guests *guests = calloc(1, sizeof(*guests));
	int err;

	if (!guests)
		return -ENOMEM;
	run->guests = guests;
	guests->stop = open_stop();
	err = guests->stop < 0 ? -errno : muster_folder(guests->build, sizeof(guests->build));
	if (!err) {
		*strrchr(guests->build, '/') = 0;	/* that of tools/ */
		err = find_module(guests);
	}
	if (!err)
		err = check_built(guests, "provider/libmuster-rdmav34.so", "provider");
	if (!err)
		err = check_built(guests, "libmuster-verbs.so.0", "provider");
	return err ? err : POLLS;
}

static void guests_close(struct run *run)
{
	struct run_guests *guests = run->guests;

	if (!guests)
		return;
	muster_hub_destroy(run->hub);
	muster_vm_stop(guests->vm);
	if (guests->stop >= 0)
		close(guests->stop);
	free(guests);
	run->hub = NULL;
	run->guests = NULL;
}

const struct run_place run_place_guests = {
	.open = guests_open,
	.launch = guests_launch,
	.signal = guests_signal,
	.fill = guests_fill,
	.step = guests_step,
	.reap = guests_reap,
	.drain = guests_drain,
	.finish = guests_finish,
	.close = guests_close,
};
