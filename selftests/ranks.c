// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of a behaviour test: real process, real library, real engine. The
 * shell tests start it under muster-run with the name of a behaviour, or of several
 * that one job shows in turn; it exits 0 when they were seen, and says on stderr
 * what was not.
 *
 * usage: ranks BEHAVIOUR[=ARGUMENT][,BEHAVIOUR[=ARGUMENT]]... [ARGUMENT]      of those that have none
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <muster.h>
#include <muster_desc.h>

#include "expect.h"

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size;

static const struct {
	enum muster_type type;
	const char *name;
	size_t bytes;
	enum muster_kind kind;
} types[] = {
#define TYPE(name, number, word, bytes, kind) { MUSTER_##name, word, bytes, MUSTER_KIND_##kind },
	MUSTER_DTYPES(TYPE)
};

static const unsigned int kinds_of[] = {
#define OP(name, number, word, kinds) [number] = kinds,
	MUSTER_REDOPS(OP)
};

enum { NR_TYPES = sizeof(types) / sizeof(types[0]) };

/* ---- inputs that every rank can compute for every other ---------------------- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* What may be a real number is below 2. */
static void element(void *at, int t, uint32_t of_rank, uint64_t index, uint64_t salt)
{
	uint64_t v = mix(index + mix(salt + mix(of_rank + 1)));

	if (types[t].kind == MUSTER_KIND_FLOAT) {
		double real = (double)(int64_t)v / 0x1p40;
		float single = (float)real;

		memcpy(at, types[t].bytes == 4 ? (void *)&single : (void *)&real, types[t].bytes);
	} else if (types[t].kind & MUSTER_KINDS_INTEGER) {
		memcpy(at, &v, types[t].bytes);
	} else {
		uint64_t two[2] = { v & 0xbfffbfffbfffbfff, mix(v) & 0xbfffbfffbfffbfff };

		memcpy(at, two, types[t].bytes);
	}
}

static void fill(void *buffer, int t, uint32_t of_rank, uint64_t count, uint64_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		element((char *)buffer + i * types[t].bytes, t, of_rank, i, salt);
}

static int64_t as_integer(const void *at, int t)
{
	unsigned int rest = 64 - 8 * (unsigned int)types[t].bytes;
	uint64_t v = 0;

	memcpy(&v, at, types[t].bytes);
	return types[t].kind == MUSTER_KIND_UINT ? (int64_t)v : (int64_t)(v << rest) >> rest;
}

static double as_real(const void *at, int t)
{
	double real;
	float single;

	if (types[t].bytes == 4) {
		memcpy(&single, at, 4);
		return single;
	}
	memcpy(&real, at, 8);
	return real;
}

static uint64_t combine(enum muster_op op, uint64_t a, uint64_t b, bool below)
{
	switch (op) {
	case MUSTER_SUM: return a + b;
	case MUSTER_PROD: return a * b;
	case MUSTER_MIN: return below ? b : a;
	case MUSTER_MAX: return below ? a : b;
	case MUSTER_BAND: return a & b;
	case MUSTER_BOR: return a | b;
	case MUSTER_BXOR: return a ^ b;
	case MUSTER_LAND: return a && b;
	case MUSTER_LOR: return a || b;
	default: return !a != !b;
	}
}

/* Integers exactly, floats to rounding: a plain loop over the ranks. Others are left to unit tests. */
static bool plausible(const void *got, int t, enum muster_op op, uint64_t index, uint64_t salt)
{
	uint64_t v, acc = 0;
	double sum = 0, magnitude = 0, low = INFINITY, high = -INFINITY, product = 1;

	if (!(types[t].kind & (MUSTER_KINDS_INTEGER | MUSTER_KIND_FLOAT)))
		return true;
	for (uint32_t r = 0; r < size; r++) {
		element(&v, t, r, index, salt);
		if (types[t].kind == MUSTER_KIND_FLOAT) {
			double x = as_real(&v, t);

			sum += x;
			product *= x;
			magnitude += fabs(x);
			low = fmin(low, x);
			high = fmax(high, x);
			continue;
		}
		int64_t x = as_integer(&v, t), a = (int64_t)acc;
		bool below = types[t].type == MUSTER_U64 ? (uint64_t)x < acc : x < a;

		acc = r ? combine(op, acc, (uint64_t)x, below) : (uint64_t)x;
	}
	if (types[t].kind != MUSTER_KIND_FLOAT)
		return !memcmp(got, &acc, types[t].bytes);
	if (op == MUSTER_SUM)
		return fabs(as_real(got, t) - sum) <= magnitude * (types[t].bytes == 4 ? 1e-5 : 1e-13);
	if (op == MUSTER_PROD && types[t].bytes == 4 && !(fabs(product) < 1e38))
		return true;	/* more than an f32 can hold, somewhere on the way */
	if (op == MUSTER_PROD)
		return fabs(as_real(got, t) - product) <= fabs(product) * (types[t].bytes == 4 ? 1e-4 : 1e-12);
	return as_real(got, t) == (op == MUSTER_MIN ? low : high);
}

