// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC path: a cached program becomes the descriptors of one operation by
 * filling in memory keys, addresses and inline data. Posting copies them, so the
 * bound copy of a program serves every operation that uses it.
 */
#include <errno.h>
#include <string.h>

#include "message.h"
#include "nic.h"

/* Where a template's range lies for this operation. Scratch is first what stands for OUT, then the program's own. */
static void space_find(const struct muster_request *request, uint32_t space, uint32_t *key,
		       uintptr_t *base)
{
	const struct muster_comm *comm = request->comm;

	if (space == MUSTER_SPACE_IN) {
		*key = request->in_pin.key;
		*base = (uintptr_t)request->in;
	} else if (request->entry->program->is_small) {
		*key = comm->warm->bounce_key;
		*base = (uintptr_t)comm->warm->bounce + request->bounce * MUSTER_INLINE_MAX;
	} else if (space == MUSTER_SPACE_SCRATCH) {
		*key = comm->warm->scratch_key;
		*base = (uintptr_t)comm->warm->scratch + muster_entry_stand_in(request->entry);
	} else if (request->scratch && space != MUSTER_SPACE_PART) {
		*key = comm->warm->scratch_key;
		*base = (uintptr_t)comm->warm->scratch;
	} else {
		*key = request->out_pin.key;
		*base = (uintptr_t)request->out;
	}
}

/* The payload of an MP descriptor is the caller's contribution itself. */
static void bind_inline(const struct muster_request *request, const struct muster_desc *template,
			struct muster_desc *desc)
{
	memcpy(desc->data, request->in + template->range.load_addr, template->inline_len);
}

/* Blocks may have no elements, and a rank then no buffer: any memory will do. */
static void bind_nothing(const struct muster_request *request, const struct muster_desc *template,
			 struct muster_desc *desc)
{
	const struct muster_comm *comm = request->comm;

	if (template->range.load_key) {
		desc->range.load_key = comm->warm->bounce_key;
		desc->range.load_addr = (uintptr_t)comm->warm->bounce;
	}
	if (template->store_key) {
		desc->store_key = comm->warm->bounce_key;
		desc->store_addr = (uintptr_t)comm->warm->bounce;
	}
	desc->cookie = request->cookie;
}

void muster_nic_bind(const struct muster_request *request, const struct muster_desc *template,
		     struct muster_desc *desc)
{
	uint32_t key;
	uintptr_t base;

	if (request->entry->call.cut && !template->length) {
		bind_nothing(request, template, desc);
		return;
	}
	if (template->kind == MUSTER_DESC_MP && template->inline_len) {
		bind_inline(request, template, desc);
	} else if (template->range.load_key) {
		space_find(request, template->range.load_key, &key, &base);
		desc->range.load_key = key;
		desc->range.load_addr = base + template->range.load_addr;
	}
	if (template->store_key) {
		space_find(request, template->store_key, &key, &base);
		desc->store_key = key;
		desc->store_addr = base + template->store_addr;
	}
	desc->cookie = request->cookie;
}

/*
 * A NIC takes the descriptors of a process in order: a sequence that finds the queue of
 * its context full would hold up other communicators. It is not posted before one ends.
 */
static int stage_post(struct muster_request *request)
{
	struct muster_entry *entry = request->entry;
	struct muster_comm *comm = request->comm;
	const struct muster_program *program = entry->program;
	struct muster_dev *dev = request->job->dev;
	uint32_t first = program->stage_first[request->stage];
	uint32_t end = program->stage_first[request->stage + 1];
	int err;

	if (!muster_comm_has_room(comm))
		return -EAGAIN;
	for (uint32_t i = first; i < end; i++)
		muster_nic_bind(request, &program->descs[i], &entry->bound[i]);
	err = first == end ? 0 : dev->ops->post(dev, &entry->bound[first], end - first);	/* 0: idle */
	if (!err)
		request->sequence = comm->sequences++;
	return err;
}

/* What must be free before the first stage can go. */
static int begin(struct muster_request *request)
{
	struct muster_comm *comm = request->comm;
	uint64_t bytes = muster_entry_stand_in(request->entry) + request->entry->program->scratch_bytes;
	int err;

	if (muster_channel_clashes(comm, request->number))
		return -EPROTO;
	if (request->entry->call.cut && muster_comm_bounce(comm))
		return muster_comm_give_up(comm, -ENOMEM);
	if (comm->warm->scratch_bytes < bytes) {
		if (comm->first != request)
			return -EAGAIN;
		err = muster_comm_scratch(comm, bytes);
		if (err)
			return muster_comm_give_up(comm, err);
	}
	request->cookie = request->number;
	if (!request->entry->program->is_small) {
		request->entry->posted = true;
		request->copy_out = NULL;	/* a kept one was started by this request before */
		return 0;
	}
	if (comm->warm->posted - comm->warm->completed == MUSTER_BOUNCE_SLOTS)
		return -EAGAIN;
	err = muster_comm_bounce(comm);
	if (err)
		return muster_comm_give_up(comm, err);
	request->entry->posted = true;
	request->bounce = comm->warm->posted++ % MUSTER_BOUNCE_SLOTS;
	request->result_at = comm->warm->bounce + request->bounce * MUSTER_INLINE_MAX;
	return 0;
}

void muster_nic_ended(struct muster_request *request)
{
	if (request->aside)
		muster_long_forget(request);	/* its lengths and buffers may be others at the next start */
	if (request->kept)
		request->kept->busy = false;
	else if (request->state == MUSTER_REQUEST_RUNNING && request->entry->program->is_small)
		request->comm->warm->completed++;
}

int muster_nic_post(struct muster_request *request)
{
	int err;

	if (request->state == MUSTER_REQUEST_QUEUED) {
		err = muster_kept_post(request);
		if (err <= 0)
			return err;
		err = begin(request);
		if (err)
			return err;
		request->state = MUSTER_REQUEST_RUNNING;
	}
	if (!request->stage) {
		err = muster_long_post(request);
		if (err <= 0)
			return err;
	}
	while (request->stage < request->entry->program->nr_stages) {
		err = stage_post(request);
		if (err)
			return err;
		request->stage++;
	}
	return 0;
}
