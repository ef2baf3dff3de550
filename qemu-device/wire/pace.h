/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How fast a link sends: how long it waits for an acknowledgement, by the round trips that
 * it has seen, and how many packets may be on their way. In the wire's own room only.
 */
#ifndef MUSTER_WIRE_PACE_H
#define MUSTER_WIRE_PACE_H

#include <stdint.h>

enum muster_pace_limit {
	MUSTER_PACE_FLIGHT_FIRST = 32,		/* packets on their way at first, */
	MUSTER_PACE_FLIGHT_MIN = 4,		/* and at least, after losses */
	MUSTER_PACE_ACK_DELAY_US = 200,		/* an acknowledgement waits so long for a ride */
	MUSTER_PACE_RTO_FIRST_US = 20000,
	MUSTER_PACE_RTO_MIN_US = 2000,
	MUSTER_PACE_RTO_MAX_US = 200000,
};

struct muster_pace {
	uint32_t flight_max;
	uint32_t srtt_us, rttvar_us, rto_us;
	uint64_t shrunk_us;
};

void muster_pace_init(struct muster_pace *pace);

/** muster_pace_measure() - a round trip, of a frame that was sent once. */
void muster_pace_measure(struct muster_pace *pace, uint64_t sample_us);

/** muster_pace_wait_us() - for an answer to what was sent so many times before. */
uint64_t muster_pace_wait_us(const struct muster_pace *pace, uint32_t tries);

/** muster_pace_shrink() - frames were due without an answer: send less for a while. */
void muster_pace_shrink(struct muster_pace *pace, uint64_t now_us);

#endif /* MUSTER_WIRE_PACE_H */
