/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the diagnostics share (muster_devinfo, muster_hello, muster_stat): one table for
 * options and help, the devices of this machine, and JSON of which the printed text is a form.
 */
#ifndef MUSTER_DIAG_H
#define MUSTER_DIAG_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "sysfs.h"

struct muster_verbs_info;

enum {
	DIAG_EXIT_USAGE = 2,
	DIAG_NICS_MAX = 64,
	DIAG_WHY_BYTES = 512,
};

/* ---- diag_options.c ---- */

struct diag_option {
	char key;
	const char *name;
	const char *argument;	/* NULL: it takes none */
	const char *help;
};

/* What every one of them has, at the end of its table. */
#define DIAG_OPTIONS_COMMON						\
	{ 'j', "json", NULL, "print one JSON object" },			\
	{ 'h', "help", NULL, "show this" },				\
	{ 'V', "version", NULL, "show the version" },			\
	{ 0 }

struct diag_tool {
	const char *name;
	const char *arguments;	/* for the line of usage, behind [OPTION]... */
	const char *about;	/* whole lines */
	const char *status;	/* what exit statuses say; whole lines */
	const struct diag_option *options;
};

/**
 * diag_option() - the next option's key; -1: there are no more.
 *
 * Argument in optarg, the rest from optind on. Help, version and wrong usage end the program.
 */
int diag_option(const struct diag_tool *tool, int argc, char **argv);

/** diag_usage() - say what is wrong with the command line, and exit with 2. */
void diag_usage(const struct diag_tool *tool, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/* ---- diag_print.c ---- */

/** diag_object() - what a tool's --json begins with: schema, tool, version. Never NULL. */
json_t *diag_object(const struct diag_tool *tool);

/** diag_set() - a value that is never NULL, into an object; it exits when there is no memory. */
void diag_set(json_t *object, const char *key, json_t *value);

/** diag_set_number() - the same of a number. */
void diag_set_number(json_t *object, const char *key, uint64_t number);

/** diag_set_text() - the same of a text from wherever; what is not printable ASCII becomes '?'. */
void diag_set_text(json_t *object, const char *key, const char *text);

/** diag_print() - as JSON, on the standard output; exits with 1 if it cannot be written. */
void diag_print(const struct diag_tool *tool, const json_t *object);

/** diag_written() - the standard output was written, or exit with 1. */
void diag_written(const struct diag_tool *tool);

/* ---- diag_devices.c ---- */

/**
 * diag_devices() - the devices of this machine: "local", then Muster NICs.
 * @name: one of them alone; NULL: all
 *
 * Each an object as in schema/muster_devinfo.json. A NIC that could not be asked has "error", in words.
 */
json_t *diag_devices(const char *name);

/** diag_file_opens() - may we open a NIC's file? 0, or -errno and why not, with what to do. */
int diag_file_opens(const struct muster_sysfs_nic *nic, char *why, size_t why_len);

/** diag_query() - muster_verbs_query() of the library's device on NICs, which is loaded for it. */
int diag_query(const char *name, struct muster_verbs_info *info, char *why, size_t why_len);

#endif /* MUSTER_DIAG_H */
