// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The text form of schedules (Documentation/schedule.md), written and read. What
 * is read comes from a user: each line is taken apart completely before anything
 * of it is used, and the first that is wrong ends the reading with its number and
 * the reason. Whether the schedule computes its collective is not asked here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

#define TEXT_VERSION	"1"
#define NAME_BYTES	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

enum {
	LINE_MAX_BYTES = 16383,	/* of lists of ranks; all else is short */
	WORDS_MAX = 8192,
};

struct seen {
	struct muster_transfer transfer;
	unsigned long line;
};

struct reader {
	FILE *in;
	unsigned long line;
	char text[LINE_MAX_BYTES + 1];
	char *words[WORDS_MAX];
	unsigned int nr_words;
	struct muster_builder builder;
	struct seen *seen;		/* the current step's transfers, to find repeated ones */
	uint32_t nr_seen;
	uint32_t seen_room;
	char *why;
	size_t why_len;
};

__attribute__((format(printf, 2, 3)))
static void say_why(struct reader *reader, const char *format, ...)
{
	int n = snprintf(reader->why, reader->why_len, "line %lu: ", reader->line);
	va_list args;

	va_start(args, format);
	if (n >= 0 && (size_t)n < reader->why_len)
		vsnprintf(reader->why + n, reader->why_len - n, format, args);
	va_end(args);
}

/* An expression, so that compilers see that it is never 0. */
#define refuse(reader, ...)	(say_why(reader, __VA_ARGS__), -EINVAL)

/* The next line without its end and comment: 1; 0 at the end of the input; or -errno. */
static int read_line(struct reader *reader)
{
	size_t len = 0;
	int c;

	reader->line++;
	while ((c = getc(reader->in)) != EOF && c != '\n') {
		if (!c)
			return refuse(reader, "byte 0: this is not text");
		if (len == LINE_MAX_BYTES)
			return refuse(reader, "longer than %d bytes", LINE_MAX_BYTES);
		reader->text[len++] = c;
	}
	reader->text[len] = '\0';
	if (ferror(reader->in)) {
		say_why(reader, "cannot be read: %s", strerror(errno));
		return -EIO;
	}
	reader->text[strcspn(reader->text, "#")] = '\0';
	return c != EOF || len;
}

/* The words of the next line that has any; at the end of the input none. */
static int read_words(struct reader *reader)
{
	int more;

	do {
		char *rest = NULL, *word;

		reader->nr_words = 0;
		more = read_line(reader);
		if (more <= 0)
			return more;
		for (word = strtok_r(reader->text, " \t\r", &rest); word;
		     word = strtok_r(NULL, " \t\r", &rest)) {
			if (reader->nr_words == WORDS_MAX)
				return refuse(reader, "too many words");
			reader->words[reader->nr_words++] = word;
		}
	} while (!reader->nr_words);
	return 0;
}

/* A decimal number; everything above 32 bits is refused as if it were 2^32 - 1. */
static int parse_number(struct reader *reader, const char *what, const char *word, uint32_t *value)
{
	uint64_t n = 0;

	if (!*word || word[strspn(word, "0123456789")])
		return refuse(reader, "%s \"%s\" is not a number", what, word);
	for (; *word; word++)
		n = n > UINT32_MAX ? n : n * 10 + (*word - '0');
	*value = n > UINT32_MAX ? UINT32_MAX : n;
	return 0;
}

static int parse_in_range(struct reader *reader, const char *what, const char *word, uint32_t min,
			  uint32_t max, uint32_t *value)
{
	int err = parse_number(reader, what, word, value);

	if (!err && (*value < min || *value > max))
		return refuse(reader, "%s %s, but it can be %" PRIu32 " to %" PRIu32, what, word,
			      min, max);
	return err;
}

/* An index below nr, as "there are nr of them (0 to nr - 1)". */
static int parse_index(struct reader *reader, const char *what, const char *word, uint32_t nr,
		       uint32_t *value)
{
	int err = parse_number(reader, what, word, value);

	if (!err && *value >= nr)
		return refuse(reader, "%s %s, but there %s %" PRIu32 " %s%s (0 to %" PRIu32 ")",
			      what, word, nr == 1 ? "is" : "are", nr, what, nr == 1 ? "" : "s",
			      nr - 1);
	return err;
}

/* A line of the head: its keyword and one word. */
static int read_head(struct reader *reader, const char *keyword, const char **word)
{
	int err = read_words(reader);

	if (err)
		return err;
	if (!reader->nr_words)
		return refuse(reader, "the text ends where \"%s\" should follow", keyword);
	if (strcmp(reader->words[0], keyword) || reader->nr_words != 2)
		return refuse(reader, "\"%s\" and one word expected, not \"%s\"%s", keyword,
			      reader->words[0], reader->nr_words == 2 ? "" :
			      reader->nr_words < 2 ? " alone" : " and more");
	*word = reader->words[1];
	return 0;
}

