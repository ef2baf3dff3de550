// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_stat: what devices, jobs, ranks and communicators do, and who waits for whom; once or
 * every some seconds, as vmstat or top do. The tables are those of the report that --json prints.
 *
 * usage: muster_stat [OPTION]... [INTERVAL [COUNT]]
 */
#include <errno.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "stat.h"
#include "version.h"

static const struct diag_option options[] = {
	{ 'd', "device", "NAME", "of this device alone: local, or a NIC's name" },
	{ 'J', "job", "NAME", "of this job alone, as the column JOB has it" },
	{ 'c', "communicators", NULL, "also a table of them" },
	{ 'u', "used", NULL, "also tables of what is taken of each NIC, and of who is in a job there" },
	{ 's', "summary", NULL, "no ranks: devices and jobs only" },
	{ 't', "top", NULL, "on a cleared screen each time; every second, if not said" },
	DIAG_OPTIONS_COMMON,
};

static const struct diag_tool tool = {
	.name = "muster_stat",
	.arguments = " [INTERVAL [COUNT]]",
	.about = "Show what devices and your own jobs do on this machine, and which rank waits for whom:\n"
		 "once, with means since the beginning; or every INTERVAL seconds, COUNT times, with what\n"
		 "has been since the last time.\n",
	.status = "0; 1 nothing could be read; 2 wrong usage.\n",
	.options = options,
};

struct request {
	struct stat_filter filter;
	bool communicators, used, summary, top, json;
	double interval;	/* 0: once */
	unsigned long count;	/* 0: without end */
};

/* ---- tables --------------------------------------------------------------------------- */

/* A value to the right, a text to the left; the last one is as long as it is. */
struct column {
	const char *head;
	const char *key;
	int width;
};

static const struct column device_columns[] = {
	{ "DEVICE", "device", -12 }, { "JOBS", "jobs", 5 }, { "RANKS", "ranks", 6 },
	{ "PKT-IN/S", "packets_in_per_s", 10 }, { "PKT-OUT/S", "packets_out_per_s", 10 },
	{ "MB-IN/S", "mb_in_per_s", 9 }, { "MB-OUT/S", "mb_out_per_s", 9 },
	{ "DROPPED", "dropped", 8 }, { "NOTE", "note", -1 }, { 0 },
};

/* Of a kind the driver has, the name is the key. */
static const struct column used_columns[] = {
	{ "DEVICE", "device", -12 }, { "VPS", "vps", 10 }, { "CQS", "cqs", 10 }, { "CONTEXTS", "contexts", 10 },
	{ "QPS", "qps", 10 }, { "SRQS", "srqs", 10 }, { "BUFFERS", "buffers", 8 }, { "MB", "mb", -1 }, { 0 },
};

static const struct column member_columns[] = {
	{ "DEVICE", "device", -12 }, { "UID", "uid", 10 }, { "JOBID", "job", 6 }, { "CONTEXTS", "contexts", -1 }, { 0 },
};

static const struct column job_columns[] = {
	{ "JOB", "job", -9 }, { "SIZE", "size", 5 }, { "HERE", "here", 5 },
	{ "DEVICE", "device", -7 }, { "AGE", "age_s", 8 }, { "OPS/S", "ops_per_s", 10 },
	{ "MB/S", "mb_per_s", 9 }, { "WAITING", "waiting", 8 }, { "COMMAND", "command", -1 }, { 0 },
};

static const struct column rank_columns[] = {
	{ "JOB", "job", -9 }, { "RANK", "rank", 5 }, { "PID", "pid", 8 }, { "S", "state", -1 },
	{ "NODE", "node", 6 }, { "VP", "vp", 5 }, { "OPS/S", "ops_per_s", 10 },
	{ "PKT-IN/S", "packets_in_per_s", 10 }, { "PKT-OUT/S", "packets_out_per_s", 10 },
	{ "MB-IN/S", "mb_in_per_s", 9 }, { "MB-OUT/S", "mb_out_per_s", 9 },
	{ "WAITS-FOR", "waits", -12 }, { "IN", "in", -1 }, { 0 },
};

static const struct column comm_columns[] = {
	{ "JOB", "job", -9 }, { "RANK", "rank", 5 }, { "COMM", "context", 5 }, { "SIZE", "size", 5 },
	{ "STARTED", "started", 10 }, { "ENDED", "ended", 10 }, { "OPS/S", "ops_per_s", 10 },
	{ "WAITS-FOR", "waits", -12 }, { "IN", "operation", -1 }, { 0 },
};

