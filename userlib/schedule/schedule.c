// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The schedule as an object: how it is built, freed, named and told apart, and
 * how a message is cut into its chunks. The hash covers all that the ranks must
 * agree on; the name is only for people.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "arith.h"
#include "build.h"
#include "part.h"

enum { TRANSFERS_FIRST = 16 };

void muster_schedule_free(struct muster_schedule *schedule)
{
	if (!schedule)
		return;
	free(schedule->places);
	free(schedule->own);
	free(schedule->transfers);
	free(schedule);
}

uint64_t muster_schedule_hash(const struct muster_schedule *schedule)
{
	uint32_t head[] = {
		htole32(schedule->coll), htole32(schedule->ranks), htole32(schedule->chunks),
		htole32(schedule->steps), htole32(schedule->root), htole32(schedule->nr_transfers),
	};
	const struct muster_variant *variant = &schedule->variant;
	uint64_t hash;

	if (schedule->own)	/* all but these are one rank's own affair */
		return XXH64(head, 2 * sizeof(head[0]), 0);
	hash = XXH64(head, sizeof(head), 0);
	if (variant->pulse_bytes || variant->memory || variant->barrier ||
	    variant->push || variant->host) {
		uint32_t words[] = {
			htole32(variant->pulse_bytes), htole32(variant->memory),
			htole32(variant->barrier), htole32(variant->push), htole32(variant->host),
		};

		hash = XXH64(words, sizeof(words), hash);
	}
	if (schedule->generator) {
		uint32_t version = htole32(schedule->generator->version);

		hash = XXH64(schedule->name, strlen(schedule->name), hash);
		return XXH64(&version, sizeof(version), hash);
	}

	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		uint32_t words[] = {
			htole32(t->step), htole32(t->chunk), htole32(t->from), htole32(t->to),
			htole32(t->reduce),
		};

		hash = XXH64(words, sizeof(words), hash);
	}
	if (schedule->places)
		hash = XXH64(schedule->places, (size_t)schedule->chunks * schedule->ranks, hash);
	return hash;
}

void muster_chunk_range(uint64_t count, uint32_t chunks, uint32_t chunk, uint64_t *first,
			uint64_t *nr)
{
	uint64_t each = count / chunks, longer = count % chunks;

	*first = chunk * each + (chunk < longer ? chunk : longer);
	*nr = each + (chunk < longer);
}

void muster_blocks_range(const struct muster_block *blocks, uint32_t each, uint32_t chunk,
			 uint32_t nr_chunks, uint64_t *first, uint64_t *nr)
{
	uint32_t last = chunk + nr_chunks - 1;
	uint64_t end, nr_last;

	muster_chunk_range(blocks[last / each].nr, each, last % each, &end, &nr_last);
	end += blocks[last / each].first + nr_last;
	muster_chunk_range(blocks[chunk / each].nr, each, chunk % each, first, &nr_last);
	*first += blocks[chunk / each].first;
	*nr = end - *first;
}

uint32_t muster_schedule_each(const struct muster_schedule *schedule)
{
	return schedule->own ? 1 : schedule->chunks / schedule->ranks;
}

/*
 * Where a chunk begins. Where ranks own chunks a rank's part of the message is cut by itself, so
 * that several of them end where it does.
 */
static uint64_t chunk_first(const struct muster_schedule *schedule, uint64_t count, uint32_t chunk)
{
	uint64_t unit = muster_coll_chunks_unit(schedule->coll, schedule->ranks), first, nr, at;
	uint32_t parts = schedule->chunks % unit ? 1 : (uint32_t)unit, each = schedule->chunks / parts;

	if (chunk == schedule->chunks)
		return count;
	muster_chunk_range(count, parts, chunk / each, &first, &nr);
	muster_chunk_range(nr, each, chunk % each, &at, &nr);
	return first + at;
}

void muster_range_bytes(const struct muster_schedule *schedule, uint64_t count, uint8_t type,
			const struct muster_block *blocks, uint32_t chunk, uint32_t nr_chunks,
			uint64_t *first, uint64_t *bytes)
{
	uint64_t size = muster_dtype_size(type);

	if (blocks) {
		muster_blocks_range(blocks, muster_schedule_each(schedule), chunk, nr_chunks, first,
				    bytes);
	} else {
		*first = chunk_first(schedule, count, chunk);
		*bytes = chunk_first(schedule, count, chunk + nr_chunks) - *first;
	}
	*first *= size;
	*bytes *= size;
}

