// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MPI's types and operations in the library's words. What combines is a named type, found in a
 * table; what is only moved may be of any type, and is bytes if it has no gaps. What was found
 * out of a derived type is kept with it, as an attribute.
 */
#include "shim.h"

#include <limits.h>
#include <stdlib.h>

enum {
	SLOTS = 256,		/* of the table; a power of two, well above the number of types */
	INTEGER = 1,		/* sum, min, logical, bits */
	REAL = 2,		/* sum, min */
	COMPLEX = 4,		/* sum */
	LOGICAL = 8,
	BITS = 16,
	PAIR = 32,		/* minloc */
	FOLDED = 0xff,		/* no type of the library's: MPI combines it (fold.c) */
};

struct named {
	MPI_Datatype type;
	uint32_t muster;	/* 0: the slot is free */
	uint32_t ops;
	uint64_t bytes;
};

static struct named table[SLOTS];
static int keyval = MPI_KEYVAL_INVALID;

static size_t slot_of(MPI_Datatype type)
{
	uint64_t key = (uint64_t)(uintptr_t)type * 0x9e3779b97f4a7c15ull;
	size_t slot = key >> 56;

	while (table[slot].muster && table[slot].type != type)
		slot = (slot + 1) % SLOTS;
	return slot;
}

/* A type that this MPI was built without is the null type. */
static void name(MPI_Datatype type, uint32_t muster, uint32_t ops, uint64_t bytes)
{
	if (type != MPI_DATATYPE_NULL)
		table[slot_of(type)] = (struct named){ type, muster, ops, bytes };
}

static void name_integer(MPI_Datatype type, bool is_signed)
{
	static const enum muster_type types[2][9] = {
		{ [1] = MUSTER_U8, [2] = MUSTER_U16, [4] = MUSTER_U32, [8] = MUSTER_U64 },
		{ [1] = MUSTER_I8, [2] = MUSTER_I16, [4] = MUSTER_I32, [8] = MUSTER_I64 },
	};
	int bytes = 0;

	if (type != MPI_DATATYPE_NULL)
		PMPI_Type_size(type, &bytes);
	if (bytes > 0 && bytes <= 8 && types[is_signed][bytes])
		name(type, types[is_signed][bytes], INTEGER, (uint64_t)bytes);
}

static void name_integers(void)
{
	const MPI_Datatype sgned[] = {
		MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT8_T,
		MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT,
		MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
	};
	const MPI_Datatype unsgned[] = {
		MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
		MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T,
	};

	for (size_t i = 0; i < sizeof(sgned) / sizeof(*sgned); i++)
		name_integer(sgned[i], true);
	for (size_t i = 0; i < sizeof(unsgned) / sizeof(*unsgned); i++)
		name_integer(unsgned[i], false);
}

/* MPI has no arithmetic of characters, but both MPIs have. */
static void name_others(void)
{
	name(MPI_CHAR, CHAR_MIN ? MUSTER_I8 : MUSTER_U8, INTEGER, 1);
	name(MPI_FLOAT, MUSTER_F32, REAL, 4);
	name(MPI_DOUBLE, MUSTER_F64, REAL, 8);
	name(MPI_REAL, MUSTER_F32, REAL, 4);
	name(MPI_REAL4, MUSTER_F32, REAL, 4);
	name(MPI_REAL8, MUSTER_F64, REAL, 8);
	name(MPI_DOUBLE_PRECISION, MUSTER_F64, REAL, 8);
	name(MPI_C_FLOAT_COMPLEX, MUSTER_C32, COMPLEX, 8);
	name(MPI_C_DOUBLE_COMPLEX, MUSTER_C64, COMPLEX, 16);
	name(MPI_COMPLEX, MUSTER_C32, COMPLEX, 8);
	name(MPI_DOUBLE_COMPLEX, MUSTER_C64, COMPLEX, 16);
	name(MPI_COMPLEX8, MUSTER_C32, COMPLEX, 8);
	name(MPI_COMPLEX16, MUSTER_C64, COMPLEX, 16);
	name(MPI_CXX_FLOAT_COMPLEX, MUSTER_C32, COMPLEX, 8);
	name(MPI_CXX_DOUBLE_COMPLEX, MUSTER_C64, COMPLEX, 16);
	name(MPI_C_BOOL, MUSTER_U8, LOGICAL, 1);
	name(MPI_CXX_BOOL, MUSTER_U8, LOGICAL, 1);
	name(MPI_LOGICAL, MUSTER_I32, LOGICAL, 4);
#ifdef MPI_LOGICAL1
	name(MPI_LOGICAL1, MUSTER_I8, LOGICAL, 1);
	name(MPI_LOGICAL2, MUSTER_I16, LOGICAL, 2);
	name(MPI_LOGICAL4, MUSTER_I32, LOGICAL, 4);
	name(MPI_LOGICAL8, MUSTER_I64, LOGICAL, 8);
#endif
	name(MPI_BYTE, MUSTER_U8, BITS, 1);
	name(MPI_FLOAT_INT, MUSTER_F32_I32, PAIR, 8);
	name(MPI_DOUBLE_INT, MUSTER_F64_I32, PAIR, 16);
	name(MPI_SHORT_INT, MUSTER_I16_I32, PAIR, 8);
	name(MPI_2INT, MUSTER_I32_I32, PAIR, 8);
	name(MPI_2INTEGER, MUSTER_I32_I32, PAIR, 8);
	name(MPI_LONG_INT, MUSTER_I64_I32, PAIR, 16);
}

