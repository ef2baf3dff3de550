// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is in a communicator: ranks of the job, in its order. Communicators with the same ranks
 * share one table, as most do that are made of one another. A table is not changed.
 */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "internal.h"

struct muster_members {
	struct muster_members *next;	/* of its bucket */
	uint64_t digest;
	uint32_t refs;
	uint32_t nr;
	uint32_t ranks[];
};

static struct muster_members *table_of(const uint32_t *ranks)
{
	return (struct muster_members *)((char *)ranks - offsetof(struct muster_members, ranks));
}

static struct muster_members **bucket(struct muster *job, uint64_t digest)
{
	return &job->members[digest % MUSTER_MEMBER_BUCKETS];
}

static struct muster_members *find(struct muster *job, uint64_t digest, uint32_t nr,
				   const uint32_t *ranks)
{
	struct muster_members *table = *bucket(job, digest);

	while (table && (table->digest != digest || table->nr != nr ||
			 memcmp(table->ranks, ranks, nr * sizeof(*ranks))))
		table = table->next;
	return table;
}

const uint32_t *muster_members_get(struct muster *job, uint32_t nr, const uint32_t *ranks)
{
	uint64_t digest = XXH64(ranks, nr * sizeof(*ranks), 0);
	struct muster_members *table = find(job, digest, nr, ranks);

	if (!table) {
		table = malloc(sizeof(*table) + nr * sizeof(*ranks));
		if (!table)
			return NULL;
		*table = (struct muster_members){ *bucket(job, digest), digest, 0, nr };
		memcpy(table->ranks, ranks, nr * sizeof(*ranks));
		*bucket(job, digest) = table;
	}
	table->refs++;
	return table->ranks;
}

void muster_members_put(struct muster *job, const uint32_t *ranks)
{
	struct muster_members *table, **link;

	if (!ranks)
		return;
	table = table_of(ranks);
	if (--table->refs)
		return;
	link = bucket(job, table->digest);
	while (*link != table)
		link = &(*link)->next;
	*link = table->next;
	free(table);
}
