/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of muster_dump share: muster_dump.c (options, and what is printed) and
 * dump_read.c (files of packets, put in one order).
 */
#ifndef MUSTER_DUMP_H
#define MUSTER_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "muster_wire.h"

struct dump_record {
	uint64_t time_ns;
	uint32_t file;
	uint32_t length;	/* of packet and payload */
	const uint8_t *bytes;	/* at least a struct muster_packet; in the file's map */
};

struct dump_file {
	char name[64];		/* without folder and ending */
	uint8_t *map;
	size_t bytes;
	uint32_t strangers;	/* records that are no packets of ours */
};

struct dump {
	struct dump_file *files;
	uint32_t nr_files;
	struct dump_record *records;	/* in the order of time */
	uint64_t nr;
};

/** dump_read() - a file, or all *.pcapng of a folder. 0; -1 and why. May be repeated. */
int dump_read(struct dump *dump, const char *path, char *why, size_t why_len);
void dump_sort(struct dump *dump);
void dump_free(struct dump *dump);

#endif /* MUSTER_DUMP_H */
