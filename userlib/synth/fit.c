// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A step may have more messages for a rank than a sequence holds. Its transfers
 * are given, in their order, to the first of several smaller steps in which both
 * ranks have room. Where a rank sends on in a step what it receives in it, that
 * could change what is sent: the checker says.
 */
#include <errno.h>
#include <stdlib.h>

#include "build.h"
#include "synth.h"

struct room {
	uint32_t received, all;
};

struct fitter {
	const struct muster_schedule *schedule;
	struct muster_builder builder;
	struct room *rooms;		/* by part of the step and rank */
	uint32_t *part;			/* by transfer of the step */
	uint32_t parts;
};

static bool fits(struct fitter *f, uint32_t part, const struct muster_transfer *t)
{
	struct room *from = &f->rooms[part * f->schedule->ranks + t->from];
	struct room *to = &f->rooms[part * f->schedule->ranks + t->to];

	if (to->received == MUSTER_SLOTS_MAX || to->all == MUSTER_SEQ_DESCS_MAX ||
	    from->all == MUSTER_SEQ_DESCS_MAX)
		return false;
	to->received++;
	to->all++;
	from->all++;
	return true;
}

static int add_part(struct fitter *f)
{
	uint32_t ranks = f->schedule->ranks;
	struct room *grown = realloc(f->rooms, (size_t)(f->parts + 1) * ranks * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	f->rooms = grown;
	for (uint32_t rank = 0; rank < ranks; rank++)
		grown[f->parts * ranks + rank] = (struct room){ 0 };
	f->parts++;
	return 0;
}

static int fit_step(struct fitter *f, const struct muster_transfer *transfers, uint32_t nr)
{
	f->parts = 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t part = 0;

		while (part < f->parts && !fits(f, part, &transfers[i]))
			part++;
		if (part == f->parts && (add_part(f) || !fits(f, part, &transfers[i])))
			return -ENOMEM;
		f->part[i] = part;
	}
	for (uint32_t part = 0; part < f->parts; part++) {
		muster_builder_step(&f->builder);
		for (uint32_t i = 0; i < nr; i++)
			if (f->part[i] == part)
				muster_builder_add(&f->builder, transfers[i].chunk,
						   transfers[i].from, transfers[i].to,
						   transfers[i].reduce);
	}
	return 0;
}

static int fit_steps(struct fitter *f)
{
	const struct muster_schedule *s = f->schedule;
	uint32_t begin, end;
	int err = 0;

	for (begin = 0; begin < s->nr_transfers && !err; begin = end) {
		for (end = begin; end < s->nr_transfers &&
		     s->transfers[end].step == s->transfers[begin].step; end++)
			;
		err = fit_step(f, s->transfers + begin, end - begin);
	}
	return err;
}

int muster_synth_fit(const struct muster_schedule *schedule, struct muster_schedule **fitted,
		     char *why, size_t why_len)
{
	struct fitter f = {
		.schedule = schedule,
		.part = calloc(schedule->nr_transfers + 1, sizeof(uint32_t)),
	};
	int err;

	muster_builder_init(&f.builder, schedule->name, schedule->coll, schedule->ranks,
			    schedule->chunks, schedule->root);
	if (schedule->places)
		muster_builder_places(&f.builder, schedule->places);
	err = f.part ? fit_steps(&f) : -ENOMEM;
	free(f.part);
	free(f.rooms);
	if (err) {
		muster_builder_abandon(&f.builder);
		return err;
	}
	err = muster_builder_end(&f.builder, fitted);
	if (err)
		return err;
	err = muster_schedule_check(*fitted, why, why_len);
	if (err)
		muster_schedule_free(*fitted);
	return err;
}
