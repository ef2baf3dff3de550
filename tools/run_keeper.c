// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The keeper starts the ranks and outlives them. It is a process of its own so
 * that nothing is left whoever is killed: ranks die with the keeper
 * (PR_SET_PDEATHSIG), the keeper hears of the front's death the same way, and
 * what ranks leave behind becomes the keeper's child, or the front's, as both
 * are subreapers.
 *
 * A rank is a session of its own: terminal signals reach only the front, which
 * passes them on, and rank 0 may read a terminal without being its foreground.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum phase {
	RUNNING,
	GRACE,			/* a rank failed; the others may end by their own errors */
	STOPPING,		/* they were told to end */
	KILLING,
};

struct rank {
	pid_t pid;		/* 0: has ended */
	struct run_stream out;
	struct run_stream err;
};

struct run {
	const struct run_options *options;
	pid_t front;
	char rendezvous[64];
	cpu_set_t cpus;		/* those to bind to; none: do not bind */
	int signals;
	struct run_sink out;
	struct run_sink err;
	enum phase phase;
	uint64_t deadline_ms;	/* when the phase ends by itself; 0: never */
	int status;
	uint32_t live;
	struct pollfd *polls;	/* signals, stdout, stderr, two of each rank */
	struct rank *ranks;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- starting a rank ------------------------------------------------------ */

static void rank_bind(const struct run *run, uint32_t index)
{
	int skip = CPU_COUNT(&run->cpus), cpu = -1;
	cpu_set_t one;

	if (!skip)
		return;
	skip = (int)(index % (uint32_t)skip);
	do
		cpu++;
	while (!CPU_ISSET(cpu, &run->cpus) || skip--);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static int rank_set_environment(const struct run *run, uint32_t index)
{
	char rank[16], size[16];

	snprintf(rank, sizeof(rank), "%u", index);
	snprintf(size, sizeof(size), "%u", run->options->nr);
	if (setenv("MUSTER_RANK", rank, 1) || setenv("MUSTER_SIZE", size, 1) ||
	    setenv("MUSTER_RENDEZVOUS", run->rendezvous, 1))
		return -errno;
	return 0;
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
	sigset_t none;
	int ret;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(RUN_EXIT_FAILED);
	rank_bind(run, index);
	ret = rank_set_environment(run, index);
	if (!ret)
		ret = rank_set_files(index, out, err);
	if (ret)
		return ret;
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
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

static void stream_open(struct run *run, struct run_stream *stream, struct run_sink *sink,
			uint32_t index, int fd)
{
	if (run->options->prefix)
		snprintf(stream->prefix, sizeof(stream->prefix), "[%u] ", index);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	stream->sink = sink;
	stream->fd = fd;
}

/*
 * Start one rank: a process with pipes for its output. told is closed by exec,
 * or brings the reason why there was none.
 */
static int rank_launch(struct run *run, uint32_t index)
{
	int out[2], err[2], told[2], ret = 0;
	struct rank *rank = &run->ranks[index];
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
	stream_open(run, &rank->out, &run->out, index, out[0]);
	stream_open(run, &rank->err, &run->err, index, err[0]);
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

static void launch_failed(struct run *run, uint32_t index, int why)
{
	const char *program = run->options->argv[0];

	if (why == -EMFILE || why == -ENFILE || why == -EAGAIN || why == -ENOMEM) {
		run_sink_print(&run->err, "muster-run: cannot start rank %u: %s (see ulimit -a)\n",
			       index, strerror(-why));
		run->status = RUN_EXIT_FAILED;
	} else {
		run_sink_print(&run->err, "muster-run: cannot run '%s': %s\n", program,
			       strerror(-why));
		run->status = why == -ENOENT ? RUN_EXIT_NOT_FOUND : RUN_EXIT_CANNOT_RUN;
	}
	run->phase = KILLING;
	run_kill_descendants();
	run->live = 0;
}

static void launch_all(struct run *run)
{
	for (uint32_t i = 0; i < run->options->nr; i++) {
		int ret = rank_launch(run, i);

		if (ret) {
			launch_failed(run, i, ret);
			return;
		}
	}
}

/* ---- ending them ------------------------------------------------------------- */

static void signal_ranks(struct run *run, int signal)
{
	for (uint32_t i = 0; i < run->options->nr; i++)
		if (run->ranks[i].pid)
			kill(-run->ranks[i].pid, signal);
}

static void stop(struct run *run, int signal)
{
	signal_ranks(run, signal);
	run->phase = STOPPING;
	run->deadline_ms = now_ms() + RUN_STOP_MS;
}

static void kill_ranks(struct run *run)
{
	signal_ranks(run, SIGKILL);
	run->phase = KILLING;
	run->deadline_ms = 0;
}

/* Somebody wants the whole to end: politely at first, at once the second time. */
static void interrupt(struct run *run, int signal, int status)
{
	if (run->phase >= STOPPING) {
		kill_ranks(run);
		return;
	}
	if (!run->status)
		run->status = status;
	stop(run, signal);
}

static void advance_phase(struct run *run)
{
	if (!run->deadline_ms || now_ms() < run->deadline_ms)
		return;
	if (run->phase == GRACE) {
		for (uint32_t i = 0; i < run->options->nr; i++)
			if (run->ranks[i].pid)
				run_sink_print(&run->err, "muster-run: rank %u did not end within "
					       "%g s and is stopped\n", i,
					       (double)run->options->grace_ms / 1000);
		stop(run, SIGTERM);
	} else {
		kill_ranks(run);
	}
}

/* What a rank said comes before how it ended. */
static void stream_drain(struct run_stream *stream)
{
	for (int reads = 0; reads < 64 && run_stream_read(stream); reads++)
		;
}

static void report_end(struct run *run, uint32_t index, int wait_status)
{
	bool killed = WIFSIGNALED(wait_status);
	int number = killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	char rest[80] = "";

	if (run->phase == RUNNING && run->live)
		snprintf(rest, sizeof(rest), "; the other%s %g s to end",
			 run->live == 1 ? " has" : "s have",
			 (double)run->options->grace_ms / 1000);
	if (killed)
		run_sink_print(&run->err, "muster-run: rank %u was killed by signal %d (%s)%s\n",
			       index, number, strsignal(number), rest);
	else
		run_sink_print(&run->err, "muster-run: rank %u exited with status %d%s\n", index,
			       number, rest);
}

/*
 * batch_first: no failure was known before this batch. Of ranks that are found
 * dead together a signal counts before an exit status, as it is likelier to be
 * the cause than the effect.
 */
static void rank_ended(struct run *run, uint32_t index, int wait_status, bool batch_first)
{
	bool killed = WIFSIGNALED(wait_status);
	int status = killed ? RUN_EXIT_SIGNAL + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);

	run->ranks[index].pid = 0;
	run->live--;
	stream_drain(&run->ranks[index].out);
	stream_drain(&run->ranks[index].err);
	if (!status || run->phase >= STOPPING)
		return;
	report_end(run, index, wait_status);
	if (!run->status || (batch_first && killed && run->status < RUN_EXIT_SIGNAL))
		run->status = status;
	if (run->phase == RUNNING) {
		run->phase = GRACE;
		run->deadline_ms = now_ms() + run->options->grace_ms;
	}
}

static void reap(struct run *run)
{
	bool batch_first = !run->status;
	int wait_status;
	pid_t pid;

	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
		for (uint32_t i = 0; i < run->options->nr; i++)
			if (run->ranks[i].pid == pid)
				rank_ended(run, i, wait_status, batch_first);
}

static void signal_children(int signal)
{
	char path[64];
	FILE *list;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	list = fopen(path, "re");
	if (!list)
		return;
	while (fscanf(list, "%d", &pid) == 1)
		kill(pid, signal);
	fclose(list);
}

/* As a parent dies its children become ours, so that all are met in the end. */
void run_kill_descendants(void)
{
	uint64_t deadline_ms = now_ms() + RUN_STOP_MS;
	pid_t pid;

	do {
		signal_children(SIGKILL);
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid == 0)
			poll(NULL, 0, 1);
	} while (pid >= 0 && now_ms() < deadline_ms);
}

/* ---- the loop ---------------------------------------------------------------- */

static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal == SIGCHLD) {
			reap(run);
		} else if (getppid() != run->front) {
			run_kill_descendants();
			_exit(RUN_EXIT_FAILED);
		} else {
			interrupt(run, signal, RUN_EXIT_SIGNAL + signal);
		}
	}
}

