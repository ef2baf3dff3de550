// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank that runs the library as it is: a coroutine of its own, and a device (dev.h)
 * whose engine, wire, time and chance are those of the simulated world. Where the device
 * waits, or the bootstrap does, the world goes on; so calls that block do.
 */
#include "dst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../../userlib/internal.h"

enum {
	STACK_BYTES = 200 << 10,	/* from 256 KiB on AddressSanitizer maps each anew, which costs more than a seed */
	PIECE_MAX = 4096,		/* of a rank in an allgather */
	CONTEXTS = 256,			/* where ranks share a NIC, which has those for all */
	HOLDS_PERMILLE = 300,		/* of looks that find something which has not left */
	SPARE_SLOTS = 32,		/* at most, of a receive ring, that the library can lend */
};

struct region {
	uint8_t *addr;			/* NULL: a free key */
	size_t bytes;
	int access;
	uint64_t life;			/* keys come round */
};

struct dst_process {
	struct muster_dev dev;
	struct dst_rank *rank;
	void (*main)(struct dst_process *process);
	ucontext_t self, world;
	void *stack;
	bool ended;
	struct region regions[DST_REGIONS_MAX];	/* by key - 1 */
	uint64_t lives;			/* regions so far */
	struct dst_rng holding;
	struct dst_parcel *inbox, **inbox_end;	/* packets for its receive ring */
	uint32_t nr_inbox;		/* at most dev.limits.ring_slots */
	uint32_t gathers;		/* allgathers that it has come to */
	uint8_t piece[2][PIECE_MAX];	/* what it says in this one, or said in the last */
};

/* ---- a coroutine -------------------------------------------------------------------- */

static void process_main(unsigned int high, unsigned int low)
{
	struct dst_process *process = (void *)((uintptr_t)high << 32 | low);

	process->main(process);
	process->ended = true;
	swapcontext(&process->self, &process->world);
}

int dst_process_begin(struct dst_rank *rank, void (*main)(struct dst_process *process))
{
	struct dst_process *process = calloc(1, sizeof(*process));
	uintptr_t p = (uintptr_t)process;

	if (!process)
		return -ENOMEM;
	process->stack = malloc(STACK_BYTES);
	if (!process->stack) {
		free(process);
		return -ENOMEM;
	}
	process->rank = rank;
	process->main = main;
	process->inbox_end = &process->inbox;
	getcontext(&process->self);
	process->self.uc_stack.ss_sp = process->stack;
	process->self.uc_stack.ss_size = STACK_BYTES;
	makecontext(&process->self, (void (*)(void))process_main, 2, (unsigned int)(p >> 32),
		    (unsigned int)p);
	rank->process = process;
	return 0;
}

void dst_process_end(struct dst_rank *rank)
{
	struct dst_process *process = rank->process;

	if (!process)
		return;
	rank->process = NULL;
	while (process->inbox) {
		struct dst_parcel *parcel = process->inbox;

		process->inbox = parcel->next;
		dst_parcel_free(rank->world, parcel);
	}
	free(process->stack);
	free(process);
}

bool dst_process_finished(const struct dst_rank *rank)
{
	return rank->process->ended;
}

void dst_process_turn(struct dst_rank *rank)
{
	struct dst_process *process = rank->process;

	if (!process->ended && !rank->node->dead)
		swapcontext(&process->world, &process->self);
}

struct dst_rank *dst_process_rank(struct dst_process *process)
{
	return process->rank;
}

/* Until then, or something comes for it. */
void dst_process_sleep(struct dst_process *process, uint64_t us)
{
	dst_turn_at(process->rank, process->rank->world->now_us + (us ? us : 1));
	swapcontext(&process->self, &process->world);
}

void dst_process_lives(struct dst_process *process)
{
	struct dst_world *w = process->rank->world;
	uint32_t more = 1 + w->plan.ranks / DST_RANKS_DRAWN;

	w->bound_us = w->now_us + (uint64_t)DST_BOUND_US * more;
	w->events_end = w->nr_events + (uint64_t)DST_EVENTS_MAX * more;
}

/* ---- bootstrap ---------------------------------------------------------------------- */

/* A rank is at most one allgather ahead of another, so two pieces of each are enough. */
static int allgather(void *opaque, const void *in, void *out, size_t bytes)
{
	struct dst_process *process = opaque;
	struct dst_world *w = process->rank->world;
	uint32_t which = process->gathers % 2;

	if (bytes > PIECE_MAX)
		return -E2BIG;
	memcpy(process->piece[which], in, bytes);
	process->gathers++;
	for (uint32_t r = 0; r < w->plan.ranks; r++) {
		struct dst_process *other = w->ranks[r].process;

		while (other->gathers < process->gathers)
			dst_process_sleep(process, 1 + dst_below(&w->host, 1000));
		memcpy((uint8_t *)out + r * bytes, other->piece[which], bytes);
	}
	return 0;
}

/* ---- the device: memory ------------------------------------------------------------- */

static struct dst_process *process_of(struct muster_dev *dev)
{
	return (struct dst_process *)dev;
}

