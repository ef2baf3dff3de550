/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Muster NICs as the kernel shows them in sysfs: found as PCI functions, by what they are
 * and by who drives them, never by a name. For whoever has no NIC open, or cannot open it.
 */
#ifndef MUSTER_SYSFS_H
#define MUSTER_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUSTER_SYSFS	"/sys"

struct muster_sysfs_nic {
	char pci[32];		/* address of the function */
	char driver[32];	/* that has it; empty: none has */
	char name[64];		/* as an RDMA device; empty: it is none */
	char uverbs[32];	/* its file in /dev/infiniband; empty: ib_uverbs is not there */
};

/**
 * muster_sysfs_nics() - Muster NICs of this machine, by PCI address.
 * @root: MUSTER_SYSFS, or what a test has made
 *
 * Return: how many there are; at most @max are written.
 */
unsigned int muster_sysfs_nics(const char *root, struct muster_sysfs_nic *nics, unsigned int max);

/**
 * muster_sysfs_read() - the first line of an attribute.
 * @path: below @root, as of printf()
 *
 * Return: 0 or -errno; then @line is empty.
 */
int muster_sysfs_read(const char *root, char *line, size_t len, const char *path, ...)
	__attribute__((format(printf, 4, 5)));

#endif /* MUSTER_SYSFS_H */
