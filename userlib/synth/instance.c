// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Instances: made from the table of collectives, or read from a file that says
 * chunk by chunk where it is and where it must get to.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "instance.h"
#include "words.h"

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

int muster_instance_make(const struct muster_topology *topology, enum muster_coll coll,
			 uint32_t root, uint32_t chunks, uint32_t steps, uint32_t rounds,
			 struct muster_instance **instance, char *why, size_t why_len)
{
	struct muster_schedule shape = {
		.coll = coll, .ranks = topology->nodes, .root = root,
		.chunks = muster_global_chunks(coll, topology->nodes, chunks),
	};
	struct muster_instance *made;
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
	made = muster_instance_new(topology, shape.chunks, steps, rounds);
	if (!made)
		return -ENOMEM;
	for (uint32_t chunk = 0; chunk < shape.chunks; chunk++)
		for (uint32_t node = 0; node < topology->nodes; node++) {
			size_t at = (size_t)chunk * topology->nodes + node;

			made->pre[at] = muster_coll_has(&shape, chunk, node);
			made->post[at] = muster_coll_needs(&shape, chunk, node);
		}
	*instance = made;
	return 0;
}

/* chunk C at A B ... to D E ... */
static int read_chunk(struct muster_words *words, struct muster_instance *instance,
		      uint32_t expected)
{
	uint32_t nodes = instance->topology->nodes, chunk, node;
	bool *set = NULL;
	int err;

	if (words->nr < 6 || strcmp(words->word[0], "chunk") || strcmp(words->word[2], "at"))
		return muster_words_refuse(words, "\"chunk %" PRIu32 " at NODE ... to NODE ...\" "
					   "or \"end\" expected", expected);
	err = muster_words_number(words, "chunk", words->word[1], expected, expected, &chunk);
	for (uint32_t i = 2; i < words->nr && !err; i++) {
		if (!strcmp(words->word[i], "at")) {
			set = instance->pre;
		} else if (!strcmp(words->word[i], "to")) {
			set = instance->post;
		} else {
			err = muster_words_number(words, "node", words->word[i], 0, nodes - 1,
						  &node);
			if (!err)
				set[(size_t)chunk * nodes + node] = true;
		}
	}
	if (!err && set != instance->post)
		err = muster_words_refuse(words, "\"to\" and the nodes that need it are missing");
	return err;
}

int muster_instance_read(FILE *in, const struct muster_topology *topology, uint32_t steps,
			 uint32_t rounds, struct muster_instance **instance, char *why,
			 size_t why_len)
{
	struct muster_words *words = calloc(1, sizeof(*words));
	struct muster_instance *made = NULL;
	uint32_t chunks, next = 0;
	const char *word;
	int err;

	if (!words)
		return -ENOMEM;
	*words = (struct muster_words){ .in = in, .why = why, .why_len = why_len };
	err = muster_words_head(words, "muster-conditions", &word);
	if (!err && strcmp(word, "1"))
		err = muster_words_refuse(words, "version %.20s of the form, but this reads "
					  "version 1", word);
	if (!err)
		err = muster_words_head(words, "chunks", &word);
	if (!err)
		err = muster_words_number(words, "chunks", word, 1, MUSTER_INSTANCE_CHUNKS_MAX,
					  &chunks);
	if (!err)
		err = check_size(chunks, steps, rounds, why, why_len);
	if (!err) {
		made = muster_instance_new(topology, chunks, steps, rounds);
		err = made ? 0 : -ENOMEM;
	}
	while (!err && next < chunks) {
		err = muster_words_next(words);
		if (!err)
			err = read_chunk(words, made, next++);
	}
	if (!err)
		err = muster_words_next(words);
	if (!err && (words->nr != 1 || strcmp(words->word[0], "end")))
		err = muster_words_refuse(words, "\"end\" expected after %" PRIu32 " chunks",
					  chunks);
	if (err)
		muster_instance_free(made);
	else
		*instance = made;
	free(words);
	return err;
}
