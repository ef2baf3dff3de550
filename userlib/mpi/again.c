// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Persistent requests. The program has the MPI library's own, which is never started: each start
 * makes a nonblocking operation, and its request stands in while the MPI library waits or tests.
 * When that has ended there is MPI_REQUEST_NULL in its place, which the MPI library takes as
 * it takes one that is inactive. Ranks may start several in any order, so each request has a communicator of
 * the library's own.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };		/* a power of two */

struct again {
	MPI_Request handle;		/* the program's */
	MPI_Request active;		/* MPI_REQUEST_NULL: it is not started, or has ended */
	struct muster_mpi_comm *comm;	/* a twin of the call's; its one reference */
	struct muster_mpi_call call;
	MPI_Datatype *in_types, *out_types;	/* copies of the call's */
	struct muster_mpi_types held;
	struct again *next;
};

static struct again *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of these; one request is for one thread */
static atomic_uint nr;

static struct again **bucket_of(MPI_Request handle)
{
	return &buckets[((uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15ull) >> 56];
}

/* NULL: it is the MPI library's alone. */
static struct again *find(MPI_Request handle)
{
	struct again *again;

	if (!atomic_load(&nr))
		return NULL;
	pthread_mutex_lock(&lock);
	again = *bucket_of(handle);
	while (again && again->handle != handle)
		again = again->next;
	pthread_mutex_unlock(&lock);
	return again;
}

static void add(struct again *again)
{
	struct again **bucket = bucket_of(again->handle);

	pthread_mutex_lock(&lock);
	again->next = *bucket;
	*bucket = again;
	atomic_fetch_add(&nr, 1);
	pthread_mutex_unlock(&lock);
}

static void take_out(struct again *again)
{
	struct again **place = bucket_of(again->handle);

	pthread_mutex_lock(&lock);
	while (*place != again)
		place = &(*place)->next;
	*place = again->next;
	atomic_fetch_sub(&nr, 1);
	pthread_mutex_unlock(&lock);
}

/* ---- making and freeing ------------------------------------------------------------------------ */

static void again_free(struct again *again)
{
	muster_mpi_types_let_go(&again->held);
	free(again->in_types);
	free(again->out_types);
	pthread_mutex_lock(&muster_mpi.lock);
	muster_mpi_comm_put(again->comm);
	pthread_mutex_unlock(&muster_mpi.lock);
	free(again);
}

/* Fortran's are gone when the call returns. */
static int types_copy(const MPI_Datatype **types, MPI_Datatype **copy, uint32_t nr_types, bool in_place)
{
	if (!*types || in_place)
		return 0;
	*copy = malloc((nr_types + 1) * sizeof(**copy));
	if (!*copy)
		return -ENOMEM;
	memcpy(*copy, *types, nr_types * sizeof(**copy));
	*types = *copy;
	return 0;
}

static struct again *again_new(const struct muster_mpi_call *call, struct muster_mpi_comm *comm)
{
	struct again *again = calloc(1, sizeof(*again));

