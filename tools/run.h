/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The three parts of muster-run: options and the front process (muster-run.c),
 * the keeper that starts and watches the ranks (run_keeper.c), and the lines
 * that they print (run_output.c).
 */
#ifndef MUSTER_RUN_H
#define MUSTER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum run_limit {
	RUN_RANKS_MAX = 1024,
	RUN_LINE_MAX = 64 << 10,	/* a longer line is printed in pieces */
	RUN_SINK_MAX = 1 << 20,		/* waiting for our reader; then ranks wait too */
	RUN_STOP_MS = 2000,		/* from SIGTERM to SIGKILL */
};

/* Exit statuses of muster-run's own, as of sh and env. */
enum run_exit {
	RUN_EXIT_USAGE = 2,
	RUN_EXIT_FAILED = 125,
	RUN_EXIT_CANNOT_RUN = 126,
	RUN_EXIT_NOT_FOUND = 127,
	RUN_EXIT_SIGNAL = 128,		/* plus the signal */
};

enum run_bind {
	RUN_BIND_AUTO,			/* when there are at most as many ranks as CPUs */
	RUN_BIND_ON,
	RUN_BIND_OFF,
};

struct run_options {
	uint32_t nr;
	bool prefix;
	enum run_bind bind;
	uint64_t grace_ms;
	char *const *argv;		/* the program and its arguments */
};

/**
 * run_keeper() - start the ranks, watch them to their end, leave nothing behind.
 * @front: the process that started this one; when it is gone everything is killed.
 * Return: the exit status of the whole.
 */
int run_keeper(const struct run_options *options, pid_t front);

/**
 * run_kill_descendants() - kill and reap all that this process started and all
 * that these left behind. The caller must be a child subreaper.
 */
void run_kill_descendants(void);

/* Lines on their way to stdout or stderr. */
struct run_sink {
	int fd;
	int error;			/* why it cannot be written to, 0 if it can */
	char *data;
	size_t len;
	size_t size;
};

/* What one rank writes to its stdout or stderr, cut into lines. */
struct run_stream {
	int fd;				/* -1: at its end */
	struct run_sink *sink;
	char prefix[16];		/* "[2] ", or empty */
	bool inside;			/* a piece of the present line is out already */
	size_t len;
	char line[RUN_LINE_MAX];
};

/** run_sink_print() - queue a line of our own. */
void run_sink_print(struct run_sink *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/** run_sink_flush() - write as much as the reader takes without blocking. */
void run_sink_flush(struct run_sink *sink);
/** run_stream_read() - take what is there, queue its whole lines. Return: was there anything? */
bool run_stream_read(struct run_stream *stream);
/** run_stream_end() - queue what is left, an unfinished line, and close. */
void run_stream_end(struct run_stream *stream);

#endif /* MUSTER_RUN_H */
