// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * PageRank of the Debian packages: a package is important when important ones
 * depend on it. Each rank owns a share of the packages and adds up what these
 * pass on to all others; one vector allreduce an iteration makes the sum, one
 * allreduce of a single number says how far the scores still moved.
 *
 * All is computed twice, offloaded to the NIC and on the host, and must give the
 * same bits. Run it as: muster-run -n 4 pagerank [FILE]
 * FILE is in the format of /var/lib/dpkg/status (default); a larger one is made
 * by: apt-cache dumpavail >FILE
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <muster.h>

#include "dpkg_graph.h"

enum { ITERATIONS_MAX = 200, TOP = 10 };
static const double damping = 0.85, tolerance = 1e-10;

/* What all of this program works on: the job, its world, and the graph of a text. */
static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;
static char *text;
static struct graph graph;

static void check(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "pagerank: %s: %s\n", what, muster_error(job));
	exit(1);
}

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	if (!memory) {
		fprintf(stderr, "pagerank: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memory;
}

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

/* Rank 0 reads the file and hands it to all: so all have the same graph. */
static void load_graph(const char *path)
{
	int64_t len = 0;
	int ret;

	if (rank == 0)
		len = read_file(path);
	check(muster_broadcast(world, &len, 1, MUSTER_I64, 0), "handing out the file's length");
	if (len < 0) {
		if (rank == 0)
			fprintf(stderr, "pagerank: cannot read %s: %s\n", path,
				strerror((int)-len));
		exit(1);
	}
	if (rank != 0)
		text = allocate((size_t)len);
	check(muster_broadcast(world, text, (uint64_t)len, MUSTER_I8, 0), "handing out the file");
	ret = graph_read(&graph, text, (size_t)len);
	if (ret) {
		if (rank == 0)
			fprintf(stderr, "pagerank: %s: %s\n", path,
				ret == -EINVAL ? graph.why : strerror(-ret));
		exit(1);
	}
}

/* ---- the computation ------------------------------------------------------- */

/* One kind of operation: what it did the last time, and the time of all. */
struct operation {
	const char *name;
	double total_us;
	struct muster_op_info last;
};

struct result {
	double *scores;
	uint32_t iterations;
	double change;
	struct operation vector;
	struct operation norm;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void sum_over_ranks(double *values, uint64_t nr, struct operation *operation)
{
	double start = now_us();

	check(muster_allreduce(world, values, values, nr, MUSTER_F64, MUSTER_SUM),
	      operation->name);
	operation->total_us += now_us() - start;
	muster_comm_last(world, &operation->last);
}

static uint32_t share_start(uint32_t of_rank)
{
	return (uint32_t)((uint64_t)graph.nr_packages * of_rank / size);
}

/*
 * What my packages pass on: to those that they depend on, in equal parts; what
 * packages without dependencies have goes to all alike, and is added up behind
 * the last package.
 */
static void pass_on(const double *scores, double *sums)
{
	memset(sums, 0, (graph.nr_packages + 1) * sizeof(*sums));
	for (uint32_t p = share_start(rank); p < share_start(rank + 1); p++) {
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

		if (p >= share_start(rank) && p < share_start(rank + 1))
			change += fabs(score - scores[p]);
		scores[p] = score;
	}
	return change;
}

static void compute(enum muster_offload offload, struct result *result)
{
	void *sums;

	*result = (struct result){ .vector.name = "vector allreduce",
				   .norm.name = "norm allreduce" };
	result->scores = allocate(graph.nr_packages * sizeof(double));
	for (uint32_t p = 0; p < graph.nr_packages; p++)
		result->scores[p] = 1.0 / graph.nr_packages;

	check(muster_comm_offload(world, offload), "choosing the path");
	check(muster_alloc(job, (graph.nr_packages + 1) * sizeof(double), &sums),
	      "allocating memory");
	do {
		pass_on(result->scores, sums);
		sum_over_ranks(sums, graph.nr_packages + 1, &result->vector);
		result->change = update(result->scores, sums);
		sum_over_ranks(&result->change, 1, &result->norm);
		result->iterations++;
	} while (result->change >= tolerance && result->iterations < ITERATIONS_MAX);
	muster_free(job, sums);
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
	uint32_t *order = allocate(graph.nr_packages * sizeof(*order));

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
	static const char *const paths[] = { "none", "host", "NIC", "switch", "bump" };
	const struct muster_op_info *last = &operation->last;

	printf("  %-6s %-17s %9" PRIu64 " %11.1f  %-18s %s\n", paths[last->path], operation->name,
	       last->bytes, operation->total_us / times, last->schedule, last->why);
}

static void print_result(const struct result *result)
{
	print_operation(&result->vector, result->iterations);
	print_operation(&result->norm, result->iterations);
}

/* One number for all bits of the scores: runs elsewhere can be compared with this one. */
static uint64_t digest(const double *scores)
{
	uint64_t hash = 0xcbf29ce484222325;	/* FNV-1a */

	for (size_t i = 0; i < graph.nr_packages * sizeof(*scores); i++)
		hash = (hash ^ ((const uint8_t *)scores)[i]) * 0x100000001b3;
	return hash;
}

static void print_all(const char *path, const struct result *nic, const struct result *host,
		      bool equal)
{
	printf("PageRank of %" PRIu32 " packages with %" PRIu32 " dependencies (%s), %" PRIu32
	       " ranks\n\n", graph.nr_packages, graph.nr_links, path, size);
	print_top(nic->scores);
	printf("\n%" PRIu32 " iterations, last change %.1e (on the host path %" PRIu32 ", %.1e)\n\n",
	       nic->iterations, nic->change, host->iterations, host->change);
	printf("  %-6s %-17s %9s %11s  %-18s %s\n", "path", "operation", "bytes", "us/op",
	       "schedule", "why this path");
	print_result(nic);
	print_result(host);
	printf("\nBoth gave %s.\n", equal ? "the same bits" : "DIFFERENT bits");
	printf("Digest of the scores: NIC %016" PRIx64 ", host %016" PRIx64 "\n",
	       digest(nic->scores), digest(host->scores));
}

/* Same bits on every rank? */
static bool same_bits(const struct result *a, const struct result *b)
{
	int32_t differ = memcmp(a->scores, b->scores, graph.nr_packages * sizeof(double)) != 0;

	check(muster_allreduce(world, &differ, &differ, 1, MUSTER_I32, MUSTER_MAX),
	      "comparing the results");
	return !differ;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/var/lib/dpkg/status";
	struct result nic, host;
	bool equal;
	int ret;

	ret = muster_init(&job);
	if (ret) {
		fprintf(stderr, "pagerank: %s\n", muster_error(NULL));
		return 1;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);

	load_graph(path);
	compute(MUSTER_OFFLOAD_TRY, &nic);
	compute(MUSTER_OFFLOAD_OFF, &host);
	equal = same_bits(&nic, &host);
	if (rank == 0)
		print_all(path, &nic, &host, equal);
	free(nic.scores);
	free(host.scores);
	graph_free(&graph);
	free(text);
	muster_finalize(job);
	return equal ? 0 : 1;
}
