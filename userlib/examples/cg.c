// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conjugate gradient: solves A x = b for a symmetric, positive definite matrix A from a Matrix
 * Market file, where b is what belongs to an x of ones. Each rank has a share of the rows. In an
 * iteration all ranks' shares of the direction are gathered, and two single numbers are summed.
 *
 * usage: cg FILE [check]     check: rank 0 solves it alone, too, and compares
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { ITERATIONS_MAX = 10000 };
static const double tolerance = 1e-10;

struct entry {
	uint32_t row, column;
	double value;
};

/* ---- the file ---------------------------------------------------------------- */

struct reader {
	const char *path;
	FILE *in;
	char *line;
	size_t room;
	unsigned long number;
};

static bool next_line(struct reader *reader)
{
	do {
		if (getline(&reader->line, &reader->room, reader->in) < 0)
			return false;
		reader->number++;
	} while (*reader->line == '%' || *reader->line == '\n');
	return true;
}

/* Return: whether of each pair of entries that are alike one alone is in the file. */
static bool read_head(struct reader *reader)
{
	char field[16] = "", symmetry[16] = "";

	reader->number = 1;
	if (getline(&reader->line, &reader->room, reader->in) < 0 ||
	    sscanf(reader->line, "%%%%MatrixMarket matrix coordinate %15s %15s", field, symmetry) != 2 ||
	    (strcmp(field, "real") && strcmp(field, "integer")) ||
	    (strcmp(symmetry, "symmetric") && strcmp(symmetry, "general")))
		ranks_die("%s: line 1: expected \"%%%%MatrixMarket matrix coordinate real "
			  "symmetric\" (or integer, general)", reader->path);
	return !strcmp(symmetry, "symmetric");
}

static void read_entry(struct reader *reader, uint32_t rows, struct entry *entry)
{
	uint64_t row, column;

	if (!next_line(reader) ||
	    sscanf(reader->line, "%" SCNu64 " %" SCNu64 " %lf", &row, &column, &entry->value) != 3 ||
	    !row || row > rows || !column || column > rows || !isfinite(entry->value))
		ranks_die("%s: line %lu: expected \"ROW COLUMN VALUE\", rows and columns from 1 to %"
			  PRIu32, reader->path, reader->number, rows);
	entry->row = (uint32_t)row - 1;
	entry->column = (uint32_t)column - 1;
}

/* sizes: rows and entries. */
static struct entry *read_matrix(const char *path, uint64_t sizes[2])
{
	struct reader reader = { .path = path, .in = fopen(path, "re") };
	uint64_t rows, columns, nr, at = 0;
	struct entry *entries;
	bool symmetric;

	if (!reader.in)
		ranks_die("cannot read %s: %s", path, strerror(errno));
	symmetric = read_head(&reader);
	if (!next_line(&reader) ||
	    sscanf(reader.line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &rows, &columns, &nr) != 3 ||
	    !rows || rows != columns || rows > UINT32_MAX || nr > UINT32_MAX)
		ranks_die("%s: line %lu: expected \"ROWS COLUMNS ENTRIES\" of a square matrix", path,
			  reader.number);
	entries = ranks_zeroed(2 * nr * sizeof(*entries));
	for (uint64_t i = 0; i < nr; i++) {
		read_entry(&reader, (uint32_t)rows, &entries[at++]);
		if (!symmetric || entries[at - 1].row == entries[at - 1].column)
			continue;
		entries[at] = entries[at - 1];
		entries[at].row = entries[at - 1].column;
		entries[at].column = entries[at - 1].row;
		at++;
	}
	free(reader.line);
	fclose(reader.in);
	sizes[0] = rows;
	sizes[1] = at;
	return entries;
}

/* ---- a share of the matrix ----------------------------------------------------- */

struct matrix {
	bool alone;		/* all rows are here, and nobody is asked */
	uint64_t rows;		/* of all; those from first to end are here */
	uint64_t first, end;
	uint64_t *counts;	/* rows of each rank */
	uint64_t *begins;	/* of each row here: its first entry */
	struct entry *entries;
};

static void make_share(struct matrix *matrix, const struct entry *entries, uint64_t nr)
{
	uint64_t rows = matrix->end - matrix->first, at = 0, *begins;

	matrix->begins = begins = ranks_zeroed((rows + 1) * sizeof(*begins));
	for (uint64_t i = 0; i < nr; i++)
		if (entries[i].row >= matrix->first && entries[i].row < matrix->end)
			begins[entries[i].row - matrix->first]++;
	for (uint64_t row = 0; row <= rows; row++) {
		uint64_t length = begins[row];

		begins[row] = at;
		at += length;
	}
	matrix->entries = ranks_zeroed(at * sizeof(*entries));
	for (uint64_t i = 0; i < nr; i++)
		if (entries[i].row >= matrix->first && entries[i].row < matrix->end)
			matrix->entries[begins[entries[i].row - matrix->first]++] = entries[i];
	memmove(begins + 1, begins, rows * sizeof(*begins));
	begins[0] = 0;
}

