// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-tune: measures the collectives of this machine (muster_perf --tune, under muster-run) and
 * puts what is best into the file that jobs read when they start. What the file has for other
 * numbers of ranks stays. The new file takes the old one's place at once, or not at all.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "tuning.h"
#include "version.h"

enum {
	EXIT_USAGE = 2, ARGS_MAX = 64, PATH_BYTES = PATH_MAX + 64,
	READ_MAX = sizeof(((struct muster_settings *)0)->tuning) - 1,	/* bytes of a path that jobs look at */
};

struct tuning {
	unsigned long ranks;
	char path[PATH_BYTES];		/* the file; */
	char made[PATH_BYTES];		/* what is measured, */
	char merged[PATH_BYTES];	/* and the file to be */
};

static void help(void)
{
	puts("Usage: muster-tune [OPTION]... [COLLECTIVE]...\n"
	     "Measure which schedule is the fastest here, by collective and size, fit a cost model to each,\n"
	     "and write the file that jobs choose by (all collectives, if none is named).\n\n"
	     "  -n, --ranks=N         for jobs and communicators of so many ranks (one a processor)\n"
	     "  -o, --output=FILE     instead of ~/.config/muster/tuning; MUSTER_TUNING names it then\n"
	     "  -m, --sizes=[MIN:]MAX bytes, with K, M or G (8:1M)\n"
	     "  -D, --seconds=S       at most so long by collective and size (2)\n"
	     "      --plot=FILE       draw it: FILE.png or FILE.svg\n"
	     "  -h, --help            show this\n"
	     "  -V, --version         show the version\n\n"
	     "Exit status: 0; 1 when something failed; 2 wrong usage. The file is then as it was.");
}

/* ---- the file ---------------------------------------------------------------------- */

static void default_path(char *path)
{
	const char *home = getenv("HOME");

	if (!home || *home != '/' || strlen(home) > PATH_MAX - 32)
		errx(1, "there is no HOME to write to; -o names a file");
	sprintf(path, "%s/.config", home);
	mkdir(path, 0777);
	strcat(path, "/muster");
	if (mkdir(path, 0777) && errno != EEXIST)
		err(1, "%s", path);
	strcat(path, "/tuning");
	if (strlen(path) > READ_MAX)
		errx(1, "%s: jobs read no file with a path of more than %d bytes; -o names another", path,
		     READ_MAX);
}

/* Return: whether there is one, or none; else why jobs would end with an error. */
static bool is_readable(const char *path, char *why, size_t why_len)
{
	FILE *in = fopen(path, "re");
	struct muster_tuning *tuning;
	int error = in ? 0 : errno;

	if (error == ENOENT)
		return true;
	*why = '\0';
	if (!error)
		error = -muster_tuning_read(path, in, &tuning, why, why_len);
	if (in)
		fclose(in);
	if (!error)
		muster_tuning_free(tuning);
	else if (!*why)
		snprintf(why, why_len, "%s", strerror(error));
	return !error;
}

/* Its lines without the head, the end, and, of the old file, what is for so many ranks. */
static void copy_lines(const char *path, FILE *out, unsigned long without)
{
	FILE *in = fopen(path, "re");
	char ranks[16] = "any";		/* that what follows is for; empty: that is said */
	bool skips = false;
	char *line = NULL;
	size_t room = 0;

	while (in && getline(&line, &room, in) >= 0) {
		char first[16] = "", second[16] = "";

		sscanf(line, " %15[^# \t\r\n] %15[^# \t\r\n]", first, second);
		if (!strcmp(first, "end"))
			break;
		if (!strcmp(first, "ranks")) {
			strcpy(ranks, second);
			skips = strtoul(second, NULL, 10) == without;
		} else if (!skips && strcmp(first, "muster-tuning")) {
			if (*first && *ranks)
				fprintf(out, "ranks %s\n", ranks);
			if (*first)
				*ranks = '\0';
			fputs(line, out);
		}
	}
	free(line);
	if (in)
		fclose(in);
}

