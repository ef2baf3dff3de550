// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The packet buffer of a unit (Tianhe paper, section 1.3): a hash table from a slot
 * of one instance to its entry, and a bitmap of blocks for what entries cannot hold
 * themselves. There is an entry for every slot that the window lets through:
 * they come in chunks, as they are needed, so the windows alone bound their number.
 * Blocks are for all contexts of the unit alike, first come first served: they let
 * messages come before their turn, and nobody needs one to go on.
 */
#include "buffer.h"

#include "internal.h"

#include <errno.h>

enum {
	TABLE_BITS_MIN = 9,
	LINE = 64,				/* of the cache */
	AHEAD = 2 * sizeof(struct entry),	/* those that are taken after this one */
};

static bool table_resize(struct muster_engine *engine, struct unit *unit, uint32_t bits);

int muster_buffer_create(struct muster_engine *engine, uint32_t bytes, struct unit **result)
{
	const struct muster_engine_world *world = &engine->world;
	struct unit *unit = world->alloc(engine->opaque, sizeof(*unit));
	uint32_t i;

	if (!unit)
		return -ENOMEM;
	unit->nr_blocks = bytes / MUSTER_MTU;
	unit->nr_free = unit->nr_blocks;
	unit->spare.nr_to_take = SPARE_TAKES;
	if (unit->nr_blocks) {
		unit->blocks = world->alloc(engine->opaque, bytes);
		unit->used = world->alloc(engine->opaque, (unit->nr_blocks + 63) / 64 * 8);
	}
	unit->scratch = world->alloc(engine->opaque, MUSTER_MTU);
	if (!unit->scratch || !table_resize(engine, unit, TABLE_BITS_MIN) ||
	    (unit->nr_blocks && (!unit->blocks || !unit->used))) {
		muster_buffer_destroy(engine, unit);
		return -ENOMEM;
	}
	for (i = unit->nr_blocks; i < (unit->nr_blocks + 63) / 64 * 64; i++)
		unit->used[i / 64] |= 1ull << i % 64;
	*result = unit;
	return 0;
}

static void give_back(struct muster_engine *engine, void *p, size_t bytes)
{
	if (p)
		engine->world.free(engine->opaque, p, bytes);
}

static struct entry_chunk *spare_take(struct spare_chunks *spare)
{
	struct entry_chunk *chunk = spare->first;

	spare->first = chunk->next;
	if (spare->nr_least > --spare->nr)
		spare->nr_least = spare->nr;
	return chunk;
}

void muster_buffer_destroy(struct muster_engine *engine, struct unit *unit)
{
	while (unit->first_chunk) {	/* every entry is free */
		struct entry_chunk *chunk = unit->first_chunk;

		unit->first_chunk = chunk->next;
		give_back(engine, chunk, sizeof(*chunk));
	}
	while (unit->spare.first)
		give_back(engine, spare_take(&unit->spare), sizeof(struct entry_chunk));
	give_back(engine, unit->scratch, MUSTER_MTU);
	give_back(engine, unit->table, sizeof(*unit->table) << unit->table_bits);
	give_back(engine, unit->used, (unit->nr_blocks + 63) / 64 * 8);
	give_back(engine, unit->blocks, (size_t)unit->nr_blocks * MUSTER_MTU);
	give_back(engine, unit, sizeof(*unit));
}

/* ---- entries ---- */

/* Whoever chooses numbers and contexts does not know the key. */
static inline uint32_t hash_of(const struct context *ctx, uint32_t number, uint32_t pulse,
			       uint32_t slot)
{
	uint64_t when = (uint64_t)number << 32 | pulse << 5 | slot;

	return (when ^ ctx->hash) * ctx->engine->hash_factor[1] >> 32;
}

static inline struct entry **bucket(const struct unit *unit, uint32_t hash)
{
	return &unit->table[hash >> unit->table_shift];
}

