// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of operations that go on when ranks are killed in the middle of them, or a tree is lost. Each rank's
 * input names it by a bit, and the round: so a result tells whose inputs are in it, and that all are of the
 * same round. Some are waited for at once, some are started and waited for in an order of each rank's own,
 * some are persistent.
 *
 * usage: restarts HOW VICTIMS PATH; HOW: try, agreed; the last VICTIMS ranks kill themselves, each at a time of its own,
 *	none: until the network is cut in halves, tree: until all have lost it; PATH of all operations that a tree can do:
 *	switch, nic or host, any
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

enum { COUNT_MAX = 1 << 17, ROUND_SHIFT = 32, SEEN_SHIFT = 58, MORE = 20, RANKS_MAX = 30, AT_ONCE = 3, BLOCK = 700 };

static struct muster *job;
static struct muster_comm *world;
static struct muster_request *kept;
static uint32_t rank, size, round_nr, staying, seen;
static uint64_t *in, *out, *more_in[AT_ONCE], *kept_in, heard = 14695981039346656037u;
static uint64_t errors, restarted;
static bool agreed, all_live;

/* ---- the end of a victim ----------------------------------------------------------------- */

static void *die(void *opaque)
{
	(void)opaque;
	usleep((useconds_t)(50000 + (getpid() * 7919u + (unsigned)time(NULL) * 104729u) % 400000));
	kill(getpid(), SIGKILL);
	return NULL;
}

static void die_later(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, die, NULL), "no thread");
}

/* ---- inputs and results ------------------------------------------------------------------------ */

/* Whether this rank has heard of a loss is in its input, too. */
static uint64_t own(void)
{
	return (uint64_t)(muster_comm_heir(world) != world) << SEEN_SHIFT | (uint64_t)round_nr << ROUND_SHIFT | 1u << rank;
}

/* Of what others must have alike. */
static void note(uint64_t value)
{
	heard = (heard ^ value) * 0x100000001b3u;
}

/* All of what is in a sum is of this round, and nobody lacks who is wanted. Return: whose. */
static uint32_t sum_check(const uint64_t *sum, uint64_t count, uint32_t wanted)
{
	uint32_t who = (uint32_t)sum[0];

	seen = (uint32_t)(sum[0] >> SEEN_SHIFT);
	EXPECT((who & wanted) == wanted && !(who >> size), "round %" PRIu32 ": a sum of %" PRIx32, round_nr, who);
	for (uint64_t i = 0; i < count; i++)
		EXPECT(sum[i] == ((uint64_t)seen << SEEN_SHIFT | (uint64_t)__builtin_popcount(who) * round_nr << ROUND_SHIFT | who),
		       "round %" PRIu32 ": element %" PRIu64 " is %" PRIx64 ", not of %" PRIx32 " and this round", round_nr, i, sum[i], who);
	return who;
}

static void fill(uint64_t *values, uint64_t count, uint64_t with)
{
	for (uint64_t i = 0; i < count; i++)
		values[i] = with;
}

/* What an operation ends with: all hear the same, where all have agreed. */
static int result_check(int err)
{
	EXPECT(!err || err == -ECONNRESET, "round %" PRIu32 ": error %d: %s", round_nr, err, muster_error(job));
	EXPECT(!err || !agreed || strstr(muster_error(job), "the root") || strstr(muster_error(job), "and another"),
	       "round %" PRIu32 ": %s", round_nr, muster_error(job));
	errors += err != 0;
	if (agreed)
		note((uint64_t)err);
	return err;
}

/* ---- the operations ------------------------------------------------------------------------ */

/* Return: as the call; *who: whose inputs are in it, if that is known here. */
static int allreduce(uint64_t count, uint32_t *who)
{
	bool in_place = round_nr & 1;
	int err;

	fill(in, count, own());
	err = muster_allreduce(world, in, in_place ? in : out, count, MUSTER_U64, MUSTER_SUM);
	if (!result_check(err))
		*who = sum_check(in_place ? in : out, count, staying);
	return err;
}

static int reduce(uint64_t count, uint32_t root, uint32_t *who)
{
	int err;

	fill(in, count, own());
	err = muster_reduce(world, in, in, count, MUSTER_U64, MUSTER_SUM, root);
	if (!result_check(err) && rank == root)
		*who = sum_check(in, count, staying);
	return err;
}

static int broadcast(uint64_t count, uint32_t root)
{
	uint64_t wanted = (uint64_t)round_nr << ROUND_SHIFT | root;
	int err;

	fill(in, count, rank == root ? wanted : 0);
	err = result_check(muster_broadcast(world, in, count, MUSTER_U64, root));
	for (uint64_t i = 0; i < count && !err; i++)
		EXPECT(in[i] == wanted, "round %" PRIu32 ": %" PRIx64 " came of root %" PRIu32, round_nr, in[i], root);
	return err;
}

