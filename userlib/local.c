// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The local device (local.h): one engine, stepped by its owner inside calls;
 * packets go over memory rings, or over sockets where that is asked for; memory
 * that was allocated here is mapped by all peers, so that they combine from it in
 * place. A death is heard from the mesh, and only told to the engine when all that
 * the dead had sent before is handled.
 */
#include "local.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "dev.h"
#include "engine.h"
#include "mesh.h"
#include "regions.h"
#include "ring.h"
#include "wire.h"

enum local_limit {
	RING_BYTES_FEW = 256 << 10,	/* of each ring, up to RANKS_FEW ranks */
	RING_BYTES_MANY = 64 << 10,
	RANKS_FEW = 8,
	RECEIVE_SLOTS_PER_RANK = 140,	/* point to point */
	RECEIVE_SLOTS_MAX = 4096,
	COMPLETIONS = 2048,		/* a power of two */
	DRAIN_AT_ONCE = 64,		/* packets of one ring before the engine steps */
	STEP_BUDGET = 4096,
	IDLE_SERVICE = 4096,		/* polls without success between two looks at the mesh */
	UDP_PORT_FIRST = 20000,
	UDP_PORT_LAST = 32000,		/* below what the system hands out by itself */
};

struct received {
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
};

struct peer {
	struct muster_ring_region region;	/* its inbound memory */
	size_t region_bytes;
	struct muster_ring_producer to;
	struct muster_ring_consumer from;
	struct muster_regions_peer memory;
	bool ringing;		/* sent to since the last look whether it sleeps */
	bool left;		/* in good order */
	bool lost_pending;
	bool lost;
};

struct local {
	struct muster_dev dev;
	uint32_t rank;
	uint32_t size;
	struct muster_engine *engine;
	struct muster_mesh *mesh;
	struct muster_wire *wire;	/* NULL: memory rings */
	struct muster_ring_region inbound;
	void *inbound_memory;
	size_t inbound_bytes;
	struct muster_regions_own memory;
	bool announcing;		/* some region is not known to, or not withdrawn at, all peers */
	bool busy;			/* the engine could go on */
	bool someone_lost;
	uint32_t idle;
	struct peer *peers;
	struct muster_cqe completions[COMPLETIONS];
	uint32_t completed;		/* indices count up */
	uint32_t polled;
	struct received *received;
	uint32_t delivered;
	uint32_t taken;
};

