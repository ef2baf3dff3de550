// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The keeper watches the ranks and outlives them. It is a process of its own so
 * that nothing is left whoever is killed: ranks die with the keeper, the keeper
 * hears of the front's death by PR_SET_PDEATHSIG, and what ranks leave behind
 * becomes the keeper's child, or the front's, as both are subreapers. It decides
 * when ranks end and prints what they say; where and how they run is the place's
 * matter (struct run_place).
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum {
	OWN_POLLS = 3,		/* signals, stdout, stderr */
	UNWATCHED_MS = 10,	/* between looks at ranks that cannot be waited for */
};

static uint64_t now_ms(void)
{
	return muster_clock_ns() / 1000000;
}

/* ---- ending them ------------------------------------------------------------- */

/* Which limit that is, and what helps. */
static void limit_words(int why, char *words, size_t len)
{
	struct rlimit limit = { 0 };

	if (why == -EMFILE) {
		getrlimit(RLIMIT_NOFILE, &limit);
		snprintf(words, len, "two open files a rank are too many where the limit is %llu; raise it with ulimit -n",
			 (unsigned long long)limit.rlim_cur);
	} else if (why == -EAGAIN) {
		getrlimit(RLIMIT_NPROC, &limit);
		snprintf(words, len, "the limit of processes is %llu here (ulimit -u), and the system has its own (kernel.pid_max, cgroup pids.max)",
			 (unsigned long long)limit.rlim_cur);
	} else {
		snprintf(words, len, "the system has no more; start fewer ranks%s",
			 why == -ENFILE ? ", or raise fs.file-max" : "");
	}
}

void run_launch_failed(struct run *run, uint32_t index, int why)
{
	const char *program = run->options->argv[0];

	if (why == -EMFILE || why == -ENFILE || why == -EAGAIN || why == -ENOMEM) {
		char cure[192];

		limit_words(why, cure, sizeof(cure));
		run_sink_print(&run->err, "muster-run: cannot start rank %u of %u: %s: %s\n", index,
			       run->options->nr, strerror(-why), cure);
		run->status = RUN_EXIT_FAILED;
	} else {
		run_sink_print(&run->err, "muster-run: cannot run '%s': %s\n", program,
			       strerror(-why));
		run->status = why == -ENOENT ? RUN_EXIT_NOT_FOUND : RUN_EXIT_CANNOT_RUN;
	}
	run->phase = RUN_KILLING;
	run->live = 0;
	for (uint32_t i = 0; i < run->options->nr; i++)
		run->ranks[i].live = false;
}

static const struct run_place *place_of(const struct run *run, uint32_t rank)
{
	return rank < run_in_guests(run->options) ? &run_place_guests : &run_place_local;
}

static void signal_ranks(struct run *run, int signal)
{
	for (uint32_t i = 0; i < run->options->nr; i++)
		if (run->ranks[i].live)
			place_of(run, i)->signal(run, i, signal);
}

static void stop(struct run *run, int signal)
{
	signal_ranks(run, signal);
	run->phase = RUN_STOPPING;
	run->deadline_ms = now_ms() + RUN_STOP_MS;
}

static void kill_ranks(struct run *run)
{
	signal_ranks(run, SIGKILL);
	run->phase = RUN_KILLING;
	run->deadline_ms = 0;
}

