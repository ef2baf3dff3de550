// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From records to the file (trace_file.h). An operation is shown from when it was the oldest
 * of its communicator to its end, so slices do not overlap; within, each message that was
 * taken ends a slice, which so has the time that went until it was there. Together these
 * slices are the whole operation.
 */
#include "trace_file.h"

#include <stdio.h>
#include <string.h>

#include "schedule.h"

enum { OPEN_MAX = 1024 };	/* operations of a communicator at once */

static uint32_t lead_of(const struct trace *trace, uint32_t rank, uint32_t context)
{
	uint32_t lead = context ? MUSTER_LOOK_NOBODY : 0;

	for (size_t i = 0; i < trace->nr_members && context; i++)
		if (trace->members[i].context == context && trace->members[i].rank == rank)
			lead = trace->members[i].lead;
	return lead;
}

/* The rank of a member of a communicator of this rank's; or nobody. */
static uint32_t member_rank(const struct trace *trace, uint32_t rank, uint32_t context,
			    uint32_t member)
{
	uint32_t lead = lead_of(trace, rank, context);

	if (!context)
		return member < trace->size ? member : MUSTER_LOOK_NOBODY;
	for (size_t i = 0; i < trace->nr_members; i++)
		if (trace->members[i].context == context && trace->members[i].lead == lead &&
		    trace->members[i].member == member)
			return trace->members[i].rank;
	return MUSTER_LOOK_NOBODY;
}

/* ---- events ---------------------------------------------------------------------------- */

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

static const char *coll_name(uint8_t coll)
{
	return coll && coll < MUSTER_COLL_END ? muster_coll_name(coll) : "operation";
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
	uint32_t context;
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

static struct open *open_of(struct writer *writer, uint32_t context)
{
	struct open **more, *open;
	char name[64];

	for (size_t i = 0; i < writer->nr_open; i++)
		if (writer->open[i]->context == context)
			return writer->open[i];
	more = realloc(writer->open, (writer->nr_open + 1) * sizeof(struct open *));
	if (!more)
		return NULL;
	writer->open = more;
	open = more[writer->nr_open] = calloc(1, sizeof(*open));
	if (!open)
		return NULL;
	writer->nr_open++;
	open->context = context;
	open->parts = json_array();
	open->slices = json_array();
	snprintf(name, sizeof(name), "communicator %u", context);
	add_name(writer->events, "thread_name", writer->rank, context, name);
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
	uint32_t peer = record->kind == MUSTER_TRACE_TAKE ?
			member_rank(writer->trace, writer->rank, record->context, record->member) :
			writer->rank;
	char name[64];

	if (open->first == open->started || record->time < from)
		return;
	if (record->kind == MUSTER_TRACE_TAKE)
		snprintf(name, sizeof(name), "slot %u from rank %d", record->slot, (int)peer);
	else
		snprintf(name, sizeof(name), "end");
	add_slice(open->slices, writer->rank, record->context, name, from, record->time,
		  json_pack("{s:i, s:i}", "pulse", (int)record->pulse, "sequence",
			    (int)record->number));
	json_array_append_new(open->parts, json_pack("[i, i, I]",
						     record->kind == MUSTER_TRACE_TAKE ?
						     (int)record->slot : -1, (int)peer,
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
		  json_pack("{s:I, s:s, s:f}", "bytes", (json_int_t)called->bytes, "path",
			    called->member == 1 ? "host" : called->member == 2 ? "NIC" : "other",
			    "called", us(called->time)));
	json_array_append_new(writer->operations,
			      json_pack("{s:i, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:o}", "communicator",
					(int)record->context, "lead",
					(int)lead_of(writer->trace, writer->rank, record->context),
					"number", (int)record->number,
					"collective", coll_name(called->slot), "bytes",
					(json_int_t)called->bytes, "called", (json_int_t)called->time,
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
	uint32_t peer = member_rank(writer->trace, writer->rank, record->context, record->member);
	uint32_t from = sent ? writer->rank : peer, to = sent ? peer : writer->rank;
	char id[96];

	if (peer == MUSTER_LOOK_NOBODY || (record->type != 1 && record->type != 2))
		return;		/* neither DATA nor RTS */
	snprintf(id, sizeof(id), "%u.%u.%u.%u.%u.%u.%u", from, to, record->context, record->number,
		 record->pulse, record->slot, record->type);
	json_array_append_new(writer->events,
			      json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:i, s:i}", "ph",
					sent ? "s" : "f", "bp", "e", "name", "packet", "cat",
					"packet", "id", id, "ts", us(record->time), "pid",
					(int)writer->rank, "tid", (int)record->context));
}

static void record_write(struct writer *writer, const struct muster_trace_record *record)
{
	struct open *open = open_of(writer, record->context);

	if (!open)
		return;
	switch (record->kind) {
	case MUSTER_TRACE_CALL: call(open, record); break;
	case MUSTER_TRACE_TAKE: part(writer, open, record); break;
	case MUSTER_TRACE_DONE: done(writer, open, record); break;
	case MUSTER_TRACE_SEND: case MUSTER_TRACE_RECEIVE: arrow(writer, record); break;
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

	for (uint32_t rank = 0; rank < trace->size; rank++)
		if (trace->ranks[rank].pid)
			json_array_append_new(ranks, rank_write(trace, rank, events));
	return json_pack("{s:o, s:s, s:{s:s, s:s, s:s, s:i, s:o}}", "traceEvents", events,
			 "displayTimeUnit", "ns", "muster", "schema", "muster/1", "tool",
			 "muster_trace record", "command", trace->command, "size",
			 (int)trace->size, "ranks", ranks);
}
