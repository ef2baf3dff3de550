// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dst - run seeds of the simulated world (dst.h).
 *
 * usage: dst [--trace] [--library | --trees] [--limits LIST] [--dump FILE] SEED
 *        dst [--trace] [--library | --trees] [--limits LIST] [--jobs N] [--until-failure] --seeds FIRST COUNT
 *
 * --library: the ranks run libmuster; else they post descriptors themselves.
 * --trees: hosts are joined by switches, and operations go by reduction trees, too.
 * --limits: of what a seed draws, only so much: "ranks=2,ops=1,no-drop" (plan.c).
 * --dump: what the engines send, as a file for muster_dump(1).
 * --jobs: so many processes share the seeds, and say now and then how far they are.
 * --until-failure: no seed behind the first that fails.
 * Prints one line when all is well. For a seed that fails: what was wrong, the
 * plan that it stands for, and how to replay it; for the first one also the least
 * that still fails. Every 64th seed runs twice and must go exactly the same way.
 * Exit status 0, 1 (a seed failed), 2 (usage).
 */
#include "dst.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crew.h"
#include "pcapng.h"

/* No world sees what another has freed: what is kept from use for long only costs new pages. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16";
}

static int usage(void)
{
	fprintf(stderr, "usage: dst [--trace] [--library | --trees] [--limits LIST] [--dump FILE] SEED\n"
			"       dst [--trace] [--library | --trees] [--limits LIST] [--jobs N] [--until-failure] --seeds FIRST COUNT\n");
	return 2;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end;
}

/* -1 and a word on it: there is no such file to be had. */
static int dump_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || muster_pcapng_section(fd) || muster_pcapng_interface(fd, "simulated"))
		fprintf(stderr, "dst: %s cannot be written\n", path);
	return fd;
}

static int run(const struct dst_crew *crew, bool trace, bool library, bool trees, const char *dump,
	       const struct dst_limits *limits)
{
	struct dst_world *w = dst_world_new();
	uint64_t failed;

	if (!w) {
		fprintf(stderr, "dst: no memory\n");
		return 1;
	}
	w->trace = trace;
	w->library = library;
	w->trees = trees;
	w->limits = *limits;
	w->dump_fd = dump ? dump_open(dump) : -1;
	failed = dst_crew_run(crew, w);
	if (w->dump_fd >= 0)
		close(w->dump_fd);
	dst_world_free(w);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dump", required_argument, NULL, 'd' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "library", no_argument, NULL, 'l' },
		{ "limits", required_argument, NULL, 'm' },
		{ "seeds", no_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ "trees", no_argument, NULL, 'w' },
		{ "until-failure", no_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	struct dst_crew crew = { .count = 1, .jobs = 1 };
	bool many = false, trace = false, library = false, trees = false;
	struct dst_limits limits = { 0 };
	const char *dump = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			many = true;
		else if (option == 't')
			trace = true;
		else if (option == 'l')
			library = true;
		else if (option == 'w')
			trees = true;
		else if (option == 'u')
			crew.until_failure = true;
		else if (option == 'd')
			dump = optarg;
		else if (!(option == 'j' && number(optarg, &crew.jobs)) &&
			 !(option == 'm' && dst_limits_read(&limits, optarg)))
			return usage();
	}
	if (argc - optind != 1 + many || !number(argv[optind], &crew.first) || !crew.jobs ||
	    (library && trees) ||
	    (many && (!number(argv[optind + 1], &crew.count) || !crew.count || dump)))
		return usage();
	return run(&crew, trace, library, trees, dump, &limits);
}