/* Without memory chains get longer: whether it worked matters the first time only. */
static bool table_resize(struct muster_engine *engine, struct unit *unit, uint32_t bits)
{
	struct entry **old = unit->table, *entry, *next;
	uint32_t old_bits = unit->table_bits, i;
	struct entry **table = engine->world.alloc(engine->opaque, sizeof(*table) << bits);

	if (!table)
		return false;
	unit->table = table;
	unit->table_bits = bits;
	unit->table_shift = 32 - bits;
	if (!old)
		return true;
	for (i = 0; i < 1u << old_bits; i++)
		for (entry = old[i]; entry; entry = next) {
			struct entry **to = bucket(unit, entry->hash);

			next = entry->next_hashed;
			entry->next_hashed = *to;
			*to = entry;
		}
	give_back(engine, old, sizeof(*old) << old_bits);
	return true;
}

/* There are twice as many chains as entries, or how long each is would be guessed wrong too often. */
static uint32_t bits_wanted(const struct unit *unit)
{
	uint32_t bits = TABLE_BITS_MIN;

	while (1u << bits < 2 * ENTRIES_CHUNK * unit->nr_chunks)
		bits++;
	return bits;
}

/* Of entries that nothing is in, and of the chains that these had when all were used. */
size_t muster_buffer_kept(const struct unit *unit)
{
	const struct entry_chunk *chunk;
	const uint32_t bits = bits_wanted(unit);
	size_t bytes = unit->spare.nr * sizeof(*chunk);

	for (chunk = unit->first_chunk; chunk; chunk = chunk->next)
		bytes += (ENTRIES_CHUNK - chunk->nr_used) * sizeof(struct entry);
	if (unit->table_bits > bits)
		bytes += (sizeof(*unit->table) << unit->table_bits) - (sizeof(*unit->table) << bits);
	return bytes;
}

struct entry *muster_entry_find(const struct context *ctx, uint32_t number, uint32_t pulse,
				uint32_t slot)
{
	struct entry *entry;
	uint32_t hash;

	if (!muster_arrivals_any(ctx, number, slot))
		return NULL;
	hash = hash_of(ctx, number, pulse, slot);
	entry = *bucket(muster_unit(ctx), hash);
	while (entry && (entry->hash != hash || entry->owner != ctx || entry->number != number ||
			 entry->pulse != pulse || entry->slot != slot)) {
		ctx->engine->counters->probes++;
		entry = entry->next_hashed;
	}
	return entry;
}

void muster_entry_expect(const struct context *ctx, uint32_t number, uint32_t pulse, uint32_t slot)
{
	if (ctx->arrivals)
		__builtin_prefetch(&ctx->arrivals[number % MUSTER_WINDOW], true);
	__builtin_prefetch(bucket(muster_unit(ctx), hash_of(ctx, number, pulse, slot)), true);
}

/* Their lines of memory are asked for together: one after another, each would be waited for. */
void muster_entries_expect(const struct context *ctx, uint32_t number)
{
	uint32_t slots = ctx->arrivals ? ctx->arrivals[number % MUSTER_WINDOW].slots : 0;
	const struct unit *unit = muster_unit(ctx);

	for (; slots; slots &= slots - 1) {
		uint32_t hash = hash_of(ctx, number, 0, __builtin_ctz(slots));
		const char *lines = (const char *)*bucket(unit, hash);

		if (!lines)
			continue;
		__builtin_prefetch(lines);
		__builtin_prefetch(lines + LINE);
	}
}

/* Entries are taken from the first with a free one, so that the others run empty. */
static __attribute__((noinline)) void chunk_list(struct unit *unit, struct entry_chunk *chunk)
{
	chunk->next = NULL;
	chunk->prev = unit->last_chunk;
	if (unit->last_chunk)
		unit->last_chunk->next = chunk;
	else
		unit->first_chunk = chunk;
	unit->last_chunk = chunk;
}

static __attribute__((noinline)) void chunk_unlist(struct unit *unit, struct entry_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		unit->first_chunk = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	else
		unit->last_chunk = chunk->prev;
}

static struct entry_chunk *chunk_alloc(struct muster_engine *engine, struct unit *unit)
{
	struct spare_chunks *spare = &unit->spare;
	struct entry_chunk *chunk = engine->world.alloc(engine->opaque, sizeof(*chunk));
	uint32_t i;

