// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The paper's words for a schedule, and JSON. A JSON file says what the text form
 * does: it is made that text, and read by the reader of that, so that both refuse
 * the same.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "show.h"

static uint32_t own_bandwidth(const struct muster_topology *topology, uint32_t link)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < topology->nr_limits; i++)
		for (uint32_t j = 0; j < topology->limits[i].nr_links; j++)
			if (topology->limits[i].links[j] == link &&
			    topology->limits[i].bandwidth < least)
				least = topology->limits[i].bandwidth;
	return least;
}

static void show_matrix(const struct muster_topology *topology, FILE *out)
{
	fprintf(out, "topology, chunks a round from row to column:\n");
	for (uint32_t from = 0; from < topology->nodes; from++) {
		for (uint32_t to = 0; to < topology->nodes; to++) {
			int64_t link = muster_topology_find_link(topology, from, to);

			fprintf(out, " %3" PRIu32, link < 0 ? 0 : own_bandwidth(topology, link));
		}
		fprintf(out, "\n");
	}
}

static void add_use(const struct muster_topology *topology, const uint32_t *loads, uint64_t *used,
		    uint64_t *could)
{
	for (uint32_t i = 0; i < topology->nr_links; i++) {
		*used += loads[i];
		*could += (uint64_t)own_bandwidth(topology, i) * muster_synth_rounds(topology, loads);
	}
}

static void show_loads(const struct muster_topology *topology, const uint32_t *loads, uint32_t step,
		       FILE *out)
{
	uint32_t rounds = muster_synth_rounds(topology, loads);

	fprintf(out, "step %" PRIu32 ", %" PRIu32 " rounds, chunks a round from row to column:\n",
		step, rounds);
	for (uint32_t from = 0; from < topology->nodes; from++) {
		for (uint32_t to = 0; to < topology->nodes; to++) {
			int64_t link = muster_topology_find_link(topology, from, to);

			fprintf(out, " %5.2f", link < 0 ? 0.0 : (double)loads[link] / rounds);
		}
		fprintf(out, "\n");
	}
}

int muster_show_sends(const struct muster_schedule *schedule,
		      const struct muster_topology *topology, FILE *out, char *why, size_t why_len)
{
	uint64_t used = 0, could = 0;
	uint32_t *loads;
	int err = muster_synth_loads(schedule, topology, &loads, why, why_len);

	if (err)
		return err;
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];

		fprintf(out, "%s %" PRIu32 " from %" PRIu32 " to %" PRIu32 " at step %" PRIu32
			"\n", t->reduce ? "reduce" : "send", t->chunk, t->from, t->to, t->step);
	}
	show_matrix(topology, out);
	for (uint32_t step = 0; step < schedule->steps; step++) {
		show_loads(topology, loads + (size_t)step * topology->nr_links, step, out);
		add_use(topology, loads + (size_t)step * topology->nr_links, &used, &could);
	}
	fprintf(out, "all links, all steps: %.1f %% used\n", could ? 100.0 * used / could : 0);
	free(loads);
	return fflush(out) || ferror(out) ? -EIO : 0;
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *json_of_ranks(const struct muster_schedule *schedule, uint32_t chunk, uint8_t place)
{
	json_t *ranks = json_array();

	for (uint32_t rank = 0; rank < schedule->ranks; rank++)
		if (schedule->places[(size_t)chunk * schedule->ranks + rank] & place)
			json_array_append_new(ranks, json_integer(rank));
	return ranks;
}

/* Of a custom schedule: {"at": [...], "to": [...]} by chunk, or "sum". */
static int add_places(const struct muster_schedule *schedule, json_t *root)
{
	json_t *places = json_array();
	int err = 0;

	for (uint32_t chunk = 0; chunk < schedule->chunks && !err; chunk++) {
		json_t *own = json_of_ranks(schedule, chunk, MUSTER_PLACE_OWN);
		json_t *one = json_pack("{s:o, s:o}", json_array_size(own) ? "sum" : "at",
					json_of_ranks(schedule, chunk, MUSTER_PLACE_HAS), "to",
					json_of_ranks(schedule, chunk, MUSTER_PLACE_NEEDS));

		err = json_array_append_new(places, one) ? -ENOMEM : 0;
		json_decref(own);
	}
	return json_object_set_new(root, "places", places) || err ? -ENOMEM : 0;
}

