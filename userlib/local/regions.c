// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables of memory (regions.h). A key is an index plus one, and above it a count
 * that differs from key to key, so that an old key finds nothing. What a peer
 * announces is trusted no further than its memfd is sealed: it cannot shrink
 * under our reads.
 */
#include "regions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "dev.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
	HUGE = 2 << 20,
	SHARED_FROM = 4096 + 1,	/* bytes; less goes as a packet anyhow */
	INDEX_BITS = 16,
	INDEX_MASK = (1 << INDEX_BITS) - 1,
	PAGE_SHIFT = 12,
	TABLE_FIRST = 64,
};

/* ---- the table of own memory ------------------------------------------------- */

int muster_regions_open(struct muster_regions_own *regions, uint32_t ranks)
{
	*regions = (struct muster_regions_own){ .probe = { -1, -1 }, .ranks = ranks };
	return pipe2(regions->probe, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

void muster_regions_close(struct muster_regions_own *regions)
{
	for (uint32_t i = 0; i < regions->nr; i++) {
		struct muster_region_own *region = &regions->table[i];

		if (region->key && region->shared && !region->withdrawn)
			muster_region_withdraw(regions, region->key);
		if (region->key)
			muster_region_forget(region);
	}
	free(regions->table);
	if (regions->probe[0] >= 0) {
		close(regions->probe[0]);
		close(regions->probe[1]);
	}
}

static inline struct muster_region_own *find(const struct muster_regions_own *regions, uint32_t key)
{
	uint32_t index = (key & INDEX_MASK) - 1;

	if (index >= regions->nr || regions->table[index].key != key)
		return NULL;
	return &regions->table[index];
}

struct muster_region_own *muster_region_find(const struct muster_regions_own *regions,
					     uint32_t key)
{
	return find(regions, key);
}

static bool inside(uint64_t base, uint64_t bytes, uint64_t addr, uint64_t len)
{
	return addr >= base && addr - base <= bytes && len <= bytes - (addr - base);
}

void *muster_region_range(const struct muster_regions_own *regions, uint32_t key, uint64_t addr,
			  uint64_t len, int access)
{
	const struct muster_region_own *region = find(regions, key);

	if (!region || region->withdrawn || (region->access & access) != access ||
	    !inside(region->addr, region->bytes, addr, len))
		return NULL;
	return (void *)(uintptr_t)addr;
}

static int table_grow(struct muster_regions_own *regions)
{
	uint32_t nr = regions->nr ? 2 * regions->nr : TABLE_FIRST;
	struct muster_region_own *table;

	if (regions->nr == MUSTER_REGIONS_MAX)
		return -ENOSPC;
	if (nr > MUSTER_REGIONS_MAX)
		nr = MUSTER_REGIONS_MAX;
	table = realloc(regions->table, nr * sizeof(*table));
	if (!table)
		return -ENOMEM;
	memset(table + regions->nr, 0, (nr - regions->nr) * sizeof(*table));
	regions->table = table;
	regions->nr = nr;
	return 0;
}

/* A free entry with a new key. */
static int region_new(struct muster_regions_own *regions, struct muster_region_own **region)
{
	uint32_t index = 0;
	int err;

	while (index < regions->nr && regions->table[index].key)
		index++;
	if (index == regions->nr) {
		err = table_grow(regions);
		if (err)
			return err;
	}
	*region = &regions->table[index];
	**region = (struct muster_region_own){
		.life = ++regions->generation,
		.key = (uint32_t)regions->generation << INDEX_BITS | (index + 1),
		.fd = -1,
	};
	return 0;
}

/* ---- registering --------------------------------------------------------------- */

/*
 * Whether memory is there, from the kernel, which does not crash over it: the
 * first and the last byte go into a pipe and, where it is to be written, come
 * back to where they were. Raw calls: sanitizers need not look.
 */
static bool probe(const struct muster_regions_own *regions, uint8_t *addr, size_t bytes,
		  int access)
{
	struct iovec ends[2] = { { addr, 1 }, { addr + bytes - 1, 1 } };
	uint8_t drain[2];

	if (syscall(SYS_writev, regions->probe[1], ends, 2) == 2) {
		if (!(access & MUSTER_ACCESS_WRITE))
			return read(regions->probe[0], drain, 2) == 2;
		if (syscall(SYS_readv, regions->probe[0], ends, 2) == 2)
			return true;
	}
	while (read(regions->probe[0], drain, 2) > 0)
		;	/* whatever got in */
	return false;
}

/* Where a page is remembered, and as what. Its number leaves room for the access. */
static uint64_t *page_place(struct muster_regions_own *regions, const uint8_t *addr, uint64_t *page)
{
	uint64_t number = (uintptr_t)addr >> PAGE_SHIFT;

	*page = number << 2;
	return &regions->pages[(number * 0x9e3779b97f4a7c15ull >> 32) % MUSTER_REGION_PAGES];
}

static bool page_known(struct muster_regions_own *regions, const uint8_t *addr, int access)
{
	uint64_t page, *place = page_place(regions, addr, &page);

	return (*place & ~3ull) == page && (*place & (uint64_t)access) == (uint64_t)access;
}

static void page_remember(struct muster_regions_own *regions, const uint8_t *addr, int access)
{
	uint64_t page, *place = page_place(regions, addr, &page);

	*place = page | (uint64_t)access;
}

/*
 * The kernel is asked once for a page: what a program works with is there, and who calls with
 * what it has given back in the meantime touches it as by any other function.
 */
static bool is_there(struct muster_regions_own *regions, uint8_t *addr, size_t bytes, int access)
{
	uint8_t *last = addr + bytes - 1;

	access &= MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE;
	if (page_known(regions, addr, access) && page_known(regions, last, access))
		return true;
	if (!probe(regions, addr, bytes, access))
		return false;
	page_remember(regions, addr, access);
	page_remember(regions, last, access);
	return true;
}

int muster_region_register(struct muster_regions_own *regions, void *addr, size_t bytes,
			   int access, uint32_t *key)
{
	struct muster_region_own *region;
	int err;

	if (!bytes || (uintptr_t)addr + bytes - 1 < (uintptr_t)addr ||
	    !is_there(regions, addr, bytes, access))
		return -EFAULT;
	err = region_new(regions, &region);
	if (err)
		return err;
	region->access = access;
	region->addr = (uintptr_t)addr;
	region->bytes = bytes;
	*key = region->key;
	return 0;
}

void muster_region_deregister(struct muster_regions_own *regions, uint32_t key)
{
	struct muster_region_own *region = muster_region_find(regions, key);

	if (!region || region->shared)
		return;
	region->key = 0;
	regions->gone++;
}

/* ---- allocating ------------------------------------------------------------------ */

/* Large memory starts at a huge page's boundary, or there could be none in it. */
static void *map_aligned(int fd, size_t bytes)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	uint8_t *reserved, *start;

	if (bytes < HUGE)
		return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	reserved = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	start = (uint8_t *)(((uintptr_t)reserved + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (mmap(start, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(reserved, bytes + HUGE);
		return MAP_FAILED;
	}
	if (start > reserved)
		munmap(reserved, start - reserved);
	munmap(start + bytes, reserved + HUGE - start);
	madvise(start, bytes, MADV_HUGEPAGE);	/* a wish: small pages do as well */
	return start;
}

int muster_memory_file(const char *name, size_t bytes, int *fd)
{
	int err;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (!ftruncate(*fd, bytes) && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return 0;
	err = -errno;
	close(*fd);
	*fd = -1;
	return err;
}

/* Memory that others can map, too, but only to read it; share: unless it cannot be. */
static int map_memory(size_t bytes, bool share, int *fd, void **addr)
{
	int err = share ? muster_memory_file("muster", bytes, fd) : 0;

	if (err && err != -EMFILE && err != -ENFILE)
		return err;
	*addr = map_aligned(*fd, bytes);
	err = *addr == MAP_FAILED ? -errno : 0;
	if (*fd < 0)
		return err;
	if (!err && fcntl(*fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)) {
		err = -errno;
		munmap(*addr, bytes);
	}
	if (err)
		close(*fd);
	return err;
}

static size_t page_round(size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static void fd_close(struct muster_region_own *region)
{
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
}

/* The caller's program needs descriptors, too: the oldest goes where there are too many. */
static void file_keep(struct muster_regions_own *regions, const struct muster_region_own *region)
{
	uint32_t *place = &regions->files[regions->next_file++ % MUSTER_REGION_FILES_MAX];
	struct muster_region_own *oldest = muster_region_find(regions, *place);

	if (oldest)
		fd_close(oldest);
	*place = region->key;
}

int muster_region_alloc(struct muster_regions_own *regions, size_t bytes, void **addr,
			uint32_t *key)
{
	size_t mapped = page_round(bytes);
	struct muster_region_own *region;
	bool share = regions->ranks && bytes >= SHARED_FROM;
	uint8_t *known;
	void *start;
	int fd = -1, err;

	if (!bytes || mapped < bytes || mapped > SIZE_MAX / 4)
		return -ENOMEM;
	known = calloc(regions->ranks / 8 + 1, sizeof(*known));
	if (!known)
		return -ENOMEM;
	err = map_memory(mapped, share, &fd, &start);
	if (err)
		goto err_free;
	err = region_new(regions, &region);
	if (err)
		goto err_unmap;
	region->access = MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE;
	region->shared = true;
	region->addr = (uintptr_t)start;
	region->bytes = mapped;
	region->fd = fd;
	region->known = known;
	if (fd >= 0)
		file_keep(regions, region);
	*addr = start;
	*key = region->key;
	return 0;

err_unmap:
	munmap(start, mapped);
	if (fd >= 0)
		close(fd);
err_free:
	free(known);
	return err;
}

void muster_region_withdraw(struct muster_regions_own *regions, uint32_t key)
{
	struct muster_region_own *region = muster_region_find(regions, key);

	if (!region || !region->shared || region->withdrawn)
		return;
	munmap((void *)(uintptr_t)region->addr, region->bytes);
	fd_close(region);	/* who has not heard of it never will */
	region->withdrawn = true;
	regions->gone++;
}

void muster_region_told(struct muster_region_own *region, uint32_t rank)
{
	region->known[rank / 8] ^= 1 << rank % 8;
	region->nr_known += region->withdrawn ? -1 : 1;
}

void muster_region_forget(struct muster_region_own *region)
{
	fd_close(region);
	free(region->known);
	region->known = NULL;
	region->key = 0;
}

/* ---- a peer's ----------------------------------------------------------------------- */

static struct muster_region_peer *peer_find(const struct muster_regions_peer *regions,
					    uint32_t key)
{
	uint32_t index = (key & INDEX_MASK) - 1;

	if (index >= regions->nr || regions->table[index].key != key)
		return NULL;
	return &regions->table[index];
}

const void *muster_region_peer_range(const struct muster_regions_peer *regions, uint32_t key,
				     uint64_t addr, uint64_t len)
{
	const struct muster_region_peer *region = peer_find(regions, key);

	if (!region || !inside(region->addr, region->bytes, addr, len))
		return NULL;
	return region->map + (addr - region->addr);
}

static void peer_unmap(struct muster_region_peer *region)
{
	if (region->key)
		munmap((void *)region->map, region->bytes);
	region->key = 0;
}

/* The entry of a key, whatever it holds now. */
static struct muster_region_peer *peer_entry(struct muster_regions_peer *regions, uint32_t key)
{
	uint32_t index = (key & INDEX_MASK) - 1;
	uint32_t nr = regions->nr ? regions->nr : TABLE_FIRST;
	struct muster_region_peer *table;

	if (index >= MUSTER_REGIONS_MAX)
		return NULL;
	while (nr <= index)
		nr *= 2;
	if (nr > regions->nr) {
		table = realloc(regions->table, nr * sizeof(*table));
		if (!table)
			return NULL;
		memset(table + regions->nr, 0, (nr - regions->nr) * sizeof(*table));
		regions->table = table;
		regions->nr = nr;
	}
	return &regions->table[index];
}

/* A memfd that can become smaller would be a trap for whoever reads from it. */
bool muster_memory_sound(int fd, uint64_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return bytes && seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(fd, &st) &&
	       bytes <= (uint64_t)st.st_size;
}

int muster_region_peer_map(struct muster_regions_peer *regions, uint32_t key, uint64_t addr,
			   uint64_t bytes, int fd)
{
	struct muster_region_peer *region = peer_entry(regions, key);
	void *map;
	int err = -EPROTO;

	/* The last key of this entry was withdrawn before, if the peer is sane. */
	if (!region || (region->key && !region->withdrawn) || !muster_memory_sound(fd, bytes) ||
	    addr + bytes < addr)
		goto out_close;
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err = -errno;
		goto out_close;
	}
	if (region->key) {
		peer_unmap(region);
		regions->nr_withdrawn--;
	}
	*region = (struct muster_region_peer){ .key = key, .addr = addr, .bytes = bytes,
					       .map = map };
	err = 0;
out_close:
	close(fd);
	return err;
}

void muster_region_peer_withdraw(struct muster_regions_peer *regions, uint32_t key)
{
	struct muster_region_peer *region = peer_find(regions, key);

	if (!region || region->withdrawn)
		return;
	region->withdrawn = true;
	regions->nr_withdrawn++;
}

void muster_regions_peer_sweep(struct muster_regions_peer *regions)
{
	for (uint32_t i = 0; i < regions->nr && regions->nr_withdrawn; i++) {
		if (!regions->table[i].key || !regions->table[i].withdrawn)
			continue;
		peer_unmap(&regions->table[i]);
		regions->nr_withdrawn--;
	}
}

void muster_regions_peer_close(struct muster_regions_peer *regions)
{
	for (uint32_t i = 0; i < regions->nr; i++)
		peer_unmap(&regions->table[i]);
	free(regions->table);
}
