// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whose turn it is in the library, where threads of this process make communicators: all members'
 * processes take those that several of them make in one order, so none holds another up.
 *
 * Each is numbered as Lamport's clocks have it, by the members' greatest number. As a process gives no
 * number twice, that of one member, and who he is, tell those apart that got the same.
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER, FIRST, WHO, WORDS = MUSTER_MPI_WORDS };	/* in this order they count; WHO: the member that gave FIRST */

struct turn {
	struct turn *next;
	uint64_t order[WORDS];	/* until all have agreed: what it does not come before */
};

static struct {
	pthread_mutex_t lock;	/* of all this */
	pthread_cond_t changed;
	struct turn *turns;	/* that have not begun */
	uint64_t clock;		/* the greatest number so far */
	bool taken;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void enter(struct turn *turn)
{
	pthread_mutex_lock(&queue.lock);
	turn->order[NUMBER] = ++queue.clock;
	turn->next = queue.turns;
	queue.turns = turn;
	pthread_mutex_unlock(&queue.lock);
}

/* Under the lock, as the next two. */
static void leave(const struct turn *turn)
{
	struct turn **place = &queue.turns;

	while (*place != turn)
		place = &(*place)->next;
	*place = turn->next;
	pthread_cond_broadcast(&queue.changed);
}

static bool is_before(const struct turn *a, const struct turn *b)
{
	int word = NUMBER;

	while (word < WHO && a->order[word] == b->order[word])
		word++;
	return a->order[word] < b->order[word];
}

static bool is_first(const struct turn *turn)
{
	for (const struct turn *other = queue.turns; other; other = other->next)
		if (other != turn && is_before(other, turn))
			return false;
	return !queue.taken;
}

/* Who waits lets others have the processor, which MPI's own do not. */
int muster_mpi_greatest(MPI_Comm handle, const struct muster_mpi_members *members, const uint64_t *mine,
			uint64_t *all)
{
	struct { uint64_t mine[WORDS], all[WORDS]; } *words = calloc(1, sizeof(*words));
	MPI_Request request;
	int err;

	if (!words)
		abort();	/* the others count on it */
	memcpy(words->mine, mine, sizeof(words->mine));
	err = muster_mpi_beneath.Iallreduce(words->mine, words->all, WORDS, MPI_UINT64_T, MPI_MAX, handle,
					    &request);
	if (!err)
		err = muster_mpi_wait_beneath(&request, members);
	memcpy(all, words->all, sizeof(words->all));
	if (err != -ECONNRESET)	/* else MPI may yet write there */
		free(words);
	return err;
}

static int agree(MPI_Comm handle, int rank, const struct muster_mpi_members *members, const struct turn *turn,
		 uint64_t *order)
{
	uint64_t mine[WORDS] = { turn->order[NUMBER] };
	int world;

	PMPI_Comm_rank(MPI_COMM_WORLD, &world);
	if (rank == 0) {
		mine[FIRST] = mine[NUMBER];
		mine[WHO] = (uint64_t)world;
	}
	return muster_mpi_greatest(handle, members, mine, order);
}

/* Those that got a number before may come first yet. */
static void wait_for_turn(struct turn *turn, const uint64_t *order)
{
	for (int word = 0; word < WORDS; word++)
		turn->order[word] = order[word];
	if (queue.clock < order[NUMBER])
		queue.clock = order[NUMBER];
	pthread_cond_broadcast(&queue.changed);
	while (!is_first(turn))
		pthread_cond_wait(&queue.changed, &queue.lock);
	queue.taken = true;
}

/*
 * Nobody has a number before all have come: who waits for a turn waits only for those that all members
 * are at, and never for who may come when this one is over. Where all ranks have one thread in MPI, there is
 * nothing to wait for but that all have come: their messages, which others may wait for, go on until then.
 */
int muster_mpi_take_turn(MPI_Comm handle, int rank, const struct muster_mpi_members *members)
{
	struct turn turn = { .next = NULL };
	uint64_t order[WORDS] = { 0 };
	int err = muster_mpi_greatest(handle, members, order, order);

	if (err || !muster_mpi.threads)
		return err;
	enter(&turn);
	err = agree(handle, rank, members, &turn, order);
	pthread_mutex_lock(&queue.lock);
	if (!err)
		wait_for_turn(&turn, order);
	leave(&turn);
	pthread_mutex_unlock(&queue.lock);
	return err;
}

void muster_mpi_end_turn(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.taken = false;
	pthread_cond_broadcast(&queue.changed);
	pthread_mutex_unlock(&queue.lock);
}
