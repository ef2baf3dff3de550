// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Instances: made from the table of collectives, or of a shape.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shape.h"

struct muster_instance *muster_instance_new(const struct muster_topology *topology,
					    uint32_t chunks, uint32_t steps, uint32_t rounds)
{
	struct muster_instance *instance = calloc(1, sizeof(*instance));

	if (!instance)
		return NULL;
	*instance = (struct muster_instance){
		.topology = topology, .chunks = chunks, .steps = steps, .rounds = rounds,
		.pre = calloc((size_t)chunks * topology->nodes, sizeof(bool)),
		.post = calloc((size_t)chunks * topology->nodes, sizeof(bool)),
	};
	if (!instance->pre || !instance->post) {
		muster_instance_free(instance);
		return NULL;
	}
	return instance;
}

void muster_instance_free(struct muster_instance *instance)
{
	if (!instance)
		return;
	free(instance->pre);
	free(instance->post);
	free(instance);
}

uint32_t muster_chunks_step(enum muster_coll coll, uint32_t nodes)
{
	uint64_t unit = muster_coll_chunks_unit(coll, nodes);

	/* Allgather and gather begin with the parts: C counts those of one node. */
	return unit > 1 && muster_coll_row(coll)->has == MUSTER_WHO_OWNER ? unit / nodes : unit;
}

uint32_t muster_global_chunks(enum muster_coll coll, uint32_t nodes, uint32_t chunks)
{
	return muster_coll_row(coll)->has == MUSTER_WHO_OWNER ? nodes * chunks : chunks;
}

static int refuse_size(uint32_t chunks, uint32_t steps, uint32_t rounds, char *why, size_t why_len)
{
	snprintf(why, why_len, "%" PRIu32 " chunks, %" PRIu32 " steps, %" PRIu32 " rounds: there "
		 "can be 1 to %d, %d and %d, and no fewer rounds than steps", chunks, steps, rounds,
		 MUSTER_INSTANCE_CHUNKS_MAX, MUSTER_INSTANCE_STEPS_MAX, MUSTER_INSTANCE_ROUNDS_MAX);
	return -EINVAL;
}

static int check_size(uint64_t chunks, uint32_t steps, uint32_t rounds, char *why, size_t why_len)
{
	bool fits = chunks && chunks <= MUSTER_INSTANCE_CHUNKS_MAX && steps &&
		    steps <= MUSTER_INSTANCE_STEPS_MAX && rounds >= steps &&
		    rounds <= MUSTER_INSTANCE_ROUNDS_MAX;

	return fits ? 0 : refuse_size(chunks, steps, rounds, why, why_len);
}

static int make(const struct muster_topology *topology, const struct muster_schedule *shape,
		uint32_t steps, uint32_t rounds, struct muster_instance **instance)
{
	struct muster_instance *made = muster_instance_new(topology, shape->chunks, steps, rounds);

	if (!made)
		return -ENOMEM;
	for (uint32_t chunk = 0; chunk < shape->chunks; chunk++)
		for (uint32_t node = 0; node < topology->nodes; node++) {
			size_t at = (size_t)chunk * topology->nodes + node;

			made->pre[at] = muster_coll_has(shape, chunk, node);
			made->post[at] = muster_coll_needs(shape, chunk, node);
		}
	*instance = made;
	return 0;
}

int muster_instance_make(const struct muster_topology *topology, enum muster_coll coll,
			 uint32_t root, uint32_t chunks, uint32_t steps, uint32_t rounds,
			 struct muster_instance **instance, char *why, size_t why_len)
{
	struct muster_schedule shape = {
		.coll = coll, .ranks = topology->nodes, .root = root,
		.chunks = muster_global_chunks(coll, topology->nodes, chunks),
	};
	int err = check_size(chunks, steps, rounds, why, why_len);

	if (!err)
		err = check_size(shape.chunks, steps, rounds, why, why_len);
	if (!err && chunks % muster_chunks_step(coll, topology->nodes)) {
		snprintf(why, why_len, "%" PRIu32 " chunks, but in %s of %" PRIu32 " nodes it is a "
			 "multiple of %" PRIu32, chunks, muster_coll_name(coll), topology->nodes,
			 muster_chunks_step(coll, topology->nodes));
		err = -EINVAL;
	}
	if (!err && root >= topology->nodes) {
		snprintf(why, why_len, "root %" PRIu32 ", but there are %" PRIu32 " nodes", root,
			 topology->nodes);
		err = -EINVAL;
	}
	if (err)
		return err;
	return make(topology, &shape, steps, rounds, instance);
}

int muster_instance_of_shape(const struct muster_topology *topology,
			     const struct muster_schedule *shape, uint32_t steps, uint32_t rounds,
			     struct muster_instance **instance, char *why, size_t why_len)
{
	int err = check_size(shape->chunks, steps, rounds, why, why_len);

	if (!err)
		err = make(topology, shape, steps, rounds, instance);
	if (!err && muster_shape_combines(shape))
		(*instance)->shape = shape;
	return err;
}
