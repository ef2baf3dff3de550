// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is in a context: a table of numbers (known.c) by index, which contexts with the same members
 * share, as most do that are made of one another. It is not changed once it is whole. Members in
 * order of their addresses are found by halves; others by a hash table (open addressing) of places.
 * What was exchanged with a member is its context's own (peer.c).
 */
#include "internal.h"
#include "siphash.h"

#include <errno.h>
#include <string.h>

static uint64_t address_of(uint32_t node, uint16_t vp)
{
	return (uint64_t)node << 16 | vp;
}

static const struct member *member_of(const struct muster_engine *engine,
				      const struct member_table *table, uint32_t index)
{
	return &engine->book.known[table->numbers[index]].member;
}

/* The byte with the bit of a node. */
static uint8_t *bits_of(const struct member_table *table, uint32_t node)
{
	return (uint8_t *)(muster_member_places(table) + table->nr_places) +
	       (node & ((1u << table->log_bits) - 1)) / 8;
}

/* ---- finding one ---- */

/* Where the member is in the hash table, or the empty place where it would go. Member 0 is not there. */
static uint16_t *place_of(const struct muster_engine *engine, const struct member_table *table,
			  uint32_t node, uint16_t vp)
{
	uint64_t hash = sip_hash(engine->hash_key, address_of(node, vp)) & UINT32_MAX;
	uint32_t at = hash * table->nr_places >> 32;
	uint16_t *places = muster_member_places(table);

	while (places[at]) {
		const struct member *member = member_of(engine, table, places[at]);

		if (member->node == node && member->vp == vp)
			break;
		at = at + 1 < table->nr_places ? at + 1 : 0;
	}
	return &places[at];
}

