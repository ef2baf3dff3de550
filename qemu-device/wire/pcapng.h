/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets as a file that Wireshark reads: pcapng, link type USER0, nanoseconds. What is in a
 * packet there is struct muster_packet and its payload, and nothing before it. Each record
 * is written at once, so a file that ends early has whole ones.
 */
#ifndef MUSTER_PCAPNG_H
#define MUSTER_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#include "muster_wire.h"

enum {
	MUSTER_PCAPNG_SECTION = 0x0a0d0d0a,	/* types of blocks */
	MUSTER_PCAPNG_INTERFACE = 1,
	MUSTER_PCAPNG_PACKET = 6,
	MUSTER_PCAPNG_ORDER = 0x1a2b3c4d,
	MUSTER_PCAPNG_LINK = 147,		/* USER0 */
};

/* What all blocks begin with; length stands at their end as well. */
struct muster_pcapng_block {
	uint32_t type;
	uint32_t length;
};

struct muster_pcapng_packet {
	struct muster_pcapng_block block;
	uint32_t interface;
	uint32_t time_high;
	uint32_t time_low;
	uint32_t captured;
	uint32_t length;
};

/* All return 0 or -errno. */
int muster_pcapng_section(int fd);
int muster_pcapng_interface(int fd, const char *name);
/** muster_pcapng_packet() - of an interface, counted from 0 in the order in which they were written. */
int muster_pcapng_packet(int fd, uint32_t interface, uint64_t time_ns, const void *head,
			 size_t head_len, const void *payload, size_t payload_len);


/** muster_pcapng_create() - a new file with one interface, of that name: it is open, or -errno. */
int muster_pcapng_create(const char *path, const char *name);
/** muster_pcapng_now_ns() - before a packet goes: its answer must not have an earlier time. */
uint64_t muster_pcapng_now_ns(void);
/** muster_pcapng_sent() - a packet of that interface that has gone; without its job's key. */
int muster_pcapng_sent(int fd, uint64_t time_ns, const struct muster_packet *packet,
		       const void *payload);

#endif /* MUSTER_PCAPNG_H */
