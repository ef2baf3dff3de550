// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waiting where ranks outnumber processors: each gives its own to the next, which may be the
 * one that it waits for. That is quicker than to sleep and be woken, but takes some microseconds,
 * longer than a rank needs to answer that runs meanwhile on another processor. So each says where
 * it runs: one that waits for a rank of its own processor gives way at once, since as long as it
 * looks that one cannot answer; one that waits for others looks as long as a change takes. Who
 * does not know looks a few times.
 */
#include "internal.h"

#include <sched.h>

#include "clock.h"

enum {
	LOOKS = 8,		/* for a packet before a yield; about half as long as one takes */
	LOOKS_ELSEWHERE = 64,	/* the same of ranks that run on other processors */
	YIELD_US = 1000,	/* without a packet before wait() sleeps */
	YIELD_LONG_US = 500,	/* so late come back: somebody else is at work there */
	YIELD_LATE = 8,		/* a late one outweighs so many that were not */
	YIELD_LATE_MAX = 3 * YIELD_LATE,
	YIELD_PAUSE_US = 30000,	/* then not again for so long, for each rank of the job */
};

/* Whether a rank runs where we do, and what it is to send has not come. */
static bool waits_for_us(const struct local *local, uint32_t rank, uint32_t processor)
{
	return muster_rings_runs_at(&local->rings, rank, processor) &&
	       !muster_rings_waits(&local->rings, rank);
}

/* How many ranks are awaited, as far as that is known; whether one of them is at our processor. */
static uint32_t awaits(struct local *local, bool *here)
{
	uint32_t processor = (uint32_t)sched_getcpu(), nodes[MUSTER_SLOTS_MAX], nr;

	*here = false;
	if (local->wire)
		return 0;
	muster_rings_run_at(&local->rings, processor);
	nr = muster_engine_awaits(local->engine, nodes);
	if (!nr && local->dev.awaited)
		nr = local->dev.awaited(local->dev.sleeper, nodes);
	for (uint32_t i = 0; i < nr && !*here; i++)
		*here = waits_for_us(local, muster_local_rank(local, nodes[i]), processor);
	return nr;
}

bool muster_local_in_the_way(struct local *local)
{
	bool here;

	awaits(local, &here);
	return here;
}

/* How often to look before giving way. Over sockets a look costs as much as a yield. */
static int looks(struct local *local)
{
	bool here, known = awaits(local, &here);

	if (here || local->wire)
		return 1;
	return known ? LOOKS_ELSEWHERE : LOOKS;
}

/* Return: whether something has come. */
static bool look(struct local *local)
{
	for (int left = looks(local); left; left--) {
		if (muster_local_take(local) || muster_local_progress(local) || muster_local_has_news(local))
			return true;
		muster_local_relax();
	}
	return false;
}

/*
 * A yield that is answered late went to somebody who computes for a whole slice of time.
 * Now and then that is just another's share of the machine; but where it is the rule, it is
 * better to sleep: who is woken is put before who computes, who yields is put behind.
 */
static void yield_judge(struct local *local, uint64_t before, uint64_t now)
{
	if (now - before < YIELD_LONG_US) {
		local->lateness -= local->lateness > 0;
		return;
	}
	local->lateness += YIELD_LATE;
	if (local->lateness < YIELD_LATE_MAX)
		return;
	local->lateness -= YIELD_LATE;
	local->yield_again_us = now + (uint64_t)YIELD_PAUSE_US * local->size;
}

/* Return: the time; before: it was then. */
static uint64_t yield(struct local *local, uint64_t before)
{
	uint64_t now;

	muster_dev_sleep_begin(&local->dev);	/* other threads, if there are */
	sched_yield();
	muster_dev_sleep_end(&local->dev);
	now = muster_clock_us();
	yield_judge(local, before, now);
	return now;
}

bool muster_local_give_way(struct local *local, uint64_t now, uint64_t end_us)
{
	uint64_t last = now;

	while (now < end_us && now - last < YIELD_US && now >= local->yield_again_us) {
		bool came = look(local);

		if (muster_local_has_news(local))
			return false;
		now = came ? muster_clock_us() : yield(local, now);
		if (came)
			last = now;
	}
	return now < end_us;
}
