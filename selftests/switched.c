// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank at a network of leaf switches with some hosts each, below one spine: each operation
 * that a tree serves has the bits of the tree's own order, which a plain loop computes: hosts of
 * a leaf by number, then leaves by number. Groups are of all ranks, of some at one leaf, and
 * of some at several, in whatever order the communicator has them.
 *
 * usage: switched sweep HOSTS-OF-A-LEAF [MAX-BYTES] | order | leases [KEEP] | late FILE | chaos |
 *	outlives GONE BACK | replaced FILE | contend TURNS | hold FILE | tardy FILE
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster.h>

#include "../userlib/internal.h"
#include "arith.h"
#include "expect.h"
#include "filled.h"

static struct muster *job;
static uint32_t rank, size, each;

enum { ROOM = 1 << 20, MEMBERS_MAX = 64, PAUSE_US = 20000 };

struct group {
	struct muster_comm *comm;
	uint32_t nr;
	uint32_t ranks[MEMBERS_MAX];	/* by place in the communicator */
};

static uint8_t *in, *out, *wanted, *leaf, *other;
static uint64_t operations;

/* ---- what must come of it ------------------------------------------------------------ */

static bool is_member(const struct group *group, uint32_t of_rank)
{
	for (uint32_t i = 0; i < group->nr; i++)
		if (group->ranks[i] == of_rank)
			return true;
	return false;
}

static void expect_of(const struct group *group, uint8_t type, uint8_t op, uint64_t bytes,
		      uint64_t salt)
{
	bool first_leaf = true;

	for (uint32_t begin = 0; begin < size; begin += each) {
		bool first = true;

		for (uint32_t host = begin; host < begin + each; host++) {
			if (!is_member(group, host))
				continue;
			fill(other, host, bytes, salt);
			EXPECT(!fold(leaf, other, &first, type, op, bytes), "no such operation");
		}
		if (!first)
			EXPECT(!fold(wanted, leaf, &first_leaf, type, op, bytes), "no such operation");
	}
}

static void expect_switch(const struct group *group, uint64_t bytes)
{
	struct muster_op_info info;

	muster_comm_last(group->comm, &info);
	EXPECT(info.path == (bytes ? MUSTER_PATH_SWITCH : MUSTER_PATH_NONE), "path %d: %s", info.path,
	       info.why);
	operations++;
}

/* ---- the operations -------------------------------------------------------------------- */

static void allreduce(const struct group *group, uint8_t type, uint8_t op, uint64_t count, bool same)
{
	uint64_t bytes = count * muster_dtype_size(type), salt = type * 1000 + op * 10 + count;

	expect_of(group, type, op, bytes, salt);
	fill(in, rank, bytes, salt);
	memset(out, 0xa5, bytes + 1);
	EXPECT_OK(muster_allreduce(group->comm, in, same ? in : out, count, type, op));
	expect_switch(group, bytes);
	EXPECT(!memcmp(same ? in : out, wanted, bytes), "allreduce: type %d op %d count %" PRIu64
	       ": other bits", type, op, count);
	EXPECT(same || out[bytes] == 0xa5, "written behind the result");
}

static void reduce(const struct group *group, uint8_t type, uint8_t op, uint64_t count, uint32_t root)
{
	uint64_t bytes = count * muster_dtype_size(type), salt = type * 77 + op + count;
	bool is_root = group->ranks[root] == rank;

	expect_of(group, type, op, bytes, salt);
	fill(in, rank, bytes, salt);
	memset(out, 0xa5, bytes + 1);
	EXPECT_OK(muster_reduce(group->comm, in, is_root ? out : NULL, count, type, op, root));
	expect_switch(group, bytes);
	for (uint64_t i = is_root ? bytes : 0; i <= bytes; i++)
		EXPECT(out[i] == 0xa5, "reduce wrote where it should not");
	EXPECT(!is_root || !memcmp(out, wanted, bytes), "reduce: type %d op %d count %" PRIu64
	       " root %" PRIu32 ": other bits", type, op, count, root);
}