/* A reader that went away ends the run, as it would end each rank by SIGPIPE. */
static void flush(struct run *run, struct run_sink *sink)
{
	bool was_broken = sink->error;

	run_sink_flush(sink);
	if (!sink->error || was_broken)
		return;
	if (sink->error != EPIPE)
		run_sink_print(&run->err, "muster-run: cannot write the ranks' output: %s\n",
			       strerror(sink->error));
	interrupt(run, SIGTERM,
		  sink->error == EPIPE ? RUN_EXIT_SIGNAL + SIGPIPE : RUN_EXIT_FAILED);
}

static void poll_stream(struct pollfd *slot, const struct run_stream *stream)
{
	*slot = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (stream->sink->len < RUN_SINK_MAX)
		slot->fd = stream->fd;
}

static int poll_timeout(const struct run *run)
{
	uint64_t now = now_ms();

	if (!run->deadline_ms)
		return -1;
	return run->deadline_ms > now ? (int)(run->deadline_ms - now) : 0;
}

static void wait_for_events(struct run *run, uint32_t nr_ranks)
{
	struct pollfd *slots = run->polls;

	slots[0] = (struct pollfd){ .fd = run->signals, .events = POLLIN };
	slots[1] = (struct pollfd){ .fd = run->out.len ? run->out.fd : -1, .events = POLLOUT };
	slots[2] = (struct pollfd){ .fd = run->err.len ? run->err.fd : -1, .events = POLLOUT };
	for (uint32_t i = 0; i < nr_ranks; i++) {
		poll_stream(&slots[3 + 2 * i], &run->ranks[i].out);
		poll_stream(&slots[4 + 2 * i], &run->ranks[i].err);
	}
	if (poll(slots, 3 + 2 * nr_ranks, poll_timeout(run)) < 0)
		for (uint32_t i = 0; i < 3 + 2 * nr_ranks; i++)
			slots[i].revents = 0;
}

