// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions in a list, the newest first. One without users is kept; of these there are few, and
 * they take no more than so many bytes, since a fork copies what is registered, and others of
 * the process want to lock memory, too. What members may write is never kept.
 */
#include "regions.h"

#include <errno.h>
#include <stdlib.h>

#include "dev.h"
#include "musterdv.h"

enum { KEPT_MAX = 32, KEPT_BYTES_MAX = 256 << 20 };

struct muster_verbs_region {
	struct muster_verbs_region *next;
	struct ibv_mr *mr;
	int access;			/* IBV_ACCESS_* */
	uint32_t users;
	const uint8_t *changed;		/* NULL: it is not watched */
};

static bool is_there(const struct muster_verbs_region *region)
{
	return region->changed && !musterdv_mr_changed(region->changed);
}

static void drop(struct muster_verbs_region **place)
{
	struct muster_verbs_region *region = *place;

	*place = region->next;
	ibv_dereg_mr(region->mr);
	free(region);
}

/* Of those without users keep at most max, and none whose pages may have gone. */
static void trim(struct muster_verbs_regions *regions, uint32_t max)
{
	struct muster_verbs_region **place = &regions->first;
	size_t bytes = KEPT_BYTES_MAX;

	while (*place) {
		struct muster_verbs_region *region = *place;

		if (!region->users) {
			if (!max || region->mr->length > bytes || !is_there(region)) {
				drop(place);
				continue;
			}
			bytes -= region->mr->length;
			max--;
		}
		place = &region->next;
	}
}

static struct muster_verbs_region *find(struct muster_verbs_regions *regions, const void *addr,
					size_t bytes, int access)
{
	struct muster_verbs_region **place = &regions->first, *region;

	for (; (region = *place); place = &region->next) {
		if (region->mr->addr != addr || region->mr->length != bytes ||
		    region->access != access || !is_there(region))
			continue;
		*place = region->next;
		region->next = regions->first;
		regions->first = region;
		return region;
	}
	return NULL;
}

static struct muster_verbs_region **find_key(struct muster_verbs_regions *regions, uint32_t key)
{
	struct muster_verbs_region **place = &regions->first;

	while (*place && (*place)->mr->lkey != key)
		place = &(*place)->next;
	return place;
}

/* Watched if that is possible. */
static int region_register(struct muster_verbs_region *region, struct ibv_pd *pd, void *addr,
			   size_t bytes)
{
	if (!(region->access & IBV_ACCESS_REMOTE_WRITE) &&
	    !musterdv_mr_register(pd, addr, bytes, region->access, &region->mr, &region->changed))
		return 0;
	region->changed = NULL;
	region->mr = ibv_reg_mr(pd, addr, bytes, region->access);
	return region->mr ? 0 : errno ? -errno : -EIO;
}

static int add(struct muster_verbs_regions *regions, void *addr, size_t bytes, int access,
	       struct muster_verbs_region **result)
{
	struct muster_verbs_region *region = calloc(1, sizeof(*region));
	int err;

	if (!region)
		return -ENOMEM;
	region->access = access;
	trim(regions, KEPT_MAX);
	err = region_register(region, regions->pd, addr, bytes);
	if (err) {	/* what is kept may be what is missing */
		trim(regions, 0);
		err = region_register(region, regions->pd, addr, bytes);
	}
	if (err) {
		free(region);
		return err;
	}
	region->next = regions->first;
	regions->first = region;
	*result = region;
	return 0;
}

int muster_verbs_register(struct muster_verbs_regions *regions, void *addr, size_t bytes, int access,
			  uint32_t *key)
{
	const int verbs_access = (access & MUSTER_ACCESS_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0) |
				 (access & MUSTER_ACCESS_REMOTE ? IBV_ACCESS_REMOTE_WRITE : 0);
	struct muster_verbs_region *region = find(regions, addr, bytes, verbs_access);
	int err = region ? 0 : add(regions, addr, bytes, verbs_access, &region);

	if (err)
		return err;
	region->users++;
	*key = region->mr->lkey;
	return 0;
}

void muster_verbs_release(struct muster_verbs_regions *regions, uint32_t key)
{
	struct muster_verbs_region *region = *find_key(regions, key);

	if (region && !--region->users)
		trim(regions, regions->keeps ? KEPT_MAX : 0);
}

void muster_verbs_deregister(struct muster_verbs_regions *regions, uint32_t key)
{
	struct muster_verbs_region **place = find_key(regions, key);

	if (*place)
		drop(place);
}

void muster_verbs_deregister_all(struct muster_verbs_regions *regions)
{
	while (regions->first)
		drop(&regions->first);
}
