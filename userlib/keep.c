// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Small operations that are called again: the device keeps their program from the second
 * call on and runs it by a START. Operand and result have a place of their own in the
 * communicator's memory. One of a kind runs so at a time; further ones are posted as
 * always meanwhile, which the other ranks do not see.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "message.h"

/* A slot that no entry has, with what the device may keep there still; NULL: none. */
static struct muster_kept *slot_find(struct muster_comm *comm)
{
	for (uint32_t i = 0; i < MUSTER_KEPT_SLOTS; i++) {
		struct muster_kept *kept = comm->warm->kept[i];

		if (!kept) {
			kept = comm->warm->kept[i] = calloc(1, sizeof(*kept));
			if (!kept)
				return NULL;
			kept->start.cookie = i;
			kept->data = comm->warm->bounce + (MUSTER_BOUNCE_SLOTS + i) * MUSTER_INLINE_MAX;
		}
		if (!kept->owned)
			return kept;
	}
	return NULL;
}

/* What was posted, but with operand and result in the slot. */
static void bind(const struct muster_comm *comm, const struct muster_program *program,
		 struct muster_kept *kept, struct muster_desc *descs)
{
	kept->operand_bytes = 0;
	for (uint32_t i = 0; i < program->nr_descs; i++) {
		struct muster_desc *desc = &descs[i];

		*desc = program->descs[i];
		desc->cookie = kept->start.cookie;
		if (desc->store_key) {
			desc->store_key = comm->warm->bounce_key;
			desc->store_addr = (uintptr_t)kept->data;
		}
		if (!desc->inline_len)
			continue;
		kept->operand_bytes = desc->inline_len;
		desc->inline_len = 0;
		desc->range = (struct muster_desc_range){
			.load_key = comm->warm->bounce_key, .load_addr = (uintptr_t)kept->data,
		};
	}
	descs[0].flags |= MUSTER_DESC_KEEP;
}

static void start_fill(struct muster_kept *kept, const struct muster_desc *first)
{
	kept->start = (struct muster_desc){
		.kind = MUSTER_DESC_START,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.src_vp = first->src_vp,
		.job = first->job,
		.context = first->context,
		.cookie = kept->start.cookie,
	};
}

/* The device counts what it keeps under a cookie until that is replaced or forgotten. */
static bool has_room(const struct muster_comm *comm, const struct muster_kept *kept,
		     uint32_t nr_descs)
{
	const struct muster *job = comm->job;

	return job->kept_descs - kept->nr_descs + nr_descs <= job->dev->limits.kept_descs;
}

static void operand_put(struct muster_kept *kept, const struct muster_request *request)
{
	muster_copy(kept->data, request->in, kept->operand_bytes);
}

/* The program is posted once more, and kept: 0; 1: there is no room for it; -errno. */
static int keep(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_entry *entry = request->entry;
	const struct muster_program *program = entry->program;
	struct muster_dev *dev = comm->job->dev;
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX];
	int err = muster_comm_bounce(comm);
	struct muster_kept *kept = err ? NULL : slot_find(comm);

	if (err)
		return muster_comm_give_up(comm, err);
	entry->keep_tried = !kept || !has_room(comm, kept, program->nr_descs);
	if (entry->keep_tried)
		return 1;
	bind(comm, program, kept, descs);
	operand_put(kept, request);
	err = dev->ops->post(dev, descs, program->nr_descs);
	if (err)
		return err;
	start_fill(kept, descs);
	comm->job->kept_descs += program->nr_descs - kept->nr_descs;
	kept->nr_descs = program->nr_descs;
	kept->owned = true;
	entry->kept = kept;
	return 0;
}

static int start(struct muster_request *request, struct muster_kept *kept)
{
	struct muster_dev *dev = request->job->dev;

	operand_put(kept, request);
	return muster_kept_run(dev, kept);
}

/* One that was posted before, and is small. */
static bool is_worth_it(const struct muster_entry *entry)
{
	return entry->posted && !entry->keep_tried && entry->program->nr_stages == 1;
}

int muster_kept_post(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	struct muster_entry *entry = request->entry;
	int err;

	if (entry->kept ? entry->kept->busy : !is_worth_it(entry))
		return 1;
	if (muster_channel_clashes(comm, request->number))
		return -EPROTO;
	if (!muster_comm_has_room(comm))
		return -EAGAIN;
	err = entry->kept ? start(request, entry->kept) : keep(request);
	if (err)
		return err;
	muster_kept_started(request, entry->kept);
	return 0;
}

void muster_kept_release(struct muster_entry *entry)
{
	if (entry->kept)
		entry->kept->owned = false;
}

int muster_kept_give_back(struct muster_comm *comm)
{
	struct muster_dev *dev = comm->job->dev;
	int err;

	for (uint32_t i = 0; i < MUSTER_KEPT_SLOTS; i++) {
		struct muster_kept *kept = comm->warm->kept[i];
		struct muster_desc forget;

		if (!kept || kept->owned || !kept->nr_descs)
			continue;
		forget = kept->start;
		forget.kind = MUSTER_DESC_FORGET;
		err = dev->ops->post(dev, &forget, 1);
		if (err)
			return err;
		comm->job->kept_descs -= kept->nr_descs;
		kept->nr_descs = 0;
	}
	return 0;
}

void muster_kept_close(struct muster_comm *comm)
{
	for (uint32_t i = 0; comm->warm && i < MUSTER_KEPT_SLOTS; i++) {
		if (comm->warm->kept[i])
			comm->job->kept_descs -= comm->warm->kept[i]->nr_descs;
		free(comm->warm->kept[i]);
	}
}