uint8_t *dst_process_range(struct dst_rank *rank, uint32_t key, uint64_t addr, uint64_t len,
			   bool write)
{
	const struct region *region;
	uint64_t offset;

	if (!rank || !rank->process || !key || key > DST_REGIONS_MAX)
		return NULL;
	region = &rank->process->regions[key - 1];
	offset = addr - (uintptr_t)region->addr;
	if (!region->addr || !(region->access & (write ? MUSTER_ACCESS_WRITE : MUSTER_ACCESS_READ)) ||
	    offset > region->bytes || len > region->bytes - offset)
		return NULL;
	return region->addr + offset;
}

uint64_t dst_process_key_life(const struct dst_rank *rank, uint32_t key)
{
	const struct dst_process *process = rank->process;

	if (!key || key > DST_REGIONS_MAX || !process->regions[key - 1].addr)
		return 0;
	return process->regions[key - 1].life;
}

uint32_t dst_process_regions(const struct dst_rank *rank)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < DST_REGIONS_MAX; i++)
		nr += rank->process->regions[i].addr != NULL;
	return nr;
}

static int mem_register(struct muster_dev *dev, void *addr, size_t bytes, int access,
			uint32_t *key)
{
	struct region *regions = process_of(dev)->regions;

	for (uint32_t i = 0; i < DST_REGIONS_MAX; i++) {
		if (regions[i].addr)
			continue;
		regions[i] = (struct region){ addr, bytes, access, ++process_of(dev)->lives };
		*key = i + 1;
		return 0;
	}
	return -ENOSPC;
}

static void mem_deregister(struct muster_dev *dev, uint32_t key)
{
	process_of(dev)->regions[key - 1].addr = NULL;
}

static int mem_alloc(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key)
{
	int err;

	*addr = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!*addr)
		return -ENOMEM;
	memset(*addr, 0, bytes);
	err = mem_register(dev, *addr, bytes, MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, key);
	if (err)
		free(*addr);
	return err;
}

static void mem_free(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key)
{
	(void)bytes;
	mem_deregister(dev, key);
	free(addr);
}

/* ---- the device: contexts and queues ------------------------------------------------ */

static void engine_wakes(struct dst_rank *rank)
{
	dst_step_at(rank->node, rank->world->now_us + 1 +
				dst_below(&rank->world->host, rank->world->plan.engine_us));
}

static int context_open(struct muster_dev *dev, const struct muster_dev_context *context)
{
	struct dst_rank *rank = process_of(dev)->rank;
	struct muster_member members[DST_RANKS_MAX];
	const struct muster_context_config config = {
		.job = context->job,
		.context = context->context,
		.life = context->life,
		.vp = rank->vp,
		.job_key = context->job_key,
		.self = context->self,
		.nr_members = context->nr_members,
		.members = members,
	};

	for (uint32_t m = 0; m < context->nr_members; m++) {
		members[m] = (struct muster_member){
			.node = context->members[m].node,
			.vp = context->members[m].vp,
			.incarnation = context->members[m].incarnation,
		};
		dst_net_watch(rank->node, members[m].node, members[m].incarnation);
	}
	engine_wakes(rank);
	dst_lent_sign(rank->node, (uint16_t)context->context, false);
	return muster_engine_context_open(rank->node->engine, &config);
}

static void context_close(struct muster_dev *dev, uint8_t job, uint32_t context)
{
	struct dst_rank *rank = process_of(dev)->rank;

	muster_engine_context_close(rank->node->engine, rank->vp, job, context);
	dst_lent_drop(rank->node, (uint16_t)context);
	engine_wakes(rank);
}

static int post(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	struct dst_rank *rank = process_of(dev)->rank;

	engine_wakes(rank);
	return muster_engine_post(rank->node->engine, rank->vp, descs, nr, NULL);
}

/* The engine sleeps on, unless it says that it has something to do. */
static int start(struct muster_dev *dev, const struct muster_desc *desc)
{
	struct dst_rank *rank = process_of(dev)->rank;
	bool left;
	int err;

	if (!rank->world->plan.at_once)
		return post(dev, desc, 1);
	err = muster_engine_start_run(rank->node->engine, rank->vp, desc, &left);
	if (left)
		engine_wakes(rank);
	return err;
}

static int poll_completion(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct dst_rank *rank = process_of(dev)->rank;

	if (rank->cq_tail == rank->cq_head)
		return 0;
	*cqe = rank->cq[rank->cq_tail++ % DST_CQ_MAX];
	dst_say(rank->world, "rank %u: completion kind %u of context %u, number %u: status %u, culprit %u",
		rank->index, cqe->kind, cqe->context, cqe->number, cqe->status, cqe->culprit);
	dst_mix(rank->world, cqe->cookie << 32 | cqe->number << 8 | cqe->status << 4 | cqe->kind);
	engine_wakes(rank);
	return 1;
}

