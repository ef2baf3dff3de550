/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The steps of a walk over who waits for whom, and how they are said. */
#ifndef MUSTER_TOOLS_EXPLAIN_WORDS_H
#define MUSTER_TOOLS_EXPLAIN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_look.h"

/* A step of the walk. */
struct hop {
	uint32_t rank;
	const struct muster_look_comm *comm;	/* NULL: makes a communicator */
	struct muster_look_wait wait;	/* what it waits for there */
	bool late;				/* and that rank has not called it */
};

/** explain_is_same_operation() - do both wait in it? */
bool explain_is_same_operation(const struct hop *a, const struct hop *b);

/** explain_say_hops() - into text, of EXPLAIN_WORDS_MAX. Return: its length. */
size_t explain_say_hops(char *text, const struct hop *hops, uint32_t nr);

#endif /* MUSTER_TOOLS_EXPLAIN_WORDS_H */
