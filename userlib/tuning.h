/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A schedule and how it is lowered, by collective and size (tuning.c).
 */
#ifndef MUSTER_TUNING_H
#define MUSTER_TUNING_H

#include "internal.h"

struct muster_tuning;

/** muster_tuning_read() - a tuning file (muster(7)), with the files that it names. 0; -errno. */
int muster_tuning_read(const char *path, FILE *in, struct muster_tuning **tuning, char *why,
		       size_t why_len);
/** muster_tuning_list() - the same of a list in one string, without options. */
int muster_tuning_list(const char *list, struct muster_tuning **tuning, char *why, size_t why_len);
void muster_tuning_free(struct muster_tuning *tuning);

/**
 * muster_tuning_choose() - the first line that serves a call.
 * @owned: whether the schedule is the caller's to free.
 * Return: 0; -ENOENT: there is none; -ENOMEM.
 */
int muster_tuning_choose(const struct muster_tuning *tuning, enum muster_coll coll, uint32_t ranks,
			 uint32_t root, uint64_t bytes, struct muster_schedule **schedule,
			 bool *owned);

/**
 * muster_tuned_open() - begin to join with the tuning file that the settings name (tuned.c).
 * @digest: of what stands in it; 0: there is none here, which of rank 0 is an error.
 */
int muster_tuned_open(struct muster *job, uint64_t *digest);
/** muster_tuned_take() - collective over the job, if digests differ: all have what rank 0 has. */
int muster_tuned_take(struct muster *job);
/** muster_tuned_parse() - what there is becomes the job's tuning. 0; -errno, with a sentence. */
int muster_tuned_parse(struct muster *job);

#endif /* MUSTER_TUNING_H */