static void broadcast(const struct group *group, uint8_t type, uint64_t count, uint32_t root)
{
	uint64_t bytes = count * muster_dtype_size(type);

	fill(wanted, group->ranks[root], bytes, count);
	fill(out, rank, bytes, count);
	out[bytes] = 0xa5;
	EXPECT_OK(muster_broadcast(group->comm, out, count, type, root));
	expect_switch(group, bytes);
	EXPECT(!memcmp(out, wanted, bytes) && out[bytes] == 0xa5,
	       "broadcast: type %d count %" PRIu64 " root %" PRIu32 ": other bits", type, count, root);
}

/* Each has its block of what an allreduce would give, somewhere or where the block is in its own operand. */
static void reduce_scatter(const struct group *group, uint8_t type, uint8_t op, uint64_t count, bool same)
{
	uint64_t bytes = count * muster_dtype_size(type), salt = type * 31 + op + count;
	uint32_t own = 0;
	uint8_t *to;

	while (group->ranks[own] != rank)
		own++;
	to = same ? in + own * bytes : out;
	expect_of(group, type, op, bytes * group->nr, salt);
	fill(in, rank, bytes * group->nr, salt);
	memset(out, 0xa5, bytes + 1);
	EXPECT_OK(muster_reduce_scatter_block(group->comm, in, to, count, type, op));
	expect_switch(group, bytes);
	EXPECT(!memcmp(to, wanted + own * bytes, bytes), "reduce-scatter: type %d op %d count %" PRIu64
	       ": other bits", type, op, count);
	EXPECT(same || out[bytes] == 0xa5, "written behind the result");
}

static void gather_all(const struct group *group, uint8_t type, uint64_t count, bool same)
{
	uint64_t bytes = count * muster_dtype_size(type);
	uint32_t own = 0;

	for (uint32_t i = 0; i < group->nr; i++) {
		fill(wanted + i * bytes, group->ranks[i], bytes, count);
		own = group->ranks[i] == rank ? i : own;
	}
	memset(out, 0xa5, bytes * group->nr + 1);
	fill(same ? out + own * bytes : in, rank, bytes, count);
	EXPECT_OK(muster_allgather(group->comm, same ? out + own * bytes : in, out, count, type));
	expect_switch(group, bytes);
	EXPECT(!memcmp(out, wanted, bytes * group->nr), "allgather: type %d count %" PRIu64 ": other bits",
	       type, count);
	EXPECT(out[bytes * group->nr] == 0xa5, "written behind the result");
}

/* Twice of each, and once more: the device runs small ones from its memory then. */
static void repeated(const struct group *group)
{
	for (int i = 0; i < 5; i++) {
		allreduce(group, MUSTER_F64, MUSTER_SUM, 1, i & 1);
		EXPECT_OK(muster_barrier(group->comm));
		expect_switch(group, 1);
		broadcast(group, MUSTER_I32, 3, 0);
		reduce(group, MUSTER_F64, MUSTER_SUM, 2, 0);
	}
}

static void sweep_group(const struct group *group, uint64_t most)
{
	/* around a packet's 256 bytes and an MTU; prime; none */
	static const uint64_t lengths[] = { 0, 1, 8, 61, 64, 72, 248, 256, 264, 4088, 4096, 4104, 65537 };

	for (uint8_t type = 1; type <= MUSTER_DTYPE_LAST; type++)
		for (uint8_t op = 1; op < MUSTER_REDOP_REPLACE; op++) {
			uint64_t count = lengths[(type * 5 + op) % 10] / muster_dtype_size(type);

			if (!muster_arith_supported(type, op))
				continue;
			allreduce(group, type, op, count, op & 1);
			reduce(group, type, op, count + 1, (type + op) % group->nr);
		}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		if (lengths[i] > most)
			continue;
		allreduce(group, MUSTER_F64, MUSTER_SUM, lengths[i] / 8, false);
		allreduce(group, MUSTER_U8, MUSTER_MAX, lengths[i], true);
		reduce(group, MUSTER_F32, MUSTER_PROD, lengths[i] / 4, (uint32_t)i % group->nr);
		broadcast(group, MUSTER_U8, lengths[i], (uint32_t)i % group->nr);
		if (lengths[i] * group->nr >= ROOM)
			continue;
		reduce_scatter(group, MUSTER_F64, MUSTER_SUM, lengths[i] / 8, i & 1);
		reduce_scatter(group, MUSTER_I16, MUSTER_MAX, lengths[i] / 2, !(i & 1));
		gather_all(group, MUSTER_U8, lengths[i], i & 1);
	}
	repeated(group);
}

