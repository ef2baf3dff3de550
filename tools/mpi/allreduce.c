// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What muster_bump_perf measures, by MPI_Allreduce. usage: allreduce COUNT BYTES... */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP_MAX = 100 };

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(double *us, int count, int nr, int rank, int ranks)
{
	static double in[4096], out[4096];
	double all = 0, begin;

	for (int i = 0; i < nr; i++)
		in[i] = i + rank;
	for (int i = 0; i <= count / 10 && i < WARM_UP_MAX; i++)
		MPI_Allreduce(in, out, nr, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < count; i++) {
		begin = MPI_Wtime();
		MPI_Allreduce(in, out, nr, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		us[i] = (MPI_Wtime() - begin) * 1e6;
		all += us[i];
	}
	for (int i = 0; i < nr; i++)
		if (out[i] != (double)i * ranks + ranks * (ranks - 1) / 2.0)
			MPI_Abort(MPI_COMM_WORLD, 1);
	qsort(us, (size_t)count, sizeof(*us), by_value);
	if (!rank)
		printf("%d %d %.2f %.2f %.2f %.1f 0\n", ranks, nr * 8, all / count, us[count / 2], us[0],
		       100 - 100 * us[0] * count / all);
}

int main(int argc, char **argv)
{
	int rank, ranks, count = argc > 1 ? atoi(argv[1]) : 10000;
	double *us = calloc((size_t)count, sizeof(*us));

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 2; i < argc; i++)
		measure(us, count, atoi(argv[i]) / 8, rank, ranks);
	MPI_Finalize();
	return 0;
}
