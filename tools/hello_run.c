// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two ranks add up, on the local device or over the NIC: in processes of their own, with the
 * defaults of the library and not what the environment says, so that the answer is about the
 * machine. A rank that fails says so in a sentence, over a pipe.
 */
#include "hello.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster.h"

extern char **environ;

enum { RANKS = 2, SMALL = 1, LARGE = (1 << 20) / sizeof(double) };

struct rank {
	pid_t pid;
	int said;	/* its sentence, if it fails */
};

/* ---- in a rank ------------------------------------------------------------------------- */

static void set_environment(uint32_t rank, pid_t parent, const char *device, const char *nic)
{
	char text[64];

	for (char **name = environ; *name;)
		if (!strncmp(*name, "MUSTER_", 7)) {
			snprintf(text, sizeof(text), "%.*s", (int)strcspn(*name, "="), *name);
			unsetenv(text);
			name = environ;
		} else {
			name++;
		}
	snprintf(text, sizeof(text), "%u", rank);
	setenv("MUSTER_RANK", text, 1);
	snprintf(text, sizeof(text), "%d", RANKS);
	setenv("MUSTER_SIZE", text, 1);
	snprintf(text, sizeof(text), "unix:muster-hello-%d-%s", parent, device);
	setenv("MUSTER_RENDEZVOUS", text, 1);
	setenv("MUSTER_DEVICE", device, 1);
	setenv("MUSTER_OFFLOAD", "force", 1);
	setenv("MUSTER_LATE_TIMEOUT", "60", 1);
	if (nic)
		setenv("MUSTER_NIC", nic, 1);
}

/* Sums that have one right answer, to the bit: of small whole numbers. */
static const char *add_up(struct muster *job, uint32_t rank, uint64_t count)
{
	double *in, *out;

	if (muster_alloc(job, count * sizeof(double), (void **)&in) ||
	    muster_alloc(job, count * sizeof(double), (void **)&out))
		return muster_error(job);
	for (uint64_t i = 0; i < count; i++)
		in[i] = rank ? -(double)i : 2 * (double)i + 1;
	if (muster_allreduce(muster_world(job), in, out, count, MUSTER_F64, MUSTER_SUM))
		return muster_error(job);
	for (uint64_t i = 0; i < count; i++)
		if (out[i] != (double)i + 1)
			return "the sum is wrong";
	return NULL;
}

static const char *run_rank(uint32_t rank)
{
	static char sentence[DIAG_WHY_BYTES];
	struct muster *job;
	const char *wrong;

	if (muster_init(&job))
		return muster_error(NULL);
	wrong = add_up(job, rank, SMALL);
	if (!wrong)
		wrong = add_up(job, rank, LARGE);
	snprintf(sentence, sizeof(sentence), "%s", wrong ? wrong : "");
	muster_finalize(job);
	return wrong ? sentence : NULL;
}

static void __attribute__((noreturn)) be_rank(int say, uint32_t rank, pid_t parent,
					      const char *device, const char *nic)
{
	const char *wrong;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	set_environment(rank, parent, device, nic);
	wrong = run_rank(rank);
	if (wrong && write(say, wrong, strlen(wrong)) < 0)
		_exit(2);
	_exit(wrong ? 1 : 0);
}

/* ---- in front of them ------------------------------------------------------------------- */

static bool start(struct rank *rank, uint32_t number, const char *device, const char *nic)
{
	pid_t parent = getpid();
	int pipes[2];

	if (pipe(pipes))
		return false;
	rank->pid = fork();
	if (!rank->pid) {
		close(pipes[0]);
		be_rank(pipes[1], number, parent, device, nic);
	}
	close(pipes[1]);
	rank->said = pipes[0];
	if (rank->pid > 0)
		return true;
	close(pipes[0]);
	return false;
}

/* True if it ended well; else why not. */
static bool ended(struct rank *rank, uint32_t number, char *why, size_t why_len)
{
	size_t at = (size_t)snprintf(why, why_len, "rank %u: ", number), len = at;
	ssize_t got;
	int status = 0;

	while (len < why_len - 1 && (got = read(rank->said, why + len, why_len - 1 - len)) > 0)
		len += (size_t)got;
	why[len] = 0;
	close(rank->said);
	waitpid(rank->pid, &status, 0);
	if (WIFSIGNALED(status))
		snprintf(why + at, why_len - at, "ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (len == at)
		snprintf(why + at, why_len - at, "ended with %d", WEXITSTATUS(status));
	return !status;
}

static void run(struct hello_line *line, const char *device, const char *nic)
{
	char why[RANKS][DIAG_WHY_BYTES - 64];
	struct rank ranks[RANKS];
	bool well = true;

	for (uint32_t r = 0; r < RANKS; r++)
		if (!start(&ranks[r], r, device, nic)) {
			while (r--)
				kill(ranks[r].pid, SIGKILL);
			hello_say(line, HELLO_FAIL, "no process could be started");
			hello_cure(line, "raise the limit of processes (ulimit -u), or free some");
			return;
		}
	for (uint32_t r = RANKS; r--;)
		if (!ended(&ranks[r], r, why[r], sizeof(why[r]))) {
			hello_say(line, HELLO_FAIL, "%s", why[r]);
			hello_cure(line, "%s", why[r]);
			well = false;
		}
	if (well)
		hello_say(line, HELLO_OK, "%d ranks added up 8 bytes and 1 MiB, all on the NIC path", RANKS);
}

void hello_run_local(const struct hello_machine *machine, struct hello_line *line)
{
	(void)machine;
	run(line, "local", NULL);
}

void hello_run_nic(const struct hello_machine *machine, struct hello_line *line)
{
	if (machine->nic)
		run(line, "verbs", machine->nic->name);
	else
		hello_say(line, HELLO_NONE, "there is no NIC to run on");
}
