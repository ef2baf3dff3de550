/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Instances as formulas for Z3. Two encodings of the same question: the plain one
 * is the paper's constraints C1 to C6 word by word, with integer times; the quick
 * one has a Boolean for each send that can be of use in each step. A formula has
 * a model exactly if the instance has a solution; with a quotient, only if it does;
 * with a window, if it has one that can be started again in each of so many steps.
 */
#ifndef MUSTER_SYNTH_ENCODE_H
#define MUSTER_SYNTH_ENCODE_H

#include <z3.h>

#include "instance.h"
#include "quotient.h"

struct muster_encoding {
	const struct muster_instance *instance;
	const struct muster_quotient *quotient;	/* NULL: none; the quick one only */
	uint32_t window;		/* so many steps together carry what one can; quick, 0: 1 */
	Z3_context z3;
	Z3_solver solver;
	Z3_ast *sent;			/* quick: by chunk, link and step; plain: chunk, link */
	Z3_ast *times;			/* plain: by chunk and node */
};

/** muster_encode_plain() - C1 to C6. 0; -ENOMEM. */
int muster_encode_plain(struct muster_encoding *encoding);

/** muster_encode_quick() - time-indexed Booleans. 0; -ENOMEM. */
int muster_encode_quick(struct muster_encoding *encoding);

/** muster_encode_direct() - of an instance with a shape. 0; -ENOMEM. */
int muster_encode_direct(struct muster_encoding *encoding);

struct muster_solution *muster_decode_direct(const struct muster_encoding *encoding,
					     Z3_model model);

/** muster_decode_plain(), muster_decode_quick() - the solution in a model. NULL: no memory. */
struct muster_solution *muster_decode_plain(const struct muster_encoding *encoding,
					    Z3_model model);
struct muster_solution *muster_decode_quick(const struct muster_encoding *encoding,
					    Z3_model model);

#endif /* MUSTER_SYNTH_ENCODE_H */
