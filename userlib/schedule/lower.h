/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lowering under way: what its two files share, the making of descriptors (lower.c) and
 * the places of values (lower_spaces.c).
 */
#ifndef MUSTER_SCHEDULE_LOWER_H
#define MUSTER_SCHEDULE_LOWER_H

#include "part.h"
#include "stages.h"

/* A chunk at this rank. */
struct chunk {
	uint8_t space;		/* where its value is */
	uint8_t first;		/* OUT or SCRATCH: where it goes from IN */
	bool keeps;		/* the result from the beginning, but in IN */
	uint8_t sent_space;	/* from where it was sent last */
	uint32_t sent_step;	/* and in which step, plus 1 */
	uint32_t stage;		/* in which it was last written, plus 1 */
	uint32_t writer;	/* the operation */
	uint32_t last_op;	/* that wrote it, or sent it since */
	uint32_t left;		/* messages with it that are still to come or to go */
};

/* A descriptor to be, in a list in order of execution. */
struct op {
	struct muster_desc desc;
	uint32_t first;		/* chunks [first, first + nr) */
	uint32_t nr;
	uint32_t next;		/* 0: the last */
};

struct lowering {
	const struct muster_schedule *schedule;
	const struct muster_lower_params *params;
	struct muster_program *program;
	struct muster_stages stages;
	struct muster_part part;
	struct muster_message message;		/* the next one, unless all were had */
	bool has_message;
	uint32_t grain;				/* chunks of a message, at most */
	struct chunk *chunks;
	struct muster_desc head;		/* what all descriptors have alike */
	uint32_t pulse_count;
	uint8_t home;				/* OUT or PART: where results must be */
	uint32_t nr_kept;			/* chunks that are the result from the beginning, but in IN */
	uint32_t own;				/* the only one, while it is there; or NOBODY, and of lists */
	uint32_t next_copy;			/* the first chunk not looked at behind the last step */
	bool was_idle;				/* in the stage before there was nothing to do */

	/* The stage that is being lowered; ops[0] only begins the list. */
	uint32_t stage;
	struct op ops[MUSTER_SEQ_DESCS_MAX + 1];
	uint32_t nr_ops;
	uint32_t last;			/* end of the list */
	uint32_t last_send_of_old;	/* end of the sends of what was there before the stage */
	uint32_t last_receive;		/* 0: none yet */

	char *why;
	size_t why_len;
};

/* Whether this rank must have a chunk's result. */
bool muster_lower_is_needed(const struct lowering *l, uint32_t chunk);
bool muster_lower_is_copied_in(const struct chunk *chunk);
void muster_lower_set_sent(struct lowering *l, const struct muster_message *m);
uint8_t muster_lower_space_for(const struct chunk *chunk, uint32_t step);
bool muster_lower_is_elsewhere(const struct lowering *l, uint32_t chunk);

/** muster_lower_walk_begin() - to the rank's first message. 0; -ENOMEM. */
int muster_lower_walk_begin(struct lowering *l);
void muster_lower_walk_on(struct lowering *l);

/** muster_lower_set_spaces() - before the first step; room: of descriptors, at most. */
int muster_lower_set_spaces(struct lowering *l, size_t *room);

#endif /* MUSTER_SCHEDULE_LOWER_H */