	if (!chunk)
		return NULL;
	for (i = 0; i < ENTRIES_CHUNK; i++)
		chunk->entries[i].chunk = chunk;
	if (spare->nr_gone) {
		spare->nr_gone--;
		spare->nr_kept += spare->nr_kept < SPARE_MAX;
	}
	return chunk;
}

static __attribute__((noinline)) struct entry_chunk *chunk_new(struct muster_engine *engine,
							       struct unit *unit)
{
	struct entry_chunk *chunk = unit->spare.first ? spare_take(&unit->spare) :
							chunk_alloc(engine, unit);

	if (!chunk)
		return NULL;
	chunk_list(unit, chunk);
	unit->nr_chunks++;
	if (unit->table_bits < bits_wanted(unit))
		table_resize(engine, unit, bits_wanted(unit));
	return chunk;
}

/* Where a quarter of the chains would be enough. */
static void table_shrink(struct muster_engine *engine, struct unit *unit)
{
	if (unit->table_bits > bits_wanted(unit) + 1)
		table_resize(engine, unit, bits_wanted(unit));
}

/* What a burst had needed goes as it runs empty, but for one chunk and its chains, and for what is kept. */
static __attribute__((noinline)) void chunk_rest(struct muster_engine *engine, struct unit *unit,
						 struct entry_chunk *chunk)
{
	struct spare_chunks *spare = &unit->spare;

	chunk_unlist(unit, chunk);
	unit->nr_chunks--;
	if (spare->nr < spare->nr_kept) {
		chunk->free = NULL;
		chunk->nr_begun = 0;
		chunk->next = spare->first;
		spare->first = chunk;
		spare->nr++;
		return;
	}
	spare->nr_gone++;
	table_shrink(engine, unit);
	give_back(engine, chunk, sizeof(*chunk));
}

/* Those that nobody has needed for so long need not be kept. */
static __attribute__((noinline)) void spare_look(struct muster_engine *engine, struct unit *unit)
{
	struct spare_chunks *spare = &unit->spare;

	spare->nr_kept -= spare->nr_least;
	while (spare->nr > spare->nr_kept) {
		table_shrink(engine, unit);
		give_back(engine, spare_take(spare), sizeof(struct entry_chunk));
	}
	spare->nr_least = spare->nr;
	spare->nr_gone = 0;
	spare->nr_to_take = SPARE_TAKES;
}

static inline struct entry *chunk_take(struct unit *unit, struct entry_chunk *chunk)
{
	struct entry *entry = chunk->free;

	if (entry)
		chunk->free = entry->next_hashed;
	else
		entry = &chunk->entries[chunk->nr_begun++];
	__builtin_prefetch((char *)entry + AHEAD, true);
	__builtin_prefetch((char *)entry + AHEAD + LINE, true);
	if (++chunk->nr_used == ENTRIES_CHUNK)
		chunk_unlist(unit, chunk);
	return entry;
}

static inline struct entry *entry_take(struct context *ctx, struct unit *unit)
{
	struct entry_chunk *chunk = unit->first_chunk;
	struct entry *entry;

	if (!chunk)
		chunk = chunk_new(ctx->engine, unit);
	if (!chunk)
		return NULL;
	entry = chunk_take(unit, chunk);
	unit->nr_entries_used++;
	if (!--unit->spare.nr_to_take)
		spare_look(ctx->engine, unit);
	entry->owner = ctx;
	entry->fragments = 0;
	entry->nr_blocks = 0;
	entry->unasked = false;
	entry->combined = false;
	entry->owes_taken = false;
	entry->asked = false;
	entry->disputed = false;
	entry->held = NULL;
	return entry;
}

struct entry *muster_entry_take(struct context *ctx)
{
	return entry_take(ctx, muster_unit(ctx));
}

