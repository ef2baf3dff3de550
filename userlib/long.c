// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Operations of more stages than the device queues. It is given where their descriptors lie, all
 * of them, and fetches them itself as it has room: so they run to their end while the caller is
 * elsewhere. They lie in registered memory of the operation's own, which nobody changes
 * before it has ended, and which one that is persistent keeps. Without that memory its stages
 * are posted one by one (nic.c), which the other ranks do not see.
 */
#include <errno.h>
#include <stdlib.h>

#include "nic.h"
#include "turn.h"

/* All that is as in the bound program, and what concerns this operation. */
static void bind(struct muster_request *request)
{
	const struct muster_program *program = request->entry->program;

	for (uint32_t i = 0; i < program->nr_descs; i++)
		muster_nic_bind(request, &program->descs[i], &request->fetched[i]);
	request->fetched_scratch = request->comm->warm->scratch;
	request->fetched_scratch_key = request->comm->warm->scratch_key;
}

/* One that is persistent, or found no room, has them; all that they name stays but the scratch. */
static bool is_bound(const struct muster_request *request)
{
	const struct muster_warm *warm = request->comm->warm;

	return !request->entry->program->is_inline && request->fetched_scratch == warm->scratch &&
	       request->fetched_scratch_key == warm->scratch_key;
}

static int post(struct muster_request *request)
{
	struct muster_dev *dev = request->job->dev;
	const struct muster_desc *first = request->fetched;
	const struct muster_desc desc = {
		.kind = MUSTER_DESC_PROGRAM,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT,
		.src_vp = first->src_vp,
		.job = first->job,
		.context = first->context,
		.cookie = request->cookie,
		.length = request->entry->program->nr_descs * sizeof(desc),
		.range = { .load_addr = (uintptr_t)first, .load_key = request->fetched_key },
	};

	return dev->ops->post(dev, &desc, 1);
}

static bool make(struct muster_request *request)
{
	struct muster_dev *dev = request->job->dev;
	size_t bytes = request->entry->program->nr_descs * sizeof(struct muster_desc);

	request->fetched = malloc(bytes);
	if (!request->fetched)
		return false;
	memcpy(request->fetched, request->entry->bound, bytes);
	if (!dev->ops->mem_register(dev, request->fetched, bytes, MUSTER_ACCESS_READ,
				    &request->fetched_key))
		return true;
	free(request->fetched);
	request->fetched = NULL;
	return false;
}

static bool lay_down(struct muster_request *request)
{
	if (request->fetched && is_bound(request)) {
		request->cookie = request->fetched->cookie;
		return true;
	}
	if (!request->fetched && !make(request))
		return false;
	bind(request);
	return true;
}

int muster_long_post(struct muster_request *request)
{
	const struct muster_program *program = request->entry->program;
	struct muster_comm *comm = request->comm;
	int err;

	if (program->nr_stages <= MUSTER_SEQ_QUEUE_MAX ||
	    program->nr_descs > request->job->dev->limits.program_descs)
		return 1;
	if (!muster_comm_has_room(comm))
		return -EAGAIN;
	if (!lay_down(request))
		return 1;
	err = post(request);
	if (err)
		return err;	/* -EAGAIN: what was laid down is as good at the next try */
	comm->sequences += program->nr_stages;
	comm->fetched_to = comm->sequences;
	request->sequence = comm->sequences - 1;
	request->stage = program->nr_stages;
	return 0;
}

void muster_long_forget(struct muster_request *request)
{
	struct muster_dev *dev = request->job->dev;

	if (!request->fetched)
		return;
	dev->ops->mem_deregister(dev, request->fetched_key);
	free(request->fetched);
	request->fetched = NULL;
}

/* ---- how far one is ---------------------------------------------------------------------- */

static uint32_t stages_of(const struct muster_request *request)
{
	bool posted = request->entry && muster_path_is_posted(request->path);

	return posted ? request->entry->program->nr_stages : 1;
}

/* Those that were posted have the numbers up to the last one's. */
static uint32_t ended(const struct muster_request *request)
{
	uint32_t first = request->sequence + 1 - request->stage;
	int32_t nr = (int32_t)(request->comm->sequences_ended - first);

	if (nr < 0)
		return 0;
	return (uint32_t)nr < request->stage ? (uint32_t)nr : request->stage;
}

int muster_request_progress(struct muster_request *request, uint32_t *done, uint32_t *all)
{
	MUSTER_TURN(request ? request->job : NULL);

	if (!request || !done || !all || request->state == MUSTER_REQUEST_FREE)
		return -EINVAL;
	if (request->state == MUSTER_REQUEST_DONE || request->state == MUSTER_REQUEST_IDLE) {
		*done = *all = 1;	/* what it was made of may be gone */
		return 0;
	}
	*all = stages_of(request);
	*done = ended(request);
	return 0;
}