/* What was measured comes first: lines for any number of ranks serve what is left. */
static void merge(const struct tuning *tuning)
{
	FILE *out = fopen(tuning->merged, "we");
	char why[MUSTER_WHY_MAX];

	if (!out)
		err(1, "%s", tuning->merged);
	fputs("muster-tuning 2\n", out);
	copy_lines(tuning->made, out, 0);
	copy_lines(tuning->path, out, tuning->ranks);
	fputs("end\n", out);
	if (fclose(out)) {
		unlink(tuning->merged);
		err(1, "%s cannot be written", tuning->merged);
	}
	if (!is_readable(tuning->merged, why, sizeof(why))) {
		unlink(tuning->merged);
		errx(1, "%s, with what was measured, could not be read: %s", tuning->path, why);
	}
	if (rename(tuning->merged, tuning->path)) {
		unlink(tuning->merged);
		err(1, "%s cannot be written", tuning->path);
	}
}

/* ---- measuring ----------------------------------------------------------------------- */

static int run(char **args)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execv(args[0], args);
		err(1, "%s", args[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		err(1, "%s", args[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* What is in force here already is nothing to be compared with. */
static int measure(const struct tuning *tuning, const char *sizes, const char *seconds,
		   const char *plot, char **collectives)
{
	char folder[PATH_MAX], runner[PATH_BYTES], perf[PATH_BYTES], ranks[32], made[PATH_BYTES + 8];
	char picture[PATH_BYTES];
	char *args[ARGS_MAX] = { runner, "-n", ranks, "--no-prefix", perf, made, "-m", (char *)sizes,
				 "-D", (char *)seconds };
	int nr = 10;

	if (muster_folder(folder, sizeof(folder)))
		err(1, "where this program is cannot be found out");
	snprintf(runner, sizeof(runner), "%s/muster-run", folder);
	snprintf(perf, sizeof(perf), "%s/muster_perf", folder);
	snprintf(ranks, sizeof(ranks), "%lu", tuning->ranks);
	snprintf(made, sizeof(made), "--tune=%s", tuning->made);
	snprintf(picture, sizeof(picture), "--plot=%s", plot ? plot : "");
	if (plot)
		args[nr++] = picture;
	if (!*collectives)
		args[nr++] = "all";
	for (; *collectives && nr < ARGS_MAX - 1; collectives++)
		args[nr++] = *collectives;
	setenv("MUSTER_TUNING", "off", 1);
	unsetenv("MUSTER_SCHEDULE");
	return run(args);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "ranks", required_argument, NULL, 'n' }, { "output", required_argument, NULL, 'o' },
		{ "sizes", required_argument, NULL, 'm' }, { "seconds", required_argument, NULL, 'D' },
		{ "plot", required_argument, NULL, 'p' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { 0 },
	};
	const char *output = NULL, *sizes = "8:1M", *seconds = "2", *plot = NULL;
	struct tuning tuning = { .ranks = (unsigned long)sysconf(_SC_NPROCESSORS_ONLN) };
	char *end = "", why[MUSTER_WHY_MAX];
	int option, status;

	while ((option = getopt_long(argc, argv, "n:o:m:D:hV", longs, NULL)) != -1) {
		switch (option) {
		case 'n': tuning.ranks = strtoul(optarg, &end, 10); break;
		case 'o': output = optarg; break;
		case 'm': sizes = optarg; break;
		case 'D': seconds = optarg; break;
		case 'p': plot = optarg; break;
		case 'h': help(); return 0;
		case 'V': puts("muster-tune " MUSTER_VERSION); return 0;
		default: return EXIT_USAGE;
		}
	}
	if (*end || tuning.ranks < 2 || tuning.ranks > 4096 || (output && strlen(output) > PATH_MAX)) {
		warnx("-n is from 2 to 4096 ranks; try --help");
		return EXIT_USAGE;
	}
	if (output)
		strcpy(tuning.path, output);
	else
		default_path(tuning.path);
	snprintf(tuning.made, sizeof(tuning.made), "%.*s.made", PATH_MAX, tuning.path);
	snprintf(tuning.merged, sizeof(tuning.merged), "%.*s.new", PATH_MAX, tuning.path);
	if (!is_readable(tuning.path, why, sizeof(why)))
		errx(1, "%s: %s; move it away, or -o names another", tuning.path, why);
	status = measure(&tuning, sizes, seconds, plot, argv + optind);
	if (!status)
		merge(&tuning);
	unlink(tuning.made);
	if (!status)
		printf("%s is written, for %lu ranks\n", tuning.path, tuning.ranks);
	return status ? 1 : 0;
}