static inline void entry_give(struct unit *unit, struct entry *entry)
{
	struct entry_chunk *chunk = entry->chunk;

	if (entry->nr_blocks)
		muster_room_give(entry);
	if (entry->held)
		muster_pool_give(entry->owner->engine, entry->held, entry->total);
	entry->next_hashed = chunk->free;
	chunk->free = entry;
	unit->nr_entries_used--;
	if (chunk->nr_used-- == ENTRIES_CHUNK)
		chunk_list(unit, chunk);
	if (!chunk->nr_used && unit->first_chunk != unit->last_chunk)
		chunk_rest(entry->owner->engine, unit, chunk);
}

void muster_entry_give(struct entry *entry)
{
	entry_give(muster_unit(entry->owner), entry);
}

static void append(struct arrivals *arrivals, struct entry *entry)
{
	entry->next = NULL;
	entry->prev = arrivals->last;
	if (arrivals->first)
		arrivals->last->next = entry;
	else
		arrivals->first = entry;
	arrivals->last = entry;
	arrivals->slots |= 1u << entry->slot;
}

static void take_out(struct arrivals *arrivals, struct entry *entry)
{
	if (arrivals->first == entry)
		arrivals->first = entry->next;
	else
		entry->prev->next = entry->next;
	if (arrivals->last == entry)
		arrivals->last = entry->prev;
	else
		entry->next->prev = entry->prev;
	if (!arrivals->first)
		arrivals->slots = 0;
}

/* Of all numbers of the window; there while something has come. */
static __attribute__((noinline)) bool arrivals_take(struct context *ctx)
{
	const size_t bytes = MUSTER_WINDOW * sizeof(*ctx->arrivals);

	ctx->arrivals = muster_pool_take(ctx->engine, bytes);
	if (ctx->arrivals)
		memset(ctx->arrivals, 0, bytes);
	return ctx->arrivals;
}

static __attribute__((noinline)) void arrivals_give(struct context *ctx)
{
	muster_pool_give(ctx->engine, ctx->arrivals, MUSTER_WINDOW * sizeof(*ctx->arrivals));
	ctx->arrivals = NULL;
}

struct entry *muster_entry_add(struct context *ctx, uint32_t number, uint32_t pulse,
			       uint32_t slot)
{
	struct unit *unit = muster_unit(ctx);
	struct entry *entry = ctx->arrivals || arrivals_take(ctx) ? entry_take(ctx, unit) : NULL;
	struct entry **first;

	if (!entry) {
		if (!ctx->nr_arrived)
			arrivals_give(ctx);
		muster_context_starve(ctx);
		return NULL;
	}
	ctx->nr_arrived++;
	entry->hash = hash_of(ctx, number, pulse, slot);
	entry->number = number;
	entry->pulse = pulse;
	entry->slot = slot;
	append(&ctx->arrivals[number % MUSTER_WINDOW], entry);

	first = bucket(unit, entry->hash);
	entry->next_hashed = *first;
	*first = entry;
	return entry;
}

void muster_entry_remove(struct entry *entry)
{
	struct context *ctx = entry->owner;
	struct unit *unit = muster_unit(ctx);
	struct entry **link = bucket(unit, entry->hash);

	while (*link != entry)
		link = &(*link)->next_hashed;
	*link = entry->next_hashed;
	take_out(&ctx->arrivals[entry->number % MUSTER_WINDOW], entry);
	entry_give(unit, entry);
	if (!--ctx->nr_arrived)
		arrivals_give(ctx);
}

void muster_entries_remove(struct context *ctx)
{
	uint32_t i;

	for (i = 0; ctx->arrivals; i++)
		while (muster_arrivals_first(ctx, i))
			muster_entry_remove(ctx->arrivals[i].first);
}

/* ---- blocks ---- */

static void count_used(struct context *ctx, uint32_t nr)
{
	struct muster_engine_counters *counters = ctx->engine->counters;

	muster_unit(ctx)->nr_used += nr;
	if (counters->buffer_blocks_used_max < muster_unit(ctx)->nr_used)
		counters->buffer_blocks_used_max = muster_unit(ctx)->nr_used;
}

static uint16_t block_take(struct unit *unit, uint32_t *word)
{
	uint32_t bit;

	while (!~unit->used[*word])
		(*word)++;
	bit = __builtin_ctzll(~unit->used[*word]);
	unit->used[*word] |= 1ull << bit;
	return *word * 64 + bit;
}

