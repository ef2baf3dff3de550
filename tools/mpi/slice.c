// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Runs a command whose processes get the CPU for so many microseconds at a time, instead
 * of the scheduler's usual milliseconds: who polls then gives way to who has a packet.
 * Linux 6.12 and newer; older ones leave it as it is. usage: slice MICROSECONDS COMMAND...
 */
#include <err.h>
#include <linux/sched/types.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sched_attr attr = { .size = sizeof(attr) };

	if (argc < 3)
		errx(2, "usage: slice MICROSECONDS COMMAND...");
	attr.sched_runtime = strtoull(argv[1], NULL, 10) * 1000;
	if (attr.sched_runtime && syscall(SYS_sched_setattr, 0, &attr, 0))
		warn("slices stay as they are");
	execvp(argv[2], argv + 2);
	err(127, "%s", argv[2]);
}
