// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The verbs device behind the library's seam (dev.h): fills the descriptor
 * queue, drains completion queue and receive ring, and sleeps on the completion
 * channel. The NIC is distrusted: what it writes is read once and checked; when
 * it is dead, every context is reported as failed.
 */
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "dev.h"
#include "musterdv.h"
#include "regions.h"
#include "ticks.h"

/* A context that the caller opened, found again by its number. */
struct handle {
	struct handle *next;
	uint64_t id;
	uint32_t self;			/* this rank's place in it */
	struct musterdv_context *context;
};

/* A job is joined when its first context opens, and left with its last. */
struct job {
	struct job *next;
	struct musterdv_job *job;
	uint32_t contexts;
	uint8_t id;
};

struct verbs {
	struct muster_dev dev;
	struct muster_dev_ops ops;	/* those that this NIC has */
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct musterdv_vp *vp;
	struct muster_verbs_regions regions;
	struct handle *contexts;	/* id: context_id() */
	struct job *jobs;
	struct muster_trace *trace;	/* NULL: nobody looks */
	struct handle *told;		/* of a dead NIC: contexts before it were reported */
	uint32_t dq_tail;
	uint32_t cq_head;
	uint32_t cq_told;		/* the head that the NIC knows */
	uint32_t rq_head;
	uint32_t rq_told;
	bool dead;
};

static struct verbs *to_verbs(struct muster_dev *dev)
{
	return (struct verbs *)dev;
}

/* ---- handles ------------------------------------------------------------------ */

static uint64_t context_id(uint8_t job, uint32_t context)
{
	return (uint64_t)job << 32 | context;
}

static struct handle *handle_add(struct handle **list, uint64_t id)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->id = id;
	handle->next = *list;
	*list = handle;
	return handle;
}

static struct handle **handle_find(struct handle **list, uint64_t id)
{
	while (*list && (*list)->id != id)
		list = &(*list)->next;
	return list;
}

static void handle_remove(struct handle **place)
{
	struct handle *handle = *place;

	*place = handle->next;
	free(handle);
}

/* ---- memory -------------------------------------------------------------------- */

static int mem_register(struct muster_dev *dev, void *addr, size_t bytes, int access, uint32_t *key)
{
	return muster_verbs_register(&to_verbs(dev)->regions, addr, bytes, access, key);
}

static void mem_deregister(struct muster_dev *dev, uint32_t key)
{
	muster_verbs_release(&to_verbs(dev)->regions, key);
}

static int mem_alloc(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	int err;

	if (memory == MAP_FAILED)
		return -errno;
	err = mem_register(dev, memory, bytes, MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, key);
	if (err) {
		munmap(memory, bytes);
		return err;
	}
	*addr = memory;
	return 0;
}

static void mem_free(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key)
{
	muster_verbs_deregister(&to_verbs(dev)->regions, key);
	munmap(addr, bytes);
}

/* ---- jobs and contexts ------------------------------------------------------------ */

static struct job **job_find(struct verbs *v, uint8_t id)
{
	struct job **place = &v->jobs;