	if (!again)
		return NULL;
	*again = (struct again){ .active = MPI_REQUEST_NULL, .comm = comm, .call = *call };
	if (!types_copy(&again->call.in_types, &again->in_types, muster_mpi_blocks_nr(call, comm, true),
			call->in == MPI_IN_PLACE) &&
	    !types_copy(&again->call.out_types, &again->out_types, muster_mpi_blocks_nr(call, comm, false),
			false) &&
	    !muster_mpi_types_hold(&again->held, call, comm))
		return again;
	again_free(again);
	return NULL;
}

int muster_mpi_persist(int err, const struct muster_mpi_call *call, MPI_Request *request)
{
	struct muster_mpi_comm *comm;
	enum muster_mpi_reason why;
	struct again *again;

	if (err)
		return err;
	comm = muster_mpi_comm_find(call->comm, true, &why);
	if (comm)
		why = muster_mpi_cannot(call, comm);
	comm = comm && !why ? muster_mpi_comm_twin(comm, &why) : NULL;
	if (!comm && muster_mpi_may_pass(why))
		return MPI_SUCCESS;
	if (!comm) {
		muster_mpi_beneath.Request_free(request);
		return muster_mpi_refuse(call, why);
	}
	again = again_new(call, comm);
	if (!again)
		abort();	/* the others count on it */
	again->handle = *request;
	add(again);
	return MPI_SUCCESS;
}

int PMPI_Request_free(MPI_Request *request)
{
	struct again *again = request ? find(*request) : NULL;

	if (again) {
		take_out(again);
		if (again->active != MPI_REQUEST_NULL)
			muster_mpi_beneath.Request_free(&again->active);	/* it ends by itself */
		again_free(again);
	}
	return muster_mpi_beneath.Request_free(request);
}

/* ---- starting ---------------------------------------------------------------------------------- */

static int start(struct again *again)
{
	if (again->active == MPI_REQUEST_NULL)
		return muster_mpi_begin_on(again->comm, &again->call, &again->active);
	PMPI_Comm_call_errhandler(again->call.comm, MPI_ERR_REQUEST);
	return MPI_ERR_REQUEST;
}

int PMPI_Start(MPI_Request *request)
{
	struct again *again = request ? find(*request) : NULL;

	return again ? start(again) : muster_mpi_beneath.Start(request);
}

int PMPI_Startall(int count, MPI_Request requests[])
{
	int err = MPI_SUCCESS;

	if (!atomic_load(&nr))
		return muster_mpi_beneath.Startall(count, requests);
	for (int i = 0; i < count && !err; i++)
		err = PMPI_Start(&requests[i]);
	return err;
}

/* ---- waiting and testing ------------------------------------------------------------------------- */

/* Those of an array that others stand in for. */
struct swaps {
	struct again **agains;
	int *places;
	int nr;
};

static int swap_in(struct swaps *swaps, int count, MPI_Request *requests)
{
	struct again *again;

	*swaps = (struct swaps){ 0 };
	if (!atomic_load(&nr) || count <= 0 || !requests)
		return 0;
	swaps->agains = malloc((size_t)count * sizeof(*swaps->agains));
	swaps->places = malloc((size_t)count * sizeof(*swaps->places));
	if (!swaps->agains || !swaps->places) {
		free(swaps->agains);
		free(swaps->places);
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < count; i++) {
		again = find(requests[i]);
		if (!again)
			continue;
		swaps->agains[swaps->nr] = again;
		swaps->places[swaps->nr++] = i;
		requests[i] = again->active;
	}
	return 0;
}

static int swap_out(struct swaps *swaps, MPI_Request *requests, int err)
{
	for (int i = 0; i < swaps->nr; i++) {
		swaps->agains[i]->active = requests[swaps->places[i]];
		requests[swaps->places[i]] = swaps->agains[i]->handle;
	}
	free(swaps->agains);
	free(swaps->places);
	return err;
}

/* A call of the MPI library, with those standing in. */
#define WITH_ACTIVE(count, requests, call)	({			\
	struct swaps swaps_;						\
	int err_ = swap_in(&swaps_, count, requests);			\
	err_ ? err_ : swap_out(&swaps_, requests, muster_mpi_beneath.call); })

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct again *again = request ? find(*request) : NULL;

	return muster_mpi_failed_one(muster_mpi_beneath.Wait(again ? &again->active : request, status), status);
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct again *again = request ? find(*request) : NULL;

	return muster_mpi_failed_one(muster_mpi_beneath.Test(again ? &again->active : request, flag, status),
				     status);
}

int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	return muster_mpi_failed_some(WITH_ACTIVE(count, requests, Waitall(count, requests, statuses)), count,
				      statuses);
}

int PMPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
	return muster_mpi_failed_some(WITH_ACTIVE(count, requests, Testall(count, requests, flag, statuses)),
				      count, statuses);
}

int PMPI_Waitany(int count, MPI_Request requests[], int *which, MPI_Status *status)
{
	return muster_mpi_failed_one(WITH_ACTIVE(count, requests, Waitany(count, requests, which, status)),
				     status);
}

int PMPI_Testany(int count, MPI_Request requests[], int *which, int *flag, MPI_Status *status)
{
	return muster_mpi_failed_one(WITH_ACTIVE(count, requests, Testany(count, requests, which, flag, status)),
				     status);
}

int PMPI_Waitsome(int count, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
	int err = WITH_ACTIVE(count, requests, Waitsome(count, requests, done, which, statuses));

	return muster_mpi_failed_some(err, done ? *done : 0, statuses);
}

int PMPI_Testsome(int count, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
	int err = WITH_ACTIVE(count, requests, Testsome(count, requests, done, which, statuses));

	return muster_mpi_failed_some(err, done ? *done : 0, statuses);
}

/* MPICH asks nobody here whether one of our requests has ended. */
int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	struct again *again = find(request);

	muster_mpi_advance();
	return muster_mpi_failed_look(muster_mpi_beneath.Request_get_status(again ? again->active : request, flag,
									    status), status);
}

#define SAME(name) \
	extern __typeof__(MPI_##name) MPI_##name __attribute__((alias("PMPI_" #name)));
MUSTER_MPI_REQUESTS(SAME)