/* ---- behaviours ------------------------------------------------------------- */

static uint64_t digest = 1;

static void digest_add(const void *p, size_t bytes)
{
	const unsigned char *c = p;
	uint64_t word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), c += sizeof(word)) {
		memcpy(&word, c, sizeof(word));
		digest = mix(digest ^ word);
	}
	while (bytes--)
		digest = mix(digest ^ *c++);
}

static uint32_t bumps;	/* operations that the network has done (MUSTER_BUMP, MUSTER_FABRIC) */

/* Return: whether its bits are those of the other paths, by its own word. */
static bool expect_path(enum muster_path wanted)
{
	struct muster_op_info info;
	bool bump;

	muster_comm_last(world, &info);
	bump = wanted == MUSTER_PATH_NIC && ((info.path == MUSTER_PATH_BUMP && getenv("MUSTER_BUMP")) ||
					     (info.path == MUSTER_PATH_SWITCH && getenv("MUSTER_FABRIC")));
	bumps += bump;
	EXPECT(bump || info.path == wanted || (size == 1 && info.path == MUSTER_PATH_NONE) || !info.bytes,
	       "path %d, not %d: %s", info.path, wanted, info.why);
	return !strstr(info.why, "in its own order");
}

/* One collective on both paths: the same bits, and the right ones. */
static void both_paths(int coll, int t, enum muster_op op, uint64_t count, uint32_t root,
		       char *in, char *nic, char *host)
{
	uint64_t salt = mix((uint64_t)coll * 64 + (uint64_t)t * 8 + op) + count;
	size_t bytes = count * types[t].bytes;
	bool same_order = true;

	fill(in, t, rank, count, salt);
	for (int path = 0; path < 2; path++) {
		char *out = path ? host : nic;

		EXPECT_OK(muster_comm_offload(world, path ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE));
		memset(out, 0xa5, bytes);
		if (coll == 0)
			EXPECT_OK(muster_allreduce(world, in, out, count, types[t].type, op));
		else if (coll == 1)
			EXPECT_OK(muster_reduce(world, in, out, count, types[t].type, op, root));
		else {
			memcpy(out, in, bytes);
			EXPECT_OK(muster_broadcast(world, out, count, types[t].type, root));
		}
		same_order &= expect_path(path ? MUSTER_PATH_HOST : MUSTER_PATH_NIC);
	}
	if (coll == 1 && rank != root)
		return;
	EXPECT(!same_order || !memcmp(nic, host, bytes), "coll %d %s op %d count %" PRIu64
	       ": NIC and host path differ", coll, types[t].name, op, count);
	for (uint64_t i = 0; i < count; i += 1 + count / 50) {
		uint64_t sent[2];	/* the widest */

		element(sent, t, root, i, salt);
		EXPECT(coll == 2 ? !memcmp(nic + i * types[t].bytes, sent, types[t].bytes) :
		       plausible(nic + i * types[t].bytes, t, op, i, salt),
		       "coll %d %s op %d count %" PRIu64 ": element %" PRIu64 " is wrong",
		       coll, types[t].name, op, count, i);
	}
	if (coll != 1)
		digest_add(nic, bytes);
}

