// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rings of one rank (rings.h). All ranks of a job compute the same sizes, so
 * smaller memory is refused. A ring belongs to one rank: nobody speaks for another
 * in it, and what the other end writes is mapped for reading.
 */
#include "rings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regions.h"

enum {
	RING_BYTES_FEW = 256 << 10,	/* of each ring, up to RANKS_FEW ranks */
	RING_BYTES_MANY = 64 << 10,
	RING_BYTES_MOST = MUSTER_RING_BYTES_MIN,
	RANKS_FEW = 8,
	RANKS_MANY = 64,
	PAGE = 4096,
};

int muster_rings_open(struct muster_rings *rings, uint32_t rank, uint32_t size, int *fd)
{
	uint32_t ring_bytes = size <= RANKS_FEW ? RING_BYTES_FEW :
			      size <= RANKS_MANY ? RING_BYTES_MANY : RING_BYTES_MOST;

	*rings = (struct muster_rings){
		.rank = rank, .size = size, .ring_bytes = ring_bytes,
		.region_bytes = muster_ring_region_size(size, ring_bytes),
		.nr_words = (size + 63) / 64,
	};
	for (uint32_t other = 0; other < size; other++)
		rings->others[other / 64] |= (uint64_t)(other != rank) << other % 64;
	rings->peers = calloc(size, sizeof(*rings->peers));
	rings->ringing = calloc(size, sizeof(*rings->ringing));
	if (!rings->peers || !rings->ringing)
		return -ENOMEM;
	return rank ? 0 : muster_memory_file("muster-rings", size * rings->region_bytes, fd);
}

void muster_rings_close(struct muster_rings *rings)
{
	free(rings->peers);
	free(rings->ringing);
	if (rings->memory)
		munmap(rings->memory, rings->size * rings->region_bytes);
}

/* Rings lie on pages of 4 KiB; where the kernel's are larger, nothing is kept from anybody. */
static bool can_protect(void)
{
	return sysconf(_SC_PAGESIZE) <= PAGE;
}

static int let_write(void *addr, size_t bytes)
{
	if (!can_protect())
		return 0;
	return mprotect(addr, bytes, PROT_READ | PROT_WRITE) ? -errno : 0;
}

/* Our ring at a peer, when we first send to it. */
int muster_rings_reach(struct muster_rings *rings, struct muster_rings_peer *peer)
{
	size_t bytes;
	void *lines = muster_ring_lines(&peer->region, rings->rank, &bytes);

	if (let_write(peer->region.head, PAGE) || let_write(lines, bytes))
		return -EAGAIN;
	return muster_ring_producer_init(&peer->to, &peer->region, rings->rank);
}

static int attach_own(struct muster_rings *rings)
{
	void *head = rings->inbound.head;
	size_t bytes;

	return let_write(head, (char *)muster_ring_lines(&rings->inbound, 0, &bytes) -
			       (char *)head);
}

int muster_rings_attach(struct muster_rings *rings, int fd)
{
	size_t bytes = rings->size * rings->region_bytes;
	int err = 0;

	/* Shorter memory must fail here, and not when it is written to. */
	if (!muster_memory_sound(fd, bytes))
		return -EPROTO;
	rings->memory = mmap(NULL, bytes, can_protect() ? PROT_READ : PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, 0);
	if (rings->memory == MAP_FAILED) {
		rings->memory = NULL;
		return -errno;
	}
	for (uint32_t rank = 0; rank < rings->size && !err; rank++)
		err = muster_ring_region_init(&rings->peers[rank].region,
					      (char *)rings->memory + rank * rings->region_bytes,
					      rings->region_bytes, rings->size, rings->ring_bytes);
	rings->inbound = rings->peers[rings->rank].region;
	if (!err)
		err = attach_own(rings);
	for (uint32_t rank = 0; rank < rings->size && !err; rank++)
		if (rank != rings->rank)
			err = muster_ring_consumer_init(&rings->peers[rank].from,
							&rings->inbound, rank);
	return err;
}

int muster_rings_receive(struct muster_rings *rings, uint32_t rank, int budget,
			 const struct muster_wire_events *events, void *owner)
{
	struct muster_rings_peer *peer = &rings->peers[rank];
	struct muster_packet packet;
	const void *payload;
	int nr = 0, ret;

	if (peer->broken)
		return 0;
	do {
		ret = muster_ring_poll(&peer->from, &packet, &payload);
		if (!ret)
			break;
		if (ret < 0 || le32toh(packet.src_node) != rank) {
			peer->broken = true;
			return -EPROTO;
		}
		events->receive(owner, &packet, payload, le16toh(packet.length));
		muster_ring_release(&peer->from);
	} while (++nr < budget && muster_ring_waits(&peer->from));
	return nr;
}

bool muster_rings_empty(const struct muster_rings *rings)
{
	struct muster_rings_peer *peer;
	struct muster_packet packet;
	const void *payload;

	for (uint32_t word = 0; word < rings->nr_words; word++)
		for (uint64_t used = muster_rings_used(rings, word); used; used &= used - 1) {
			peer = &rings->peers[64 * word + __builtin_ctzll(used)];
			if (!peer->broken &&
			    muster_ring_poll(&peer->from, &packet, &payload))
				return false;
		}
	return true;
}