/* The library's credits see to it that there is always room. */
void dst_process_deliver(struct dst_rank *rank, const struct muster_packet *packet,
			 const void *payload)
{
	struct dst_process *process = rank->process;
	struct dst_world *w = rank->world;
	struct dst_parcel *parcel;

	if (process->nr_inbox == process->dev.limits.ring_slots) {
		dst_fail(w, "rank %u: a message finds its receive ring full", rank->index);
		return;
	}
	parcel = dst_parcel_new(w);
	parcel->next = NULL;
	memcpy(parcel->bytes, packet, sizeof(*packet));
	if (packet->length)
		memcpy(parcel->bytes + sizeof(*packet), payload, packet->length);
	*process->inbox_end = parcel;
	process->inbox_end = &parcel->next;
	process->nr_inbox++;
	rank->node->activity++;
	dst_turn_at(rank, w->now_us + 1 + dst_below(&w->host, w->plan.host_us));
}

static int recv_message(struct muster_dev *dev, struct muster_packet *packet, void *payload)
{
	struct dst_process *process = process_of(dev);
	struct dst_parcel *parcel = process->inbox;

	if (!parcel)
		return 0;
	process->inbox = parcel->next;
	if (!process->inbox)
		process->inbox_end = &process->inbox;
	process->nr_inbox--;
	memcpy(packet, parcel->bytes, sizeof(*packet));
	memcpy(payload, parcel->bytes + sizeof(*packet), packet->length);
	dst_parcel_free(process->rank->world, parcel);
	return 1;
}

static void wait_device(struct muster_dev *dev, uint64_t timeout_us)
{
	dst_process_sleep(process_of(dev), timeout_us);
}

/* What a wire without room would do: sometimes what was sent seems not to have left. */
static bool holds(struct muster_dev *dev, uint8_t job, uint32_t context,
		  const struct muster_address *addresses, const uint32_t *ranks, uint32_t nr)
{
	(void)job;
	(void)context;
	(void)addresses;
	(void)ranks;
	(void)nr;
	return dst_chance(&process_of(dev)->holding, HOLDS_PERMILLE);
}

static void abort_context(struct muster_dev *dev, uint8_t job, uint32_t context, uint8_t status,
			  uint32_t culprit)
{
	struct dst_rank *rank = process_of(dev)->rank;

	muster_engine_abort(rank->node->engine, rank->vp, job, context, status, culprit);
	dst_lent_sign(rank->node, (uint16_t)context, true);
	engine_wakes(rank);
}

/* The engine is the node's, and goes on as long as it has something to say. */
static void close_device(struct muster_dev *dev)
{
	(void)dev;
}

static uint64_t now_us(struct muster_dev *dev)
{
	return process_of(dev)->rank->world->now_us;
}

static uint64_t random_value(struct muster_dev *dev)
{
	return dst_draw(&process_of(dev)->rank->world->data);
}

static int device_open(const struct muster_oob *oob, const struct muster_settings *settings,
		       struct muster_dev **dev, char *why, size_t why_len)
{
	static const struct muster_dev_ops ops = {
		.name = "simulated",
		.close = close_device,
		.mem_alloc = mem_alloc,
		.mem_free = mem_free,
		.mem_register = mem_register,
		.mem_deregister = mem_deregister,
		.context_open = context_open,
		.context_close = context_close,
		.post = post,
		.start = start,
		.poll = poll_completion,
		.recv = recv_message,
		.wait = wait_device,
		.holds = holds,
		.abort = abort_context,
		.now_us = now_us,
		.random = random_value,
	};
	struct dst_process *process = oob->opaque;
	struct dst_rank *rank = process->rank;

	(void)settings;
	(void)why;
	(void)why_len;
	process->dev.ops = &ops;
	process->dev.holding = rank->world->plan.seed % 4 == 3;
	process->holding.state = rank->world->plan.seed ^ (uint64_t)rank->index << 32;
	process->dev.address = (struct muster_address){
		.node = rank->node->index, .vp = rank->vp, .incarnation = rank->node->incarnation,
	};
	process->dev.limits = (struct muster_dev_limits){
		.contexts = rank->world->apart ? MUSTER_CONTEXTS_MAX : CONTEXTS,
		.kept_descs = MUSTER_KEPT_DESCS_MAX,
		.program_descs = MUSTER_PROGRAM_DESCS_MAX,
		.forwards = rank->world->plan.forwards, .idles = rank->world->plan.idles,
		.ring_slots = (rank->world->plan.ranks - 1) *
			      (MUSTER_PAIR_FLOOR_MIN + MUSTER_PAIR_REPORTS) +
			      dst_below(&rank->world->host, SPARE_SLOTS),
	};
	*dev = &process->dev;
	return 0;
}

int dst_process_join(struct dst_process *process, struct muster **job)
{
	const struct muster_oob oob = {
		.rank = process->rank->index, .size = process->rank->world->plan.ranks,
		.allgather = allgather, .opaque = process,
	};

	int err = muster_job_join(&oob, false, device_open, job);

	if (!err && !process->rank->world->apart && process->rank->world->plan.seed % 3 == 1)
		(*job)->warm_max = 1 + process->rank->index % 2;
	return err;
}