int muster_show_json(const struct muster_schedule *schedule, FILE *out)
{
	json_t *transfers = json_array();
	json_t *root = json_pack("{s:s, s:s, s:I, s:I}", "name", schedule->name, "collective",
				 muster_coll_name(schedule->coll), "ranks",
				 (json_int_t)schedule->ranks, "chunks",
				 (json_int_t)schedule->chunks);
	int err = root && transfers ? 0 : -ENOMEM;

	if (!err && muster_coll_rooted(schedule->coll))
		err = json_object_set_new(root, "root", json_integer(schedule->root)) ? -ENOMEM : 0;
	if (!err && schedule->places)
		err = add_places(schedule, root);
	for (uint32_t i = 0; i < schedule->nr_transfers && !err; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		json_t *one = json_pack("{s:I, s:I, s:I, s:I, s:b}", "step", (json_int_t)t->step,
					"chunk", (json_int_t)t->chunk, "from", (json_int_t)t->from,
					"to", (json_int_t)t->to, "reduce", (int)t->reduce);

		if (json_array_append_new(transfers, one))
			err = -ENOMEM;
	}
	if (!err && json_object_set(root, "transfers", transfers))
		err = -ENOMEM;
	if (!err && (json_dumpf(root, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ||
		     fflush(out)))
		err = -EIO;
	json_decref(transfers);
	json_decref(root);
	return err;
}

static int write_transfers(const json_t *transfers, FILE *out, char *why, size_t why_len)
{
	json_int_t before = -1;
	size_t index;
	json_t *one;

	json_array_foreach(transfers, index, one) {
		json_int_t step, chunk, from, to;
		json_error_t error;
		int reduce;

		if (json_unpack_ex(one, &error, 0, "{s:I, s:I, s:I, s:I, s:b}", "step", &step,
				   "chunk", &chunk, "from", &from, "to", &to, "reduce", &reduce)) {
			snprintf(why, why_len, "transfer %zu: %s", index, error.text);
			return -EINVAL;
		}
		if (step != before)
			fprintf(out, "step %lld\n", (long long)step);
		fprintf(out, "%lld -> %lld chunk %lld %s\n", (long long)from, (long long)to,
			(long long)chunk, reduce ? "reduce" : "copy");
		before = step;
	}
	return 0;
}

static void write_ranks(const char *word, const json_t *ranks, FILE *out)
{
	const json_t *rank;
	size_t index;

	fprintf(out, " %s", word);
	json_array_foreach(ranks, index, rank)
		fprintf(out, " %lld", (long long)json_integer_value(rank));
}

static void write_places(const json_t *places, FILE *out)
{
	const json_t *one;
	size_t chunk;

	json_array_foreach(places, chunk, one) {
		const json_t *sum = json_object_get(one, "sum");

		fprintf(out, "chunk %zu", chunk);
		write_ranks(sum ? "sum" : "at", sum ? sum : json_object_get(one, "at"), out);
		write_ranks("to", json_object_get(one, "to"), out);
		fprintf(out, "\n");
	}
}

/* The same in the text form. */
static int write_text(json_t *root, FILE *out, char *why, size_t why_len)
{
	const char *name, *coll;
	json_int_t ranks, chunks;
	json_t *transfers, *root_rank;
	json_error_t error;

	if (json_unpack_ex(root, &error, 0, "{s:s, s:s, s:I, s:I, s:o}", "name", &name,
			   "collective", &coll, "ranks", &ranks, "chunks", &chunks, "transfers",
			   &transfers)) {
		snprintf(why, why_len, "%s", error.text);
		return -EINVAL;
	}
	if (strpbrk(name, " \t\r\n#") || strpbrk(coll, " \t\r\n#")) {
		snprintf(why, why_len, "a name has only letters, digits, '.', '_' and '-'");
		return -EINVAL;
	}
	fprintf(out, "muster-schedule 1\nname %s\ncollective %s\nranks %lld\nchunks %lld\n", name,
		coll, (long long)ranks, (long long)chunks);
	root_rank = json_object_get(root, "root");
	if (root_rank)
		fprintf(out, "root %lld\n", (long long)json_integer_value(root_rank));
	write_places(json_object_get(root, "places"), out);
	if (write_transfers(transfers, out, why, why_len))
		return -EINVAL;
	fprintf(out, "end\n");
	return fflush(out) ? -ENOMEM : 0;
}

int muster_show_json_read(FILE *in, struct muster_schedule **schedule, char *why, size_t why_len)
{
	json_error_t error;
	json_t *root = json_loadf(in, JSON_REJECT_DUPLICATES, &error);
	char *text = NULL;
	size_t len = 0;
	FILE *stream;
	int err;

	if (!root) {
		snprintf(why, why_len, "line %d: %s", error.line, error.text);
		return -EINVAL;
	}
	stream = open_memstream(&text, &len);
	err = stream ? write_text(root, stream, why, why_len) : -ENOMEM;
	if (stream)
		fclose(stream);
	json_decref(root);
	if (!err) {
		stream = fmemopen(text, len, "r");
		err = stream ? muster_schedule_read(stream, schedule, why, why_len) : -ENOMEM;
		if (stream)
			fclose(stream);
	}
	free(text);
	return err;
}