static struct local *to_local(struct muster_dev *dev)
{
	return (struct local *)dev;
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- the engine's world ------------------------------------------------------- */

static uint64_t world_now_us(void *world)
{
	(void)world;
	return now_us();
}

static void *world_dma_map(void *world, uint16_t vp, uint32_t key, uint64_t addr, uint64_t len,
			   bool write)
{
	struct local *local = world;

	(void)vp;
	return muster_region_range(&local->memory, key, addr, len,
				   write ? MUSTER_ACCESS_WRITE : MUSTER_ACCESS_READ);
}

static int world_dma_read(void *world, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
			  uint32_t len)
{
	const void *memory = world_dma_map(world, vp, key, addr, len, false);

	if (!memory)
		return -EFAULT;
	memcpy(buf, memory, len);
	return 0;
}

static int world_dma_write(void *world, uint16_t vp, uint32_t key, uint64_t addr, const void *buf,
			   uint32_t len)
{
	void *memory = world_dma_map(world, vp, key, addr, len, true);

	if (!memory)
		return -EFAULT;
	memcpy(memory, buf, len);
	return 0;
}

static bool world_shareable(void *world, uint16_t vp, uint32_t key)
{
	const struct local *local = world;
	const struct muster_region_own *region = muster_region_find(&local->memory, key);

	(void)vp;
	return region && region->shared && region->announced == local->size;
}

/* The announcement was sent before the packet that refers to it: it may wait in the mesh. */
static const void *world_peer_map(void *world, uint32_t node, uint16_t vp, uint32_t key,
				  uint64_t addr, uint64_t len)
{
	struct local *local = world;
	const void *memory;

	(void)vp;
	if (node >= local->size)
		return NULL;
	memory = muster_region_peer_range(&local->peers[node].memory, key, addr, len);
	if (memory)
		return memory;
	muster_mesh_service(local->mesh);
	return muster_region_peer_range(&local->peers[node].memory, key, addr, len);
}

static void peer_lose(struct local *local, uint32_t rank)
{
	local->peers[rank].lost_pending = true;
	local->someone_lost = true;
}

static int world_send_ring(void *world, const struct muster_packet *packet, const void *payload)
{
	struct local *local = world;
	struct peer *peer;
	int err;

	if (packet->dst_node >= local->size || packet->dst_node == local->rank)
		return -EHOSTUNREACH;
	peer = &local->peers[packet->dst_node];
	if (peer->lost || peer->lost_pending)
		return 0;	/* nobody reads it; the engine will hear of it in a moment */
	err = muster_ring_send(&peer->to, packet, payload);
	if (!err)
		peer->ringing = true;
	if (!err || err == -EAGAIN)
		return err;
	peer_lose(local, packet->dst_node);
	return 0;
}

static int world_send_wire(void *world, const struct muster_packet *packet, const void *payload)
{
	struct local *local = world;

	if (packet->dst_node < local->size && local->peers[packet->dst_node].lost)
		return 0;	/* as above */
	return local->wire->ops->send(local->wire, packet, payload);
}

static int world_complete(void *world, uint16_t vp, const struct muster_cqe *cqe)
{
	struct local *local = world;

	(void)vp;
	if (local->completed - local->polled == COMPLETIONS)
		return -EAGAIN;
	local->completions[local->completed++ % COMPLETIONS] = *cqe;
	return 0;
}

static int world_deliver(void *world, uint16_t vp, const struct muster_packet *packet,
			 const void *payload)
{
	struct local *local = world;
	uint32_t slots = local->dev.limits.ring_slots;
	struct received *slot;

	(void)vp;
	if (local->delivered - local->taken == slots)
		return -ENOSPC;
	slot = &local->received[local->delivered++ % slots];
	slot->packet = *packet;
	memcpy(slot->payload, payload, packet->length);
	return 0;
}

static void *world_alloc(void *world, size_t bytes)
{
	size_t rounded = (bytes + 63) / 64 * 64;
	void *memory = rounded >= bytes ? aligned_alloc(64, rounded) : NULL;

	(void)world;
	if (memory)
		memset(memory, 0, rounded);
	return memory;
}

static void world_free(void *world, void *memory, size_t bytes)
{
	(void)world;
	(void)bytes;
	free(memory);
}

static const struct muster_engine_world ring_world = {
	.now_us = world_now_us,
	.dma_read = world_dma_read,
	.dma_write = world_dma_write,
	.dma_map = world_dma_map,
	.shareable = world_shareable,
	.peer_map = world_peer_map,
	.send = world_send_ring,
	.complete = world_complete,
	.deliver = world_deliver,
	.alloc = world_alloc,
	.free = world_free,
};

/* Over sockets everything is copied, as between machines. */
static const struct muster_engine_world wire_world = {
	.now_us = world_now_us,
	.dma_read = world_dma_read,
	.dma_write = world_dma_write,
	.dma_map = world_dma_map,
	.send = world_send_wire,
	.complete = world_complete,
	.deliver = world_deliver,
	.alloc = world_alloc,
	.free = world_free,
};

/* ---- memory that peers map ---------------------------------------------------------- */

/* Tell peers from *next on; false: one has no room now. */
static bool tell_peers(struct local *local, const struct muster_mesh_message *message, int fd,
		       uint32_t *next)
{
	for (; *next < local->size; (*next)++)
		if (*next != local->rank &&
		    muster_mesh_send(local->mesh, *next, message, fd) == -EAGAIN)
			return false;
	return true;
}

static bool region_announce(struct local *local, struct muster_region_own *region)
{
	struct muster_mesh_message message = {
		.kind = region->withdrawn ? MUSTER_MESH_WITHDRAW : MUSTER_MESH_REGION,
		.key = region->key,
		.addr = region->addr,
		.bytes = region->bytes,
	};

	if (region->withdrawn) {
		if (!tell_peers(local, &message, -1, &region->told))
			return false;
		muster_region_forget(region);
		return true;
	}
	if (!tell_peers(local, &message, region->fd, &region->announced))
		return false;
	close(region->fd);
	region->fd = -1;
	return true;
}

/* A region that not all know yet is copied from, as if it were not shared. */
static void announce(struct local *local)
{
	local->announcing = false;
	for (uint32_t i = 0; i < local->memory.nr; i++) {
		struct muster_region_own *region = &local->memory.table[i];

		if (region->key && region->shared &&
		    (region->withdrawn || region->announced < local->size) &&
		    !region_announce(local, region))
			local->announcing = true;
	}
}

static int mem_alloc(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key)
{
	struct local *local = to_local(dev);
	int err = muster_region_alloc(&local->memory, bytes, addr, key);

	if (!err && !local->wire)
		announce(local);
	return err;
}

static void mem_free(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key)
{
	struct local *local = to_local(dev);

	(void)addr;
	(void)bytes;
	muster_region_withdraw(&local->memory, key);
	if (local->wire)
		muster_region_forget(muster_region_find(&local->memory, key));
	else
		announce(local);
}

static int mem_register(struct muster_dev *dev, void *addr, size_t bytes, int access,
			uint32_t *key)
{
	return muster_region_register(&to_local(dev)->memory, addr, bytes, access, key);
}

static void mem_deregister(struct muster_dev *dev, uint32_t key)
{
	muster_region_deregister(&to_local(dev)->memory, key);
}

/* ---- what the mesh says ----------------------------------------------------------------- */

static void mesh_message(void *owner, uint32_t rank, const struct muster_mesh_message *message,
			 int fd)
{
	struct local *local = owner;
	struct peer *peer = &local->peers[rank];

	if (message->kind == MUSTER_MESH_WITHDRAW) {
		muster_region_peer_withdraw(&peer->memory, message->key);
		if (fd >= 0)
			close(fd);
	} else if (fd >= 0) {
		/* If it cannot be mapped here, its owner's messages come by copy: not an error. */
		muster_region_peer_map(&peer->memory, message->key, message->addr, message->bytes, fd);
	}
}

static void mesh_lost(void *owner, uint32_t rank, bool left)
{
	struct local *local = owner;

	local->peers[rank].left = left;
	peer_lose(local, rank);
}

static const struct muster_mesh_events mesh_events = {
	.message = mesh_message,
	.lost = mesh_lost,
};

/* ---- progress ---------------------------------------------------------------------------- */

static void wire_receive(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	struct local *local = owner;

	muster_engine_receive(local->engine, packet, payload, len);
}

static void wire_lost(void *owner, uint32_t node)
{
	struct local *local = owner;

	if (node < local->size)
		peer_lose(local, node);
}

static const struct muster_wire_events wire_events = {
	.receive = wire_receive,
	.lost = wire_lost,
};

static int ring_drain(struct local *local, uint32_t rank)
{
	struct muster_ring_consumer *from = &local->peers[rank].from;
	struct muster_packet packet;
	const void *payload;
	int n = 0, ret;

	while (n < DRAIN_AT_ONCE && (ret = muster_ring_poll(from, &packet, &payload)) > 0) {
		/* A ring belongs to one rank: nobody speaks for another. */
		if (packet.src_node == rank)
			muster_engine_receive(local->engine, &packet, payload, packet.length);
		muster_ring_release(from);
		n++;
	}
	if (n < DRAIN_AT_ONCE && ret < 0)
		peer_lose(local, rank);
	return n;
}

static int drain(struct local *local)
{
	int n = 0;

	if (local->wire)
		return local->wire->ops->poll(local->wire, now_us(), DRAIN_AT_ONCE);
	for (uint32_t rank = 0; rank < local->size; rank++)
		if (rank != local->rank && !local->peers[rank].lost)
			n += ring_drain(local, rank);
	return n;
}

static void wake_sleepers(struct local *local)
{
	for (uint32_t rank = 0; rank < local->size; rank++) {
		struct peer *peer = &local->peers[rank];

		if (!peer->ringing)
			continue;
		peer->ringing = false;
		if (muster_ring_wants_wake(&peer->region))
			muster_mesh_wake(local->mesh, rank);
	}
}

static void step(struct local *local)
{
	local->busy = muster_engine_step(local->engine, STEP_BUDGET);
	if (!local->wire)
		wake_sleepers(local);
}

/* All that the lost had sent is handled first: it may have ended its part in good order. */
static void tell_lost(struct local *local)
{
	while (drain(local))
		step(local);
	local->someone_lost = false;
	for (uint32_t rank = 0; rank < local->size; rank++) {
		struct peer *peer = &local->peers[rank];

		if (!peer->lost_pending || peer->lost)
			continue;
		peer->lost = true;
		/* Over sockets its farewell may be under way still; it comes by itself. */
		if (!peer->left)
			muster_engine_peer_lost(local->engine, rank);
		else if (!local->wire)
			muster_engine_peer_left(local->engine, rank);
	}
	step(local);
}

/* What is not for the hot path: deaths, announcements, memory that peers took back. */
static void service(struct local *local)
{
	local->idle = 0;
	muster_mesh_service(local->mesh);
	if (local->announcing)
		announce(local);
	for (uint32_t rank = 0; rank < local->size; rank++)
		if (local->peers[rank].memory.nr_withdrawn)
			muster_regions_peer_sweep(&local->peers[rank].memory);
}

static void progress(struct local *local)
{
	if (drain(local)) {
		local->idle = 0;
		step(local);
	} else {
		if (local->busy)
			step(local);
		if (++local->idle >= IDLE_SERVICE)
			service(local);
	}
	if (local->someone_lost)
		tell_lost(local);
}

/* ---- operations ------------------------------------------------------------------------------ */

static int context_open(struct muster_dev *dev, const struct muster_dev_context *context)
{
	struct local *local = to_local(dev);
	struct muster_context_config config = {
		.job = context->job,
		.context = context->context,
		.vp = dev->address.vp,
		.job_key = context->job_key,
		.self = context->self,
		.nr_members = context->nr_members,
	};
	struct muster_member *members = calloc(context->nr_members, sizeof(*members));
	int err;

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < context->nr_members; i++) {
		members[i].node = context->members[i].node;
		members[i].vp = context->members[i].vp;
		members[i].incarnation = context->members[i].incarnation;
	}
	config.members = members;
	err = muster_engine_context_open(local->engine, &config);
	free(members);
	return err;
}

