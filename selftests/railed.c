// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank with several rails, each a network of leaf switches below one spine. What goes over all has, part by part,
 * the bits of the order of that rail's tree, which a plain loop computes: hosts of a leaf by number, then leaves by
 * number. Or it goes on until a rail is lost, or does not go over several.
 *
 * usage: railed sweep HOSTS-OF-A-LEAF... (of each rail) | order HOSTS-OF-A-LEAF... | lose
 */
#include <errno.h>

#include <muster.h>

#include "../userlib/rails.h"
#include "arith.h"
#include "expect.h"
#include "filled.h"

enum { ROOM = 1 << 20, STARTED = 6, LONG = 1 << 19 };

static struct muster *job;
static uint32_t rank, size, rails, each[MUSTER_RAILS_MAX];
static uint8_t *in, *out, *wanted, *leaf, *other;
static uint64_t operations;

struct group {
	struct muster_comm *comm;
	uint32_t step;		/* every so many ranks, from `from` on */
	uint32_t from;
};

/* ---- what must come of it ------------------------------------------------------------ */

static void part_expect(const struct group *group, uint8_t type, uint8_t op, uint64_t at, uint64_t bytes,
			uint64_t salt, uint32_t hosts)
{
	bool first_leaf = true;

	for (uint32_t begin = 0; begin < size; begin += hosts) {
		bool first = true;

		for (uint32_t host = begin; host < begin + hosts && host < size; host++) {
			if (host % group->step != group->from)
				continue;
			fill(other, host, at + bytes, salt);
			EXPECT(!fold(leaf, other + at, &first, type, op, bytes), "no such operation");
		}
		if (!first)
			EXPECT(!fold(wanted + at, leaf, &first_leaf, type, op, bytes), "no such operation");
	}
}

static bool goes_over_all(uint64_t bytes)
{
	return rails > 1 && bytes > strtoull(getenv("MUSTER_RAIL_BYTES"), NULL, 10);
}

static void expect(const struct group *group, uint8_t type, uint8_t op, uint64_t count, uint64_t salt)
{
	size_t each_bytes = muster_dtype_size(type);
	uint32_t nr = goes_over_all(count * each_bytes) ? rails : 1;
	uint64_t first;

	for (uint32_t rail = 0; rail < nr; rail++) {
		uint64_t elements = muster_rails_part(count, nr, rail, &first);

		part_expect(group, type, op, first * each_bytes, elements * each_bytes, salt, each[rail]);
	}
}

static void expect_said(const struct group *group, uint64_t bytes)
{
	char words[32] = "switch: ";
	struct muster_op_info info;

	muster_comm_last(group->comm, &info);
	if (goes_over_all(bytes))
		snprintf(words, sizeof(words), "rails %u: switch: ", rails);
	EXPECT(info.path == (bytes ? MUSTER_PATH_SWITCH : MUSTER_PATH_NONE) && info.bytes == bytes,
	       "path %d, %" PRIu64 " bytes: %s", info.path, info.bytes, info.why);
	EXPECT(!bytes || !strncmp(info.why, words, strlen(words)), "%" PRIu64 " bytes: %s", bytes, info.why);
	operations++;
}

/* ---- the operations -------------------------------------------------------------------- */

static void allreduce(const struct group *group, uint8_t type, uint8_t op, uint64_t count, bool same)
{
	uint64_t bytes = count * muster_dtype_size(type), salt = type * 1000 + op * 10 + count;

	expect(group, type, op, count, salt);
	fill(in, rank, bytes, salt);
	memset(out, 0xa5, bytes + 1);
	EXPECT_OK(muster_allreduce(group->comm, in, same ? in : out, count, type, op));
	expect_said(group, bytes);
	EXPECT(!memcmp(same ? in : out, wanted, bytes), "allreduce: type %d op %d count %" PRIu64 ": other bits",
	       type, op, count);
	EXPECT(same || out[bytes] == 0xa5, "written behind the result");
}