static void wait_for_blocks(struct context *ctx)
{
	struct unit *unit = muster_unit(ctx);

	if (ctx->wants_room)
		return;
	ctx->wants_room = true;
	ctx->next_waiting = NULL;
	ctx->prev_waiting = unit->waiting_last;
	if (unit->waiting_last)
		unit->waiting_last->next_waiting = ctx;
	else
		unit->waiting_first = ctx;
	unit->waiting_last = ctx;
}

void muster_room_forgo(struct context *ctx)
{
	struct unit *unit = muster_unit(ctx);

	if (!ctx->wants_room)
		return;
	ctx->wants_room = false;
	if (ctx->prev_waiting)
		ctx->prev_waiting->next_waiting = ctx->next_waiting;
	else
		unit->waiting_first = ctx->next_waiting;
	if (ctx->next_waiting)
		ctx->next_waiting->prev_waiting = ctx->prev_waiting;
	else
		unit->waiting_last = ctx->prev_waiting;
}

bool muster_room_take(struct entry *entry)
{
	struct context *ctx = entry->owner;
	struct unit *unit = muster_unit(ctx);
	uint32_t nr = (entry->total + MUSTER_MTU - 1) / MUSTER_MTU;
	uint32_t i, word = 0;

	if (nr > unit->nr_free) {
		wait_for_blocks(ctx);
		return false;
	}
	unit->nr_free -= nr;
	for (i = 0; i < nr; i++)
		entry->blocks[i] = block_take(unit, &word);
	entry->nr_blocks = nr;
	count_used(ctx, nr);
	return true;
}

/*
 * However much one VP sends or is sent, as many blocks as it has are left: so the next
 * VP finds some, and those that are granted can be. (See muster_room_give() for the count.)
 */
bool muster_room_take_unasked(struct entry *entry)
{
	struct vp *vp = entry->owner->engine->vps[entry->owner->vp];
	struct unit *unit = muster_unit(entry->owner);
	uint32_t word = 0;

	if (vp->nr_unasked >= unit->nr_free)
		return false;
	unit->nr_free--;
	entry->blocks[0] = block_take(unit, &word);
	entry->nr_blocks = 1;
	entry->unasked = true;
	vp->nr_unasked++;
	count_used(entry->owner, 1);
	return true;
}

/* As many as pulses that have contributed and not ended: the pool's memory, no blocks. */
bool muster_room_hold(struct entry *entry)
{
	entry->held = muster_pool_take(entry->owner->engine, entry->total);
	if (!entry->held)
		muster_context_starve(entry->owner);
	return entry->held;
}

bool muster_room_is_scarce(const struct context *ctx)
{
	return muster_unit(ctx)->nr_used > muster_unit(ctx)->nr_blocks / 4;
}

/* As many as there are blocks to be had: the others have nothing to look for. */
static void wake_waiting(struct unit *unit, uint32_t nr)
{
	struct context *ctx;

	for (; nr && unit->waiting_first; nr--) {
		ctx = unit->waiting_first;
		muster_room_forgo(ctx);
		muster_context_ready(ctx);
	}
}

void muster_room_give(struct entry *entry)
{
	struct unit *unit = muster_unit(entry->owner);
	uint32_t nr = entry->nr_blocks, i;

	if (!nr)
		return;
	if (entry->unasked)
		entry->owner->engine->vps[entry->owner->vp]->nr_unasked--;
	for (i = 0; i < nr; i++)
		unit->used[entry->blocks[i] / 64] &= ~(1ull << entry->blocks[i] % 64);
	entry->nr_blocks = 0;
	unit->nr_used -= nr;
	unit->nr_free += nr;
	wake_waiting(unit, nr);
}

void *muster_room_block(const struct entry *entry, uint32_t offset)
{
	if (!entry->nr_blocks)
		return (entry->held ? entry->held : (uint8_t *)entry->data) + offset;
	return muster_unit(entry->owner)->blocks +
	       (size_t)entry->blocks[offset / MUSTER_MTU] * MUSTER_MTU;
}
