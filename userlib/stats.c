// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One row for each collective, path, schedule and reason: calls, bytes, and the time from
 * start to end. What the library calls itself for an operation has rows of its own. When there
 * are too many kinds, the last row takes all others. With MUSTER_LOG=info a row that is new is
 * told at once.
 */
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 128, NAME_BYTES = 64 };

struct row {
	enum muster_coll coll;		/* 0, if it is the last: of several kinds */
	enum muster_coll of;		/* it is a part of this; 0: of nothing */
	enum muster_path path;
	char schedule[MUSTER_SCHEDULE_NAME_MAX + 1];
	char why[MUSTER_WHY_MAX];
	uint64_t calls;
	uint64_t bytes;
	uint64_t us;
};

struct muster_stats {
	uint32_t nr;
	struct row rows[ROWS_MAX];
	uint64_t waited_us;		/* of this rank */
	uint64_t *waits_us;		/* of each, once it leaves; NULL: they are not known */
};

int muster_stats_open(struct muster *job)
{
	if (!job->settings.stats && !job->settings.log)
		return 0;
	job->stats = calloc(1, sizeof(*job->stats));
	return job->stats ? 0 : muster_fail(job, -ENOMEM, "no memory for MUSTER_STATS or MUSTER_LOG");
}

static const char *path_name(enum muster_path path)
{
	static const char *const names[] = {
		[MUSTER_PATH_NONE] = "-", [MUSTER_PATH_HOST] = "host", [MUSTER_PATH_NIC] = "nic",
		[MUSTER_PATH_SWITCH] = "switch", [MUSTER_PATH_BUMP] = "bump",
	};

	return names[path];
}

static void row_name(const struct row *row, char name[NAME_BYTES])
{
	if (!row->coll)
		snprintf(name, NAME_BYTES, "others");
	else
		snprintf(name, NAME_BYTES, "%s%s%s", muster_coll_name(row->coll),
			 row->of ? " for " : "", row->of ? muster_coll_name(row->of) : "");
}

/* ---- counting ------------------------------------------------------------------------- */

static bool is_same(const struct row *a, const struct row *b)
{
	return a->coll == b->coll && a->of == b->of && a->path == b->path &&
	       !strcmp(a->schedule, b->schedule) && !strcmp(a->why, b->why);
}

static struct row *row_of(struct muster_stats *stats, const struct row *kind)
{
	struct row *row = stats->rows;

	while (row < stats->rows + stats->nr && !is_same(row, kind))
		row++;
	if (row < stats->rows + stats->nr)
		return row;
	if (stats->nr == ROWS_MAX) {
		row = &stats->rows[ROWS_MAX - 1];
		row->coll = 0;
		return row;
	}
	stats->nr++;
	*row = *kind;
	return row;
}

static void row_log(const struct row *row, const struct muster_op_info *info)
{
	char name[NAME_BYTES];

	row_name(row, name);
	fprintf(stderr, "muster: %s, first with %" PRIu64 " bytes: %s%s%s, because %s\n", name,
		info->bytes, path_name(row->path), *row->schedule ? ", " : "", row->schedule,
		row->why);
}

void muster_stats_count(const struct muster_request *request)
{
	struct muster_op_info info = request->comm->last;
	struct row kind = { .coll = request->coll }, *row;

	if (request->own)
		muster_last_fill(request, &info);
	kind.path = info.path;
	/* What serves a call as another one is not cut into its blocks. */
	if (request->entry && !request->entry->call.cut && request->entry->call.as) {
		kind.of = request->entry->call.as;
		kind.coll = request->entry->call.coll;
	}
	snprintf(kind.schedule, sizeof(kind.schedule), "%s", info.schedule);
	snprintf(kind.why, sizeof(kind.why), "%s", info.why);
	row = row_of(request->job->stats, &kind);
	if (!row->calls && request->job->settings.log && !request->job->oob.rank)
		row_log(row, &info);
	row->calls++;
	row->bytes += info.bytes;
	row->us += muster_now_us(request->job) - request->began_us;
}

void muster_stats_waited(struct muster *job, uint64_t us)
{
	job->stats->waited_us += us;
}

/* An operation like any other, but not the program's: nothing counts it. */
void muster_stats_gather(struct muster *job)
{
	struct muster_stats *stats = job->stats;
	uint64_t *all;

	if (!stats || !job->settings.stats || job->oob.size == 1)
		return;
	all = calloc(job->oob.size, sizeof(*all));
	job->stats = NULL;
	if (all && !muster_allgather(job->world, &stats->waited_us, all, 1, MUSTER_U64))
		stats->waits_us = all;
	else
		free(all);
	job->stats = stats;
}

/* ---- telling --------------------------------------------------------------------------- */

static void row_write(const struct row *row, FILE *out)
{
	char name[NAME_BYTES];

	row_name(row, name);
	fprintf(out, "  %-34s %-6s %-18s %10" PRIu64 " %14" PRIu64 " %12.1f  %s\n", name,
		row->coll ? path_name(row->path) : "", row->coll && *row->schedule ? row->schedule : "-",
		row->calls, row->bytes, (double)row->us / (double)row->calls,
		row->coll ? row->why : "more kinds than there are rows");
}

/* Who comes last finds all others there, and waits the least. */
static void last_write(const uint64_t *waits_us, uint32_t nr, FILE *out)
{
	uint32_t last = 0;
	uint64_t others_us = 0;

	for (uint32_t r = 0; r < nr; r++) {
		others_us += waits_us[r];
		if (waits_us[r] < waits_us[last])
			last = r;
	}
	others_us -= waits_us[last];
	fprintf(out, "  last: rank %" PRIu32 ", which waited for %.1f ms in all, the others for %.1f ms on average\n",
		last, (double)waits_us[last] / 1e3, (double)others_us / (nr - 1) / 1e3);
}

void muster_stats_write(const struct muster *job, FILE *out)
{
	const struct muster_stats *stats = job->stats;

	fprintf(out, "muster: operations of rank %" PRIu32 " of %" PRIu32 "%s\n", job->oob.rank,
		job->oob.size, stats->nr ? "" : ": none");
	if (stats->nr)
		fprintf(out, "  %-34s %-6s %-18s %10s %14s %12s  %s\n", "collective", "path",
			"schedule", "calls", "bytes", "mean us", "why");
	for (uint32_t i = 0; i < stats->nr; i++)
		row_write(&stats->rows[i], out);
	if (stats->waits_us)
		last_write(stats->waits_us, job->oob.size, out);
	if (job->locks.nr + job->locks.given_up)
		fprintf(out, "  locks of streaming trees: %" PRIu64 " got, %" PRIu64 " given up; waited %.1f us on average, %" PRIu64 " us at most; had for %" PRIu64 " us at most\n",
			job->locks.nr, job->locks.given_up,
			(double)job->locks.wait_us / (double)(job->locks.nr ? job->locks.nr : 1),
			job->locks.wait_us_max, job->locks.lease_us_max);
}

void muster_stats_close(struct muster *job)
{
	if (!job->stats)
		return;
	if (!job->oob.rank && job->settings.stats)
		muster_stats_write(job, stderr);
	free(job->stats->waits_us);
	free(job->stats);
	job->stats = NULL;
}