	while (*place && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

static int job_get(struct verbs *v, uint8_t id, uint64_t key, struct job **result)
{
	struct job *job = *job_find(v, id);
	int err;

	if (!job) {
		job = calloc(1, sizeof(*job));
		if (!job)
			return -ENOMEM;
		err = musterdv_job_create(v->ctx, id, &key, &job->job, NULL);
		if (err) {
			free(job);
			return err;
		}
		job->id = id;
		job->next = v->jobs;
		v->jobs = job;
	}
	job->contexts++;
	*result = job;
	return 0;
}

static void job_put(struct verbs *v, uint8_t id)
{
	struct job **place = job_find(v, id), *job = *place;

	if (!job || --job->contexts)
		return;
	musterdv_job_destroy(job->job);
	*place = job->next;
	free(job);
}

static int members_copy(const struct muster_dev_context *context, struct musterdv_member **result)
{
	struct musterdv_member *members = calloc(context->nr_members, sizeof(*members));

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < context->nr_members; i++) {
		members[i].node = context->members[i].node;
		members[i].vp = context->members[i].vp;
		members[i].incarnation = context->members[i].incarnation;
	}
	*result = members;
	return 0;
}

static int context_open(struct muster_dev *dev, const struct muster_dev_context *context)
{
	struct verbs *v = to_verbs(dev);
	struct musterdv_context_attr attr = {
		.id = context->context,
		.life = context->life,
		.self = context->self,
		.nr_members = context->nr_members,
	};
	struct musterdv_member *members;
	struct handle *handle;
	struct job *job;
	int err;

	err = members_copy(context, &members);
	if (err)
		return err;
	attr.members = members;
	err = job_get(v, context->job, context->job_key, &job);
	if (err)
		goto err_free_members;
	err = -ENOMEM;
	handle = handle_add(&v->contexts, context_id(context->job, context->context));
	if (!handle)
		goto err_put_job;
	handle->self = context->self;
	err = musterdv_context_open(job->job, v->vp, &attr, &handle->context);
	if (err)
		goto err_remove_handle;
	free(members);
	return 0;

err_remove_handle:
	handle_remove(&v->contexts);
err_put_job:
	job_put(v, context->job);
err_free_members:
	free(members);
	return err;
}

static void context_close(struct muster_dev *dev, uint8_t job, uint32_t context)
{
	struct verbs *v = to_verbs(dev);
	struct handle **place = handle_find(&v->contexts, context_id(job, context));

	if (!*place)
		return;
	if (v->told == *place)
		v->told = (*place)->next;
	musterdv_context_close((*place)->context);
	handle_remove(place);
	job_put(v, job);
}

static void context_abort(struct muster_dev *dev, uint8_t job, uint32_t context, uint8_t status,
			  uint32_t culprit)
{
	struct verbs *v = to_verbs(dev);
	struct handle **place = handle_find(&v->contexts, context_id(job, context));

	v->regions.keeps = false;
	if (*place)
		musterdv_context_abort((*place)->context, status, culprit);
}

static struct musterdv_tree tree_of(const struct muster_dev_tree *tree)
{
	return (struct musterdv_tree){
		.key = tree->key,
		.node = tree->node,
		.incarnation = tree->incarnation,
		.group = tree->group,
		.tree = tree->tree,
		.payload_max = (uint16_t)tree->payload_max,
	};
}

static int tree_join(struct muster_dev *dev, uint8_t job, uint32_t context,
		     const struct muster_dev_tree *tree)
{
	struct handle *handle = *handle_find(&to_verbs(dev)->contexts, context_id(job, context));
	const struct musterdv_tree config = tree_of(tree);

	return handle ? musterdv_context_tree_join(handle->context, &config) : -ENOENT;
}

static int tree_move(struct muster_dev *dev, uint8_t job, uint32_t context,
		     const struct muster_dev_tree *tree)
{
	struct handle *handle = *handle_find(&to_verbs(dev)->contexts, context_id(job, context));
	const struct musterdv_tree config = tree_of(tree);

	return handle ? musterdv_context_tree_move(handle->context, &config) : -ENOENT;
}

/* Records have the time of what came last; the NIC learns how far that clock is behind its own. */
static void trace_time(const struct verbs *v)
{
	if (!v->trace || !v->trace->on)
		return;
	v->trace->now = muster_ticks(v->trace->clock);
	musterdv_doorbell(v->vp, MUSTER_DOORBELL_CLOCK, (uint32_t)(v->trace->now / 1000));
}

/* ---- rings -------------------------------------------------------------------------- */

static int post(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	struct verbs *v = to_verbs(dev);
	struct musterdv_vp *vp = v->vp;
	uint32_t head = le32toh(*(volatile const __le32 *)&vp->status->dq_head);

	if (v->dead)
		return 0;	/* its context's failure is reported by poll() */
	if (v->dq_tail - head > vp->dq_entries || nr > vp->dq_entries - (v->dq_tail - head))
		return -EAGAIN;
	for (uint32_t i = 0; i < nr; i++)
		vp->dq[(v->dq_tail + i) & (vp->dq_entries - 1)] = descs[i];
	v->dq_tail += nr;
	trace_time(v);
	musterdv_doorbell(vp, MUSTER_DOORBELL_DQ_TAIL, v->dq_tail);
	return 0;
}

/*
 * The NIC writes valid last; it alternates from lap to lap, beginning with 1. The
 * zeros that a dead NIC's rings read as are valid in every second lap, so an entry
 * has been read whole only if its mark, which is never zero in an entry of the
 * NIC's and goes first when it dies, is still there afterwards.
 */
static bool is_valid(const __le32 *valid, uint32_t index, uint32_t entries)
{
	return le32toh(__atomic_load_n(valid, __ATOMIC_ACQUIRE)) == !(index & entries);
}

static bool is_whole(const uint8_t *mark)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(mark, __ATOMIC_RELAXED);
}