/* Of who is before, and this one. */
static int scan(uint64_t count)
{
	uint32_t up_to = (2u << rank) - 1;
	int err;

	fill(in, count, own());
	err = muster_scan(world, in, in, count, MUSTER_U64, MUSTER_SUM);
	if (!result_check(err))
		EXPECT(!(sum_check(in, count, staying & up_to) & ~up_to), "round %" PRIu32 ": a sum of later ones", round_nr);
	return err;
}

/* Several under way, of which the last in place; waited for in an order of this rank's own. */
static int started(uint64_t count, uint32_t *who)
{
	struct muster_request *requests[AT_ONCE];
	int errs[AT_ONCE];

	for (uint32_t i = 0; i < AT_ONCE; i++) {
		fill(more_in[i], count, own());
		requests[i] = NULL;
		errs[i] = muster_allreduce_start(world, more_in[i], i ? more_in[i] : out, count, MUSTER_U64, MUSTER_SUM, &requests[i]);
	}
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		uint32_t index = (i + rank) % AT_ONCE;

		if (!errs[index])
			errs[index] = muster_wait(requests[index]);
		EXPECT(!errs[index] || errs[index] == -ECONNRESET, "round %" PRIu32 ": error %d: %s", round_nr, errs[index],
		       muster_error(job));
	}
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		errors += errs[i] != 0;
		if (agreed)
			note((uint64_t)errs[i]);
		if (!errs[i])
			*who = sum_check(i ? more_in[i] : out, count, staying);
		if (agreed)
			note(*who);
	}
	return errs[AT_ONCE - 1];
}

static int persistent(uint32_t *who)
{
	int err;

	fill(kept_in, BLOCK, own());
	err = muster_start(kept);
	if (!err)
		err = muster_wait(kept);
	if (!result_check(err))
		*who = sum_check(kept_in, BLOCK, staying);
	return err;
}

/* Block to of what from has for all. */
static uint64_t block_value(uint32_t from, uint32_t to)
{
	return (uint64_t)round_nr << ROUND_SHIFT | from << 8 | to;
}

static void blocks_fill(uint64_t *values)
{
	for (uint32_t i = 0; i < size; i++)
		fill(values + (uint64_t)i * BLOCK, BLOCK, block_value(rank, i));
}

/* What needs all: each has a block for each, or of each. */
static int blocks(void)
{
	int err;

	blocks_fill(in);
	if (round_nr / 10 % 2)
		err = muster_alltoall(world, in, in, BLOCK, MUSTER_U64);
	else
		err = muster_allgather(world, in + (uint64_t)rank * BLOCK, in, BLOCK, MUSTER_U64);
	result_check(err);
	for (uint64_t i = 0; i < (uint64_t)size * BLOCK && !err; i++) {
		uint32_t from = (uint32_t)(i / BLOCK);

		EXPECT(in[i] == block_value(from, round_nr / 10 % 2 ? rank : from), "round %" PRIu32 ": element %" PRIu64 " is %" PRIx64,
		       round_nr, i, in[i]);
	}
	return err;
}

static int lengths(void)
{
	uint64_t counts[RANKS_MAX], displs[RANKS_MAX];
	uint32_t root = round_nr / 10 % size;
	int err;

	for (uint32_t i = 0; i < size; i++) {
		counts[i] = 1 + i;
		displs[i] = (uint64_t)i * BLOCK;
	}
	fill(in, BLOCK, block_value(rank, root));
	err = result_check(muster_gatherv(world, in, 1 + rank, out, counts, displs, MUSTER_U64, root));
	for (uint32_t i = 0; i < size && !err && rank == root; i++)
		for (uint64_t k = 0; k < counts[i]; k++)
			EXPECT(out[displs[i] + k] == block_value(i, root), "round %" PRIu32 ": block %" PRIu32, round_nr, i);
	return err;
}

enum kind { BARRIER, BROADCAST, REDUCE, ALLREDUCE, ALLREDUCE_MORE, STARTED, PERSISTENT, SCAN, BLOCKS, LENGTHS, KINDS };

static int operation(enum kind kind, uint32_t *who)
{
	static const uint64_t counts[] = { 1, 100, 5000, COUNT_MAX };
	uint64_t count = counts[round_nr / KINDS % 4];

	switch (kind) {
	case BARRIER:
		return result_check(muster_barrier(world));
	case BROADCAST:
		return broadcast(count, round_nr / KINDS % size);
	case REDUCE:
		return reduce(count, round_nr / KINDS % size, who);
	case STARTED:
		return started(count, who);
	case PERSISTENT:
		return persistent(who);
	case SCAN:
		return scan(count);
	case BLOCKS:
		return all_live ? blocks() : 0;
	case LENGTHS:
		return all_live ? lengths() : 0;
	default:
		return allreduce(count, who);
	}
}

/* ---- until all have heard of the loss, and some more ------------------------------------------------- */

