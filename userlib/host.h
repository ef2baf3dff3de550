/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * host.c: the path on the CPU. One operation of a communicator runs there at a time.
 */
#ifndef MUSTER_HOST_H
#define MUSTER_HOST_H

#include "internal.h"

/** muster_host_advance() - begin or go on with the oldest operation. Return: as run(). */
int muster_host_advance(struct muster_request *request);
/** muster_host_sends_to() - whether the running step is not through with sending to a member. */
bool muster_host_sends_to(const struct muster_comm *comm, uint32_t member);
/** muster_host_waits() - for which members the running operation waits. */
void muster_host_waits(const struct muster_comm *comm, struct muster_look_waits *waits);
/** muster_host_cancel() - forget the running operation. */
void muster_host_cancel(struct muster_comm *comm);
void muster_host_close(struct muster_comm *comm);
/** muster_host_take() - what its channels hand the next fragment of a member's stream to. */
int muster_host_take(struct muster_comm *comm, uint32_t member, uint32_t number,
		     const void *payload, uint32_t len, bool last);

#endif /* MUSTER_HOST_H */