static int read_head_number(struct reader *reader, const char *keyword, uint32_t min, uint32_t max,
			    uint32_t *value)
{
	const char *word;
	int err = read_head(reader, keyword, &word);

	return err ? err : parse_in_range(reader, keyword, word, min, max, value);
}

static int read_version(struct reader *reader)
{
	const char *word;
	int err = read_head(reader, "muster-schedule", &word);

	if (!err && strcmp(word, TEXT_VERSION))
		return refuse(reader, "version %s of the form, but this reads version "
			      TEXT_VERSION, word);
	return err;
}

static int read_name(struct reader *reader, char name[MUSTER_SCHEDULE_NAME_MAX + 1])
{
	const char *word;
	int err = read_head(reader, "name", &word);

	if (err)
		return err;
	if (strlen(word) > MUSTER_SCHEDULE_NAME_MAX)
		return refuse(reader, "the name is longer than %d bytes", MUSTER_SCHEDULE_NAME_MAX);
	if (word[strspn(word, NAME_BYTES)])
		return refuse(reader, "a name has only letters, digits, '.', '_' and '-'");
	strcpy(name, word);
	return 0;
}

static int read_coll(struct reader *reader, enum muster_coll *coll)
{
	char names[256];	/* the table is ours: they fit */
	size_t names_len = 0;
	const char *word;
	int err = read_head(reader, "collective", &word);

	if (err)
		return err;
	for (*coll = MUSTER_COLL_BARRIER; *coll < MUSTER_COLL_END; (*coll)++) {
		if (!strcmp(word, muster_coll_name(*coll)))
			return 0;
		names_len += snprintf(names + names_len, sizeof(names) - names_len, " %s",
				      muster_coll_name(*coll));
	}
	return refuse(reader, "collective \"%s\", but there are:%s", word, names);
}

/* chunk CHUNK at|sum RANK ... to RANK ... */
static int read_chunk_places(struct reader *reader, uint32_t chunk, uint8_t *places)
{
	uint8_t place = MUSTER_PLACE_HAS;
	uint32_t rank, number;
	bool sum, needed = false;
	int err = read_words(reader);

	if (err)
		return err;
	sum = reader->nr_words > 5 && !strcmp(reader->words[2], "sum");
	if (reader->nr_words < 6 || strcmp(reader->words[0], "chunk") ||
	    (!sum && strcmp(reader->words[2], "at")))
		return refuse(reader, "\"chunk %" PRIu32 " at RANK ... to RANK ...\" expected (or "
			      "sum instead of at)", chunk);
	err = parse_in_range(reader, "chunk", reader->words[1], chunk, chunk, &number);
	if (sum)
		place |= MUSTER_PLACE_OWN;
	for (uint32_t i = 3; i < reader->nr_words && !err; i++) {
		if (i > 3 && !needed && !strcmp(reader->words[i], "to")) {
			place = MUSTER_PLACE_NEEDS;
			needed = i + 1 < reader->nr_words;
			continue;
		}
		err = parse_index(reader, "rank", reader->words[i],
				  reader->builder.schedule.ranks, &rank);
		if (!err)
			places[rank] |= place;
	}
	if (!err && !needed)
		err = refuse(reader, "\"to\" and the ranks that need it are missing");
	return err;
}

/* Of a custom schedule: a line a chunk. */
static int read_places(struct reader *reader)
{
	const struct muster_schedule *schedule = &reader->builder.schedule;
	uint64_t nr = (uint64_t)schedule->chunks * schedule->ranks;
	uint8_t *places;
	int err = 0;

	if (nr > MUSTER_SCHEDULE_PLACES_MAX)
		return refuse(reader, "%" PRIu32 " chunks of %" PRIu32 " ranks are more than %d",
			      schedule->chunks, schedule->ranks, MUSTER_SCHEDULE_PLACES_MAX);
	places = calloc(nr, 1);
	if (!places)
		return -ENOMEM;
	for (uint32_t chunk = 0; chunk < schedule->chunks && !err; chunk++)
		err = read_chunk_places(reader, chunk, places + (size_t)chunk * schedule->ranks);
	if (!err)
		muster_builder_places(&reader->builder, places);
	free(places);
	return err;
}

