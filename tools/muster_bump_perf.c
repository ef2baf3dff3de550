// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_bump_perf: allreduces of doubles back to back through the bump in the wire,
 * under muster-run --bump, of one size after the other. Each rank measures its own;
 * rank 0 prints.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "muster_bump.h"
#include "version.h"

static const char help[] =
	"Usage: muster-run --bump -n RANKS muster_bump_perf [OPTION]...\n"
	"Sum doubles over all ranks back to back, and say how long that takes.\n"
	"\n"
	"  -s, --bytes=N[,N]... of each allreduce, 8 to 1408 (8): one size after the other\n"
	"  -n, --count=N        how many (10000); a tenth, at most 100, before, to warm up\n"
	"  -a, --algorithm=A    ring, tree, doubling (default), torus\n"
	"  -h, --help           show this\n"
	"  -V, --version        show the version\n"
	"\n"
	"Prints for each size: ranks, bytes, the mean, the median and the minimum in microseconds,\n"
	"the spread (mean less minimum, of the mean) in percent, and how many requests were\n"
	"repeated.\n";

enum { ASK_AGAIN_US = 20000, DEADLINE_US = 30000000, WARM_UP_MAX = 100, SIZES_MAX = 32 };

static const char *const algorithms[] = { NULL, "ring", "tree", "doubling", "torus" };

struct datagram {
	struct muster_bump_header header;
	double values[MUSTER_BUMP_DATA_MAX / 8];
};

struct perf {
	int sock;
	uint32_t count;
	uint32_t id;		/* of the next allreduce */
	uint16_t elements;
	uint8_t algorithm;
	uint64_t repeated;
	struct datagram ask, answer;
};

static uint64_t number(const char *name, int radix)
{
	const char *text = getenv(name);

	if (!text)
		errx(2, "%s is not set: run this by muster-run --bump", name);
	return strtoull(text, NULL, radix);
}