static void reduce(const struct group *group, uint8_t type, uint8_t op, uint64_t count, uint32_t root)
{
	uint64_t bytes = count * muster_dtype_size(type), salt = type * 77 + op + count;
	bool is_root = muster_comm_rank(group->comm) == root;

	expect(group, type, op, count, salt);
	fill(in, rank, bytes, salt);
	memset(out, 0xa5, bytes + 1);
	EXPECT_OK(muster_reduce(group->comm, in, is_root ? out : NULL, count, type, op, root));
	expect_said(group, bytes);
	for (uint64_t i = is_root ? bytes : 0; i <= bytes; i++)
		EXPECT(out[i] == 0xa5, "reduce wrote where it should not");
	EXPECT(!is_root || !memcmp(out, wanted, bytes), "reduce: type %d op %d count %" PRIu64 " root %u: other bits",
	       type, op, count, root);
}

static void broadcast(const struct group *group, uint8_t type, uint64_t count, uint32_t root)
{
	uint64_t bytes = count * muster_dtype_size(type);

	fill(wanted, root * group->step + group->from, bytes, count);
	fill(out, rank, bytes, count);
	out[bytes] = 0xa5;
	EXPECT_OK(muster_broadcast(group->comm, out, count, type, root));
	expect_said(group, bytes);
	EXPECT(!memcmp(out, wanted, bytes) && out[bytes] == 0xa5,
	       "broadcast: type %d count %" PRIu64 " root %u: other bits", type, count, root);
}

/* Short and long ones under way at once, the last awaited first. */
static void started(const struct group *group)
{
	static const uint64_t counts[STARTED] = { 1, 4099, 3, 2, 1009, 0 };
	struct muster_request *requests[STARTED];
	uint8_t *from = in, *to = out;

	for (int i = 0; i < STARTED; i++, from += 8 * 4099, to += 8 * 4099) {
		fill(from, rank, 8 * counts[i], (uint64_t)i);
		EXPECT_OK(muster_allreduce_start(group->comm, from, to, counts[i], MUSTER_F64, MUSTER_SUM,
						 &requests[i]));
	}
	for (int i = STARTED; i--;) {
		to -= 8 * 4099;
		EXPECT_OK(muster_wait(requests[i]));
		expect(group, MUSTER_F64, MUSTER_SUM, counts[i], (uint64_t)i);
		EXPECT(!memcmp(to, wanted, 8 * counts[i]), "started %d: other bits", i);
	}
}

static void persistent(const struct group *group)
{
	struct muster_request *request;
	bool done = false;

	EXPECT_OK(muster_allreduce_init(group->comm, in, out, 1009, MUSTER_F32, MUSTER_SUM, &request));
	for (uint64_t turn = 0; turn < 5; turn++) {
		fill(in, rank, 4 * 1009, turn);
		EXPECT_OK(muster_start(request));
		for (done = false; turn % 2 && !done;)
			EXPECT_OK(muster_test(request, &done));
		EXPECT_OK(muster_wait(request));
		expect(group, MUSTER_F32, MUSTER_SUM, 1009, turn);
		EXPECT(!memcmp(out, wanted, 4 * 1009), "persistent, turn %" PRIu64 ": other bits", turn);
		expect_said(group, 4 * 1009);
	}
	EXPECT_OK(muster_request_free(request));
}

static void sweep_group(const struct group *group)
{
	static const uint64_t counts[] = { 0, 1, 2, 3, 61, 1009, 4099, 16411 };
	uint32_t members = muster_comm_size(group->comm);

	for (uint8_t type = 1; type <= MUSTER_DTYPE_LAST; type++)
		for (uint8_t op = 1; op < MUSTER_REDOP_REPLACE; op++) {
			uint64_t count = counts[(type * 5 + op) % 6];

			if (!muster_arith_supported(type, op))
				continue;
			allreduce(group, type, op, count, op & 1);
			reduce(group, type, op, count + 1, (type + op) % members);
		}
	for (uint32_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		allreduce(group, MUSTER_F64, MUSTER_SUM, counts[i], i & 1);
		reduce(group, MUSTER_F32, MUSTER_PROD, counts[i], i % members);
		broadcast(group, MUSTER_U8, counts[i] * 7, i % members);
	}
	started(group);
	persistent(group);
	EXPECT_OK(muster_barrier(group->comm));
}

