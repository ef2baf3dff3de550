// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: the pages that the driver has pinned for a process, and the
 * one place where an address of a descriptor becomes an address of guest
 * memory. The page list is copied at registration, so that the guest cannot
 * change it under a running operation.
 */
#include "nic_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

enum {
	PAGES_AT_ONCE = MUSTER_MR_PART_PAGES,	/* of a list, read by one access to guest memory */
	PAGES_A_STEP = 8192,
};

/* Where the next of the list lie. A part is read at once, so this is asked at its beginning. */
static int list_find(struct muster_nic *nic, const struct nic_mr *mr, uint64_t *addr)
{
	*addr = mr->list + 8ull * mr->nr_read;
	if (!mr->in_parts)
		return 0;
	if (nic_dma_read(nic, mr->list + 8ull * (mr->nr_read / MUSTER_MR_PART_PAGES), addr,
			 sizeof(*addr)))
		return -EIO;
	*addr = le64toh(*addr);
	return 0;
}

/* Page addresses come from the guest: DMA refuses what is not its memory. */
static int pages_read(struct muster_nic *nic, struct nic_mr *mr, uint32_t nr)
{
	uint64_t mask = (1ull << mr->page_shift) - 1;
	uint64_t *pages = &mr->pages[mr->nr_read], addr;

	if (list_find(nic, mr, &addr) || nic_dma_read(nic, addr, pages, 8 * nr))
		return -EIO;
	for (uint32_t i = 0; i < nr; i++) {
		pages[i] = le64toh(pages[i]);
		if (pages[i] & mask)
			return -EINVAL;
	}
	mr->nr_read += nr;
	return 0;
}

int nic_mr_read_on(struct muster_nic *nic, struct nic_mr *mr)
{
	uint32_t left, nr;
	int err = 0;

	for (left = PAGES_A_STEP; left && mr->nr_read < mr->nr_pages && !err; left -= nr) {
		nr = mr->nr_pages - mr->nr_read;
		nr = nr < PAGES_AT_ONCE ? nr : PAGES_AT_ONCE;
		err = pages_read(nic, mr, nr);
	}
	return err;
}

int nic_mr_begin(struct muster_nic *nic, const struct nic_mr *config, struct nic_mr **result)
{
	struct nic_mr *mr;

	if (config->nr_pages > MUSTER_NIC_PAGES_MAX - nic->mr_pages)
		return -ENOSPC;
	mr = malloc(sizeof(*mr) + 8ull * config->nr_pages);
	if (!mr)
		return -ENOMEM;
	*mr = *config;
	mr->life = ++nic->mr_lives;
	nic->mr_pages += mr->nr_pages;
	*result = mr;
	return 0;
}

void nic_mr_free(struct muster_nic *nic, struct nic_mr *mr)
{
	nic->mr_pages -= mr->nr_pages;
	free(mr);
}

void nic_mr_destroy(struct muster_nic *nic, uint32_t key)
{
	nic_mr_free(nic, nic->mrs[key]);
	nic->mrs[key] = NULL;
	nic->mrs_gone++;
}

static const struct nic_mr *mr_of_pd(const struct muster_nic *nic, uint32_t pd, uint32_t key)
{
	const struct nic_mr *mr;

	if (key == 0 || key > MUSTER_MRS_MAX)
		return NULL;
	mr = nic->mrs[key];
	return mr && mr->pd == pd ? mr : NULL;
}

static const struct nic_mr *mr_of_vp(const struct muster_nic *nic, uint16_t vp, uint32_t key)
{
	if (vp >= MUSTER_VPS_MAX || !nic->vps[vp])
		return NULL;
	return mr_of_pd(nic, nic->vps[vp]->pd, key);
}

int nic_mr_range(const struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t *iova,
		 uint64_t *bytes)
{
	const struct nic_mr *mr = mr_of_vp(nic, vp, key);

	if (!mr)
		return -EFAULT;
	*iova = mr->iova;
	*bytes = mr->length;
	return 0;
}

