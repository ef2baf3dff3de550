/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the daemons share (muster-bumpd, muster-switchd, muster-am): options, counters as text or JSON,
 * the signals that print these or end the daemon, how long it may sleep, and sockets that listen.
 */
#ifndef MUSTER_DAEMON_H
#define MUSTER_DAEMON_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- options ---- */

enum { DAEMON_EXIT_USAGE = 2 };

struct daemon_usage {
	const char *help;
	const char *shorts;		/* with "hV" in it */
	const struct option *longs;
	/* All but these two. Return: 0 or an exit status. */
	int (*take)(int key, void *options);
};

/** daemon_options() - all of them. Return: 0; an exit status; -1: nothing is left to do. */
int daemon_options(const struct daemon_usage *usage, int argc, char **argv, void *options);

/** daemon_number() - of an option's text. Return: 0; an exit status, and it has been said why. */
int daemon_number(const char *text, uint32_t min, uint32_t max, uint32_t *value);

/** daemon_misused() - say what is wrong with the options, and at which value, if any. Return: 2. */
int daemon_misused(const char *what, const char *value);

/** daemon_failed() - say what has, and why. Return: 1, the exit status. */
int daemon_failed(const char *what, const char *why);

/* ---- counters ---- */

struct daemon_counter {
	const char *name;
	size_t at;			/* a uint64_t in the struct of all */
};

struct daemon_report {
	FILE *to;
	const char *file;		/* NULL: it is the standard output */
	bool json;
};

/**
 * daemon_report_open() - append to a file; NULL: the standard output.
 * Return: 0; an exit status, and it has been said why. So does close, when not all is written.
 */
int daemon_report_open(struct daemon_report *report, const char *file, bool json);
int daemon_report_close(struct daemon_report *report);

/** daemon_report_try() - before anything is counted: can it be opened? Return: as that. */
int daemon_report_try(const char *file);

/** daemon_report_begin() - one of the daemon's: "switch", "element". */
void daemon_report_begin(const struct daemon_report *report, const char *what, uint32_t number);
void daemon_report_one(const struct daemon_report *report, const char *name, uint64_t value);
void daemon_report_all(const struct daemon_report *report, const struct daemon_counter *names,
		       size_t nr, const void *counters);
void daemon_report_end(const struct daemon_report *report);

/* ---- waiting ---- */

/**
 * daemon_signals() - take SIGUSR1, SIGTERM and SIGINT from now on.
 * @more: another one, or 0.
 * Return: what to poll; -1: said why.
 */
int daemon_signals(int more);
/** daemon_signal() - the next one; 0: none has come. */
int daemon_signal(int signals);

/** daemon_patience_ms() - until a time, rounded up, a second at most; -1: UINT64_MAX. */
int daemon_patience_ms(uint64_t deadline_us);

/** daemon_ready() - tell who started us. */
void daemon_ready(void);

/* ---- who connects ---- */

/**
 * daemon_listen() - a socket that keeps the bounds of messages, at @NAME, abstract, or a path, where a
 * socket's file that one left behind who was killed is taken away. Return: fd; -errno.
 */
int daemon_listen(const char *address);
/** daemon_connect() - to one that listens there; flags: as of socket(). Return: fd; -errno. */
int daemon_connect(const char *address, int flags);
/** daemon_same_user() - whether who is at the other end is of our own user. */
bool daemon_same_user(int fd);

#endif /* MUSTER_DAEMON_H */