static void name_folded(MPI_Datatype type, uint32_t ops)
{
	int bytes = 0;

	if (type != MPI_DATATYPE_NULL && !PMPI_Type_size(type, &bytes) && bytes > 0)
		name(type, FOLDED, ops, (uint64_t)bytes);
}

static void name_all_folded(void)
{
	name_folded(MPI_LONG_DOUBLE, REAL);
	name_folded(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX);
	name_folded(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEX);
	name_folded(MPI_REAL16, REAL);
	name_folded(MPI_COMPLEX32, COMPLEX);
	name_folded(MPI_LONG_DOUBLE_INT, PAIR);
	name_folded(MPI_2REAL, PAIR);
	name_folded(MPI_2DOUBLE_PRECISION, PAIR);
}

/* ---- reductions ---------------------------------------------------------------------------- */

static const struct operation {
	MPI_Op op;
	enum muster_op muster;
	uint32_t types;
} operations[] = {
	{ MPI_SUM, MUSTER_SUM, INTEGER | REAL | COMPLEX },
	{ MPI_MIN, MUSTER_MIN, INTEGER | REAL },
	{ MPI_MAX, MUSTER_MAX, INTEGER | REAL },
	{ MPI_PROD, MUSTER_PROD, INTEGER | REAL | COMPLEX },
	{ MPI_LAND, MUSTER_LAND, INTEGER | LOGICAL },
	{ MPI_LOR, MUSTER_LOR, INTEGER | LOGICAL },
	{ MPI_LXOR, MUSTER_LXOR, INTEGER | LOGICAL },
	{ MPI_BAND, MUSTER_BAND, INTEGER | BITS },
	{ MPI_BOR, MUSTER_BOR, INTEGER | BITS },
	{ MPI_BXOR, MUSTER_BXOR, INTEGER | BITS },
	{ MPI_MINLOC, MUSTER_MINLOC, PAIR },
	{ MPI_MAXLOC, MUSTER_MAXLOC, PAIR },
};

static const struct operation *operation_of(MPI_Op op)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (operations[i].op == op)
			return &operations[i];
	return NULL;
}

bool muster_mpi_op_is_named(MPI_Op op)
{
	return operation_of(op) || op == MPI_REPLACE || op == MPI_NO_OP;
}

