// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One rank of operations that go on when ranks are killed in the middle of them. Each rank's input names
 * it by a bit, and the round: so a result tells whose inputs are in it, and that all are of the same round.
 *
 * usage: restarts HOW VICTIMS PATH; HOW: try, agreed; the last VICTIMS ranks kill themselves, each at a time of its own,
 *	none: until the network is cut in halves; PATH of all operations: switch, nic or host
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <muster.h>

#include "expect.h"

enum { COUNT_MAX = 1 << 17, ROUND_SHIFT = 32, MORE = 20, RANKS_MAX = 30 };

static struct muster *job;
static struct muster_comm *world;
static uint32_t rank, size, round_nr, staying;
static uint64_t *in, *out, heard = 14695981039346656037u;
static uint64_t errors, restarted;

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

/* ---- the operations ------------------------------------------------------------------------ */

static uint64_t own(void)
{
	return (uint64_t)round_nr << ROUND_SHIFT | 1u << rank;
}

/* Of what others must have alike. */
static void note(uint64_t value)
{
	heard = (heard ^ value) * 0x100000001b3u;
}

/* All of what is in a sum is of this round, and nobody lacks who stays. Return: whose. */
static uint32_t sum_check(const uint64_t *sum, uint64_t count)
{
	uint32_t who = (uint32_t)sum[0];

	EXPECT((who & staying) == staying && !(who >> size), "round %" PRIu32 ": a sum of %" PRIx32, round_nr, who);
	for (uint64_t i = 0; i < count; i++)
		EXPECT(sum[i] == ((uint64_t)__builtin_popcount(who) * round_nr << ROUND_SHIFT | who),
		       "round %" PRIu32 ": element %" PRIu64 " is %" PRIx64 ", not of %" PRIx32 " and this round", round_nr, i, sum[i], who);
	return who;
}

static void fill(uint64_t *values, uint64_t count, uint64_t with)
{
	for (uint64_t i = 0; i < count; i++)
		values[i] = with;
}

/* Return: as the call; *who: whose inputs are in it, if that is known here. */
static int allreduce(uint64_t count, uint32_t *who)
{
	bool in_place = round_nr & 1;
	int err;

	fill(in, count, own());
	err = muster_allreduce(world, in, in_place ? in : out, count, MUSTER_U64, MUSTER_SUM);
	if (!err)
		*who = sum_check(in_place ? in : out, count);
	return err;
}

static int reduce(uint64_t count, uint32_t root, uint32_t *who)
{
	int err;

	fill(in, count, own());
	err = muster_reduce(world, in, in, count, MUSTER_U64, MUSTER_SUM, root);
	if (!err && rank == root)
		*who = sum_check(in, count);
	return err;
}

static int broadcast(uint64_t count, uint32_t root)
{
	uint64_t wanted = (uint64_t)round_nr << ROUND_SHIFT | root;
	int err;

	fill(in, count, rank == root ? wanted : 0);
	err = muster_broadcast(world, in, count, MUSTER_U64, root);
	for (uint64_t i = 0; i < count && !err; i++)
		EXPECT(in[i] == wanted, "round %" PRIu32 ": %" PRIx64 " came of root %" PRIu32, round_nr, in[i], root);
	return err;
}

static int operation(uint32_t *who)
{
	static const uint64_t counts[] = { 1, 100, 5000, COUNT_MAX };
	uint64_t count = counts[round_nr / 5 % 4];

	switch (round_nr % 5) {
	case 0:
		return muster_barrier(world);
	case 1:
		return broadcast(count, round_nr / 5 % size);
	case 2:
		return reduce(count, round_nr / 5 % size, who);
	default:
		return allreduce(count, who);
	}
}

/* ---- until all victims are dead, and some more -------------------------------------------------- */

static void path_check(const char *wanted)
{
	struct muster_op_info info;

	muster_comm_last(world, &info);
	EXPECT(info.path == (!strcmp(wanted, "switch") ? MUSTER_PATH_SWITCH :
			     !strcmp(wanted, "nic") ? MUSTER_PATH_NIC : MUSTER_PATH_HOST),
	       "path %d: %s", info.path, info.why);
}

/* By what all have heard, so all end after the same round. */
static void rounds(bool agreed, const char *path)
{
	for (uint32_t more = MORE; more; round_nr++) {
		struct muster_comm *before = muster_comm_heir(world);
		uint32_t who = 0;
		int err = operation(&who);

		EXPECT(!err || err == -ECONNRESET, "round %" PRIu32 ": error %d: %s", round_nr, err, muster_error(job));
		errors += err != 0;
		restarted += muster_comm_heir(world) != before;
		EXPECT(!err || !agreed || strstr(muster_error(job), "the root") || strstr(muster_error(job), "and another"),
		       "round %" PRIu32 ": %s", round_nr, muster_error(job));
		if (!err)
			path_check(path);
		if (round_nr % 5 > 2)
			note(who);
		if (agreed)
			note((uint64_t)err);
		more -= round_nr % 5 > 2 && who == staying;
	}
}

/* Neither half may go on. */
static void until_cut(void)
{
	uint32_t who;
	int err;

	printf("pid %d\n", getpid());
	fflush(stdout);
	for (;; round_nr++) {
		err = operation(&who);
		if (err)
			break;
	}
	EXPECT(err == -ENOTCONN, "round %" PRIu32 ": error %d: %s", round_nr, err, muster_error(job));
	printf("cut: %s\n", muster_error(job));
}

/* What else there is goes on among who is left. */
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
}

static void go_on(bool agreed, uint32_t left, const char *path)
{
	rounds(agreed, path);
	others(left);
	printf("rank %" PRIu32 ": round %" PRIu32 " heard %016" PRIx64 " after %" PRIu64 " losses, %" PRIu64 " errors\n", rank, round_nr,
	       heard, restarted, errors);
}

int main(int argc, char **argv)
{
	uint32_t victims = argc == 4 ? (uint32_t)atoi(argv[2]) : 0;
	bool agreed = argc == 4 && !strcmp(argv[1], "agreed");

	if (argc != 4 || muster_init(&job)) {
		fprintf(stderr, "restarts: %s\n", argc == 4 ? muster_error(NULL) : "HOW VICTIMS PATH");
		return 2;
	}
	world = muster_world(job);
	rank = muster_comm_rank(world);
	size = muster_comm_size(world);
	in = malloc(COUNT_MAX * sizeof(*in));
	out = malloc(COUNT_MAX * sizeof(*out));
	EXPECT(in && out && size <= RANKS_MAX && victims < size, "no memory, or too many");
	EXPECT_OK(muster_comm_restart(world, agreed ? MUSTER_RESTART_AGREED : MUSTER_RESTART_TRY));
	staying = (1u << (size - victims)) - 1;
	EXPECT_OK(muster_barrier(world));
	if (rank >= size - victims)
		die_later();
	if (victims)
		go_on(agreed, size - victims, argv[3]);
	else
		until_cut();
	muster_finalize(job);
	free(in);
	free(out);
	return 0;
}
