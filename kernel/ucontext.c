// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An open file, and what it may map: rings, status pages, doorbells. Each is a
 * struct muster_mapping that lives until its object has gone and its last mapping
 * with it; so memory is never another's while someone still sees it, and a
 * virtual port's number is not another's while someone can still ring it.
 */
#include "muster.h"

#include <linux/dma-mapping.h>
#include <rdma/uverbs_ioctl.h>

/* ---- mappings ------------------------------------------------------------------ */

static struct muster_mapping *to_mapping(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct muster_mapping, entry);
}

/* In one piece, so that it can be mapped by page frame number. */
static int memory_alloc(struct muster_mapping *mapping)
{
	struct device *dma = &mapping->dev->fn->pdev->dev;
	int err;

	err = muster_pin_charge(mapping->dev, &mapping->pin, mapping->bytes);
	if (err)
		return err;
	err = -ENOMEM;
	mapping->cpu = dma_alloc_attrs(dma, mapping->bytes, &mapping->dma,
				       GFP_KERNEL_ACCOUNT | __GFP_NOWARN,
				       DMA_ATTR_FORCE_CONTIGUOUS);
	if (!mapping->cpu)
		goto err_pin;
	if (!is_vmalloc_addr(mapping->cpu))
		return 0;
	err = -EOPNOTSUPP;
	dma_free_attrs(dma, mapping->bytes, mapping->cpu, mapping->dma,
		       DMA_ATTR_FORCE_CONTIGUOUS);
err_pin:
	muster_pin_uncharge(&mapping->pin);
	return err;
}

static void memory_free(struct muster_mapping *mapping)
{
	struct muster_dev *dev = mapping->dev;

	mutex_lock(&dev->mappings_lock);
	list_del(&mapping->dev_entry);
	mutex_unlock(&dev->mappings_lock);
	dma_free_attrs(&dev->fn->pdev->dev, mapping->bytes, mapping->cpu, mapping->dma,
		       DMA_ATTR_FORCE_CONTIGUOUS);
	muster_pin_uncharge(&mapping->pin);
}

static void mapping_free(struct muster_mapping *mapping)
{
	if (mapping->kind == MUSTER_MAP_DOORBELL)
		muster_number_give(mapping->dev, &mapping->number);
	else if (mapping->kind != MUSTER_MAP_BELLS)
		memory_free(mapping);
	kfree(mapping);
}

void muster_mmap_free(struct rdma_user_mmap_entry *entry)
{
	mapping_free(to_mapping(entry));
}

static struct muster_mapping *mapping_insert(struct ib_ucontext *ibucontext,
					     struct muster_mapping *mapping)
{
	int err = rdma_user_mmap_entry_insert(ibucontext, &mapping->entry, mapping->bytes);

	if (!err)
		return mapping;
	mapping_free(mapping);
	return ERR_PTR(err);
}

/* Zeroed memory for the device, to be mapped. The caller removes it. */
struct muster_mapping *muster_mapping_create(struct ib_ucontext *ibucontext,
					     enum muster_mapping_kind kind, size_t bytes,
					     struct muster_ring_layout layout)
{
	struct muster_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	struct muster_dev *dev = to_mdev(ibucontext->device);
	int err;

	if (!mapping)
		return ERR_PTR(-ENOMEM);
	mapping->dev = dev;
	mapping->kind = kind;
	mapping->bytes = PAGE_ALIGN(bytes);
	mapping->layout = layout;
	err = memory_alloc(mapping);
	if (err) {
		kfree(mapping);
		return ERR_PTR(err);
	}
	mutex_lock(&dev->mappings_lock);
	list_add_tail(&mapping->dev_entry, &dev->mappings);	/* as muster_mappings_clear() needs them */
	mutex_unlock(&dev->mappings_lock);
	return mapping_insert(ibucontext, mapping);
}

/* Where in its mapping the first mark lies: that of the first entry that begins there. */
static size_t first_mark(const struct muster_ring_layout *layout)
{
	size_t into = layout->before % layout->stride;

	return (into ? layout->stride - into : 0) + layout->mark;
}

static void mapping_clear(struct muster_mapping *mapping)
{
	const struct muster_ring_layout *layout = &mapping->layout;
	size_t at;

	if (layout->stride) {
		for (at = first_mark(layout); at < mapping->bytes; at += layout->stride)
			WRITE_ONCE(*((u8 *)mapping->cpu + at), 0);
		smp_wmb();	/* the marks before the rest, see struct muster_ring_layout */
	}
	memset(mapping->cpu, 0, mapping->bytes);
}

/*
 * Of a fenced device: what it has written reads as zero, before processes are told. The
 * core takes mappings away as well, but only after it has told. In the order in which they
 * were made: an entry that goes on in the next part of its ring has its mark in the one before.
 */
