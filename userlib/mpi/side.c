// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Buffers as the library takes them: bytes, one behind the other in each block. Where the
 * caller's type has gaps, a packed copy stands for them, made and emptied by MPI_Pack and
 * MPI_Unpack; what ranks of other types see is the same, as data is in the order of the type.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ELSEWHERE = 4096 };	/* an address, of nothing */

/* ---- packing ---------------------------------------------------------------------------- */

/* How many elements MPI_Pack, which counts by int, takes at once; 0: not even one. */
static int64_t elements_at_once(const struct muster_mpi_block *block, uint64_t bytes)
{
	int64_t nr = bytes ? INT_MAX / (int64_t)bytes : INT_MAX;

	return nr < block->count ? nr : block->count;
}

static int pack_at(char *at, int nr, MPI_Datatype type, char *packed, int bytes, bool unpack)
{
	int position = 0;

	return unpack ? PMPI_Unpack(packed, bytes, &position, at, nr, type, muster_mpi.own) :
			PMPI_Pack(at, nr, type, packed, bytes, &position, muster_mpi.own);
}

/* MPICH's MPI_Pack takes MPI_BOTTOM for no buffer: begin elsewhere, with data as far below. */
static int pack_at_bottom(int nr, MPI_Datatype type, char *packed, int bytes, bool unpack)
{
	MPI_Aint below = -ELSEWHERE;
	MPI_Datatype lower;
	int err = PMPI_Type_create_hindexed(1, &nr, &below, type, &lower);

	if (err)
		return err;
	err = PMPI_Type_commit(&lower);
	if (!err)
		err = pack_at((char *)ELSEWHERE, 1, lower, packed, bytes, unpack);
	muster_mpi_beneath.Type_free(&lower);
	return err;
}

static int pack_some(const struct muster_mpi_type *info, const struct muster_mpi_block *block,
		     int64_t first, int nr, char *packed, bool unpack)
{
	char *at = block->at + first * info->extent;
	int bytes = (int)(info->bytes * (uint64_t)nr);
	int err = at ? pack_at(at, nr, block->type, packed, bytes, unpack) :
		       pack_at_bottom(nr, block->type, packed, bytes, unpack);

	if (!err)
		return 0;
	return muster_mpi_fail(-EINVAL, "%s refuses %d elements of a type of %llu bytes: see that type and buffer are right, and that there is memory",
			       unpack ? "MPI_Unpack" : "MPI_Pack", nr, (unsigned long long)info->bytes);
}

static int pack(const struct muster_mpi_block *block, char *packed, bool unpack)
{
	struct muster_mpi_type info;
	int64_t step, nr;
	int err = 0;

	if (!block->bytes)
		return 0;
	if (!muster_mpi_type_get(block->type, &info))
		return muster_mpi_fail(-EINVAL, "a type of the buffer is none any more: free it when its operation has ended");
	if (info.plain) {
		memcpy(unpack ? block->at : packed, unpack ? packed : block->at, block->bytes);
		return 0;
	}
	step = elements_at_once(block, info.bytes);
	if (!step)
		return muster_mpi_fail(-EOVERFLOW, "a type with gaps has %llu bytes of data, more than MPI_Pack takes at once (2 GiB): use a count of a smaller type",
				       (unsigned long long)info.bytes);
	for (int64_t first = 0; first < block->count && !err; first += nr) {
		nr = block->count - first < step ? block->count - first : step;
		err = pack_some(&info, block, first, (int)nr, packed, unpack);
		packed += info.bytes * (uint64_t)nr;
	}
	return err;
}

int muster_mpi_side_pack_block(struct muster_mpi_side *side, uint32_t block)
{
	uint64_t at = side->displs ? side->displs[block] : side->bytes * block;

	return side->packed ? pack(&side->blocks[block], side->packed + at, false) : 0;
}

int muster_mpi_side_pack(struct muster_mpi_side *side)
{
	int err = 0;

	for (uint32_t i = 0; i < side->nr && side->packed && !err; i++)
		err = muster_mpi_side_pack_block(side, i);
	return err;
}