/* A barrier has one; where ranks own chunks, each owns as many. */
static int read_chunks(struct reader *reader, enum muster_coll coll, uint32_t ranks,
		       uint32_t *chunks)
{
	uint64_t unit = muster_coll_chunks_unit(coll, ranks);
	int err = read_head_number(reader, "chunks", 1, muster_coll_row(coll)->has_data ?
				   MUSTER_SCHEDULE_CHUNKS_MAX : 1, chunks);

	if (!err && *chunks % unit)
		return refuse(reader, "chunks %" PRIu32 ", but in %s of %" PRIu32 " ranks it is a "
			      "multiple of %" PRIu64, *chunks, muster_coll_name(coll), ranks, unit);
	return err;
}

static int read_heads(struct reader *reader)
{
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	uint32_t ranks, chunks, root = 0;
	enum muster_coll coll;
	int err;

	err = read_version(reader);
	if (!err)
		err = read_name(reader, name);
	if (!err)
		err = read_coll(reader, &coll);
	if (!err)
		err = read_head_number(reader, "ranks", 1, MUSTER_SCHEDULE_RANKS_MAX, &ranks);
	if (!err)
		err = read_chunks(reader, coll, ranks, &chunks);
	if (!err && muster_coll_rooted(coll))
		err = read_head_number(reader, "root", 0, ranks - 1, &root);
	if (!err)
		muster_builder_init(&reader->builder, name, coll, ranks, chunks, root);
	if (!err && coll == MUSTER_COLL_CUSTOM)
		err = read_places(reader);
	return err;
}

static int compare_seen(const void *left, const void *right)
{
	const struct seen *a = left, *b = right;
	const struct muster_transfer *s = &a->transfer, *t = &b->transfer;

	if (s->chunk != t->chunk)
		return s->chunk < t->chunk ? -1 : 1;
	if (s->from != t->from)
		return s->from < t->from ? -1 : 1;
	if (s->to != t->to)
		return s->to < t->to ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* A step ends: it must have had transfers, and each of them once. */
static int end_step(struct reader *reader)
{
	if (!reader->nr_seen)
		return refuse(reader, "step %" PRIu32 " is empty", reader->builder.step);
	qsort(reader->seen, reader->nr_seen, sizeof(*reader->seen), compare_seen);
	for (uint32_t i = 1; i < reader->nr_seen; i++) {
		const struct seen *a = &reader->seen[i - 1], *b = &reader->seen[i];

		if (a->transfer.chunk != b->transfer.chunk ||
		    a->transfer.from != b->transfer.from || a->transfer.to != b->transfer.to)
			continue;
		reader->line = b->line;
		return refuse(reader, "%" PRIu32 " -> %" PRIu32 " chunk %" PRIu32 " stands in line "
			      "%lu already", b->transfer.from, b->transfer.to, b->transfer.chunk,
			      a->line);
	}
	reader->nr_seen = 0;
	return 0;
}

static int read_step(struct reader *reader, bool first)
{
	uint32_t step, expected = reader->builder.schedule.steps;
	int err = first ? 0 : end_step(reader);

	if (!err && reader->nr_words != 2)
		err = refuse(reader, "\"step\" and its number expected");
	if (!err)
		err = parse_number(reader, "step", reader->words[1], &step);
	if (!err && step != expected)
		err = refuse(reader, "step %s, but %" PRIu32 " is next", reader->words[1],
			     expected);
	if (!err && step >= MUSTER_SCHEDULE_STEPS_MAX)
		err = refuse(reader, "more than %d steps", MUSTER_SCHEDULE_STEPS_MAX);
	muster_builder_step(&reader->builder);
	return err;
}

static int remember(struct reader *reader, const struct muster_transfer *transfer)
{
	if (reader->nr_seen == reader->seen_room) {
		uint32_t room = reader->seen_room ? 2 * reader->seen_room : 64;
		struct seen *seen = realloc(reader->seen, room * sizeof(*seen));

		if (!seen)
			return -ENOMEM;
		reader->seen = seen;
		reader->seen_room = room;
	}
	reader->seen[reader->nr_seen++] = (struct seen){ *transfer, reader->line };
	return 0;
}

/* FROM -> TO chunk CHUNK reduce|copy */
static int parse_transfer(struct reader *reader, struct muster_transfer *transfer)
{
	const struct muster_schedule *schedule = &reader->builder.schedule;
	char **words = reader->words;
	int err;

	if (reader->nr_words != 6 || strcmp(words[1], "->") || strcmp(words[3], "chunk"))
		return refuse(reader, "\"FROM -> TO chunk CHUNK reduce\" (or copy), \"step\" or "
			      "\"end\" expected");
	err = parse_index(reader, "rank", words[0], schedule->ranks, &transfer->from);
	if (!err)
		err = parse_index(reader, "rank", words[2], schedule->ranks, &transfer->to);
	if (!err)
		err = parse_index(reader, "chunk", words[4], schedule->chunks, &transfer->chunk);
	if (!err && strcmp(words[5], "reduce") && strcmp(words[5], "copy"))
		err = refuse(reader, "\"%s\", but it can be reduce or copy", words[5]);
	transfer->reduce = words[5][0] == 'r';
	if (!err && transfer->from == transfer->to && !transfer->reduce)
		err = refuse(reader, "rank %s sends to itself: what it has it can only reduce", words[0]);
	return err;
}

static int read_transfer(struct reader *reader)
{
	struct muster_transfer t = { 0 };
	int err = parse_transfer(reader, &t);

	if (!err && reader->builder.schedule.nr_transfers == MUSTER_SCHEDULE_TRANSFERS_MAX)
		err = refuse(reader, "more than %d transfers", MUSTER_SCHEDULE_TRANSFERS_MAX);
	if (!err)
		err = remember(reader, &t);
	if (!err)
		muster_builder_add(&reader->builder, t.chunk, t.from, t.to, t.reduce);
	return err ? err : reader->builder.err;
}

/* Steps until "end", and nothing after it. */
static int read_steps(struct reader *reader)
{
	bool in_step = false;
	int err = 0;

	while (!err) {
		err = read_words(reader);
		if (err)
			break;
		if (!reader->nr_words)
			return refuse(reader, "the text ends without \"end\": it is cut off");
		if (!strcmp(reader->words[0], "end"))
			break;
		if (!strcmp(reader->words[0], "step")) {
			err = read_step(reader, !in_step);
			in_step = true;
		} else if (in_step) {
			err = read_transfer(reader);
		} else {
			err = refuse(reader, "\"step 0\" or \"end\" expected, not \"%s\"",
				     reader->words[0]);
		}
	}
	if (!err && in_step)
		err = end_step(reader);
	if (!err && reader->nr_words != 1)
		err = refuse(reader, "\"end\" stands alone");
	if (!err)
		err = read_words(reader);
	if (!err && reader->nr_words)
		err = refuse(reader, "\"%s\" follows after \"end\"", reader->words[0]);
	return err;
}

int muster_schedule_read(FILE *in, struct muster_schedule **schedule, char *why, size_t why_len)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	*reader = (struct reader){ .in = in, .why = why, .why_len = why_len };
	err = read_heads(reader);
	if (!err)
		err = read_steps(reader);
	if (!err)
		err = muster_builder_end(&reader->builder, schedule);
	else
		muster_builder_abandon(&reader->builder);
	if (err == -ENOMEM)
		say_why(reader, "out of memory");
	free(reader->seen);
	free(reader);
	return err;
}

