// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_trace: what the ranks of this machine's jobs are doing. This file only chooses
 * the command.
 *
 * usage: muster_trace COMMAND [OPTION]...
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "trace.h"
#include "version.h"

static const char help[] =
	"Usage: muster_trace COMMAND [OPTION]...\n"
	"  explain  say why jobs of yours on this machine do not go on\n"
	"  record   write what the ranks of a job do into a file, for Perfetto and report\n"
	"  report   where the time of a recorded job went, and who was late\n"
	"  -h, --help  -V, --version\n"
	"muster_trace COMMAND --help shows the options of a command.\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "explain", trace_explain }, { "record", trace_record }, { "report", trace_report },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "-h") || !strcmp(name, "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (!strcmp(name, "-V") || !strcmp(name, "--version")) {
		puts("muster_trace " MUSTER_VERSION);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	if (*name)
		warnx("%s: there is no such command", name);
	fputs(help, stderr);
	return 2;
}