static void check_dead(struct verbs *v)
{
	struct pollfd events = { .fd = v->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (v->dead || poll(&events, 1, 0) <= 0)
		return;
	if (ibv_get_async_event(v->ctx, &event))
		return;
	if (event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_QP_FATAL ||
	    event.event_type == IBV_EVENT_CQ_ERR) {
		v->dead = true;
		v->told = v->contexts;
	}
	ibv_ack_async_event(&event);
}

/* A dead NIC writes nothing any more: say in its place that this rank is lost, once a context. */
static int poll_dead(struct verbs *v, struct muster_cqe *cqe)
{
	if (!v->dead || !v->told)
		return 0;
	*cqe = (struct muster_cqe){
		.context = htole32((uint32_t)v->told->id),
		.job = v->told->id >> 32,
		.kind = MUSTER_CQE_CONTEXT,
		.status = MUSTER_STATUS_PEER_LOST,
		.culprit = htole32(v->told->self),
	};
	v->told = v->told->next;
	return 1;
}

static int poll_cq(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct verbs *v = to_verbs(dev);
	struct musterdv_vp *vp = v->vp;
	const struct muster_cqe *entry = &vp->cq[v->cq_head & (vp->cq_entries - 1)];

	if (!is_valid(&entry->valid, v->cq_head, vp->cq_entries))
		return poll_dead(v, cqe);
	*cqe = *entry;
	if (!is_whole(&entry->kind)) {
		check_dead(v);
		return poll_dead(v, cqe);
	}
	v->cq_head++;
	if (cqe->status != MUSTER_STATUS_OK)
		v->regions.keeps = false;
	trace_time(v);
	if (v->cq_head - v->cq_told >= vp->cq_entries / 4) {
		v->cq_told = v->cq_head;
		musterdv_doorbell(vp, MUSTER_DOORBELL_CQ_HEAD, v->cq_head);
	}
	return 1;
}

static void give_back_slots(struct verbs *v)
{
	if (v->rq_told == v->rq_head)
		return;
	v->rq_told = v->rq_head;
	musterdv_doorbell(v->vp, MUSTER_DOORBELL_RQ_HEAD, v->rq_head);
}

static int recv_p2p(struct muster_dev *dev, struct muster_packet *packet, void *payload)
{
	struct verbs *v = to_verbs(dev);
	struct musterdv_vp *vp = v->vp;
	const struct muster_recv_slot *slot = &vp->rq[v->rq_head & (vp->rq_entries - 1)];

	if (!is_valid(&slot->valid, v->rq_head, vp->rq_entries))
		return 0;
	*packet = slot->packet;
	if (le16toh(packet->length) <= MUSTER_MTU)
		memcpy(payload, slot->payload, le16toh(packet->length));
	else
		packet->length = 0;
	if (!is_whole(&slot->packet.version)) {
		check_dead(v);
		return 0;
	}
	v->rq_head++;
	trace_time(v);
	if (v->rq_head - v->rq_told >= vp->rq_entries / 4)
		give_back_slots(v);
	return 1;
}

static void wait_events(struct muster_dev *dev, uint64_t timeout_us)
{
	struct verbs *v = to_verbs(dev);
	struct pollfd events[2] = {
		{ .fd = v->channel->fd, .events = POLLIN },
		{ .fd = v->ctx->async_fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *opaque;

	if (v->dead)
		return;
	give_back_slots(v);	/* one that it does not know to be free would wake us at once */
	if (musterdv_vp_arm(v->vp, v->cq_head)) {
		check_dead(v);
		return;
	}
	v->cq_told = v->cq_head;
	muster_dev_sleep_begin(dev);
	poll(events, 2, (int)((timeout_us + 999) / 1000));
	muster_dev_sleep_end(dev);
	if (dev->sleep_begin)	/* another thread may have been quicker */
		poll(events, 2, 0);
	if (events[0].revents & POLLIN && !ibv_get_cq_event(v->channel, &cq, &opaque))
		ibv_ack_cq_events(cq, 1);
	if (events[1].revents & POLLIN)
		check_dead(v);
}

/* ---- looking page --------------------------------------------------------------------- */

/* The least that it is late counts; a clock that does not keep up is seen only with records. */
static void clock_ring(const struct musterdv_vp *vp, struct muster_look *look)
{
	struct timespec now;

	for (int i = 0; i < 3; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		look->seen_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
		musterdv_doorbell(vp, MUSTER_DOORBELL_CLOCK, (uint32_t)look->seen_us);
	}
}

/*
 * The NIC shows it to the host, and writes there what it waits for; the ring of records only if
 * it is written from the start, as that is 1 MiB more to pin. Without it all goes on.
 */
static void look_at(struct muster_dev *dev, struct muster_look_file *file)
{
	const size_t comms = MUSTER_LOOK_NIC_COMMS * sizeof(struct muster_look_comm);
	const size_t bytes = offsetof(struct muster_look, comms) + comms;
	struct verbs *v = to_verbs(dev);
	uint32_t key;

	file->trace.clock = MUSTER_TRACE_NS;
	v->trace = &file->trace;
	if (mem_register(dev, file, file->trace.on ? sizeof(*file) : bytes,
			 MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, &key))
		return;
	clock_ring(v->vp, &file->look);
	musterdv_doorbell(v->vp, MUSTER_DOORBELL_LOOK, key);
}

/* ---- opening -------------------------------------------------------------------------- */

static void close_verbs(struct muster_dev *dev)
{
	struct verbs *v = to_verbs(dev);

	while (v->contexts)
		context_close(dev, (uint8_t)(v->contexts->id >> 32), (uint32_t)v->contexts->id);
	musterdv_vp_destroy(v->vp);
	muster_verbs_deregister_all(&v->regions);
	ibv_dealloc_pd(v->pd);
	ibv_destroy_comp_channel(v->channel);
	ibv_close_device(v->ctx);
	free(v);
}

static const struct muster_dev_ops verbs_ops = {
	.name = "verbs",
	.close = close_verbs,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.mem_register = mem_register,
	.mem_deregister = mem_deregister,
	.context_open = context_open,
	.context_close = context_close,
	.tree_join = tree_join,
	.tree_move = tree_move,
	.post = post,
	.poll = poll_cq,
	.recv = recv_p2p,
	.wait = wait_events,
	.abort = context_abort,
	.look = look_at,
};

static int open_port(struct verbs *v, char *why, size_t why_len)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = MUSTER_VERBS_DQ_ENTRIES,
		.rq_entries = MUSTER_VERBS_RQ_ENTRIES,
		.cq_entries = MUSTER_VERBS_CQ_ENTRIES,
	};
	struct musterdv_info info;
	int err;

	v->channel = ibv_create_comp_channel(v->ctx);
	if (!v->channel) {
		snprintf(why, why_len, "no completion channel: %s", strerror(errno));
		return -errno;
	}
	fcntl(v->channel->fd, F_SETFL, fcntl(v->channel->fd, F_GETFL) | O_NONBLOCK);
	err = -EIO;
	v->pd = ibv_alloc_pd(v->ctx);
	if (!v->pd) {
		snprintf(why, why_len, "no protection domain: %s", strerror(errno));
		goto err_destroy_channel;
	}
	v->regions.pd = v->pd;
	v->regions.keeps = true;
	attr.channel = v->channel;
	err = musterdv_vp_create(v->pd, &attr, &v->vp);
	if (err) {
		snprintf(why, why_len, "no virtual port: %s", strerror(-err));
		goto err_dealloc_pd;
	}
	musterdv_query(v->ctx, &info);
	v->dev.address = (struct muster_address){
		.node = info.node,
		.vp = v->vp->vp,
		.incarnation = info.incarnation,
	};
	v->ops = verbs_ops;
	if (!(info.capabilities & MUSTER_CAP_TREE))
		v->ops.tree_join = v->ops.tree_move = NULL;
	v->dev.ops = &v->ops;
	v->dev.limits.contexts = info.contexts_max;
	v->dev.limits.kept_descs = info.capabilities & MUSTER_CAP_KEEP ? MUSTER_KEPT_DESCS_MAX : 0;
	v->dev.limits.program_descs =
		info.capabilities & MUSTER_CAP_PROGRAM ? MUSTER_PROGRAM_DESCS_MAX : 0;
	v->dev.limits.forwards = info.capabilities & MUSTER_CAP_FORWARD;
	v->dev.limits.idles = info.capabilities & MUSTER_CAP_NUMBERS;
	v->dev.limits.ring_slots = MUSTER_VERBS_RQ_ENTRIES - MUSTER_VERBS_RQ_ENTRIES / 4;	/* given back in quarters */
	return 0;

err_dealloc_pd:
	ibv_dealloc_pd(v->pd);
err_destroy_channel:
	ibv_destroy_comp_channel(v->channel);
	return err;
}

int muster_verbs_open(struct muster_dev **dev, char *why, size_t why_len)
{
	struct verbs *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	v->ctx = muster_verbs_context(getenv("MUSTER_NIC"), &err, why, why_len);
	if (!v->ctx)
		goto err_free;
	fcntl(v->ctx->async_fd, F_SETFL, fcntl(v->ctx->async_fd, F_GETFL) | O_NONBLOCK);
	err = open_port(v, why, why_len);
	if (err)
		goto err_close;
	*dev = &v->dev;
	return 0;

err_close:
	ibv_close_device(v->ctx);
err_free:
	free(v);
	return err;
}
