// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: a process's own pages, or those of a dma-buf, pinned, and told to the
 * device as a list. The device copies the list; it is freed again at once. A process may ask to
 * be told when something else comes to lie where its pages were (watch.c).
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>
#include <rdma/uverbs_ioctl.h>

/* Where it lies is kept here: what the device reads it might write, too. */
struct page_list_part {
	__le64 *pages;
	dma_addr_t dma;
};

/*
 * What the device has to know of a region's pages: a list in parts of a page each, and a list of
 * these, so that no list needs much memory that adjoins.
 */
struct page_list {
	struct page_list_part *parts;
	__le64 *part_dmas;		/* for the device */
	dma_addr_t dma;			/* of part_dmas */
	size_t nr, nr_parts;
	unsigned long page_size;
};

enum { PART_BYTES = MUSTER_MR_PART_PAGES * sizeof(__le64) };

static void page_list_free(struct muster_dev *dev, struct page_list *list)
{
	struct device *device = &dev->fn->pdev->dev;
	size_t i;

	for (i = 0; i < list->nr_parts && list->parts[i].pages; i++)
		dma_free_coherent(device, PART_BYTES, list->parts[i].pages, list->parts[i].dma);
	dma_free_coherent(device, list->nr_parts * sizeof(*list->part_dmas), list->part_dmas,
			  list->dma);
	kvfree(list->parts);
}

static int page_list_alloc(struct muster_dev *dev, struct page_list *list)
{
	struct device *device = &dev->fn->pdev->dev;
	size_t i;

	list->parts = kvcalloc(list->nr_parts, sizeof(*list->parts), GFP_KERNEL);
	if (!list->parts)
		return -ENOMEM;
	list->part_dmas = dma_alloc_coherent(device, list->nr_parts * sizeof(*list->part_dmas),
					     &list->dma, GFP_KERNEL | __GFP_NOWARN);
	if (!list->part_dmas) {
		kvfree(list->parts);
		return -ENOMEM;
	}
	for (i = 0; i < list->nr_parts; i++) {
		struct page_list_part *part = &list->parts[i];

		part->pages = dma_alloc_coherent(device, PART_BYTES, &part->dma,
						 GFP_KERNEL | __GFP_NOWARN);
		if (!part->pages) {
			page_list_free(dev, list);
			return -ENOMEM;
		}
		list->part_dmas[i] = cpu_to_le64(part->dma);
	}
	return 0;
}

static size_t page_list_parts(size_t pages)
{
	return DIV_ROUND_UP(pages, MUSTER_MR_PART_PAGES);
}

static int page_list_create(struct muster_dev *dev, struct ib_umem *umem, u64 iova,
			    struct page_list *list)
{
	struct ib_block_iter block;
	size_t i = 0;
	int err;

	list->page_size = ib_umem_find_best_pgsz(umem, GENMASK(30, PAGE_SHIFT), iova);
	if (!list->page_size)
		return -EINVAL;
	list->nr = ib_umem_num_dma_blocks(umem, list->page_size);
	if (list->nr > MUSTER_MR_PAGES_MAX)
		return -E2BIG;
	list->nr_parts = page_list_parts(list->nr);
	err = page_list_alloc(dev, list);
	if (err)
		return err;
	rdma_umem_for_each_dma_block(umem, &block, list->page_size) {
		if (i == list->nr)
			break;
		list->parts[i / MUSTER_MR_PART_PAGES].pages[i % MUSTER_MR_PART_PAGES] =
			cpu_to_le64(rdma_block_iter_dma_address(&block));
		i++;
	}
	return 0;
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
	cmd.mr.in_parts = 1;
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

static int check(u64 length, int access)
{
	if (!length)
		return -EINVAL;
	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
		       IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_OPTIONAL))
		return -EOPNOTSUPP;
	return 0;
}

/* The memory is this region's from here on, also when it fails. */
static struct ib_mr *mr_create(struct ib_pd *ibpd, struct ib_umem *umem, u64 iova, int access)
{
	struct muster_dev *dev = to_mdev(ibpd->device);
	struct muster_mr *mr;
	u32 key;
	int err;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr) {
		err = -ENOMEM;
		goto err_unpin;
	}
	mr->umem = umem;
	/* The core counts what it pins of the process's own; the device has few lists for all. */
	err = muster_pin_charge(dev, &mr->pin, umem->is_dmabuf ? PAGE_ALIGN(umem->length) : 0);
	if (err)
		goto err_free;
	err = xa_alloc_cyclic(&dev->mrs, &key, mr, XA_LIMIT(1, MUSTER_MRS_MAX), &dev->next_mr,
			      GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_pin;
	}
	mr->ibmr.pd = ibpd;
	mr->ibmr.iova = iova;
	mr->ibmr.length = umem->length;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
	err = admin_register(dev, mr, key, access);
	if (err)
		goto err_key;
	return &mr->ibmr;

err_key:
	xa_erase(&dev->mrs, key);
err_pin:
	muster_pin_uncharge(&mr->pin);
err_free:
	kfree(mr);
err_unpin:
	ib_umem_release(umem);
	return ERR_PTR(err);
}

static int decode(struct ib_udata *udata, struct muster_reg_mr_cmd *cmd)
{
	int err = muster_udata_read(udata, cmd, sizeof(*cmd));

	if (err)
		return err;
	if (cmd->reserved || cmd->flags & ~MUSTER_REG_MR_WATCH)
		return -EINVAL;
	return cmd->flags && udata->outlen < sizeof(struct muster_reg_mr_resp) ? -EINVAL : 0;
}

/* Pins for writing only what is mapped for writing: else -EFAULT. */
struct ib_mr *muster_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				 int access, struct ib_udata *udata)
{
	struct muster_reg_mr_cmd cmd = { };
	struct muster_watch *watch = NULL;
	struct ib_mr *ibmr;
	int err;

	err = check(length, access);
	if (!err)
		err = decode(udata, &cmd);
	if (!err && cmd.flags & MUSTER_REG_MR_WATCH)
		err = muster_watch_create(start, length, udata, &watch);
	if (err)
		return ERR_PTR(err);
	ibmr = mr_create(ibpd, ib_umem_get(ibpd->device, start, length, access), iova, access);
	if (IS_ERR(ibmr))
		muster_watch_destroy(watch);
	else
		to_mmr(ibmr)->watch = watch;
	return ibmr;
}

/* Memory of another driver's, which stays where it is until the region goes. */
struct ib_mr *muster_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					int fd, int access, MUSTER_REG_DMABUF_ARG *arg)
{
	struct ib_umem_dmabuf *dmabuf;
	int err;

	err = check(length, access);
	if (!err && !muster_udata_unused(MUSTER_REG_DMABUF_UDATA(arg)))
		err = -EINVAL;
	if (err)
		return ERR_PTR(err);
	dmabuf = ib_umem_dmabuf_get_pinned(ibpd->device, offset, length, fd, access);
	return mr_create(ibpd, IS_ERR(dmabuf) ? ERR_CAST(dmabuf) : &dmabuf->umem, iova, access);
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

	if (current->mm != mr->pin.mm)
		muster_contexts_orphan(to_mucontext(ibmr->uobject->context));
	muster_admin_destroy(dev, MUSTER_ADMIN_MR_DEREGISTER, ibmr->lkey);
	xa_erase(&dev->mrs, ibmr->lkey);
	muster_watch_destroy(mr->watch);
	ib_umem_release(mr->umem);
	muster_pin_uncharge(&mr->pin);
	kfree(mr);
	return 0;
}

#if IS_BUILTIN(CONFIG_KUNIT)
#include "mr_test.c"
#endif
