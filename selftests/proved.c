// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every generator's transfers of all of so many ranks, run by the checker: where the unit tests, which
 * prove all counts up to 70, have not the time. An alltoall's chunks are too many to list.
 *
 * usage: proved RANKS
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "schedule.h"

/* Return: whether it is right, or the generator does no such collective. */
static bool is_right(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t *proved)
{
	struct muster_schedule *schedule;
	uint32_t root = muster_coll_rooted(coll) ? ranks / 3 : 0;
	char why[300] = "";
	int err = muster_schedule_generate(name, coll, ranks, root, 8, &schedule, why, sizeof(why));

	if (err == -EOPNOTSUPP)
		return true;
	if (err) {
		printf("%s %s: %s\n", name, muster_coll_name(coll), why);
		return false;
	}
	err = muster_schedule_check(schedule, why, sizeof(why));
	printf("%s %s of %" PRIu32 " ranks, %" PRIu32 " transfers: %s\n", name, muster_coll_name(coll), ranks,
	       schedule->nr_transfers, err ? why : "right");
	fflush(stdout);
	muster_schedule_free(schedule);
	*proved += !err;
	return !err;
}

int main(int argc, char **argv)
{
	uint32_t ranks = argc == 2 ? (uint32_t)atoi(argv[1]) : 0, proved = 0;
	const char *name;
	bool right = true;

	if (!ranks) {
		fprintf(stderr, "usage: proved RANKS\n");
		return 2;
	}
	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			if (coll != MUSTER_COLL_ALLTOALL)
				right &= is_right(name, coll, ranks, &proved);
	printf("%" PRIu32 " proved of %" PRIu32 " ranks\n", proved, ranks);
	return right && proved ? 0 : 1;
}
