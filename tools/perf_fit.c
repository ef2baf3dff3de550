// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A cost model of what was measured: us = a + b bytes, one pair of numbers for short messages and
 * one for long ones. Errors count in relation to the time, as sizes and times span decades. Where
 * short messages end is where both together are off the least.
 */
#include "perf.h"

#include <math.h>

enum { PIECE_MIN = 3 };		/* measurements of one piece */

/* Least squares of (a + b x) / y - 1. Return: their sum. */
static double fit_piece(const uint64_t *bytes, const double *us, uint32_t nr, struct perf_piece *piece)
{
	double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, determinant, off = 0;

	for (uint32_t i = 0; i < nr; i++) {
		double x = (double)bytes[i], weight = 1 / us[i] / us[i];

		w += weight;
		wx += weight * x;
		wxx += weight * x * x;
		wy += weight * us[i];
		wxy += weight * x * us[i];
	}
	determinant = w * wxx - wx * wx;
	piece->us_per_byte = determinant > 1e-9 * w * wxx ? (w * wxy - wx * wy) / determinant : 0;
	/* Nothing is faster for being longer. */
	piece->us_per_byte = fmax(piece->us_per_byte, 0);
	piece->us = (wy - piece->us_per_byte * wx) / w;
	for (uint32_t i = 0; i < nr; i++) {
		double share = (piece->us + piece->us_per_byte * (double)bytes[i]) / us[i] - 1;

		off += share * share;
	}
	return off;
}

void perf_model_fit(struct perf_model *model, const uint64_t *bytes, const double *us, uint32_t nr)
{
	struct perf_model pieces;
	double least = fit_piece(bytes, us, nr, &model->above);

	model->short_max = 0;
	model->below = model->above;
	for (uint32_t split = PIECE_MIN; split + PIECE_MIN <= nr; split++) {
		double off = fit_piece(bytes, us, split, &pieces.below) +
			     fit_piece(bytes + split, us + split, nr - split, &pieces.above);

		if (off >= least)
			continue;
		least = off;
		pieces.short_max = bytes[split - 1];
		*model = pieces;
	}
	model->off = nr ? sqrt(least / nr) : 0;
}

double perf_model_us(const struct perf_model *model, uint64_t bytes)
{
	const struct perf_piece *piece = bytes <= model->short_max ? &model->below : &model->above;

	return piece->us + piece->us_per_byte * (double)bytes;
}