/* ---- groups ----------------------------------------------------------------------------- */

static void sweep_some(uint32_t nr, const uint32_t *ranks, uint64_t most)
{
	struct group group = { .nr = nr };

	memcpy(group.ranks, ranks, nr * sizeof(*ranks));
	if (!is_member(&group, rank))
		return;
	EXPECT_OK(muster_comm_create_group(muster_world(job), nr, ranks, 7, &group.comm));
	sweep_group(&group, most);
	muster_comm_free(group.comm);
}

/* Even and odd ranks at once, the last first. */
static void sweep_halves(uint64_t most)
{
	struct group group = { .nr = 0 };

	for (uint32_t i = size; i--;)
		if (i % 2 == rank % 2)
			group.ranks[group.nr++] = i;
	EXPECT_OK(muster_comm_split(muster_world(job), (int32_t)(rank % 2), -(int32_t)rank, &group.comm));
	sweep_group(&group, most);
	muster_comm_free(group.comm);
}

static void sweep(uint64_t most)
{
	struct group world = { .comm = muster_world(job), .nr = size };
	const uint32_t one_leaf[] = { 1, 0 }, some[] = { size - 1, 0, size / 2 };

	for (uint32_t i = 0; i < size; i++)
		world.ranks[i] = i;
	sweep_group(&world, most);
	sweep_halves(most);
	sweep_some(2, one_leaf, most);
	sweep_some(3, some, most);
	EXPECT_OK(muster_barrier(world.comm));
	if (!rank)
		printf("%" PRIu64 " operations by the switches\n", operations);
}

/* ---- other paths in a tree's order ------------------------------------------------------------- */

enum { ORDER_FEW = 16, ORDER_MANY = 3000 };	/* elements: by the low-latency tree, by the streaming one */

static float order_own[ORDER_MANY], order_out[ORDER_MANY], order_wanted[ORDER_MANY], order_short[ORDER_FEW];

/* Both signs and many sizes. */
static void order_fill(void)
{
	for (uint32_t i = 0; i < ORDER_MANY; i++) {
		uint64_t z = mix(i + mix(rank + 1));

		order_own[i] = (float)ldexp((double)(int16_t)z / 3, (int)(z >> 16 & 31) - 16);
	}
}

static void take_path(struct muster_comm *comm, enum muster_path path)
{
	bool is_tree = path == MUSTER_PATH_SWITCH, is_nic = path == MUSTER_PATH_NIC;

	EXPECT_OK(muster_comm_switch(comm, is_tree ? MUSTER_OFFLOAD_FORCE : MUSTER_OFFLOAD_OFF));
	EXPECT_OK(muster_comm_offload(comm, is_tree ? MUSTER_OFFLOAD_TRY :
					    is_nic ? MUSTER_OFFLOAD_FORCE : MUSTER_OFFLOAD_OFF));
}

static void expect_said(struct muster_comm *comm, enum muster_path path, const char *words)
{
	struct muster_op_info info;

	muster_comm_last(comm, &info);
	EXPECT(info.path == path && strstr(info.why, words), "path %d: %s", info.path, info.why);
}

/* Rank 0, by which all goes, has more to send than to a tree, unless they are few. */
static void expect_nic(struct muster_comm *comm)
{
	struct muster_op_info info;

	muster_comm_last(comm, &info);
	EXPECT(rank || size < 5 || info.descriptors > 2, "the NIC has run a tree's program");
}

/* count: of a reduce-scatter what all its blocks have. Return: how many are this rank's. */
static uint64_t combine(const struct group *group, enum muster_coll coll, uint64_t count, uint32_t root, float *result)
{
	bool is_root = group->ranks[root] == rank;

	switch (coll) {
	case MUSTER_COLL_REDUCE:
		EXPECT_OK(muster_reduce(group->comm, order_own, is_root ? result : NULL, count, MUSTER_F32,
					MUSTER_SUM, root));
		return is_root ? count : 0;
	case MUSTER_COLL_REDUCE_SCATTER:
		count /= group->nr;
		EXPECT_OK(muster_reduce_scatter_block(group->comm, order_own, result, count, MUSTER_F32, MUSTER_SUM));
		return count;
	default:
		EXPECT_OK(muster_allreduce(group->comm, order_own, result, count, MUSTER_F32, MUSTER_SUM));
		return count;
	}
}

