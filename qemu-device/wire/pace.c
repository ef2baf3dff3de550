// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How fast a link sends (pace.h): the timer of Jacobson, measured as Karn says, doubled for
 * each try; what was late halves what may be on its way, once a round trip.
 */
#include "pace.h"

enum { DOUBLED_MAX = 8 };

void muster_pace_init(struct muster_pace *pace)
{
	*pace = (struct muster_pace){
		.flight_max = MUSTER_PACE_FLIGHT_FIRST, .rto_us = MUSTER_PACE_RTO_FIRST_US,
	};
}

void muster_pace_measure(struct muster_pace *pace, uint64_t sample_us)
{
	uint32_t rtt = sample_us < MUSTER_PACE_RTO_MAX_US ? sample_us : MUSTER_PACE_RTO_MAX_US;
	uint32_t off = rtt > pace->srtt_us ? rtt - pace->srtt_us : pace->srtt_us - rtt;
	uint32_t rto;

	if (!pace->srtt_us) {
		pace->srtt_us = rtt + 1;
		pace->rttvar_us = rtt / 2;
	} else {
		pace->rttvar_us = (3 * pace->rttvar_us + off) / 4;
		pace->srtt_us = (7 * pace->srtt_us + rtt) / 8 + 1;
	}
	rto = pace->srtt_us + 4 * pace->rttvar_us + MUSTER_PACE_ACK_DELAY_US;
	if (rto < MUSTER_PACE_RTO_MIN_US)
		rto = MUSTER_PACE_RTO_MIN_US;
	pace->rto_us = rto < MUSTER_PACE_RTO_MAX_US ? rto : MUSTER_PACE_RTO_MAX_US;
}

uint64_t muster_pace_wait_us(const struct muster_pace *pace, uint32_t tries)
{
	uint64_t wait = (uint64_t)pace->rto_us << (tries < DOUBLED_MAX ? tries : DOUBLED_MAX);

	return wait < MUSTER_PACE_RTO_MAX_US ? wait : MUSTER_PACE_RTO_MAX_US;
}

void muster_pace_shrink(struct muster_pace *pace, uint64_t now_us)
{
	if (now_us < pace->shrunk_us + pace->rto_us)
		return;
	pace->shrunk_us = now_us;
	pace->flight_max /= 2;
	if (pace->flight_max < MUSTER_PACE_FLIGHT_MIN)
		pace->flight_max = MUSTER_PACE_FLIGHT_MIN;
}
