// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program: how collectives go together with all else of MPI: messages that others wait for,
 * requests of both kinds in one wait, types that differ between ranks, wrong arguments.
 *
 * usage: behave CASE [FILE]    Rank 0 prints "right"; else a rank says what was wrong, exit 1. Where a
 * rank is killed, FILE gets what another's error handler heard.
 */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define ALLREDUCE_INIT	MPIX_Allreduce_init
#else
#define ALLREDUCE_INIT	MPI_Allreduce_init
#endif
#include <complex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { LARGE = 1 << 20, MESSAGES = 20, TAG = 7 };

static int sum_to(int n)
{
	return n * (n - 1) / 2;
}

static int *large(int value)
{
	int *buffer = malloc(LARGE * sizeof(*buffer));

	MUST(buffer);
	for (int i = 0; i < LARGE; i++)
		buffer[i] = value + i % 100;
	return buffer;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* A long message needs its sender, who waits in a barrier for its receiver. */
static void message_in_barrier_of(MPI_Comm comm)
{
	int *buffer = large(rank);
	MPI_Request request;

	if (rank == 0)
		MPI_Isend(buffer, LARGE, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
	if (rank == 1)
		MPI_Recv(buffer, LARGE, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	MUST(rank != 1 || (buffer[0] == 0 && buffer[LARGE - 1] == (LARGE - 1) % 100));
	free(buffer);
}

static void message_in_barrier(void)
{
	message_in_barrier_of(MPI_COMM_WORLD);
}

/* A communicator's members meet there. */
static void message_in_first(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	message_in_barrier_of(comm);
	MPI_Comm_free(&comm);
}

/* Messages need their receiver, who waits for a collective, which needs their sender. */
static void messages_in_wait(void)
{
	MPI_Request receives[MESSAGES], barrier;
	MPI_Status statuses[MESSAGES];
	int words[MESSAGES];

	for (int i = 0; rank == 0 && i < MESSAGES; i++)
		MPI_Irecv(&words[i], 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &receives[i]);
	for (int i = 0; rank == 1 && i < MESSAGES; i++)
		MPI_Ssend(&i, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
	MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
	MPI_Wait(&barrier, MPI_STATUS_IGNORE);
	if (rank)
		return;
	MPI_Waitall(MESSAGES, receives, statuses);
	for (int i = 0; i < MESSAGES; i++)
		MUST(words[i] == i);
}

/* The others' collective needs a rank that waits for a message. */
static void collective_in_message(void)
{
	int *in = large(1), *out = large(0), word = 0;
	MPI_Request request;

	MPI_Iallreduce(in, out, LARGE, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	if (rank == size - 1)
		MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank == 0)
		MPI_Send(&word, 1, MPI_INT, size - 1, TAG, MPI_COMM_WORLD);
	MUST(out[5] == 6 * size);
	free(in);
	free(out);
}

/* Nobody may wait for who has not called yet. */
static void first_is_nonblocking(void)
{
	MPI_Request request;
	MPI_Comm comm;
	int word = 0;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (rank == 1)
		MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Ibarrier(comm, &request);
	if (rank == 0)
		MPI_Send(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
}

/* ---- requests --------------------------------------------------------------------------------- */

enum { MIXED = 6 };

/* Even ones are collectives, odd ones messages round the ring. */
static void mix_start(MPI_Request *requests, int *in, int *out)
{
	for (int i = 0; i < MIXED; i++) {
		in[i] = rank + i;
		out[i] = -1;
		if (i % 2 == 0)
			MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
		else
			MPI_Irecv(&out[i], 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 1; i < MIXED; i += 2)
		MPI_Send(&in[i], 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD);
}

static void mix_check(const int *out)
{
	for (int i = 0; i < MIXED; i++)
		MUST(out[i] == (i % 2 ? (rank + 1) % size + i : sum_to(size) + size * i));
}

static void mix_end(int how, MPI_Request *requests)
{
	MPI_Status statuses[MIXED];
	int done = 0, at, which[MIXED];

	while (done < MIXED) {
		at = MPI_UNDEFINED;
		if (how == 0) {
			MPI_Waitall(MIXED, requests, statuses);
			at = MIXED;
		} else if (how == 1) {
			MPI_Waitany(MIXED, requests, &at, MPI_STATUS_IGNORE);
			MUST(at >= 0 && at < MIXED);
			at = 1;
		} else if (how == 2) {
			MPI_Waitsome(MIXED, requests, &at, which, statuses);
		} else if (how == 3) {
			MPI_Testany(MIXED, requests, which, &at, MPI_STATUS_IGNORE);
		} else if (how == 4) {
			MPI_Testsome(MIXED, requests, &at, which, statuses);
		} else if (how == 5) {
			MPI_Testall(MIXED, requests, &at, statuses);
			at *= MIXED;
		} else {
			MPI_Request_get_status(requests[done], &at, &statuses[0]);
			if (at)
				MPI_Wait(&requests[done], &statuses[0]);
		}
		done += at;
	}
	for (int i = 0; i < MIXED; i++)
		MUST(requests[i] == MPI_REQUEST_NULL);
}

static void mixed_requests(void)
{
	int in[MIXED], out[MIXED];
	MPI_Request requests[MIXED];

	for (int how = 0; how < 7; how++) {
		mix_start(requests, in, out);
		mix_end(how, requests);
		mix_check(out);
	}
}

/* ---- types ---------------------------------------------------------------------- */

/* The same data, of one type here and another there, that is freed before it has come. */
static void types_differ(void)
{
	int buffer[32], all[32 * 16];
	MPI_Datatype every_other;
	MPI_Request request;

	MPI_Type_vector(8, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	for (int i = 0; i < 32; i++)
		buffer[i] = rank ? -1 : i;
	if (rank % 2)
		MPI_Ibcast(buffer, 1, every_other, 0, MPI_COMM_WORLD, &request);
	else
		MPI_Ibcast(buffer, 8, MPI_INT, 0, MPI_COMM_WORLD, &request);
	if (rank % 2)
		MPI_Type_free(&every_other);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < 8; i++)
		MUST(buffer[rank % 2 ? 2 * i : i] == i);
	if (rank % 2) {
		MUST(buffer[1] == -1 && buffer[15] == -1);
		MPI_Gather(buffer, 32, MPI_BYTE, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	} else {
		MPI_Gather(buffer, 8, MPI_INT, all, 8, MPI_INT, 0, MPI_COMM_WORLD);
		MPI_Type_free(&every_other);
	}
	MUST(rank || (all[1] == 1 && all[8] == 0 && all[9] == -1));
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static int class_of(int err)
{
	int class;

	MPI_Error_class(err, &class);
	return class;
}

/* The class of an error that the library found; MPICH has strings for classes of its user's alone. */
static int is_class(int err, int class)
{
#ifdef MPICH_VERSION
	(void)class;
	return err && class_of(err) > MPI_ERR_LASTCODE;
#else
	return err && class_of(err) == class;
#endif
}

/* Every other int, and what the user's function is given of it. */
static MPI_Datatype given;
static int deleted;

static void add(void *in, void *inout, int *nr, MPI_Datatype *type)
{
	MUST(*type == given);
	for (int i = 0; i < 2 * *nr; i += 2)
		((int *)inout)[i] += ((int *)in)[i];
}

static int count_deleted(MPI_Datatype type, int keyval, void *value, void *extra)
{
	(void)type;
	(void)keyval;
	(void)value;
	(void)extra;
	deleted++;
	return MPI_SUCCESS;
}

static MPI_Datatype every_other(void)
{
	MPI_Datatype type;
	int keyval;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
	MPI_Type_commit(&type);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deleted, &keyval, NULL);
	MPI_Type_set_attr(type, keyval, NULL);
	MPI_Type_free_keyval(&keyval);
	return type;
}

enum { OTHERS = 3, STARTED = 4 };

/* Freed while something needs them, they live on, and no longer than that. */
static void users_operation(void)
{
	int in[2 * OTHERS], out[STARTED][2 * OTHERS];
	MPI_Datatype type = given = every_other();
	MPI_Request requests[STARTED];
	MPI_Op op;

	memset(out, -1, sizeof(out));
	for (int i = 0; i < 2 * OTHERS; i++)
		in[i] = rank + i;
	MPI_Op_create(add, 1, &op);
	MUST(!MPI_Allreduce(in, out[0], OTHERS, type, op, MPI_COMM_WORLD));
	MUST(out[0][4] == sum_to(size) + 4 * size);
	for (int i = 0; i < STARTED; i++)
		MUST(!MPI_Iallreduce(in, out[i], OTHERS, type, op, MPI_COMM_WORLD, &requests[i]));
	MUST(!MPI_Op_free(&op) && op == MPI_OP_NULL);
	MUST(!MPI_Type_free(&type) && type == MPI_DATATYPE_NULL);
	for (int i = STARTED - 1; i >= 0; i--)
		MUST(!MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
	for (int i = 0; i < STARTED; i++)
		for (int j = 0; j < 2 * OTHERS; j++)
			MUST(out[i][j] == (j % 2 ? -1 : sum_to(size) + j * size));
	MUST(deleted == 1);
	MPI_Op_create(add, 1, &op);
	MUST(!MPI_Op_free(&op) && op == MPI_OP_NULL);
}

/* Between two groups: the MPI library's alone, and with offload forced, as rank 0 chooses, an error. */
static void between_groups(void)
{
	const char *offload = getenv("MUSTER_OFFLOAD");
	int one = 1, sum = 0, err, len, is_forced = offload && !strcmp(offload, "force");
	char words[MPI_MAX_ERROR_STRING];
	MPI_Comm half, inter;

	MPI_Bcast(&is_forced, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, TAG, &inter);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	err = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	MPI_Error_string(err, words, &len);
	MUST(is_forced || (!err && sum == (size + rank % 2) / 2));
	MUST(!is_forced || is_class(err, MPI_ERR_UNSUPPORTED_OPERATION));
	MUST(!is_forced || (strstr(words, "MPI_Allreduce: rank ") && strstr(words, "an inter-communicator")));
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* What MPI says without us; nothing is sent, so nobody waits. */
static void wrong_arguments(void)
{
	int in[4] = { 0 }, out[4], n = 0;
	MPI_Request request;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MUST(class_of(MPI_Bcast(in, 1, MPI_INT, size, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
	MUST(class_of(MPI_Bcast(in, 1, MPI_INT, -9, MPI_COMM_WORLD)) == MPI_ERR_ROOT);
	MUST(class_of(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE);
	MUST(class_of(MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD)) == MPI_ERR_OP);
#ifdef OPEN_MPI	/* MPICH 4.0.2 crashes */
	MUST(class_of(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
	MUST(class_of(MPI_Bcast(in, -1, MPI_INT, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
#else	/* it looks, at each rank where that one's own block is */
	MUST(class_of(MPI_Allgather(&in[rank], 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
	MUST(class_of(MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
	MUST(class_of(MPI_Exscan(in, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
	MUST(class_of(MPI_Iexscan(in, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request)) == MPI_ERR_BUFFER);
#endif
	MUST(class_of(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD)) == MPI_ERR_OP);
	MUST(class_of(MPI_Ibcast(in, 1, MPI_INT, size, MPI_COMM_WORLD, &request)) == MPI_ERR_ROOT);
	n = MPI_Barrier(MPI_COMM_WORLD);
	MUST(n == MPI_SUCCESS);
}

/* Ranks that call different things are told so, and by whom. */
static void ranks_differ(void)
{
	int buffer[8] = { 0 }, err, len;
	char words[MPI_MAX_ERROR_STRING];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	err = MPI_Bcast(buffer, rank == 1 ? 4 : 8, MPI_INT, 0, MPI_COMM_WORLD);
	err = err ? err : MPI_Barrier(MPI_COMM_WORLD);
	MPI_Error_string(err, words, &len);
	MUST(is_class(err, MPI_ERR_TRUNCATE) || is_class(err, MPI_ERR_OTHER));
	MUST(strstr(words, "rank"));
}

/* Rank 0 gets nothing, and need have no place for it. */
static void exscan_of_rank_0(void)
{
	int own = rank + 1, before = 0;

	MPI_Exscan(&own, rank ? &before : NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MUST(before == sum_to(rank + 1));
}

/* They are MPI's own though they have no name: nobody frees them. */
static void sums_of_fortran(void)
{
	double complex z = 1 + 2 * I, z_sum = 0;
	double x = 0.5, x_sum = 0;
	int32_t i = 7, i_sum = 0;
	MPI_Datatype type;

	MPI_Type_create_f90_integer(9, &type);
	MPI_Allreduce(&i, &i_sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type);
	MPI_Allreduce(&x, &x_sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &type);
	MPI_Allreduce(&z, &z_sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
	MUST(i_sum == 7 * size && x_sum == 0.5 * size && z_sum == size * z);
}

static void types_of_fortran(void)
{
	for (int root = 0; root < 2; root++) {
		double numbers[] = { rank, rank + 0.5 };
		MPI_Datatype real, two;

		MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
		MPI_Type_contiguous(2, real, &two);
		MPI_Type_commit(&two);
		MPI_Bcast(numbers, 1, two, root, MPI_COMM_WORLD);
		MPI_Type_free(&two);
		MUST(numbers[0] == root && numbers[1] == root + 0.5);
	}
	sums_of_fortran();
}

/* ---- the end of a communicator -------------------------------------------------------------------- */

static void must_sum(MPI_Comm comm)
{
	int one = 1, sum = 0, nr;

	MPI_Comm_size(comm, &nr);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	MUST(sum == nr);
}

static int sum_once_more(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)keyval;
	(void)value;
	(void)extra;
	must_sum(comm);
	return MPI_SUCCESS;
}

/*
 * Attributes that are deleted before what we keep with the communicator, or behind it, and where ranks differ the one
 * at rank 0 and the other elsewhere. The next one has its handle.
 */
static void sum_at_ends(int differ)
{
	int keyval;
	MPI_Comm comm;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_once_more, &keyval, NULL);
	for (int i = 0; i < 24; i++) {
		int behind = differ ? !rank : i / 2 % 2;

		if (i % 2)
			MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &comm);
		else
			MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		if (!behind)
			MPI_Comm_set_attr(comm, keyval, NULL);
		must_sum(comm);
		if (behind)
			MPI_Comm_set_attr(comm, keyval, NULL);
		if (i % 8 < 4)
			MPI_Comm_free(&comm);
		else
			MPI_Comm_disconnect(&comm);
	}
	MPI_Comm_free_keyval(&keyval);
}

static void collective_at_end(void)
{
	sum_at_ends(0);
}

static void collective_at_end_differs(void)
{
	sum_at_ends(1);
}

static int tell_rank_1(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	if (rank == 0)
		MPI_Send(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD);
	must_sum(MPI_COMM_WORLD);
	return MPI_SUCCESS;
}

/* What MPI_Finalize calls first; rank 1 begins it when it has heard of rank 0's. */
static void attributes_of_self(void)
{
	int keyval;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, tell_rank_1, &keyval, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
	must_sum(MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- a rank that is killed ------------------------------------------------------------------------ */

static FILE *said;	/* launchers lose what is printed now */

static struct {
	int calls;
	int error;
	MPI_Comm comm;
} handled;

static void handler(MPI_Comm *comm, int *error, ...)
{
	handled.calls++;
	handled.error = *error;
	handled.comm = *comm;
}

/* A communicator with a handler of its own; that of MPI_COMM_WORLD would end all. No collective yet. */
static MPI_Comm new_with_handler(void)
{
	MPI_Errhandler mine;
	MPI_Comm comm;

	MPI_Comm_create_errhandler(handler, &mine);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, mine);
	return comm;
}

static MPI_Comm with_handler(void)
{
	MPI_Comm comm = new_with_handler();

	MPI_Barrier(comm);
	return comm;
}

/* When the others that live have told that they are out of the barrier. MPICH's mpirun kills all with one, at times. */
static void kill_rank(int which, int living)
{
	if (rank != which) {
		MPI_Send(NULL, 0, MPI_INT, which, TAG, MPI_COMM_WORLD);
		return;
	}
	for (int i = 1; i < living; i++)
		MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef MPICH_VERSION
	_Exit(0);
#else
	raise(SIGKILL);
#endif
}

static void kill_one(void)
{
	kill_rank(1, size);
}

/* The others' handler has heard once: of which class, and who. */
static void heard(MPI_Comm comm, int err)
{
	char words[MPI_MAX_ERROR_STRING];
	int len;

	MUST(handled.calls == 1 && handled.error == err && handled.comm == comm);
	MUST(is_class(err, MPI_ERR_OTHER));
	MPI_Error_string(err, words, &len);
	if (rank == 0 && said) {
		fputs(words, said);
		fclose(said);
	}
	_Exit(0);
}

static void killed_blocking(void)
{
	MPI_Comm comm = with_handler();
	int one = 1, sum = 0;

	kill_one();
	heard(comm, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
}

/* The others wait for it at a communicator's first collective. */
static void killed_first(void)
{
	MPI_Comm comm = new_with_handler();
	int one = 1, sum = 0;

	kill_one();
	heard(comm, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
}

static void killed_nonblocking(void)
{
	MPI_Comm comm = with_handler();
	int one = 1, sum = 0;
	MPI_Request request;

	kill_one();
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
	heard(comm, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* To look at the request is not to complete it: the handler hears of its wait. */
static void killed_status(void)
{
	MPI_Comm comm = with_handler();
	int one = 1, sum = 0, done = 0;
	MPI_Request request;

	kill_one();
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
	while (!done)
		MUST(!MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE));
	MUST(!handled.calls);
	heard(comm, MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Of several, statuses say which. */
static void killed_waitall(void)
{
	MPI_Comm comm = with_handler();
	int one = 1, sum = 0, err;
	MPI_Request requests[2] = { MPI_REQUEST_NULL };
	MPI_Status statuses[2];

	kill_one();
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
	err = MPI_Waitall(2, requests, statuses);
	MUST(err == MPI_ERR_IN_STATUS);
	MUST(statuses[0].MPI_ERROR == MPI_SUCCESS);
	MUST(handled.calls == 1);
	handled.error = statuses[1].MPI_ERROR;
	heard(comm, statuses[1].MPI_ERROR);
}

static void killed_persistent(void)
{
	MPI_Comm comm = with_handler();
	int one = 1, sum = 0, done = 0, err;
	MPI_Request request;

	ALLREDUCE_INIT(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
	kill_one();
	err = MPI_Start(&request);
	while (!done && !err)
		err = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	heard(comm, err);
}

/* Of a death that comes after another one, too, who waits at a communicator's first collective hears. */
static void killed_second(void)
{
	MPI_Comm comm = with_handler(), pair;
	int one = 1, sum = 0;
	MPI_Errhandler mine;

	MPI_Comm_get_errhandler(comm, &mine);
	MPI_Comm_split(comm, rank == 2, 0, &pair);
	MPI_Comm_set_errhandler(pair, mine);
	kill_rank(2, size);
	MUST(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) && handled.calls == 1);
	handled.calls = 0;
	kill_rank(1, 2);
	heard(pair, MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair));
}

/* Those that live make communicators, as their MPI library lets them, and go on in these. */
static void survivors_sum(MPI_Comm comm)
{
	int one = 1, sum = 0, persistent = 0;
	MPI_Request request;

	MUST(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
	MUST(sum == size - 1);
	MUST(!MPI_Barrier(comm));
	MUST(!ALLREDUCE_INIT(&one, &persistent, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request));
	MUST(!MPI_Start(&request));
	MUST(!MPI_Wait(&request, MPI_STATUS_IGNORE));
	MUST(persistent == size - 1);
	MPI_Request_free(&request);
}

static void survivors_go_on(MPI_Comm before)
{
	MPI_Group world, living;
	MPI_Comm made, copy;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_excl(world, 1, &(int){ 1 }, &living);
	MUST(!MPI_Comm_create_group(MPI_COMM_WORLD, living, TAG, &made));
	survivors_sum(made);
	for (int i = 0; i < 10; i++) {	/* in one of these a rank may hear of the death, and another has not */
		MUST(!MPI_Comm_dup(before, &copy));
		survivors_sum(copy);
		MPI_Comm_free(&copy);
	}
	survivors_sum(before);
}

/* before: that others are made whether this rank has heard of the death or not. */
static void killed_survivors(void)
{
	MPI_Comm comm = with_handler(), before;
	int one = 1, sum = 0, err;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 1, 0, &before);
	MPI_Barrier(before);
	kill_one();
	survivors_go_on(before);
	err = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	survivors_go_on(before);
	heard(comm, err);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "message-in-barrier", message_in_barrier },
	{ "message-in-first", message_in_first },
	{ "messages-in-wait", messages_in_wait },
	{ "collective-in-message", collective_in_message },
	{ "first-is-nonblocking", first_is_nonblocking },
	{ "mixed-requests", mixed_requests },
	{ "types-differ", types_differ },
	{ "users-operation", users_operation },
	{ "between-groups", between_groups },
	{ "wrong-arguments", wrong_arguments },
	{ "ranks-differ", ranks_differ },
	{ "exscan-of-rank-0", exscan_of_rank_0 },
	{ "types-of-fortran", types_of_fortran },
	{ "collective-at-end", collective_at_end },
	{ "collective-at-end-differs", collective_at_end_differs },
	{ "attributes-of-self", attributes_of_self },
	{ "killed-blocking", killed_blocking },
	{ "killed-first", killed_first },
	{ "killed-nonblocking", killed_nonblocking },
	{ "killed-status", killed_status },
	{ "killed-waitall", killed_waitall },
	{ "killed-persistent", killed_persistent },
	{ "killed-second", killed_second },
	{ "killed-survivors", killed_survivors },
};

int main(int argc, char **argv)
{
	size_t i = 0, nr = sizeof(cases) / sizeof(*cases);

	while (i < nr && (argc < 2 || strcmp(cases[i].name, argv[1])))
		i++;
	if (i == nr)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	said = !rank && argc > 2 ? fopen(argv[2], "w") : NULL;
	cases[i].run();
	if (!rank)
		puts("right");
	MPI_Finalize();
	return 0;
}
