// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tuning files: for each collective and size, and numbers of ranks, a schedule, and how it is lowered. They
 * come from a user: each line is taken apart before anything of it is used, and the
 * schedules that it names are checked.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "tuning.h"

enum { WORDS_MAX = 8, LINES_MAX = 1024, PULSE_UNIT = 64 };

struct line {
	uint32_t ranks;			/* of the communicators that it is for; 0: of all */
	enum muster_coll coll;
	uint64_t up_to;			/* bytes */
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	struct muster_schedule *file;	/* NULL: by name */
	struct muster_variant variant;
};

struct muster_tuning {
	uint32_t nr;
	struct line *lines;
};

struct reader {
	const char *path;
	struct muster_tuning *tuning;
	bool strict;			/* what it names must exist */
	uint32_t ranks;			/* that the lines from here on are for */
	const char *unit;		/* a line, or an item of a list, */
	unsigned long number;		/* and which */
	char *words[WORDS_MAX];
	unsigned int nr_words;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct reader *reader, const char *format, ...)
{
	int n = snprintf(reader->why, reader->why_len, "%s %lu: ", reader->unit, reader->number);
	va_list args;

	va_start(args, format);
	if (n >= 0 && (size_t)n < reader->why_len)
		vsnprintf(reader->why + n, reader->why_len - n, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- reading ----------------------------------------------------------------- */

static void take_apart(struct reader *reader, char *text)
{
	char *rest = NULL;

	text[strcspn(text, "#\n")] = '\0';
	reader->nr_words = 0;
	for (char *word = strtok_r(text, " \t\r", &rest); word && reader->nr_words < WORDS_MAX;
	     word = strtok_r(NULL, " \t\r", &rest))
		reader->words[reader->nr_words++] = word;
}

static int parse_coll(struct reader *reader, const char *word, enum muster_coll *coll)
{
	char names[MUSTER_WHY_MAX];
	size_t at = 0;

	for (*coll = MUSTER_COLL_BARRIER; *coll < MUSTER_COLL_END; (*coll)++)
		if (!strcmp(word, muster_coll_name(*coll)))
			return 0;
	for (*coll = MUSTER_COLL_BARRIER; *coll < MUSTER_COLL_END && at < sizeof(names); (*coll)++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
				       muster_coll_name(*coll));
	return refuse(reader, "there is no collective \"%.20s\": there are %s", word, names);
}

/* "any", or bytes, in K or M. */
static int parse_size(struct reader *reader, const char *word, uint64_t *bytes)
{
	char *end;

	*bytes = UINT64_MAX;
	if (!strcmp(word, "any"))
		return 0;
	*bytes = strtoull(word, &end, 10);
	if (*word < '0' || *word > '9' || *bytes > 1ull << 40 ||
	    (*end && (end[1] || (*end != 'K' && *end != 'M'))))
		return refuse(reader, "\"%.40s\" is no size (bytes, K, M or any)", word);
	*bytes <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
	return 0;
}

static int parse_option(struct reader *reader, const char *word, struct muster_variant *variant)
{
	uint64_t bytes;

	if (!strcmp(word, "memory")) {
		variant->memory = true;
	} else if (!strcmp(word, "barrier")) {
		variant->barrier = true;
	} else if (!strcmp(word, "push")) {
		variant->push = true;
	} else if (!strcmp(word, "host")) {
		variant->host = true;
	} else if (!strncmp(word, "pulse=", 6)) {
		int err = parse_size(reader, word + 6, &bytes);

		if (!err && (!bytes || bytes > MUSTER_PULSE_MAX || bytes % PULSE_UNIT))
			err = refuse(reader, "pulse=%.20s: it can be %d to %d, a multiple of %d",
				     word + 6, PULSE_UNIT, MUSTER_PULSE_MAX, PULSE_UNIT);
		variant->pulse_bytes = bytes;
		return err;
	} else {
		return refuse(reader, "\"%.40s\", but there are: memory barrier push "
			      "host pulse=BYTES", word);
	}
	return 0;
}

static int read_schedule(struct reader *reader, const char *path, struct muster_schedule **schedule)
{
	char reason[MUSTER_WHY_MAX] = "";
	FILE *in = fopen(path, "re");
	int err = in ? 0 : -errno;

	if (err)
		snprintf(reason, sizeof(reason), "it cannot be opened: %s", strerror(-err));
	if (!err)
		err = muster_schedule_read(in, schedule, reason, sizeof(reason));
	if (in)
		fclose(in);
	if (err)
		return refuse(reader, "%.80s: %s", path, reason);
	err = muster_schedule_check(*schedule, reason, sizeof(reason));
	if (err) {
		muster_schedule_free(*schedule);
		*schedule = NULL;
		return refuse(reader, "%.80s: %s", path, reason);
	}
	return 0;
}

/* What a person has typed is to mean something; a file may be of a newer library. */
static int known_check(struct reader *reader, const struct line *line)
{
	char reason[MUSTER_WHY_MAX];
	struct muster_schedule *schedule;
	int err = muster_schedule_by_rank(line->name, line->coll, 2, 0, 0, &schedule, reason,
					  sizeof(reason));

	if (err)
		return err == -ENOMEM ? err : refuse(reader, "%s", reason);
	muster_schedule_free(schedule);
	return 0;
}

static int parse_schedule(struct reader *reader, const char *word, struct line *line)
{
	if (strchr(word, '/')) {
		int err = read_schedule(reader, word, &line->file);

		if (!err && line->file->coll != line->coll)
			return refuse(reader, "%.80s: it is of %s", word,
				      muster_coll_name(line->file->coll));
		return err;
	}
	if (strlen(word) > MUSTER_SCHEDULE_NAME_MAX)
		return refuse(reader, "schedule %.40s: a name has at most %d characters", word,
			      MUSTER_SCHEDULE_NAME_MAX);
	strcpy(line->name, word);
	return reader->strict ? known_check(reader, line) : 0;
}

/* COLLECTIVE UP-TO SCHEDULE [memory] [barrier] [push] [host] [pulse=BYTES] */
static int parse_line(struct reader *reader, struct line *line)
{
	int err;

	if (reader->nr_words < 3)
		return refuse(reader, "\"COLLECTIVE SIZE SCHEDULE\" or \"end\" expected");
	err = parse_coll(reader, reader->words[0], &line->coll);
	if (!err)
		err = parse_size(reader, reader->words[1], &line->up_to);
	for (unsigned int i = 3; i < reader->nr_words && !err; i++)
		err = parse_option(reader, reader->words[i], &line->variant);
	if (!err)
		err = parse_schedule(reader, reader->words[2], line);
	if (!err && line->file)
		line->file->variant = line->variant;
	return err;
}

static int add_line(struct reader *reader)
{
	struct muster_tuning *tuning = reader->tuning;
	struct line *lines;

	if (tuning->nr == LINES_MAX)
		return refuse(reader, "more than %d lines", LINES_MAX);
	lines = realloc(tuning->lines, (tuning->nr + 1) * sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	tuning->lines = lines;
	lines[tuning->nr] = (struct line){ .ranks = reader->ranks };
	return parse_line(reader, &lines[tuning->nr++]);
}

static bool is_head(const struct reader *reader)
{
	return reader->nr_words == 2 && !strcmp(reader->words[0], "muster-tuning") &&
	       (!strcmp(reader->words[1], "1") || !strcmp(reader->words[1], "2"));
}

/* ranks N, or any. */
static int read_ranks(struct reader *reader)
{
	char *end;
	unsigned long ranks = strtoul(reader->words[1], &end, 10);
	bool any = !strcmp(reader->words[1], "any");

	if (!any && (*end || reader->words[1][0] == '-' || !ranks || ranks > MUSTER_SCHEDULE_RANKS_MAX))
		return refuse(reader, "\"ranks %.20s\": it can be 1 to %d, or any", reader->words[1],
			      MUSTER_SCHEDULE_RANKS_MAX);
	reader->ranks = any ? 0 : (uint32_t)ranks;
	return 0;
}

static int read_lines(struct reader *reader, FILE *in)
{
	char *text = NULL;
	size_t room = 0;
	bool head = true, ended = false;
	int err = 0;

	while (!err && !ended && getline(&text, &room, in) >= 0) {
		reader->number++;
		take_apart(reader, text);
		if (!reader->nr_words)
			continue;
		if (head && !is_head(reader))
			err = refuse(reader, "\"muster-tuning 2\", or 1, expected");
		else if (reader->nr_words == 1 && !strcmp(reader->words[0], "end"))
			ended = true;
		else if (reader->nr_words == 2 && !strcmp(reader->words[0], "ranks"))
			err = read_ranks(reader);
		else if (!head)
			err = add_line(reader);
		head = false;
	}
	if (!err && !ended) {
		reader->number++;
		err = refuse(reader, "%s", ferror(in) ? strerror(errno) :
			     "the text ends without \"end\": it is cut off");
	}
	free(text);
	return err;
}

int muster_tuning_read(const char *path, FILE *in, struct muster_tuning **tuning, char *why,
		       size_t why_len)
{
	struct reader reader = { .path = path, .unit = "line", .why = why, .why_len = why_len };
	int err;

	reader.tuning = calloc(1, sizeof(*reader.tuning));
	if (!reader.tuning)
		return -ENOMEM;
	err = read_lines(&reader, in);
	if (err)
		muster_tuning_free(reader.tuning);
	else
		*tuning = reader.tuning;
	return err;
}

/* COLLECTIVE[:UP-TO]=SCHEDULE */
static int add_item(struct reader *reader, char *item)
{
	char *schedule = strchr(item, '='), *size;

	if (!schedule)
		return refuse(reader, "\"%.40s\", but COLLECTIVE=SCHEDULE or COLLECTIVE:SIZE=SCHEDULE is expected",
			      item);
	*schedule++ = '\0';
	size = strchr(item, ':');
	if (size)
		*size++ = '\0';
	reader->words[0] = item;
	reader->words[1] = size ? size : (char[]){ "any" };
	reader->words[2] = schedule;
	reader->nr_words = 3;
	return add_line(reader);
}

int muster_tuning_list(const char *list, struct muster_tuning **tuning, char *why, size_t why_len)
{
	struct reader reader = { .unit = "item", .strict = true, .why = why, .why_len = why_len };
	char *copy = strdup(list), *rest = copy, *item;
	int err = 0;

	reader.tuning = calloc(1, sizeof(*reader.tuning));
	if (!copy || !reader.tuning)
		err = -ENOMEM;
	while (!err && (item = strsep(&rest, ","))) {
		reader.number++;
		err = add_item(&reader, item);
	}
	free(copy);
	if (err)
		muster_tuning_free(reader.tuning);
	else
		*tuning = reader.tuning;
	return err;
}

void muster_tuning_free(struct muster_tuning *tuning)
{
	if (!tuning)
		return;
	for (uint32_t i = 0; i < tuning->nr; i++)
		muster_schedule_free(tuning->lines[i].file);
	free(tuning->lines);
	free(tuning);
}

/* ---- choosing ----------------------------------------------------------------- */

static bool file_serves(const struct muster_schedule *file, uint32_t ranks, uint32_t root)
{
	return file->ranks == ranks && (!muster_coll_rooted(file->coll) || file->root == root);
}

/* Between steps there are stages, which only listed transfers can be cut into. */
static int make_named(const struct line *line, uint32_t ranks, uint32_t root, uint64_t bytes,
		      struct muster_schedule **schedule)
{
	char why[MUSTER_WHY_MAX];
	int err;

	if (line->variant.barrier)
		err = muster_schedule_generate(line->name, line->coll, ranks, root, bytes, schedule,
					       why, sizeof(why));
	else
		err = muster_schedule_by_rank(line->name, line->coll, ranks, root, bytes, schedule,
					      why, sizeof(why));
	if (!err)
		(*schedule)->variant = line->variant;
	return err;
}

int muster_tuning_choose(const struct muster_tuning *tuning, enum muster_coll coll, uint32_t ranks,
			 uint32_t root, uint64_t bytes, struct muster_schedule **schedule,
			 bool *owned)
{
	for (uint32_t i = 0; i < tuning->nr; i++) {
		const struct line *line = &tuning->lines[i];
		int err;

		if (line->coll != coll || bytes > line->up_to || (line->ranks && line->ranks != ranks))
			continue;
		*owned = !line->file;
		if (line->file && file_serves(line->file, ranks, root)) {
			*schedule = line->file;
			return 0;
		}
		err = line->file ? -ENOENT : make_named(line, ranks, root, bytes, schedule);
		if (!err || err == -ENOMEM)
			return err;
	}
	return -ENOENT;
}
