/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Between vm.c, which knows guests and what they say, and vm_qemu.c, which
 * knows how to run one: QEMU's command line and its process.
 */
#ifndef MUSTER_VM_QEMU_H
#define MUSTER_VM_QEMU_H

#include <sys/types.h>

#include "vm.h"

struct vm_qemu {
	const struct muster_vm_config *config;	/* complete: nothing is left to a default */
	unsigned int index;
	const char *dir;		/* the cluster's own, for its wire */
	const char *console;		/* file */
	const char *count;		/* file of the instruction count */
	const int *ports;		/* QEMU's ends: control, then rendezvous */
	unsigned int nr_ports;
};

/* Start it: 0 and *pid; -E2BIG for paths that are too long; or what fork said. */
int vm_qemu_spawn(const struct vm_qemu *qemu, pid_t *pid);

/* How much the kernel in that folder wants, if it says so in a file "memory". */
unsigned int vm_qemu_memory_mib(const char *dir, unsigned int otherwise);

/*
 * A clock that stands while its threads wait for a CPU (while several do it even goes
 * back), so that a guest is not taken for hung because the host is busy.
 */
int64_t vm_qemu_clock_ms(pid_t pid);

/* How much it has said on its console. */
long long vm_qemu_console_bytes(const char *path);

/* The last lines of it, which tell most often why it died. */
void vm_qemu_console_show(const char *path, unsigned int index);

#endif /* MUSTER_VM_QEMU_H */
