// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which libmuster this is. A file of its own, so that what asks for nothing else
 * needs nothing else.
 */
#include "version.h"

#include "muster.h"

const char *muster_version(void)
{
	return MUSTER_VERSION;
}