/* Every collective, type and op on both paths; of the lengths one in `apart`, here these, there those. */
static void bits_apart(const char *memory, size_t apart)
{
	static const uint64_t counts[] = { 0, 1, 7, 8, 65, 1000, 70001 };
	size_t room = 70001 * 16;
	bool plain = memory && !strcmp(memory, "plain");
	void *buffer[3];
	uint64_t low, high;

	for (int i = 0; i < 3; i++) {
		if (plain)
			EXPECT((buffer[i] = malloc(room)), "no memory");
		else
			EXPECT_OK(muster_alloc(job, room, &buffer[i]));
	}
	for (int t = 0; t < NR_TYPES; t++)
		for (int op = MUSTER_SUM; op < MUSTER_REPLACE; op++)
			for (size_t c = (size_t)(t + op) % apart; c < sizeof(counts) / sizeof(counts[0]); c += apart) {
				if (!(kinds_of[op] & types[t].kind) ||
				    (counts[c] > 1000 && (op != MUSTER_SUM || size > 8)))
					continue;
				for (int coll = 0; coll < (op == MUSTER_SUM ? 3 : 2); coll++)
					both_paths(coll, t, (enum muster_op)op, counts[c],
						   (uint32_t)(t + op) % size, buffer[0], buffer[1],
						   buffer[2]);
			}
	EXPECT_OK(muster_comm_offload(world, MUSTER_OFFLOAD_FORCE));
	EXPECT_OK(muster_barrier(world));
	EXPECT_OK(muster_allreduce(world, &digest, &low, 1, MUSTER_U64, MUSTER_MIN));
	EXPECT_OK(muster_allreduce(world, &digest, &high, 1, MUSTER_U64, MUSTER_MAX));
	EXPECT(low == high, "ranks have different bits");
	for (int i = 0; i < 3 && plain; i++)
		free(buffer[i]);
	EXPECT_OK(muster_barrier(world));
	expect_path(MUSTER_PATH_NIC);
	if (!rank && (getenv("MUSTER_BUMP") || getenv("MUSTER_FABRIC")))
		printf("bump %u operations\n", bumps);
	if (!rank)
		printf("digest %016" PRIx64 "\n", digest);
}

/* bits [plain|registered]: all lengths. */
static void bits(const char *memory)
{
	bits_apart(memory, 1);
}

/* some [plain|registered]: where each operation takes long. */
static void some(const char *memory)
{
	bits_apart(memory, 3);
}

/* victim MIB: allreduce for ever; says "ready" once; the script kills one rank. */
static void victim(const char *mib)
{
	size_t bytes = ((size_t)atoi(mib ? mib : "64") << 20) + 8;
	uint32_t dead = (uint32_t)atoi(getenv("VICTIM") ? getenv("VICTIM") : "0");
	char expected[32];
	void *in, *out;
	int ret;

	EXPECT_OK(muster_alloc(job, bytes, &in));
	EXPECT_OK(muster_alloc(job, bytes, &out));
	EXPECT_OK(muster_barrier(world));
	if (rank == dead) {
		printf("pid %d\n", getpid());
		fflush(stdout);
	}
	do
		ret = muster_allreduce(world, in, out, bytes / 8, MUSTER_F64, MUSTER_SUM);
	while (!ret);
	snprintf(expected, sizeof(expected), "rank %" PRIu32, dead);
	EXPECT(ret == -ECONNRESET, "error %d, not -ECONNRESET: %s", ret, muster_error(job));
	EXPECT(strstr(muster_error(job), expected), "'%s' does not name %s", muster_error(job), expected);
	ret = muster_barrier(world);
	EXPECT(ret == -ECONNRESET, "a later operation gave %d", ret);
	printf("%s\n", muster_error(job));
}

