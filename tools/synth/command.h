/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * muster-synth: what its commands share.
 */
#ifndef MUSTER_TOOLS_SYNTH_COMMAND_H
#define MUSTER_TOOLS_SYNTH_COMMAND_H

#include "synth.h"

struct settings {
	const char *topology_name;
	struct muster_topology *topology;	/* NULL: none was named */
	const char *conditions;			/* a file's path */
	const char *output;			/* NULL: standard output */
	const char *form;			/* schedule, sends, json, picture */
	struct muster_synth_request request;
	uint32_t extra_rounds, steps_max, chunks_max, pipelined;
	uint32_t datum_bytes;
	uint64_t buffer_bytes;
	unsigned int seeds;
	bool balanced, no_split, compare, fit;
};

/** die() - say why and end: 1: it cannot be done; 2: it was asked wrongly. */
__attribute__((noreturn, format(printf, 2, 3)))
void die(int status, const char *format, ...);

/** write_schedule() - in the form and to the place that the settings say. */
void write_schedule(const struct settings *settings, const struct muster_schedule *schedule);

/** open_output(), close_output() - where the settings say; errors end the program. */
FILE *open_output(const struct settings *settings);
void close_output(const struct settings *settings, FILE *out);

/** number() - of a word; none from 0 to max ends the program. */
uint32_t number(const char *what, const char *word, uint32_t max);

int run_nodes(struct settings *settings, int argc, char **argv);
int run_tables(struct settings *settings, int argc, char **argv);
int run_torus(struct settings *settings, int argc, char **argv);

#endif /* MUSTER_TOOLS_SYNTH_COMMAND_H */