static void context_close(struct muster_dev *dev, uint8_t job, uint16_t context)
{
	muster_engine_context_close(to_local(dev)->engine, dev->address.vp, job, context);
}

static int post(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	struct local *local = to_local(dev);
	int err = muster_engine_post(local->engine, dev->address.vp, descs, nr, NULL);

	if (!err)
		step(local);
	return err;
}

static int poll_completion(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct local *local = to_local(dev);

	if (local->polled == local->completed)
		progress(local);
	if (local->polled == local->completed)
		return 0;
	*cqe = local->completions[local->polled++ % COMPLETIONS];
	return 1;
}

static int receive(struct muster_dev *dev, struct muster_packet *packet, void *payload)
{
	struct local *local = to_local(dev);
	const struct received *slot;

	if (local->taken == local->delivered)
		return 0;
	slot = &local->received[local->taken++ % dev->limits.ring_slots];
	*packet = slot->packet;
	memcpy(payload, slot->payload, packet->length);
	return 1;
}

static void wait_ring(struct local *local, uint64_t timeout_us)
{
	muster_ring_sleep_begin(&local->inbound);
	if (!drain(local))
		muster_mesh_wait(local->mesh, timeout_us);
	muster_ring_sleep_end(&local->inbound);
}

static void wait_wire(struct local *local, uint64_t timeout_us)
{
	uint64_t due = local->wire->ops->deadline_us(local->wire), now = now_us();

	if (due <= now)
		return;
	muster_mesh_wait(local->mesh, due - now < timeout_us ? due - now : timeout_us);
}

