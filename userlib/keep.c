// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations that are called again: the device keeps their program from the second call on and
 * runs it by a START. Operand and result have places of their own: those that travel inside of
 * descriptors in the communicator's memory; others whose message is no more than a packet in some that is
 * theirs alone, as copying that much costs less than to say anew where it lies. One of a kind runs so at
 * a time; further ones are posted as always meanwhile, which the other ranks do not see.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "message.h"

enum {
	/* Of each place; what lies whole pages apart is taken for the same by processors at first. */
	PLACE_BYTES = MUSTER_MTU + 448,
	OPERAND = 0,
	RESULT = 1,
	PASSING = 2,			/* what is neither */
	NR_PLACES,
	PAGE = 4096,
	MEMORY_BYTES = (NR_PLACES * PLACE_BYTES + PAGE - 1) / PAGE * PAGE,
	REST = MUSTER_CACHE_MAX,	/* calls in which one that was not called leaves its slot to others */
};

/* Without it there is nothing to keep one that is not small. */
static bool memory_make(struct muster_comm *comm, struct muster_kept *kept)
{
	const struct muster_dev_ops *ops = comm->job->dev->ops;

	if (kept->memory)
		return true;
	kept->memory = aligned_alloc(PAGE, MEMORY_BYTES);
	if (!kept->memory)
		return false;
	memset(kept->memory, 0, MEMORY_BYTES);
	if (!ops->mem_register(comm->job->dev, kept->memory, MEMORY_BYTES,
			       MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, &kept->memory_key))
		return true;
	free(kept->memory);
	kept->memory = NULL;
	return false;
}

static bool has_rested(const struct muster_comm *comm, const struct muster_kept *kept)
{
	return !kept->busy && comm->warm->clock - kept->owner->used > REST &&
	       !(comm->ready && comm->ready->entry == kept->owner);
}

/* A slot that no entry has, or needs, with what the device may keep there still; NULL: none. */
static struct muster_kept *slot_find(struct muster_comm *comm, bool is_small)
{
	uint32_t end = is_small ? MUSTER_KEPT_SLOTS : MUSTER_KEPT_ALL;

	for (uint32_t i = is_small ? 0 : MUSTER_KEPT_SLOTS; i < end; i++) {
		struct muster_kept *kept = comm->warm->kept[i];

		if (!kept) {
			kept = comm->warm->kept[i] = calloc(1, sizeof(*kept));
			if (!kept)
				return NULL;
			kept->start.cookie = i;
		}
		if (kept->owner && has_rested(comm, kept))
			muster_kept_release(kept->owner);
		if (!kept->owner)
			return kept;
	}
	return NULL;
}

/* What was posted, but with operand and result in the slot. */
static void bind_small(const struct muster_comm *comm, const struct muster_program *program,
		       struct muster_kept *kept, struct muster_desc *descs)
{
	const uint32_t slot = MUSTER_BOUNCE_SLOTS + (uint32_t)kept->start.cookie;

	kept->operand = kept->result = comm->warm->bounce + slot * MUSTER_INLINE_MAX;
	kept->operand_bytes = 0;
	for (uint32_t i = 0; i < program->nr_descs; i++) {
		struct muster_desc *desc = &descs[i];

		if (desc->store_key) {
			desc->store_key = comm->warm->bounce_key;
			desc->store_addr = (uintptr_t)kept->result;
		}
		if (!desc->inline_len)
			continue;
		kept->operand_bytes = desc->inline_len;
		desc->inline_len = 0;
		desc->range = (struct muster_desc_range){
			.load_key = comm->warm->bounce_key, .load_addr = (uintptr_t)kept->operand,
		};
	}
}

/* Of each space; all have room for the whole message. */
static uint64_t place_of(const struct muster_entry *entry, const struct muster_kept *kept, uint32_t space)
{
	uint64_t memory = (uintptr_t)kept->memory;

	if (space == MUSTER_SPACE_IN)
		return memory + OPERAND * PLACE_BYTES;
	if (space == MUSTER_SPACE_SCRATCH)
		return memory + PASSING * PLACE_BYTES + muster_entry_stand_in(entry);
	if (space == MUSTER_SPACE_OUT && entry->passes)
		return memory + PASSING * PLACE_BYTES;
	return memory + RESULT * PLACE_BYTES;
}

/* Of a message that the root has, the others' buffers say nothing. */
static bool has_operand(const struct muster_comm *comm, const struct muster_call *call)
{
	return muster_coll_row(call->coll)->has != MUSTER_WHO_ROOT || comm->rank == call->root;
}

