// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * keep [-t SECONDS] PROGRAM [ARGUMENT]...: run a program and leave nothing of it behind, in
 * whatever group or session its processes are. When it ends, when we are told to end, when it
 * has said nothing for SECONDS (to a file; else it may take no longer than that at all), when our
 * parent dies, or when any part of this is killed, all of them end.
 * As with muster-run there are two: a keeper, the nearest subreaper, and a front, which hears
 * when the keeper is killed. For selftests/run.sh.
 */
#include "run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GRACE_S = 3,		/* from being told to end to SIGKILL */
	EXIT_TIMEOUT = 124,	/* as timeout(1) */
	FOREVER_S = 365 * 86400,
};

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? RUN_EXIT_SIGNAL + WTERMSIG(wait_status) :
		WEXITSTATUS(wait_status);
}

/* Wait for a signal until then. Return: it, or 0 when the time is over. */
static int next_signal(const sigset_t *set, time_t until)
{
	struct timespec now, left = { 0 };
	int signal;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec < until)
		left.tv_sec = until - now.tv_sec;
	signal = sigtimedwait(set, NULL, &left);
	return signal > 0 ? signal : now.tv_sec < until ? SIGCHLD : 0;
}

static time_t seconds_from_now(time_t seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + seconds;
}

/* Reap until there is no child or the time is over. */
static void wait_all(const sigset_t *set, time_t until)
{
	pid_t pid;

	do {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
	} while (!pid && next_signal(set, until));
}

/* How much is in the file that its output goes to; 0 if that is none. */
static off_t said(void)
{
	struct stat stat;

	return fstat(STDOUT_FILENO, &stat) || !S_ISREG(stat.st_mode) ? 0 : stat.st_size;
}

static int keeper(const sigset_t *set, time_t seconds, pid_t child)
{
	time_t until = seconds_from_now(seconds);
	off_t before = said();
	int status, signal;
	pid_t pid;

	for (;;) {
		signal = next_signal(set, until);
		if (!signal && said() != before) {
			before = said();
			until = seconds_from_now(seconds);
			continue;
		}
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == child) {
				run_kill_descendants();
				return status_of(status);
			}
		if (signal == SIGCHLD)
			continue;
		kill(-child, signal ?: SIGTERM);
		wait_all(set, seconds_from_now(GRACE_S));
		run_kill_descendants();
		return signal ? RUN_EXIT_SIGNAL + signal : EXIT_TIMEOUT;
	}
}

/* A new process that dies with this one; in it true is returned, in a session of its own. */
static bool start(pid_t *pid, int signal)
{
	pid_t parent = getpid();

	*pid = fork();
	if (*pid < 0) {
		perror("keep");
		exit(RUN_EXIT_FAILED);
	}
	if (*pid)
		return false;
	prctl(PR_SET_PDEATHSIG, signal);
	if (getppid() != parent)
		_exit(RUN_EXIT_FAILED);
	setsid();
	return true;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
	int at = argc > 2 && !strcmp(argv[1], "-t") ? 3 : 1, signal;
	time_t seconds = at == 3 ? atoi(argv[2]) : FOREVER_S;
	pid_t pid, child;
	sigset_t set;

	if (at >= argc) {
		fprintf(stderr, "usage: keep [-t SECONDS] PROGRAM [ARGUMENT]...\n");
		return RUN_EXIT_USAGE;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (start(&pid, SIGTERM)) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (start(&child, SIGKILL)) {
			sigprocmask(SIG_UNBLOCK, &set, NULL);
			execvp(argv[at], argv + at);
			perror(argv[at]);
			_exit(RUN_EXIT_NOT_FOUND);
		}
		_exit(keeper(&set, seconds, child));
	}
	for (;;) {
		int status;

		signal = sigwaitinfo(&set, NULL);
		if (signal != SIGCHLD)
			kill(pid, signal);
		else if (waitpid(pid, &status, WNOHANG) == pid) {
			run_kill_descendants();
			return status_of(status);
		}
	}
}
