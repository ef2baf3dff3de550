// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The bump's tree and recursive doubling have the bits of the library's schedules of
 * these names, hence of the engine: sums of doubles by both for 1 to 100 hosts. That the
 * bump computes bump_reference() is shown by bump_sim and bump_hosts.
 */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "bump_reference.h"
#include "schedule.h"

enum { HOSTS_MAX = 100 };

static uint64_t sum(uint64_t a, uint64_t b)
{
	return bump_combine(MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, a, b);
}

/* All transfers of a step read what was there before the step. */
static void interpret(const struct muster_schedule *schedule, uint64_t *values)
{
	uint64_t before[HOSTS_MAX];

	for (uint32_t i = 0, step = UINT32_MAX; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];

		if (t->step != step)
			memcpy(before, values, sizeof(before));
		step = t->step;
		values[t->to] = t->reduce ? sum(values[t->to], before[t->from]) : before[t->from];
	}
}

static void compare(const char *name, uint8_t algorithm, uint32_t hosts)
{
	uint64_t own[HOSTS_MAX], values[HOSTS_MAX], before[HOSTS_MAX], all;
	struct muster_schedule *schedule;
	char why[200];

	for (uint32_t i = 0; i < hosts; i++) {
		double x = (double)(random() - (RAND_MAX >> 1)) * (double)(1ull << random() % 40);

		memcpy(&own[i], &x, 8);
	}
	memcpy(values, own, sizeof(values));
	if (muster_schedule_generate(name, MUSTER_COLL_ALLREDUCE, hosts, 0, 8, &schedule, why,
				     sizeof(why)))
		errx(1, "%s: %s", name, why);
	interpret(schedule, values);
	all = bump_reference(algorithm, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, hosts, own, before);
	for (uint32_t i = 0; i < hosts; i++)
		if (values[i] != all)
			errx(1, "%s, %u hosts: the schedule has other bits at rank %u", name, hosts, i);
	muster_schedule_free(schedule);
}

int main(void)
{
	for (uint32_t hosts = 1; hosts <= HOSTS_MAX; hosts++)
		for (int round = 0; round < 20; round++) {
			compare("binomial", MUSTER_BUMP_TREE, hosts);
			compare("recursive-doubling", MUSTER_BUMP_DOUBLING, hosts);
		}
	return 0;
}
