// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is in a context: a table by index, which contexts with the same members share, as most do
 * that are made of one another. It is not changed once it is whole. Members in order of their
 * addresses are found by halves; others by a hash table (open addressing) of places. Whoever opens
 * a context chooses its addresses, so all hashes are SipHash-1-3 with the engine's key: nobody can
 * choose ones that collide. What was exchanged with a member is its context's own (peer.c).
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

static uint64_t rotate(uint64_t v, uint32_t bits)
{
	return v << bits | v >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

static uint64_t sip_hash(const uint64_t key[2], uint64_t word)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
		key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull,
	};
	uint32_t i;

	sip_word(v, word);
	sip_word(v, (uint64_t)sizeof(word) << 56);
	v[2] ^= 0xff;
	for (i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t address_of(uint32_t node, uint16_t vp)
{
	return (uint64_t)node << 16 | vp;
}

/* ---- finding one ---- */

/* Where the member is in the hash table, or the empty place where it would go. Member 0 is not there. */
static uint16_t *place_of(const struct muster_engine *engine, const struct member_table *table,
			  uint32_t node, uint16_t vp)
{
	uint64_t hash = sip_hash(engine->hash_key, address_of(node, vp)) & UINT32_MAX;
	uint32_t at = hash * table->nr_places >> 32;

	while (table->places[at]) {
		const struct member *member = &table->members[table->places[at]];

		if (member->node == node && member->vp == vp)
			break;
		at = at + 1 < table->nr_places ? at + 1 : 0;
	}
	return &table->places[at];
}

static uint32_t find_by_halves(const struct member_table *table, uint32_t node, uint16_t vp)
{
	uint64_t address = address_of(node, vp);
	uint32_t first = 0, end = table->nr;

	while (first < end) {
		uint32_t middle = (first + end) / 2;
		const struct member *member = &table->members[middle];

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
	return table->places ? *place_of(engine, table, node, vp) : find_by_halves(table, node, vp);
}

static uint32_t find(const struct muster_engine *engine, const struct member_table *table,
		     uint32_t node, uint16_t vp)
{
	uint32_t index = look_up(engine, table, node, vp);

	return index < table->nr && table->members[index].node == node &&
	       table->members[index].vp == vp ? index : table->nr;
}

uint32_t muster_member_find(const struct context *ctx, uint32_t node, uint16_t vp)
{
	return find(ctx->engine, ctx->table, node, vp);
}

bool muster_member_may_be_at(const struct context *ctx, uint32_t node)
{
	node &= ctx->table->nr_bits - 1;
	return ctx->table->nodes[node / 64] >> node % 64 & 1;
}

/* ---- making a table ---- */

struct member_table *muster_member_table_new(struct muster_engine *engine, uint32_t nr)
{
	struct member_table *table;
	uint32_t nr_bits = 64;
	size_t bytes;

	while (nr_bits < 2 * nr)
		nr_bits *= 2;
	bytes = sizeof(*table) + nr_bits / 8 + nr * sizeof(*table->members);
	table = engine->world.alloc(engine->opaque, bytes);
	if (!table)
		return NULL;
	table->bytes = bytes;
	table->wanted = nr;
	table->refs = 1;
	table->nr_bits = nr_bits;
	table->members = (struct member *)(table->nodes + nr_bits / 64);
	return table;
}

/* The first that is out of order has come: two thirds of the places will be in use at most. */
static int places_make(struct muster_engine *engine, struct member_table *table)
{
	uint32_t i;

	table->nr_places = table->wanted + table->wanted / 2 + 1;
	table->places = engine->world.alloc(engine->opaque,
					    table->nr_places * sizeof(*table->places));
	if (!table->places)
		return -ENOMEM;
	for (i = 1; i < table->nr; i++)
		*place_of(engine, table, table->members[i].node, table->members[i].vp) = i;
	return 0;
}

/* Whether all members are in order with this one behind them. */
static bool in_order(const struct member_table *table, const struct muster_member *next)
{
	const struct member *last;

	if (table->places || !table->nr)
		return !table->places;
	last = &table->members[table->nr - 1];
	return address_of(last->node, last->vp) < address_of(next->node, next->vp);
}

static void append(struct muster_engine *engine, struct member_table *table,
		   const struct muster_member *from)
{
	uint32_t bit = from->node & (table->nr_bits - 1);

	table->members[table->nr++] = (struct member){
		.node = from->node, .incarnation = from->incarnation, .vp = from->vp,
	};
	table->nodes[bit / 64] |= 1ull << bit % 64;
	table->digest = sip_hash(engine->hash_key, table->digest ^ address_of(from->node, from->vp));
	table->digest = sip_hash(engine->hash_key, table->digest ^ from->incarnation);
}

int muster_member_add(struct context *ctx, const struct muster_member *from)
{
	struct muster_engine *engine = ctx->engine;
	struct member_table *table = ctx->table;
	int err = 0;

	if (from->node >= MUSTER_NODE_AGGREGATION || from->vp >= MUSTER_VPS_MAX)
		return -EINVAL;
	if (table->nr == ctx->self && (from->node != engine->node || from->vp != ctx->vp))
		return -EINVAL;
	if (!in_order(table, from)) {
		if (find(engine, table, from->node, from->vp) < table->nr)
			return -EINVAL;
		err = table->places ? 0 : places_make(engine, table);
		if (err)
			return err;
		*place_of(engine, table, from->node, from->vp) = table->nr;
	}
	append(engine, table, from);
	ctx->nr_members = table->nr;
	return 0;
}

/* ---- sharing it ---- */

static struct member_table **bucket(struct muster_engine *engine, uint64_t digest)
{
	return &engine->tables[digest % TABLE_BUCKETS];
}

static bool same(const struct member_table *a, const struct member_table *b)
{
	return a->digest == b->digest && a->nr == b->nr &&
	       !memcmp(a->members, b->members, a->nr * sizeof(*a->members));
}

static void table_free(struct muster_engine *engine, struct member_table *table)
{
	if (table->places)
		engine->world.free(engine->opaque, table->places,
				   table->nr_places * sizeof(*table->places));
	engine->world.free(engine->opaque, table, table->bytes);
}

struct member_table *muster_member_table_share(struct muster_engine *engine,
					       struct member_table *table)
{
	struct member_table **first = bucket(engine, table->digest), *other = *first;

	while (other && !same(other, table))
		other = other->next;
	if (other) {
		table_free(engine, table);
		other->refs++;
		return other;
	}
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
	table_free(engine, table);
}
