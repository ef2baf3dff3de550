// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The examples' collectives on an MPI, as it is. Its errors end the program by themselves. It
 * counts by int; sums that are prepared are those that are just started, as MPI 3 has them.
 */
#include "ranks.h"

#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

const char *const ranks_library = "MPI";
uint32_t ranks_rank, ranks_size;

static int *numbers;	/* counts and displacements of two buffers, as MPI has them */

static MPI_Datatype type_of(enum ranks_type type)
{
	switch (type) {
	case RANKS_BYTE:
		return MPI_BYTE;
	case RANKS_F32:
		return MPI_FLOAT;
	case RANKS_F64:
		return MPI_DOUBLE;
	default:
		return MPI_UINT64_T;
	}
}

static int as_int(uint64_t count)
{
	if (count > INT_MAX)
		ranks_die("%" PRIu64 " elements are more than an int counts", count);
	return (int)count;
}

/* Return: where the displacements are, behind the counts. */
static const int *convert(const uint64_t *counts, int *converted)
{
	int *displs = converted + ranks_size;
	uint64_t at = 0;

	for (uint32_t i = 0; i < ranks_size; i++) {
		converted[i] = as_int(counts[i]);
		displs[i] = as_int(at);
		at += counts[i];
	}
	return displs;
}

void ranks_begin(void)
{
	int rank, size;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	ranks_rank = (uint32_t)rank;
	ranks_size = (uint32_t)size;
	numbers = ranks_zeroed(4 * ranks_size * sizeof(*numbers));
}

void ranks_end(void)
{
	free(numbers);
	MPI_Finalize();
}

void *ranks_alloc(size_t bytes)
{
	void *memory;

	MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
	return memset(memory, 0, bytes);
}

/* usage: TIMED(call): its time is of those inside. */
#define TIMED(call) do {						\
	double began_us = ranks_now_us();				\
	call;								\
	ranks_inside_us += ranks_now_us() - began_us;			\
} while (0)

void ranks_broadcast(void *data, uint64_t count, enum ranks_type type, uint32_t root)
{
	TIMED(MPI_Bcast(data, as_int(count), type_of(type), (int)root, MPI_COMM_WORLD));
}

void ranks_sum(void *values, uint64_t count, enum ranks_type type)
{
	TIMED(MPI_Allreduce(MPI_IN_PLACE, values, as_int(count), type_of(type), MPI_SUM,
			    MPI_COMM_WORLD));
}

void ranks_gather(void *all, const uint64_t *counts, enum ranks_type type)
{
	const int *displs = convert(counts, numbers);

	TIMED(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, numbers, displs, type_of(type),
			     MPI_COMM_WORLD));
}

void ranks_exchange(const void *in, const uint64_t *in_counts, void *out,
		    const uint64_t *out_counts, enum ranks_type type)
{
	int *out_numbers = numbers + 2 * ranks_size;
	const int *in_displs = convert(in_counts, numbers);
	const int *out_displs = convert(out_counts, out_numbers);

	TIMED(MPI_Alltoallv(in, numbers, in_displs, type_of(type), out, out_numbers, out_displs,
			    type_of(type), MPI_COMM_WORLD));
}

bool ranks_by_host(void)
{
	return false;
}

void ranks_last(struct ranks_told *told)
{
	*told = (struct ranks_told){ .path = "MPI", .why = "it is not said" };
}

/* ---- under way ------------------------------------------------------------------- */

struct ranks_request {
	void *values;
	int count;
	MPI_Datatype type;
	MPI_Request request;
};

struct ranks_request *ranks_prepare(void *values, uint64_t count, enum ranks_type type)
{
	struct ranks_request *request = ranks_zeroed(sizeof(*request));

	*request = (struct ranks_request){ values, as_int(count), type_of(type), MPI_REQUEST_NULL };
	return request;
}

void ranks_start(struct ranks_request *request)
{
	TIMED(MPI_Iallreduce(MPI_IN_PLACE, request->values, request->count, request->type, MPI_SUM,
			     MPI_COMM_WORLD, &request->request));
}

void ranks_wait(struct ranks_request *request)
{
	TIMED(MPI_Wait(&request->request, MPI_STATUS_IGNORE));
}

void ranks_free(struct ranks_request *request)
{
	free(request);
}
