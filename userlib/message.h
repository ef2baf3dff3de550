/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ordered streams of fragments between members (message.c), which the host path sends.
 */
#ifndef MUSTER_MESSAGE_H
#define MUSTER_MESSAGE_H

#include "internal.h"

struct muster_control;

/** muster_channel_open() - 0; -ENOMEM, and the communicator has ended. */
int muster_channel_open(struct muster_comm *comm);
/** muster_channel_close() - its context is closed. */
void muster_channel_close(struct muster_comm *comm);
/** muster_channels_forget() - those that await farewells still. */
void muster_channels_forget(struct muster *job);
/** muster_channel_control() - a rank has said something of a communicator. */
void muster_channel_control(struct muster *job, uint32_t rank,
			    const struct muster_control *control);
/** muster_channel_await() - the running step takes so many fragments of a member. */
void muster_channel_await(struct muster_comm *comm, uint32_t member, uint32_t nr);

struct muster_fragment {
	uint32_t member;
	uint32_t number;	/* of the operation */
	struct muster_signature signature;
	const void *data;
	uint32_t len;
	bool last;		/* of its message */
	uint32_t key;		/* of the memory at data; not needed for inline data */
};

/** muster_channel_send() - 0; -EAGAIN: no credit or no room now; -errno. Opened before. */
int muster_channel_send(struct muster_comm *comm, const struct muster_fragment *fragment);
/** muster_channel_sent() - the device says that a fragment has left, or never will. */
void muster_channel_sent(struct muster_comm *comm, uint32_t member, bool flushed);
/** muster_channel_receive() - a packet has come. */
void muster_channel_receive(struct muster_comm *comm, const struct muster_packet *packet,
			    const void *payload);
/**
 * muster_channel_clashes() - the NIC path begins an operation: has a member sent
 * something for it on the host path? The communicator has failed then.
 */
bool muster_channel_clashes(struct muster_comm *comm, uint32_t number);
/** muster_channel_deliver() - offer to take() what was kept of a member. */
void muster_channel_deliver(struct muster_comm *comm, uint32_t member);
/** muster_channel_flush() - say the farewells that are due, as far as there is room. */
void muster_channel_flush(struct muster_comm *comm);
/** muster_channel_say() - tell a rank what is due. Return: whether there was room for all of it. */
bool muster_channel_say(struct muster_comm *comm, uint32_t rank);
/**
 * muster_channel_leave() - tell those with whom something was exchanged that no further
 * operation is joined from here.
 */
void muster_channel_leave(struct muster_comm *comm);
/** muster_channel_has_left() - whether they were told. */
bool muster_channel_has_left(const struct muster_comm *comm);
/** muster_channel_left() - whether a member left before that operation, which then has failed. */
bool muster_channel_left(struct muster_comm *comm, uint32_t number);
/** muster_channel_idle() - whether all fragments have left. */
bool muster_channel_idle(const struct muster_comm *comm);
/**
 * muster_channel_probe() - an operation takes long: tell all members which it is, and ask
 * where they are. One that called something else in its place ends the communicator.
 */
void muster_channel_probe(struct muster_comm *comm);
/** muster_channel_silent() - how many members have not answered the last probe. */
uint32_t muster_channel_silent(const struct muster_comm *comm);
/**
 * muster_channel_who_is_late() - by their answers; names those that have not come to number.
 * Return: the only one, or the only one that does not answer; this rank, if there is no such.
 */
uint32_t muster_channel_who_is_late(const struct muster_comm *comm, uint32_t number, char *names,
				size_t len);

#endif /* MUSTER_MESSAGE_H */
