// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A conjugate gradient solver of lattice QCD's kind, as far as its collectives go: each
 * rank has a block of a four-dimensional lattice and a Laplacian with a mass on it, cut
 * at the block's border, so that ranks meet in allreduces alone: two of one double an
 * iteration, and one of 64 doubles (a correlator) every tenth. Built twice: with
 * -DUSE_MPI for MPI, without for the bump in the wire.
 *
 * usage: lattice [SIDE [ITERATIONS]]    of a block; 4 and 1000
 * Rank 0 prints seconds, seconds in allreduces, and the last residual.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef USE_MPI
#include <mpi.h>
#else
#include <arpa/inet.h>
#include <endian.h>
#include "muster_bump.h"
#endif

enum { DIMENSIONS = 4, CORRELATOR = 64 };

static int rank, side, sites;

/* ---- meeting ---- */

#ifdef USE_MPI
static void begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void sum(double *values, int nr)
{
	MPI_Allreduce(MPI_IN_PLACE, values, nr, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void end(void)
{
	MPI_Finalize();
}
#else
static struct {
	struct muster_bump_header header;
	double values[CORRELATOR];
} ask, answer;
static int sock;
static uint32_t id;

static uint64_t number(const char *name, int radix)
{
	const char *text = getenv(name);

	if (!text)
		errx(2, "%s is not set: run this by muster-run --bump", name);
	return strtoull(text, NULL, radix);
}

static void begin(int *argc, char ***argv)
{
	struct sockaddr_in bump = { .sin_family = AF_INET, .sin_port = htons(MUSTER_BUMP_PORT) };
	struct timeval patience = { .tv_usec = 20000 };
	struct muster_bump_header header = {
		.magic = htole32(MUSTER_BUMP_MAGIC), .version = MUSTER_BUMP_VERSION,
		.message = MUSTER_BUMP_REQUEST, .operation = MUSTER_BUMP_ALLREDUCE,
		.algorithm = MUSTER_BUMP_DOUBLING, .type = MUSTER_DTYPE_F64,
		.redop = MUSTER_REDOP_SUM, .stride = htole16(1),
		.group = htole32((uint32_t)number("MUSTER_BUMP_GROUP", 10)),
		.hosts = htole16((uint16_t)number("MUSTER_BUMP_HOSTS", 10)),
		.rank = htole16((uint16_t)number("MUSTER_RANK", 10)),
		.ranks = htole16((uint16_t)number("MUSTER_SIZE", 10)),
		.local_rank = (uint8_t)number("MUSTER_BUMP_LOCAL_RANK", 10),
		.local_ranks = (uint8_t)number("MUSTER_BUMP_LOCAL_RANKS", 10),
		.key = htole64(number("MUSTER_BUMP_KEY", 16)),
	};

	(void)argc;
	(void)argv;
	ask.header = header;
	rank = le16toh(header.rank);
	sock = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, "10.77.255.254", &bump.sin_addr);
	if (sock < 0 || connect(sock, (struct sockaddr *)&bump, sizeof(bump)) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err(1, "no way to the bump");
}

static void sum(double *values, int nr)
{
	size_t bytes = sizeof(double) * (size_t)nr;
	int tries = 1000;

	ask.header.id = htole32(id++);
	ask.header.count = htole16((uint16_t)nr);
	memcpy(ask.values, values, bytes);
	while (tries--) {
		send(sock, &ask, sizeof(ask.header) + bytes, 0);
		while (recv(sock, &answer, sizeof(answer), 0) >= (ssize_t)sizeof(answer.header)) {
			if (answer.header.id != ask.header.id)
				continue;
			if (answer.header.message != MUSTER_BUMP_RESPONSE)
				errx(1, "the bump says: error %u", answer.header.status);
			memcpy(values, answer.values, bytes);
			return;
		}
	}
	errx(1, "the bump does not answer");
}

static void end(void)
{
}
#endif

/* ---- solving ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double in_sums;

static void timed_sum(double *values, int nr)
{
	double start = now();

	sum(values, nr);
	in_sums += now() - start;
}

static void apply(const double *x, double *y)
{
	for (int site = 0; site < sites; site++) {
		double all = (2 * DIMENSIONS + 0.01) * x[site];
		int pitch = 1;

		for (int d = 0; d < DIMENSIONS; d++, pitch *= side) {
			int at = site / pitch % side;

			all -= (at > 0 ? x[site - pitch] : 0) + (at < side - 1 ? x[site + pitch] : 0);
		}
		y[site] = all;
	}
}

static double dot(const double *x, const double *y)
{
	double all = 0;

	for (int site = 0; site < sites; site++)
		all += x[site] * y[site];
	timed_sum(&all, 1);
	return all;
}

static void correlate(const double *x)
{
	double slices[CORRELATOR] = { 0 };

	for (int site = 0; site < sites; site++)
		slices[site % CORRELATOR] += x[site] * x[site];
	timed_sum(slices, CORRELATOR);
}

/* So many iterations, whatever the residual: from a new right side where it is small. */
static double solve(int iterations)
{
	double *v = calloc(4 * (size_t)sites, sizeof(*v)), *x = v, *r = v + sites, *p = r + sites;
	double *ap = p + sites, rr = 0, alpha, next;

	if (!v)
		err(1, "no memory");
	for (int i = 0; i < iterations; i++) {
		if (rr < 1e-20) {
			for (int site = 0; site < sites; site++)
				r[site] = p[site] = 1.0 / (1 + site + rank + i);
			rr = dot(r, r);
		}
		apply(p, ap);
		alpha = rr / dot(p, ap);
		for (int site = 0; site < sites; site++) {
			x[site] += alpha * p[site];
			r[site] -= alpha * ap[site];
		}
		next = dot(r, r);
		for (int site = 0; site < sites; site++)
			p[site] = r[site] + next / rr * p[site];
		rr = next;
		if (i % 10 == 0)
			correlate(x);
	}
	free(v);
	return rr;
}

int main(int argc, char **argv)
{
	double start, residual;

	begin(&argc, &argv);
	side = argc > 1 ? atoi(argv[1]) : 4;
	sites = side * side * side * side;
	timed_sum(&(double){ 0 }, 1);	/* all are there */
	in_sums = 0;
	start = now();
	residual = solve(argc > 2 ? atoi(argv[2]) : 1000);
	if (!rank)
		printf("%.3f %.3f %g\n", now() - start, in_sums, residual);
	end();
	return 0;
}