/* Somebody wants the whole to end: politely at first, at once the second time. */
static void interrupt(struct run *run, int signal, int status)
{
	if (run->phase >= RUN_STOPPING) {
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
	if (run->phase == RUN_GRACE) {
		for (uint32_t i = 0; i < run->options->nr; i++)
			if (run->ranks[i].live)
				run_sink_print(&run->err, "muster-run: rank %u did not end within "
					       "%g s and is stopped\n", i,
					       (double)run->options->grace_ms / 1000);
		stop(run, SIGTERM);
	} else {
		kill_ranks(run);
	}
}

static void report_end(struct run *run, uint32_t index, int wait_status)
{
	bool killed = WIFSIGNALED(wait_status);
	int number = killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	char rest[80] = "";

	if (run->phase == RUN_RUNNING && run->live)
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

void run_rank_ended(struct run *run, uint32_t index, int wait_status, bool batch_first)
{
	bool killed = WIFSIGNALED(wait_status);
	int status = killed ? RUN_EXIT_SIGNAL + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);

	run->ranks[index].live = false;
	run->live--;
	place_of(run, index)->drain(run, index);	/* what it said comes before how it ended */
	if (!status || run->phase >= RUN_STOPPING)
		return;
	report_end(run, index, wait_status);
	if (!run->status || (batch_first && killed && run->status < RUN_EXIT_SIGNAL))
		run->status = status;
	if (run->phase == RUN_RUNNING) {
		run->phase = RUN_GRACE;
		run->deadline_ms = now_ms() + run->options->grace_ms;
	}
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

/* And all that they have between them. */
static void places_close(struct run *run)
{
	for (uint32_t i = 0; i < run->nr_places; i++)
		run->places[i]->close(run);
	run_kill_descendants();
	run_bump_close(run);
	run_switch_close(run);
}

/* ---- the loop ---------------------------------------------------------------- */

static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		int signal = (int)info.ssi_signo;

		if (signal == SIGCHLD) {
			for (uint32_t i = 0; i < run->nr_places; i++)
				run->places[i]->reap(run);
		} else if (getppid() != run->front) {
			places_close(run);
			_exit(RUN_EXIT_FAILED);
		} else if (signal == SIGUSR1 || signal == SIGUSR2) {
			signal_ranks(run, signal);	/* the ranks know what they mean */
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

static void wait_failed(struct run *run, int error)
{
	if (run->phase < RUN_STOPPING) {
		run_sink_print(&run->err, "muster-run: cannot watch the ranks: %s\n",
			       strerror(error));
		interrupt(run, SIGTERM, RUN_EXIT_FAILED);
	}
	poll(NULL, 0, UNWATCHED_MS);
}

static int poll_timeout(const struct run *run)
{
	uint64_t now = now_ms();

	if (!run->deadline_ms)
		return -1;
	return run->deadline_ms > now ? (int)(run->deadline_ms - now) : 0;
}

static void places_fill(struct run *run, struct pollfd *fds)
{
	for (uint32_t i = 0; i < run->nr_places; i++) {
		run->places[i]->fill(run, fds);
		fds += run->polls_of[i];
	}
}

static void places_step(struct run *run, const struct pollfd *fds)
{
	for (uint32_t i = 0; i < run->nr_places; i++) {
		run->places[i]->step(run, fds);
		fds += run->polls_of[i];
	}
}

/*
 * nr: how many of the places' entries count. Where the system does not let us wait (more
 * entries than RLIMIT_NOFILE, which some other process may lower; no memory), nobody would
 * hear of anything again: then all is looked at, and everything ends.
 */
static void wait_for_events(struct run *run, uint32_t nr)
{
	struct pollfd *slots = run->polls;

	slots[0] = (struct pollfd){ .fd = run->signals, .events = POLLIN };
	slots[1] = (struct pollfd){ .fd = run->out.len ? run->out.fd : -1, .events = POLLOUT };
	slots[2] = (struct pollfd){ .fd = run->err.len ? run->err.fd : -1, .events = POLLOUT };
	if (nr)
		places_fill(run, slots + OWN_POLLS);
	if (poll(slots, OWN_POLLS + nr, poll_timeout(run)) >= 0)
		return;
	if (errno != EINTR)
		wait_failed(run, errno);
	for (uint32_t i = 0; i < OWN_POLLS + nr; i++)
		slots[i].revents = 0;
}

static void watch(struct run *run, uint32_t nr)
{
	while (run->live) {
		wait_for_events(run, nr);
		places_step(run, run->polls + OWN_POLLS);
		take_signals(run);
		flush(run, &run->out);
		flush(run, &run->err);
		advance_phase(run);
	}
}

/* No rank lives: end what they left behind, then say what is still to be said. */
static void finish(struct run *run)
{
	for (uint32_t i = 0; i < run->nr_places; i++)
		if (run->places[i]->finish)
			run->places[i]->finish(run);
	run_bump_stop(run);
	run_switch_stop(run);
	run_kill_descendants();
	for (uint32_t i = 0; i < run->options->nr; i++) {
		place_of(run, i)->drain(run, i);
		run_stream_end(&run->ranks[i].out);
		run_stream_end(&run->ranks[i].err);
	}
	run->phase = RUN_RUNNING;
	run->deadline_ms = 0;
	while ((run->out.len || run->err.len) && run->phase == RUN_RUNNING) {
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

/* Guests first, which take the longest. Return: how many poll entries they have, or -errno. */
static int places_open(struct run *run)
{
	const struct run_place *places[] = { &run_place_guests, &run_place_local };
	uint32_t in_guests = run_in_guests(run->options);
	const bool used[] = { in_guests, in_guests < run->options->nr };
	int all = 0;

	for (uint32_t i = 0; i < RUN_PLACES_MAX; i++) {
		int polls;

		if (!used[i])
			continue;
		run->places[run->nr_places] = places[i];
		polls = places[i]->open(run);
		run->polls_of[run->nr_places++] = (uint32_t)polls;	/* it is closed, too, if that failed */
		if (polls < 0)
			return polls;
		all += polls;
	}
	return all;
}

static int network_open(struct run *run)
{
	if (run->options->bump)
		return run_bump_open(run);
	return run->options->topologies ? run_switch_open(run) : 0;
}

/* A place that does not start its ranks says why. */
static void places_launch(struct run *run)
{
	for (uint32_t i = 0; i < run->nr_places && !run->status; i++)
		run->places[i]->launch(run);
}

/* Return: as places_open(). */
static int run_open(struct run *run)
{
	uint32_t nr = run->options->nr;
	int polls, err;

	run->signals = open_signals();
	if (run->signals < 0)
		return -errno;
	run->ranks = calloc(nr, sizeof(*run->ranks));
	if (!run->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		run->ranks[i].out.fd = run->ranks[i].err.fd = -1;
	polls = places_open(run);
	err = polls < 0 ? polls : network_open(run);
	if (err)
		return err;
	run->polls = calloc(OWN_POLLS + (size_t)polls, sizeof(*run->polls));
	return run->polls ? polls : -ENOMEM;
}

static void run_close(struct run *run)
{
	places_close(run);
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
	if (ret < 0) {
		fprintf(stderr, "muster-run: cannot set up: %s\n", strerror(-ret));
		run.status = RUN_EXIT_FAILED;
	} else {
		places_launch(&run);
		watch(&run, (uint32_t)ret);
		finish(&run);
	}
	run_close(&run);
	return run.status;
}
