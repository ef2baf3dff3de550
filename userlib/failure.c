// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a communicator ends before its time: what the device or the host path
 * found becomes one sentence that names the culprit in the communicator's own
 * numbering, and every pending and later operation gets that same error.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bump_path.h"
#include "host.h"
#include "message.h"
#include "rails.h"
#include "restart.h"
#include "turn.h"

enum { WORDS_MAX = 64 };

const char *muster_comm_why(const struct muster_comm *comm)
{
	return comm->why ? comm->why : "no memory to say why the communicator failed";
}

/*
 * All pending and later operations get err and the sentence. Must run after the device has
 * stopped: it gives up all memory that operations hold.
 */
static void __attribute__((format(printf, 3, 4)))
comm_fail(struct muster_comm *comm, int err, const char *format, ...)
{
	va_list args;

	if (comm->failed)
		return;
	comm->failed = err;
	comm->job->has_lost |= comm->restarts && err == -ECONNRESET;
	comm->look->failed = (uint32_t)-err;
	va_start(args, format);
	if (vasprintf(&comm->why, format, args) < 0)
		comm->why = NULL;
	va_end(args);
	muster_fail(comm->job, err, "%s", muster_comm_why(comm));
	muster_again_drop(comm);
	muster_rails_abort(comm);
	muster_host_cancel(comm);
	muster_bump_cancel(comm);
	comm->unposted = NULL;
	while (comm->first)
		muster_request_finish(comm->first, comm->first->ended && muster_rails_ended(comm->first) ? 0 : err);
	muster_channel_leave(comm);
	muster_turn_news(comm->job);
}

/* A signature without a collective says nothing, as NULL. */
static bool says_nothing(const struct muster_signature *signature)
{
	return !signature || !signature->coll;
}

/* What else all ranks must call alike, beside what has words. */
static const char *what_differs(const struct muster_signature *signature)
{
	bool has_vector = signature->coll == MUSTER_COLL_ALLGATHERV ||
			  signature->coll == MUSTER_COLL_REDUCE_SCATTERV;

	return has_vector ? "count vector" : "count";
}

/*
 * Another member has noticed: either of the two may be the one that called something else than
 * all others, so both are named.
 */
static void fail_heard(struct muster_comm *comm, uint32_t culprit, uint32_t by,
		       const struct muster_signature *theirs)
{
	char words[WORDS_MAX];

	if (says_nothing(theirs)) {
		comm_fail(comm, -EPROTO, "rank %u and rank %u called different operations, types, lengths or roots, or took different paths; all ranks must call the same in the same order",
				 culprit, by);
		return;
	}
	muster_signature_words(theirs, words, sizeof(words));
	if (culprit == comm->rank)
		comm_fail(comm, -EPROTO, "rank %u called something else than this rank (%u), which called %s; all ranks must call the same in the same order",
				 by, culprit, words);
	else
		comm_fail(comm, -EPROTO, "rank %u called %s, rank %u something else, or with another count, root, schedule or path; all ranks must call the same in the same order",
				 culprit, words, by);
}

/* A switch that tells of it does not say: neither this rank nor another is to be named for it. */
static bool knows_who_noticed(const struct muster_comm *comm, uint32_t by)
{
	return by < comm->size && by != MUSTER_BY_NONE;
}

static void fail_mismatch(struct muster_comm *comm, uint32_t culprit, uint32_t by,
			  const struct muster_signature *theirs,
			  const struct muster_signature *ours)
{
	char other[WORDS_MAX], own[WORDS_MAX];

	if (by != comm->rank && by != culprit && knows_who_noticed(comm, by)) {
		fail_heard(comm, culprit, by, theirs);
		return;
	}
	if (says_nothing(theirs) || says_nothing(ours)) {
		comm_fail(comm, -EPROTO, "rank %u called another operation, type, length or root than the others, or took another path; all ranks must call the same in the same order%s",
				 culprit, culprit == comm->rank ? " (that is this rank)" : "");
		return;
	}
	muster_signature_words(theirs, other, sizeof(other));
	if (theirs->coll >= MUSTER_COLL_GATHERV && muster_signatures_agree(theirs, ours)) {
		comm_fail(comm, -EPROTO, "rank %u sent this rank another number of elements in %s than it awaits, or took another path",
				 culprit, other);
		return;
	}
	muster_signature_words(ours, own, sizeof(own));
	if (culprit == comm->rank) {
		comm_fail(comm, -EPROTO, "another rank called something else than this rank (%u), which called %s; all ranks must call the same in the same order",
				 culprit, other);
		return;
	}
	if (strcmp(other, own))
		comm_fail(comm, -EPROTO, "rank %u called %s, this rank called %s; all ranks must call the same in the same order",
				 culprit, other, own);
	else if (!knows_who_noticed(comm, by))
		comm_fail(comm, -EPROTO, "rank %u called %s, another rank something else, or with another count, root, schedule or path; all ranks must call the same in the same order",
				 culprit, other);
	else
		comm_fail(comm, -EPROTO, "rank %u called %s with another %s, schedule or path than this rank; all ranks must use the same",
				 culprit, other, what_differs(theirs));
}

