// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The folder of this program's file (folder.h), wherever it was called from. */
#include "folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int muster_folder(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);

	if (len < 0)
		return -errno;
	path[len] = '\0';
	*strrchr(path, '/') = '\0';
	return 0;
}
