/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A guest of `muster-vm --hotplug` speaks with its own QEMU. Functions return 0 or -errno.
 */
#ifndef GUEST_MONITOR_H
#define GUEST_MONITOR_H

#include <stddef.h>

int monitor_open(void);
/* A command of one line; line gets the next that has the word answer in it. */
int monitor_tell(const char *command, const char *answer, char *line, size_t size);

#endif /* GUEST_MONITOR_H */
