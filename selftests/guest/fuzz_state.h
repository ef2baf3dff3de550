/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Between fuzz_calls.c, which runs programs and owns what they have made, and fuzz_verbs.c and
 * fuzz_ioctl.c, which know the commands and ioctls that make it.
 */
#ifndef GUEST_FUZZ_STATE_H
#define GUEST_FUZZ_STATE_H

#include <stddef.h>

#include "fuzz_calls.h"

enum {
	FUZZ_OBJECTS = 8,		/* of each type that are remembered, of a file */
	FUZZ_OFFSETS = 32,
	FUZZ_PAGE = 4096,
	FUZZ_MEMORY_BYTES = 16 * FUZZ_PAGE,	/* of what is registered */
};

enum fuzz_type { PD, MR, CQ, QP, SRQ, JOB, CONTEXT, CHANNEL, FUZZ_TYPES };

enum fuzz_kind {
	OPEN, CLOSE, PD_ALLOC, PD_DEALLOC, MR_REG, MR_DEREG, CHANNEL_CREATE, CQ_CREATE, CQ_DESTROY,
	CQ_ARM, VP_CREATE, QP_CREATE, QP_DESTROY, QP_MODIFY, QP_QUERY, JOB_CREATE, JOB_DESTROY,
	CONTEXT_OPEN, CONTEXT_CLOSE, CONTEXT_ABORT, MAP, UNMAP, REMAP, PROTECT, RING, BELL, QUERY,
	COMMAND, IOCTL, FORK, EVENT, SRQ_CREATE, SRQ_DESTROY, SRQ_MODIFY, SRQ_QUERY, CQ_CREATE_EX,
	CQ_MODERATE, CQ_RESIZE, QP_CREATE_EX, QUERY_EX, MEMORY, CONTEXT_TREE, FUZZ_KINDS,
};

struct fuzz_file {
	int fd;				/* -1: closed */
	int async;			/* 0: none */
	uint32_t objects[FUZZ_TYPES][FUZZ_OBJECTS];
	uint32_t nr_objects[FUZZ_TYPES];
	struct { uint64_t offset, bytes; } offsets[FUZZ_OFFSETS];
	uint32_t nr_offsets;
};

extern struct fuzz_file *fuzz_file;	/* of the present call */
extern uint64_t fuzz_bend;		/* 0: the call is as it should be */

/* Limits, and one beyond. */
uint32_t fuzz_odd_number(uint64_t *state);
void fuzz_file_close(void);
/* Of its own for each region: the kernel that watches DMA minds memory that is registered twice. A
 * program that comes later has the same again, if nothing was done to it. */
char *fuzz_memory_new(void);
/* Bytes of ours before the kernel reads them: bits, words, or all of them. */
void fuzz_bend_bytes(void *bytes, size_t len);
void fuzz_made(enum fuzz_type type, uint32_t handle);
/* A number chooses among those there are, or is taken as it is. */
uint32_t fuzz_chosen(enum fuzz_type type, uint32_t which);
/* Each does nothing if it is none of its. */
void fuzz_verbs_run(const struct fuzz_call *call);
void fuzz_ioctl_run(const struct fuzz_call *call);

#endif /* GUEST_FUZZ_STATE_H */