static void watch(struct run *run)
{
	while (run->live) {
		wait_for_events(run, run->options->nr);
		for (uint32_t i = 0; i < run->options->nr; i++) {
			if (run->polls[3 + 2 * i].revents)
				run_stream_read(&run->ranks[i].out);
			if (run->polls[4 + 2 * i].revents)
				run_stream_read(&run->ranks[i].err);
		}
		take_signals(run);
		flush(run, &run->out);
		flush(run, &run->err);
		advance_phase(run);
	}
}

/* No rank lives: end what they left behind, then say what is still to be said. */
static void finish(struct run *run)
{
	run_kill_descendants();
	for (uint32_t i = 0; i < run->options->nr; i++) {
		stream_drain(&run->ranks[i].out);
		stream_drain(&run->ranks[i].err);
		run_stream_end(&run->ranks[i].out);
		run_stream_end(&run->ranks[i].err);
	}
	run->phase = RUNNING;
	run->deadline_ms = 0;
	while ((run->out.len || run->err.len) && run->phase == RUNNING) {
		wait_for_events(run, 0);
		take_signals(run);
		flush(run, &run->out);
		flush(run, &run->err);
	}
}

/* ---- setting up ----------------------------------------------------------------- */

static int open_signals(void)
{
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void choose_cpus(struct run *run)
{
	const struct run_options *options = run->options;

	if (sched_getaffinity(0, sizeof(run->cpus), &run->cpus))
		CPU_ZERO(&run->cpus);
	if (options->bind == RUN_BIND_OFF ||
	    (options->bind == RUN_BIND_AUTO && options->nr > (uint32_t)CPU_COUNT(&run->cpus)))
		CPU_ZERO(&run->cpus);
}

static int run_open(struct run *run)
{
	uint64_t nonce;
	uint32_t nr = run->options->nr;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -errno;
	snprintf(run->rendezvous, sizeof(run->rendezvous), "unix:muster-%d-%016llx", getpid(),
		 (unsigned long long)nonce);
	choose_cpus(run);
	run->signals = open_signals();
	if (run->signals < 0)
		return -errno;
	run->polls = calloc(3 + 2 * (size_t)nr, sizeof(*run->polls));
	run->ranks = calloc(nr, sizeof(*run->ranks));
	if (!run->polls || !run->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		run->ranks[i].out.fd = run->ranks[i].err.fd = -1;
	return 0;
}

static void run_close(struct run *run)
{
	close(run->signals);
	free(run->out.data);
	free(run->err.data);
	free(run->polls);
	free(run->ranks);
}

int run_keeper(const struct run_options *options, pid_t front)
{
	struct run run = {
		.options = options,
		.front = front,
		.signals = -1,
		.out.fd = STDOUT_FILENO,
		.err.fd = STDERR_FILENO,
	};
	int ret;

	setsid();
	prctl(PR_SET_NAME, "muster-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != front)
		return RUN_EXIT_FAILED;
	signal(SIGPIPE, SIG_IGN);
	ret = run_open(&run);
	if (ret) {
		fprintf(stderr, "muster-run: cannot set up: %s\n", strerror(-ret));
		run.status = RUN_EXIT_FAILED;
	} else {
		launch_all(&run);
		watch(&run);
		finish(&run);
	}
	run_close(&run);
	return run.status;
}
