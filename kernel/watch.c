// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whether the pages behind registered memory are still those that were registered: a process
 * may unmap it, and map something else there, while the device goes on with the pages that are
 * pinned. Who keeps memory registered to use it again has to know, without a system call: each
 * region that is watched has a byte in a page of its file's, which is mapped read-only.
 *
 * The process's mm tells of a change before it happens, wherever that may be, so nothing here
 * sleeps or takes a lock then. It may tell of more: pages that move and come back.
 */
#include "muster.h"

#include <linux/mmu_notifier.h>
#include <rdma/uverbs_ioctl.h>

struct muster_watch {
	struct mmu_interval_notifier notifier;
	struct muster_ucontext *ucontext;
	u32 place;
	u8 *changed;
};

enum { PLACES = MUSTER_CHANGES_BYTES };

static const struct muster_ring_layout no_layout;

/* A fork only takes away who may write, as does writing back; what is pinned stays where it is. */
static bool keeps_pages(enum mmu_notifier_event event)
{
	return event == MMU_NOTIFY_PROTECTION_PAGE || event == MMU_NOTIFY_SOFT_DIRTY;
}

static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range, unsigned long seq)
{
	struct muster_watch *watch = container_of(notifier, struct muster_watch, notifier);

	mmu_interval_set_seq(notifier, seq);
	if (!keeps_pages(range->event))
		WRITE_ONCE(*watch->changed, 1);
	return true;
}

static const struct mmu_interval_notifier_ops watch_ops = { .invalidate = invalidate };

/* The page of a file's first region that is watched is that of all; it goes with the file. */
static int page_create(struct muster_ucontext *ucontext)
{
	struct muster_mapping *page;

	mutex_lock(&ucontext->lock);
	page = ucontext->changes;
	if (!page)
		page = muster_mapping_create(&ucontext->ibucontext, MUSTER_MAP_FROM_DEVICE,
					     MUSTER_CHANGES_BYTES, no_layout);
	if (!IS_ERR(page))
		ucontext->changes = page;
	mutex_unlock(&ucontext->lock);
	return PTR_ERR_OR_ZERO(page);
}

static int place_take(struct muster_watch *watch)
{
	struct muster_ucontext *ucontext = watch->ucontext;
	int place = ida_alloc_max(&ucontext->watches, PLACES - 1, GFP_KERNEL);

	if (place < 0)
		return place;
	watch->place = place;
	watch->changed = (u8 *)ucontext->changes->cpu + place;
	WRITE_ONCE(*watch->changed, 0);
	return 0;
}

static int watch_begin(struct muster_watch *watch, u64 start, u64 length, struct ib_udata *udata)
{
	struct muster_reg_mr_resp resp = { };
	int err;

	err = page_create(watch->ucontext);
	if (err)
		return err;
	err = place_take(watch);
	if (err)
		return err;
	resp.changes = muster_mapping_offset(watch->ucontext->changes) / MUSTER_CHANGES_BYTES;
	resp.place = watch->place;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (!err)
		err = mmu_interval_notifier_insert(&watch->notifier, current->mm, start, length,
						   &watch_ops);
	if (err) {
		ida_free(&watch->ucontext->watches, watch->place);
		return err;
	}
	mmu_interval_read_begin(&watch->notifier);	/* those that began before are not told: they end */
	return 0;
}

/* Of the calling process's memory, before it is pinned, so that no change is missed. */
int muster_watch_create(u64 start, u64 length, struct ib_udata *udata,
			struct muster_watch **result)
{
	struct muster_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);
	int err;

	if (!watch)
		return -ENOMEM;
	watch->ucontext = rdma_udata_to_drv_context(udata, struct muster_ucontext, ibucontext);
	err = watch_begin(watch, start, length, udata);
	if (err)
		kfree(watch);
	else
		*result = watch;
	return err;
}

/* Waits for changes that are under way; the mm that it was told of may be gone. */
void muster_watch_destroy(struct muster_watch *watch)
{
	if (!watch)
		return;
	mmu_interval_notifier_remove(&watch->notifier);
	ida_free(&watch->ucontext->watches, watch->place);
	kfree(watch);
}
