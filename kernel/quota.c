// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What keeps one user from taking everything. Rings count for RLIMIT_MEMLOCK, as
 * registered memory does. What the device has few of is counted by user: the last
 * eighth of it is only for users that hold less than an eighth, and for those who
 * may exceed limits. A port's number, which can outlive its queue pair, counts for
 * the rdma cgroup as an object of its own.
 */
#include "muster.h"
#include "trace.h"

#include <linux/cred.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

/* ---- pinned memory --------------------------------------------------------------- */

int muster_pin_charge(struct muster_dev *dev, struct muster_pin *pin, size_t bytes)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = bytes >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	u64 pinned = atomic64_add_return(pages, &mm->pinned_vm);

	if (pages && pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		trace_muster_refused(dev, "memlock_pages", pinned - pages, limit, -ENOMEM);
		return -ENOMEM;
	}
	mmgrab(mm);
	pin->mm = mm;
	pin->pages = pages;
	return 0;
}

void muster_pin_uncharge(struct muster_pin *pin)
{
	atomic64_sub(pin->pages, &pin->mm->pinned_vm);
	mmdrop(pin->mm);
}

/* ---- what there are few of --------------------------------------------------------- */

void muster_share_init(struct muster_share *share, const char *what, u32 max)
{
	share->what = what;
	mutex_init(&share->lock);
	xa_init(&share->users);
	share->max = max;
}

/* When nobody has anything of it: what is not given back is our leak. */
void muster_share_destroy(struct muster_share *share)
{
	WARN_ON(share->used);
	xa_destroy(&share->users);
	mutex_destroy(&share->lock);
}

static unsigned long held_by(struct muster_share *share, kuid_t user)
{
	void *held = xa_load(&share->users, __kuid_val(user));

	return held ? xa_to_value(held) : 0;
}

/* Whether one more may be had by who holds so many; privileged: who may exceed limits. */
static bool share_allows(u32 max, u32 used, unsigned long held, bool privileged)
{
	u32 reserve = max / 8;

	return used < max && (used < max - reserve || held < reserve || privileged);
}

/* Return: 0, and who took it; -ENOSPC; -ENOMEM. */
int muster_share_take(struct muster_dev *dev, struct muster_share *share, kuid_t *user)
{
	unsigned long held;
	int err = -ENOSPC;

	*user = current_uid();
	mutex_lock(&share->lock);
	held = held_by(share, *user);
	if (share_allows(share->max, share->used, held, false) ||
	    (share_allows(share->max, share->used, held, true) && capable(CAP_SYS_RESOURCE)))
		err = xa_err(xa_store(&share->users, __kuid_val(*user), xa_mk_value(held + 1),
				      GFP_KERNEL));
	if (!err)
		share->used++;
	mutex_unlock(&share->lock);
	if (err)
		trace_muster_refused(dev, share->what, held, share->max, err);
	return err;
}

void muster_share_give(struct muster_share *share, kuid_t user)
{
	unsigned long held;

	mutex_lock(&share->lock);
	held = held_by(share, user);
	if (held > 1)
		xa_store(&share->users, __kuid_val(user), xa_mk_value(held - 1), GFP_KERNEL);
	else
		xa_erase(&share->users, __kuid_val(user));
	share->used--;
	mutex_unlock(&share->lock);
}

/* ---- numbers of virtual ports -------------------------------------------------------- */

#ifdef CONFIG_CGROUP_RDMA
static int group_charge(struct muster_dev *dev, struct muster_number *number)
{
	return rdmacg_try_charge(&number->group, &dev->ibdev.cg_device,
				 RDMACG_RESOURCE_HCA_OBJECT);
}

static void group_uncharge(struct muster_dev *dev, struct muster_number *number)
{
	rdmacg_uncharge(number->group, &dev->ibdev.cg_device, RDMACG_RESOURCE_HCA_OBJECT);
}
#else
static int group_charge(struct muster_dev *dev, struct muster_number *number)
{
	return 0;
}

static void group_uncharge(struct muster_dev *dev, struct muster_number *number)
{
}
#endif

/* Return: 0; -EAGAIN: the cgroup's limit; as muster_share_take(); -ENOSPC: all are taken. */
int muster_number_take(struct muster_dev *dev, struct muster_number *number)
{
	int err;

	err = group_charge(dev, number);
	if (err) {
		trace_muster_refused(dev, "hca_object", 0, 0, err);
		return err;
	}
	err = muster_share_take(dev, &dev->vps_share, &number->user);
	if (err)
		goto err_group;
	err = xa_alloc_cyclic_irq(&dev->vps, &number->vp, NULL, XA_LIMIT(0, MUSTER_VPS_MAX - 1),
				  &dev->next_vp, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_share;
	}
	return 0;

err_share:
	muster_share_give(&dev->vps_share, number->user);
err_group:
	group_uncharge(dev, number);
	return err;
}

void muster_number_give(struct muster_dev *dev, struct muster_number *number)
{
	xa_erase_irq(&dev->vps, number->vp);
	muster_share_give(&dev->vps_share, number->user);
	group_uncharge(dev, number);
}

#if IS_BUILTIN(CONFIG_KUNIT)
#include "quota_test.c"
#endif
