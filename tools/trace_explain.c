// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_trace explain: reads the looking pages twice, walks them (explain.h), and says
 * what was found. Nothing in the jobs is changed or asked.
 */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "explain.h"
#include "trace.h"
#include "version.h"

enum { APART_MS = 300, APART_MAX_MS = 3600000 };

static const char help[] =
	"Usage: muster_trace explain [OPTION]...\n"
	"Says for each job of yours on this machine whom its ranks wait for, and why.\n"
	"  -p, --pid=PID      only the job that this process is a rank of\n"
	"  -w, --watch=MS     how long to watch who moves (300)\n"
	"  -j, --json         for programs\n"
	"  -h, --help\n"
	"Ends with 0 if nobody waits, with 1 if somebody does.\n";

static const struct option long_options[] = {
	{ "pid", required_argument, NULL, 'p' }, { "watch", required_argument, NULL, 'w' },
	{ "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static struct {
	pid_t pid;
	long watch_ms;
	bool json;
} options;

static long number(const char *text, long max)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (!*text || *end || value < 1 || value > max)
		errx(2, "%s: a number from 1 to %ld is wanted", text, max);
	return value;
}

static void read_options(int argc, char **argv)
{
	int option;

	options.watch_ms = APART_MS;
	optind = 1;
	while ((option = getopt_long(argc, argv, "p:w:jh", long_options, NULL)) != -1)
		switch (option) {
		case 'p': options.pid = (pid_t)number(optarg, INT32_MAX); break;
		case 'w': options.watch_ms = number(optarg, APART_MAX_MS); break;
		case 'j': options.json = true; break;
		case 'h': fputs(help, stdout); exit(0);
		default: exit(2);
		}
	if (optind < argc)
		errx(2, "%s: explain takes no arguments", argv[optind]);
}

static void read_now(struct looks *looks)
{
	int error = looks_read(looks);

	if (error)
		errx(2, "/proc cannot be read: %s", strerror(-error));
}

static const struct look_job *job_find(const struct looks *looks, const struct look_job *same)
{
	for (uint32_t i = 0; i < looks->nr_jobs; i++)
		if (looks->jobs[i].name == same->name && looks->jobs[i].size == same->size)
			return &looks->jobs[i];
	return NULL;
}

static bool is_wanted(const struct look_job *job)
{
	for (uint32_t rank = 0; rank < job->size; rank++)
		if (job->ranks[rank] && (!options.pid || job->ranks[rank]->pid == options.pid))
			return true;
	return false;
}

/* ---- as text --------------------------------------------------------------------------- */

static const struct look *any_rank(const struct look_job *job)
{
	uint32_t rank = 0;

	while (rank < job->size && !job->ranks[rank])
		rank++;
	return job->ranks[rank];
}

static void print_job(const struct look_job *job, const struct findings *findings)
{
	const struct look *look = any_rank(job);

	printf("job %08" PRIx64 ": %s, %u ranks", job->name, look->command, job->size);
	if (job->nr < job->size)
		printf(" (%u of them here)", job->nr);
	if (!findings->nr_waiting)
		printf(", of which none waits\n");
	else if (!findings->nr)
		printf(", of which %u wait and nothing stands: look again\n", findings->nr_waiting);
	else
		printf(", of which %u wait\n", findings->nr_waiting);
	for (uint32_t i = 0; i < findings->nr; i++)
		printf("  %s\n", findings->all[i].words);
}

/* ---- as JSON ------------------------------------------------------------------------------ */

static json_t *culprits_json(const struct look_job *job, const struct finding *finding)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < finding->nr_culprits; i++) {
		uint32_t rank = finding->culprits[i];
		const struct look *look = rank < job->size ? job->ranks[rank] : NULL;

		json_array_append_new(all, json_pack("{s:i, s:o}", "rank", (int)rank, "pid",
						     look ? json_integer(look->pid) : json_null()));
	}
	return all;
}

static json_t *job_json(const struct look_job *job, const struct findings *findings)
{
	json_t *all = json_array();
	char name[32];

	snprintf(name, sizeof(name), "%08" PRIx64, job->name);
	for (uint32_t i = 0; i < findings->nr; i++) {
		const struct finding *finding = &findings->all[i];

		json_array_append_new(all, json_pack("{s:s, s:o, s:i, s:s}", "cause",
						     explain_cause_name(finding->cause), "culprits",
						     culprits_json(job, finding), "waiting",
						     (int)finding->nr_waiting, "words",
						     finding->words));
	}
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:o}", "job", name, "command",
			 any_rank(job)->command, "ranks", (int)job->size, "here", (int)job->nr,
			 "waiting", (int)findings->nr_waiting, "findings", all);
}

static void print_json(json_t *jobs)
{
	json_t *document = json_pack("{s:s, s:s, s:s, s:O}", "schema", "muster/1", "tool",
				     "muster_trace explain", "version", MUSTER_VERSION, "jobs",
				     jobs);

	json_dumpf(document, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(document);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Return: whether somebody waits. */
static bool explain_all(const struct looks *now, const struct looks *before, json_t *jobs)
{
	struct findings findings;
	bool waits = false;

	for (uint32_t i = 0; i < now->nr_jobs; i++) {
		const struct look_job *job = &now->jobs[i];

		if (!is_wanted(job))
			continue;
		if (explain_job(job, job_find(before, job), &findings))
			errx(2, "no memory");
		waits |= findings.nr_waiting;
		if (options.json)
			json_array_append_new(jobs, job_json(job, &findings));
		else
			print_job(job, &findings);
		explain_free(&findings);
	}
	return waits;
}

static void say_what_is_missing(const struct looks *now, bool some)
{
	if (now->nr_other_version)
		warnx("%u ranks are of another version of the library, and cannot be read",
		      now->nr_other_version);
	if (!some && options.pid)
		puts("there is no such rank of a job that you may look into");
	else if (!some)
		puts("no job that you may look into runs on this machine");
}

int trace_explain(int argc, char **argv)
{
	struct timespec apart;
	struct looks before, now;
	json_t *jobs = json_array();
	bool waits, some = false;

	read_options(argc, argv);
	apart = (struct timespec){ options.watch_ms / 1000, options.watch_ms % 1000 * 1000000 };
	read_now(&before);
	nanosleep(&apart, NULL);
	read_now(&now);
	waits = explain_all(&now, &before, jobs);
	for (uint32_t i = 0; i < now.nr_jobs; i++)
		some |= is_wanted(&now.jobs[i]);
	if (options.json)
		print_json(jobs);
	else
		say_what_is_missing(&now, some);
	json_decref(jobs);
	looks_free(&before);
	looks_free(&now);
	return waits;
}
