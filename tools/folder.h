/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where a tool finds what was built, or installed, beside it. */
#ifndef MUSTER_FOLDER_H
#define MUSTER_FOLDER_H

#include <stddef.h>

/** muster_folder() - that of this program's file, without a slash behind. Return: 0 or -errno. */
int muster_folder(char *path, size_t size);

#endif /* MUSTER_FOLDER_H */
