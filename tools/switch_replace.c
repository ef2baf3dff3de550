// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One program becomes another (switch_replace.h). Whether that one knows what to do with the state is found
 * out by a child of ours, as nobody could go on once this program is no more. Meanwhile this one goes on: it
 * stands still only for as long as the other one takes to begin.
 */
#include "switch_replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPTION_MAX = 32, MORE = 2 };

static const char resume[] = "--resume=";

FILE *switch_replace_state(void)
{
	int fd = memfd_create("muster-switchd", 0);
	FILE *state = fd >= 0 ? fdopen(fd, "w+") : NULL;

	if (!state && fd >= 0)
		close(fd);
	return state;
}

/* Without that of the last time. trial: one more, or NULL. */
static char **options_of(char **argv, char *option, char *trial)
{
	size_t nr = 0, given = 0;
	char **options;

	while (argv[given])
		given++;
	options = calloc(given + MORE + 1, sizeof(*options));
	for (size_t i = 0; i < given && options; i++)
		if (strncmp(argv[i], resume, strlen(resume)))
			options[nr++] = argv[i];
	if (options) {
		options[nr] = option;
		options[nr + 1] = trial;
	}
	return options;
}

/* In this process or in a new one. Returns only if it cannot. */
static int become(char **argv, FILE *state, char *trial)
{
	char option[OPTION_MAX], **options = options_of(argv, option, trial);
	int err;

	if (!options)
		return -ENOMEM;
	snprintf(option, sizeof(option), "%s%d", resume, fileno(state));
	lseek(fileno(state), 0, SEEK_SET);
	execvp(options[0], options);
	err = -errno;
	free(options);
	return err;
}

pid_t switch_replace_try(char **argv, FILE *state)
{
	pid_t child = fork();

	if (!child) {
		become(argv, state, "--trial");
		_exit(127);
	}
	return child < 0 ? -errno : child;
}

int switch_replace_tried(pid_t child)
{
	int status;

	switch (waitpid(child, &status, WNOHANG)) {
	case 0:
		return -EAGAIN;
	case -1:
		return errno == EINTR ? -EAGAIN : -errno;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPROTO;
}

int switch_replace(char **argv, FILE *state)
{
	return become(argv, state, NULL);
}
