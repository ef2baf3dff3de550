// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fuzzer of the driver, from where its users are: programs of calls (fuzz_calls.h), made anew or
 * of those that have reached something new in the driver, where the kernel tells that (KCOV). It
 * ends at the first word of complaint in the kernel's log, or if the device was fenced, and
 * prints the programs since its process began: `--replay` runs them again.
 *
 * usage: fuzz_driver SEED CALLS | --replay FILE      (root; the calls are made by nobody)
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcov.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_calls.h"

enum {
	BATCH = 64,			/* programs of one process */
	PROGRAM_MIN = 12,		/* calls of one that is new */
	CORPUS = 1024,
	EDGES = 1 << 16,
	COVER_WORDS = 64 << 10,
	NOBODY = 65534,
	COMPLAINED = 3,
	NOTE_CALLS = 20000,		/* how often there is a word of how far it is */
	IDLE_S = 60,			/* who has made no call for so long makes none any more */
	ENDS_S = 600,			/* and in this it must have ended when it is killed */
};

/* What the fuzzer and the process that makes the calls have in common. */
struct shared {
	uint64_t calls, programs, edges;
	uint32_t nr_corpus, nr_batch;
	struct fuzz_program batch[BATCH];	/* as they were run; the last is or was the present one */
	struct fuzz_program corpus[CORPUS];
	uint8_t reached[EDGES];
	char complaint[512];
};

static struct shared *shared;
static int kmsg = -1;
static unsigned long *cover;		/* NULL: this kernel does not tell */
static int cover_fd = -1;

/* ---- what the kernel says ---------------------------------------------------------------- */

/* "general protection fault ip:" is a process's own, whose memory the calls may have written to. */
static const char *const complaints[] = {
	"BUG:", "WARNING:", "UBSAN", "Oops", "general protection fault,", "general protection fault:",
	"refcount_t", "DMA-API",
	"possible circular", "inconsistent lock", "possible recursive", "hung task", "Bad page",
	"resetting the device",
};

