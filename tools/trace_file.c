// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From records to the file (trace_file.h). An operation is shown from when it was the oldest
 * of its communicator to its end, so slices do not overlap; within, each message that was
 * taken ends a slice, which so has the time that went until it was there. Together these
 * slices are the whole operation.
 */
#include "trace_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

enum { OPEN_MAX = 1024 };	/* operations of a communicator at once */

/* ---- who is who ------------------------------------------------------------------------- */

static int by_member(const void *one, const void *other)
{
	const uint32_t *a = one, *b = other;

	for (size_t i = 0; i < sizeof(struct trace_member) / sizeof(*a); i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* The first that is not before it. */
static size_t member_find(const struct trace *trace, const struct trace_member *wanted)
{
	size_t low = 0, high = trace->nr_members;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (by_member(&trace->members[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Of the communicator that a record of this rank is of: its first member; or nobody. */
static uint32_t lead_of(const struct trace *trace, uint32_t rank,
			const struct muster_trace_record *record)
{
	const struct trace_member first = { .context = record->context, .life = record->life };

	if (!record->context)
		return 0;
	for (size_t i = member_find(trace, &first); i < trace->nr_members; i++) {
		const struct trace_member *member = &trace->members[i];

		if (member->context != record->context || member->life != record->life)
			break;
		if (member->rank == rank)
			return member->lead;
	}
	return MUSTER_LOOK_NOBODY;
}

/* The rank of the member that it names; or nobody. */
static uint32_t member_rank(const struct trace *trace, uint32_t rank,
			    const struct muster_trace_record *record)
{
	struct trace_member wanted = {
		.context = record->context, .life = record->life, .member = record->member,
	};
	size_t at;

	if (!record->context)
		return record->member < trace->size ? record->member : MUSTER_LOOK_NOBODY;
	wanted.lead = lead_of(trace, rank, record);
	at = member_find(trace, &wanted);
	if (at == trace->nr_members || trace->members[at].context != wanted.context ||
	    trace->members[at].life != wanted.life || trace->members[at].lead != wanted.lead ||
	    trace->members[at].member != wanted.member)
		return MUSTER_LOOK_NOBODY;
	return trace->members[at].rank;
}

/* ---- events ---------------------------------------------------------------------------- */

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static const char *coll_name(uint8_t coll)
{
	return muster_coll_row(coll) ? muster_coll_name(coll) : "operation";
}

static void add_slice(json_t *events, uint32_t rank, uint32_t context, const char *name,
		      uint64_t from, uint64_t to, json_t *arguments)
{
	json_array_append_new(events, json_pack("{s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "ph", "X",
						"name", name, "ts", us(from), "dur", us(to - from),
						"pid", (int)rank, "tid", (int)context, "args",
						arguments));
}

static void add_name(json_t *events, const char *what, uint32_t rank, uint32_t context,
		     const char *name)
{
	json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name",
						what, "pid", (int)rank, "tid", (int)context,
						"args", "name", name));
}

/* ---- operations of a communicator ----------------------------------------------------------- */

/* The oldest that has not ended. */
struct open {
	uint32_t context, life;
	uint32_t first;		/* operation */
	uint32_t started;
	uint64_t ended_ns;	/* the one before */
	uint64_t part_ns;	/* the end of what it has waited for so far */
	struct muster_trace_record called[OPEN_MAX];	/* by number */
	json_t *parts;		/* of the first, */
	json_t *slices;		/* and as events: shown when it is sure that they are its */
};

struct writer {
	const struct trace *trace;
	uint32_t rank;
	json_t *events;
	json_t *operations;
	struct open **open;
	size_t nr_open;
};

static struct open *open_of(const struct writer *writer, const struct muster_trace_record *record)
{
	for (size_t i = writer->nr_open; i > 0; i--)
		if (writer->open[i - 1]->context == record->context &&
		    writer->open[i - 1]->life == record->life)
			return writer->open[i - 1];
	return NULL;
}

static struct open *open_new(struct writer *writer)
{
	struct open **more, *open;

	more = realloc(writer->open, (writer->nr_open + 1) * sizeof(struct open *));
	if (!more)
		return NULL;
	writer->open = more;
	open = more[writer->nr_open] = calloc(1, sizeof(*open));
	if (!open)
		return NULL;
	writer->nr_open++;
	open->parts = json_array();
	open->slices = json_array();
	open->context = MUSTER_LOOK_NOBODY;
	return open;
}

/* The place of one of which nothing is under way, so that many that come and go take few. */
static struct open *open_take(struct writer *writer, const struct muster_trace_record *call)
{
	struct open *open = NULL;
	char name[64];

	for (size_t i = 0; i < writer->nr_open && !open; i++)
		if (writer->open[i]->first == writer->open[i]->started)
			open = writer->open[i];
	if (!open)
		open = open_new(writer);
	if (!open)
		return NULL;
	if (open->context != call->context) {
		snprintf(name, sizeof(name), "communicator %u", call->context);
		add_name(writer->events, "thread_name", writer->rank, call->context, name);
	}
	open->context = call->context;
	open->life = call->life;
	open->first = open->started = call->number;
	open->ended_ns = open->part_ns = 0;
	return open;
}

/* When the first of the operations under way became so. */
static uint64_t begin_ns(const struct open *open)
{
	uint64_t called = open->called[open->first % OPEN_MAX].time;

	return called > open->ended_ns ? called : open->ended_ns;
}

/* Another one is the first, as ends or beginnings of those before were lost. */
static void first_set(struct open *open, uint32_t number)
{
	open->first = number;
	open->part_ns = 0;
	json_array_clear(open->parts);
	json_array_clear(open->slices);
}

static bool is_open(const struct open *open, uint32_t number)
{
	const struct muster_trace_record *called = &open->called[number % OPEN_MAX];

	return number - open->first < open->started - open->first &&
	       called->kind == MUSTER_TRACE_CALL && called->number == number;
}

static void call(struct open *open, const struct muster_trace_record *record)
{
	if (record->number != open->started)
		first_set(open, record->number);
	open->called[record->number % OPEN_MAX] = *record;
	open->started = record->number + 1;
}

/* A part of the oldest operation is over. */
static void part(struct writer *writer, struct open *open, const struct muster_trace_record *record)
{
	uint64_t begin = begin_ns(open);
	uint64_t from = open->part_ns > begin ? open->part_ns : begin;
	bool taken = record->kind != MUSTER_TRACE_DONE;
	uint32_t peer = taken ? member_rank(writer->trace, writer->rank, record) : writer->rank;
	char name[64];

	if (open->first == open->started || record->time < from)
		return;
	if (taken)
		snprintf(name, sizeof(name), "slot %u from rank %d", record->slot, (int)peer);
	else
		snprintf(name, sizeof(name), "end");
	add_slice(open->slices, writer->rank, record->context, name, from, record->time,
		  json_pack("{s:i, s:i}", "pulse", (int)record->pulse, "sequence",
			    (int)record->number));
	json_array_append_new(open->parts, json_pack("[i, i, I]",
						     taken ? (int)record->slot : -1, (int)peer,
						     (json_int_t)(record->time - from)));
	open->part_ns = record->time;
}

static void done(struct writer *writer, struct open *open, const struct muster_trace_record *record)
{
	const struct muster_trace_record *called = &open->called[record->number % OPEN_MAX];
	uint64_t begin;
	char name[64];

	if (!is_open(open, record->number))
		return;		/* its beginning was lost */
	if (record->number != open->first)
		first_set(open, record->number);
	begin = begin_ns(open);
	part(writer, open, record);
	json_array_extend(writer->events, open->slices);
	json_array_clear(open->slices);
	snprintf(name, sizeof(name), "%s %u", coll_name(called->slot), record->number);
	add_slice(writer->events, writer->rank, record->context, name, begin, record->time,
		  json_pack("{s:I, s:s, s:f}", "bytes", (json_int_t)called->pulse, "path",
			    called->member == 1 ? "host" : called->member == 2 ? "NIC" : "other",
			    "called", us(called->time)));
	json_array_append_new(writer->operations,
			      json_pack("{s:i, s:I, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:o}",
					"communicator", (int)record->context, "life",
					(json_int_t)record->life, "lead",
					(int)lead_of(writer->trace, writer->rank, record),
					"number", (int)record->number,
					"collective", coll_name(called->slot), "bytes",
					(json_int_t)called->pulse, "called", (json_int_t)called->time,
					"began", (json_int_t)begin, "ended",
					(json_int_t)record->time, "parts", open->parts));
	open->parts = json_array();
	open->ended_ns = record->time;
	open->first++;
}

/*
 * Both ends of a packet make the same name of it. The number of a packet that asks or
 * answers may come more than once: those are not shown as arrows.
 */
static void arrow(struct writer *writer, const struct muster_trace_record *record)
{
	bool sent = record->kind == MUSTER_TRACE_SEND;
	uint32_t peer = member_rank(writer->trace, writer->rank, record);
	uint32_t from = sent ? writer->rank : peer, to = sent ? peer : writer->rank;
	char id[96];

	if (peer == MUSTER_LOOK_NOBODY || (record->type != 1 && record->type != 2))
		return;		/* neither DATA nor RTS */
	snprintf(id, sizeof(id), "%u.%u.%u.%u.%u.%u.%u.%u.%u", from, to, record->context, record->life,
		 record->number, record->pulse, record->slot, record->type, record->part);
	json_array_append_new(writer->events,
			      json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:i}", "ph",
					sent ? "s" : "f", "bp", "e", "name", "packet", "cat",
					"packet", "id", id, "ts", us(record->time), "pid",
					(int)writer->rank, "tid", (int)record->context));
}

static void record_write(struct writer *writer, const struct muster_trace_record *record)
{
	struct open *open = open_of(writer, record);

	if (!open && record->kind == MUSTER_TRACE_CALL)
		open = open_take(writer, record);
	if (record->kind == MUSTER_TRACE_SEND || record->kind == MUSTER_TRACE_RECEIVE ||
	    record->kind == MUSTER_TRACE_RECEIVE_TAKE)
		arrow(writer, record);
	if (!open)
		return;		/* none of its operations is known */
	switch (record->kind) {
	case MUSTER_TRACE_CALL: call(open, record); break;
	case MUSTER_TRACE_RECEIVE_TAKE: case MUSTER_TRACE_TAKE: part(writer, open, record); break;
	case MUSTER_TRACE_DONE: done(writer, open, record); break;
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

static json_t *rank_write(const struct trace *trace, uint32_t rank, json_t *events)
{
	const struct trace_rank *from = &trace->ranks[rank];
	struct writer writer = {
		.trace = trace, .rank = rank, .events = events, .operations = json_array(),
	};
	char name[64];

	snprintf(name, sizeof(name), "rank %u (pid %d)", rank, (int)from->pid);
	add_name(events, "process_name", rank, 0, name);
	for (size_t i = 0; i < from->nr; i++)
		record_write(&writer, &from->records[i]);
	for (size_t i = 0; i < writer.nr_open; i++) {
		json_array_extend(events, writer.open[i]->slices);
		json_decref(writer.open[i]->slices);
		json_decref(writer.open[i]->parts);
		free(writer.open[i]);
	}
	free(writer.open);
	return json_pack("{s:i, s:i, s:I, s:I, s:o}", "rank", (int)rank, "pid", (int)from->pid,
			 "records", (json_int_t)from->nr, "lost", (json_int_t)from->lost,
			 "operations", writer.operations);
}

json_t *trace_json(const struct trace *trace)
{
	json_t *events = json_array(), *ranks = json_array();

	if (trace->nr_members)
		qsort(trace->members, trace->nr_members, sizeof(*trace->members), by_member);
	for (uint32_t rank = 0; rank < trace->size; rank++)
		if (trace->ranks[rank].pid)
			json_array_append_new(ranks, rank_write(trace, rank, events));
	return json_pack("{s:o, s:s, s:{s:s, s:s, s:s, s:i, s:o}}", "traceEvents", events,
			 "displayTimeUnit", "ns", "muster", "schema", "muster/1", "tool",
			 "muster_trace record", "command", trace->command, "size",
			 (int)trace->size, "ranks", ranks);
}
