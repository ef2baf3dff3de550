// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PageRank of the Debian packages: a package is important when important ones
 * depend on it. Each rank owns a share of the packages and adds up what these
 * pass on to all others; one vector allreduce an iteration makes the sum, one
 * allreduce of a single number says how far the scores still moved.
 *
 * Where the library can, all is computed twice, offloaded to the NIC and on the host, and must
 * give the same bits. Run it as: muster-run -n 4 pagerank [FILE]
 * FILE is in the format of /var/lib/dpkg/status (default); a larger one is made
 * by: apt-cache dumpavail >FILE
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dpkg_graph.h"
#include "ranks.h"

enum { ITERATIONS_MAX = 200, TOP = 10 };
static const double damping = 0.85, tolerance = 1e-10;

/* What all of this program works on: the graph of a text. */
static char *text;
static struct graph graph;

/* ---- the packages ---------------------------------------------------------- */

/* Return: the length of the file, or -errno. */
static int64_t read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t len = 0, room = 0;
	int ret = 0;

	if (!file)
		return -errno;
	do {
		if (len == room) {
			char *grown = realloc(text, room = room ? 2 * room : 1 << 20);

			if (!grown) {
				ret = -ENOMEM;
				break;
			}
			text = grown;
		}
		len += fread(text + len, 1, room - len, file);
	} while (len == room);
	if (!ret && ferror(file))
		ret = -errno;
	fclose(file);
	return ret ? ret : (int64_t)len;
}

/* All ranks know, and end, none before what it sent is taken; one says why. */
static void refuse(const char *format, const char *path, const char *why)
{
	ranks_end();
	if (ranks_rank)
		exit(1);
	ranks_die(format, path, why);
}

/* Rank 0 reads the file and hands it to all: so all have the same graph. */
static void load_graph(const char *path)
{
	int64_t len = 0;
	int ret;

	if (!ranks_rank)
		len = read_file(path);
	ranks_broadcast(&len, 1, RANKS_U64, 0);
	if (len < 0)
		refuse("cannot read %s: %s", path, strerror((int)-len));
	if (ranks_rank)
		text = ranks_zeroed((size_t)len);
	ranks_broadcast(text, (uint64_t)len, RANKS_BYTE, 0);
	ret = graph_read(&graph, text, (size_t)len);
	if (ret)
		refuse("%s: %s", path, ret == -EINVAL ? graph.why : strerror(-ret));
}

/* ---- the computation ------------------------------------------------------- */

/* One kind of operation: how the last one was done, and the time of all. */
struct operation {
	const char *name;
	uint64_t bytes;
	double total_us;
	struct ranks_told last;
};

struct result {
	double *scores;
	uint32_t iterations;
	double change;
	struct operation vector;
	struct operation norm;
};

static void sum_over_ranks(double *values, uint64_t nr, struct operation *operation)
{
	double start = ranks_now_us();

	ranks_sum(values, nr, RANKS_F64);
	operation->total_us += ranks_now_us() - start;
	operation->bytes = nr * sizeof(*values);
	ranks_last(&operation->last);
}

static uint32_t share_start(uint32_t rank)
{
	return (uint32_t)ranks_share(graph.nr_packages, rank);
}

/*
 * What my packages pass on: to those that they depend on, in equal parts; what
 * packages without dependencies have goes to all alike, and is added up behind
 * the last package.
 */
static void pass_on(const double *scores, double *sums)
{
	memset(sums, 0, (graph.nr_packages + 1) * sizeof(*sums));
	for (uint32_t p = share_start(ranks_rank); p < share_start(ranks_rank + 1); p++) {
		uint32_t first = graph.first[p], end = graph.first[p + 1];

		for (uint32_t l = first; l < end; l++)
			sums[graph.links[l]] += scores[p] / (end - first);
		if (first == end)
			sums[graph.nr_packages] += scores[p];
	}
}

/* New scores of all packages. Return: how far those of my packages moved. */
static double update(double *scores, const double *sums)
{
	const double nr = graph.nr_packages, to_all = sums[graph.nr_packages] / nr;
	double change = 0;

	for (uint32_t p = 0; p < graph.nr_packages; p++) {
		double score = (1 - damping) / nr + damping * (sums[p] + to_all);

		if (p >= share_start(ranks_rank) && p < share_start(ranks_rank + 1))
			change += fabs(score - scores[p]);
		scores[p] = score;
	}
	return change;
}