/* The same of one that is not small. What is done in place begins where the result will be. */
static void bind_long(const struct muster_comm *comm, const struct muster_entry *entry, struct muster_kept *kept,
		      struct muster_desc *descs)
{
	uint32_t from = entry->call.in_place ? MUSTER_SPACE_PART : MUSTER_SPACE_IN;

	kept->result = (uint8_t *)(uintptr_t)place_of(entry, kept, MUSTER_SPACE_PART) + entry->needs.first;
	kept->operand = (uint8_t *)(uintptr_t)place_of(entry, kept, from) + entry->has.first;
	kept->operand_bytes = has_operand(comm, &entry->call) ? (uint32_t)entry->has.bytes : 0;
	for (uint32_t i = 0; i < entry->program->nr_descs; i++) {
		struct muster_desc *desc = &descs[i];

		if (desc->range.load_key) {
			desc->range.load_addr += place_of(entry, kept, desc->range.load_key);
			desc->range.load_key = kept->memory_key;
		}
		if (desc->store_key) {
			desc->store_addr += place_of(entry, kept, desc->store_key);
			desc->store_key = kept->memory_key;
		}
	}
}

static void bind(const struct muster_comm *comm, const struct muster_entry *entry, struct muster_kept *kept,
		 struct muster_desc *descs)
{
	const struct muster_program *program = entry->program;

	memcpy(descs, program->descs, program->nr_descs * sizeof(*descs));
	for (uint32_t i = 0; i < program->nr_descs; i++)
		descs[i].cookie = kept->start.cookie;
	if (program->is_small)
		bind_small(comm, program, kept, descs);
	else
		bind_long(comm, entry, kept, descs);
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
	const struct muster_entry *entry = request->entry;
	const uint8_t *message = entry->call.in_place ? request->out : request->in;

	muster_copy(kept->operand, message + entry->has.first, kept->operand_bytes);
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
	struct muster_kept *kept = err ? NULL : slot_find(comm, program->is_small);

	if (err)
		return muster_comm_give_up(comm, err);
	if (!kept)
		return 1;
	entry->keep_tried = !(program->is_small || memory_make(comm, kept)) ||
			    !has_room(comm, kept, program->nr_descs);
	if (entry->keep_tried)
		return 1;
	bind(comm, entry, kept, descs);
	operand_put(kept, request);
	err = dev->ops->post(dev, descs, program->nr_descs);
	if (err)
		return err;
	start_fill(kept, descs);
	comm->job->kept_descs += program->nr_descs - kept->nr_descs;
	kept->nr_descs = program->nr_descs;
	kept->owner = entry;
	entry->kept = kept;
	return 0;
}

static int start(struct muster_request *request, struct muster_kept *kept)
{
	struct muster_dev *dev = request->job->dev;

	operand_put(kept, request);
	return muster_kept_run(dev, kept);
}

/* One that was posted before, and has places of its own to be copied to and from. */
static bool is_worth_it(const struct muster_entry *entry)
{
	const struct muster_program *program = entry->program;

	if (!entry->posted || entry->keep_tried || program->nr_stages != 1)
		return false;
	return program->is_small ||
	       (entry->chosen == MUSTER_PATH_NIC && !entry->call.cut && entry->call.bytes <= MUSTER_MTU &&
		muster_entry_stand_in(entry) + program->scratch_bytes <= PLACE_BYTES);
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
	if (entry->kept->memory)
		request->copy_out = entry->gets_result ? request->out + entry->needs.first : NULL;
	muster_kept_started(request, entry->kept);
	return 0;
}

void muster_kept_release(struct muster_entry *entry)
{
	if (entry->kept)
		entry->kept->owner = NULL;
	entry->kept = NULL;
}

int muster_kept_give_back(struct muster_comm *comm)
{
	struct muster_dev *dev = comm->job->dev;
	int err;

	for (uint32_t i = 0; i < MUSTER_KEPT_ALL; i++) {
		struct muster_kept *kept = comm->warm->kept[i];
		struct muster_desc forget;

		if (!kept || kept->owner || !kept->nr_descs)
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

static void slot_free(struct muster_comm *comm, struct muster_kept *kept)
{
	if (!kept)
		return;
	comm->job->kept_descs -= kept->nr_descs;
	if (kept->memory)
		comm->job->dev->ops->mem_deregister(comm->job->dev, kept->memory_key);
	free(kept->memory);
	free(kept);
}

void muster_kept_close(struct muster_comm *comm)
{
	for (uint32_t i = 0; comm->warm && i < MUSTER_KEPT_ALL; i++)
		slot_free(comm, comm->warm->kept[i]);
}
