/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One rank's part of a schedule, walked and not stored: what it sends and what it
 * receives, step by step, in time and memory of that part alone, unless the schedule
 * lists the transfers of all ranks. Of a generated one, steps, stages and slots are
 * closed forms, which sender and receiver each compute from its parameters. In a step
 * a rank sends at most one range of chunks and receives at most one; a range may go
 * round, from the last chunk on to chunk 0. Of a generator that does all at once these steps
 * are parts of a single one.
 */
#ifndef MUSTER_PART_H
#define MUSTER_PART_H

#include "schedule.h"

enum {
	MUSTER_NOBODY = 0xffffffffu,
	MUSTER_RANGED_STEPS_MAX = 36,	/* of generators with ranges of several chunks */
};

/* What a rank does in one step. */
struct muster_exchange {
	uint32_t to;		/* or MUSTER_NOBODY */
	uint32_t from;
	uint32_t sent;		/* the first chunk of the range */
	uint32_t received;
	uint32_t nr_sent;	/* its chunks: those of the step, unless the generator says less */
	uint32_t nr_received;
	bool copies_to;		/* what is sent replaces what is there, though the step reduces */
	bool copies_from;
	uint32_t next;		/* the next step in which it does something, or steps; 0: not known */
};

struct muster_step_kind {
	uint32_t nr;		/* chunks of every range, at most */
	bool reduce;
};

struct muster_part;
struct muster_stages;

struct muster_generator {
	const char *name;
	unsigned int colls;	/* bits by enum muster_coll */
	uint32_t version;	/* another one for other transfers */
	bool ranged;		/* has ranges of several chunks; else all are of one */
	bool goes_round;	/* has ranges that go on from the last chunk to chunk 0 */
	bool at_once;		/* its steps are one: all send before any of them receives */
	uint32_t radix;		/* of a tree */
	uint32_t ranks_max;	/* if not 0 */
	uint32_t (*chunks)(uint32_t ranks);
	uint32_t (*steps)(const struct muster_schedule *schedule);
	struct muster_step_kind (*step)(const struct muster_schedule *schedule, uint32_t step);
	void (*exchange)(const struct muster_schedule *schedule, uint32_t rank, uint32_t step,
			 struct muster_exchange *exchange);
	/*
	 * The first step from this one on in which a rank may have something to do, or the
	 * number of steps. NULL: this one. So a rank with few messages looks at few steps.
	 */
	uint32_t (*next)(const struct muster_schedule *schedule, uint32_t rank, uint32_t step);
	/*
	 * Messages that a rank has received before a step; see muster_part_messages(). NULL,
	 * if ranged: they are counted step by step. At once: before that of the part's rank.
	 */
	uint32_t (*received)(const struct muster_part *part, uint32_t rank, uint32_t step);
};

/** muster_chunks_one(), muster_chunks_each() - chunks of generators: one, or one for each rank. */
uint32_t muster_chunks_one(uint32_t ranks);
uint32_t muster_chunks_each(uint32_t ranks);
/** muster_received_each() - of generators in which every rank receives one message in each step. */
uint32_t muster_received_each(const struct muster_part *part, uint32_t rank, uint32_t step);

/** muster_doublings() - how often one is doubled until it is no less than nr. */
static inline uint32_t muster_doublings(uint32_t nr)
{
	return nr > 1 ? 32 - (uint32_t)__builtin_clz(nr - 1) : 0;
}

/**
 * muster_place_of(), muster_rank_at() - ranks counted from the root: place v is rank (root + v) mod
 * ranks. Without a division, which would be what a small part costs most.
 */
static inline uint32_t muster_place_of(const struct muster_schedule *schedule, uint32_t rank)
{
	return rank < schedule->root ? rank + schedule->ranks - schedule->root :
				       rank - schedule->root;
}

static inline uint32_t muster_rank_at(const struct muster_schedule *schedule, uint32_t place)
{
	uint32_t left = schedule->ranks - schedule->root;

	return place < left ? place + schedule->root : place - left;
}