/* late SECONDS: rank 1 comes late by more than the deadline; nobody minds. */
static void late(const char *seconds)
{
	double one = 1, sum = 0;

	if (rank == 1)
		sleep((unsigned int)atoi(seconds ? seconds : "3"));
	EXPECT_OK(muster_allreduce(world, &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
	EXPECT(sum == size, "sum %f", sum);
}

/* mismatch WHAT: the last rank calls something else; all get -EPROTO at the latest one call later. */
static void mismatch(const char *what)
{
	bool odd = rank == size - 1;
	double in[8] = { 0 }, out[8];
	int ret = 0;

	for (int i = 0; i < 2 && !ret; i++) {
		if (!strcmp(what, "operation") && odd)
			ret = muster_broadcast(world, out, 4, MUSTER_F64, 0);
		else if (!strcmp(what, "root"))
			ret = muster_broadcast(world, out, 4, MUSTER_F64, odd ? 1 : 0);
		else
			ret = muster_allreduce(world, in, out, !strcmp(what, "length") && odd ? 5 : 4,
					       !strcmp(what, "type") && odd ? MUSTER_I64 : MUSTER_F64,
					       !strcmp(what, "op") && odd ? MUSTER_MAX : MUSTER_SUM);
	}
	if (!ret)
		ret = muster_barrier(world);
	EXPECT(ret == -EPROTO, "%s: gave %d: %s", what, ret, muster_error(job));
	printf("%s\n", muster_error(job));
}

/* bad: argument errors, found before anything is sent; afterwards all still works. */
static void bad(const char *argument)
{
	double in[4] = { 1, 2, 3, 4 }, out[4];
	void *memory;

	(void)argument;
#define EXPECT_ERROR(error, word, call)							\
	do {										\
		int ret_ = (call);							\
		EXPECT(ret_ == (error), "%s gave %d", #call, ret_);			\
		EXPECT(strstr(muster_error(job), word), "%s: '%s' lacks '%s'", #call,	\
		       muster_error(job), word);					\
	} while (0)
	EXPECT_ERROR(-EOVERFLOW, "elements", muster_allreduce(world, in, out, UINT64_MAX / 4, MUSTER_F64,
							    MUSTER_SUM));
	EXPECT_ERROR(-EINVAL, "type", muster_allreduce(world, in, out, 4, (enum muster_type)77, MUSTER_SUM));
	EXPECT_ERROR(-EINVAL, "operation", muster_allreduce(world, in, out, 4, MUSTER_F64,
							    (enum muster_op)(MUSTER_REDOP_LAST + 1)));
	EXPECT_ERROR(-EINVAL, "f64", muster_allreduce(world, in, out, 4, MUSTER_F64, MUSTER_BAND));
	EXPECT_ERROR(-EINVAL, "overlap", muster_allreduce(world, in, in + 1, 3, MUSTER_F64, MUSTER_SUM));
	EXPECT_ERROR(-EFAULT, "NULL", muster_allreduce(world, NULL, out, 4, MUSTER_F64, MUSTER_SUM));
	EXPECT_ERROR(-EINVAL, "root", muster_broadcast(world, in, 4, MUSTER_F64, size));
	EXPECT_OK(muster_alloc(job, 4096, &memory));
	EXPECT_ERROR(-EFAULT, "32768", muster_allreduce(world, memory, out, 4096, MUSTER_F64, MUSTER_SUM));
	muster_free(job, memory);
	EXPECT_OK(muster_allreduce(world, in, out, 4, MUSTER_F64, MUSTER_SUM));
	EXPECT(out[3] == 4.0 * size, "sum %f", out[3]);
}

/* started: several operations in flight, finished out of order; groups beside the world. */
static void started(const char *argument)
{
	enum { N = 6 };
	struct muster_request *request[N];
	struct muster_comm *half;
	uint32_t nr = (size + 1) / 2;
	double in[N], out[N];
	bool done;

	(void)argument;
	for (int i = 0; i < N; i++) {
		in[i] = i + 1;
		EXPECT_OK(muster_allreduce_start(world, &in[i], &out[i], 1, MUSTER_F64, MUSTER_SUM,
						 &request[i]));
	}
	for (int i = N - 1; i > 0; i--)
		EXPECT_OK(muster_wait(request[i]));
	do
		EXPECT_OK(muster_test(request[0], &done));
	while (!done);
	for (int i = 0; i < N; i++)
		EXPECT(out[i] == (i + 1.0) * size, "operation %d: %f", i, out[i]);
	EXPECT_OK(muster_comm_split(world, rank % 2 ? MUSTER_COLOUR_NONE : 7, 0, &half));
	EXPECT((half != NULL) == !(rank % 2), "wrong group");
	if (half) {
		EXPECT_OK(muster_allreduce(half, in, out, 1, MUSTER_F64, MUSTER_SUM));
		EXPECT(out[0] == nr, "sum over the group: %f", out[0]);
		muster_comm_free(half);
	}
	EXPECT_OK(muster_barrier(world));
}

/* One rank calls the library while an operation runs; the others wait for the operation first. */
static void call_between(uint32_t first, uint64_t count)
{
	double *in = calloc(count, sizeof(*in)), *out = calloc(count, sizeof(*out));
	struct muster_comm *old, *comm;
	struct muster_request *request;
	void *memory;

	EXPECT_OK(muster_comm_dup(world, &old));
	in[count - 1] = rank;
	EXPECT_OK(muster_allreduce_start(world, in, out, count, MUSTER_F64, MUSTER_SUM, &request));
	if (rank != first)
		EXPECT_OK(muster_wait(request));
	EXPECT_OK(muster_alloc(job, 1 << 20, &memory));
	muster_comm_free(old);
	EXPECT_OK(muster_comm_dup(world, &comm));
	muster_free(job, memory);
	if (rank == first)
		EXPECT_OK(muster_wait(request));
	EXPECT(out[count - 1] == size * (size - 1) / 2, "sum %f", out[count - 1]);
	EXPECT_OK(muster_barrier(comm));
	muster_comm_free(comm);
	free(in);
	free(out);
}

/* creates: no call stops what was started before, whoever makes it, on whichever path. */
static void creates(const char *argument)
{
	static const uint64_t counts[] = { 1, 1000, 300000 };

	(void)argument;
	for (enum muster_offload offload = MUSTER_OFFLOAD_OFF; offload <= MUSTER_OFFLOAD_TRY; offload++) {
		EXPECT_OK(muster_comm_offload(world, offload));
		for (uint32_t i = 0; i < 3; i++)
			for (uint32_t first = 0; first < size; first++)
				call_between(first, counts[i]);
	}
}

/*
 * overtakes: rank 0 has more started on one communicator than a NIC queues of it, and then
 * starts on another, where the others wait for it before they begin with the first.
 */
static void overtakes(const char *argument)
{
	enum { N = 40, COUNT = 1024 };	/* two queues' worth; of 8 KiB each */
	struct muster_request *request[N], *other;
	struct muster_comm *comm;
	double in = 1, out;
	void *memory;
	double *many;

	(void)argument;
	EXPECT_OK(muster_comm_dup(world, &comm));
	EXPECT_OK(muster_alloc(job, 2 * N * COUNT * sizeof(*many), &memory));
	many = memory;
	for (int i = 0; i < N * COUNT; i++)
		many[i] = i;
	if (rank)
		EXPECT_OK(muster_allreduce(comm, &in, &out, 1, MUSTER_F64, MUSTER_SUM));
	for (int i = 0; i < N; i++)
		EXPECT_OK(muster_allreduce_start(world, many + i * COUNT, many + (N + i) * COUNT,
						 COUNT, MUSTER_F64, MUSTER_SUM, &request[i]));
	if (!rank) {
		EXPECT_OK(muster_allreduce_start(comm, &in, &out, 1, MUSTER_F64, MUSTER_SUM, &other));
		EXPECT_OK(muster_wait(other));
	}
	EXPECT(out == size, "sum %f", out);
	for (int i = 0; i < N; i++)
		EXPECT_OK(muster_wait(request[i]));
	for (int i = 0; i < N * COUNT; i++)
		EXPECT(many[N * COUNT + i] == (double)i * size, "element %d", i);
	muster_free(job, memory);
	muster_comm_free(comm);
}

/* crosses: an operation started on each of many communicators, by odd ranks in the other order. */
static void crosses(const char *argument)
{
	enum { N = 40 };	/* more than a bump has groups */
	struct muster_request *request[N];
	struct muster_comm *comm[N];
	double in = 1, out[N];

	(void)argument;
	for (int i = 0; i < N; i++)
		EXPECT_OK(muster_comm_dup(world, &comm[i]));
	for (int k = 0; k < N; k++) {
		int i = rank % 2 ? N - 1 - k : k;

		EXPECT_OK(muster_allreduce_start(comm[i], &in, &out[i], 1, MUSTER_F64, MUSTER_SUM, &request[i]));
	}
	for (int i = 0; i < N; i++) {
		EXPECT_OK(muster_wait(request[i]));
		EXPECT(out[i] == size, "sum %f", out[i]);
		muster_comm_free(comm[i]);
	}
}

/* leaves: the last rank finalizes early; the others learn it, at the latest one operation later. */
static void leaves(const char *argument)
{
	int ret;

	(void)argument;
	ret = muster_barrier(world);
	if (rank == size - 1)
		return;
	if (!ret)
		ret = muster_barrier(world);
	EXPECT(ret == -ECONNRESET, "gave %d", ret);
	printf("%s\n", muster_error(job));
}

/* In KiB, of /proc/self/NAME. */
static double own_kib(const char *name, const char *key)
{
	char line[256];
	double kib = 0;
	FILE *file = fopen(name, "re");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			kib = strtod(line + strlen(key), NULL);
	if (file)
		fclose(file);
	return kib;
}

/* What a job of many ranks takes of memory, with page tables: the ranks add it up. */
static void scale(const char *argument)
{
	double mine[2] = { 1, 0 }, all[2];

	(void)argument;
	EXPECT_OK(muster_allreduce(world, mine, all, 1, MUSTER_F64, MUSTER_SUM));
	EXPECT(all[0] == size, "the sum is %g", all[0]);
	mine[1] = own_kib("/proc/self/smaps_rollup", "Pss:") + own_kib("/proc/self/status", "VmPTE:");
	EXPECT_OK(muster_allreduce(world, mine, all, 2, MUSTER_F64, MUSTER_SUM));
	EXPECT(all[0] == size, "the sum is %g", all[0]);
	if (!rank)
		printf("%.0f\n", all[1] / 1024);
}

/* Other pages at the same place, by each of the ways that there are. */
static void remap(char *at, size_t bytes, int way)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *other = at;

	if (way == 0)
		EXPECT(!madvise(at, bytes, MADV_DONTNEED), "madvise: %s", strerror(errno));
	if (way == 1)
		other = mmap(at, bytes, prot, flags | MAP_FIXED, -1, 0);
	if (way == 2) {
		munmap(at, bytes);
		other = mmap(at, bytes, prot, flags | MAP_FIXED_NOREPLACE, -1, 0);
	}
	if (way == 3) {
		other = mmap(NULL, bytes, prot, flags, -1, 0);
		memset(other, 1, bytes);
		other = mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	}
	EXPECT(other == at, "way %d: %s", way, strerror(errno));
}

/* remaps: what lies at an address now is summed, not what lay there when the NIC was told of it. */
static void remaps(const char *argument)
{
	enum { TURNS = 24, WAYS = 4, COUNT = 20000 };
	const size_t bytes = COUNT * sizeof(double);
	double *in = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)argument;
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		for (uint32_t i = 0; i < COUNT; i++)
			in[i] = turn * COUNT + i;
		EXPECT_OK(muster_allreduce(world, in, out, COUNT, MUSTER_F64, MUSTER_SUM));
		for (uint32_t i = 0; i < COUNT; i++)
			EXPECT(out[i] == size * in[i], "turn %u, element %u: %g", turn, i, out[i]);
		if (turn % 3)	/* and now and then all stays where it is */
			remap((char *)(turn % 2 ? in : out), bytes, (int)(turn / 2 % WAYS));
	}
	munmap(in, bytes);
	munmap(out, bytes);
}