int muster_mpi_side_unpack(struct muster_mpi_side *side)
{
	int err = 0;

	for (uint32_t i = 0; i < side->nr && side->packed && !err; i++)
		err = pack(&side->blocks[i],
			   side->packed + (side->displs ? side->displs[i] : side->bytes * i), true);
	return err;
}

int muster_mpi_side_hold(struct muster_mpi_side *side)
{
	for (uint32_t i = 0; i < side->nr && side->packed; i++) {
		if (side->blocks[i].bytes && muster_mpi_type_hold(side->blocks[i].type))
			return -ENOMEM;
		side->held = i + 1;
	}
	return 0;
}

void muster_mpi_side_free(struct muster_mpi_side *side)
{
	for (uint32_t i = 0; i < side->held; i++)
		if (side->blocks[i].bytes)
			muster_mpi_type_let_go(side->blocks[i].type);
	free(side->blocks);
	free(side->counts);
	free(side->packed);
}

/* ---- even blocks ---------------------------------------------------------------------------- */

static int no_memory(uint64_t bytes)
{
	return muster_mpi_fail(-ENOMEM, "no memory for a copy of %llu bytes of a buffer: free some, or use a type without gaps",
			       (unsigned long long)bytes);
}

static int room_for_blocks(struct muster_mpi_side *side, uint64_t bytes)
{
	side->blocks = calloc(side->nr, sizeof(*side->blocks));
	side->packed = malloc(bytes ? bytes : 1);
	return side->blocks && side->packed ? 0 : no_memory(bytes);
}

static int even_copy(struct muster_mpi_side *side, char *buffer, int64_t count, MPI_Datatype type,
		     int64_t extent)
{
	int err = room_for_blocks(side, side->bytes * side->nr);

	for (uint32_t i = 0; i < side->nr && !err; i++)
		side->blocks[i] = (struct muster_mpi_block){
			.at = buffer + (int64_t)i * count * extent,
			.count = count,
			.type = type,
			.bytes = side->bytes,
		};
	side->at = side->packed;
	return err;
}

int muster_mpi_side_even(struct muster_mpi_side *side, const void *buffer, int64_t count,
			 MPI_Datatype type, uint32_t nr)
{
	struct muster_mpi_type info;

	if (count < 0 || !muster_mpi_type_get(type, &info))
		return -EINVAL;
	*side = (struct muster_mpi_side){
		.at = (char *)buffer,
		.bytes = (uint64_t)count * info.bytes,
		.nr = nr,
		.low = (char *)buffer,
	};
	side->high = side->low + (info.plain ? side->bytes * nr : 0);
	if (!info.plain && side->bytes)
		return even_copy(side, (char *)buffer, count, type, info.extent);
	return buffer || !side->bytes ? 0 : -EINVAL;
}

int muster_mpi_side_unread(struct muster_mpi_side *side, uint64_t bytes)
{
	*side = (struct muster_mpi_side){ .packed = malloc(bytes ? bytes : 1) };
	side->at = side->packed;
	return side->at ? 0 : no_memory(bytes);
}

int muster_mpi_side_order(struct muster_mpi_side *side, const uint32_t *order)
{
	struct muster_mpi_type info;
	int64_t apart;
	char *first;
	int err;

	if (!side->bytes)
		return 0;
	err = muster_mpi_side_copy(side);
	if (err || !muster_mpi_type_get(side->blocks[0].type, &info))
		return err ? err : -EINVAL;
	first = side->blocks[0].at;
	apart = side->blocks[0].count * info.extent;
	for (uint32_t i = 0; i < side->nr; i++)
		side->blocks[i].at = first + order[i] * apart;
	return 0;
}

/* ---- blocks with lengths of their own --------------------------------------------------------- */

static void span(struct muster_mpi_side *side, char *at, uint64_t bytes)
{
	if (!bytes)
		return;
	if (!side->low || at < side->low)
		side->low = at;
	if (at + bytes > side->high)
		side->high = at + bytes;
}