/* "2(slot),5(window)"; where it is nobody alone, or not known who, the word. */
static void waits_text(const json_t *waits, char *text, size_t len)
{
	json_t *wait;
	size_t i, at = 0;

	json_array_foreach(waits, i, wait) {
		json_t *rank = json_object_get(wait, "rank");
		const char *what = json_string_value(json_object_get(wait, "for"));
		char words[48];

		if (json_is_integer(rank))
			snprintf(words, sizeof(words), "%" JSON_INTEGER_FORMAT "(%s)",
				 json_integer_value(rank), what);
		else
			snprintf(words, sizeof(words), "%s", what);
		if (at < len)
			at += (size_t)snprintf(text + at, len - at, "%s%s", i ? "," : "", words);
	}
}

static void operation_text(const json_t *operation, char *text, size_t len)
{
	snprintf(text, len, "%s, %" JSON_INTEGER_FORMAT " bytes, %s path",
		 json_string_value(json_object_get(operation, "collective")),
		 json_integer_value(json_object_get(operation, "bytes")),
		 json_string_value(json_object_get(operation, "path")));
}

static void value_text(const json_t *value, char *text, size_t len)
{
	snprintf(text, len, "-");
	if (json_is_string(value))
		snprintf(text, len, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(text, len, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(text, len, "%.*f", json_real_value(value) < 99.95 ? 1 : 0, json_real_value(value));
	else if (json_is_array(value) && json_array_size(value))
		waits_text(value, text, len);
	else if (json_is_object(value))
		operation_text(value, text, len);
}

static const json_t *value_of(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	/* A communicator's are those of its operation. */
	return value ? value : json_object_get(json_object_get(row, "operation"), key);
}

static void print_table(const struct column *columns, const json_t *rows)
{
	char text[256];
	json_t *row;
	size_t i;

	for (const struct column *c = columns; c->head; c++)
		printf("%s%*s", c == columns ? "" : " ", c[1].head ? c->width : 0, c->head);
	putchar('\n');
	json_array_foreach(rows, i, row) {
		for (const struct column *c = columns; c->head; c++) {
			value_text(value_of(row, c->key), text, sizeof(text));
			printf("%s%*s", c == columns ? "" : " ", c[1].head ? c->width : 0, text);
		}
		putchar('\n');
	}
}

static json_t *all_communicators(const json_t *ranks)
{
	json_t *all = json_array(), *rank;
	size_t i;

	json_array_foreach(ranks, i, rank)
		json_array_extend(all, json_object_get(rank, "communicators"));
	return all;
}

/* "2/2048" of each kind, of the NICs whose driver tells. */
static json_t *all_used(const json_t *devices)
{
	json_t *all = json_array(), *device, *unit;
	const char *name;
	size_t i;

	json_array_foreach(devices, i, device) {
		json_t *taken = json_object_get(device, "taken"), *row = json_object();

		if (!json_is_object(taken)) {
			json_decref(row);
			continue;
		}
		diag_set(row, "device", json_incref(json_object_get(device, "device")));
		json_object_foreach(json_object_get(taken, "units"), name, unit)
			diag_set(row, name, json_sprintf("%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
							 json_integer_value(json_object_get(unit, "used")),
							 json_integer_value(json_object_get(unit, "max"))));
		diag_set(row, "buffers", json_incref(json_object_get(taken, "buffers")));
		diag_set(row, "mb", json_real(json_number_value(json_object_get(taken, "buffer_bytes")) / 1e6));
		json_array_append_new(all, row);
	}
	return all;
}

static json_t *all_members(const json_t *devices)
{
	json_t *all = json_array(), *device, *member;
	size_t i, j;

	json_array_foreach(devices, i, device)
		json_array_foreach(json_object_get(json_object_get(device, "taken"), "members"), j, member) {
			json_t *row = json_copy(member);

			diag_set(row, "device", json_incref(json_object_get(device, "device")));
			json_array_append_new(all, row);
		}
	return all;
}

static void print_used(const json_t *devices)
{
	json_t *used = all_used(devices), *members = all_members(devices);

	putchar('\n');
	print_table(used_columns, used);
	putchar('\n');
	print_table(member_columns, members);
	json_decref(used);
	json_decref(members);
}

static void print_tables(const struct request *request, const json_t *report)
{
	const json_t *ranks = json_object_get(report, "ranks");

	print_table(device_columns, json_object_get(report, "devices"));
	if (request->used)
		print_used(json_object_get(report, "devices"));
	putchar('\n');
	print_table(job_columns, json_object_get(report, "jobs"));
	if (!request->summary) {
		putchar('\n');
		print_table(rank_columns, ranks);
	}
	if (request->communicators) {
		json_t *all = all_communicators(ranks);

		putchar('\n');
		print_table(comm_columns, all);
		json_decref(all);
	}
}

/* ---- samples and reports -------------------------------------------------------------- */

static struct stat_sample *sample_take(void)
{
	struct stat_sample *sample = calloc(1, sizeof(*sample));
	int err = sample ? looks_read(&sample->looks) : -ENOMEM;

	if (err) {
		fprintf(stderr, "%s: jobs cannot be looked for: %s\n", tool.name, strerror(-err));
		exit(1);
	}
	stat_nics_read(sample);
	sample->at_us = muster_clock_us();
	return sample;
}

static void sample_free(struct stat_sample *sample)
{
	if (sample) {
		looks_free(&sample->looks);
		stat_taken_free(sample);
	}
	free(sample);
}

static json_t *report_make(const struct request *request, const struct stat_sample *now,
			   const struct stat_sample *before)
{
	json_t *report = diag_object(&tool), *ranks = stat_ranks(now, before, &request->filter);
	char date[32];
	time_t seconds = time(NULL);

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
	diag_set(report, "date", json_string(date));
	diag_set(report, "interval_s", before ? json_real((double)(now->at_us - before->at_us) / 1e6) :
		 json_null());
	diag_set(report, "devices", stat_devices(now, before, &request->filter, ranks));
	diag_set(report, "jobs", stat_jobs(ranks));
	diag_set(report, "ranks", ranks);
	return report;
}

/* What is not there is said once, and not where the tables are. */
static void say_what_is_missing(const struct stat_sample *sample)
{
	if (!sample->looks.nr)
		fprintf(stderr, "%s: no job of yours runs here\n", tool.name);
	if (sample->looks.nr_other_version)
		fprintf(stderr, "%s: %u ranks have a library of another version, and are left out\n",
			tool.name, sample->looks.nr_other_version);
}

static void report_print(const struct request *request, const json_t *report, bool first)
{
	if (request->json && request->interval) {
		json_dumpf(report, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
		diag_written(&tool);
	} else if (request->json) {
		diag_print(&tool, report);
	} else {
		if (request->top)
			fputs("\033[H\033[2J", stdout);
		else if (!first)
			putchar('\n');
		print_tables(request, report);
		diag_written(&tool);
	}
}

static void run(const struct request *request)
{
	struct stat_sample *before = NULL;

	for (unsigned long i = 0; !i || (request->interval && i != request->count); i++) {
		struct stat_sample *now;
		json_t *report;

		if (i)
			usleep((useconds_t)(request->interval * 1e6));
		now = sample_take();
		report = report_make(request, now, before);
		if (!i)
			say_what_is_missing(now);
		report_print(request, report, !i);
		json_decref(report);
		sample_free(before);
		before = now;
	}
	sample_free(before);
}

/* ---- options ------------------------------------------------------------------------------ */

static void read_times(int argc, char **argv, struct request *request)
{
	char *end;

	if (optind < argc) {
		request->interval = strtod(argv[optind], &end);
		if (*end || end == argv[optind] || !(request->interval >= 0.01) || request->interval > 4000)
			diag_usage(&tool, "INTERVAL is from 0.01 to 4000 seconds, not '%s'", argv[optind]);
		optind++;
	}
	if (optind < argc) {
		errno = 0;
		request->count = strtoul(argv[optind], &end, 10);
		if (*end || end == argv[optind] || *argv[optind] == '-' || errno || !request->count)
			diag_usage(&tool, "COUNT is from 1 on, not '%s'", argv[optind]);
		optind++;
	}
	if (optind < argc)
		diag_usage(&tool, "there is no third argument: '%s'", argv[optind]);
	if (request->top && !request->interval)
		request->interval = 1;
}

int main(int argc, char **argv)
{
	struct request request = { 0 };
	int key;

	while ((key = diag_option(&tool, argc, argv)) != -1)
		switch (key) {
		case 'd': request.filter.device = optarg; break;
		case 'J': request.filter.job = optarg; break;
		case 'c': request.communicators = true; break;
		case 'u': request.used = true; break;
		case 's': request.summary = true; break;
		case 't': request.top = true; break;
		case 'j': request.json = true; break;
		}
	read_times(argc, argv, &request);
	run(&request);
	return 0;
}
