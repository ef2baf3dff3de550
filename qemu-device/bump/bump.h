/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The bump in the wire: an element of the network beside a host. It takes the
 * host's UDP requests, carries collectives out with its neighbours, and answers;
 * all other traffic passes (Arap et al., "Offloading Collective Operations to
 * Programmable Logic"; the protocol is Documentation/bump.md).
 *
 * Port 0 is the host's, the others lead to neighbours. It knows no socket, clock,
 * thread or allocator: it reaches the world through struct muster_bump_world and
 * the caller steps it. One caller at a time; the world must not call it back.
 */
#ifndef MUSTER_BUMP_BUMP_H
#define MUSTER_BUMP_BUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_bump.h"

enum { MUSTER_BUMP_HOST_PORT = 0, MUSTER_BUMP_NO_PORT = 0xff };

struct muster_bump;

/* An Ethernet frame without its check sequence. */
struct muster_bump_frame {
	uint8_t *data;
	uint32_t len;
	bool unchecked;		/* its UDP checksum is still to be made: not to be verified */
	bool segmented;		/* a device will cut it into several packets */
	uint8_t offload[12];	/* the port's own; passed on unread, zero in frames of the bump */
};

struct muster_bump_world {
	/* Monotonic time in microseconds. */
	uint64_t (*now_us)(void *world);
	/* The next frame that has come to a port, valid until the next call. False: none. */
	bool (*receive)(void *world, uint32_t port, struct muster_bump_frame *frame);
	/* Keep a copy, or say false: the queue is full, and the frame is dropped. */
	bool (*send)(void *world, uint32_t port, const struct muster_bump_frame *frame);
	void *(*alloc)(void *world, size_t bytes);	/* zeroed; or NULL */
	void (*free)(void *world, void *p);
};

struct muster_bump_config {
	uint16_t element;	/* this one's number, below nr_elements */
	uint16_t nr_elements;	/* 1 to MUSTER_BUMP_HOSTS_MAX */
	uint32_t nr_ports;	/* 1 to MUSTER_BUMP_PORTS_MAX, with the host's */
	uint32_t open_ports;	/* mask: where other traffic passes; with all others a tree */
	const uint8_t *routes;	/* by element: the port towards it, or MUSTER_BUMP_NO_PORT; copied */
	const uint16_t *neighbours;	/* by port: the element at its other end; [0] unused; copied */
	uint16_t udp_port;	/* 0: MUSTER_BUMP_PORT */
	uint32_t address;	/* IPv4, for whose MAC address it answers the host; 0: none */
	uint32_t nr_keys;	/* 1 to MUSTER_BUMP_KEYS_MAX */
	const uint64_t *keys;	/* copied */
	uint32_t repair_us;	/* how long to wait for a step before asking for it; 0: 2000 */
};

/* Counts since creation, but for what is live now. */
struct muster_bump_counters {
	uint64_t requests;	/* taken */
	uint64_t repeated;	/* requests that were there already, or answered again */
	uint64_t responses;
	uint64_t errors;	/* error responses */
	uint64_t operations;	/* completed */
	uint64_t failed;	/* operations */
	uint64_t data_in;	/* steps from other bumps */
	uint64_t data_out;
	uint64_t duplicates;	/* steps that were there already, or of completed operations */
	uint64_t transit;	/* packets between other bumps */
	uint64_t wants_in;
	uint64_t wants_out;
	uint64_t repaired;	/* steps sent again */
	uint64_t dropped_key;	/* offload packets of strangers */
	uint64_t dropped_bad;	/* offload packets that make no sense */
	uint64_t dropped_early;	/* steps that have no place yet; asked for later */
	uint64_t dropped_full;	/* frames that a port did not take */
	uint64_t dropped_memory;
	uint64_t passed;	/* frames of other traffic */
	uint64_t passed_bytes;
	uint64_t live;		/* operations that are running */
	uint64_t groups;	/* that are known */
};

/** muster_bump_create() - Return: 0; -EINVAL: the configuration is wrong; -ENOMEM. */
int muster_bump_create(const struct muster_bump_config *config,
		       const struct muster_bump_world *world, void *opaque,
		       struct muster_bump **bump);
void muster_bump_free(struct muster_bump *bump);

/**
 * muster_bump_step() - take one frame, from the next port that has one, and do all
 * that follows from it; ask for what is overdue. Return: whether there was a frame.
 */
bool muster_bump_step(struct muster_bump *bump);

/**
 * muster_bump_deadline_us() - when it wants to be stepped though nothing comes;
 * UINT64_MAX: never.
 */
uint64_t muster_bump_deadline_us(const struct muster_bump *bump);

const struct muster_bump_counters *muster_bump_counters(const struct muster_bump *bump);

#endif /* MUSTER_BUMP_BUMP_H */
