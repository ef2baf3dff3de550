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

bool muster_mpi_defer(uintptr_t handle)
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

/* ---- all of a call ------------------------------------------------------------------------------ */

uint32_t muster_mpi_blocks_nr(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm,
			      bool of_in)
{
	const struct muster_mpi_edges *edges;
	uint32_t nr = 0;

	if (!comm->graph || call->coll < COLL_Neighbor_allgather)
		return (uint32_t)comm->size;
	edges = of_in ? &comm->graph->to : &comm->graph->from;
	for (uint32_t i = 0; i < edges->nr; i++)
		nr = edges->order[i] >= nr ? edges->order[i] + 1 : nr;
	return nr;
}

/* Arguments that a rank does not need may be anything. */
static bool is_needed(const struct muster_mpi_call *call, const struct muster_mpi_comm *comm, bool of_in)
{
	bool is_root = call->root == comm->rank;

	if ((of_in ? call->in : call->out) == MPI_IN_PLACE)
		return false;
	switch (call->coll) {
	case COLL_Gather:
	case COLL_Gatherv:
		return of_in || is_root;
	case COLL_Scatter:
	case COLL_Scatterv:
		return !of_in || is_root;
	case COLL_Neighbor_allgather:
	case COLL_Neighbor_allgatherv:
	case COLL_Neighbor_alltoall:
	case COLL_Neighbor_alltoallv:
	case COLL_Neighbor_alltoallw:
		return !comm->graph || (of_in ? comm->graph->to.nr : comm->graph->from.nr);
	default:
		return true;
	}
}

static int hold_one(struct muster_mpi_types *held, MPI_Datatype type)
{
	int err = muster_mpi_type_hold(type);

	if (!err)
		held->types[held->nr++] = type;
	return err;
}

/* Blocks without elements may have any type. */
static int hold_side(struct muster_mpi_types *held, const struct muster_mpi_blocks *blocks, uint32_t nr)
{
	int err = 0;

	if (!blocks->types)
		return blocks->type ? hold_one(held, blocks->type) : 0;
	for (uint32_t i = 0; i < nr && !err; i++) {
		uint32_t which = blocks->order ? blocks->order[i] : i;

		if (blocks->counts[which])
			err = hold_one(held, blocks->types[which]);
	}
	return err;
}

int muster_mpi_types_hold(struct muster_mpi_types *held, const struct muster_mpi_call *call,
			  const struct muster_mpi_comm *comm)
{
	const struct muster_mpi_graph *graph = call->coll < COLL_Neighbor_allgather ? NULL : comm->graph;
	const struct muster_mpi_blocks ins = muster_mpi_blocks_in(call, graph ? graph->to.order : NULL);
	const struct muster_mpi_blocks outs = muster_mpi_blocks_out(call, graph ? graph->from.order : NULL);
	uint32_t nr_in = graph ? graph->to.nr : (uint32_t)comm->size;
	uint32_t nr_out = graph ? graph->from.nr : (uint32_t)comm->size;
	int err = 0;

	held->types = calloc((size_t)nr_in + nr_out + 2, sizeof(*held->types));
	if (!held->types)
		return -ENOMEM;
	if (call->op && !muster_mpi_op_hold(call->op)) {
		held->op = call->op;
		held->has_op = true;
	}
	if (is_needed(call, comm, true))
		err = hold_side(held, &ins, nr_in);
	if (!err && is_needed(call, comm, false))
		err = hold_side(held, &outs, nr_out);
	return err;
}

void muster_mpi_types_let_go(struct muster_mpi_types *held)
{
	for (uint32_t i = 0; i < held->nr; i++)
		muster_mpi_type_let_go(held->types[i]);
	free(held->types);
	if (held->has_op)
		muster_mpi_op_let_go(held->op);
}
