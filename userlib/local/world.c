// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the engine of the local device sees of the world: the memory of its own
 * process, in place; that of its peers, where they have shared it; and queues that
 * the library empties. Nothing here calls the engine back.
 */
#include "internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "zeroed.h"

/* ---- memory ------------------------------------------------------------------- */

static void *dma_map(void *world, uint16_t vp, uint32_t key, uint64_t addr, uint64_t len,
		     bool write)
{
	struct local *local = world;

	(void)vp;
	return muster_region_range(&local->memory, key, addr, len,
				   write ? MUSTER_ACCESS_WRITE : MUSTER_ACCESS_READ);
}

static uint64_t key_life(void *world, uint16_t vp, uint32_t key)
{
	const struct local *local = world;
	const struct muster_region_own *region = muster_region_find(&local->memory, key);

	(void)vp;
	return region && !region->withdrawn ? region->life : 0;
}

static int dma_read(void *world, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
		    uint32_t len)
{
	const void *memory = dma_map(world, vp, key, addr, len, false);

	if (!memory)
		return -EFAULT;
	memcpy(buf, memory, len);
	return 0;
}

static int dma_write(void *world, uint16_t vp, uint32_t key, uint64_t addr, const void *buf,
		     uint32_t len)
{
	void *memory = dma_map(world, vp, key, addr, len, true);

	if (!memory)
		return -EFAULT;
	memcpy(memory, buf, len);
	return 0;
}

static int remote_write(void *world, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			uint32_t at, const void *buf, uint32_t len)
{
	struct local *local = world;
	uint8_t *memory = muster_region_range(&local->memory, key, addr, total,
					      MUSTER_ACCESS_WRITE | MUSTER_ACCESS_REMOTE);

	(void)vp;
	if (!memory || at > total || len > total - at)
		return -EFAULT;
	memcpy(memory + at, buf, len);
	return 0;
}

/* A peer that does not know the region is told now, before the packet that refers to it. */
static bool share(struct local *local, uint32_t key, uint32_t node)
{
	struct muster_region_own *region = muster_region_find(&local->memory, key);

	return muster_region_known(region, node) || muster_local_share(local, region, node);
}

/*
 * So much of shared memory is copied, if its owner need then not wait: that costs less than to be
 * waited for.
 */
enum { SHORT_MAX = 16 << 10 };

/*
 * The caller's own memory cannot be mapped by others. Its copy goes to where the last one was,
 * and is read while it is in the cache.
 */
static bool lend_copy(struct local *local, uint32_t context, uint32_t node,
		      struct muster_reference *lent)
{
	const void *from = muster_region_range(&local->memory, lent->key, lent->addr, lent->length,
					       MUSTER_ACCESS_READ);
	void *copy = from && lent->length <= MUSTER_PULSE_MAX ?
		     muster_copy_take(&local->copies, &local->memory, context) : NULL;

	if (!copy)
		return false;
	if (!share(local, local->copies.key, node)) {
		muster_copy_give(&local->copies, copy);
		return false;
	}
	muster_fill(&local->peers[node].fill, copy, from, lent->length);
	lent->key = local->copies.key;
	lent->addr = (uintptr_t)copy;
	return true;
}

static bool lend_again(struct local *local, uint32_t node, const struct muster_reference *lent)
{
	if (!share(local, lent->key, node))
		return false;
	muster_copy_again(&local->copies, (const void *)(uintptr_t)lent->addr);
	return true;
}

static bool lend(void *world, uint16_t vp, uint32_t context, uint32_t node,
		 struct muster_reference *lent)
{
	struct local *local = world;
	struct muster_region_own *region = muster_region_find(&local->memory, lent->key);

	(void)vp;
	if (!region || node >= local->size || region->access & MUSTER_ACCESS_APART)
		return false;
	if (lent->key == local->copies.key)
		return lend_again(local, node, lent);
	if (context == MUSTER_LEND_KEPT && region->shared && lent->length > SHORT_MAX)
		return false;
	if (context == MUSTER_LEND_KEPT || !region->shared)
		return lend_copy(local, context, node, lent);
	return share(local, lent->key, node);
}

static void lent_back(void *world, const struct muster_reference *lent)
{
	muster_copy_give(&((struct local *)world)->copies, (const void *)(uintptr_t)lent->addr);
}

/* What was told before the packet that refers to it may wait in the mesh. */
static const void *peer_map(void *world, uint32_t node, uint16_t vp, uint32_t key, uint64_t addr,
			    uint64_t len)
{
	struct local *local = world;
	const void *memory;

	(void)vp;
	node = muster_local_rank(local, node);
	if (node >= local->size)
		return NULL;
	memory = muster_region_peer_range(&local->peers[node].memory, key, addr, len);
	if (memory)
		return memory;
	muster_mesh_service(local->mesh);
	return muster_region_peer_range(&local->peers[node].memory, key, addr, len);
}

/* Its job is ours: there is no other in these rings. */
static bool peer_ended(void *world, uint32_t node, uint8_t job, uint32_t context)
{
	const struct local *local = world;

	(void)job;
	return node < local->size && muster_ring_signed(&local->rings.peers[node].region, context);
}

