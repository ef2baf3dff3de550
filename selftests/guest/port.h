/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs that run in guests share: two virtual ports of the guest's
 * NIC, joined in one context, and messages from the first to the second.
 * Functions return 0 or -errno.
 */
#ifndef GUEST_PORT_H
#define GUEST_PORT_H

#include "musterdv.h"

enum {
	PORT_ENTRIES = 8,	/* of each ring */
	PORT_JOB = 7,
	PORT_CONTEXT = 3,
	PORT_WAIT_MS = 120000,	/* for what is sure to come; guests can be slow */
};

struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct musterdv_job *job;
	struct musterdv_vp *vps[2];
	struct musterdv_context *contexts[2];
	uint32_t sent;			/* descriptors posted at the first */
};

/* The first Muster NIC; NULL if there is none or it does not open, and errno. */
struct ibv_context *device_open(void);

/* All of it, or nothing. */
int pair_open(struct pair *pair);
/* The same of a device that is open; closes that, too, when it fails. */
int pair_open_at(struct pair *pair, struct ibv_context *ctx);
/* And with receive rings of another size. */
int pair_open_sized(struct pair *pair, struct ibv_context *ctx, uint32_t rq_entries);
int pair_close(struct pair *pair);

/* Descriptor at the next place of the first port's ring; rings nothing. */
void pair_put(struct pair *pair, struct muster_desc desc);
void pair_ring(const struct pair *pair);
struct muster_desc pair_message(const struct pair *pair, const char *text);

/* The i-th completion of a port or packet at it, when it has come; NULL: it has not. */
const struct muster_cqe *port_completion(const struct musterdv_vp *vp, uint32_t i);
const struct muster_recv_slot *port_packet(const struct musterdv_vp *vp, uint32_t i);

/* Send one message and give back what it has used: 0, -ETIMEDOUT, or -EIO. */
int pair_exchange(struct pair *pair);

#endif /* GUEST_PORT_H */
