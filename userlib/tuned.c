// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What was measured on a machine (tuning.c) chooses for all ranks of a job alike: by rank 0's
 * file. Whoever finds the same under its name needs no more than the digest; if one does not, as on
 * another machine, rank 0 tells all what stands in it. Schedules that it names as files stay
 * where they are: each rank reads its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tuning.h"

enum { TEXT_MAX = 1 << 18 };

/* A part of rank 0's text. */
struct piece {
	int32_t status;		/* of whoever says it */
	uint16_t bytes;
	uint16_t more;
	char text[MUSTER_EXCHANGE_JOIN - 8];
};

_Static_assert(sizeof(struct piece) == MUSTER_EXCHANGE_JOIN, "size");

static int refuse(struct muster *job, int err, const char *why)
{
	return muster_fail(job, err, "tuning %s: %s; MUSTER_TUNING=off goes on without it",
			   job->settings.tuning, *why ? why : strerror(-err));
}

static int text_read(FILE *in, char **text)
{
	char *all = calloc(1, TEXT_MAX);
	size_t bytes = all ? fread(all, 1, TEXT_MAX, in) : 0;
	int err = !all ? -ENOMEM : ferror(in) ? -errno : bytes == TEXT_MAX ? -EFBIG : 0;

	if (err)
		free(all);
	else
		*text = all;
	return err;
}

int muster_tuned_open(struct muster *job, uint64_t *digest)
{
	const char *path = job->settings.tuning;
	FILE *in;
	int err;

	*digest = 0;
	if (!*path)
		return 0;
	in = fopen(path, "re");
	err = in ? text_read(in, &job->tuned) : -errno;
	if (in)
		fclose(in);
	if (err && !job->oob.rank)
		return refuse(job, err, "");
	if (!err)
		*digest = XXH64(job->tuned, strlen(job->tuned), 0);
	return 0;
}

/* The part of rank 0's text that follows what has been told; others have nothing to say but how they are. */
static struct piece piece_of(const struct muster *job, const char *text, size_t told, int status)
{
	struct piece piece = { .status = status };
	size_t left;

	if (job->oob.rank || status)
		return piece;
	left = strlen(text) - told;
	piece.more = left > sizeof(piece.text);
	piece.bytes = (uint16_t)(piece.more ? sizeof(piece.text) : left);
	memcpy(piece.text, text + told, piece.bytes);
	return piece;
}

static int pieces_check(struct muster *job, const struct piece *all)
{
	for (uint32_t r = 0; r < job->oob.size; r++)
		if (all[r].status)
			return muster_fail(job, muster_rank_errno(all[r].status), "rank %u could not take rank 0's tuning: %s; its own message says why",
					   r, strerror(-muster_rank_errno(all[r].status)));
	if (all->bytes > sizeof(all->text))
		return muster_fail(job, -EPROTO, "rank 0 tells of its tuning what makes no sense");
	return 0;
}

int muster_tuned_take(struct muster *job)
{
	char *text = job->oob.rank ? calloc(1, TEXT_MAX + 1) : job->tuned;
	int err = text ? 0 : muster_fail(job, -ENOMEM, "no memory for rank 0's tuning");
	const struct piece *first;
	const void *all;
	size_t told = 0;

	do {
		struct piece mine = piece_of(job, text, told, err);

		err = muster_exchange(job, err, &mine, sizeof(mine), &all);
		first = all;
		if (!err)
			err = pieces_check(job, first);
		if (!err && job->oob.rank)
			memcpy(text + told, first->text, first->bytes);
		if (!err)
			told += first->bytes;
	} while (!err && first->more && told <= TEXT_MAX - sizeof(first->text));
	if (job->oob.rank) {
		free(job->tuned);
		job->tuned = text;
	}
	return err;
}

int muster_tuned_parse(struct muster *job)
{
	char why[MUSTER_WHY_MAX] = "";
	FILE *in;
	int err;

	if (!job->tuned)
		return 0;
	in = fmemopen(job->tuned, strlen(job->tuned) + 1, "r");
	err = in ? muster_tuning_read(job->settings.tuning, in, &job->tuning, why, sizeof(why)) : -errno;
	if (in)
		fclose(in);
	free(job->tuned);
	job->tuned = NULL;
	return err ? refuse(job, err, why) : 0;
}
