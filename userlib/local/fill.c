// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The two ways to write what a peer reads (fill.h). */
#include "fill.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "arith.h"
#include "clock.h"

#ifdef __SSE2__
static void move_past(uint8_t *to, const uint8_t *from, size_t bytes)
{
	enum { LINE = 64, PART = sizeof(__m128i) };
	size_t at = 0;

	for (; bytes - at >= LINE; at += LINE)
		for (size_t part = at; part < at + LINE; part += PART)
			_mm_stream_si128((__m128i *)(to + part), _mm_loadu_si128((const __m128i *)(from + part)));
	_mm_sfence();	/* before the peer hears of it */
	memcpy(to + at, from + at, bytes - at);
}
#else	/* both ways are one */
static void move_past(uint8_t *to, const uint8_t *from, size_t bytes)
{
	memcpy(to, from, bytes);
}
#endif

bool muster_fill_past(struct muster_fill *fill)
{
	if (!fill->took[!fill->past] || ++fill->copies == MUSTER_FILL_AGAIN) {
		fill->copies = 0;
		return !fill->past;
	}
	return fill->past;
}

void muster_fill_took(struct muster_fill *fill, bool past, uint64_t ns, size_t bytes)
{
	fill->took[past] = ns * MUSTER_FILL_TIMED / bytes + 1;
	if (fill->took[!past])
		fill->past = 2 * fill->took[false] > MUSTER_FILL_FAR * fill->took[true];
}

void muster_fill(struct muster_fill *fill, void *to, const void *from, size_t bytes)
{
	uint64_t begun;
	bool past;

	if (bytes < MUSTER_FILL_TIMED) {
		muster_arith_move(to, from, bytes);
		return;
	}
	past = muster_fill_past(fill);
	begun = muster_clock_ns();
	if (past)
		move_past(to, from, bytes);
	else
		muster_arith_move(to, from, bytes);
	muster_fill_took(fill, past, muster_clock_ns() - begun, bytes);
}