uint64_t nic_mr_life(const struct muster_nic *nic, uint16_t vp, uint32_t key)
{
	const struct nic_mr *mr = mr_of_vp(nic, vp, key);

	return mr ? mr->life : 0;
}

static bool mr_covers(const struct nic_mr *mr, uint64_t addr, uint32_t len, uint8_t access)
{
	return mr && (mr->access & access) && addr >= mr->iova && addr - mr->iova <= mr->length &&
	       mr->length - (addr - mr->iova) >= len;
}

/* The longest piece from offset on that is in one run of adjoining pages. */
static uint32_t mr_piece(const struct nic_mr *mr, uint64_t offset, uint32_t len, uint64_t *dma)
{
	uint64_t size = 1ull << mr->page_shift, page = offset >> mr->page_shift;
	uint64_t run = size - (offset & (size - 1));

	*dma = mr->pages[page] + (offset & (size - 1));
	while (run < len && mr->pages[page + 1] == mr->pages[page] + size) {
		page++;
		run += size;
	}
	return run < len ? run : len;
}

static int mr_load(struct muster_nic *nic, const struct nic_mr *mr, uint64_t addr, void *buf,
		   uint32_t len)
{
	uint64_t offset, dma;
	uint32_t piece;

	for (offset = addr - mr->iova + mr->first_offset; len; offset += piece, len -= piece) {
		piece = mr_piece(mr, offset, len, &dma);
		if (nic_dma_read(nic, dma, buf, piece))
			return -EFAULT;
		buf = (uint8_t *)buf + piece;
	}
	return 0;
}

static int mr_store(struct muster_nic *nic, const struct nic_mr *mr, uint64_t addr,
		    const void *buf, uint32_t len)
{
	uint64_t offset, dma;
	uint32_t piece;

	for (offset = addr - mr->iova + mr->first_offset; len; offset += piece, len -= piece) {
		piece = mr_piece(mr, offset, len, &dma);
		if (nic_dma_write(nic, dma, buf, piece))
			return -EFAULT;
		buf = (const uint8_t *)buf + piece;
	}
	return 0;
}

int nic_mr_read(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr, void *buf,
		uint32_t len)
{
	const struct nic_mr *mr = mr_of_vp(nic, vp, key);

	return mr_covers(mr, addr, len, MUSTER_MR_READ) ? mr_load(nic, mr, addr, buf, len) : -EFAULT;
}

int nic_mr_write(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr,
		 const void *buf, uint32_t len)
{
	const struct nic_mr *mr = mr_of_vp(nic, vp, key);

	return mr_covers(mr, addr, len, MUSTER_MR_WRITE) ? mr_store(nic, mr, addr, buf, len) : -EFAULT;
}

int nic_mr_remote_write(struct muster_nic *nic, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			uint32_t at, const void *buf, uint32_t len)
{
	const struct nic_mr *mr = mr_of_vp(nic, vp, key);

	if (!mr_covers(mr, addr, total, MUSTER_MR_REMOTE_WRITE) || at > total || len > total - at)
		return -EFAULT;
	return mr_store(nic, mr, addr + at, buf, len);
}

int nic_mr_load(struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access, uint64_t addr,
		void *buf, uint32_t len)
{
	const struct nic_mr *mr = mr_of_pd(nic, pd, key);

	return mr_covers(mr, addr, len, access) ? mr_load(nic, mr, addr, buf, len) : -EFAULT;
}

int nic_mr_store(struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access, uint64_t addr,
		 const void *buf, uint32_t len)
{
	const struct nic_mr *mr = mr_of_pd(nic, pd, key);

	return mr_covers(mr, addr, len, access) ? mr_store(nic, mr, addr, buf, len) : -EFAULT;
}

bool nic_mr_allows(const struct muster_nic *nic, uint32_t pd, uint32_t key, uint8_t access,
		   uint64_t addr, uint32_t len)
{
	return mr_covers(mr_of_pd(nic, pd, key), addr, len, access);
}
