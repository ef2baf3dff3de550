// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The packet buffer of a unit (Tianhe paper, section 1.3): an open-addressing
 * hash table from the key of a slot to its entry, and a bitmap of blocks for
 * what entries cannot hold themselves. Each context owns a reserve of one pulse
 * of blocks; the blocks behind the reserves are shared. There is an entry for
 * every slot that the window lets through, so the window alone bounds the table.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* Numbers within a window differ in their low 24 bits. */
static uint64_t entry_key(uint32_t context, uint32_t number, uint32_t pulse, uint32_t slot)
{
	return (uint64_t)number << 40 | (uint64_t)pulse << 8 | context << 5 | slot;
}

static uint32_t home(const struct unit *unit, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> (64 - unit->table_bits);
}

static uint32_t mask(const struct unit *unit)
{
	return (1u << unit->table_bits) - 1;
}

int muster_buffer_create(struct muster_engine *engine, struct unit *unit, uint32_t bytes)
{
	const struct muster_engine_world *world = &engine->world;
	uint32_t half = bytes / MUSTER_PULSE_MAX / 2;
	uint32_t i, reserved;

	unit->contexts_max = half > MUSTER_UNIT_CONTEXTS_MAX ? MUSTER_UNIT_CONTEXTS_MAX :
			     half ? half : 1;
	unit->nr_blocks = bytes / MUSTER_MTU;
	unit->nr_entries = 1 + unit->contexts_max * CONTEXT_ENTRIES;
	unit->nr_touched = 1;
	for (unit->table_bits = 1; 1u << unit->table_bits < 2 * unit->nr_entries; )
		unit->table_bits++;

	unit->blocks = world->alloc(engine->opaque, bytes);
	unit->used = world->alloc(engine->opaque, (unit->nr_blocks + 63) / 64 * 8);
	unit->entries = world->alloc(engine->opaque, unit->nr_entries * sizeof(*unit->entries));
	unit->table = world->alloc(engine->opaque, sizeof(*unit->table) << unit->table_bits);
	unit->scratch = world->alloc(engine->opaque, MUSTER_MTU);
	if (!unit->blocks || !unit->used || !unit->entries || !unit->table || !unit->scratch) {
		muster_buffer_destroy(engine, unit);
		return -ENOMEM;
	}

	reserved = unit->contexts_max * PULSE_BLOCKS;
	unit->nr_shared_free = unit->nr_blocks - reserved;
	for (i = 0; i < (unit->nr_blocks + 63) / 64 * 64; i++)
		if (i < reserved || i >= unit->nr_blocks)
			unit->used[i / 64] |= 1ull << i % 64;
	return 0;
}

static void give_back(struct muster_engine *engine, void *p, size_t bytes)
{
	if (p)
		engine->world.free(engine->opaque, p, bytes);
}

void muster_buffer_destroy(struct muster_engine *engine, struct unit *unit)
{
	give_back(engine, unit->scratch, MUSTER_MTU);
	give_back(engine, unit->table, sizeof(*unit->table) << unit->table_bits);
	give_back(engine, unit->entries, unit->nr_entries * sizeof(*unit->entries));
	give_back(engine, unit->used, (unit->nr_blocks + 63) / 64 * 8);
	give_back(engine, unit->blocks, (size_t)unit->nr_blocks * MUSTER_MTU);
	memset(unit, 0, sizeof(*unit));
}

/* ---- entries ---- */

/* Where the key is, or the empty place where it would go. */
static uint32_t place(const struct unit *unit, uint64_t key)
{
	uint32_t at = home(unit, key);

	while (unit->table[at] && unit->entries[unit->table[at]].key != key)
		at = (at + 1) & mask(unit);
	return at;
}

struct entry *muster_entry_find(const struct unit *unit, uint32_t context, uint32_t number,
				uint32_t pulse, uint32_t slot)
{
	uint16_t index = unit->table[place(unit, entry_key(context, number, pulse, slot))];

	return index ? &unit->entries[index] : NULL;
}

static uint16_t entry_take(struct unit *unit)
{
	uint16_t index = unit->free_first;

	if (index)
		unit->free_first = unit->entries[index].next;
	else if (unit->nr_touched < unit->nr_entries)
		index = unit->nr_touched++;
	return index;
}

