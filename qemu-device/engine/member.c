// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The members of a context: a table by index, and a hash table (open addressing)
 * that finds them by address. Of those that something was exchanged with there is more. Whoever opens a context chooses its addresses, so the
 * hash is SipHash-1-3 with the engine's key: nobody can choose ones that collide.
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

/* Where the member is in the table, or the empty place where it would go. */
static uint32_t *member_place(const struct context *ctx, uint32_t node, uint16_t vp)
{
	uint32_t mask = (1u << ctx->member_bits) - 1;
	uint32_t at = sip_hash(ctx->engine->hash_key, (uint64_t)node << 16 | vp) & mask;

	for (; ctx->member_table[at]; at = (at + 1) & mask) {
		const struct member *member = &ctx->members[ctx->member_table[at] - 1];

		if (member->node == node && member->vp == vp)
			break;
	}
	return &ctx->member_table[at];
}

uint32_t muster_member_find(const struct context *ctx, uint32_t node, uint16_t vp)
{
	uint32_t index = *member_place(ctx, node, vp);

	return index ? index - 1 : ctx->nr_members;
}

bool muster_member_may_be_at(const struct context *ctx, uint32_t node)
{
	node &= (1u << ctx->member_bits) - 1;
	return ctx->nodes[node / 64] >> node % 64 & 1;
}

int muster_member_add(struct context *ctx, const struct muster_member *from)
{
	struct member *member = &ctx->members[ctx->nr_members];
	uint32_t *place, bit;

	if (from->node >= MUSTER_NODE_AGGREGATION || from->vp >= MUSTER_VPS_MAX)
		return -EINVAL;
	if (ctx->nr_members == ctx->self &&
	    (from->node != ctx->engine->node || from->vp != ctx->vp))
		return -EINVAL;
	place = member_place(ctx, from->node, from->vp);
	if (*place)
		return -EINVAL;
	member->node = from->node;
	member->vp = from->vp;
	member->incarnation = from->incarnation;
	bit = from->node & ((1u << ctx->member_bits) - 1);
	ctx->nodes[bit / 64] |= 1ull << bit % 64;
	*place = ++ctx->nr_members;
	return 0;
}

static bool peers_grow(struct context *ctx)
{
	uint32_t max = ctx->peers_max ? 2 * ctx->peers_max : 2;
	struct peer *peers = muster_pool_take(ctx->engine, max * sizeof(*peers));

	if (!peers)
		return false;
	if (ctx->nr_peers)
		memcpy(peers, ctx->peers, ctx->nr_peers * sizeof(*peers));
	muster_pool_give(ctx->engine, ctx->peers, ctx->peers_max * sizeof(*peers));
	ctx->peers = peers;
	ctx->peers_max = max;
	return true;
}

struct peer *muster_member_first_met(struct context *ctx, uint32_t index)
{
	struct peer *peer;

	if (ctx->nr_peers == ctx->peers_max && !peers_grow(ctx)) {
		muster_context_starve(ctx);
		return NULL;
	}
	peer = &ctx->peers[ctx->nr_peers++];
	*peer = (struct peer){ .member = index, .base = ctx->base_unheard };
	ctx->members[index].peer = ctx->nr_peers;
	return peer;
}
