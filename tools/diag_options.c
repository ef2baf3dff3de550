// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options of the diagnostics: the table that is parsed is the help that is printed.
 */
#include "diag.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "version.h"

enum { OPTIONS_MAX = 16, HELP_COLUMN = 26 };

static void print_help(const struct diag_tool *tool)
{
	printf("Usage: %s [OPTION]...%s\n%s\n", tool->name, tool->arguments, tool->about);
	for (const struct diag_option *o = tool->options; o->key; o++) {
		int len = printf("  -%c, --%s%s%s", o->key, o->name, o->argument ? "=" : "",
				 o->argument ? o->argument : "");

		printf("%*s%s\n", len < HELP_COLUMN ? HELP_COLUMN - len : 1, "", o->help);
	}
	printf("\nExit status: %s", tool->status);
}

void diag_usage(const struct diag_tool *tool, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", tool->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nTry '%s --help'.\n", tool->name);
	exit(DIAG_EXIT_USAGE);
}

int diag_option(const struct diag_tool *tool, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX + 1] = { 0 };
	char shorts[2 * OPTIONS_MAX + 1] = "";
	int key, at = 0, nr = 0;

	for (const struct diag_option *o = tool->options; o->key && nr < OPTIONS_MAX; o++, nr++) {
		longs[nr] = (struct option){
			.name = o->name,
			.has_arg = o->argument ? required_argument : no_argument,
			.val = o->key,
		};
		shorts[at++] = o->key;
		if (o->argument)
			shorts[at++] = ':';
	}
	key = getopt_long(argc, argv, shorts, longs, NULL);
	switch (key) {
	case 'h':
		print_help(tool);
		diag_written(tool);
		exit(0);
	case 'V':
		printf("%s " MUSTER_VERSION "\n", tool->name);
		diag_written(tool);
		exit(0);
	case '?':
		fprintf(stderr, "Try '%s --help'.\n", tool->name);
		exit(DIAG_EXIT_USAGE);
	default:
		return key;
	}
}