static uint32_t find_by_halves(const struct muster_engine *engine, const struct member_table *table,
			       uint32_t node, uint16_t vp)
{
	uint64_t address = address_of(node, vp);
	uint32_t first = 0, end = table->nr;

	while (first < end) {
		uint32_t middle = (first + end) / 2;
		const struct member *member = member_of(engine, table, middle);

		if (address_of(member->node, member->vp) < address)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Its index, or that of some other one, or as many as there are. */
static uint32_t look_up(const struct muster_engine *engine, const struct member_table *table,
			uint32_t node, uint16_t vp)
{
	return table->ordered ? find_by_halves(engine, table, node, vp) :
				*place_of(engine, table, node, vp);
}

static uint32_t find(const struct muster_engine *engine, const struct member_table *table,
		     uint32_t node, uint16_t vp)
{
	uint32_t index = look_up(engine, table, node, vp);
	const struct member *member;

	if (index >= table->nr)
		return table->nr;
	member = member_of(engine, table, index);
	return member->node == node && member->vp == vp ? index : table->nr;
}

uint32_t muster_member_find(const struct context *ctx, uint32_t node, uint16_t vp)
{
	return find(ctx->engine, ctx->table, node, vp);
}

bool muster_member_may_be_at(const struct context *ctx, uint32_t node)
{
	uint8_t bit = 1u << node % 8;

	return *bits_of(ctx->table, node) & bit;
}

/* ---- making a table ---- */

static size_t table_bytes(const struct member_table *table)
{
	return sizeof(*table) + table->wanted * sizeof(*table->numbers) +
	       table->nr_places * sizeof(uint16_t) + (1u << table->log_bits) / 8;
}

/* With room for places: two thirds of them will be in use at most. */
static uint32_t places_for(uint32_t nr)
{
	return nr + nr / 2 + 1;
}

static struct member_table *table_alloc(struct muster_engine *engine, const struct member_table *like)
{
	struct member_table *table = engine->world.alloc(engine->opaque, table_bytes(like));

	if (table)
		*table = *like;
	return table;
}

static void table_free(struct muster_engine *engine, struct member_table *table)
{
	engine->world.free(engine->opaque, table, table_bytes(table));
}

struct member_table *muster_member_table_new(struct muster_engine *engine, uint32_t nr)
{
	struct member_table like = {
		.wanted = nr, .refs = 1, .ordered = true, .nr_places = places_for(nr), .log_bits = 6,
	};

	while (1u << like.log_bits < 2 * nr)
		like.log_bits++;
	return table_alloc(engine, &like);
}

/* In place of one that is whole: one without room for places that are not needed; or the same. */
static struct member_table *fitted(struct muster_engine *engine, struct member_table *table)
{
	struct member_table like = *table, *smaller;

	like.nr_places = 0;
	smaller = table->ordered ? table_alloc(engine, &like) : NULL;
	if (!smaller)
		return table;
	memcpy(smaller->numbers, table->numbers, table->nr * sizeof(*table->numbers));
	memcpy(bits_of(smaller, 0), bits_of(table, 0), (1u << table->log_bits) / 8);
	table_free(engine, table);
	return smaller;
}

/* The first that is out of order has come. */
static void places_fill(const struct muster_engine *engine, struct member_table *table)
{
	uint32_t i;

	table->ordered = false;
	for (i = 1; i < table->nr; i++) {
		const struct member *member = member_of(engine, table, i);

		*place_of(engine, table, member->node, member->vp) = i;
	}
}

/* Whether all members are in order with this one behind them. */
static bool in_order(const struct muster_engine *engine, const struct member_table *table,
		     const struct muster_member *next)
{
	const struct member *last;

	if (!table->ordered || !table->nr)
		return table->ordered;
	last = member_of(engine, table, table->nr - 1);
	return address_of(last->node, last->vp) < address_of(next->node, next->vp);
}

static int append(struct muster_engine *engine, struct member_table *table,
		  const struct muster_member *from)
{
	const struct member member = {
		.node = from->node, .incarnation = from->incarnation, .vp = from->vp,
	};
	uint32_t number = muster_known_take(engine, &member);

	if (number == MUSTER_KNOWN_NONE)
		return -ENOMEM;
	table->numbers[table->nr++] = number;
	*bits_of(table, from->node) |= 1u << from->node % 8;
	table->digest = sip_hash(engine->hash_key, table->digest ^ number);
	return 0;
}

int muster_member_add(struct context *ctx, const struct muster_member *from)
{
	struct muster_engine *engine = ctx->engine;
	struct member_table *table = ctx->table;
	int err;

	if (from->node >= MUSTER_NODE_AGGREGATION || from->vp >= MUSTER_VPS_MAX)
		return -EINVAL;
	if (table->nr == ctx->self && (from->node != engine->node || from->vp != ctx->vp))
		return -EINVAL;
	if (!in_order(engine, table, from)) {
		if (find(engine, table, from->node, from->vp) < table->nr)
			return -EINVAL;
		if (table->ordered)
			places_fill(engine, table);
		*place_of(engine, table, from->node, from->vp) = table->nr;
	}
	err = append(engine, table, from);
	if (!err)
		ctx->nr_members = table->nr;
	return err;
}

/* ---- sharing it ---- */

static struct member_table **bucket(struct muster_engine *engine, uint64_t digest)
{
	return &engine->tables[digest % TABLE_BUCKETS];
}

static bool same(const struct member_table *a, const struct member_table *b)
{
	return a->digest == b->digest && a->nr == b->nr &&
	       !memcmp(a->numbers, b->numbers, a->nr * sizeof(*a->numbers));
}

static void table_end(struct muster_engine *engine, struct member_table *table)
{
	uint32_t i;

	for (i = 0; i < table->nr; i++)
		muster_known_give(engine, table->numbers[i]);
	table_free(engine, table);
}

struct member_table *muster_member_table_share(struct muster_engine *engine,
					       struct member_table *table)
{
	struct member_table **first = bucket(engine, table->digest), *other = *first;

	while (other && !same(other, table))
		other = other->next;
	if (other) {
		table_end(engine, table);
		other->refs++;
		return other;
	}
	table = fitted(engine, table);
	table->next = *first;
	*first = table;
	table->shared = true;
	return table;
}

void muster_member_table_put(struct muster_engine *engine, struct member_table *table)
{
	struct member_table **link = bucket(engine, table->digest);

	if (--table->refs)
		return;
	if (table->shared) {
		while (*link != table)
			link = &(*link)->next;
		*link = table->next;
	}
	table_end(engine, table);
}