void muster_mappings_clear(struct muster_dev *dev)
{
	struct muster_mapping *mapping;

	mutex_lock(&dev->mappings_lock);
	list_for_each_entry(mapping, &dev->mappings, dev_entry) {
		if (mapping->kind == MUSTER_MAP_FROM_DEVICE)
			mapping_clear(mapping);
		cond_resched();
	}
	mutex_unlock(&dev->mappings_lock);
}

/* A free virtual port number, and its doorbells. The caller removes it. */
struct muster_mapping *muster_doorbell_create(struct ib_ucontext *ibucontext)
{
	struct muster_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	int err;

	if (!mapping)
		return ERR_PTR(-ENOMEM);
	mapping->dev = to_mdev(ibucontext->device);
	mapping->kind = MUSTER_MAP_DOORBELL;
	mapping->bytes = PAGE_SIZE;
	err = muster_number_take(mapping->dev, &mapping->number);
	if (err) {
		kfree(mapping);
		return ERR_PTR(err);
	}
	return mapping_insert(ibucontext, mapping);
}

/* Ringing says only "look", so the page is everybody's. */
static struct muster_mapping *bells_create(struct ib_ucontext *ibucontext)
{
	struct muster_mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);

	if (!mapping)
		return ERR_PTR(-ENOMEM);
	mapping->dev = to_mdev(ibucontext->device);
	mapping->kind = MUSTER_MAP_BELLS;
	mapping->bytes = PAGE_SIZE;
	return mapping_insert(ibucontext, mapping);
}

/* The object is gone: no new mappings; it is freed when the last one goes. */
void muster_mapping_remove(struct muster_mapping *mapping)
{
	rdma_user_mmap_entry_remove(&mapping->entry);
}

u64 muster_mapping_offset(const struct muster_mapping *mapping)
{
	return rdma_user_mmap_get_offset(&mapping->entry);
}

static int mapping_map(struct ib_ucontext *ibucontext, struct vm_area_struct *vma,
		       struct muster_mapping *mapping)
{
	pgprot_t prot = vma->vm_page_prot;
	phys_addr_t phys;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);
	if (mapping->kind == MUSTER_MAP_FROM_DEVICE) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	if (mapping->kind == MUSTER_MAP_BELLS) {
		prot = pgprot_noncached(prot);
		phys = pci_resource_start(mapping->dev->fn->pdev, MUSTER_BAR_REGS) +
		       MUSTER_REG_BELLS;
	} else if (mapping->kind == MUSTER_MAP_DOORBELL) {
		prot = pgprot_noncached(prot);
		phys = mapping->dev->fn->doorbells +
		       (phys_addr_t)mapping->number.vp * MUSTER_DOORBELL_STRIDE;
	} else {
		phys = virt_to_phys(mapping->cpu);
	}
	return rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(phys), mapping->bytes, prot,
				 &mapping->entry);
}

/* The core finds an entry only among those of the same file, and only with its exact size. */
int muster_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ibucontext, vma);
	int err;

	if (!entry)
		return -EINVAL;
	err = mapping_map(ibucontext, vma, to_mapping(entry));
	rdma_user_mmap_entry_put(entry);
	return err;
}

/* ---- the file ------------------------------------------------------------------ */

int muster_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct muster_ucontext *ucontext = to_mucontext(ibucontext);
	struct muster_dev *dev = to_mdev(ibucontext->device);
	struct muster_alloc_ucontext_resp resp = {
		.device_version = MUSTER_DEVICE_VERSION,
		.node = dev->node,
		.incarnation = dev->incarnation,
		.contexts_max = MUSTER_CONTEXTS_MAX,
		.dq_entries_max = MUSTER_DQ_ENTRIES_MAX,
		.rq_entries_max = MUSTER_RQ_ENTRIES_MAX,
		.capabilities = dev->capabilities,
	};
	int err;

	if (!muster_udata_unused(udata) || udata->outlen < sizeof(resp))
		return -EINVAL;
	mutex_init(&ucontext->lock);
	INIT_LIST_HEAD(&ucontext->contexts);
	ida_init(&ucontext->watches);
	ucontext->bells = bells_create(ibucontext);
	if (IS_ERR(ucontext->bells))
		return PTR_ERR(ucontext->bells);
	resp.bells_offset = muster_mapping_offset(ucontext->bells);
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		muster_mapping_remove(ucontext->bells);
	return err;
}

void muster_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	struct muster_ucontext *ucontext = to_mucontext(ibucontext);

	if (ucontext->changes)
		muster_mapping_remove(ucontext->changes);
	muster_mapping_remove(ucontext->bells);
	ida_destroy(&ucontext->watches);
	mutex_destroy(&ucontext->lock);
}

/* The core takes the mappings away and destroys the objects; nothing else is ours. */
void muster_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
}

#if IS_BUILTIN(CONFIG_KUNIT)
#include "ucontext_test.c"
#endif
