// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that peers read in place (rings). Some of it is its owner's own, which they do not see: in
 * half of these worlds a copy is lent in its place, as long as a node has places for copies, and
 * short memory of the other kind is copied for who does not wait until it is read. A place that
 * is given back is freed: who reads it still is found by the sanitizer.
 */
#include "dst.h"

#include <stdlib.h>
#include <string.h>

enum {
	KEY = 0x7fffff00,		/* of the first place; no region has such */
	KEPT_MAX = DST_LENT_MAX - 1,
	SHORT_MAX = 3000,
};

bool dst_lent_is(uint32_t key)
{
	return key - KEY < DST_LENT_MAX;
}

static struct dst_lent *place_of(struct dst_node *node, uint32_t key)
{
	return dst_lent_is(key) ? &node->lent[key - KEY] : NULL;
}

static uint64_t addr_of(uint32_t key)
{
	return (uint64_t)key << 32;
}

uint8_t *dst_lent_range(struct dst_node *node, uint32_t key, uint64_t addr, uint64_t len)
{
	struct dst_lent *lent = place_of(node, key);
	uint64_t offset = addr - addr_of(key);

	return !lent || !lent->memory || offset > lent->bytes || len > lent->bytes - offset ?
	       NULL : lent->memory + offset;
}

static uint32_t count_kept(const struct dst_node *node)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < DST_LENT_MAX; i++)
		nr += node->lent[i].memory && node->lent[i].context == MUSTER_LEND_KEPT;
	return nr;
}

static uint32_t find_free(const struct dst_node *node)
{
	uint32_t i = 0;

	while (i < DST_LENT_MAX && node->lent[i].memory)
		i++;
	return i;
}

bool dst_lend_copy(struct dst_node *node, uint32_t context, const uint8_t *from, struct muster_reference *lent)
{
	uint32_t place = find_free(node);

	if (!from || place == DST_LENT_MAX ||
	    (context == MUSTER_LEND_KEPT && count_kept(node) == KEPT_MAX))
		return false;
	node->lent[place] = (struct dst_lent){
		.memory = malloc(lent->length), .bytes = lent->length, .context = context, .readers = 1,
	};
	if (!node->lent[place].memory) {
		dst_fail(node->world, "no memory for a copy");
		return false;
	}
	memcpy(node->lent[place].memory, from, lent->length);
	lent->key = KEY + place;
	lent->addr = addr_of(lent->key);
	return true;
}

bool dst_lend_again(struct dst_node *node, uint32_t context, const struct muster_reference *lent)
{
	struct dst_lent *place = place_of(node, lent->key);

	if (!place->memory || place->context != context) {
		dst_fail(node->world, "node %u: what context %u does not have is lent again", node->index, context);
		return false;
	}
	place->readers++;
	return true;
}

bool dst_lend_wants_copy(const struct dst_node *node, uint32_t context, const struct muster_reference *lent)
{
	const bool own = lent->key % 4 == 0;

	if (!node->world->plan.copies)
		return false;
	return own || (context == MUSTER_LEND_KEPT && lent->length <= SHORT_MAX);
}

static void give(struct dst_lent *place)
{
	free(place->memory);
	*place = (struct dst_lent){ 0 };
}

void dst_lent_back(struct dst_node *node, const struct muster_reference *lent)
{
	struct dst_lent *place = place_of(node, lent->key);

	if (!place || !place->memory)
		dst_fail(node->world, "node %u: key %u is given back, which is not lent", node->index, lent->key);
	else if (!--place->readers)
		give(place);
}

void dst_lent_sign(struct dst_node *node, uint16_t context, bool on)
{
	uint64_t *word = &node->signs[context / 64], bit = 1ull << context % 64;

	*word = on ? *word | bit : *word & ~bit;
}

bool dst_lent_is_signed(const struct dst_node *node, uint16_t context)
{
	return node->signs[context / 64] >> context % 64 & 1;
}

void dst_lent_drop(struct dst_node *node, uint16_t context)
{
	for (uint32_t i = 0; i < DST_LENT_MAX; i++)
		if (node->lent[i].memory && node->lent[i].context == context)
			give(&node->lent[i]);
}

/* With a failure some may stay lent: nobody says any more whether they are being read. */
void dst_lent_end(struct dst_node *node)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < DST_LENT_MAX; i++) {
		nr += node->lent[i].memory != NULL;
		give(&node->lent[i]);
	}
	if (nr && !node->world->failed && node->world->plan.cause == DST_NONE)
		dst_fail(node->world, "node %u: %u copies are lent still after all contexts are closed", node->index, nr);
}
