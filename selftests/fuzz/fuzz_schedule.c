// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A schedule's text: read, checked if it is small, and read back from what is written of it. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "schedule.h"

enum { WORK_MAX = 1 << 12 };

/* What was written reads back as the same schedule. */
static void read_back(const struct muster_schedule *schedule)
{
	struct muster_schedule *copy;
	char why[256], *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len), *in;

	if (!out || muster_schedule_write(schedule, out) || fclose(out))
		abort();
	in = fmemopen(text, len, "r");
	if (!in || muster_schedule_read(in, &copy, why, sizeof(why)))
		abort();
	if (muster_schedule_hash(copy) != muster_schedule_hash(schedule))
		abort();
	muster_schedule_free(copy);
	fclose(in);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct muster_schedule *schedule;
	char why[256];
	FILE *in;

	if (!len)
		return 0;
	in = fmemopen((void *)(uintptr_t)data, len, "r");
	if (!in)
		return 0;
	if (!muster_schedule_read(in, &schedule, why, sizeof(why))) {
		if ((uint64_t)schedule->ranks * schedule->chunks * schedule->steps < WORK_MAX) {
			read_back(schedule);
			muster_schedule_check(schedule, why, sizeof(why));
		}
		muster_schedule_free(schedule);
	}
	fclose(in);
	return 0;
}
