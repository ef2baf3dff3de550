// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shapes, and how a solution becomes a schedule of one. Whether it is right only the
 * checker of schedules says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "shape.h"
#include "words.h"

bool muster_shape_combines(const struct muster_schedule *shape)
{
	if (shape->coll != MUSTER_COLL_CUSTOM)
		return muster_coll_row(shape->coll)->combines;
	for (size_t i = 0; i < (size_t)shape->chunks * shape->ranks; i++)
		if (shape->places[i] & MUSTER_PLACE_OWN)
			return true;
	return false;
}

static int new_shape(enum muster_coll coll, uint32_t ranks, uint32_t chunks, uint32_t root,
		     const uint8_t *places, struct muster_schedule **shape)
{
	struct muster_builder builder;

	muster_builder_init(&builder, "shape", coll, ranks, chunks, root);
	if (places)
		muster_builder_places(&builder, places);
	return muster_builder_end(&builder, shape);
}

/* ---- of a collective ---------------------------------------------------------------- */

static int check_request(const struct muster_schedule *ranks, uint32_t chunks, bool root_is_switch,
			 char *why, size_t why_len)
{
	uint32_t unit = ranks->ranks ? muster_chunks_step(ranks->coll, ranks->ranks) : 1;

	if (root_is_switch || ranks->root >= ranks->ranks) {
		snprintf(why, why_len, "the root is no node that has a rank");
		return -EINVAL;
	}
	if (!chunks || chunks % unit || ranks->chunks > MUSTER_INSTANCE_CHUNKS_MAX) {
		snprintf(why, why_len, "%" PRIu32 " chunks, but in %s of %" PRIu32 " ranks it is a "
			 "multiple of %" PRIu32 ", with %d in all at most", chunks,
			 muster_coll_name(ranks->coll), ranks->ranks, unit,
			 MUSTER_INSTANCE_CHUNKS_MAX);
		return -EINVAL;
	}
	return 0;
}

/* The places of a collective of the nodes that are no switches, in their order. */
static uint8_t *places_among(const struct muster_topology *topology,
			     const struct muster_schedule *ranks)
{
	bool combines = muster_coll_row(ranks->coll)->combines;
	uint8_t *places = calloc((size_t)ranks->chunks * topology->nodes, 1);

	for (uint32_t chunk = 0; chunk < ranks->chunks && places; chunk++)
		for (uint32_t node = 0, rank = 0; node < topology->nodes; node++) {
			uint8_t *place = &places[(size_t)chunk * topology->nodes + node];

			if (topology->is_switch[node])
				continue;
			if (muster_coll_has(ranks, chunk, rank))
				*place |= MUSTER_PLACE_HAS | (combines ? MUSTER_PLACE_OWN : 0);
			if (muster_coll_needs(ranks, chunk, rank))
				*place |= MUSTER_PLACE_NEEDS;
			rank++;
		}
	return places;
}

int muster_shape_make(const struct muster_topology *topology, enum muster_coll coll, uint32_t root,
		      uint32_t chunks, struct muster_schedule **shape, char *why, size_t why_len)
{
	struct muster_schedule ranks = { .coll = coll };
	bool root_is_switch = root >= topology->nodes || topology->is_switch[root];
	uint8_t *places;
	int err;

	for (uint32_t node = 0; node < topology->nodes; node++) {
		ranks.root += node < root && !topology->is_switch[node];
		ranks.ranks += !topology->is_switch[node];
	}
	ranks.chunks = muster_global_chunks(coll, ranks.ranks, chunks);
	err = check_request(&ranks, chunks, root_is_switch, why, why_len);
	if (err)
		return err;
	if (ranks.ranks == topology->nodes)
		return new_shape(coll, ranks.ranks, ranks.chunks, root, NULL, shape);
	if (muster_coll_row(coll)->prefix) {
		snprintf(why, why_len, "no %s where there are switches", muster_coll_name(coll));
		return -EINVAL;
	}
	places = places_among(topology, &ranks);
	if (!places)
		return -ENOMEM;
	err = new_shape(MUSTER_COLL_CUSTOM, topology->nodes, ranks.chunks, 0, places, shape);
	free(places);
	return err;
}

/* ---- of a file ------------------------------------------------------------------------ */

/* chunk C at|sum A B ... to D E ... */
static int read_chunk(struct muster_words *words, uint32_t expected, uint32_t nodes,
		      uint8_t *places)
{
	bool sum = words->nr > 2 && !strcmp(words->word[2], "sum");
	uint8_t place = MUSTER_PLACE_HAS | (sum ? MUSTER_PLACE_OWN : 0);
	uint32_t chunk, node;
	int err;

	if (words->nr < 6 || strcmp(words->word[0], "chunk") ||
	    (!sum && strcmp(words->word[2], "at")))
		return muster_words_refuse(words, "\"chunk %" PRIu32 " at NODE ... to NODE ...\" "
					   "(or sum instead of at) or \"end\" expected", expected);
	err = muster_words_number(words, "chunk", words->word[1], expected, expected, &chunk);
	for (uint32_t i = 3; i < words->nr && !err; i++) {
		if (place != MUSTER_PLACE_NEEDS && i > 3 && i + 1 < words->nr &&
		    !strcmp(words->word[i], "to")) {
			place = MUSTER_PLACE_NEEDS;
			continue;
		}
		err = muster_words_number(words, "node", words->word[i], 0, nodes - 1, &node);
		if (!err)
			places[node] |= place;
	}
	if (!err && place != MUSTER_PLACE_NEEDS)
		err = muster_words_refuse(words, "\"to\" and the nodes that need it are missing");
	return err;
}

