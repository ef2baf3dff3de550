/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Solved instances, kept in a folder, a file each, so that a search that was
 * interrupted goes on where it was. A solution that is read is verified again.
 */
#ifndef MUSTER_SYNTH_STORE_H
#define MUSTER_SYNTH_STORE_H

#include "solve.h"

/**
 * muster_store_solve() - muster_solve(), unless the folder has the answer already.
 * @folder: NULL: none is kept. It is made if it is not there.
 * Return: as muster_solve(); an answer that cannot be kept is no error.
 */
int muster_store_solve(const char *folder, const struct muster_instance *instance,
		       const struct muster_solve_options *options, struct muster_solved *solved);

#endif /* MUSTER_SYNTH_STORE_H */
