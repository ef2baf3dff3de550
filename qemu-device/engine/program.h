/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is posted to the engine, once it has been checked (decode.c): sequences of steps,
 * and point-to-point messages. Part of internal.h.
 */
#ifndef MUSTER_ENGINE_PROGRAM_H
#define MUSTER_ENGINE_PROGRAM_H

#include "engine.h"

#include <string.h>

/* A descriptor that has been checked. */
struct step {
	uint16_t flags;			/* MUSTER_DESC_* */
	uint8_t kind;
	uint8_t type;
	uint8_t op;
	uint8_t cp_count;
	uint8_t slot_first;		/* of those that it awaits */
	uint8_t slot_dest;		/* at the receiver of what it sends */
	uint32_t member_dest;
	uint32_t load_key;
	uint32_t store_key;
	bool brings_data;		/* MP: data[] is the operand */
	bool is_own;			/* awaits nothing: its operand is combined into what is there */
	bool writes;			/* what it sends goes to the member's memory */
	bool to_tree;			/* what it sends goes to a tree of the context, */
	uint8_t tree;			/* this one */
	uint64_t length;		/* of all pulses */
	uint64_t load_addr;
	uint64_t store_addr;
	uint64_t remote_addr;
	uint32_t remote_key;
	uint8_t data[MUSTER_INLINE_MAX];
};

enum { NO_TREE = 0xff };

static inline bool muster_signatures_equal(const struct muster_signature *a,
					   const struct muster_signature *b)
{
	uint64_t x[2], y[2];

	_Static_assert(sizeof(*a) == sizeof(x), "without a call: every number that ends compares them");
	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return x[0] == y[0] && x[1] == y[1];
}

/* What a key of a kept program named when it was kept. */
struct bound_key {
	uint64_t life;
	uint32_t key;
};

/* One that was posted, or is kept, or both; it may be posted many times. */
struct sequence {
	struct sequence *next_kept;
	struct bound_key *keys;		/* of one that is kept */
	uint32_t nr_keys;
	uint32_t tries;			/* to begin it, for which there was no memory */
	uint64_t keys_gone;		/* engine->keys_gone when they were all looked up last */
	struct muster_desc start;	/* of one that is kept: what runs it */
	void *instances;		/* likewise, from one run to the next */
	uint32_t instance_bytes;	/* of each of its instances, of which there are */
	uint32_t nr_instances;		/* as many as live at once, or more: a power of two */
	struct predicted *predicted;	/* likewise, if it is small (predict.c); or NULL */
	size_t bytes;
	uint32_t refs;			/* places in the queue, and one if it is kept */
	bool kept;
	uint64_t cookie;
	struct muster_signature signature;
	uint32_t pulse_len;
	uint32_t pulse_count;
	uint32_t pulses_live;
	uint32_t numbers;		/* that it ends yet */
	uint16_t stage;
	uint8_t nr_steps;
	uint8_t nr_slots;
	uint8_t tree_step;		/* which one sends to the tree; NO_TREE: none does */
	uint16_t held_bytes;		/* of the longest message that it sends inline */
	bool coll_end;
	uint8_t slot_step[MUSTER_SLOTS_MAX];	/* which step awaits a slot */
	struct step steps[];
};

/* Where a one-sided write goes, in its member's memory. */
struct remote {
	uint64_t addr;
	uint32_t key;
	uint32_t bytes;
};

/* One that is on its way (write.c). */
struct outgoing {
	struct remote to;
	uint64_t addr;			/* what is written lies here, */
	uint32_t key;
	uint32_t member;		/* and goes there */
	uint32_t at;			/* so much has gone */
	bool gone;			/* all */
	uint32_t open;			/* packets that have no answer, by bit */
	uint32_t refused;		/* any of those that have */
};

/* A point-to-point message that waits for the wire; or a write, also for its answer. */
struct message {
	struct message *next;
	uint64_t cookie;
	uint64_t load_addr;
	uint32_t load_key;
	uint32_t member_dest;
	struct muster_signature signature;
	uint16_t length;
	uint16_t stage;
	uint8_t slot;
	bool completes;
	bool writes;
	bool left;			/* or never will; only its completion is missing */
	uint8_t status;			/* then: enum muster_status */
	union {
		uint8_t data[MUSTER_INLINE_MAX];
		struct outgoing out;	/* writes */
	};
};

#endif /* MUSTER_ENGINE_PROGRAM_H */
