// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The library's errors as MPI's: a class that MPI knows, a code of our own for each errno, and
 * the sentence as its string, which names the rank that is to blame.
 */
#include "shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static struct {
	int err;
	int class;
	int code;
} codes[] = {
	{ -EPROTO, MPI_ERR_TRUNCATE, 0 },	/* ranks called different things */
	{ -EOPNOTSUPP, MPI_ERR_UNSUPPORTED_OPERATION, 0 },
	{ -ENOMEM, MPI_ERR_NO_MEM, 0 },
	{ -EFAULT, MPI_ERR_BUFFER, 0 },
	{ -EINVAL, MPI_ERR_ARG, 0 },
	{ 0, MPI_ERR_OTHER, 0 },	/* all others: ranks that died or gave up */
};

enum { CODES = sizeof(codes) / sizeof(*codes) };

/*
 * With the first error: until then MPI_LASTUSEDCODE is what it is without us. MPICH has no strings for codes of the
 * classes that it defines itself: they get one of ours. Where MPI has no room for more, classes do.
 */
static void codes_open(void)
{
	for (size_t i = 0; i < CODES; i++) {
#ifdef MPICH_VERSION
		if (PMPI_Add_error_class(&codes[i].class))
			return;
#endif
		if (PMPI_Add_error_code(codes[i].class, &codes[i].code))
			return;
	}
}

_Thread_local char muster_mpi_said[MUSTER_MPI_SENTENCE];

void muster_mpi_note(void)
{
	snprintf(muster_mpi_said, sizeof(muster_mpi_said), "%s", muster_error(muster_mpi.job));
}

int muster_mpi_fail(int err, const char *format, ...)
{
	int at = snprintf(muster_mpi_said, sizeof(muster_mpi_said), "rank %d: ", muster_mpi.rank);
	va_list args;

	va_start(args, format);
	vsnprintf(muster_mpi_said + at, sizeof(muster_mpi_said) - (size_t)at, format, args);
	va_end(args);
	return err;
}

int muster_mpi_error_code(const char *function, int err, const char *sentence)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[MPI_MAX_ERROR_STRING];
	size_t i = 0;

	pthread_once(&once, codes_open);
	while (i < CODES - 1 && codes[i].err != err)
		i++;
	if (!codes[i].code)
		return codes[i].class;
	snprintf(text, sizeof(text), "%s: %s", function, sentence);
	PMPI_Add_error_string(codes[i].code, text);
	return codes[i].code;
}

int muster_mpi_error(MPI_Comm comm, const char *function, int err, const char *sentence)
{
	int code = muster_mpi_error_code(function, err, sentence);

	if (!muster_mpi.within)
		PMPI_Comm_call_errhandler(comm, code);
	return code;
}