static int read_head(struct muster_words *words, uint32_t *chunks)
{
	const char *word;
	int err = muster_words_head(words, "muster-conditions", &word);

	if (!err && strcmp(word, "1"))
		err = muster_words_refuse(words, "version %.20s of the form, but this reads "
					  "version 1", word);
	if (!err)
		err = muster_words_head(words, "chunks", &word);
	if (!err)
		err = muster_words_number(words, "chunks", word, 1, MUSTER_INSTANCE_CHUNKS_MAX,
					  chunks);
	return err;
}

int muster_shape_read(FILE *in, const struct muster_topology *topology,
		      struct muster_schedule **shape, char *why, size_t why_len)
{
	struct muster_words *words = calloc(1, sizeof(*words));
	uint8_t *places = NULL;
	uint32_t chunks = 0;
	int err;

	if (!words)
		return -ENOMEM;
	*words = (struct muster_words){ .in = in, .why = why, .why_len = why_len };
	err = read_head(words, &chunks);
	if (!err) {
		places = calloc((size_t)chunks * topology->nodes, 1);
		err = places ? 0 : -ENOMEM;
	}
	for (uint32_t chunk = 0; !err && chunk < chunks; chunk++) {
		err = muster_words_next(words);
		if (!err)
			err = read_chunk(words, chunk, topology->nodes,
					 places + (size_t)chunk * topology->nodes);
	}
	if (!err)
		err = muster_words_next(words);
	if (!err && (words->nr != 1 || strcmp(words->word[0], "end")))
		err = muster_words_refuse(words, "\"end\" expected after %" PRIu32 " chunks",
					  chunks);
	if (!err)
		err = new_shape(MUSTER_COLL_CUSTOM, topology->nodes, chunks, 0, places, shape);
	free(places);
	free(words);
	return err;
}

/* ---- solutions ------------------------------------------------------------------------- */

/* The first that comes to a node with nothing is a copy, whatever it would combine with. */
static void add_step(struct muster_builder *builder, const struct muster_topology *topology,
		     const struct muster_solution *solution, uint32_t first, uint32_t end,
		     bool *there)
{
	muster_builder_step(builder);
	for (uint32_t i = first; i < end; i++) {
		const struct muster_send *send = &solution->sends[i];
		const struct muster_link *link = &topology->links[send->link];
		bool *at = &there[(size_t)send->chunk * topology->nodes + link->to];

		muster_builder_add(builder, send->chunk, link->from, link->to,
				   send->reduce && *at);
		*at = true;
	}
}

int muster_shape_schedule(const struct muster_schedule *shape, const char *name,
			  const struct muster_topology *topology,
			  const struct muster_solution *solution,
			  struct muster_schedule **schedule)
{
	bool *there = calloc((size_t)shape->chunks * shape->ranks, sizeof(*there));
	struct muster_builder builder;
	uint32_t first, end;

	if (!there)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)shape->chunks * shape->ranks; i++)
		there[i] = muster_coll_has(shape, i / shape->ranks, i % shape->ranks);
	muster_builder_init(&builder, name, shape->coll, shape->ranks, shape->chunks, shape->root);
	if (shape->places)
		muster_builder_places(&builder, shape->places);
	for (first = 0; first < solution->nr_sends; first = end) {
		for (end = first; end < solution->nr_sends &&
		     solution->sends[end].step == solution->sends[first].step; end++)
			;
		add_step(&builder, topology, solution, first, end, there);
	}
	free(there);
	return muster_builder_end(&builder, schedule);
}

static int check_sends(const struct muster_instance *instance,
		       const struct muster_solution *solution, char *why, size_t why_len)
{
	for (uint32_t i = 0; i < solution->nr_sends; i++) {
		const struct muster_send *send = &solution->sends[i];

		if (send->link < instance->topology->nr_links && send->chunk < instance->chunks &&
		    send->step < solution->steps && (!i || send->step >= send[-1].step))
			continue;
		snprintf(why, why_len, "a send of chunk %" PRIu32 " over link %" PRIu32 " in step "
			 "%" PRIu32 " that does not exist, or is out of order", send->chunk,
			 send->link, send->step);
		return -EINVAL;
	}
	return 0;
}

int muster_shape_verify(const struct muster_instance *instance,
			const struct muster_solution *solution, char *why, size_t why_len)
{
	struct muster_schedule *schedule;
	int err = check_sends(instance, solution, why, why_len);

	if (!err)
		err = muster_shape_schedule(instance->shape, "solution", instance->topology,
					    solution, &schedule);
	if (err)
		return err;
	err = muster_schedule_check(schedule, why, why_len);
	muster_schedule_free(schedule);
	return err;
}

int muster_shape_trim(const struct muster_instance *instance, struct muster_solution *solution)
{
	char why[160];

	if (muster_shape_verify(instance, solution, why, sizeof(why)))
		return 0;	/* for whoever verifies it to say */
	for (uint32_t i = solution->nr_sends; i-- > 0;) {
		struct muster_send dropped = solution->sends[i];
		size_t behind = (solution->nr_sends - i - 1) * sizeof(dropped);
		int err;

		memmove(&solution->sends[i], &solution->sends[i + 1], behind);
		solution->nr_sends--;
		err = muster_shape_verify(instance, solution, why, sizeof(why));
		if (err == -ENOMEM)
			return err;
		if (!err)
			continue;
		memmove(&solution->sends[i + 1], &solution->sends[i], behind);
		solution->sends[i] = dropped;
		solution->nr_sends++;
	}
	return 0;
}
