// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks as processes of this machine. A rank dies with the keeper
 * (PR_SET_PDEATHSIG), and is a process group of its own in the keeper's session:
 * terminal signals reach only the front, which passes them on, and rank 0 may read a
 * terminal without being its foreground. The kernel shares out processors by session
 * (autogroup): only within one can a rank that waits yield to another.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hub.h"

struct run_local {
	char rendezvous[64];
	cpu_set_t cpus;		/* those to bind to; none: do not bind */
	struct rlimit files;	/* the ranks'; ours is raised as far as it goes */
	int hub;		/* of the rank that is started: its socket to run->hub */
};

static uint32_t first(const struct run *run)
{
	return run_in_guests(run->options);
}

/* ---- starting a rank ------------------------------------------------------ */

void run_bind(const cpu_set_t *cpus, uint32_t index)
{
	int skip = CPU_COUNT(cpus), cpu = -1;
	cpu_set_t one;

	if (!skip)
		return;
	skip = (int)(index % (uint32_t)skip);
	do
		cpu++;
	while (!CPU_ISSET(cpu, cpus) || skip--);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Beside guests they meet where those do, by that socket. */
static int rank_set_hub(int hub)
{
	char rendezvous[16];

	snprintf(rendezvous, sizeof(rendezvous), "fd:%d", hub);
	if (fcntl(hub, F_SETFD, 0) || setenv("MUSTER_RENDEZVOUS", rendezvous, 1) ||
	    setenv("MUSTER_DEVICE", "local", 1))
		return -errno;
	return 0;
}

static int rank_set_environment(const struct run *run, uint32_t index)
{
	const struct run_local *local = run->local;
	char rank[16], size[16];

	snprintf(rank, sizeof(rank), "%u", index);
	snprintf(size, sizeof(size), "%u", run->options->nr);
	if (setenv("MUSTER_RANK", rank, 1) || setenv("MUSTER_SIZE", size, 1) ||
	    setenv("MUSTER_RENDEZVOUS", local->rendezvous, 1))
		return -errno;
	return run->hub ? rank_set_hub(local->hub) : 0;
}

static int rank_set_files(uint32_t index, int out, int err)
{
	if (index > 0) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -errno;
	}
	if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

/* In the new process. Returns only when the program could not be run. */
static int rank_become(const struct run *run, uint32_t index, pid_t keeper, int out, int err)
{
	const struct run_local *local = run->local;
	sigset_t none;
	int ret;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(RUN_EXIT_FAILED);
	run_bind(&local->cpus, index);
	ret = rank_set_environment(run, index);
	if (!ret && run->bump)
		ret = run_bump_enter(run, index);
	if (!ret && run->net)
		ret = run_switch_enter(run, index);
	if (!ret)
		ret = rank_set_files(index, out, err);
	if (ret)
		return ret;
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &local->files);	/* late: our files are still open here */
	execvp(run->options->argv[0], run->options->argv);
	return -errno;
}

/* Return: 0 when the program runs, or why it does not. */
static int rank_wait_exec(int told, pid_t pid)
{
	int why = 0;

	while (read(told, &why, sizeof(why)) < 0 && errno == EINTR)
		;
	if (why)
		waitpid(pid, NULL, 0);
	return why;
}

/*
 * Start one rank: a process with pipes for its output. told is closed by exec,
 * or brings the reason why there was none.
 */
static int rank_launch(struct run *run, uint32_t index)
{
	int out[2], err[2], told[2], ret = 0;
	struct run_rank *rank = &run->ranks[index];
	pid_t keeper = getpid();

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		ret = -errno;
		goto err_close_out;
	}
	if (pipe2(told, O_CLOEXEC)) {
		ret = -errno;
		goto err_close_err;
	}
	rank->pid = fork();
	if (rank->pid == 0) {
		ret = rank_become(run, index, keeper, out[1], err[1]);
		if (write(told[1], &ret, sizeof(ret)) < 0)
			_exit(RUN_EXIT_FAILED);
		_exit(RUN_EXIT_NOT_FOUND);
	}
	if (rank->pid < 0)
		ret = -errno;
	close(told[1]);
	if (!ret)
		ret = rank_wait_exec(told[0], rank->pid);
	close(told[0]);
	if (ret) {
		rank->pid = 0;
		goto err_close_err;
	}
	close(out[1]);
	close(err[1]);
	run_stream_open(run, &rank->out, &run->out, index, out[0]);
	run_stream_open(run, &rank->err, &run->err, index, err[0]);
	rank->live = true;
	run->live++;
	return 0;

err_close_err:
	close(err[0]);
	close(err[1]);
err_close_out:
	close(out[0]);
	close(out[1]);
	return ret;
}

