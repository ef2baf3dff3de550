/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of muster-run: options and the front process (muster-run.c), the
 * keeper that watches the ranks and decides when they end (run_keeper.c), the two
 * places where they can run, at once at a network of switches (run_local.c, run_guests.c), the networks that they
 * can have, of hosts with bumps (run_bump.c) or of switches (run_switch.c), by daemons
 * (run_daemon.c), and the lines that they print (run_output.c).
 */
#ifndef MUSTER_RUN_H
#define MUSTER_RUN_H

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum run_limit {
	RUN_RANKS_MAX = 1024,
	RUN_BUMPS_MAX = 64,
	RUN_ARGUMENTS_MAX = 64,		/* of a daemon, with its name */
	RUN_LINE_MAX = 64 << 10,	/* a longer line is printed in pieces */
	RUN_SINK_MAX = 1 << 20,		/* waiting for our reader; then ranks wait too */
	RUN_STOP_MS = 2000,		/* from SIGTERM to SIGKILL */
	RUN_PLACES_MAX = 2,
	RUN_RAILS_MAX = 8,
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
	RUN_BIND_AUTO,			/* when there is a CPU for each rank, or each CPU gets as many */
	RUN_BIND_ON,
	RUN_BIND_OFF,
};

struct run_options {
	uint32_t nr;
	bool prefix;
	enum run_bind bind;
	uint64_t grace_ms;
	bool vm;			/* ranks are in guests, */
	uint32_t local;			/* but so many, the last ones */
	uint32_t nics;			/* of each guest */
	bool keep;			/* a shell in guest 0 when the ranks have ended */
	bool shell;			/* only that */
	bool count;			/* the guests' instructions, for MUSTER_INSTRUCTIONS */
	const char *bump;		/* hosts with bumps, joined so; NULL: none */
	uint32_t per_host;		/* ranks of each of them, or of each guest */
	const char *topology[RUN_RAILS_MAX];	/* networks of switches, of the first rails; NULL: none */
	uint32_t topologies;
	uint32_t rails;			/* the last is for all others */
	bool apart;			/* each of them is a process of its own */
	char *const *argv;		/* the program and its arguments; NULL: only the shell */
};

/* Those come first. */
static inline uint32_t run_in_guests(const struct run_options *options)
{
	return options->vm ? options->nr - options->local : 0;
}

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
/** run_stream_put() - the same for what somebody else has read. */
void run_stream_put(struct run_stream *stream, const char *data, size_t len);
/** run_stream_end() - queue what is left, an unfinished line, and close. */
void run_stream_end(struct run_stream *stream);

/* ---- the keeper's state, as the places see it ------------------------------- */

enum run_phase {
	RUN_RUNNING,
	RUN_GRACE,			/* a rank failed; the others may end by themselves */
	RUN_STOPPING,			/* they were told to end */
	RUN_KILLING,
};

struct run_rank {
	bool live;
	pid_t pid;			/* run_local.c */
	struct run_stream out;
	struct run_stream err;
};

struct run {
	const struct run_options *options;
	const struct run_place *places[RUN_PLACES_MAX];
	uint32_t polls_of[RUN_PLACES_MAX];	/* how many entries each has */
	uint32_t nr_places;
	struct run_guests *guests;	/* the places' own */
	struct run_local *local;
	struct muster_hub *hub;		/* where ranks meet if some are in guests; NULL: by themselves */
	struct run_bump *bump;		/* the network of hosts with bumps, if there is one */
	struct run_switch *net;		/* that of switches, likewise */
	pid_t front;
	int signals;			/* readable: signals have come */
	struct run_sink out;
	struct run_sink err;
	enum run_phase phase;
	uint64_t deadline_ms;		/* when the phase ends by itself; 0: never */
	int status;
	uint32_t live;
	struct pollfd *polls;		/* signals, stdout, stderr, then each place's */
	struct run_rank *ranks;
};

/* Where ranks run. The keeper decides, the place does, for those that are there. */
struct run_place {
	/* Before anything else. Return: how many poll entries it needs, or -errno. */
	int (*open)(struct run *run);
	/* Start them and set live; or say why not with run_launch_failed(). */
	void (*launch)(struct run *run);
	void (*signal)(struct run *run, uint32_t rank, int signal);
	/* What to wait for, and what to do then; fds are those that open() asked for. */
	void (*fill)(struct run *run, struct pollfd *fds);
	void (*step)(struct run *run, const struct pollfd *fds);
	/* A child process has ended: run_rank_ended() for each rank that it was. */
	void (*reap)(struct run *run);
	/* The last of what an ended rank, or what it left behind, said. */
	void (*drain)(struct run *run, uint32_t rank);
	/* No rank lives. NULL: nothing is to do. */
	void (*finish)(struct run *run);
	/* Whatever open() and launch() did; at any time. */
	void (*close)(struct run *run);
};