/* ---- leaving --------------------------------------------------------------------- */

static bool base_leave(void *world, uint32_t context, uint32_t life, uint32_t base)
{
	return muster_mesh_base_leave(((struct local *)world)->mesh, context, life, base);
}

static bool base_left(void *world, uint32_t node, uint32_t context, uint32_t life,
		      uint32_t *base)
{
	const struct local *local = world;

	return node < local->size &&
	       muster_mesh_base_left(local->mesh, node, context, life, base);
}

/* ---- packets and completions ------------------------------------------------------ */

static __attribute__((noinline)) int send_ring_any(struct local *local, uint32_t rank,
						   const struct muster_packet *packet,
						   const void *payload)
{
	int err;

	if (rank < local->size && local->peers[rank].ended)
		return 0;	/* nobody reads it; what follows from that, the engine hears soon */
	err = muster_rings_send(&local->rings, packet, payload);
	if (err != -EPROTO)
		return err;
	muster_local_end(local, rank);
	return 0;
}

static int send_ring(void *world, uint32_t incarnation, const struct muster_packet *packet,
		     const void *payload)
{
	struct local *local = world;
	const uint32_t rank = le32toh(packet->dst_node);

	(void)incarnation;	/* a ring is its process's */
	if (rank < local->size && !local->peers[rank].ended &&
	    muster_rings_send_small(&local->rings, rank, packet, payload))
		return 0;
	return send_ring_any(local, rank, packet, payload);
}

static int send_wire(void *world, uint32_t incarnation, const struct muster_packet *packet,
		     const void *payload)
{
	struct local *local = world;
	uint32_t rank = le32toh(packet->dst_node);
	int err = -EHOSTUNREACH;

	if (rank < local->size && !local->peers[rank].lost)
		err = local->wire->ops->send(local->wire, incarnation, packet, payload);
	return err == -EHOSTUNREACH ? 0 : err;	/* as above */
}

/* The same by the switch that this rank is at: also to aggregation nodes, which answer for themselves. */
static int send_switch(void *world, uint32_t incarnation, const struct muster_packet *packet,
		       const void *payload)
{
	struct local *local = world;
	uint32_t rank = muster_local_rank(local, le32toh(packet->dst_node));
	int err;

	(void)incarnation;	/* which one is meant the packet's receiver sees */
	if (rank < local->size && local->peers[rank].lost)
		return 0;
	err = local->wire->ops->send_by(local->wire, local->uplink, local->uplink_life, packet,
					payload);
	return err == -EHOSTUNREACH && rank < local->size ? 0 : err;
}

static int complete(void *world, uint16_t vp, const struct muster_cqe *cqe)
{
	struct local *local = world;

	(void)vp;
	if (local->completed - local->polled == COMPLETIONS)
		return -EAGAIN;
	local->completions[local->completed++ % COMPLETIONS] = *cqe;
	if (cqe->status && cqe->kind != MUSTER_CQE_SEND)	/* nobody has heard of it yet */
		muster_local_give_back(local, cqe->context);
	return 0;
}

static int deliver(void *world, uint16_t vp, const struct muster_packet *packet,
		   const void *payload)
{
	struct local *local = world;
	uint32_t slots = local->dev.limits.ring_slots;
	struct received *slot;

	(void)vp;
	if (local->delivered - local->taken == slots)
		return -ENOSPC;
	if (local->delivered == local->taken)
		local->delivered = local->taken = 0;
	slot = &local->received[local->delivered++ % slots];
	slot->packet = *packet;
	memcpy(slot->payload, payload, le16toh(packet->length));
	return 0;
}

const struct muster_engine_world *muster_local_world(const char *wire)
{
	static const struct muster_engine_world ring_world = {
		.dma_read = dma_read,
		.dma_write = dma_write,
		.key_life = key_life,
		.remote_write = remote_write,
		.dma_map = dma_map,
		.lend = lend,
		.lent_back = lent_back,
		.peer_map = peer_map,
		.peer_ended = peer_ended,
		.base_leave = base_leave,
		.base_left = base_left,
		.send = send_ring,
		.complete = complete,
		.deliver = deliver,
		.alloc = muster_zeroed,
		.free = muster_zeroed_free,
	};
	/* Over sockets everything is copied, as between machines. */
	static const struct muster_engine_world wire_world = {
		.dma_read = dma_read,
		.dma_write = dma_write,
		.key_life = key_life,
		.remote_write = remote_write,
		.dma_map = dma_map,
		.send = send_wire,
		.complete = complete,
		.deliver = deliver,
		.alloc = muster_zeroed,
		.free = muster_zeroed_free,
	};

	static const struct muster_engine_world switch_world = {
		.dma_read = dma_read,
		.dma_write = dma_write,
		.key_life = key_life,
		.remote_write = remote_write,
		.dma_map = dma_map,
		.send = send_switch,
		.complete = complete,
		.deliver = deliver,
		.alloc = muster_zeroed,
		.free = muster_zeroed_free,
	};

	if (!strcmp(wire, "ring"))
		return &ring_world;
	return strcmp(wire, "switch") ? &wire_world : &switch_world;
}
