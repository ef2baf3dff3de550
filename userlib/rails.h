/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rails: a rank with several NICs, each at a network of switches of its own. The first is the job's;
 * each other one is a job beneath it, with a device, a manager of groups and trees of its own, of
 * which the caller sees nothing. What is long goes over all of them (rails.c).
 */
#ifndef MUSTER_RAILS_H
#define MUSTER_RAILS_H

#include "internal.h"

enum { MUSTER_RAILS_MAX = 8 };

/** muster_rails_join() - collective: the other rails of a job that is joined. 0; -errno with a sentence. */
int muster_rails_join(struct muster *job, muster_dev_open *open);
/** muster_rails_close() - all that are beneath a job; its communicators are closed. */
void muster_rails_close(struct muster *job);

/**
 * muster_comm_rails_join() - collective over a communicator that is open, and in its trees, at all members: it
 * gets one on each other rail, or none if a rail is lost or has no streaming tree for it. Return: 0; -errno.
 */
int muster_comm_rails_join(struct muster_comm *comm);
/** muster_comm_rails_leave() - it is closed. */
void muster_comm_rails_leave(struct muster_comm *comm);

/** muster_rails_part() - of count elements those of one of nr rails: how many, and where they begin. */
uint64_t muster_rails_part(uint64_t count, uint32_t nr, uint32_t rail, uint64_t *first);
/** muster_rails_take() - whether an operation goes over all of them; the same on every rank. */
bool muster_rails_take(const struct muster_comm *comm, const struct muster_call *call);
/** muster_rails_make() - as muster_request_make(), of one that does: the first part's, with the others behind it. */
int muster_rails_make(struct muster_comm *comm, const struct muster_call *call, const void *in,
		      void *out, struct muster_request **request);
/** muster_rails_ended() - whether all other parts of an operation are done. */
static inline bool muster_rails_ended(const struct muster_request *request)
{
	while ((request = request->next_rail))
		if (request->state != MUSTER_REQUEST_DONE || request->result)
			return false;
	return true;
}

/** muster_rails_words() - what is to be said of an operation over several: before the first's why, and behind it. */
void muster_rails_words(const struct muster_request *request, char *before, size_t before_len,
			char *behind, size_t behind_len);
/** muster_rails_awaited() - of the oldest operation: the rail's communicator that it waits on. */
struct muster_comm *muster_rails_awaited(struct muster_comm *comm);

/** muster_rails_abort() - a communicator has failed: so have those of the other rails. */
void muster_rails_abort(struct muster_comm *comm);
/** muster_rail_failed() - one of another rail has, from what its device said: so has the whole. */
void muster_rail_failed(struct muster_comm *comm, uint8_t status, uint32_t culprit);
/** muster_rail_gave_up() - it has, as this rank cannot go on. */
void muster_rail_gave_up(struct muster_comm *comm, int err, uint32_t culprit);

#endif /* MUSTER_RAILS_H */
