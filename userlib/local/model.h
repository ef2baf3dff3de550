/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An engine's model (struct muster_engine_model) as text: what MUSTER_ENGINE may say. */
#ifndef MUSTER_MODEL_H
#define MUSTER_MODEL_H

#include <stddef.h>

#include "engine.h"

/**
 * muster_model_read() - from "units=2,buffer=64K,window=4,pulses=1,engine-threads=2", or some of these.
 *
 * @name: what it was given as, for @why.
 * @text: NULL: all as it is by default.
 *
 * Return: 0; or -EINVAL.
 */
int muster_model_read(const char *name, const char *text, struct muster_engine_model *model, char *why,
		      size_t why_len);

#endif /* MUSTER_MODEL_H */