/* A daemon of the network that local ranks have. */
struct run_daemon {
	pid_t pid;			/* 0: it does not run */
	int said;			/* its standard output, until it is ready */
};

/** run_daemon_fork() - as fork(), for a process that is to become a daemon; -errno: it failed. */
pid_t run_daemon_fork(struct run_daemon *daemon);
/**
 * run_daemon_become() - in that process: be the daemon.
 * @argv: its arguments from argv[1] on, then NULL; room for RUN_ARGUMENTS_MAX + 1
 * @more: names the variable that has options of one's own
 */
void run_daemon_become(const char *name, char **argv, const char *more) __attribute__((noreturn));
/** run_daemon_ready() - wait for it. Return: 0 or -EIO. */
int run_daemon_ready(struct run_daemon *daemon);
/** run_daemon_ended() - a process ended that is no rank. Return: was it this one? */
bool run_daemon_ended(struct run_daemon *daemon, pid_t pid);
/** run_daemons_stop() - end them, politely, so that they say what they have counted. */
void run_daemons_stop(struct run_daemon *daemons, uint32_t nr);

/* Hosts with bumps, for ranks of run_place_local. */
/** run_bump_open() - make the network and its bumps. Return: 0 or -errno; it has been said why. */
int run_bump_open(struct run *run);
/** run_bump_enter() - a rank's process goes to its host. Return: 0 or -errno. */
int run_bump_enter(const struct run *run, uint32_t rank);
/** run_bump_ended() - a process ended that is no rank: if it was a bump, say so. */
void run_bump_ended(struct run *run, pid_t pid, int wait_status);
/** run_bump_stop() - no rank lives: end the bumps. */
void run_bump_stop(struct run *run);
/** run_bump_close() - forget it; what ran in it has been killed. */
void run_bump_close(struct run *run);

/* What a host of a network of switches is to know of it. */
struct run_port {
	const char *wire;		/* of the network */
	const char *manager;		/* who makes groups: its address */
	uint32_t uplink;		/* the node of the host's switch, */
	uint32_t life;			/* and which life of it */
};

/* Networks of switches, one for each rail: rank i is at host i of each. */
/** run_switch_open() - start its switches. Return: 0 or -errno; it has been said why. */
int run_switch_open(struct run *run);
/** run_switch_port() - what that host of the first one is to know. */
void run_switch_port(const struct run *run, uint32_t host, struct run_port *port);
/** run_switch_enter() - a rank's process gets its ports. Return: 0 or -errno. */
int run_switch_enter(const struct run *run, uint32_t rank);
/** run_switch_ended() - a process ended that is no rank: if it was switches, say so. */
void run_switch_ended(struct run *run, pid_t pid, int wait_status);
/** run_switch_reap() - the same of those that have ended since, where nobody else waits for them. */
void run_switch_reap(struct run *run);
/** run_switch_stop() - no rank lives: end the switches. */
void run_switch_stop(struct run *run);
/** run_switch_close() - forget it; what ran in it has been killed. */
void run_switch_close(struct run *run);

extern const struct run_place run_place_local;
extern const struct run_place run_place_guests;

/** run_bind() - this process to one of the CPUs, round robin; none: to all. */
void run_bind(const cpu_set_t *cpus, uint32_t index);

/** run_launch_failed() - why is an errno, negative; ends the run. */
void run_launch_failed(struct run *run, uint32_t rank, int why);

/**
 * run_rank_ended() - account for it.
 * @wait_status: as from waitpid()
 * @batch_first: no failure was known before this batch. Of ranks that are found
 *	dead together a signal counts before an exit status, as it is likelier to be
 *	the cause than the effect.
 */
void run_rank_ended(struct run *run, uint32_t rank, int wait_status, bool batch_first);

/** run_stream_fd() - what to poll so as to read it: -1 while its sink is full. */
int run_stream_fd(const struct run_stream *stream);

/** run_stream_open() - begin a stream of a rank with its prefix; fd -1: by run_stream_put(). */
void run_stream_open(struct run *run, struct run_stream *stream, struct run_sink *sink,
		     uint32_t rank, int fd);

#endif /* MUSTER_RUN_H */
