/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packet buffer of a unit: entries, of which each says what is known of one slot of
 * one instance, and the blocks that hold what entries cannot hold themselves.
 */
#ifndef MUSTER_ENGINE_BUFFER_H
#define MUSTER_ENGINE_BUFFER_H

#include <stddef.h>

#include "engine.h"

struct context;

enum buffer_limit {
	PULSE_BLOCKS = MUSTER_PULSE_MAX / MUSTER_MTU,	/* blocks of a pulse */
	ENTRIES_CHUNK = 128,		/* entries of a packet buffer, allocated together */
	SPARE_MAX = 64,			/* chunks that are kept: 8,192 entries, as the paper's buffer has slots */
	SPARE_TAKES = 4 * SPARE_MAX * ENTRIES_CHUNK,	/* "soon": so many entries later */
};

enum entry_state {
	ENTRY_ASKED = 1,	/* RTS has come; no room yet */
	ENTRY_REFERENCE,	/* RTS has come; the message lies in the sender's memory */
	ENTRY_GRANTED,		/* has room; fragments arrive */
	ENTRY_STREAMED,		/* its turn has come: fragments are combined as they arrive */
	ENTRY_FULL,		/* the message is here */
	ENTRY_VOID,		/* its memory was given back before it was read: an ABORT follows */
	ENTRY_COPY,		/* of what was sent without asking: the receiver may yet ask for it */
};

/*
 * What is known of one slot of one instance. What finding it and judging it touches comes first, in
 * one line of the cache: packets that come shuffled wait for little else.
 */
struct entry {
	struct context *owner;
	struct entry *next_hashed;	/* of the same bucket; or of the chunk's free ones */
	struct entry *next, *prev;	/* of the same number */
	uint32_t hash;		/* of owner, number, pulse and slot */
	uint32_t number;
	uint32_t pulse;
	uint32_t member;	/* who wrote it; MUSTER_CULPRIT_NONE: the tree */
	uint32_t total;
	uint16_t flags;		/* MUSTER_PACKET_* */
	uint16_t stage;
	uint8_t state;
	uint8_t slot;
	bool unasked;		/* DATA came without asking, or was sent so */
	bool combined;		/* only TAKEN is still owed */
	bool owes_taken;

	struct muster_signature signature;
	struct entry_chunk *chunk;	/* that it lies in */
	uint8_t *held;		/* a tree's result that is longer than data[]; or NULL */
	uint64_t fragments;	/* bit i: the one at offset i * MUSTER_MTU is here */
	uint8_t nr_blocks;
	bool asked;		/* of a copy: the member is to say that it has ended its number */
	bool lent;		/* of a copy: it lies at `reference`, for the member to read */
	bool disputed;		/* another member has written it otherwise, before it could be judged */
	union {
		uint8_t data[MUSTER_MP_MAX] __attribute__((aligned(8)));
		uint16_t blocks[PULSE_BLOCKS];
		struct muster_reference reference;
	};
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct entry, signature) == 64, "what is looked at first: one line");

/* What has come for one number, in the order in which it came. */
struct arrivals {
	struct entry *first, *last;
	uint32_t slots;		/* bit i: something has come for slot i since nothing was here */
};

/* Entries come in chunks, as many as are needed at once. */
struct entry_chunk {
	struct entry_chunk *next, *prev;	/* of those that have a free entry; or of the spare ones */
	struct entry *free;		/* of those that were used since the chunk was empty, */
	uint32_t nr_begun;		/* which are so many, from the first on */
	uint32_t nr_used;
	struct entry entries[ENTRIES_CHUNK];
};

/*
 * A chunk that runs empty is given back; if one is asked for soon afterwards, one more is kept
 * the next time. So what comes in bursts is not allocated for each of them.
 */
struct spare_chunks {
	struct entry_chunk *first;
	uint32_t nr;
	uint32_t nr_least;		/* of them, since it was looked last */
	uint32_t nr_kept;		/* so many may be */
	uint32_t nr_gone;		/* given back since it was looked last, and not asked for again */
	uint32_t nr_to_take;		/* entries, until it is looked next */
};

struct unit {
	/* What is looked at for every message: a line of the cache. */
	struct entry_chunk *first_chunk, *last_chunk;	/* of those that have a free entry */
	struct spare_chunks spare;
	struct entry **table;		/* hash table of 1 << table_bits chains, */
	uint32_t table_shift;		/* which the upper bits of a hash name: 32 - table_bits */
	uint32_t nr_entries_used;

	uint32_t table_bits;
	uint32_t nr_contexts;
	uint8_t *blocks;
	uint64_t *used;			/* a bit per block */
	uint32_t nr_blocks;
	uint32_t nr_free;
	uint32_t nr_used;
	uint32_t nr_chunks;		/* but for the spare ones */
	struct context *waiting_first, *waiting_last; /* for blocks */
	uint8_t *scratch;		/* MUSTER_MTU bytes, for memory that cannot be mapped */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct unit, table_bits) == 64 && sizeof(struct unit) == 128, "two lines");

int muster_buffer_create(struct muster_engine *engine, uint32_t bytes, struct unit **result);
void muster_buffer_destroy(struct muster_engine *engine, struct unit *unit);
size_t muster_buffer_kept(const struct unit *unit);	/* bytes of what nothing is in now */
struct entry *muster_entry_find(const struct context *ctx, uint32_t number, uint32_t pulse,
				uint32_t slot);
/* One is added next, maybe. */
void muster_entry_expect(const struct context *ctx, uint32_t number, uint32_t pulse, uint32_t slot);
/* What has come for pulse 0 of that number is looked at next. */
void muster_entries_expect(const struct context *ctx, uint32_t number);
/* NULL: no memory, the context has failed; only number, pulse and slot are set. */
struct entry *muster_entry_add(struct context *ctx, uint32_t number, uint32_t pulse,
			       uint32_t slot);
void muster_entry_remove(struct entry *entry);
void muster_entries_remove(struct context *ctx);
/* Blocks for entry->total bytes; false: wakes the context when there are some. */
bool muster_room_take(struct entry *entry);
void muster_room_give(struct entry *entry);
/* A block for what does not ask; false: there is none, or its VP has as many as are left. */
bool muster_room_take_unasked(struct entry *entry);
/* For a tree's result, which cannot come again when there is room. False: the context has failed. */
bool muster_room_hold(struct entry *entry);
/* Those who hold some should be asked for them. */
bool muster_room_is_scarce(const struct context *ctx);
struct entry *muster_entry_take(struct context *ctx);	/* in no table; NULL */
void muster_entry_give(struct entry *entry);
/* Wait no longer for blocks. */
void muster_room_forgo(struct context *ctx);
void *muster_room_block(const struct entry *entry, uint32_t offset);

#endif /* MUSTER_ENGINE_BUFFER_H */