/* Rank 0 reads the file, everyone takes its share. */
static void load(const char *path, struct matrix *share, struct matrix *whole)
{
	uint64_t sizes[2];
	struct entry *entries = ranks_rank ? NULL : read_matrix(path, sizes);

	ranks_broadcast(sizes, 2, RANKS_U64, 0);
	if (ranks_rank)
		entries = ranks_zeroed(sizes[1] * sizeof(*entries));
	ranks_broadcast(entries, sizes[1] * sizeof(*entries), RANKS_BYTE, 0);
	*whole = (struct matrix){ .alone = true, .rows = sizes[0], .end = sizes[0] };
	*share = (struct matrix){ .rows = sizes[0], .first = ranks_share(sizes[0], ranks_rank),
				  .end = ranks_share(sizes[0], ranks_rank + 1),
				  .counts = ranks_zeroed(ranks_size * sizeof(uint64_t)) };
	for (uint32_t i = 0; i < ranks_size; i++)
		share->counts[i] = ranks_part(sizes[0], i);
	make_share(share, entries, sizes[1]);
	if (!ranks_rank)
		make_share(whole, entries, sizes[1]);
	free(entries);
}

static void unload(struct matrix *matrix)
{
	free(matrix->counts);
	free(matrix->begins);
	free(matrix->entries);
}

/* ---- the computation ------------------------------------------------------------- */

static void multiply(const struct matrix *matrix, const double *x, double *product)
{
	for (uint64_t row = 0; row < matrix->end - matrix->first; row++) {
		double sum = 0;

		for (uint64_t i = matrix->begins[row]; i < matrix->begins[row + 1]; i++)
			sum += matrix->entries[i].value * x[matrix->entries[i].column];
		product[row] = sum;
	}
}

static double dot(const struct matrix *matrix, const double *a, const double *b)
{
	double sum = 0;

	for (uint64_t row = 0; row < matrix->end - matrix->first; row++)
		sum += a[row] * b[row];
	if (!matrix->alone)
		ranks_sum(&sum, 1, RANKS_F64);
	return sum;
}

/* Every rank ends with all of x. Return: iterations. */
static uint32_t solve(const struct matrix *matrix, double *x, double *direction)
{
	uint64_t rows = matrix->end - matrix->first;
	double *residual = ranks_zeroed(rows * sizeof(double)), *product = ranks_zeroed(rows * sizeof(double));
	double *own_x = x + matrix->first, *own = direction + matrix->first, square, least;
	uint32_t iterations = 0;

	for (uint64_t row = 0; row < matrix->rows; row++)
		direction[row] = 1;
	multiply(matrix, direction, residual);
	memset(own_x, 0, rows * sizeof(double));
	memcpy(own, residual, rows * sizeof(double));
	square = dot(matrix, residual, residual);
	least = square * tolerance * tolerance;
	while (square > least && iterations < ITERATIONS_MAX) {
		double before = square, step;

		if (!matrix->alone)
			ranks_gather(direction, matrix->counts, RANKS_F64);
		multiply(matrix, direction, product);
		step = square / dot(matrix, own, product);
		for (uint64_t row = 0; row < rows; row++) {
			own_x[row] += step * own[row];
			residual[row] -= step * product[row];
		}
		square = dot(matrix, residual, residual);
		for (uint64_t row = 0; row < rows; row++)
			own[row] = residual[row] + square / before * own[row];
		iterations++;
	}
	if (!(square <= least))
		ranks_die("no solution after %" PRIu32 " iterations: is the matrix symmetric and positive definite?",
			  iterations);
	if (!matrix->alone)
		ranks_gather(x, matrix->counts, RANKS_F64);
	free(residual);
	free(product);
	return iterations;
}

static double apart(const double *a, const double *b, uint64_t nr)
{
	double most = 0;

	for (uint64_t i = 0; i < nr; i++)
		most = fmax(most, fabs(a[i] - (b ? b[i] : 1)));
	return most;
}

/* Against ones, which it must be, and against one rank's result, and way there. */
static void check(const struct matrix *whole, const double *x, uint32_t iterations)
{
	double *alone = ranks_zeroed(whole->rows * sizeof(double));
	double *direction = ranks_zeroed(whole->rows * sizeof(double));

	iterations -= solve(whole, alone, direction);
	printf("apart from ones by %.1e, from a solution by one rank by %.1e\n",
	       apart(x, NULL, whole->rows), apart(x, alone, whole->rows));
	if (iterations + 1 > 2 || !(apart(x, NULL, whole->rows) < 1e-6 && apart(x, alone, whole->rows) < 1e-7))
		ranks_die("the solution is wrong");
	free(alone);
	free(direction);
}

int main(int argc, char **argv)
{
	struct matrix share, whole;
	uint32_t iterations;
	char what[96];
	double *x;

	if (argc < 2)
		ranks_die("usage: cg FILE [check]");
	ranks_begin();
	load(argv[1], &share, &whole);
	x = ranks_alloc(share.rows * sizeof(*x));
	ranks_go();
	iterations = solve(&share, x, ranks_alloc(share.rows * sizeof(*x)));
	ranks_stop();
	snprintf(what, sizeof(what), "conjugate gradient: %" PRIu64 " rows, %" PRIu32 " iterations",
		 share.rows, iterations);
	ranks_report(what, x, share.rows * sizeof(*x));
	if (argc > 2 && !ranks_rank)
		check(&whole, x, iterations);
	unload(&share);
	unload(&whole);
	ranks_end();
	return 0;
}
