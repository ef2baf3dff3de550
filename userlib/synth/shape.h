/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A shape: a schedule without transfers, which says what is asked for: who has which
 * chunk, who needs it, what is combined. Of a collective among those nodes that are no
 * switches, or of a file.
 */
#ifndef MUSTER_SYNTH_SHAPE_H
#define MUSTER_SYNTH_SHAPE_H

#include "instance.h"

/**
 * muster_shape_make() - of a collective; custom if the topology has switches.
 * @chunks: as muster_instance_make() counts them.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_shape_make(const struct muster_topology *topology, enum muster_coll coll, uint32_t root,
		      uint32_t chunks, struct muster_schedule **shape, char *why, size_t why_len);

/**
 * muster_shape_read() - a file's own conditions (Documentation/synthesis.md).
 * Return: as muster_topology_read().
 */
int muster_shape_read(FILE *in, const struct muster_topology *topology,
		      struct muster_schedule **shape, char *why, size_t why_len);

/** muster_shape_combines() - whether contributions are combined anywhere. */
bool muster_shape_combines(const struct muster_schedule *shape);

/** muster_shape_schedule() - with a solution's transfers. 0; -EINVAL; -ENOMEM. */
int muster_shape_schedule(const struct muster_schedule *shape, const char *name,
			  const struct muster_topology *topology,
			  const struct muster_solution *solution,
			  struct muster_schedule **schedule);

/** muster_shape_verify() - by the checker of schedules. 0; -EINVAL with why; -ENOMEM. */
int muster_shape_verify(const struct muster_instance *instance,
			const struct muster_solution *solution, char *why, size_t why_len);

/** muster_shape_trim() - drop each send without which it is right, too. 0; -ENOMEM. */
int muster_shape_trim(const struct muster_instance *instance, struct muster_solution *solution);

#endif /* MUSTER_SYNTH_SHAPE_H */
