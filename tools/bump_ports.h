/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ports of muster-bumpd: Ethernet devices (AF_PACKET) and tunnels (UDP). A frame
 * comes with what a virtual device says about it, its unfinished checksum and the
 * segments that it is to be cut into, and leaves with it; so large segments pass whole.
 */
#ifndef MUSTER_BUMP_PORTS_H
#define MUSTER_BUMP_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bump.h"

enum { BUMP_FRAME_MAX = 68 << 10, BUMP_PORT_NAME_MAX = 64 };

struct bump_port {
	char name[BUMP_PORT_NAME_MAX];
	int fd;				/* -1: not open */
	bool tunnel;
	bool ready;			/* there may be frames */
	uint8_t *frame;			/* BUMP_FRAME_MAX */
	uint64_t missed;		/* frames that came when the queue was full, so far as known */
};

/* Faults on purpose, of 1,000 frames that leave for neighbours: to test with. */
struct bump_faults {
	uint32_t loss, repeat, reorder;
	uint64_t rng;
};

/**
 * bump_port_open() - by name: a device, or "udp:ADDRESS:PORT,ADDRESS:PORT" (ours, theirs).
 * Return: 0; -EINVAL: no such form; or what the system said.
 */
int bump_port_open(struct bump_port *port, const char *name);
void bump_port_close(struct bump_port *port);
/** bump_port_receive() - one frame, valid until the next; false: there is none now. */
bool bump_port_receive(struct bump_port *port, struct muster_bump_frame *frame);
/** bump_port_send() - false: the queue is full, or the device does not take it. */
bool bump_port_send(struct bump_port *port, const struct muster_bump_frame *frame);
/** bump_port_missed() - how many frames came when the queue was full, since it was opened. */
uint64_t bump_port_missed(struct bump_port *port);

#endif /* MUSTER_BUMP_PORTS_H */