static const struct {
	const char *name;
	void (*run)(const char *argument);
} behaviours[] = {
	{ "bits", bits }, { "some", some }, { "victim", victim },   { "late", late },
	{ "mismatch", mismatch }, { "bad", bad },
	{ "started", started }, { "creates", creates }, { "leaves", leaves },
	{ "scale", scale },
	{ "overtakes", overtakes }, { "crosses", crosses }, { "remaps", remaps },
};

static bool show(char *name, const char *argument)
{
	char *own = strchr(name, '=');

	if (own) {
		*own = 0;
		argument = own + 1;
	}
	for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++)
		if (!strcmp(name, behaviours[i].name)) {
			behaviours[i].run(argument);
			return true;
		}
	fprintf(stderr, "ranks: there is no behaviour '%s'\n", name);
	return false;
}

int main(int argc, char **argv)
{
	bool shown = true;

	if (argc < 2) {
		fprintf(stderr, "usage: ranks bits|some|victim|late|mismatch|bad|started|creates|leaves|overtakes|crosses|remaps[,...] [ARGUMENT]\n");
		return 2;
	}
	if (muster_init(&job)) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 3;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	for (char *name = strtok(argv[1], ","); name && shown; name = strtok(NULL, ","))
		shown = show(name, argv[2]);
	muster_finalize(job);
	return shown ? 0 : 2;
}