static void compute(double *sums, struct result *result)
{
	*result = (struct result){ .vector.name = "vector allreduce",
				   .norm.name = "norm allreduce" };
	result->scores = ranks_zeroed(graph.nr_packages * sizeof(double));
	for (uint32_t p = 0; p < graph.nr_packages; p++)
		result->scores[p] = 1.0 / graph.nr_packages;
	do {
		pass_on(result->scores, sums);
		sum_over_ranks(sums, graph.nr_packages + 1, &result->vector);
		result->change = update(result->scores, sums);
		sum_over_ranks(&result->change, 1, &result->norm);
		result->iterations++;
	} while (result->change >= tolerance && result->iterations < ITERATIONS_MAX);
}

/* ---- what is printed ----------------------------------------------------------- */

static int by_score(const void *a_in, const void *b_in, void *scores_in)
{
	const uint32_t *a = a_in, *b = b_in;
	const double *scores = scores_in;

	if (scores[*a] != scores[*b])
		return scores[*a] < scores[*b] ? 1 : -1;
	return (*a > *b) - (*a < *b);
}

static void print_top(double *scores)
{
	uint32_t *order = ranks_zeroed(graph.nr_packages * sizeof(*order));

	for (uint32_t p = 0; p < graph.nr_packages; p++)
		order[p] = p;
	qsort_r(order, graph.nr_packages, sizeof(*order), by_score, scores);
	for (uint32_t i = 0; i < TOP && i < graph.nr_packages; i++) {
		const struct slice *name = &graph.packages[order[i]].name;

		printf("  %2u.  %.6f  %.*s\n", i + 1, scores[order[i]],
		       (int)(name->end - name->at), name->at);
	}
	free(order);
}

static void print_operation(const struct operation *operation, uint32_t times)
{
	const struct ranks_told *last = &operation->last;

	printf("  %-6s %-17s %9" PRIu64 " %11.1f  %-18s %s\n", last->path, operation->name,
	       operation->bytes, operation->total_us / times, last->schedule, last->why);
}

static void print_result(const struct result *result)
{
	print_operation(&result->vector, result->iterations);
	print_operation(&result->norm, result->iterations);
}

static void print_all(const char *path, const struct result *first)
{
	printf("PageRank of %" PRIu32 " packages with %" PRIu32 " dependencies (%s), %" PRIu32
	       " ranks\n\n", graph.nr_packages, graph.nr_links, path, ranks_size);
	print_top(first->scores);
	printf("\n%" PRIu32 " iterations, last change %.1e\n\n", first->iterations, first->change);
	printf("  %-6s %-17s %9s %11s  %-18s %s\n", "path", "operation", "bytes", "us/op",
	       "schedule", "why this path");
	print_result(first);
}

static void print_second(const struct result *first, const struct result *second, bool equal)
{
	print_result(second);
	printf("\nBoth gave %s, in %" PRIu32 " and %" PRIu32 " iterations.\n",
	       equal ? "the same bits" : "DIFFERENT bits", first->iterations, second->iterations);
	printf("Digest of the scores: NIC %016" PRIx64 ", host %016" PRIx64 "\n",
	       ranks_digest(first->scores, graph.nr_packages * sizeof(double)),
	       ranks_digest(second->scores, graph.nr_packages * sizeof(double)));
}

/* Same bits on every rank? */
static bool same_bits(const struct result *a, const struct result *b)
{
	uint64_t differ = memcmp(a->scores, b->scores, graph.nr_packages * sizeof(double)) != 0;

	ranks_sum(&differ, 1, RANKS_U64);
	return !differ;
}

/* The same once more by the other path. */
static bool compare(double *sums, const struct result *first)
{
	struct result second;
	bool equal;

	compute(sums, &second);
	equal = same_bits(first, &second);
	if (!ranks_rank)
		print_second(first, &second, equal);
	free(second.scores);
	return equal;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/var/lib/dpkg/status";
	struct result result;
	bool right = true;
	double *sums;

	ranks_begin();
	load_graph(path);
	sums = ranks_alloc((graph.nr_packages + 1) * sizeof(*sums));
	ranks_go();
	compute(sums, &result);
	ranks_stop();
	if (!ranks_rank)
		print_all(path, &result);
	if (ranks_by_host())
		right = compare(sums, &result);
	ranks_report("\nThe first time", result.scores, graph.nr_packages * sizeof(double));
	free(result.scores);
	graph_free(&graph);
	free(text);
	ranks_end();
	return right ? 0 : 1;
}
