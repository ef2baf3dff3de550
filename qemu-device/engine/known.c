// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is a member of any context of an engine: node, VP and incarnation, each once, however many
 * contexts it is in. These have its number, which stays the same while one of them has it. All lie
 * in an array that grows, found by a hash table of chains as large as that.
 */
#include "internal.h"
#include "siphash.h"

enum { KNOWN_FIRST = 32 };

static uint32_t *bucket(const struct muster_engine *engine, const struct member *member)
{
	const struct book *book = &engine->book;
	uint64_t address = (uint64_t)member->node << 16 | member->vp;
	uint64_t hash = sip_hash(engine->hash_key, address);

	hash = sip_hash(engine->hash_key, hash ^ member->incarnation);	/* both are more than a word */
	return &book->buckets[hash % book->max];
}

static bool same(const struct member *a, const struct member *b)
{
	return a->node == b->node && a->vp == b->vp && a->incarnation == b->incarnation;
}

static void chain(struct muster_engine *engine, uint32_t number)
{
	uint32_t *first = bucket(engine, &engine->book.known[number].member);

	engine->book.known[number].next = *first;
	*first = number + 1;
}

static void book_give(struct muster_engine *engine, struct book *book)
{
	if (book->known)
		engine->world.free(engine->opaque, book->known, book->max * sizeof(*book->known));
	if (book->buckets)
		engine->world.free(engine->opaque, book->buckets, book->max * sizeof(*book->buckets));
}

static void book_close(struct muster_engine *engine)
{
	book_give(engine, &engine->book);
	engine->book = (struct book){ .known = NULL };
}

/* Only what is whole is there: all of its numbers are in use. */
static bool grow(struct muster_engine *engine)
{
	struct book old = engine->book, *book = &engine->book;
	struct book more = { .max = old.max ? 2 * old.max : KNOWN_FIRST, .nr = old.nr, .used = old.used };
	uint32_t i;

	more.known = engine->world.alloc(engine->opaque, more.max * sizeof(*more.known));
	more.buckets = engine->world.alloc(engine->opaque, more.max * sizeof(*more.buckets));
	if (!more.known || !more.buckets) {
		book_give(engine, &more);
		return false;
	}
	if (old.nr)
		memcpy(more.known, old.known, old.nr * sizeof(*old.known));
	*book = more;
	for (i = 0; i < book->nr; i++)
		chain(engine, i);
	book_give(engine, &old);
	return true;
}

/* One that nobody has: given back, or never used. */
static uint32_t number_new(struct muster_engine *engine)
{
	struct book *book = &engine->book;
	uint32_t number = book->free - 1;

	if (book->free) {
		book->free = book->known[number].next;
		return number;
	}
	if (book->nr == book->max && !grow(engine))
		return MUSTER_KNOWN_NONE;
	return book->nr++;
}

uint32_t muster_known_take(struct muster_engine *engine, const struct member *member)
{
	struct book *book = &engine->book;
	uint32_t number = book->max ? *bucket(engine, member) : 0;

	while (number && !same(&book->known[number - 1].member, member))
		number = book->known[number - 1].next;
	if (number) {
		book->known[number - 1].refs++;
		return number - 1;
	}
	number = number_new(engine);
	if (number == MUSTER_KNOWN_NONE)
		return number;
	book->known[number].member = *member;
	book->known[number].refs = 1;
	chain(engine, number);
	book->used++;
	return number;
}

/* The array stays as large as it was, until nobody is in it. */
void muster_known_give(struct muster_engine *engine, uint32_t number)
{
	struct book *book = &engine->book;
	struct known *known = &book->known[number];
	uint32_t *link;

	if (--known->refs)
		return;
	link = bucket(engine, &known->member);
	while (*link != number + 1)
		link = &book->known[*link - 1].next;
	*link = known->next;
	known->next = book->free;
	book->free = number + 1;
	if (!--book->used)
		book_close(engine);
}

void muster_known_destroy(struct muster_engine *engine)
{
	book_close(engine);
}
