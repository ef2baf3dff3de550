// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engines of a NIC, and the world that they see. Mostly it is one. With
 * model.threads they are several, each with its share of the units, and stepped side
 * by side. A virtual port and all its contexts live in one of them, by number, and
 * engines share nothing, so results do not depend on how many there are. Commands,
 * packets and descriptors come to them between steps alone; while several step,
 * what they want of wire and rings is one at a time.
 */
#include "nic_internal.h"

#include <errno.h>
#include <stdio.h>

#include "zeroed.h"

enum {
	STEP_BUDGET = 256,	/* of each engine */
};

/* ---- the world of an engine -------------------------------------------------- */

static void enter(struct muster_nic *nic)
{
	if (nic->side_by_side)
		nic->world->lock(nic->opaque);
}

static void leave(struct muster_nic *nic)
{
	if (nic->side_by_side)
		nic->world->unlock(nic->opaque);
}

/* Regions change between steps alone. */
static int world_dma_read(void *world, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
			  uint32_t len)
{
	return nic_mr_read(world, vp, key, addr, buf, len);
}

static int world_dma_write(void *world, uint16_t vp, uint32_t key, uint64_t addr,
			   const void *buf, uint32_t len)
{
	return nic_mr_write(world, vp, key, addr, buf, len);
}

static int world_remote_write(void *world, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			      uint32_t at, const void *buf, uint32_t len)
{
	return nic_mr_remote_write(world, vp, key, addr, total, at, buf, len);
}

static uint64_t world_key_life(void *world, uint16_t vp, uint32_t key)
{
	return nic_mr_life(world, vp, key);
}

static int world_send(void *world, uint32_t incarnation, const struct muster_packet *packet,
		      const void *payload)
{
	int err;

	if (!incarnation)
		return -EHOSTUNREACH;
	enter(world);
	err = nic_packet_send(world, incarnation, packet, payload);
	leave(world);
	return err;
}

static int world_complete(void *world, uint16_t vp, const struct muster_cqe *cqe)
{
	int err;

	enter(world);
	err = nic_complete(world, vp, cqe);
	leave(world);
	return err;
}

static int world_deliver(void *world, uint16_t vp, const struct muster_packet *packet,
			 const void *payload)
{
	int err;

	enter(world);
	err = nic_deliver(world, vp, packet, payload);
	leave(world);
	return err;
}

static const struct muster_engine_world engine_world = {
	.dma_read = world_dma_read,
	.dma_write = world_dma_write,
	.key_life = world_key_life,
	.remote_write = world_remote_write,
	.send = world_send,
	.complete = world_complete,
	.deliver = world_deliver,
	.alloc = muster_zeroed,
	.free = muster_zeroed_free,
};

/* ---- life -------------------------------------------------------------------- */

/* The i-th of nr shares of what there is. */
static uint32_t share(uint32_t all, uint32_t nr, uint32_t i)
{
	return all / nr + (i < all % nr);
}

static int engine_open(struct muster_nic *nic, uint32_t nr, uint32_t units)
{
	struct muster_engine_config config = {
		.node = nic->config.node, .model = nic->config.model,
		.hash_key = { nic->config.hash_key[0], nic->config.hash_key[1] },
	};
	struct muster_engine **engine = &nic->engines[nic->nr_engines];
	int err;

	config.model.threads = 0;
	config.model.units = share(units, nr, nic->nr_engines);
	err = muster_engine_create(&config, &engine_world, nic, engine);
	if (err)
		return err;
	muster_engine_keys_put(*engine, &nic->mrs_gone);
	nic->nr_engines++;
	return 0;
}

int nic_engines_open(struct muster_nic *nic, char *why, size_t why_len)
{
	uint32_t units = nic->config.model.units ? nic->config.model.units : MUSTER_UNITS;
	uint32_t nr = nic->config.model.threads ? nic->config.model.threads : 1;
	int err = units > MUSTER_UNITS_MAX || nr > units ? -EINVAL : 0;

	while (!err && nic->nr_engines < nr)
		err = engine_open(nic, nr, units);
	if (err == -EINVAL)
		snprintf(why, why_len, "an engine has at most units=%d, engine-threads=as many as units, buffer=%dM in steps of %d bytes, window=%d and pulses=%d",
			 MUSTER_UNITS_MAX, MUSTER_ENGINE_BUFFER_MAX >> 20, MUSTER_MTU, MUSTER_WINDOW,
			 MUSTER_PULSES_LIVE);
	return err;
}

void nic_engines_close(struct muster_nic *nic)
{
	while (nic->nr_engines)
		muster_engine_destroy(nic->engines[--nic->nr_engines]);
}

/* ---- steps ------------------------------------------------------------------- */

static void step(void *arg, uint32_t i)
{
	struct muster_nic *nic = arg;

	nic->engine_more[i] = muster_engine_step(nic->engines[i], STEP_BUDGET);
}

static uint32_t nr_ready(const struct muster_nic *nic)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < nic->nr_engines; i++)
		nr += muster_engine_is_ready(nic->engines[i]);
	return nr;
}

/* One alone need not wake others up. Trace records have one ring, so these are made in turn. */
bool nic_engines_step(struct muster_nic *nic)
{
	bool more = false;

	nic->side_by_side = nic->nr_engines > 1 && nic->world->parallel && !nic->tracing &&
			    nr_ready(nic) > 1;
	if (nic->side_by_side)
		nic->world->parallel(nic->opaque, step, nic, nic->nr_engines);
	else
		for (uint32_t i = 0; i < nic->nr_engines; i++)
			step(nic, i);
	nic->side_by_side = false;
	for (uint32_t i = 0; i < nic->nr_engines; i++)
		more |= nic->engine_more[i];
	return more;
}

void nic_engines_trace(struct muster_nic *nic, struct muster_trace *trace)
{
	nic->tracing = trace;
	for (uint32_t i = 0; i < nic->nr_engines; i++)
		muster_engine_trace_put(nic->engines[i], trace);
}

void nic_engines_present(struct muster_nic *nic, uint32_t node, uint32_t present)
{
	for (uint32_t i = 0; i < nic->nr_engines; i++)
		muster_engine_peer_present(nic->engines[i], node, present);
}

void nic_engines_network_lost(struct muster_nic *nic)
{
	for (uint32_t i = 0; i < nic->nr_engines; i++)
		muster_engine_network_lost(nic->engines[i]);
}

bool nic_engines_need(const struct muster_nic *nic, uint32_t node)
{
	for (uint32_t i = 0; i < nic->nr_engines; i++)
		if (muster_engine_needs(nic->engines[i], node))
			return true;
	return false;
}

void nic_engines_count(const struct muster_nic *nic, struct muster_engine_counters *all)
{
	struct muster_engine_counters one;
	uint64_t most = 0;

	*all = (struct muster_engine_counters){ 0 };
	for (uint32_t i = 0; i < nic->nr_engines; i++) {
		muster_engine_counters_get(nic->engines[i], &one);
#define ADD(name, words) all->name += one.name;
		MUSTER_ENGINE_COUNTERS(ADD)
#undef ADD
		if (one.buffer_blocks_used_max > most)
			most = one.buffer_blocks_used_max;
	}
	all->buffer_blocks_used_max = most;
}