static void write_ranks(const struct muster_schedule *schedule, uint32_t chunk, uint8_t place,
			FILE *out)
{
	for (uint32_t rank = 0; rank < schedule->ranks; rank++)
		if (schedule->places[(size_t)chunk * schedule->ranks + rank] & place)
			fprintf(out, " %" PRIu32, rank);
}

static void write_places(const struct muster_schedule *schedule, FILE *out)
{
	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		const uint8_t *places = schedule->places + (size_t)chunk * schedule->ranks;
		bool sum = false;

		for (uint32_t rank = 0; rank < schedule->ranks; rank++)
			sum |= places[rank] & MUSTER_PLACE_OWN;
		fprintf(out, "chunk %" PRIu32 " %s", chunk, sum ? "sum" : "at");
		write_ranks(schedule, chunk, MUSTER_PLACE_HAS, out);
		fprintf(out, " to");
		write_ranks(schedule, chunk, MUSTER_PLACE_NEEDS, out);
		fprintf(out, "\n");
	}
}

int muster_schedule_write(const struct muster_schedule *schedule, FILE *out)
{
	uint32_t next_step = 0;

	fprintf(out, "muster-schedule " TEXT_VERSION "\nname %s\ncollective %s\nranks %" PRIu32
		"\nchunks %" PRIu32 "\n", schedule->name, muster_coll_name(schedule->coll),
		schedule->ranks, schedule->chunks);
	if (muster_coll_rooted(schedule->coll))
		fprintf(out, "root %" PRIu32 "\n", schedule->root);
	if (schedule->places)
		write_places(schedule, out);
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];

		if (t->step == next_step)
			fprintf(out, "step %" PRIu32 "\n", next_step++);
		fprintf(out, "  %" PRIu32 " -> %" PRIu32 "  chunk %" PRIu32 "  %s\n", t->from,
			t->to, t->chunk, t->reduce ? "reduce" : "copy");
	}
	fprintf(out, "end\n");
	return fflush(out) || ferror(out) ? -EIO : 0;
}
