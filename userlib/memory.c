// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that the device may touch: regions of muster_alloc(), kept by address,
 * and the caller's own buffers, which are registered for the length of one
 * operation. A device may keep them after that, if it sees when the caller gives
 * memory back and gets something else at the same place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "turn.h"

/* The index of the first region that lies behind addr. */
static size_t region_after(const struct muster *job, const void *addr)
{
	size_t low = 0, high = job->nr_regions;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)job->regions[middle].addr > (uintptr_t)addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct muster_region *region_find(struct muster *job, const void *addr, uint64_t bytes)
{
	size_t after = region_after(job, addr);
	struct muster_region *region;
	size_t offset;

	if (!after)
		return NULL;
	region = &job->regions[after - 1];
	offset = (uintptr_t)addr - (uintptr_t)region->addr;
	if (offset >= region->bytes || bytes > region->bytes - offset)
		return NULL;
	return region;
}

static int regions_grow(struct muster *job)
{
	size_t max = job->max_regions ? 2 * job->max_regions : 16;
	struct muster_region *regions;

	if (job->nr_regions < job->max_regions)
		return 0;
	regions = realloc(job->regions, max * sizeof(*regions));
	if (!regions)
		return -ENOMEM;
	job->regions = regions;
	job->max_regions = max;
	return 0;
}

int muster_alloc(struct muster *job, size_t bytes, void **addr)
{
	MUSTER_TURN(job);
	struct muster_region region = { .bytes = bytes };
	void *start;
	size_t at;
	int err;

	if (!addr)
		return muster_fail(job, -EINVAL, "muster_alloc: addr is NULL");
	if (!bytes)
		return muster_fail(job, -EINVAL, "muster_alloc: 0 bytes asked for");
	err = regions_grow(job);
	if (!err)
		err = job->dev->ops->mem_alloc(job->dev, bytes, &start, &region.key);
	if (err)
		return muster_fail(job, err, "muster_alloc: no %zu bytes of device memory: %s",
				   bytes, strerror(-err));
	region.addr = start;
	at = region_after(job, start);
	memmove(&job->regions[at + 1], &job->regions[at],
		(job->nr_regions - at) * sizeof(region));
	job->regions[at] = region;
	job->nr_regions++;
	*addr = start;
	return 0;
}

void muster_free(struct muster *job, void *addr)
{
	MUSTER_TURN(job);
	struct muster_region *region = addr ? region_find(job, addr, 1) : NULL;
	size_t behind;

	if (!region || region->addr != addr) {
		if (addr)
			muster_fail(job, -EINVAL, "muster_free: %p is not from muster_alloc()", addr);
		return;
	}
	job->dev->ops->mem_free(job->dev, region->addr, region->bytes, region->key);
	behind = job->nr_regions - (size_t)(region - job->regions) - 1;
	memmove(region, region + 1, behind * sizeof(*region));
	job->nr_regions--;
}

int muster_pin(struct muster *job, const void *addr, uint64_t bytes, int access,
	       struct muster_pin *pin)
{
	struct muster_region *region =
		access & MUSTER_ACCESS_APART ? NULL : region_find(job, addr, bytes);
	int err;

	*pin = (struct muster_pin){ 0 };
	if (region) {
		pin->key = region->key;
		return 0;
	}
	/* The device writes only where access says so. */
	err = job->dev->ops->mem_register(job->dev, (void *)(uintptr_t)addr, bytes, access,
					  &pin->key);
	if (err)
		return muster_fail(job, err, "the %llu bytes at %p cannot be %s by the device: %s",
				   (unsigned long long)bytes, addr,
				   access & MUSTER_ACCESS_WRITE ? "written" : "read",
				   strerror(-err));
	pin->owned = true;
	return 0;
}

void muster_unpin(struct muster *job, struct muster_pin *pin)
{
	if (pin->owned)
		job->dev->ops->mem_deregister(job->dev, pin->key);
	*pin = (struct muster_pin){ 0 };
}
