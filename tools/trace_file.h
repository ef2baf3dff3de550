/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What was recorded of a job: the operations of each rank, with the messages that each took
 * and sent, on one clock. The file is JSON in Chrome's trace event format, which Perfetto
 * opens: a process for each rank, operations and what they waited for as slices, packets
 * as arrows. Beside the events it has the operations themselves, under "muster", for reports.
 */
#ifndef MUSTER_TOOLS_TRACE_FILE_H
#define MUSTER_TOOLS_TRACE_FILE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_look.h"

struct trace_rank {
	pid_t pid;		/* 0: it was not seen */
	char path[64];		/* of its page */
	struct muster_look_file *file;	/* mapped; stays when the process has gone */
	uint64_t next;		/* the record to read next */
	uint64_t lost;		/* overwritten before they were read, or more than there is room for */
	struct muster_trace_record *records;	/* time: nanoseconds */
	size_t nr, max;
};

/* Who is which member of a communicator, as long as it was seen. Contexts come round, lives do not. */
struct trace_member {
	uint32_t context;
	uint32_t life;
	uint32_t lead;		/* of several with such a context at once, the one that begins so */
	uint32_t member;
	uint32_t rank;
};

struct trace {
	uint64_t job;
	uint32_t size;
	char command[32];
	struct trace_rank *ranks;
	struct trace_member *members;
	size_t nr_members;
};

/** trace_json() - the whole file; NULL: no memory. Sorts the members. */
json_t *trace_json(const struct trace *trace);

#endif /* MUSTER_TOOLS_TRACE_FILE_H */
