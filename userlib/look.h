/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What other processes may see of this one (look.c): a page, and trace records.
 */
#ifndef MUSTER_LIBRARY_LOOK_H
#define MUSTER_LIBRARY_LOOK_H

#include "internal.h"

/** muster_look_open() - of a job whose device is open. Without it the job goes on all the same. */
void muster_look_open(struct muster *job);
/** muster_look_close() - the device is closed. */
void muster_look_close(struct muster *job);
void muster_look_comm_open(struct muster_comm *comm);
void muster_look_comm_close(struct muster_comm *comm);
/**
 * muster_look_tell() - this process waits for an operation of that communicator: say so, and
 * what each unfinished one waits for, unless that was said some milliseconds ago.
 */
void muster_look_tell(struct muster_comm *comm, uint64_t now_us);
/** muster_look_tested() - the same of one that comes and goes. */
void muster_look_tested(struct muster *job, uint64_t now_us);
/** muster_look_carried() - the same by the library's own thread, while its owner is elsewhere. */
void muster_look_carried(struct muster *job, uint64_t now_us);
/** muster_look_wait_for() - this process waits for a rank in the making of a communicator. */
void muster_look_wait_for(struct muster_comm *parent, uint32_t rank);
/**
 * muster_look_called(), _done() - record it while somebody wants that; the end of those alone
 * whose beginning was. Who is not recorded pays a test for each.
 */
void muster_look_trace_call(struct muster_request *request);
void muster_look_trace_done(struct muster_request *request);
static inline void muster_look_called(const struct muster *job, struct muster_request *request)
{
	if (__builtin_expect(*job->traced, 0))
		muster_look_trace_call(request);
}

static inline void muster_look_done(struct muster_request *request)
{
	if (__builtin_expect(request->traced, 0))
		muster_look_trace_done(request);
}

/** muster_look_add() - one thing more that an operation waits for. */
void muster_look_add(struct muster_look_waits *waits, uint8_t cause, uint32_t member);
/** muster_look_held() - of one that only has to get rid of what it has sent: to which members. */
void muster_look_held(const struct muster_comm *comm, struct muster_look_waits *waits);
/** muster_look_nodes() - on which nodes those are that its oldest operation waits for. Return: how many. */
uint32_t muster_look_nodes(const struct muster_comm *comm, uint32_t nodes[MUSTER_LOOK_WAITS_MAX]);
/** muster_look_place() - this process is elsewhere now. */
void muster_look_place(struct muster *job, enum muster_look_place place);

/** muster_look_first() - the first operation is another one: say which. On every one's path. */
static inline void muster_look_first(const struct muster_comm *comm)
{
	const struct muster_request *request = comm->first;
	const struct muster_entry *entry = request->entry;
	struct muster_look_comm *look = comm->look;
	const uint64_t bytes = entry->call.bytes;

	look->path = (uint8_t)request->path;
	look->signature = entry->signature;
	look->bytes = bytes;
}

#endif /* MUSTER_LIBRARY_LOOK_H */
