// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rings of one rank (rings.h). All ranks of a job compute the same sizes, so
 * memory of another size is refused. A ring belongs to one rank: nobody speaks for
 * another in it.
 */
#include "rings.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regions.h"

enum {
	RING_BYTES_FEW = 256 << 10,	/* of each ring, up to RANKS_FEW ranks */
	RING_BYTES_MANY = 64 << 10,
	RANKS_FEW = 8,
	PAGE = 4096,
};

/*
 * What the other end writes is mapped for reading. (Rings lie on pages of 4 KiB; where the
 * kernel's are larger, nothing is kept from anybody.)
 */
static int protect(void *addr, size_t bytes, int access)
{
	if (sysconf(_SC_PAGESIZE) > PAGE)
		access = PROT_READ | PROT_WRITE;
	return mprotect(addr, bytes, access) ? -errno : 0;
}

static int protect_own(struct muster_rings *rings)
{
	size_t bytes;
	void *lines = muster_ring_lines(&rings->inbound, 0, &bytes);

	return protect(lines, rings->size * bytes, PROT_READ);
}

static int protect_peer(const struct muster_rings *rings, const struct muster_ring_region *region)
{
	size_t bytes;
	void *lines = muster_ring_lines(region, rings->rank, &bytes);
	int err = protect(region->head, rings->inbound_bytes, PROT_READ);

	if (!err)
		err = protect(region->head, PAGE, PROT_READ | PROT_WRITE);
	return err ? err : protect(lines, bytes, PROT_READ | PROT_WRITE);
}

int muster_rings_open(struct muster_rings *rings, uint32_t rank, uint32_t size, int *fd)
{
	uint32_t ring_bytes = size <= RANKS_FEW ? RING_BYTES_FEW : RING_BYTES_MANY;
	size_t bytes = muster_ring_region_size(size, ring_bytes);
	void *memory;
	int err;

	*rings = (struct muster_rings){ .rank = rank, .size = size, .inbound_bytes = bytes };
	rings->peers = calloc(size, sizeof(*rings->peers));
	if (!rings->peers)
		return -ENOMEM;
	err = muster_memory_shared("muster-rings", bytes, 0, fd, &memory);
	if (err)
		return err;
	err = muster_ring_region_init(&rings->inbound, memory, bytes, size, ring_bytes);
	return err ? err : protect_own(rings);
}

void muster_rings_close(struct muster_rings *rings)
{
	for (uint32_t rank = 0; rank < rings->size && rings->peers; rank++)
		if (rings->peers[rank].region.head)
			munmap(rings->peers[rank].region.head, rings->inbound_bytes);
	free(rings->peers);
	if (rings->inbound.head)
		munmap(rings->inbound.head, rings->inbound_bytes);
}

int muster_rings_attach(struct muster_rings *rings, uint32_t rank, int fd)
{
	struct muster_rings_peer *peer = &rings->peers[rank];
	void *memory = MAP_FAILED;
	int err;

	/* Shorter memory must fail here, and not when it is written to. */
	if (muster_memory_sound(fd, rings->inbound_bytes))
		memory = mmap(NULL, rings->inbound_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (memory == MAP_FAILED)
		return -EPROTO;
	err = muster_ring_region_init(&peer->region, memory, rings->inbound_bytes, rings->size,
				      rings->inbound.ring_bytes);
	peer->region.head = memory;	/* to be unmapped */
	if (!err)
		err = protect_peer(rings, &peer->region);
	if (!err)
		err = muster_ring_producer_init(&peer->to, &peer->region, rings->rank);
	return err ? err : muster_ring_consumer_init(&peer->from, &rings->inbound, rank);
}

int muster_rings_send(struct muster_rings *rings, const struct muster_packet *packet,
		      const void *payload)
{
	uint32_t rank = le32toh(packet->dst_node);
	struct muster_rings_peer *peer;
	int err;

	if (rank >= rings->size || rank == rings->rank)
		return -EHOSTUNREACH;
	peer = &rings->peers[rank];
	err = muster_ring_send(&peer->to, packet, payload);
	if (!err) {
		peer->ringing = true;
		rings->ringing = true;
	}
	return err;
}

int muster_rings_receive(struct muster_rings *rings, uint32_t rank, int budget,
			 const struct muster_wire_events *events, void *owner)
{
	struct muster_rings_peer *peer = &rings->peers[rank];
	struct muster_packet packet;
	const void *payload;
	int nr = 0, ret;

	while (nr < budget && !peer->broken) {
		ret = muster_ring_poll(&peer->from, &packet, &payload);
		if (!ret)
			break;
		if (ret < 0 || le32toh(packet.src_node) != rank) {
			peer->broken = true;
			return -EPROTO;
		}
		events->receive(owner, &packet, payload, le16toh(packet.length));
		muster_ring_release(&peer->from);
		nr++;
	}
	return nr;
}

bool muster_rings_empty(const struct muster_rings *rings)
{
	struct muster_packet packet;
	const void *payload;

	for (uint32_t rank = 0; rank < rings->size; rank++)
		if (rank != rings->rank && !rings->peers[rank].broken &&
		    muster_ring_poll(&rings->peers[rank].from, &packet, &payload))
			return false;
	return true;
}

void muster_rings_flush(struct muster_rings *rings, void (*wake)(void *owner, uint32_t rank),
			void *owner)
{
	if (!rings->ringing)
		return;
	rings->ringing = false;
	for (uint32_t rank = 0; rank < rings->size; rank++) {
		struct muster_rings_peer *peer = &rings->peers[rank];

		if (!peer->ringing)
			continue;
		peer->ringing = false;
		if (muster_ring_wants_wake(&peer->region))
			wake(owner, rank);
	}
}