/* Plain all of them: they stay where they are. */
static void stay(struct muster_mpi_side *side, const char *buffer)
{
	side->at = side->low ? side->low : (char *)buffer;
	for (uint32_t i = 0; i < side->nr; i++)
		side->displs[i] = side->counts[i] ? (uint64_t)(side->blocks[i].at - side->at) : 0;
}

int muster_mpi_side_copy(struct muster_mpi_side *side)
{
	uint64_t at = 0;

	if (side->packed)
		return 0;
	if (!side->counts)
		return even_copy(side, side->at, (int64_t)side->bytes, MPI_BYTE, 1);
	for (uint32_t i = 0; i < side->nr; i++) {
		side->displs[i] = at;
		at += side->counts[i];
	}
	side->packed = malloc(at ? at : 1);
	side->at = side->packed;
	return side->packed ? 0 : no_memory(at);
}

/* Where it begins in the buffer. */
static int64_t begins(const struct muster_mpi_blocks *blocks, uint32_t which, int64_t extent)
{
	if (blocks->ats)
		return blocks->ats[which];
	return blocks->types ? blocks->displs[which] : blocks->displs[which] * extent;
}

/* Block i is what the call has as that. *info is the type's, where all have one. */
static int block_set(struct muster_mpi_side *side, char *buffer, uint32_t i,
		     const struct muster_mpi_blocks *blocks, struct muster_mpi_type *info)
{
	uint32_t which = blocks->order ? blocks->order[i] : i;
	int count = blocks->counts[which];
	MPI_Datatype type = blocks->types ? blocks->types[which] : blocks->type;

	if (count < 0 || (blocks->types && count && !muster_mpi_type_get(type, info)))
		return -EINVAL;
	side->counts[i] = count ? (uint64_t)count * info->bytes : 0;
	side->blocks[i] = (struct muster_mpi_block){
		buffer + begins(blocks, which, info->extent), count, type, side->counts[i]
	};
	side->bytes += side->counts[i];
	return 0;
}

int muster_mpi_side_uneven(struct muster_mpi_side *side, const void *buffer,
			   const struct muster_mpi_blocks *blocks, uint32_t nr)
{
	struct muster_mpi_type info = { 0 };
	bool plain = true;

	*side = (struct muster_mpi_side){ .nr = nr };
	if (!nr)
		return 0;
	if (!blocks->counts || (!blocks->displs && !blocks->ats) ||
	    (!blocks->types && !muster_mpi_type_get(blocks->type, &info)))
		return -EINVAL;
	side->counts = calloc(2 * (size_t)nr, sizeof(*side->counts));
	side->blocks = calloc(nr, sizeof(*side->blocks));
	if (!side->counts || !side->blocks)
		return no_memory(0);
	side->displs = side->counts + nr;
	for (uint32_t i = 0; i < nr; i++) {
		if (block_set(side, (char *)buffer, i, blocks, &info))
			return -EINVAL;
		if (side->counts[i] && info.plain)
			span(side, side->blocks[i].at, side->counts[i]);
		plain &= info.plain || !side->counts[i];
	}
	if (!plain)
		return muster_mpi_side_copy(side);
	stay(side, buffer);
	return buffer || !side->bytes || blocks->ats ? 0 : -EINVAL;	/* which may count from MPI_BOTTOM */
}

/* ---- both sides --------------------------------------------------------------------------------- */

static bool overlap(const struct muster_mpi_side *a, const struct muster_mpi_side *b)
{
	return !a->packed && !b->packed && a->low < b->high && b->low < a->high;
}

int muster_mpi_sides_part(struct muster_mpi_side *in, const char *from, const struct muster_mpi_side *out,
			  const char *to)
{
	if (!overlap(in, out))
		return 0;
	if (MUSTER_MPI_LOOKS && from == to)
		return -EINVAL;
	return muster_mpi_side_copy(in);
}
