/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Schedules to look at: as sends in the paper's words, as JSON, as a picture.
 */
#ifndef MUSTER_SYNTH_SHOW_H
#define MUSTER_SYNTH_SHOW_H

#include "synth.h"
#include "torus.h"

/**
 * muster_show_sends() - "send 1 from 0 to 3 at step 0", the matrix of the topology, and
 * how much of each link a step uses (SCCL, appendix A.5.1). 0; -EINVAL with why; -EIO.
 */
int muster_show_sends(const struct muster_schedule *schedule,
		      const struct muster_topology *topology, FILE *out, char *why, size_t why_len);

/** muster_show_json() - read by muster_show_json_read(). 0; -EIO; -ENOMEM. */
int muster_show_json(const struct muster_schedule *schedule, FILE *out);

/** muster_show_json_read() - 0; -EINVAL with why ("line N: ..."); -ENOMEM. */
int muster_show_json_read(FILE *in, struct muster_schedule **schedule, char *why, size_t why_len);

/** muster_show_picture() - SVG: the topology, then the loads of each step. Return as sends. */
int muster_show_picture(const struct muster_schedule *schedule,
			const struct muster_topology *topology, FILE *out, char *why,
			size_t why_len);

/** muster_show_torus() - SVG: the load by step and channel. 0; -EIO. */
int muster_show_torus(const struct muster_torus_plan *plan,
		      const struct muster_torus_report *report, FILE *out);

#endif /* MUSTER_SYNTH_SHOW_H */