/* It meets others at the hub, as those in guests do. */
static int rank_launch_met(struct run *run, uint32_t index)
{
	int ends[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	run->local->hub = ends[1];
	ret = rank_launch(run, index);
	close(ends[1]);
	if (!ret)
		return muster_hub_add(run->hub, ends[0], run->ranks[index].pid);
	close(ends[0]);
	return ret;
}

static void local_launch(struct run *run)
{
	for (uint32_t i = first(run); i < run->options->nr; i++) {
		int ret = run->hub ? rank_launch_met(run, i) : rank_launch(run, i);

		if (ret) {
			run_launch_failed(run, i, ret);
			return;
		}
	}
}

/* ---- watching them ---------------------------------------------------------- */

static void local_signal(struct run *run, uint32_t rank, int signal)
{
	kill(-run->ranks[rank].pid, signal);
}

static void local_fill(struct run *run, struct pollfd *fds)
{
	for (uint32_t i = first(run); i < run->options->nr; i++) {
		struct run_rank *rank = &run->ranks[i];

		*fds++ = (struct pollfd){ .fd = run_stream_fd(&rank->out), .events = POLLIN };
		*fds++ = (struct pollfd){ .fd = run_stream_fd(&rank->err), .events = POLLIN };
	}
}

static void local_step(struct run *run, const struct pollfd *fds)
{
	for (uint32_t i = first(run); i < run->options->nr; i++) {
		if (fds++->revents)
			run_stream_read(&run->ranks[i].out);
		if (fds++->revents)
			run_stream_read(&run->ranks[i].err);
	}
}

/* A QEMU's end is not for us. */
static void ranks_reap(struct run *run)
{
	bool batch_first = !run->status;
	int wait_status;

	for (uint32_t i = first(run); i < run->options->nr; i++)
		if (run->ranks[i].live && waitpid(run->ranks[i].pid, &wait_status, WNOHANG) > 0)
			run_rank_ended(run, i, wait_status, batch_first);
}

static void local_reap(struct run *run)
{
	bool batch_first = !run->status;
	int wait_status;
	pid_t pid;

	if (run->guests) {
		ranks_reap(run);
		return;
	}
	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		run_bump_ended(run, pid, wait_status);
		run_switch_ended(run, pid, wait_status);
		for (uint32_t i = 0; i < run->options->nr; i++)
			if (run->ranks[i].live && run->ranks[i].pid == pid)
				run_rank_ended(run, i, wait_status, batch_first);
	}
}

static void stream_drain(struct run_stream *stream)
{
	for (int reads = 0; reads < 64 && run_stream_read(stream); reads++)
		;
}

static void local_drain(struct run *run, uint32_t rank)
{
	stream_drain(&run->ranks[rank].out);
	stream_drain(&run->ranks[rank].err);
}

/* ---- setting up ------------------------------------------------------------- */

/* Where some CPUs would have more ranks than others, it is better that ranks change places. */
static bool are_even(uint32_t ranks, uint32_t cpus)
{
	return ranks <= cpus || ranks % cpus == 0;
}

static void choose_cpus(const struct run_options *options, struct run_local *local)
{
	if (sched_getaffinity(0, sizeof(local->cpus), &local->cpus))
		CPU_ZERO(&local->cpus);
	if (options->vm || options->bind == RUN_BIND_OFF ||
	    (options->bind == RUN_BIND_AUTO && !are_even(options->nr, (uint32_t)CPU_COUNT(&local->cpus))))
		CPU_ZERO(&local->cpus);
}

/* Two pipes a rank: what a rank itself needs is its own affair. */
static void raise_files(struct run_local *local)
{
	struct rlimit raised;

	getrlimit(RLIMIT_NOFILE, &local->files);
	raised = local->files;
	raised.rlim_cur = raised.rlim_max;
	setrlimit(RLIMIT_NOFILE, &raised);
}

static int local_open(struct run *run)
{
	struct run_local *local = calloc(1, sizeof(*local));
	uint64_t nonce;

	if (!local)
		return -ENOMEM;
	run->local = local;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -errno;
	snprintf(local->rendezvous, sizeof(local->rendezvous), "unix:muster-%d-%016llx", getpid(),
		 (unsigned long long)nonce);
	choose_cpus(run->options, local);
	raise_files(local);
	return (int)(2 * (run->options->nr - first(run)));
}

static void local_close(struct run *run)
{
	free(run->local);
	run->local = NULL;
}

const struct run_place run_place_local = {
	.open = local_open,
	.launch = local_launch,
	.signal = local_signal,
	.fill = local_fill,
	.step = local_step,
	.reap = local_reap,
	.drain = local_drain,
	.close = local_close,
};
