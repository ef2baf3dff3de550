/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pipelining: where each step has one round, a share of the chunks may do what the
 * share before it did a step earlier. What has to be found is then the way of one
 * share, such that so many copies, a step apart, fit over each other. As with a
 * quotient, finding none says nothing.
 */
#ifndef MUSTER_SYNTH_PIPELINE_H
#define MUSTER_SYNTH_PIPELINE_H

#include "instance.h"

/**
 * muster_pipeline_share() - the instance of one share of so many.
 * Return: 0; -EINVAL: chunks of the same places cannot be shared so; -ENOMEM.
 */
int muster_pipeline_share(const struct muster_instance *instance, uint32_t shares,
			  struct muster_instance **share);

/** muster_pipeline_expand() - all shares, each a step after the one before. 0; -ENOMEM. */
int muster_pipeline_expand(const struct muster_instance *instance, uint32_t shares,
			   const struct muster_solution *of_share,
			   struct muster_solution **solution);

#endif /* MUSTER_SYNTH_PIPELINE_H */