static void open_bump(struct perf *perf)
{
	struct timeval patience = { .tv_usec = ASK_AGAIN_US };
	struct sockaddr_in bump = { .sin_family = AF_INET, .sin_port = htons(MUSTER_BUMP_PORT) };
	struct muster_bump_header header = {
		.magic = htole32(MUSTER_BUMP_MAGIC), .version = MUSTER_BUMP_VERSION,
		.message = MUSTER_BUMP_REQUEST, .operation = MUSTER_BUMP_ALLREDUCE,
		.algorithm = perf->algorithm, .type = MUSTER_DTYPE_F64, .redop = MUSTER_REDOP_SUM,
		.stride = htole16(1),
		.group = htole32((uint32_t)number("MUSTER_BUMP_GROUP", 10)),
		.hosts = htole16((uint16_t)number("MUSTER_BUMP_HOSTS", 10)),
		.rank = htole16((uint16_t)number("MUSTER_RANK", 10)),
		.ranks = htole16((uint16_t)number("MUSTER_SIZE", 10)),
		.local_rank = (uint8_t)number("MUSTER_BUMP_LOCAL_RANK", 10),
		.local_ranks = (uint8_t)number("MUSTER_BUMP_LOCAL_RANKS", 10),
		.key = htole64(number("MUSTER_BUMP_KEY", 16)),
	};

	perf->ask.header = header;
	perf->sock = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, "10.77.255.254", &bump.sin_addr);
	if (perf->sock < 0 || connect(perf->sock, (struct sockaddr *)&bump, sizeof(bump)) ||
	    setsockopt(perf->sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err(1, "no way to the bump");
}

static void allreduce(struct perf *perf)
{
	size_t len = sizeof(perf->ask.header) + perf->elements * 8u;
	uint64_t deadline = muster_clock_ns() + DEADLINE_US * 1000ull;
	bool again = false;
	ssize_t got;

	perf->ask.header.id = htole32(perf->id++);
	do {
		perf->repeated += again;
		again = true;
		if (send(perf->sock, &perf->ask, len, 0) < 0 && errno != ECONNREFUSED)
			err(1, "cannot send");
		do
			got = recv(perf->sock, &perf->answer, sizeof(perf->answer), 0);
		while (got >= 64 && perf->answer.header.id != perf->ask.header.id);
		if (got >= 64 && perf->answer.header.message == MUSTER_BUMP_ERROR)
			errx(1, "the bump says: error %u", perf->answer.header.status);
		if (muster_clock_ns() > deadline)
			errx(1, "no answer within %d s", DEADLINE_US / 1000000);
	} while (got != (ssize_t)len);
}

/* Every rank has i + rank as its i-th element. */
static void check(const struct perf *perf)
{
	uint32_t ranks = le16toh(perf->ask.header.ranks);

	for (uint32_t i = 0; i < perf->elements; i++)
		if (perf->answer.values[i] != i * (double)ranks + ranks * (ranks - 1) / 2.0)
			errx(1, "a wrong sum");
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(const struct perf *perf, const uint32_t *ns, uint64_t all)
{
	printf("%u %u %.2f %.2f %.2f %.1f %llu\n", le16toh(perf->ask.header.ranks),
	       perf->elements * 8u, (double)all / perf->count / 1e3, ns[perf->count / 2] / 1e3,
	       ns[0] / 1e3, 100 - 100.0 * ns[0] * perf->count / (double)all,
	       (unsigned long long)perf->repeated);
	fflush(stdout);
}

static void measure(struct perf *perf, uint16_t elements)
{
	uint32_t *ns = calloc(perf->count, sizeof(*ns));
	uint64_t begin, all = 0;

	if (!ns)
		err(1, "no memory");
	perf->elements = elements;
	perf->ask.header.count = htole16(elements);
	for (uint32_t i = 0; i < elements; i++)
		perf->ask.values[i] = i + (double)le16toh(perf->ask.header.rank);
	for (uint32_t i = 0; i <= perf->count / 10 && i < WARM_UP_MAX; i++)
		allreduce(perf);
	perf->repeated = 0;
	for (uint32_t i = 0; i < perf->count; i++) {
		begin = muster_clock_ns();
		allreduce(perf);
		ns[i] = (uint32_t)(muster_clock_ns() - begin);
		all += ns[i];
	}
	check(perf);
	qsort(ns, perf->count, sizeof(*ns), by_value);
	if (!perf->ask.header.rank)
		print(perf, ns, all);
	free(ns);
}

/* "8" or "8,32,128". */
static bool sizes_read(const char *text, uint16_t *elements, uint32_t *nr)
{
	char *end;

	for (*nr = 0; *nr < SIZES_MAX; text = end + 1) {
		unsigned long bytes = strtoul(text, &end, 10);

		if (bytes < 8 || bytes > MUSTER_BUMP_DATA_MAX)
			return false;
		elements[(*nr)++] = (uint16_t)(bytes / 8);
		if (*end != ',')
			return !*end;
	}
	return false;
}

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "muster_bump_perf: %s '%s'\nTry 'muster_bump_perf --help'.\n", what, value);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "bytes", required_argument, NULL, 's' }, { "count", required_argument, NULL, 'n' },
		{ "algorithm", required_argument, NULL, 'a' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	struct perf perf = { .count = 10000, .algorithm = MUSTER_BUMP_DOUBLING };
	uint16_t elements[SIZES_MAX] = { 1 };
	uint32_t nr = 1;
	int key;

	while ((key = getopt_long(argc, argv, "s:n:a:hV", options, NULL)) != -1) {
		switch (key) {
		case 's':
			if (!sizes_read(optarg, elements, &nr))
				return usage_error("-s wants 8 to 1408, not", optarg);
			break;
		case 'n':
			perf.count = (uint32_t)strtoul(optarg, NULL, 10);
			if (!perf.count)
				return usage_error("-n wants a number from 1, not", optarg);
			break;
		case 'a':
			for (perf.algorithm = MUSTER_BUMP_TORUS; perf.algorithm; perf.algorithm--)
				if (!strcmp(optarg, algorithms[perf.algorithm]))
					break;
			if (!perf.algorithm)
				return usage_error("-a is ring, tree, doubling or torus, not", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			puts("muster_bump_perf " MUSTER_VERSION);
			return 0;
		default:
			return 2;
		}
	}
	open_bump(&perf);
	for (uint32_t i = 0; i < nr; i++)
		measure(&perf, elements[i]);
	return 0;
}
