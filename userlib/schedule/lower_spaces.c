// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the lowering has each chunk's value: in IN, OUT, SCRATCH or PART. No message is
 * stored over what this rank sends in the same step: it goes to SCRATCH while the value in
 * OUT is being sent, and to OUT while that in SCRATCH is.
 */
#include "lower.h"

/* The root of a broadcast keeps what it sends, a rank of an allgather what it has. */
bool muster_lower_is_copied_in(const struct chunk *chunk)
{
	return chunk->keeps && chunk->space == MUSTER_SPACE_IN;
}

bool muster_lower_is_needed(const struct lowering *l, uint32_t chunk)
{
	return muster_coll_needs(l->schedule, chunk, l->params->rank);
}

void muster_lower_set_sent(struct lowering *l, const struct muster_message *m)
{
	for (struct chunk *chunk = &l->chunks[m->first]; chunk < &l->chunks[m->first + m->nr];
	     chunk++) {
		chunk->sent_space = chunk->space;
		chunk->sent_step = m->step + 1;
	}
}

/* Where what comes in a step is stored: not over what is sent in it. */
uint8_t muster_lower_space_for(const struct chunk *chunk, uint32_t step)
{
	uint8_t space = chunk->space == MUSTER_SPACE_IN ? chunk->first : chunk->space;

	if (chunk->sent_step == step + 1 && chunk->sent_space == space)
		return MUSTER_SPACE_OUT + MUSTER_SPACE_SCRATCH - space;
	return space;
}

/* What a message does to the places of values. */
static void follow(struct lowering *l, const struct muster_message *m)
{
	for (uint32_t i = m->first; i < m->first + m->nr; i++) {
		l->chunks[i].left++;
		if (!m->is_send)
			l->chunks[i].space = muster_lower_space_for(&l->chunks[i], m->step);
	}
	if (m->is_send)
		muster_lower_set_sent(l, m);
}

/* Whether a chunk must be brought home behind the last step. */
bool muster_lower_is_elsewhere(const struct lowering *l, uint32_t chunk)
{
	const struct chunk *state = &l->chunks[chunk];

	if (!muster_lower_is_needed(l, chunk) || state->space == l->home)
		return false;
	return state->space != MUSTER_SPACE_IN || state->keeps;
}

int muster_lower_walk_begin(struct lowering *l)
{
	int err = muster_part_begin(&l->part, l->schedule, l->params->rank, l->grain, &l->stages);

	l->has_message = !err && muster_part_next(&l->part, &l->message);
	return err;
}

void muster_lower_walk_on(struct lowering *l)
{
	l->has_message = muster_part_next(&l->part, &l->message);
}

/*
 * What a chunk is before the first step, when it is known where it would end: where it goes
 * from IN decides that, and it shall be OUT. Nothing comes into one that ends in IN.
 */
static void set_space(struct lowering *l, uint32_t index, uint8_t space)
{
	struct chunk *chunk = &l->chunks[index];
	bool other = space == MUSTER_SPACE_IN && chunk->space == MUSTER_SPACE_SCRATCH;
	bool keeps = !l->program->is_inline && chunk->space == MUSTER_SPACE_IN &&
		     muster_lower_is_needed(l, index) &&
		     muster_coll_has(l->schedule, index, l->params->rank);

	if (keeps && l->schedule->generator)
		l->own = l->nr_kept++ ? MUSTER_NOBODY : index;
	*chunk = (struct chunk){
		.space = space, .keeps = keeps, .left = chunk->left,
		.first = other ? MUSTER_SPACE_SCRATCH : MUSTER_SPACE_OUT,
	};
}

/*
 * Once through all messages, without making anything; room: how many descriptors there can
 * be, with one for each chunk that is copied.
 */
int muster_lower_set_spaces(struct lowering *l, size_t *room)
{
	uint8_t space = l->params->in_place ? MUSTER_SPACE_OUT : MUSTER_SPACE_IN;
	int err = muster_lower_walk_begin(l);

	for (uint32_t i = 0; i < l->schedule->chunks; i++)
		l->chunks[i] = (struct chunk){ .space = space, .first = MUSTER_SPACE_OUT };
	for (*room = 0; l->has_message; muster_lower_walk_on(l), ++*room)
		follow(l, &l->message);
	for (uint32_t i = 0; i < l->schedule->chunks; i++) {
		set_space(l, i, space);
		*room += muster_lower_is_needed(l, i) || l->chunks[i].left;
	}
	muster_part_end(&l->part);
	return err;
}
