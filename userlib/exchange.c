// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The exchange: what each rank tells all others over the job's allgather, which
 * blocks, while the job is joined. Each also tells whether it is in trouble, so that
 * one rank's trouble is an error everywhere at once and nobody waits for a rank that
 * gave up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"
#include "internal.h"

int muster_exchange_open(struct muster *job, size_t piece_bytes)
{
	job->exchanged = calloc(job->oob.size, piece_bytes);
	if (!job->exchanged)
		return muster_fail(job, -ENOMEM, "no memory for what %u ranks say", job->oob.size);
	return 0;
}

void muster_exchange_close(struct muster *job)
{
	free(job->exchanged);
	job->exchanged = NULL;
}

int muster_exchange(struct muster *job, int status, const void *mine, size_t bytes,
		    const void **all)
{
	char own[MUSTER_SENTENCE_MAX];
	const char *why;
	int err;

	memcpy(own, job->sentence, sizeof(own));
	err = job->oob.allgather(job->oob.opaque, mine, job->exchanged, bytes);
	*all = job->exchanged;
	if (status)	/* own sentence stays, whatever ended meanwhile */
		return muster_fail(job, status, "%s", own);
	why = err && job->oob_owned ? muster_bootstrap_error(&job->oob) : "";
	if (err)
		return muster_fail(job, err, "the ranks' exchange failed, as one is missing or has died: %s",
				   *why ? why : strerror(-err));
	return 0;
}
