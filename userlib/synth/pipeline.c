// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shares of chunks: of those of the same places, the first ones are the first
 * share's, and so on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"

static bool same_places(const struct muster_instance *instance, uint32_t a, uint32_t b)
{
	const bool *pre = instance->pre, *post = instance->post;
	size_t nodes = instance->topology->nodes;

	return !memcmp(pre + a * nodes, pre + b * nodes, nodes) &&
	       !memcmp(post + a * nodes, post + b * nodes, nodes);
}

/* by_share: for each share, its chunks, in the same order of places. */
static int sort_by_share(const struct muster_instance *instance, uint32_t shares,
			 uint32_t **by_share)
{
	uint32_t chunks = instance->chunks, each = chunks / shares, at = 0;
	uint32_t *sorted = calloc(chunks, sizeof(*sorted));
	uint32_t *alike = calloc(chunks, sizeof(*alike));
	bool *done = calloc(chunks, sizeof(*done));
	int err = sorted && alike && done ? 0 : -ENOMEM;

	for (uint32_t chunk = 0; chunk < chunks && !err; chunk++) {
		uint32_t nr = 0;

		if (done[chunk])
			continue;
		for (uint32_t other = chunk; other < chunks; other++)
			if (same_places(instance, chunk, other)) {
				alike[nr++] = other;
				done[other] = true;
			}
		if (nr % shares)
			err = -EINVAL;
		for (uint32_t i = 0; i < nr && !err; i++)
			sorted[i / (nr / shares) * each + at + i % (nr / shares)] = alike[i];
		at += nr / shares;
	}
	free(done);
	free(alike);
	if (err)
		free(sorted);
	else
		*by_share = sorted;
	return err;
}

int muster_pipeline_share(const struct muster_instance *instance, uint32_t shares,
			  struct muster_instance **share)
{
	uint32_t nodes = instance->topology->nodes, steps = instance->steps - shares + 1, *by_share;
	struct muster_instance *made;
	int err = instance->chunks % shares ? -EINVAL : 0;

	if (!err)
		err = sort_by_share(instance, shares, &by_share);
	if (err)
		return err;
	made = muster_instance_new(instance->topology, instance->chunks / shares, steps, steps);
	for (uint32_t i = 0; made && i < made->chunks; i++) {
		memcpy(made->pre + (size_t)i * nodes, instance->pre + (size_t)by_share[i] * nodes,
		       nodes);
		memcpy(made->post + (size_t)i * nodes, instance->post + (size_t)by_share[i] * nodes,
		       nodes);
	}
	free(by_share);
	*share = made;
	return made ? 0 : -ENOMEM;
}

static int by_step(const void *left, const void *right)
{
	const struct muster_send *a = left, *b = right;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->chunk < b->chunk ? -1 : a->chunk > b->chunk;
}

int muster_pipeline_expand(const struct muster_instance *instance, uint32_t shares,
			   const struct muster_solution *of_share,
			   struct muster_solution **solution)
{
	uint32_t each = instance->chunks / shares, nr = of_share->nr_sends, *by_share;
	struct muster_solution *made;
	int err = sort_by_share(instance, shares, &by_share);

	if (err)
		return err;
	made = calloc(1, sizeof(*made));
	if (made)
		made->sends = calloc((size_t)nr * shares + 1, sizeof(*made->sends));
	if (!made || !made->sends) {
		free(by_share);
		free(made);
		return -ENOMEM;
	}
	made->steps = instance->steps;
	for (uint32_t share = 0; share < shares; share++)
		for (uint32_t i = 0; i < nr; i++)
			made->sends[made->nr_sends++] = (struct muster_send){
				of_share->sends[i].step + share,
				by_share[share * each + of_share->sends[i].chunk],
				of_share->sends[i].link, false
			};
	qsort(made->sends, made->nr_sends, sizeof(*made->sends), by_step);
	free(by_share);
	*solution = made;
	return 0;
}