/* The culprit is not known, or it is a member. */
static const char *culprit_words(const struct muster_comm *comm, uint32_t culprit, char *words,
				 size_t len)
{
	if (culprit >= comm->size)
		snprintf(words, len, "a rank");
	else if (culprit == comm->rank)
		snprintf(words, len, "rank %u (this one)", culprit);
	else
		snprintf(words, len, "rank %u", culprit);
	return words;
}

static void fail_aborted(struct muster_comm *comm, uint32_t culprit, uint32_t by)
{
	char who[WORDS_MAX];

	if (culprit != by && knows_who_noticed(comm, by) && culprit < comm->size)
		comm_fail(comm, -ECONNABORTED, "rank %u gave up: rank %u%s was late for longer than its MUSTER_LATE_TIMEOUT",
				 by, culprit, culprit == comm->rank ? " (this one)" : "");
	else
		comm_fail(comm, -ECONNABORTED, "%s gave up: it left the job, its wait ran out of time, or it had no memory; its own message says why",
				 culprit_words(comm, culprit, who, sizeof(who)));
}

void muster_comm_fail_status(struct muster_comm *comm, uint8_t status, uint32_t culprit,
			     uint32_t by, const struct muster_signature *theirs,
			     const struct muster_signature *ours)
{
	int err = muster_status_errno(status);
	char who[WORDS_MAX];

	culprit_words(comm, culprit, who, sizeof(who));
	if (!comm->failed) {
		comm->culprit = culprit;
		comm->status = status;
	}
	switch (status) {
	case MUSTER_STATUS_MISMATCH:
		fail_mismatch(comm, culprit, by, theirs, ours);
		break;
	case MUSTER_STATUS_PEER_LOST:
		if (culprit >= comm->size && comm->job->settings.uplink) {
			comm_fail(comm, err, "the network has lost a switch or a link that the members of this communicator need");
			break;
		}
		comm_fail(comm, err, "%s has died or left the job%s; free the communicator and go on without it",
				 who, comm->job->settings.uplink ?
				 ", or the network has lost a switch or a link that leads there" : "");
		break;
	case MUSTER_STATUS_ABORTED:
		fail_aborted(comm, culprit, by);
		break;
	case MUSTER_STATUS_FLUSHED:
		comm_fail(comm, err, "the communicator's context was closed by the device");
		break;
	case MUSTER_STATUS_MEMORY:
		comm_fail(comm, err, "the device of %s could not use a buffer: it must stay mapped until the operation is finished",
				 who);
		break;
	case MUSTER_STATUS_STARVED:
		comm_fail(comm, err, "the device of %s had no memory for the operation", who);
		break;
	case MUSTER_STATUS_PROTOCOL:
		comm_fail(comm, err, "%s sent what does not fit the running operation", who);
		break;
	default:
		comm_fail(comm, err, "the device of %s refused a descriptor (status %u)", who,
				 status);
	}
	muster_rail_failed(comm, status, culprit);
}

void muster_comm_abort(struct muster_comm *comm, uint8_t status, uint32_t culprit,
		       const struct muster_signature *theirs, const struct muster_signature *ours)
{
	struct muster *job = comm->job;

	if (comm->failed)
		return;
	job->dev->ops->abort(job->dev, job->id, comm->context, status, culprit);
	muster_comm_fail_status(comm, status, culprit, comm->rank, theirs, ours);
}

int muster_comm_give_up_for(struct muster_comm *comm, int err, uint32_t culprit)
{
	struct muster *job = comm->job;

	if (comm->failed)
		return err;
	job->dev->ops->abort(job->dev, job->id, comm->context, MUSTER_STATUS_ABORTED, culprit);
	comm_fail(comm, err, "%s", muster_error(job));
	muster_rail_gave_up(comm, err, culprit);
	return err;
}

int muster_comm_give_up(struct muster_comm *comm, int err)
{
	return muster_comm_give_up_for(comm, err, comm->rank);
}