static void wait_event(struct muster_dev *dev, uint64_t timeout_us)
{
	struct local *local = to_local(dev);

	if (local->completed != local->polled || local->delivered != local->taken)
		return;
	service(local);
	if (local->busy && timeout_us > 100)
		timeout_us = 100;	/* a full ring or socket makes room without a sound */
	if (local->wire)
		wait_wire(local, timeout_us);
	else
		wait_ring(local, timeout_us);
	step(local);
	if (local->someone_lost)
		tell_lost(local);
}

static void abort_context(struct muster_dev *dev, uint8_t job, uint16_t context, uint8_t status,
			  uint32_t culprit)
{
	struct local *local = to_local(dev);

	muster_engine_abort(local->engine, dev->address.vp, job, context, status, culprit);
	step(local);
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static void inbound_close(struct local *local)
{
	if (local->inbound_memory)
		munmap(local->inbound_memory, local->inbound_bytes);
}

static int inbound_open(struct local *local, int *fd)
{
	uint32_t ring_bytes = local->size <= RANKS_FEW ? RING_BYTES_FEW : RING_BYTES_MANY;
	int err;

	local->inbound_bytes = muster_ring_region_size(local->size, ring_bytes);
	err = muster_memory_shared("muster-rings", local->inbound_bytes, 0, fd,
				   &local->inbound_memory);
	if (err) {
		local->inbound_memory = NULL;
		return err;
	}
	return muster_ring_region_init(&local->inbound, local->inbound_memory,
				       local->inbound_bytes, local->size, ring_bytes);
}

/* Map a peer's inbound memory, and take the two rings between us. */
static int rings_attach(struct local *local, uint32_t rank)
{
	struct peer *peer = &local->peers[rank];
	int fd = muster_mesh_inbound(local->mesh, rank);
	void *memory;
	int err;

	if (fd < 0)
		return -EPROTO;
	/* All ranks compute the same size; a memfd that is shorter fails here, not later. */
	memory = lseek(fd, 0, SEEK_END) == (off_t)local->inbound_bytes ?
		 mmap(NULL, local->inbound_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) :
		 MAP_FAILED;
	close(fd);
	if (memory == MAP_FAILED)
		return -EPROTO;
	peer->region_bytes = local->inbound_bytes;
	err = muster_ring_region_attach(&peer->region, memory, local->inbound_bytes);
	if (err) {
		munmap(memory, local->inbound_bytes);
		peer->region_bytes = 0;
		return err;
	}
	err = muster_ring_producer_init(&peer->to, &peer->region, local->rank);
	return err ? err : muster_ring_consumer_init(&peer->from, &local->inbound, rank);
}

static void peers_close(struct local *local)
{
	for (uint32_t rank = 0; rank < local->size; rank++) {
		struct peer *peer = &local->peers[rank];

		if (peer->region_bytes)
			munmap(peer->region.head, peer->region_bytes);
		muster_regions_peer_close(&peer->memory);
	}
	free(local->peers);
}

/* What rank 0's note holds: the name or the port that the socket wire starts from. */
static void note_fill(uint8_t note[MUSTER_MESH_NOTE], uint32_t size)
{
	uint64_t name = 0;
	uint16_t port;

	if (getrandom(&name, sizeof(name), 0) != sizeof(name))
		name = (uint64_t)getpid() << 32 | now_us();
	port = UDP_PORT_FIRST + name % (UDP_PORT_LAST - UDP_PORT_FIRST - size);
	memcpy(note, &name, sizeof(name));
	memcpy(note + sizeof(name), &port, sizeof(port));
}

static int wire_open(struct local *local, const struct muster_local_config *config, char *why,
		     size_t why_len)
{
	const uint8_t *note = muster_mesh_note(local->mesh, 0);
	uint64_t name;
	uint16_t port;
	char spec[64];
	int err;

	memcpy(&name, note, sizeof(name));
	memcpy(&port, note + sizeof(name), sizeof(port));
	if (!strcmp(config->wire, "udp"))
		snprintf(spec, sizeof(spec), "udp:127.0.0.1:%u", port);
	else
		snprintf(spec, sizeof(spec), "unix:@muster-%016llx", (unsigned long long)name);
	err = muster_wire_socket_open(spec, local->rank, local->dev.address.incarnation,
				      config->deadline_us, &wire_events, local, &local->wire, why,
				      why_len);
	return err ? err : muster_mesh_watch(local->mesh, local->wire->ops->fd(local->wire));
}

static int rings_open(struct local *local, char *why, size_t why_len)
{
	int err = 0;

	for (uint32_t rank = 0; rank < local->size && !err; rank++)
		if (rank != local->rank)
			err = rings_attach(local, rank);
	if (err)
		snprintf(why, why_len, "the memory rings cannot be mapped: %s", strerror(-err));
	return err;
}

/* Packets that the wire refused so far, and answers that it owes, have to go before we do. */
static void linger(struct local *local)
{
	uint64_t end = now_us() + 1000000;

	while (now_us() < end) {
		bool came = drain(local) > 0;

		step(local);
		if (local->wire && local->wire->ops->deadline_us(local->wire) != UINT64_MAX)
			muster_mesh_wait(local->mesh, 1000);
		else if (!came && !local->busy)
			return;
	}
}

static void local_free(struct local *local)
{
	if (local->wire)
		local->wire->ops->close(local->wire);
	if (local->mesh)
		muster_mesh_close(local->mesh);
	if (local->engine)
		muster_engine_destroy(local->engine);
	peers_close(local);
	muster_regions_close(&local->memory);
	inbound_close(local);
	free(local->received);
	free(local);
}

static void local_close(struct muster_dev *dev)
{
	linger(to_local(dev));
	local_free(to_local(dev));
}

static const struct muster_dev_ops local_ops = {
	.name = "local",
	.close = local_close,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.mem_register = mem_register,
	.mem_deregister = mem_deregister,
	.context_open = context_open,
	.context_close = context_close,
	.post = post,
	.poll = poll_completion,
	.recv = receive,
	.wait = wait_event,
	.abort = abort_context,
};

static struct local *local_new(const struct muster_oob *oob)
{
	struct local *local = aligned_alloc(64, (sizeof(*local) + 63) / 64 * 64);
	uint64_t slots = (uint64_t)oob->size * RECEIVE_SLOTS_PER_RANK;

	if (!local)
		return NULL;
	memset(local, 0, sizeof(*local));
	local->rank = oob->rank;
	local->size = oob->size;
	local->dev.ops = &local_ops;
	local->dev.address.node = oob->rank;
	local->dev.limits.contexts = MUSTER_UNITS * MUSTER_UNIT_CONTEXTS_MAX;
	local->dev.limits.ring_slots = slots < RECEIVE_SLOTS_MAX ? slots : RECEIVE_SLOTS_MAX;
	do
		if (getrandom(&local->dev.address.incarnation, sizeof(uint32_t), 0) < 0)
			local->dev.address.incarnation = getpid();
	while (!local->dev.address.incarnation);
	local->memory.probe[0] = local->memory.probe[1] = -1;
	local->peers = calloc(oob->size, sizeof(*local->peers));
	local->received = malloc(local->dev.limits.ring_slots * sizeof(*local->received));
	if (local->peers && local->received)
		return local;
	free(local->received);
	free(local->peers);
	free(local);
	return NULL;
}

static int engine_open(struct local *local, bool rings)
{
	const struct muster_engine_config config = { .node = local->rank, .units = MUSTER_UNITS };
	int err = muster_engine_create(&config, rings ? &ring_world : &wire_world, local,
				       &local->engine);

	if (!err)
		err = muster_engine_vp_open(local->engine, local->dev.address.vp);
	return err ? err : muster_regions_open(&local->memory);
}

int muster_local_open(const struct muster_oob *oob, const struct muster_local_config *config,
		      struct muster_dev **dev, char *why, size_t why_len)
{
	struct muster_mesh_config mesh = {
		.events = &mesh_events,
		.deadline_us = config->deadline_us,
		.inbound_fd = -1,
	};
	bool rings = !strcmp(config->wire, "ring");
	struct local *local = local_new(oob);
	int err = -ENOMEM;

	if (local)
		err = inbound_open(local, &mesh.inbound_fd);
	if (!err)
		err = engine_open(local, rings);
	/* Whatever failed here, the others wait for us at the mesh: they are told. */
	mesh.owner = local;
	mesh.error = err;
	note_fill(mesh.note, oob->size);
	err = muster_mesh_open(oob, &mesh, local ? &local->mesh : &(struct muster_mesh *){ NULL },
			       why, why_len);
	if (mesh.inbound_fd >= 0)
		close(mesh.inbound_fd);
	if (!err)
		err = rings ? rings_open(local, why, why_len) : wire_open(local, config, why, why_len);
	if (!err) {
		*dev = &local->dev;
		return 0;
	}
	if (local)
		local_free(local);
	return err;
}
