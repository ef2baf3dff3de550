// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Processes that take seed after seed until there are none, each in a world of its own, and
 * add up what they saw in memory that they share. One that a seed kills is told by the seed
 * that it had taken. The first seed that fails is cut down to the least that fails as well.
 */
#include "crew.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "dst.h"

enum { REPEAT_EVERY = 64, SHOWN_MAX = 5, JOBS_MAX = 64, PROGRESS_S = 10 };

struct tally {
	uint64_t next;			/* seed */
	uint64_t done, failed, events, packets, faults;
	uint64_t first_failed;		/* UINT64_MAX: none */
	uint64_t at[JOBS_MAX];		/* which seed each has taken */
};

static uint64_t add(uint64_t *sum, uint64_t value)
{
	return __atomic_fetch_add(sum, value, __ATOMIC_SEQ_CST);
}

static uint64_t read_of(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

static void failed_at(struct tally *tally, uint64_t seed)
{
	uint64_t first = read_of(&tally->first_failed);

	while (seed < first &&
	       !__atomic_compare_exchange_n(&tally->first_failed, &first, seed, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* ---- one seed ------------------------------------------------------------------- */

static void show(const struct dst_world *w, uint64_t seed)
{
	char limits[DST_WHY_MAX];

	printf("seed %" PRIu64 " failed %s\n", seed, w->why);
	dst_plan_print(&w->plan);
	dst_limits_write(&w->limits, limits, sizeof(limits));
	printf("  replay: make dst SEED=%" PRIu64 " TRACE=1%s%s%s\n", seed,
	       w->library ? " LIBRARY=1" : w->trees ? " TREES=1" : "", *limits ? " LIMITS=" : "", limits);
	fflush(stdout);
}

static bool repeats(struct dst_world *w, uint64_t seed)
{
	uint64_t hash = w->hash;

	dst_world_run(w, seed);
	if (w->hash == hash)
		return true;
	snprintf(w->why, sizeof(w->why), "by going another way the second time");
	return false;
}

static void show_least(struct dst_world *w, uint64_t seed)
{
	const struct dst_limits given = w->limits;

	if (dst_shrink(w, seed)) {
		printf("  the least of it that fails:\n");
		show(w, seed);
	}
	w->limits = given;
}

static void run_seed(struct dst_world *w, uint64_t seed, struct tally *tally)
{
	bool good = dst_world_run(w, seed);
	uint64_t nr;

	add(&tally->events, w->nr_events);
	add(&tally->packets, w->nr_packets);
	add(&tally->faults, w->nr_faults);
	if (good && seed % REPEAT_EVERY == 0)
		good = repeats(w, seed);
	if (!good) {
		failed_at(tally, seed);
		nr = add(&tally->failed, 1);
		if (nr < SHOWN_MAX)
			show(w, seed);
		if (!nr && !w->trace)
			show_least(w, seed);
	}
	add(&tally->done, 1);
}

/* ---- many ----------------------------------------------------------------------- */

static void work(const struct dst_crew *crew, struct dst_world *w, struct tally *tally,
		 uint64_t *at)
{
	uint64_t seed;

	while ((seed = add(&tally->next, 1)) - crew->first < crew->count) {
		if (crew->until_failure && seed > read_of(&tally->first_failed))
			return;
		*at = seed;
		run_seed(w, seed, tally);
	}
}

static void ended(struct tally *tally, uint64_t seed, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	printf("seed %" PRIu64 " ended its process: %s %d\n", seed,
	       WIFSIGNALED(status) ? "signal" : "status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	failed_at(tally, seed);
	add(&tally->failed, 1);
}

static double seconds(void)
{
	return (double)muster_clock_ns() / 1e9;
}

static void progress(const struct dst_crew *crew, const struct tally *tally, double begin)
{
	uint64_t done = read_of(&tally->done);

	fprintf(stderr, "dst: %" PRIu64 " of %" PRIu64 " seeds, %" PRIu64 " failed, %.0f seeds/s\n",
		done, crew->count, read_of(&tally->failed), (double)done / (seconds() - begin));
}

/* Until all have ended; how far they are is said every few seconds. */
static void watch(const struct dst_crew *crew, struct tally *tally, const pid_t *pids, uint64_t nr,
		  double begin)
{
	double said = begin;
	uint64_t left = nr;

	while (left) {
		int status = 0;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		for (uint64_t i = 0; pid > 0 && i < nr; i++) {
			if (pids[i] != pid)
				continue;
			ended(tally, tally->at[i], status);
			left--;
		}
		if (pid <= 0)
			usleep(20000);
		if (seconds() - said >= PROGRESS_S) {
			said = seconds();
			progress(crew, tally, begin);
		}
	}
}

static void share(const struct dst_crew *crew, struct dst_world *w, struct tally *tally,
		  double begin)
{
	uint64_t nr = crew->jobs < JOBS_MAX ? crew->jobs : JOBS_MAX;
	pid_t pids[JOBS_MAX];

	for (uint64_t i = 0; i < nr; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			work(crew, w, tally, &tally->at[i]);
			fflush(stdout);
			_exit(0);
		}
		if (pids[i] < 0) {
			perror("dst: fork");
			nr = i;
		}
	}
	if (!nr)
		work(crew, w, tally, &tally->at[0]);
	watch(crew, tally, pids, nr, begin);
}

uint64_t dst_crew_run(const struct dst_crew *crew, struct dst_world *w)
{
	struct tally *tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double begin = seconds();
	uint64_t failed;

	if (tally == MAP_FAILED) {
		perror("dst: memory to share");
		return 1;
	}
	tally->next = crew->first;
	tally->first_failed = UINT64_MAX;
	if (crew->jobs > 1 && crew->count > 1)
		share(crew, w, tally, begin);
	else
		work(crew, w, tally, &tally->at[0]);
	printf("dst: seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " failed; %" PRIu64 " events, %" PRIu64 " packets, %" PRIu64 " faults; %.0f seeds/s\n",
	       crew->first, crew->first + crew->count - 1, tally->failed, tally->events,
	       tally->packets, tally->faults, (double)tally->done / (seconds() - begin));
	if (crew->until_failure && tally->failed)
		printf("dst: the first to fail is the %" PRIu64 "th: seed %" PRIu64 "\n",
		       tally->first_failed - crew->first + 1, tally->first_failed);
	failed = tally->failed;
	munmap(tally, sizeof(*tally));
	return failed;
}
