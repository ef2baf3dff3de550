/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory that the local device may touch: tables from keys to ranges. Own
 * memory is registered where it lies, or allocated so that peers can map it; a
 * peer's memory is mapped read-only when it says so, and only that can be
 * reached. Keys are never used twice in a row for different ranges.
 */
#ifndef MUSTER_REGIONS_H
#define MUSTER_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MUSTER_REGIONS_MAX = 65535,	/* at once */
	MUSTER_REGION_FILES_MAX = 256,	/* of them, the newest that peers can still be told of */
	MUSTER_REGION_PAGES = 1024,	/* remembered to be there */
};

/* Of this process. */
struct muster_region_own {
	uint32_t key;		/* 0: free */
	uint8_t access;		/* MUSTER_ACCESS_* */
	bool shared;		/* allocated here; peers may map it */
	bool withdrawn;		/* not any more; kept until all who knew of it know */
	uint64_t life;		/* differs from region to region; keys come round */
	uint64_t addr;
	uint64_t bytes;
	int fd;			/* shared: its memory, as long as peers can be told of it; or -1 */
	uint8_t *known;		/* shared: a bit a rank, who was told of it and not of its end */
	uint32_t nr_known;
};

/* Of a peer, as it is mapped here. */
struct muster_region_peer {
	uint32_t key;		/* 0: free */
	bool withdrawn;
	uint64_t addr;		/* in the peer */
	uint64_t bytes;
	const uint8_t *map;
};

struct muster_regions_own {
	struct muster_region_own *table;
	uint32_t nr;		/* entries of the table; key & 0xffff is the index plus one */
	uint64_t generation;	/* regions so far */
	uint64_t gone;		/* of these, those whose key was given back */
	uint32_t ranks;		/* who may be told of memory; 0: nobody ever is */
	int probe[2];		/* a pipe */
	uint64_t pages[MUSTER_REGION_PAGES];	/* that were there: number and access */
	uint32_t files[MUSTER_REGION_FILES_MAX];	/* keys of those that had an fd last */
	uint32_t next_file;
};

struct muster_regions_peer {
	struct muster_region_peer *table;
	uint32_t nr;
	uint32_t nr_withdrawn;
};

/** muster_regions_open() - ranks: how many there are to tell of memory, if any. 0 or -errno. */
int muster_regions_open(struct muster_regions_own *regions, uint32_t ranks);
/** muster_regions_close() - unmaps what was allocated. */
void muster_regions_close(struct muster_regions_own *regions);

/**
 * muster_region_register() - give a key to memory of the caller.
 * Return: 0; -EFAULT: its first or last byte is not there for that access, nor was when it was
 * registered before; -ENOSPC; -ENOMEM.
 */
int muster_region_register(struct muster_regions_own *regions, void *addr, size_t bytes,
			   int access, uint32_t *key);
void muster_region_deregister(struct muster_regions_own *regions, uint32_t key);

/**
 * muster_region_alloc() - zeroed memory with a key, in a sealed memfd if it is more than a
 * page, as no less is read in place. -ENOMEM, -ENOSPC, ...
 */
int muster_region_alloc(struct muster_regions_own *regions, size_t bytes, void **addr,
			uint32_t *key);
/** muster_region_withdraw() - give it up; the key stays until muster_region_forget(). */
void muster_region_withdraw(struct muster_regions_own *regions, uint32_t key);
/** muster_region_told() - a rank was told that it is there or, once it is withdrawn, gone. */
void muster_region_told(struct muster_region_own *region, uint32_t rank);
/** muster_region_known() - whether a rank was told that it is there, and not that it is gone. */
static inline bool muster_region_known(const struct muster_region_own *region, uint32_t rank)
{
	return region->known[rank / 8] >> rank % 8 & 1;
}
/** muster_region_forget() - nobody knows it any more: free the key. */
void muster_region_forget(struct muster_region_own *region);

/** muster_region_find() - by key; NULL for a key of nothing. Valid until the next call here. */
struct muster_region_own *muster_region_find(const struct muster_regions_own *regions,
					     uint32_t key);

/** muster_region_range() - own memory in place, or NULL: unknown key, out of bounds, no access. */
void *muster_region_range(const struct muster_regions_own *regions, uint32_t key, uint64_t addr,
			  uint64_t len, int access);

/** muster_region_peer_map() - map what a peer has announced; takes fd. 0 or -errno. */
int muster_region_peer_map(struct muster_regions_peer *regions, uint32_t key, uint64_t addr,
			   uint64_t bytes, int fd);
/** muster_region_peer_withdraw() - it goes at the next muster_regions_peer_sweep(). */
void muster_region_peer_withdraw(struct muster_regions_peer *regions, uint32_t key);
/** muster_regions_peer_sweep() - unmap what was withdrawn; nobody holds pointers into it. */
void muster_regions_peer_sweep(struct muster_regions_peer *regions);
/** muster_regions_peer_close() - unmap all. */
void muster_regions_peer_close(struct muster_regions_peer *regions);

/** muster_region_peer_range() - a peer's memory in place, or NULL. */
const void *muster_region_peer_range(const struct muster_regions_peer *regions, uint32_t key,
				     uint64_t addr, uint64_t len);

/** muster_memory_sound() - whether fd is that much memory, sealed so that it stays that. */
bool muster_memory_sound(int fd, uint64_t bytes);

/** muster_memory_file() - a new memfd of zeros that stays that long. 0 or -errno. */
int muster_memory_file(const char *name, size_t bytes, int *fd);

#endif /* MUSTER_REGIONS_H */
