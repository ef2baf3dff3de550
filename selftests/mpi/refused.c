// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program that stands before its own MPI library too: what libmuster-mpi asks of that is
 * refused at rank 1, or takes long. All must end as MPI promises, at every rank.
 *
 * usage: refused CASE    Rank 0 prints "right"; else a rank says what was wrong, exit 1.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "must.h"

static enum { NOTHING, KEYVAL, REQUEST, UNPACK, SLOW } refused;

/* The same function of the library beneath. */
#define BENEATH(name)	((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_refused(int what)
{
	int own = 0;

	if ((int)refused == what)
		PMPI_Comm_rank(MPI_COMM_WORLD, &own);
	return own == 1;
}

int PMPI_Type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *del,
			    int *keyval, void *extra)
{
	if (is_refused(KEYVAL))
		return MPI_ERR_OTHER;
	return BENEATH(PMPI_Type_create_keyval)(copy, del, keyval, extra);
}

#ifdef MPICH_VERSION
int PMPIX_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *release,
			 MPI_Grequest_cancel_function *cancel, MPIX_Grequest_poll_function *poll,
			 MPIX_Grequest_wait_function *wait, void *state, MPI_Request *request)
{
	if (is_refused(REQUEST))
		return MPI_ERR_OTHER;
	return BENEATH(PMPIX_Grequest_start)(query, release, cancel, poll, wait, state, request);
}
#else
int PMPI_Grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *release,
			MPI_Grequest_cancel_function *cancel, void *state, MPI_Request *request)
{
	if (is_refused(REQUEST))
		return MPI_ERR_OTHER;
	return BENEATH(PMPI_Grequest_start)(query, release, cancel, state, request);
}
#endif

int PMPI_Grequest_complete(MPI_Request request)
{
	if (refused == SLOW)
		usleep(2000);
	return BENEATH(PMPI_Grequest_complete)(request);
}

int PMPI_Unpack(const void *in, int bytes, int *position, void *out, int count, MPI_Datatype type,
		MPI_Comm comm)
{
	if (is_refused(UNPACK))
		return MPI_ERR_OTHER;
	return BENEATH(PMPI_Unpack)(in, bytes, position, out, count, type, comm);
}

/* ---- cases ------------------------------------------------------------------------------------ */

static void reduces(MPI_Comm comm)
{
	int sum = 0;

	MUST(!MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
	MUST(sum == size * (size - 1) / 2);
}

/* One cannot join: none has, and they agree on that. */
static void join(void)
{
	MPI_Request request;

	reduces(MPI_COMM_WORLD);
	MUST(!MPI_Ibarrier(MPI_COMM_WORLD, &request));
	MUST(!MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static MPI_Datatype with_gaps(void)
{
	MPI_Datatype type;

	MPI_Type_vector(4, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

/* What has begun ends, for all, and what it says is heard. */
static void request(void)
{
	int buffer[8] = { 0 };
	MPI_Datatype type = with_gaps();
	MPI_Request request = MPI_REQUEST_NULL;

	for (int i = 0; i < 8; i++)
		buffer[i] = rank ? -1 : i;
	MUST(!MPI_Ibcast(buffer, 1, type, 0, MPI_COMM_WORLD, &request));
	MUST(!MPI_Wait(&request, MPI_STATUS_IGNORE));
	for (int i = 0; i < 8; i += 2)
		MUST(buffer[i] == i && buffer[i + 1] == (rank ? -1 : i + 1));
	MPI_Type_free(&type);
	reduces(MPI_COMM_WORLD);
}

/* What only this rank has met is said of this rank: where, what and what to do. */
static void is_said(int err)
{
	char words[MPI_MAX_ERROR_STRING];
	int length;

	MUST(err);
	MPI_Error_string(err, words, &length);
	MUST(strstr(words, "MPI_Bcast: rank 1: MPI_Unpack refuses 1 elements of a type of 16 bytes: see that "));
}

static void unpack(void)
{
	int buffer[8] = { 0 }, err;
	MPI_Datatype type = with_gaps();
	MPI_Request request;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Bcast(buffer, 1, type, 0, MPI_COMM_WORLD);
	if (rank == 1)
		is_said(err);
	MUST(!MPI_Ibcast(buffer, 1, type, 0, MPI_COMM_WORLD, &request));
	err = MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == 1)
		is_said(err);
	MPI_Type_free(&type);
	reduces(MPI_COMM_WORLD);
}

static void *wait_often(void *arg)
{
	MPI_Comm comm = *(MPI_Comm *)arg;

	for (int i = 0; i < 10; i++) {
		int sums[2] = { -1, -1 };
		MPI_Request requests[2];
		MPI_Status statuses[2];

		for (int j = 0; j < 2; j++)
			MPI_Iallreduce(&rank, &sums[j], 1, MPI_INT, MPI_SUM, comm, &requests[j]);
		MUST(!MPI_Waitall(2, requests, statuses));
		MUST(sums[0] == size * (size - 1) / 2 && sums[1] == sums[0]);
	}
	return NULL;
}

/* One thread tells MPI of the end of what another waits for. */
static void slow(void)
{
	MPI_Comm comms[2];
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
		reduces(comms[i]);
	}
	MUST(!pthread_create(&thread, NULL, wait_often, &comms[0]));
	wait_often(&comms[1]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comms[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
	int refused;
} cases[] = {
	{ "join", join, KEYVAL },
	{ "request", request, REQUEST },
	{ "unpack", unpack, UNPACK },
	{ "slow", slow, SLOW },
};

int main(int argc, char **argv)
{
	size_t i = 0, nr = sizeof(cases) / sizeof(*cases);
	int level;

	while (i < nr && (argc < 2 || strcmp(cases[i].name, argv[1])))
		i++;
	if (i == nr)
		return 2;
	refused = cases[i].refused;
	MPI_Init_thread(&argc, &argv, refused == SLOW ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	cases[i].run();
	if (!rank)
		puts("right");
	refused = NOTHING;
	MPI_Finalize();
	return 0;
}