static bool complained(void)
{
	char line[2048];
	ssize_t n;

	while ((n = read(kmsg, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = 0;
		line[strcspn(line, "\n")] = 0;
		for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++) {
			if (!strstr(line, complaints[i]))
				continue;
			snprintf(shared->complaint, sizeof(shared->complaint), "%.500s", line);
			return true;
		}
	}
	return false;
}

static void cover_open(void)
{
	cover_fd = open("/sys/kernel/debug/kcov", O_RDWR);
	if (cover_fd < 0 || ioctl(cover_fd, KCOV_INIT_TRACE, COVER_WORDS))
		return;
	cover = mmap(NULL, COVER_WORDS * sizeof(*cover), PROT_READ | PROT_WRITE, MAP_SHARED,
		     cover_fd, 0);
	if (cover == MAP_FAILED || ioctl(cover_fd, KCOV_ENABLE, KCOV_TRACE_PC))
		cover = NULL;
}

/* Whether the program that ran has been where none was before: an edge is two places. */
static bool cover_take(void)
{
	unsigned long nr = cover ? __atomic_load_n(&cover[0], __ATOMIC_RELAXED) : 0, before = 0;
	uint64_t edges = shared->edges;

	for (unsigned long i = 1; i <= nr && i < COVER_WORDS; i++) {
		uint64_t edge = (cover[i] ^ before * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull >> 48;

		shared->edges += !shared->reached[edge];
		shared->reached[edge] = 1;
		before = cover[i];
	}
	return shared->edges != edges;
}

/* ---- programs ---------------------------------------------------------------------------- */

static void program_new(struct fuzz_program *program, uint64_t *state)
{
	/* To begin and to end takes the time of some calls. */
	program->nr = PROGRAM_MIN + fuzz_random(state) % (FUZZ_CALLS_MAX - PROGRAM_MIN + 1);
	for (uint32_t i = 0; i < program->nr; i++)
		program->calls[i] = fuzz_call_new(state);
}

/* One that was good, with some calls changed, put in, or its end cut off. */
static void program_mutate(struct fuzz_program *program, uint64_t *state)
{
	*program = shared->corpus[fuzz_random(state) % shared->nr_corpus];
	for (int i = 1 + fuzz_random(state) % 3; i > 0; i--) {
		uint32_t at = fuzz_random(state) % program->nr;
		struct fuzz_call *call = &program->calls[at];

		switch (fuzz_random(state) % 4) {
		case 0:
			*call = fuzz_call_new(state);
			break;
		case 1:
			call->args[fuzz_random(state) % FUZZ_ARGS] = fuzz_random(state) >> 32;
			break;
		case 2:
			if (program->nr == FUZZ_CALLS_MAX)
				break;
			memmove(call + 1, call, (program->nr++ - at) * sizeof(*call));
			*call = fuzz_call_new(state);
			break;
		default:
			program->nr = at + 1;
		}
	}
}

static void program_try(const struct fuzz_program *program)
{
	if (cover)
		__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
	fuzz_program_run(program);
	shared->calls += program->nr;
	shared->programs++;
	if (cover_take() && shared->nr_corpus < CORPUS)
		shared->corpus[shared->nr_corpus++] = *program;
	if (complained())
		_exit(COMPLAINED);
}

static void become_nobody(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_MEMLOCK, &all);
	if (setgid(NOBODY) || setuid(NOBODY))
		err(1, "setuid");
	/* So that who traces is not in the way. */
	prctl(PR_SET_DUMPABLE, 1);
}

static void batch_run(uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull | 1;

	cover_open();
	become_nobody();
	while (shared->nr_batch < BATCH) {
		struct fuzz_program *program = &shared->batch[shared->nr_batch++];

		if (shared->nr_corpus && fuzz_random(&state) % 4)
			program_mutate(program, &state);
		else
			program_new(program, &state);
		program_try(program);
	}
	_exit(0);
}

static void replay_run(FILE *from)
{
	become_nobody();
	while (shared->nr_batch < BATCH &&
	       fuzz_program_read(&shared->batch[shared->nr_batch], from))
		program_try(&shared->batch[shared->nr_batch++]);
	_exit(0);
}

/* ---- the fuzzer -------------------------------------------------------------------------- */

/* The last of them did it, if not one before. */
static void batch_show(void)
{
	printf("the kernel says: %s\n", shared->complaint);
	for (uint32_t i = 0; i < shared->nr_batch; i++)
		fuzz_program_print(&shared->batch[i], stdout);
}

/* False: it goes on, but has made no call for so long. */
static bool ended(pid_t child, int *status, int idle_s)
{
	const struct timespec second = { .tv_sec = 1 };
	uint64_t calls = 0;
	sigset_t child_ends;

	sigemptyset(&child_ends);
	sigaddset(&child_ends, SIGCHLD);
	for (int idle = 0; waitpid(child, status, WNOHANG) == 0; idle++) {
		uint64_t now = __atomic_load_n(&shared->calls, __ATOMIC_RELAXED);

		if (now != calls)
			idle = 0;
		if (idle == idle_s)
			return false;
		calls = now;
		sigtimedwait(&child_ends, NULL, &second);
	}
	return true;
}

static pid_t begin(uint64_t seed, FILE *from)
{
	sigset_t child_ends, before;
	pid_t child;

	sigemptyset(&child_ends);
	sigaddset(&child_ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_ends, &before);
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (child > 0)
		return child;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (from)
		replay_run(from);
	batch_run(seed);
	return 0;
}

/*
 * A process that ended early, but for a complaint, was ended by what it did to its own memory. It may
 * also sleep for ever by that; one that cannot be killed then is the driver's doing.
 */
static void batch(uint64_t seed, FILE *from)
{
	pid_t child;
	int status;

	shared->nr_batch = 0;
	child = begin(seed, from);
	if (!ended(child, &status, IDLE_S)) {
		kill(child, SIGKILL);
		if (!ended(child, &status, ENDS_S)) {
			strcpy(shared->complaint, "(nothing) but a process that is killed does not end");
			batch_show();
			exit(1);
		}
	}
	if (complained() || (WIFEXITED(status) && WEXITSTATUS(status) == COMPLAINED)) {
		batch_show();
		exit(1);
	}
}

static void fuzz(uint64_t seed, uint64_t calls)
{
	uint64_t noted = 0;

	while (shared->calls < calls) {
		batch(seed++, NULL);
		if (shared->calls - noted < NOTE_CALLS)
			continue;
		noted = shared->calls;
		fprintf(stderr, "%llu calls, %llu edges, next seed %llu\n",
			(unsigned long long)noted, (unsigned long long)shared->edges,
			(unsigned long long)seed);
	}
	printf("# %llu calls in %llu programs, no complaint; %llu edges of the driver%s\n",
	       (unsigned long long)shared->calls, (unsigned long long)shared->programs,
	       (unsigned long long)shared->edges, shared->edges ? "" : " (this kernel has no KCOV)");
}

int main(int argc, char **argv)
{
	FILE *from;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	if (shared == MAP_FAILED || kmsg < 0)
		err(1, "/dev/kmsg");
	lseek(kmsg, 0, SEEK_END);
	if (argc != 3)
		errx(2, "usage: fuzz_driver SEED CALLS | --replay FILE");
	if (strcmp(argv[1], "--replay")) {
		fuzz(strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
		return 0;
	}
	from = fopen(argv[2], "r");
	if (!from)
		err(1, "%s", argv[2]);
	batch(0, from);
	printf("# %llu calls, no complaint\n", (unsigned long long)shared->calls);
	return 0;
}
