/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of muster_hello share: muster_hello.c (options, order, the verdict),
 * hello_machine.c (what is there and may be used) and hello_run.c (whether it works).
 */
#ifndef MUSTER_HELLO_H
#define MUSTER_HELLO_H

#include "diag.h"

enum hello_result {
	HELLO_OK,
	HELLO_NONE,	/* not here, and nothing needs it */
	HELLO_SKIP,	/* not tried: something before it failed */
	HELLO_FAIL,
};

/* A line of the report, and, if it failed, what to do. */
struct hello_line {
	enum hello_result result;
	char text[DIAG_WHY_BYTES];
	char cure[DIAG_WHY_BYTES];
};

/* What is checked: nic is NULL where there is none, or only the local device was asked for. */
struct hello_machine {
	const struct muster_sysfs_nic *nic;
	bool local_only;
};

/** hello_say() - the line's result and its text; of a failure, the cure behind it. */
void hello_say(struct hello_line *line, enum hello_result result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void hello_cure(struct hello_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* hello_machine.c */
void hello_library(const struct hello_machine *machine, struct hello_line *line);
void hello_memory(const struct hello_machine *machine, struct hello_line *line);
void hello_files(const struct hello_machine *machine, struct hello_line *line);
void hello_nic(const struct hello_machine *machine, struct hello_line *line);
void hello_module(const struct hello_machine *machine, struct hello_line *line);
void hello_node(const struct hello_machine *machine, struct hello_line *line);
void hello_versions(const struct hello_machine *machine, struct hello_line *line);
void hello_memlock(const struct hello_machine *machine, struct hello_line *line);

/* hello_run.c */
void hello_run_local(const struct hello_machine *machine, struct hello_line *line);
void hello_run_nic(const struct hello_machine *machine, struct hello_line *line);

#endif /* MUSTER_HELLO_H */
