// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the NIC puts small results, and takes operands of what it keeps: a block for
 * each communicator that is warm (warm.c) and has had one.
 * Blocks come from chunks that are registered once, so that thousands of communicators
 * need few registrations and no mappings. Of chunks that nobody uses one is kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
	BLOCK_BYTES = (1 + MUSTER_LOCK_SLOT + 1) * MUSTER_INLINE_MAX, /* its head, and what it is for */
	BLOCKS = 16,		/* of a chunk, which is whole pages */
	PAGE = 4096,
	CHUNK_BYTES = (BLOCKS * BLOCK_BYTES + PAGE - 1) / PAGE * PAGE,
};

/* The head of a block, before its results. */
struct block {
	struct muster_bounce_chunk *chunk;
	struct block *next;	/* free, too */
};

_Static_assert(sizeof(struct block) <= MUSTER_INLINE_MAX, "results are aligned");

struct muster_bounce_chunk {
	struct muster_bounce_chunk *next, *prev;	/* of the job, those with free blocks first */
	struct block *free;
	uint32_t nr_used;
	void *memory;
	uint32_t key;
};

static void link_first(struct muster *job, struct muster_bounce_chunk *chunk)
{
	chunk->prev = NULL;
	chunk->next = job->bounce_chunks;
	if (chunk->next)
		chunk->next->prev = chunk;
	job->bounce_chunks = chunk;
}

static void take_out(struct muster *job, struct muster_bounce_chunk *chunk)
{
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		job->bounce_chunks = chunk->next;
	if (chunk->next)
		chunk->next->prev = chunk->prev;
}

/* All its blocks are free. */
static void blocks_init(struct muster_bounce_chunk *chunk)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct block *block = (void *)((char *)chunk->memory + i * BLOCK_BYTES);

		*block = (struct block){ chunk, chunk->free };
		chunk->free = block;
	}
}

static int chunk_add(struct muster *job)
{
	struct muster_bounce_chunk *chunk = calloc(1, sizeof(*chunk));
	int err = -ENOMEM;

	if (!chunk)
		return err;
	chunk->memory = aligned_alloc(PAGE, CHUNK_BYTES);
	if (!chunk->memory)
		goto err_free;
	memset(chunk->memory, 0, CHUNK_BYTES);
	err = job->dev->ops->mem_register(job->dev, chunk->memory, CHUNK_BYTES,
					  MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, &chunk->key);
	if (err)
		goto err_free_memory;
	blocks_init(chunk);
	link_first(job, chunk);
	return 0;

err_free_memory:
	free(chunk->memory);
err_free:
	free(chunk);
	return err;
}

static void chunk_free(struct muster *job, struct muster_bounce_chunk *chunk)
{
	take_out(job, chunk);
	job->dev->ops->mem_deregister(job->dev, chunk->key);
	free(chunk->memory);
	free(chunk);
}

/* The last: behind those with free blocks. */
static void full(struct muster *job, struct muster_bounce_chunk *chunk)
{
	struct muster_bounce_chunk *last = chunk;

	if (!chunk->next || !chunk->next->free)
		return;		/* those behind it are full, too */
	take_out(job, chunk);
	while (last->next)
		last = last->next;
	last->next = chunk;
	chunk->prev = last;
	chunk->next = NULL;
}

int muster_bounce_take(struct muster *job, uint8_t **bounce, uint32_t *key)
{
	struct muster_bounce_chunk *chunk = job->bounce_chunks;
	struct block *block;
	int err = chunk && chunk->free ? 0 : chunk_add(job);

	if (err)
		return muster_fail(job, err, "no memory for small results: %s", strerror(-err));
	chunk = job->bounce_chunks;
	block = chunk->free;
	chunk->free = block->next;
	chunk->nr_used++;
	if (!chunk->free)
		full(job, chunk);
	*key = chunk->key;
	*bounce = (uint8_t *)block + MUSTER_INLINE_MAX;
	return 0;
}

/* Whose chunk it is comes to the front, unless nobody needs that any more. */
void muster_bounce_give(struct muster *job, uint8_t *bounce)
{
	struct muster_bounce_chunk *chunk;
	struct block *block;

	if (!bounce)
		return;
	block = (struct block *)(bounce - MUSTER_INLINE_MAX);
	chunk = block->chunk;
	block->next = chunk->free;
	chunk->free = block;
	take_out(job, chunk);
	link_first(job, chunk);
	if (!--chunk->nr_used && chunk->next && chunk->next->free)
		chunk_free(job, chunk);
}

void muster_bounces_free(struct muster *job)
{
	while (job->bounce_chunks)
		chunk_free(job, job->bounce_chunks);
}
