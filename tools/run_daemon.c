// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A daemon of the ranks' network: from muster-run's own folder, dead with the keeper. It
 * says "ready" on its standard output, of which nothing more is read: what it counts it
 * appends to a file, if its options say so.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"

pid_t run_daemon_fork(struct run_daemon *daemon)
{
	pid_t keeper = getpid(), pid;
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != keeper || dup2(out[1], STDOUT_FILENO) < 0)
			_exit(RUN_EXIT_NOT_FOUND);
		return 0;
	}
	close(out[1]);
	if (pid < 0) {
		close(out[0]);
		return -errno;
	}
	*daemon = (struct run_daemon){ .pid = pid, .said = out[0] };
	return pid;
}

void run_daemon_become(const char *name, char **argv, const char *more)
{
	char folder[PATH_MAX], program[PATH_MAX + 32], *options = getenv(more);
	sigset_t none;
	int nr = 1;

	if (muster_folder(folder, sizeof(folder)))
		_exit(RUN_EXIT_NOT_FOUND);
	snprintf(argv[0] = program, sizeof(program), "%s/%s", folder, name);
	while (argv[nr])
		nr++;
	for (char *word = options ? strtok(options, " ") : NULL; word && nr < RUN_ARGUMENTS_MAX;
	     word = strtok(NULL, " "))
		argv[nr++] = word;
	argv[nr] = NULL;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(program, argv);
	fprintf(stderr, "muster-run: cannot run '%s': %s\n", program, strerror(errno));
	_exit(RUN_EXIT_NOT_FOUND);
}

int run_daemon_ready(struct run_daemon *daemon)
{
	char word[8];
	bool ready = read(daemon->said, word, 6) == 6 && !memcmp(word, "ready\n", 6);

	close(daemon->said);
	return ready ? 0 : -EIO;
}

bool run_daemon_ended(struct run_daemon *daemon, pid_t pid)
{
	if (daemon->pid != pid)
		return false;
	daemon->pid = 0;
	return true;
}

void run_daemons_stop(struct run_daemon *daemons, uint32_t nr)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (daemons[i].pid && !kill(daemons[i].pid, SIGTERM))
			left++;
	for (int tries = 0; left && tries < RUN_STOP_MS; tries++) {
		for (uint32_t i = 0; i < nr; i++)
			if (daemons[i].pid && waitpid(daemons[i].pid, NULL, WNOHANG)) {
				daemons[i].pid = 0;
				left--;
			}
		poll(NULL, 0, left ? 1 : 0);
	}
}