extern const struct muster_generator muster_generate_binomial;
extern const struct muster_generator muster_generate_4nomial;
extern const struct muster_generator muster_generate_8nomial;
extern const struct muster_generator muster_generate_doubling;
extern const struct muster_generator muster_generate_dissemination;
extern const struct muster_generator muster_generate_direct;
extern const struct muster_generator muster_generate_rabenseifner;
extern const struct muster_generator muster_generate_halving_doubling;
extern const struct muster_generator muster_generate_double_tree;
extern const struct muster_generator muster_generate_ring;
extern const struct muster_generator muster_generate_double_ring;
extern const struct muster_generator muster_generate_bruck;
extern const struct muster_generator muster_generate_subtrees;
extern const struct muster_generator muster_generate_linear;
extern const struct muster_generator muster_generate_pairwise;
extern const struct muster_generator muster_generate_pairwise_apart;
extern const struct muster_generator muster_generate_scan;
extern const struct muster_generator muster_generate_sweep;

/* One message of one rank. */
struct muster_message {
	uint32_t step;
	uint32_t peer;		/* the rank itself: what it has before the step, in its place */
	uint32_t first;		/* chunks [first, first + nr) */
	uint32_t nr;
	uint32_t stage;
	uint32_t slot;		/* of a send: at the receiver */
	bool is_send;
	bool reduce;		/* else it replaces what the receiver has */
};

/* By step, where ranges may be cut into messages. */
struct muster_part_tables {
	uint32_t messages[MUSTER_RANGED_STEPS_MAX + 1];	/* of all steps before */
	uint32_t rounds[MUSTER_RANGED_STEPS_MAX + 1];	/* steps, when none is too long */
	uint32_t stage[MUSTER_RANGED_STEPS_MAX + 1];	/* the first one of a step */
	uint32_t stage_begin[MUSTER_RANGED_STEPS_MAX + 1]; /* and its first step */
};

struct muster_part {
	const struct muster_schedule *schedule;
	const struct muster_generator *generator;
	uint32_t rank;
	uint32_t grain;		/* chunks of a message at most: longer ranges are several */
	bool tabled;		/* the tables are filled; else every step is one message or range */
	uint32_t nr_stages;
	uint32_t stage_steps;	/* of every stage, unless tabled */
	uint32_t stage;		/* the first one of the step */
	uint32_t stage_begin;	/* and its first step */
	uint32_t room;		/* messages of a rank in a stage, in each direction */

	/* Listed: where stages begin (NULL: not asked), and slots of the stage by rank. */
	const struct muster_stages *stages;
	uint32_t *nr_slots;
	uint32_t begin;		/* the step's first transfer */
	uint32_t now;		/* stage */
	uint32_t nr_received;	/* generated: by this rank, in this stage */

	/* Where the walk is: the next message of step, unless there is none. */
	uint32_t step;
	struct muster_step_kind kind;
	struct muster_exchange exchange;
	uint32_t nr_messages;	/* of the step in each direction, at most */
	uint32_t next;
	uint32_t end;		/* of those that have room in one step */
	uint32_t round;		/* the first of them */
	uint32_t slots;		/* of the receiver in this stage, before this step */
	bool receiving;
	struct muster_part_tables tables;	/* the last member: cleared only if used */
};

/**
 * muster_part_begin() - begin to walk.
 *
 * A range of more than grain chunks is several messages, and a step of more than
 * MUSTER_SLOTS_MAX messages several steps: chunks do not depend on each other. Within
 * a step what is sent comes first.
 * @stages: of a schedule that is listed, if stages and slots are wanted; each listed
 *	transfer is a message.
 * Return: 0; -ENOMEM, with stages only.
 */
int muster_part_begin(struct muster_part *part, const struct muster_schedule *schedule,
		      uint32_t rank, uint32_t grain, const struct muster_stages *stages);
void muster_part_end(struct muster_part *part);

/** muster_part_next() - the next message; false: there is none. */
bool muster_part_next(struct muster_part *part, struct muster_message *message);

/** muster_part_messages() - how many a rank has received before a step, if one range in each. */
uint32_t muster_part_messages(const struct muster_part *part, uint32_t step);

/** muster_parts_collect() - the transfers of all ranks, as they send them. 0; -ENOMEM; -EINVAL. */
int muster_parts_collect(const struct muster_schedule *generated, uint32_t grain,
			 struct muster_schedule **schedule);

#endif /* MUSTER_PART_H */
