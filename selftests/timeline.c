// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "timeline.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct timed *a, const struct timed *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void timeline_push(struct timeline *line, struct timed *timed)
{
	uint32_t i = line->nr++;

	if (line->nr > line->max) {
		line->max = line->max ? 2 * line->max : 4096;
		line->heap = realloc(line->heap, line->max * sizeof(*line->heap));
		if (!line->heap)
			err(1, NULL);
	}
	timed->order = line->order++;
	for (; i && before(timed, line->heap[(i - 1) / 2]); i = (i - 1) / 2)
		line->heap[i] = line->heap[(i - 1) / 2];
	line->heap[i] = timed;
}

struct timed *timeline_pop(struct timeline *line)
{
	struct timed *first, *last;
	uint32_t i = 0, child;

	if (!line->nr)
		return NULL;
	first = line->heap[0];
	last = line->heap[--line->nr];
	while ((child = 2 * i + 1) < line->nr) {
		child += child + 1 < line->nr && before(line->heap[child + 1], line->heap[child]);
		if (!before(line->heap[child], last))
			break;
		line->heap[i] = line->heap[child];
		i = child;
	}
	line->heap[i] = last;
	return first;
}

void timeline_free(struct timeline *line)
{
	while (line->nr)
		free(line->heap[--line->nr]);
	free(line->heap);
}