uint64_t muster_blocks_hash(const struct muster_block *blocks, uint32_t nr, uint64_t hash)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t le_nr = htole64(blocks[i].nr);

		hash = XXH64(&le_nr, sizeof(le_nr), hash);
	}
	return hash;
}

struct muster_signature muster_signature(enum muster_coll coll, uint8_t type, uint8_t op,
					 uint32_t root, uint64_t count, uint64_t hash)
{
	uint64_t le_count = htole64(count);

	return (struct muster_signature){
		.coll = coll, .type = type, .op = op, .root = htole32(root),
		.digest = htole64(XXH64(&le_count, sizeof(le_count), hash)),
	};
}

bool muster_signatures_agree(const struct muster_signature *a, const struct muster_signature *b)
{
	return !memcmp(a, b, sizeof(*a));
}

void muster_builder_init(struct muster_builder *builder, const char *name, enum muster_coll coll,
			 uint32_t ranks, uint32_t chunks, uint32_t root)
{
	struct muster_schedule *schedule = &builder->schedule;

	*builder = (struct muster_builder){ .schedule = {
		.coll = coll, .ranks = ranks, .chunks = chunks, .root = root,
	} };
	snprintf(schedule->name, sizeof(schedule->name), "%s", name);
	if (!ranks || ranks > MUSTER_SCHEDULE_RANKS_MAX || !chunks ||
	    chunks > MUSTER_SCHEDULE_CHUNKS_MAX || root >= ranks ||
	    chunks % muster_coll_chunks_unit(coll, ranks))
		builder->err = -EINVAL;
}

void muster_builder_places(struct muster_builder *builder, const uint8_t *places)
{
	struct muster_schedule *schedule = &builder->schedule;
	size_t nr = (size_t)schedule->chunks * schedule->ranks;

	if (builder->err)
		return;
	if (schedule->coll != MUSTER_COLL_CUSTOM || nr > MUSTER_SCHEDULE_PLACES_MAX)
		builder->err = -EINVAL;
	else
		schedule->places = malloc(nr);
	if (schedule->places)
		memcpy(schedule->places, places, nr);
	else if (!builder->err)
		builder->err = -ENOMEM;
}

void muster_builder_step(struct muster_builder *builder)
{
	builder->step = builder->schedule.steps;
}

/* The room doubles whenever it is full, so the count alone says how much there is. */
static int make_room(struct muster_schedule *schedule)
{
	uint32_t nr = schedule->nr_transfers, room;
	struct muster_transfer *transfers;

	if (nr && (nr < TRANSFERS_FIRST || (nr & (nr - 1))))
		return 0;
	if (nr >= MUSTER_SCHEDULE_TRANSFERS_MAX)
		return -EINVAL;
	room = nr ? nr * 2 : TRANSFERS_FIRST;
	transfers = realloc(schedule->transfers, room * sizeof(*transfers));
	if (!transfers)
		return -ENOMEM;
	schedule->transfers = transfers;
	return 0;
}

void muster_builder_add(struct muster_builder *builder, uint32_t chunk, uint32_t from, uint32_t to,
			bool reduce)
{
	struct muster_schedule *schedule = &builder->schedule;

	if (builder->err)
		return;
	if (from >= schedule->ranks || to >= schedule->ranks || (from == to && !reduce) ||
	    chunk >= schedule->chunks || builder->step >= MUSTER_SCHEDULE_STEPS_MAX)
		builder->err = -EINVAL;
	else
		builder->err = make_room(schedule);
	if (builder->err)
		return;
	schedule->transfers[schedule->nr_transfers++] = (struct muster_transfer){
		.step = builder->step, .chunk = chunk, .from = from, .to = to, .reduce = reduce,
	};
	schedule->steps = builder->step + 1;
}

int muster_builder_end(struct muster_builder *builder, struct muster_schedule **schedule)
{
	struct muster_schedule *made;

	if (!builder->err && builder->schedule.coll == MUSTER_COLL_CUSTOM &&
	    !builder->schedule.places)
		builder->err = -EINVAL;
	made = builder->err ? NULL : malloc(sizeof(*made));
	if (!made) {
		muster_builder_abandon(builder);
		return builder->err ? builder->err : -ENOMEM;
	}
	*made = builder->schedule;
	*schedule = made;
	return 0;
}

void muster_builder_abandon(struct muster_builder *builder)
{
	free(builder->schedule.places);
	free(builder->schedule.transfers);
	builder->schedule.transfers = NULL;
	builder->schedule.places = NULL;
}
