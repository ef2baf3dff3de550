// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The exchange: what each rank tells all others over the job's allgather, which
 * blocks. Each also tells whether it is in trouble, so that one rank's trouble is
 * an error everywhere at once and nobody waits for a rank that gave up.
 *
 * Once operations can be under way the allgather runs on a thread of its own,
 * while the caller's goes on with them: another rank may have to finish one of
 * them before it comes to the exchange. Nothing of the job but its oob is used by
 * that thread.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"
#include "internal.h"

enum { SLEEP_FIRST_US = 50 };

struct gather {
	const struct muster_oob *oob;
	const void *in;
	void *out;
	size_t bytes;
	int err;
	atomic_bool done;
};

static void *gather_run(void *opaque)
{
	struct gather *gather = opaque;

	gather->err = gather->oob->allgather(gather->oob->opaque, gather->in, gather->out,
					     gather->bytes);
	atomic_store(&gather->done, true);
	return NULL;
}

/* The program's signals are for its own threads. */
static int thread_start(struct gather *gather, pthread_t *thread)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, gather_run, gather);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Nobody tells us when the gather ends: sleep as long as it has taken already, at most. */
static void progress_until_done(struct muster *job, struct gather *gather)
{
	uint64_t sleep_us = SLEEP_FIRST_US;

	while (!atomic_load(&gather->done)) {
		if (muster_progress(job)) {
			sleep_us = SLEEP_FIRST_US;
			continue;
		}
		job->dev->ops->wait(job->dev, sleep_us);
		sleep_us = 2 * sleep_us < MUSTER_SLEEP_US ? 2 * sleep_us : MUSTER_SLEEP_US;
	}
}

static int gather_all(struct muster *job, const void *in, size_t bytes)
{
	struct gather gather = {
		.oob = &job->oob, .in = in, .out = job->exchanged, .bytes = bytes,
	};
	pthread_t thread;

	if (job->world && !thread_start(&gather, &thread)) {
		progress_until_done(job, &gather);
		pthread_join(thread, NULL);
		return gather.err;
	}
	/* No thread is to be had: at least what was sent arrives. */
	if (job->world && job->dev->ops->settle)
		job->dev->ops->settle(job->dev);
	gather_run(&gather);
	return gather.err;
}

int muster_exchange_open(struct muster *job, size_t piece_bytes)
{
	job->exchanged = calloc(job->oob.size, piece_bytes);
	if (!job->exchanged)
		return muster_fail(job, -ENOMEM, "no memory for what %u ranks say", job->oob.size);
	return 0;
}

void muster_exchange_shrink(struct muster *job, size_t piece_bytes)
{
	void *smaller = realloc(job->exchanged, job->oob.size * piece_bytes);

	if (smaller)
		job->exchanged = smaller;
}

void muster_exchange_close(struct muster *job)
{
	free(job->exchanged);
}

int muster_exchange(struct muster *job, int status, const void *mine, size_t bytes,
		    const void **all)
{
	char own[MUSTER_SENTENCE_MAX];
	const char *why;
	int err;

	memcpy(own, job->sentence, sizeof(own));
	err = gather_all(job, mine, bytes);
	*all = job->exchanged;
	if (status)	/* own sentence stays, whatever ended meanwhile */
		return muster_fail(job, status, "%s", own);
	why = err && job->oob_owned ? muster_bootstrap_error(&job->oob) : "";
	if (err)
		return muster_fail(job, err, "the ranks' exchange failed, as one is missing or has died: %s",
				   *why ? why : strerror(-err));
	return 0;
}