struct entry *muster_entry_add(struct context *ctx, uint32_t number, uint32_t pulse,
			       uint32_t slot)
{
	struct unit *unit = ctx->unit;
	struct arrivals *arrivals = &ctx->arrivals[number % MUSTER_WINDOW];
	uint16_t index = entry_take(unit);
	struct entry *entry = &unit->entries[index];

	if (!index)
		return NULL;
	unit->nr_entries_used++;
	entry->key = entry_key(ctx->index, number, pulse, slot);
	entry->number = number;
	entry->pulse = pulse;
	entry->slot = slot;
	entry->fragments = 0;
	entry->nr_blocks = 0;
	entry->in_reserve = false;
	entry->combined = false;
	entry->owes_taken = false;

	entry->next = 0;
	entry->prev = arrivals->last;
	if (arrivals->last)
		unit->entries[arrivals->last].next = index;
	else
		arrivals->first = index;
	arrivals->last = index;

	unit->table[place(unit, entry->key)] = index;
	return entry;
}

/* Move what follows in the same cluster up, so that every key is found without gaps. */
static void table_remove(struct unit *unit, uint64_t key)
{
	uint32_t hole = place(unit, key), at = hole;

	for (;;) {
		at = (at + 1) & mask(unit);
		if (!unit->table[at])
			break;
		uint32_t from = home(unit, unit->entries[unit->table[at]].key);

		/* It may move unless its home lies behind the hole. */
		if (((at - from) & mask(unit)) >= ((at - hole) & mask(unit))) {
			unit->table[hole] = unit->table[at];
			hole = at;
		}
	}
	unit->table[hole] = 0;
}

void muster_entry_remove(struct context *ctx, struct entry *entry)
{
	struct unit *unit = ctx->unit;
	struct arrivals *arrivals = &ctx->arrivals[entry->number % MUSTER_WINDOW];

	muster_room_give(ctx, entry);
	table_remove(unit, entry->key);
	if (entry->prev)
		unit->entries[entry->prev].next = entry->next;
	else
		arrivals->first = entry->next;
	if (entry->next)
		unit->entries[entry->next].prev = entry->prev;
	else
		arrivals->last = entry->prev;
	unit->nr_entries_used--;
	entry->next = unit->free_first;
	unit->free_first = entry - unit->entries;
}

/* ---- blocks ---- */

static void count_used(struct context *ctx, uint32_t nr)
{
	struct muster_engine_counters *counters = &ctx->engine->counters;

	ctx->unit->nr_used += nr;
	if (counters->buffer_blocks_used_max < ctx->unit->nr_used)
		counters->buffer_blocks_used_max = ctx->unit->nr_used;
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

bool muster_room_take(struct context *ctx, struct entry *entry, bool may_use_reserve)
{
	struct unit *unit = ctx->unit;
	uint32_t nr = (entry->total + MUSTER_MTU - 1) / MUSTER_MTU;
	uint32_t i, word = 0;

	if (may_use_reserve && !ctx->reserve_used) {
		ctx->reserve_used = true;
		entry->in_reserve = true;
		for (i = 0; i < nr; i++)
			entry->blocks[i] = ctx->index * PULSE_BLOCKS + i;
	} else if (nr <= unit->nr_shared_free) {
		unit->nr_shared_free -= nr;
		for (i = 0; i < nr; i++)
			entry->blocks[i] = block_take(unit, &word);
	} else {
		ctx->wants_room = true;
		return false;
	}
	entry->nr_blocks = nr;
	count_used(ctx, nr);
	return true;
}

static void wake_waiting(struct unit *unit)
{
	uint32_t i;

	for (i = 0; i < unit->contexts_max; i++)
		if (unit->contexts[i] && unit->contexts[i]->wants_room)
			muster_context_ready(unit->contexts[i]);
}

void muster_room_give(struct context *ctx, struct entry *entry)
{
	struct unit *unit = ctx->unit;
	uint32_t i;

	if (entry->in_reserve) {
		ctx->reserve_used = false;
		entry->in_reserve = false;
	} else if (entry->nr_blocks) {
		for (i = 0; i < entry->nr_blocks; i++)
			unit->used[entry->blocks[i] / 64] &= ~(1ull << entry->blocks[i] % 64);
		unit->nr_shared_free += entry->nr_blocks;
		wake_waiting(unit);
	}
	unit->nr_used -= entry->nr_blocks;
	entry->nr_blocks = 0;
}

void *muster_room_block(const struct unit *unit, const struct entry *entry, uint32_t offset)
{
	return unit->blocks + (size_t)entry->blocks[offset / MUSTER_MTU] * MUSTER_MTU;
}
