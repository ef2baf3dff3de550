// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: a process's own pages, pinned, and told to the device as a
 * list. The device copies the list; it is freed again at once.
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>
#include <rdma/uverbs_ioctl.h>

/* What the device has to know of a region's pages. */
struct page_list {
	__le64 *pages;
	dma_addr_t dma;
	size_t nr;
	unsigned long page_size;
};

static int page_list_create(struct muster_dev *dev, struct ib_umem *umem, u64 iova,
			    struct page_list *list)
{
	struct ib_block_iter block;
	size_t i = 0;

	list->page_size = ib_umem_find_best_pgsz(umem, GENMASK(30, PAGE_SHIFT), iova);
	if (!list->page_size)
		return -EINVAL;
	list->nr = ib_umem_num_dma_blocks(umem, list->page_size);
	if (list->nr > MUSTER_RING_BYTES_MAX / sizeof(*list->pages))
		return -E2BIG;
	list->pages = dma_alloc_coherent(&dev->fn->pdev->dev, list->nr * sizeof(*list->pages),
					 &list->dma, GFP_KERNEL | __GFP_NOWARN);
	if (!list->pages)
		return -ENOMEM;
	rdma_umem_for_each_dma_block(umem, &block, list->page_size) {
		if (i == list->nr)
			break;
		list->pages[i++] = cpu_to_le64(rdma_block_iter_dma_address(&block));
	}
	return 0;
}

static void page_list_free(struct muster_dev *dev, struct page_list *list)
{
	dma_free_coherent(&dev->fn->pdev->dev, list->nr * sizeof(*list->pages), list->pages,
			  list->dma);
}

static u8 device_access(int access)
{
	return MUSTER_MR_READ | (access & IB_ACCESS_LOCAL_WRITE ? MUSTER_MR_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? MUSTER_MR_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? MUSTER_MR_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? MUSTER_MR_REMOTE_ATOMIC : 0);
}

static int admin_register(struct muster_dev *dev, struct muster_mr *mr, u32 key,
			  int access)
{
	struct muster_admin_command cmd = { .opcode = MUSTER_ADMIN_MR_REGISTER };
	struct page_list list;
	int err;

	err = page_list_create(dev, mr->umem, mr->ibmr.iova, &list);
	if (err)
		return err;
	mr->page_size = list.page_size;
	mr->nr_pages = list.nr;
	cmd.mr.iova = cpu_to_le64(mr->ibmr.iova);
	cmd.mr.length = cpu_to_le64(mr->umem->length);
	cmd.mr.pages = cpu_to_le64(list.dma);
	cmd.mr.nr_pages = cpu_to_le32(list.nr);
	cmd.mr.first_offset = cpu_to_le32(mr->ibmr.iova & (list.page_size - 1));
	cmd.mr.id = cpu_to_le32(key);
	cmd.mr.pd = cpu_to_le32(to_mpd(mr->ibmr.pd)->id);
	cmd.mr.page_shift = ilog2(list.page_size);
	cmd.mr.access = device_access(access);
	err = muster_admin_run(dev, &cmd);
	page_list_free(dev, &list);
	return err;
}

/* Pins for writing only what is mapped for writing: else -EFAULT. */
struct ib_mr *muster_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				 int access, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibpd->device);
	struct muster_mr *mr;
	u32 key;
	int err;

	if (!muster_udata_unused(udata) || !length)
		return ERR_PTR(-EINVAL);
	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
		       IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = ib_umem_get(&dev->ibdev, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto err_free;
	}
	err = xa_alloc_cyclic(&dev->mrs, &key, mr, XA_LIMIT(1, MUSTER_MRS_MAX), &dev->next_mr,
			      GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_unpin;
	}
	mr->ibmr.pd = ibpd;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	err = admin_register(dev, mr, key, access);
	if (err)
		goto err_key;
	return &mr->ibmr;

err_key:
	xa_erase(&dev->mrs, key);
err_unpin:
	ib_umem_release(mr->umem);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

/*
 * The core takes the newest objects of a closed file away first, so memory before
 * contexts. Their operations would fail for want of a buffer, as if by a fault of
 * the process; so it is said first what has happened. A file is closed at its
 * process's death, at exec, or by whoever held it, or that process's memory, last:
 * in each case not in the memory that was registered.
 */
int muster_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct muster_dev *dev = to_mdev(ibmr->device);
	struct muster_mr *mr = to_mmr(ibmr);

	if (current->mm != mr->umem->owning_mm)
		muster_contexts_orphan(to_mucontext(ibmr->uobject->context));
	muster_admin_destroy(dev, MUSTER_ADMIN_MR_DEREGISTER, ibmr->lkey);
	xa_erase(&dev->mrs, ibmr->lkey);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