static void path_check(const char *wanted)
{
	struct muster_op_info info;

	muster_comm_last(world, &info);
	EXPECT(!strcmp(wanted, "any") ||
	       info.path == (!strcmp(wanted, "switch") ? MUSTER_PATH_SWITCH :
			     !strcmp(wanted, "nic") ? MUSTER_PATH_NIC : MUSTER_PATH_HOST),
	       "path %d: %s", info.path, info.why);
}

/* By what all have heard, so all end after the same round. */
static void rounds(const char *path)
{
	for (uint32_t more = MORE; more; round_nr++) {
		enum kind kind = (enum kind)(round_nr % KINDS);
		struct muster_comm *before = muster_comm_heir(world);
		uint32_t who = 0;
		int err = operation(kind, &who);
		bool of_all = kind == ALLREDUCE || kind == ALLREDUCE_MORE;

		restarted += muster_comm_heir(world) != before;
		if (!err && kind < STARTED)
			path_check(path);
		if (of_all)
			note(who);
		more -= of_all && who == staying && (!all_live || seen == size);
	}
}

/* Neither half may go on. */
static void until_cut(void)
{
	uint64_t sum;
	int err;

	printf("pid %d\n", getpid());
	fflush(stdout);
	while (!(err = muster_allreduce(world, &(uint64_t){ 1 }, &sum, 1, MUSTER_U64, MUSTER_SUM)))
		round_nr++;
	EXPECT(err == -ENOTCONN, "round %" PRIu32 ": error %d: %s", round_nr, err, muster_error(job));
	printf("cut: %s\n", muster_error(job));
}

/* What else there is goes on among who is left; what needs all says who is not. */
static void others(uint32_t left)
{
	struct muster_comm *heir = muster_comm_heir(world);
	uint64_t all[RANKS_MAX];

	EXPECT(muster_comm_size(heir) == left && muster_comm_rank(heir) == rank, "rank %" PRIu32 " of %" PRIu32,
	       muster_comm_rank(heir), muster_comm_size(heir));
	EXPECT(!muster_comm_error(world), "%s", muster_error(job));
	EXPECT_OK(muster_allgather(heir, &(uint64_t){ rank }, all, 1, MUSTER_U64));
	for (uint32_t i = 0; i < left; i++)
		EXPECT(all[i] == i, "of %" PRIu32 " came %" PRIu64, i, all[i]);
	if (left == size)
		return;
	EXPECT(muster_allgather(world, &(uint64_t){ rank }, all, 1, MUSTER_U64) == -ECONNRESET, "an allgather of who is left");
	EXPECT(strstr(muster_error(job), "has died or left the job, and what allgather does"), "%s", muster_error(job));
}

static void go_on(uint32_t left, const char *path)
{
	EXPECT_OK(muster_allreduce_init(world, kept_in, kept_in, BLOCK, MUSTER_U64, MUSTER_SUM, &kept));
	if (all_live) {
		printf("pid %d\n", getpid());
		fflush(stdout);
	}
	rounds(path);
	others(left);
	EXPECT_OK(muster_request_free(kept));
	printf("rank %" PRIu32 ": round %" PRIu32 " heard %016" PRIx64 " after %" PRIu64 " losses, %" PRIu64 " errors\n", rank, round_nr,
	       heard, restarted, errors);
}

static uint64_t *room(void)
{
	uint64_t *values = malloc(COUNT_MAX * sizeof(*values));

	EXPECT(values, "no memory");
	return values;
}

static void open_all(void)
{
	in = room();
	out = room();
	kept_in = room();
	for (uint32_t i = 0; i < AT_ONCE; i++)
		more_in[i] = room();
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
}

static void close_all(void)
{
	muster_finalize(job);
	free(in);
	free(out);
	free(kept_in);
	for (uint32_t i = 0; i < AT_ONCE; i++)
		free(more_in[i]);
}

int main(int argc, char **argv)
{
	uint32_t victims = argc == 4 ? (uint32_t)atoi(argv[2]) : 0;

	if (argc != 4 || muster_init(&job)) {
		fprintf(stderr, "restarts: %s\n", argc == 4 ? muster_error(NULL) : "HOW VICTIMS PATH");
		return 2;
	}
	open_all();
	agreed = !strcmp(argv[1], "agreed");
	all_live = !strcmp(argv[2], "tree");
	EXPECT(size <= RANKS_MAX && victims < size, "too many");
	EXPECT_OK(muster_comm_restart(world, agreed ? MUSTER_RESTART_AGREED : MUSTER_RESTART_TRY));
	staying = (1u << (size - victims)) - 1;
	EXPECT_OK(muster_barrier(world));
	if (rank >= size - victims)
		die_later();
	if (victims || all_live)
		go_on(size - victims, argv[3]);
	else
		until_cut();
	close_all();
	return 0;
}