/* Of MPI's own types some have no name, and nobody frees them either. */
static bool is_mpis_own(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static int combiner_of(MPI_Datatype type)
{
	int integers, addresses, types, combiner = MPI_COMBINER_NAMED;

	muster_mpi_beneath.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
	return combiner;
}

/* The type that a kind of Fortran's is, by its size. MPI_DATATYPE_NULL: C has none. */
static MPI_Datatype type_of_kind(int combiner, int bytes)
{
	static const MPI_Datatype integers[] = { [1] = MPI_INT8_T, [2] = MPI_INT16_T, [4] = MPI_INT32_T, [8] = MPI_INT64_T };
	bool is_integer = combiner == MPI_COMBINER_F90_INTEGER, is_complex = combiner == MPI_COMBINER_F90_COMPLEX;

	if (is_integer)
		return bytes <= 8 && integers[bytes] ? integers[bytes] : MPI_DATATYPE_NULL;
	if (is_complex)
		return bytes == 8 ? MPI_C_FLOAT_COMPLEX : bytes == 16 ? MPI_C_DOUBLE_COMPLEX : MPI_DATATYPE_NULL;
	return bytes == 4 ? MPI_FLOAT : bytes == 8 ? MPI_DOUBLE : MPI_DATATYPE_NULL;
}

static struct named named_of(MPI_Datatype type)
{
	struct named named = table[slot_of(type)];
	int combiner, bytes = 0;
	MPI_Datatype same;

	if (named.muster || type == MPI_DATATYPE_NULL)
		return named;
	combiner = combiner_of(type);
	if (combiner == MPI_COMBINER_NAMED || !is_mpis_own(combiner) || PMPI_Type_size(type, &bytes))
		return named;
	same = type_of_kind(combiner, bytes);
	if (same != MPI_DATATYPE_NULL)
		return table[slot_of(same)];
	return (struct named){ type, FOLDED, combiner == MPI_COMBINER_F90_INTEGER ? INTEGER :
			       combiner == MPI_COMBINER_F90_REAL ? REAL : COMPLEX, (uint64_t)bytes };
}

/* No operation of MPI's own combines it. */
static bool is_derived(MPI_Datatype type)
{
	return type == MPI_DATATYPE_NULL || !is_mpis_own(combiner_of(type));
}

enum muster_mpi_reason muster_mpi_reduction_get(MPI_Datatype type, MPI_Op op,
						struct muster_mpi_reduction *reduction)
{
	const struct operation *operation = operation_of(op);
	struct named named;

	*reduction = (struct muster_mpi_reduction){ 0 };
	if (!operation)
		return muster_mpi_op_is_named(op) ? REASON_INVALID : REASON_NONE;
	named = named_of(type);
	if (!named.muster)
		return is_derived(type) ? REASON_INVALID : REASON_TYPE;
	if (!(named.ops & operation->types))
		return REASON_INVALID;
	if (named.muster != FOLDED)
		*reduction = (struct muster_mpi_reduction){ named.muster, operation->muster, named.bytes };
	return REASON_NONE;
}

/* ---- data that is moved ------------------------------------------------------------------------ */

static void type_free(MPI_Datatype type)
{
	if (!is_mpis_own(combiner_of(type)))
		muster_mpi_beneath.Type_free(&type);
}

static bool has_no_gaps(MPI_Datatype type)
{
	MPI_Aint low, extent;
	MPI_Count bytes;

	return !PMPI_Type_size_x(type, &bytes) && !PMPI_Type_get_extent(type, &low, &extent) && !low &&
	       bytes >= 0 && bytes == extent;
}

/* Size and extent do not tell: blocks may lie in another order than they are sent in. */
static bool is_plain(MPI_Datatype type)
{
	int nr_integers, nr_addresses, nr_types, combiner, integers[4];
	MPI_Aint addresses[4];
	MPI_Datatype inner;
	bool plain;

	if (muster_mpi_beneath.Type_get_envelope(type, &nr_integers, &nr_addresses, &nr_types, &combiner))
		return false;
	if (is_mpis_own(combiner))
		return has_no_gaps(type);
	if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS &&
	    combiner != MPI_COMBINER_RESIZED)
		return false;
	if (nr_integers > 4 || nr_addresses > 4 || nr_types != 1 ||
	    PMPI_Type_get_contents(type, nr_integers, nr_addresses, nr_types, integers, addresses,
				   &inner))
		return false;
	plain = is_plain(inner);
	type_free(inner);
	if (combiner == MPI_COMBINER_RESIZED)
		return plain && has_no_gaps(type);
	return plain;
}

/* MPI says so of what it is to pack: nothing. */
static bool is_committed(MPI_Datatype type)
{
	char nothing = 0;
	int position = 0;

	return !PMPI_Pack(&nothing, 0, type, &nothing, sizeof(nothing), &position, muster_mpi.own);
}

static bool look_into(MPI_Datatype type, struct muster_mpi_type *info)
{
	MPI_Aint low, extent;
	MPI_Count bytes;

	if (!is_committed(type) || PMPI_Type_size_x(type, &bytes) || bytes < 0 || PMPI_Type_get_extent(type, &low, &extent))
		return false;
	info->bytes = (uint64_t)bytes;
	info->extent = extent;
	info->plain = is_plain(type);
	return true;
}

static int forget(MPI_Datatype type, int key, void *info, void *extra)
{
	(void)type;
	(void)key;
	(void)extra;
	free(info);
	return MPI_SUCCESS;
}

static void remember(MPI_Datatype type, const struct muster_mpi_type *info)
{
	struct muster_mpi_type *kept = malloc(sizeof(*kept));

	if (!kept)
		return;
	*kept = *info;
	if (PMPI_Type_set_attr(type, keyval, kept))
		free(kept);
}

static bool find(MPI_Datatype type, struct muster_mpi_type *info)
{
	struct muster_mpi_type *kept;
	int found = 0;

	if (type == MPI_DATATYPE_NULL || PMPI_Type_get_attr(type, keyval, &kept, &found))
		return false;
	if (found) {
		*info = *kept;
		return true;
	}
	if (!look_into(type, info))
		return false;
	remember(type, info);
	return true;
}

bool muster_mpi_type_get(MPI_Datatype type, struct muster_mpi_type *info)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of what is kept with types */
	const struct named *named = &table[slot_of(type)];
	bool is_one;

	if (named->muster && named->ops != PAIR) {
		*info = (struct muster_mpi_type){ named->bytes, (int64_t)named->bytes, true };
		return true;
	}
	pthread_mutex_lock(&lock);
	is_one = find(type, info);
	pthread_mutex_unlock(&lock);
	return is_one;
}

int muster_mpi_types_open(void)
{
	name_integers();
	name_others();
	name_all_folded();
	return PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &keyval, NULL);
}
