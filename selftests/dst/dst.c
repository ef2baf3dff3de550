// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dst - run seeds of the simulated world (dst.h).
 *
 * usage: dst [--trace] [--library] [--dump FILE] SEED
 *        dst [--trace] [--library] --seeds FIRST COUNT
 *
 * --library: the ranks run libmuster; else they post descriptors themselves.
 * --dump: what the engines send, as a file for muster_dump(1).
 * Prints one line when all is well. For a seed that fails: what was wrong, the
 * plan that it stands for, and how to replay it. Every 64th seed runs twice and
 * must go exactly the same way. Exit status 0, 1 (a seed failed), 2 (usage).
 */
#include "dst.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "pcapng.h"

enum { REPEAT_EVERY = 64, SHOWN_MAX = 5 };

struct totals {
	uint64_t failed, events, packets, faults;
};

static int usage(void)
{
	fprintf(stderr, "usage: dst [--trace] [--library] [--dump FILE] SEED\n"
			"       dst [--trace] [--library] --seeds FIRST COUNT\n");
	return 2;
}

static bool number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end;
}

static void show(const struct dst_world *w, uint64_t seed)
{
	printf("seed %" PRIu64 " failed %s\n", seed, w->why);
	dst_plan_print(&w->plan);
	printf("  replay: make dst SEED=%" PRIu64 " TRACE=1%s\n", seed,
	       w->library ? " LIBRARY=1" : "");
	fflush(stdout);
}

static bool repeats(struct dst_world *w, uint64_t seed)
{
	uint64_t hash = w->hash;

	dst_world_run(w, seed);
	if (w->hash == hash)
		return true;
	snprintf(w->why, sizeof(w->why), "by going another way the second time");
	return false;
}

static void run_seed(struct dst_world *w, uint64_t seed, struct totals *totals)
{
	bool good = dst_world_run(w, seed);

	totals->events += w->nr_events;
	totals->packets += w->nr_packets;
	totals->faults += w->nr_faults;
	if (good && seed % REPEAT_EVERY == 0)
		good = repeats(w, seed);
	if (!good && totals->failed++ < SHOWN_MAX)
		show(w, seed);
}

static double seconds(void)
{
	return (double)muster_clock_ns() / 1e9;
}

/* -1 and a word on it: there is no such file to be had. */
static int dump_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || muster_pcapng_section(fd) || muster_pcapng_interface(fd, "simulated"))
		fprintf(stderr, "dst: %s cannot be written\n", path);
	return fd;
}

static int run_seeds(uint64_t first, uint64_t count, bool trace, bool library, const char *dump)
{
	struct dst_world *w = dst_world_new();
	struct totals totals = { 0 };
	double begin = seconds();

	if (!w) {
		fprintf(stderr, "dst: no memory\n");
		return 1;
	}
	w->trace = trace;
	w->library = library;
	w->dump_fd = dump ? dump_open(dump) : -1;
	for (uint64_t seed = first; seed - first < count; seed++)
		run_seed(w, seed, &totals);
	printf("dst: seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " failed; %" PRIu64 " events, %" PRIu64 " packets, %" PRIu64 " faults; %.0f seeds/s\n",
	       first, first + count - 1, totals.failed, totals.events, totals.packets,
	       totals.faults, count / (seconds() - begin));
	if (w->dump_fd >= 0)
		close(w->dump_fd);
	dst_world_free(w);
	return totals.failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dump", required_argument, NULL, 'd' },
		{ "library", no_argument, NULL, 'l' },
		{ "seeds", no_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	bool many = false, trace = false, library = false;
	const char *dump = NULL;
	uint64_t first, count = 1;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			many = true;
		else if (option == 't')
			trace = true;
		else if (option == 'l')
			library = true;
		else if (option == 'd')
			dump = optarg;
		else
			return usage();
	}
	if (argc - optind != 1 + many || !number(argv[optind], &first) ||
	    (many && (!number(argv[optind + 1], &count) || !count || dump)))
		return usage();
	return run_seeds(first, count, trace, library, dump);
}
