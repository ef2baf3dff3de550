// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Types and operations of the user's that something under way still needs. MPI lets a program
 * free them before, and a copy does not do: the user's function may look at the handle, and there
 * is none of an operation. So MPI_Type_free and MPI_Op_free of what is held are done when the last
 * has let go. Handles of the two kinds are never equal.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>

struct held {
	uintptr_t handle;
	uint64_t holders;
	uint64_t frees;		/* by the program, that wait; a type may be had several times */
	struct held *next;
};

static struct held *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of these */

/* What is there, or where it would be. */
static struct held **place_of(uintptr_t handle)
{
	struct held **place = &all;

	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	return place;
}

static int hold(uintptr_t handle)
{
	struct held **place, *held;

	pthread_mutex_lock(&lock);
	place = place_of(handle);
	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (*place)
			(*place)->handle = handle;
	}
	held = *place;
	if (held)
		held->holders++;
	pthread_mutex_unlock(&lock);
	return held ? 0 : -ENOMEM;
}

/* Return: how often it is to be freed now. */
static uint64_t let_go(uintptr_t handle)
{
	struct held **place, *held;
	uint64_t frees = 0;

	pthread_mutex_lock(&lock);
	place = place_of(handle);
	held = *place;
	if (!--held->holders) {
		frees = held->frees;
		*place = held->next;
		free(held);
	}
	pthread_mutex_unlock(&lock);
	return frees;
}

/* Is it held? Then it is freed later. */
static bool defer(uintptr_t handle)
{
	struct held *held;

	pthread_mutex_lock(&lock);
	held = *place_of(handle);
	if (held)
		held->frees++;
	pthread_mutex_unlock(&lock);
	return held;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Others cannot be freed, and MPI says so. */
static bool is_users(MPI_Datatype type)
{
	int integers, addresses, types, combiner = MPI_COMBINER_NAMED;

	PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
	return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
	       combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER;
}

int muster_mpi_type_hold(MPI_Datatype type)
{
	return is_users(type) ? hold((uintptr_t)type) : 0;
}

void muster_mpi_type_let_go(MPI_Datatype type)
{
	uint64_t frees = is_users(type) ? let_go((uintptr_t)type) : 0;

	while (frees--) {
		MPI_Datatype handle = type;

		muster_mpi_beneath.Type_free(&handle);
	}
}

int PMPI_Type_free(MPI_Datatype *type)
{
	if (!type || !defer((uintptr_t)*type))
		return muster_mpi_beneath.Type_free(type);
	*type = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type) __attribute__((alias("PMPI_Type_free")));

/* ---- operations ----------------------------------------------------------------------------- */

int muster_mpi_op_hold(MPI_Op op)
{
	return muster_mpi_op_is_named(op) ? 0 : hold((uintptr_t)op);
}

void muster_mpi_op_let_go(MPI_Op op)
{
	uint64_t frees = muster_mpi_op_is_named(op) ? 0 : let_go((uintptr_t)op);

	while (frees--) {
		MPI_Op handle = op;

		muster_mpi_beneath.Op_free(&handle);
	}
}

int PMPI_Op_free(MPI_Op *op)
{
	if (!op || !defer((uintptr_t)*op))
		return muster_mpi_beneath.Op_free(op);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}

int MPI_Op_free(MPI_Op *op) __attribute__((alias("PMPI_Op_free")));