static void sweep(void)
{
	struct group world = { muster_world(job), 1, 0 }, part = { NULL, 2, rank % 2 };

	sweep_group(&world);
	for (int turn = 0; turn < 3; turn++) {		/* contexts and handles come again */
		EXPECT_OK(muster_comm_split(world.comm, (int32_t)part.from, (int32_t)rank, &part.comm));
		if (!turn)
			sweep_group(&part);
		else
			allreduce(&part, MUSTER_F64, MUSTER_SUM, 1009, false);
		muster_comm_free(part.comm);
	}
	EXPECT_OK(muster_barrier(world.comm));
	if (!rank)
		printf("%" PRIu64 " operations\n", operations);
}

/* ---- other paths in the trees' order ------------------------------------------------------ */

/* Each part has that of its own rail's tree. */
static void order(void)
{
	static const char *const paths[] = { "switch: ", "NIC: ", "host: " };
	struct muster_comm *comm = muster_world(job);
	struct group world = { comm, 1, 0 };
	struct muster_op_info info;
	char words[32];

	expect(&world, MUSTER_F32, MUSTER_SUM, 4099, 7);
	fill(in, rank, 4 * 4099, 7);
	for (int path = 0; path < 3; path++) {
		EXPECT_OK(muster_comm_switch(comm, path ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_FORCE));
		EXPECT_OK(muster_comm_offload(comm, path == 1 ? MUSTER_OFFLOAD_FORCE :
						   path ? MUSTER_OFFLOAD_OFF : MUSTER_OFFLOAD_TRY));
		EXPECT_OK(muster_allreduce(comm, in, out, 4099, MUSTER_F32, MUSTER_SUM));
		muster_comm_last(comm, &info);
		snprintf(words, sizeof(words), "rails %u: %s", rails, paths[path]);
		EXPECT(!strncmp(info.why, words, strlen(words)), "%s", info.why);
		EXPECT(!memcmp(out, wanted, 4 * 4099), "%s: not the trees' bits", info.why);
	}
	if (!rank)
		printf("3 paths\n");
}

/* ---- when a rail is lost --------------------------------------------------------------------- */

static int round_run(struct muster_comm *world, uint64_t number)
{
	uint64_t *values = (uint64_t *)in, *sums = (uint64_t *)out;
	int err;

	for (uint64_t i = 0; i < LONG / 8; i++)
		values[i] = number + i + rank;
	err = muster_allreduce(world, values, sums, LONG / 8, MUSTER_U64, MUSTER_SUM);
	for (uint64_t i = 0; i < LONG / 8 && !err; i++)
		EXPECT(sums[i] == size * (number + i) + size * (size - 1) / 2, "round %" PRIu64 ": element %" PRIu64
		       " is %" PRIu64, number, i, sums[i]);
	return err;
}

/* Until they go over all no more, or an error. */
static void lose(void)
{
	struct muster_comm *world = muster_world(job);
	struct muster_op_info info;
	uint32_t stop = 0;
	int err = 0;

	for (uint64_t number = 0; !err && !stop; number++) {
		if (number == 3) {
			printf("runs\n");
			fflush(stdout);
		}
		err = round_run(world, number);
		muster_comm_last(world, &info);
		stop = strncmp(info.why, "rails ", 6) != 0;
		if (!err)
			err = muster_broadcast(world, &stop, 1, MUSTER_U32, 0);
	}
	if (err)
		printf("error %s: %s\n", strerror(-err), muster_error(job));
	else
		printf("went on: %s\n", info.why);
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
	for (int i = 2; i < argc && rails < MUSTER_RAILS_MAX; i++)
		each[rails++] = (uint32_t)atoi(argv[i]);
	if (argc > 2 && !strcmp(argv[1], "sweep"))
		sweep();
	else if (argc > 2 && !strcmp(argv[1], "order"))
		order();
	else
		lose();
	for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		free(*buffers[i]);
	muster_finalize(job);
	return 0;
}