/* The bits of the tree are those of all. */
static void by_all_paths(const struct group *group, enum muster_coll coll, uint64_t count, uint32_t root)
{
	static const enum muster_path paths[] = { MUSTER_PATH_SWITCH, MUSTER_PATH_NIC, MUSTER_PATH_HOST };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		float *result = paths[i] == MUSTER_PATH_SWITCH ? order_wanted : order_out;
		uint64_t mine;

		take_path(group->comm, paths[i]);
		mine = combine(group, coll, count, root, result);
		expect_said(group->comm, paths[i], paths[i] == MUSTER_PATH_SWITCH ? "own order, as on the other paths" :
			    count == ORDER_FEW ? "in the order of the low-latency tree" : "in the order of the streaming tree");
		EXPECT(!memcmp(result, order_wanted, mine * sizeof(*result)),
		       "%s, %u members, %" PRIu64 " elements, path %d: not the tree's bits", muster_coll_name(coll),
		       group->nr, count, paths[i]);
		if (coll == MUSTER_COLL_ALLREDUCE && paths[i] == MUSTER_PATH_NIC)
			expect_nic(group->comm);
		operations++;
	}
}

/* And they are not those of any order: each tree has others, and so has a schedule. */
static void by_all_orders(const struct group *group)
{
	by_all_paths(group, MUSTER_COLL_ALLREDUCE, ORDER_FEW, 0);
	memcpy(order_short, order_wanted, sizeof(order_short));
	by_all_paths(group, MUSTER_COLL_ALLREDUCE, ORDER_MANY, 0);
	EXPECT(memcmp(order_short, order_wanted, sizeof(order_short)), "both trees have the same bits");
	EXPECT_OK(muster_comm_schedule(group->comm, "binomial"));
	take_path(group->comm, MUSTER_PATH_NIC);
	EXPECT_OK(muster_allreduce(group->comm, order_own, order_out, ORDER_MANY, MUSTER_F32, MUSTER_SUM));
	expect_said(group->comm, MUSTER_PATH_NIC, "not in a tree's order: a schedule was chosen");
	EXPECT(memcmp(order_out, order_wanted, sizeof(order_out)), "any schedule has the tree's bits");
	EXPECT_OK(muster_comm_schedule(group->comm, NULL));
	by_all_paths(group, MUSTER_COLL_REDUCE, ORDER_MANY, group->nr - 1);
	by_all_paths(group, MUSTER_COLL_REDUCE_SCATTER, ORDER_MANY, 0);
}

static void order(void)
{
	struct group world = { .comm = muster_world(job), .nr = size }, some = { .nr = 0 };

	order_fill();
	for (uint32_t i = 0; i < size; i++)
		world.ranks[i] = i;
	by_all_orders(&world);
	for (uint32_t i = size; i--;)
		if (i % 3 != 1)
			some.ranks[some.nr++] = i;
	EXPECT_OK(muster_comm_split(world.comm, rank % 3 != 1, -(int32_t)rank, &some.comm));
	if (is_member(&some, rank)) {
		by_all_paths(&some, MUSTER_COLL_REDUCE, ORDER_FEW, 1);
		by_all_paths(&some, MUSTER_COLL_ALLREDUCE, ORDER_MANY, 0);
		by_all_paths(&some, MUSTER_COLL_REDUCE_SCATTER, ORDER_MANY, 0);
	}
	muster_comm_free(some.comm);
	EXPECT_OK(muster_barrier(world.comm));
	if (!rank)
		printf("%" PRIu64 " operations\n", operations);
}

static void forced_without(void)
{
	struct muster_comm *forced;

	EXPECT_OK(muster_comm_dup(muster_world(job), &forced));
	EXPECT_OK(muster_comm_switch(forced, MUSTER_OFFLOAD_FORCE));
	EXPECT(muster_barrier(forced) == -EOPNOTSUPP &&
	       strstr(muster_error(job), "the switches are forced, but cannot do this barrier: there is no tree"),
	       "%s", muster_error(job));
	muster_comm_free(forced);
}

