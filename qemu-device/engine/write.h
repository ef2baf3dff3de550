/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One-sided writes between a context and its members (write.c): what is kept of each peer while
 * there are any, and what whose writes they are does with them.
 */
#ifndef MUSTER_ENGINE_WRITE_H
#define MUSTER_ENGINE_WRITE_H

#include "internal.h"

/* With a peer. Numbers are counted from 0 in each direction; their bits are by number % 32. */
struct writing {
	uint32_t next;		/* of what is sent to it, */
	uint32_t open;		/* and those that it has not answered */
	uint32_t from;		/* of what comes from it the oldest that has not, */
	uint32_t came;		/* and those that have, counted from that one */
	uint32_t owed;		/* those of them that were not answered yet, */
	uint32_t refused;	/* and what is said of them then */
	uint16_t next_owed;	/* index of the next peer that is owed an answer + 1 */
	bool listed;
};

struct writes {
	uint16_t owed_first;	/* index + 1 */
	struct writing of[];	/* by index of the peer */
};

static inline bool muster_writes_owe(const struct context *ctx)
{
	return ctx->writes && ctx->writes->owed_first;
}
/* Send what can be of it. Return: 0; -EAGAIN; -EHOSTUNREACH; -ECANCELED: the context has failed. */
int muster_write_go_on(struct context *ctx, struct outgoing *out);
/* All of it has been answered, or of what was refused all that has gone. */
static inline bool muster_write_is_over(const struct outgoing *out)
{
	return !out->open && (out->gone || out->refused);
}
/* Its member has left, and no answer is on its way. */
bool muster_write_is_hopeless(const struct context *ctx, const struct outgoing *out);
void muster_write_answered(struct context *ctx, uint32_t member, const struct muster_packet *packet);
void muster_write_receive(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			  const void *payload);

#endif /* MUSTER_ENGINE_WRITE_H */
