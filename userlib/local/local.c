// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The local device (local.h): one engine, stepped by its owner inside calls;
 * packets go over memory rings, or over sockets where that is asked for; memory
 * that was allocated here is mapped by the peers that it is sent to, so that they combine
 * from it in place. This file opens and closes it and is its table of operations.
 */
#include "local.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "internal.h"
#include "model.h"
#include "namespace.h"
#include "ticks.h"

/*
 * A local rank that is merely late answers nothing, for as long as it computes.
 * Deaths are heard from the mesh, so silence on a socket never means one.
 */
#define SILENCE_US	(365ull * 86400 * 1000000)

enum {
	SETTLE_US = 1000000,	/* before the caller blocks elsewhere, where others may do so, too */
	RING_PULSE = 128 << 10,	/* bytes; each is a few messages, however long it is, as it is read where it lies */
};

static struct local *to_local(struct muster_dev *dev)
{
	return (struct local *)dev;
}

/* ---- operations ---------------------------------------------------------------- */

static int mem_alloc(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key)
{
	struct local *local = to_local(dev);
	int err = muster_region_alloc(&local->memory, bytes, addr, key);

	if (err)
		return err;
	/*
	 * All of it is there at once, as a NIC has it that pins it: no operation meets a page for the
	 * first time. Kernels before 5.14 do not know this wish.
	 */
	if (!madvise(*addr, bytes, MADV_POPULATE_WRITE) || errno == EINVAL)
		return 0;
	muster_region_withdraw(&local->memory, *key);
	muster_local_withdraw(local);
	return -ENOMEM;
}

