// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Launchers, by the variables that they set for each process: our own first, which a program
 * under another one may set to something else; then those of Open MPI, of MPICH and others that
 * speak PMI, and of Slurm, which may have started one of the former.
 */
#include "launcher.h"

#include <stddef.h>
#include <stdlib.h>

static const struct muster_launcher launchers[] = {
	{ "MUSTER_RANK", "MUSTER_SIZE" },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" },
	{ "SLURM_PROCID", "SLURM_NTASKS" },
};

const struct muster_launcher *muster_launcher_find(void)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (getenv(launchers[i].rank) || (!i && getenv(launchers[i].size)))
			return &launchers[i];
	return &launchers[0];
}