/* What is said where no tree is. */
static void order_without(void)
{
	float one = 1, sum;
	uint32_t own = 1, all;

	forced_without();
	EXPECT_OK(muster_allreduce(muster_world(job), &own, &all, 1, MUSTER_U32, MUSTER_SUM));
	if (muster_allreduce(muster_world(job), &one, &sum, 1, MUSTER_F32, MUSTER_SUM)) {
		printf("%s\n", muster_error(job));
		return;
	}
	expect_said(muster_world(job), MUSTER_PATH_NIC, "not in a tree's order: there is no tree");
	printf("sum %g\n", sum);
}

/* Communicators come and go; with `keep` the last ones stay until somebody kills this. */
static void leases(const char *keep)
{
	struct muster_comm *comms[8];
	double one = 1, sum;

	for (int turn = 0; turn < 4; turn++) {
		for (int i = 0; i < 8; i++)
			EXPECT_OK(muster_comm_dup(muster_world(job), &comms[i]));
		for (int i = 0; i < 8; i++) {
			EXPECT_OK(muster_allreduce(comms[i], &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
			EXPECT(sum == size, "sum %g", sum);
		}
		for (int i = 0; i < 8 && !(keep && turn == 3); i++)
			muster_comm_free(comms[i]);
	}
	EXPECT_OK(muster_barrier(muster_world(job)));
	if (!keep)
		return;
	printf("pid %d\n", getpid());
	fflush(stdout);
	pause();
}

/* ---- a late receiver -------------------------------------------------------------------- */

enum { LATE_COMMS = 24, LATE_BROADCASTS = 8, LATE_ROOTS = 3, LATE = 4, OTHERS_TURNS = 2000 };

static struct muster_comm *comm_of(uint32_t nr, const uint32_t *ranks, uint32_t tag)
{
	struct muster_comm *comm;

	EXPECT_OK(muster_comm_create_group(muster_world(job), nr, ranks, tag, &comm));
	return comm;
}

static void expect_all(uint64_t number)
{
	double one = 1, sum;

	EXPECT_OK(muster_allreduce(muster_world(job), &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
	EXPECT(sum == size, "sum %g in turn %" PRIu64, sum, number);
}

/* More than the links to it have room for; it takes nothing before `file` is there. */
static void flood(const char *file, struct muster_comm **comms, uint32_t nr)
{
	static struct muster_request *requests[LATE_ROOTS * LATE_COMMS][LATE_BROADCASTS];
	static uint64_t values[LATE_ROOTS * LATE_COMMS][LATE_BROADCASTS];

	while (rank == LATE && access(file, F_OK))
		usleep(1000);
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < LATE_BROADCASTS; j++) {
			values[i][j] = rank == LATE ? 0 : rank * 1000 + j;
			EXPECT_OK(muster_broadcast_start(comms[i], &values[i][j], 1, MUSTER_U64, 0,
							 &requests[i][j]));
		}
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < LATE_BROADCASTS; j++) {
			uint64_t root = rank == LATE ? i / LATE_COMMS : rank;

			EXPECT_OK(muster_wait(requests[i][j]));
			EXPECT(values[i][j] == root * 1000 + j, "other bits");
		}
}

/* Two others, whose packets go over the same links between switches, know nothing of that. */
static void others(const char *file, struct muster_comm *comm)
{
	double one = 1, sum;

	for (uint32_t i = 0; i < OTHERS_TURNS; i++) {
		EXPECT_OK(muster_allreduce(comm, &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
		EXPECT(sum == 2, "sum %g", sum);
	}
	if (rank != LATE_ROOTS)
		return;
	printf("the others are through\n");
	fclose(fopen(file, "w"));
}

static void late(const char *file)
{
	const uint32_t two[] = { LATE_ROOTS, LATE + 1 };
	struct muster_comm *comms[LATE_ROOTS * LATE_COMMS], *pair = NULL;
	uint32_t nr = 0;

	for (uint32_t root = 0; root < LATE_ROOTS; root++)
		for (uint32_t i = 0; i < LATE_COMMS && (rank == root || rank == LATE); i++)
			comms[nr++] = comm_of(2, (const uint32_t[]){ root, LATE }, i);
	if (rank == two[0] || rank == two[1])
		pair = comm_of(2, two, 0);
	expect_all(0);
	if (pair)
		others(file, pair);
	else
		flood(file, comms, nr);
	expect_all(1);
}

/* ---- until something is killed -------------------------------------------------------------- */

enum { CHAOS_COUNT = 2 << 20, CHAOS_FEW = 1 << 18 };

static uint64_t chaos_count;
static double *chaos_own, *chaos_sum;

static void chaos_begin(uint64_t count)
{
	chaos_count = count;
	chaos_own = malloc(chaos_count * sizeof(*chaos_own));
	chaos_sum = malloc(chaos_count * sizeof(*chaos_sum));
	EXPECT(chaos_own && chaos_sum, "no memory");
	for (uint64_t i = 0; i < chaos_count; i++)
		chaos_own[i] = (double)(i % 1000 + rank);
	EXPECT_OK(muster_barrier(muster_world(job)));
	printf("pid %d\n", getpid());
	fflush(stdout);
}

/* Whole numbers, so the sum is exact in any order; every result is looked at to its end. */
static int chaos_reduce(void)
{
	int ret = muster_allreduce(muster_world(job), chaos_own, chaos_sum, chaos_count, MUSTER_F64, MUSTER_SUM);

	for (uint64_t i = 0; i < chaos_count && !ret; i++)
		EXPECT(chaos_sum[i] == (double)(size * (i % 1000) + size * (size - 1) / 2),
		       "element %" PRIu64 " is %g", i, chaos_sum[i]);
	return ret;
}

static void chaos_end(void)
{
	free(chaos_own);
	free(chaos_sum);
}

static void chaos(void)
{
	int ret;

	chaos_begin(CHAOS_COUNT);
	do
		ret = chaos_reduce();
	while (!ret);
	EXPECT(ret == -ECONNRESET, "error %d: %s", ret, muster_error(job));
	printf("lost: %s\n", muster_error(job));
	chaos_end();
}

/* ---- without a manager ------------------------------------------------------------------------- */

/* By trees of their own all the time, until rank 0 finds that file. */
static void reduce_until(const char *file)
{
	struct muster_op_info info;
	uint8_t there;

	do {
		EXPECT_OK(chaos_reduce());
		muster_comm_last(muster_world(job), &info);
		EXPECT(info.path == MUSTER_PATH_SWITCH, "path %d: %s", info.path, info.why);
		there = !rank && !access(file, F_OK);
		EXPECT_OK(muster_broadcast(muster_world(job), &there, 1, MUSTER_U8, 0));
	} while (!there);
}

static void say_path(const char *when)
{
	struct muster_comm *comm;
	struct muster_op_info info;
	double one = 1, sum;

	EXPECT_OK(muster_comm_dup(muster_world(job), &comm));
	EXPECT_OK(muster_allreduce(comm, &one, &sum, 1, MUSTER_F64, MUSTER_SUM));
	EXPECT(sum == size, "sum %g", sum);
	muster_comm_last(comm, &info);
	printf("%s: %s\n", when, info.path == MUSTER_PATH_SWITCH ? "by a tree" : info.why);
	fflush(stdout);
	muster_comm_free(comm);
}

/* The manager is gone when one file is there, and another one has come when the second is. */
static void outlives(const char *gone, const char *back)
{
	chaos_begin(CHAOS_FEW);
	reduce_until(gone);
	say_path("gone");
	reduce_until(back);
	say_path("back");
	EXPECT_OK(chaos_reduce());	/* what the first one made is there yet */
	chaos_end();
}

/* ---- at switches that are replaced --------------------------------------------------------------- */

/* What no tree has: it goes from host to host. */
static void allgather(uint64_t round)
{
	uint64_t own = round * 1000 + rank, all[MEMBERS_MAX];

	EXPECT_OK(muster_allgather(muster_world(job), &own, all, 1, MUSTER_U64));
	for (uint32_t i = 0; i < size; i++)
		EXPECT(all[i] == round * 1000 + i, "round %" PRIu64 ": of rank %u came %" PRIu64, round, i, all[i]);
}

static void short_ones(uint64_t round)
{
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t own = round + i + rank, sum;

		EXPECT_OK(muster_allreduce(muster_world(job), &own, &sum, 1, MUSTER_U64, MUSTER_SUM));
		EXPECT(sum == size * (round + i) + size * (size - 1) / 2, "round %" PRIu64 ": sum %" PRIu64, round, sum);
		allgather(round + i);
	}
}

/* Whose groups have had nothing to do, and may have gone elsewhere meanwhile. */
static void once_more(struct muster_comm *comm)
{
	struct muster_op_info info;
	uint64_t own = rank, sum;

	EXPECT_OK(muster_allreduce(comm, &own, &sum, 1, MUSTER_U64, MUSTER_SUM));
	EXPECT(sum == size * (size - 1) / 2, "sum %" PRIu64, sum);
	muster_comm_last(comm, &info);
	EXPECT(info.path == MUSTER_PATH_SWITCH, "path %d: %s", info.path, info.why);
	muster_comm_free(comm);
}

/* A sum that a tree could do, by the NIC: at all members in the same order, as the trees move. */
static void past_trees(struct muster_comm *comm, uint64_t round)
{
	double own = (double)(round + rank), sum;

	EXPECT_OK(muster_allreduce(comm, &own, &sum, 1, MUSTER_F64, MUSTER_SUM));
	EXPECT(sum == (double)(size * round + size * (size - 1) / 2), "round %" PRIu64 ": sum %g", round, sum);
}

static void say_order(struct muster_comm *comm)
{
	struct muster_op_info info;

	past_trees(comm, 0);
	muster_comm_last(comm, &info);
	printf("past the trees: %s\n", info.why);
	muster_comm_free(comm);
}

/* On both trees and past them, until rank 0 finds that file. */
static void replaced(const char *file)
{
	uint64_t round = 0;
	struct muster_comm *idle, *past;
	uint8_t there;

	EXPECT_OK(muster_comm_dup(muster_world(job), &idle));
	EXPECT_OK(muster_comm_dup(muster_world(job), &past));
	EXPECT_OK(muster_comm_switch(past, MUSTER_OFFLOAD_OFF));
	chaos_begin(CHAOS_FEW);
	do {
		EXPECT_OK(chaos_reduce());
		short_ones(++round);
		past_trees(past, round);
		if (!rank)
			usleep(PAUSE_US);	/* the others wait for it: who orders all this has processors, too */
		there = !rank && round > 1 && !access(file, F_OK);	/* however slow the machine is */
		EXPECT_OK(muster_broadcast(muster_world(job), &there, 1, MUSTER_U8, 0));
	} while (!there);
	once_more(idle);
	say_order(past);
	printf("%" PRIu64 " rounds\n", round);
	chaos_end();
}

/* ---- among other jobs -------------------------------------------------------------------------- */

enum { CONTEND_COMMS = 8, CONTEND_COUNT = 8 << 10, CONTEND_MOST = 3 };

static bool was_locked(struct muster_comm *comm)
{
	struct muster_op_info info;

	muster_comm_last(comm, &info);
	return info.path != MUSTER_PATH_SWITCH && strstr(info.why, "another job had the streaming tree locked");
}

/* Some at once, so a lock is for one operation or for several; then all that has come is looked at. */
static void contend_on(struct muster_comm *comm, uint64_t turn, uint64_t *elsewhere)
{
	static uint64_t own[CONTEND_MOST][CONTEND_COUNT], sum[CONTEND_MOST][CONTEND_COUNT];
	struct muster_request *requests[CONTEND_MOST];
	uint64_t nr = 1 + turn % CONTEND_MOST;

	for (uint64_t k = 0; k < nr; k++) {
		for (uint64_t i = 0; i < CONTEND_COUNT; i++)
			own[k][i] = turn * 1000000 + k * 100000 + i + rank;
		EXPECT_OK(muster_allreduce_start(comm, own[k], sum[k], CONTEND_COUNT, MUSTER_U64,
						 MUSTER_SUM, &requests[k]));
	}
	for (uint64_t k = 0; k < nr; k++) {
		EXPECT_OK(muster_wait(requests[k]));
		*elsewhere += was_locked(comm);
		for (uint64_t i = 0; i < CONTEND_COUNT; i++)
			EXPECT(sum[k][i] == size * (turn * 1000000 + k * 100000 + i) +
					    size * (size - 1) / 2,
			       "turn %" PRIu64 ": element %" PRIu64 " is wrong", turn, i);
	}
	operations += nr;
}

static void contend(uint64_t turns)
{
	struct muster_comm *comms[CONTEND_COMMS];
	uint64_t elsewhere = 0;

	for (int i = 0; i < CONTEND_COMMS; i++)
		EXPECT_OK(muster_comm_dup(muster_world(job), &comms[i]));
	for (uint64_t turn = 0; turn < turns; turn++)
		contend_on(comms[turn % CONTEND_COMMS], turn, &elsewhere);
	for (int i = 0; i < CONTEND_COMMS; i++)
		muster_comm_free(comms[i]);
	if (!rank)
		printf("%" PRIu64 " operations, %" PRIu64 " elsewhere\n", operations, elsewhere);
}

/*
 * A lock is had as long as one of its job does not go on, which is until `file` is there. What asks for
 * it has to leave before, and a busy switch may have no room for it at first.
 */
static void hold(const char *file)
{
	static uint64_t own[CONTEND_COUNT], sum[CONTEND_COUNT];
	struct muster_request *request;
	bool over;

	own[7] = rank + 1;
	EXPECT_OK(muster_allreduce_start(muster_world(job), own, sum, CONTEND_COUNT, MUSTER_U64,
					 MUSTER_SUM, &request));
	while (rank && job->dev->holding)
		EXPECT_OK(muster_test(request, &over));
	while (rank && access(file, F_OK))
		usleep(1000);
	EXPECT_OK(muster_wait(request));
	EXPECT(sum[7] == size * (size + 1) / 2, "the sum is %" PRIu64, sum[7]);
	EXPECT(!was_locked(muster_world(job)), "another path was taken");
}

/* Rank 0 calls when `file` is there. The others' requests have left them before they say that they asked. */
static void tardy(const char *file)
{
	static uint64_t own[CONTEND_COUNT], sum[CONTEND_COUNT];
	struct muster_request *request;
	bool over;

	own[7] = rank + 1;
	while (!rank && access(file, F_OK))
		usleep(1000);
	EXPECT_OK(muster_allreduce_start(muster_world(job), own, sum, CONTEND_COUNT, MUSTER_U64,
					 MUSTER_SUM, &request));
	for (int i = 0; rank && i < 100; i++) {
		EXPECT_OK(muster_test(request, &over));
		EXPECT(!over, "it ended without rank 0");
		usleep(1000);
	}
	printf("asked\n");
	fflush(stdout);
	EXPECT_OK(muster_wait(request));
	EXPECT(sum[7] == size * (size + 1) / 2, "the sum is %" PRIu64, sum[7]);
	EXPECT(!was_locked(muster_world(job)), "another path was taken");
}

int main(int argc, char **argv)
{
	uint8_t **buffers[] = { &in, &out, &wanted, &leaf, &other };
	int err = muster_init(&job);

	if (err) {
		fprintf(stderr, "%s\n", muster_error(NULL));
		return 1;
	}
	rank = muster_comm_rank(muster_world(job));
	size = muster_comm_size(muster_world(job));
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		EXPECT((*buffers[i] = malloc(ROOM)), "no memory");
	if (argc > 2 && !strcmp(argv[1], "sweep")) {
		each = (uint32_t)atoi(argv[2]);
		sweep(argc > 3 ? strtoull(argv[3], NULL, 10) : ROOM);
	} else if (argc > 1 && !strcmp(argv[1], "order")) {
		order();
	} else if (argc > 1 && !strcmp(argv[1], "order_without")) {
		order_without();
	} else if (argc > 2 && !strcmp(argv[1], "late")) {
		late(argv[2]);
	} else if (argc > 1 && !strcmp(argv[1], "chaos")) {
		chaos();
	} else if (argc > 3 && !strcmp(argv[1], "outlives")) {
		outlives(argv[2], argv[3]);
	} else if (argc > 2 && !strcmp(argv[1], "replaced")) {
		replaced(argv[2]);
	} else if (argc > 2 && !strcmp(argv[1], "contend")) {
		contend(strtoull(argv[2], NULL, 10));
	} else if (argc > 2 && !strcmp(argv[1], "hold")) {
		hold(argv[2]);
	} else if (argc > 2 && !strcmp(argv[1], "tardy")) {
		tardy(argv[2]);
	} else {
		leases(argc > 2 ? argv[2] : NULL);
	}
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		free(*buffers[i]);
	muster_finalize(job);
	return 0;
}