static void mem_free(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key)
{
	struct local *local = to_local(dev);

	(void)addr;
	(void)bytes;
	muster_region_withdraw(&local->memory, key);
	muster_local_withdraw(local);
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

/* It was said before there was a context to hear it. */
static void fail_if_gone(struct local *local, const struct muster_dev_context *context)
{
	for (uint32_t i = 0; i < context->nr_members; i++) {
		uint32_t rank = muster_local_rank(local, context->members[i].node);

		if (context->nr_members > 1 && rank < local->size && local->peers[rank].gone)
			muster_engine_abort(local->engine, local->dev.address.vp, context->job,
					    context->context, MUSTER_STATUS_PEER_LOST,
					    i == context->self ? MUSTER_CULPRIT_NONE : i);
	}
}

static int context_open(struct muster_dev *dev, const struct muster_dev_context *context)
{
	struct local *local = to_local(dev);
	struct muster_context_config config = {
		.job = context->job,
		.context = context->context,
		.life = context->life,
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
	if (!err && !local->wire)
		muster_ring_sign(&local->rings.inbound, context->context, false);
	if (!err && local->uplink)
		fail_if_gone(local, context);
	free(members);
	return err;
}

static void context_close(struct muster_dev *dev, uint8_t job, uint32_t context)
{
	struct local *local = to_local(dev);

	muster_engine_context_close(local->engine, dev->address.vp, job, context);
	muster_copies_drop(&local->copies, context);
	muster_local_step(local);	/* it may have to say so later: see that we are busy then */
}

static struct muster_tree_config config_of(const struct muster_dev_tree *tree)
{
	return (struct muster_tree_config){
		.node = tree->node,
		.incarnation = tree->incarnation,
		.tree = tree->tree,
		.group = tree->group,
		.key = tree->key,
		.payload_max = tree->payload_max,
	};
}

static int tree_move(struct muster_dev *dev, uint8_t job, uint32_t context,
		     const struct muster_dev_tree *tree)
{
	const struct muster_tree_config config = config_of(tree);

	return muster_engine_tree_move(to_local(dev)->engine, dev->address.vp, job, context, &config);
}

static int tree_join(struct muster_dev *dev, uint8_t job, uint32_t context,
		     const struct muster_dev_tree *tree)
{
	const struct muster_tree_config config = config_of(tree);

	return muster_engine_tree_join(to_local(dev)->engine, dev->address.vp, job, context, &config);
}

static int post(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr)
{
	struct local *local = to_local(dev);
	int err = muster_engine_post(local->engine, dev->address.vp, descs, nr, NULL);

	if (!err)
		muster_local_step(local);
	return err;
}

/* It mostly does all that can be done; but a wire may keep back what has been sent. */
static int start_kept(struct muster_dev *dev, const struct muster_desc *start)
{
	struct local *local = to_local(dev);
	bool left;
	int err;

	if (local->wire)
		return post(dev, start, 1);
	err = muster_engine_start_run(local->engine, dev->address.vp, start, &left);
	local->busy |= left;
	muster_local_went(local);
	return err;
}

static int poll_completion(struct muster_dev *dev, struct muster_cqe *cqe)
{
	struct local *local = to_local(dev);

	if (local->polled == local->completed && !muster_local_take(local))
		muster_local_progress(local);
	if (local->polled == local->completed)
		return 0;
	*cqe = local->completions[local->polled++ % COMPLETIONS];
	return 1;
}

/* Both queues fill in the same steps, and poll() was asked first: no step of its own. */
static int receive(struct muster_dev *dev, struct muster_packet *packet, void *payload)
{
	struct local *local = to_local(dev);
	const struct received *slot;

	if (local->taken == local->delivered)
		return 0;
	slot = &local->received[local->taken++ % dev->limits.ring_slots];
	*packet = slot->packet;
	memcpy(payload, slot->payload, le16toh(packet->length));
	return 1;
}

static void wait_event(struct muster_dev *dev, uint64_t timeout_us)
{
	muster_local_wait(to_local(dev), timeout_us);
}

/* Without it a sleep ends when its time is over. */
static void beside(struct muster_dev *dev, struct muster_dev *other)
{
	struct local *local = to_local(dev), *added;

	if (!other) {
		local->beside = NULL;
		return;
	}
	added = to_local(other);
	added->beside = local->beside;
	local->beside = added;
	muster_mesh_watch(local->mesh, added->wire->ops->fd(added->wire));
}

static bool in_the_way(struct muster_dev *dev)
{
	return dev->crowded && muster_local_in_the_way(to_local(dev));
}

static void wake_waiting(struct muster_dev *dev)
{
	struct local *local = to_local(dev);

	muster_mesh_wake(local->mesh, local->alone ? 0 : local->rank);
}

/* Over rings all that is sent has left, or the engine has it still. */
static bool holds(struct muster_dev *dev, uint8_t job, uint32_t context,
		  const struct muster_address *addresses, const uint32_t *ranks, uint32_t nr)
{
	struct local *local = to_local(dev);
	struct muster_wire *wire = local->wire;

	if (local->busy && muster_engine_owes(local->engine, dev->address.vp, job, context))
		return true;
	for (uint32_t i = 0; i < nr && wire; i++)
		if (wire->ops->waiting(wire, addresses[ranks[i]].node))
			return true;
	return false;
}

static void abort_context(struct muster_dev *dev, uint8_t job, uint32_t context, uint8_t status,
			  uint32_t culprit)
{
	struct local *local = to_local(dev);

	muster_engine_abort(local->engine, dev->address.vp, job, context, status, culprit);
	muster_local_give_back(local, context);
	muster_local_step(local);
}

static void look_at(struct muster_dev *dev, struct muster_look_file *file)
{
	struct local *local = to_local(dev);

	local->trace = &file->trace;
	muster_engine_counters_put(local->engine, &file->look.counters);
}

static void record(struct muster_dev *dev)
{
	muster_local_record(to_local(dev), true);
}

static int waits(struct muster_dev *dev, uint8_t job, uint32_t context,
		 struct muster_look_waits *list)
{
	return muster_engine_waits(to_local(dev)->engine, dev->address.vp, job, context, list);
}

static uint32_t silent(struct muster_dev *dev, struct muster_look_silence *list, uint32_t max)
{
	struct muster_wire *wire = to_local(dev)->wire;

	return wire ? wire->ops->silent(wire, list, max) : 0;
}

/* ---- the wire -------------------------------------------------------------------- */

/*
 * Neither leaves anything behind: the UNIX name is abstract, and 127.0.0.0/8 has
 * addresses enough for a job to have one to itself.
 */
static int socket_open(struct local *local, const struct muster_local_config *config, char *why,
		       size_t why_len)
{
	uint64_t name = muster_mesh_number(local->mesh);
	char own[64];
	const char *spec = own;
	int home, err = muster_namespace_enter(&home);

	if (err) {
		snprintf(why, why_len, "MUSTER_NAMESPACE: %s", strerror(-err));
		return err;
	}
	if (local->uplink)
		spec = config->fabric;
	else if (!strcmp(config->wire, "udp"))
		snprintf(own, sizeof(own), "udp:127.%u.%u.%u:%u", 1 + (unsigned)(name % 254),
			 (unsigned)(name >> 8 & 255), 1 + (unsigned)((name >> 16) % 254),
			 20000 + (unsigned)((name >> 32) % 10000));
	else
		snprintf(own, sizeof(own), "unix:@muster-%016llx", (unsigned long long)name);
	err = muster_wire_socket_open(spec, local->dev.address.node, local->dev.address.incarnation,
				      SILENCE_US, &local->events, local, &local->wire,
				      why, why_len);
	muster_namespace_leave(home);
	if (!err && local->uplink)	/* it is to know us before anybody sends to us */
		err = local->wire->ops->watch(local->wire, local->uplink, local->uplink_life);
	return err ? err : muster_mesh_watch(local->mesh, local->wire->ops->fd(local->wire));
}

static int rings_attach(struct local *local, int own_fd, char *why, size_t why_len)
{
	int fd = local->rank ? muster_mesh_memory(local->mesh) : own_fd;
	int err = muster_rings_attach(&local->rings, fd);

	if (local->rank && fd >= 0)
		close(fd);
	if (err)
		snprintf(why, why_len, "the memory of %u ranks' rings cannot be mapped: %s",
			 local->size, strerror(-err));
	return err;
}

/* ---- opening and closing ------------------------------------------------------------ */

static void local_free(struct local *local)
{
	if (local->engine)
		muster_engine_destroy(local->engine);
	muster_local_dump_close(local);
	if (local->wire)
		local->wire->ops->close(local->wire);
	if (local->mesh)
		muster_mesh_close(local->mesh);
	muster_rings_close(&local->rings);
	for (uint32_t rank = 0; rank < local->size && local->peers; rank++)
		muster_regions_peer_close(&local->peers[rank].memory);
	muster_regions_close(&local->memory);
	free(local->received);
	free(local->peers);
	free(local);
}

/* A switch answers whatever its hosts do; other ranks may already wait elsewhere. */
static void settle(struct muster_dev *dev)
{
	struct local *local = to_local(dev);

	muster_local_settle(local, local->uplink ? local->deadline_us : SETTLE_US);
}

/* Over sockets peers count on every farewell: only it says how much was sent before. */
static void leave(struct muster_dev *dev)
{
	struct local *local = to_local(dev);

	if (!local->wire)
		muster_engine_leave(local->engine);
}

/* What was sent last must be out before the mesh says good-bye: who is late has time. */
static void local_close(struct muster_dev *dev)
{
	muster_local_settle(to_local(dev), to_local(dev)->deadline_us);
	local_free(to_local(dev));
}

static bool is_lost(struct muster_dev *dev, const struct muster_address *address)
{
	const struct local *local = to_local(dev);
	uint32_t rank = muster_local_rank(local, address->node);

	return rank < local->size && (local->peers[rank].lost || local->peers[rank].gone);
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
	.tree_join = tree_join,
	.tree_move = tree_move,
	.post = post,
	.start = start_kept,
	.poll = poll_completion,
	.recv = receive,
	.wait = wait_event,
	.beside = beside,
	.in_the_way = in_the_way,
	.wake = wake_waiting,
	.settle = settle,
	.leave = leave,
	.holds = holds,
	.abort = abort_context,
	.look = look_at,
	.record = record,
	.waits = waits,
	.lost = is_lost,
	.silent = silent,
};

static struct local *local_new(const struct muster_oob *oob, uint32_t first)
{
	struct local *local = calloc(1, sizeof(*local));
	uint64_t slots = (uint64_t)oob->size * RECEIVE_SLOTS_PER_RANK;

	if (!local)
		return NULL;
	local->rank = oob->rank;
	local->spoke_last = oob->rank;
	local->counts_ticks = muster_ticks_clock() == MUSTER_TRACE_TSC;
	local->size = oob->size;
	local->dev.ops = &local_ops;
	local->events = muster_local_wire_events;
	local->first = first;
	local->dev.address.node = first + oob->rank;
	local->dev.limits.contexts = MUSTER_CONTEXTS_MAX;
	local->dev.limits.kept_descs = MUSTER_KEPT_DESCS_MAX;
	local->dev.limits.program_descs = MUSTER_PROGRAM_DESCS_MAX;
	local->dev.limits.idles = true;
	local->dev.limits.ring_slots = slots < RECEIVE_SLOTS_MAX ? slots : RECEIVE_SLOTS_MAX;
	while (!local->dev.address.incarnation)
		if (getrandom(&local->dev.address.incarnation, sizeof(uint32_t), 0) < 0)
			local->dev.address.incarnation = getpid();
	local->dumped.fd = -1;
	local->memory.probe[0] = -1;
	local->memory.probe[1] = -1;
	local->peers = calloc(oob->size, sizeof(*local->peers));
	local->received = calloc(local->dev.limits.ring_slots, sizeof(*local->received));
	if (local->peers && local->received)
		return local;
	local_free(local);
	return NULL;
}

static int engine_open(struct local *local, const char *wire, const struct muster_engine_model *model)
{
	const struct muster_engine_config config = { .node = local->dev.address.node, .model = *model };
	const struct muster_engine_world *world = local->dumped.fd >= 0 ? &local->dumped.own :
						  muster_local_world(wire);
	int err = muster_engine_create(&config, world, local, &local->engine);

	if (!err)
		err = muster_engine_vp_open(local->engine, local->dev.address.vp);
	if (!err)
		muster_engine_keys_put(local->engine, &local->memory.gone);
	return err ? err : muster_regions_open(&local->memory, strcmp(wire, "ring") ? 0 : local->size);
}

/* All that can fail alone; the mesh then tells the others. */
static int parts_open(struct local *local, const struct muster_local_config *config, int *memory_fd,
		      char *why, size_t why_len)
{
	const char *wire = config->wire, *dump = config->dump;
	struct muster_engine_model model;
	int err = muster_model_read("MUSTER_ENGINE", config->engine, &model, why, why_len);

	if (err)
		return err;
	if (model.threads > 1) {
		snprintf(why, why_len, "MUSTER_ENGINE=%.64s: engine-threads is for NICs, as muster-run --vm has; the local device runs in its rank; leave it out",
			 config->engine);
		return -EINVAL;
	}
	model.threads = 0;
	err = dump ? muster_local_dump_open(local, dump, muster_local_world(wire)) : 0;
	if (err) {
		snprintf(why, why_len, "MUSTER_DUMP=%.64s: no file could be written there: %s", dump,
			 strerror(-err));
		return err;
	}
	err = engine_open(local, wire, &model);
	if (!strcmp(wire, "ring"))
		muster_local_receive_set(local, false);
	if (!err && !strcmp(wire, "ring"))
		err = muster_rings_open(&local->rings, local->rank, local->size, memory_fd);
	if (err)
		snprintf(why, why_len, "no room for an engine and its rings: %s", strerror(-err));
	return err;
}

static int config_check(const struct muster_oob *oob, const struct muster_local_config *config,
			char *why, size_t why_len)
{
	if (strcmp(config->wire, "ring") && strcmp(config->wire, "unix") &&
	    strcmp(config->wire, "udp") && strcmp(config->wire, "switch")) {
		snprintf(why, why_len, "MUSTER_WIRE=%.32s: the local device has ring, unix, udp and switch",
			 config->wire);
		return -EINVAL;
	}
	if (oob->size > MUSTER_MESH_RANKS_MAX) {
		snprintf(why, why_len, "%u ranks: the local device takes at most %d on one host",
			 oob->size, MUSTER_MESH_RANKS_MAX);
		return -EINVAL;
	}
	return 0;
}

static int gather_own(void *opaque, const void *in, void *out, size_t bytes)
{
	(void)opaque;
	memcpy(out, in, bytes);
	return 0;
}

/* For the mesh of who is alone in it. */
static const struct muster_oob nobody_else = { .size = 1, .allgather = gather_own };

int muster_local_open(const struct muster_oob *oob, const struct muster_local_config *config,
		      struct muster_dev **dev, char *why, size_t why_len)
{
	struct muster_mesh_config mesh = {
		.events = &muster_local_mesh_events,
		.deadline_us = config->deadline_us,
		.memory_fd = -1,
	};
	const struct muster_oob *met = config->alone ? &nobody_else : oob;
	bool rings = !strcmp(config->wire, "ring");
	struct local *local;
	int err;

	err = config_check(oob, config, why, why_len);	/* the same on every rank */
	if (err)
		return err;
	local = local_new(oob, strcmp(config->wire, "switch") ? 0 : config->first_host);
	if (local)
		local->rail = config->rail;
	mesh.error = local ? parts_open(local, config, &mesh.memory_fd, why, why_len) : -ENOMEM;
	if (!local) {
		snprintf(why, why_len, "no memory for a device of %u ranks", oob->size);
		return muster_mesh_open(met, &mesh, NULL, why, why_len);
	}
	local->deadline_us = config->deadline_us;
	local->alone = config->alone;
	if (!strcmp(config->wire, "switch")) {
		local->uplink = config->uplink;
		local->uplink_life = config->uplink_life;
		local->events.take = muster_local_uplink_take;
	}
	mesh.owner = local;
	err = muster_mesh_open(met, &mesh, &local->mesh, why, why_len);
	if (!err)
		err = rings ? rings_attach(local, mesh.memory_fd, why, why_len) :
			      socket_open(local, config, why, why_len);
	if (mesh.memory_fd >= 0)
		close(mesh.memory_fd);
	if (err) {
		local_free(local);
		return err;
	}
	local->dev.crowded = local->alone || muster_mesh_crowded(local->mesh);	/* guests have processors, too */
	local->dev.limits.forwards = !rings;	/* over rings nothing is sent that peers can read */
	local->dev.limits.pulse_bytes = rings ? RING_PULSE : 0;
	*dev = &local->dev;
	return 0;
}
