// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the NIC puts small results, and takes operands of what it keeps: a block for
 * each communicator that has had one.
 * Blocks come from chunks that are registered once and kept until the job ends, so
 * that thousands of communicators need few registrations and no mappings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum {
	BLOCK_BYTES = (MUSTER_LOCK_SLOT + 1) * MUSTER_INLINE_MAX,
	BLOCKS = 16,		/* of a chunk, which is whole pages */
	PAGE = 4096,
	CHUNK_BYTES = (BLOCKS * BLOCK_BYTES + PAGE - 1) / PAGE * PAGE,
};

/* A block that nobody has. */
struct block {
	struct block *next;
	uint32_t key;
};

struct muster_bounce_chunk {
	struct muster_bounce_chunk *next;
	void *memory;
	uint32_t key;
};

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
	chunk->next = job->bounce_chunks;
	job->bounce_chunks = chunk;
	for (int i = 0; i < BLOCKS; i++) {
		struct block *block = (void *)((char *)chunk->memory + i * BLOCK_BYTES);

		*block = (struct block){ job->bounce_free, chunk->key };
		job->bounce_free = block;
	}
	return 0;

err_free_memory:
	free(chunk->memory);
err_free:
	free(chunk);
	return err;
}

int muster_bounce_take(struct muster *job, uint8_t **bounce, uint32_t *key)
{
	struct block *block;
	int err = job->bounce_free ? 0 : chunk_add(job);

	if (err)
		return muster_fail(job, err, "no memory for small results: %s", strerror(-err));
	block = job->bounce_free;
	job->bounce_free = block->next;
	*key = block->key;
	*bounce = (uint8_t *)block;
	return 0;
}

/* Its key is written where the results were. */
void muster_bounce_give(struct muster *job, uint8_t *bounce, uint32_t key)
{
	struct block *block = (struct block *)bounce;

	if (!block)
		return;
	*block = (struct block){ job->bounce_free, key };
	job->bounce_free = block;
}

void muster_bounces_free(struct muster *job)
{
	while (job->bounce_chunks) {
		struct muster_bounce_chunk *chunk = job->bounce_chunks;

		job->bounce_chunks = chunk->next;
		job->dev->ops->mem_deregister(job->dev, chunk->key);
		free(chunk->memory);
		free(chunk);
	}
}
