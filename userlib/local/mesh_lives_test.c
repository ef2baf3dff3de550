// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The mesh between real processes: deaths are heard by all, and leaving is not dying. */
#include <errno.h>

#include "test_mesh.h"

static void wait_for_loss(struct muster_mesh *mesh, const struct heard *heard, uint32_t rank)
{
	while (!heard->lost[rank])
		muster_mesh_wait(mesh, TEST_EVER_US);
	EXPECT(heard->lost[rank] == 1);
}

/* Nothing is heard for a while, at some time: those who leave may be heard before. */
static bool silence_comes(struct muster_mesh *mesh)
{
	enum { WHILE_US = 20000, TRIES = 100 };
	double start;

	for (int i = 0; i < TRIES; i++) {
		start = test_seconds();
		muster_mesh_wait(mesh, WHILE_US);
		if (test_seconds() - start > WHILE_US / 2e6)
			return true;
	}
	return false;
}

/* argument: what ends a child that it leaves behind and that holds its sockets open; or NULL. */
static void dies(struct muster_oob *oob, const void *argument)
{
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);
	const int *ends = argument;
	char byte;

	if (ends)
		close(ends[1]);
	if (oob->rank == 2) {
		if (ends && fork() == 0)
			_exit((int)read(ends[0], &byte, 1));
		kill(getpid(), SIGKILL);
	}
	wait_for_loss(mesh, &heard, 2);
	EXPECT(!heard.left[2]);
	EXPECT(muster_mesh_send(mesh, 2, &heard.message, -1) == -EHOSTUNREACH);
	muster_mesh_wake(mesh, 2);
	EXPECT(silence_comes(mesh));
	EXPECT(heard.lost[2] == 1);
	muster_mesh_close(mesh);
}

/* Rank 0, over which the others hear of ends, leaves or dies first; then rank 2. */
static void dies_after_the_first(struct muster_oob *oob, const void *argument)
{
	const bool *leaves = argument;
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);

	if (oob->rank == 0 && *leaves) {
		muster_mesh_close(mesh);
		return;
	}
	if (oob->rank == 0)
		kill(getpid(), SIGKILL);
	wait_for_loss(mesh, &heard, 0);
	EXPECT(heard.left[0] == *leaves);
	if (oob->rank == 2)
		kill(getpid(), SIGKILL);
	wait_for_loss(mesh, &heard, 2);
	EXPECT(!heard.left[2]);
	muster_mesh_close(mesh);
}

static void all_hear_of_a_death_after_that_of_rank_0(void **state)
{
	static const bool leaves[] = { false, true };

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(test_ranks(TEST_RANKS_MAX, dies_after_the_first, &leaves[i]), 0);
}

static void all_hear_of_a_death_whoever_holds_its_sockets(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(test_ranks(4, dies, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(test_ranks(4, dies, ends), 0);
	close(ends[0]);
	close(ends[1]);
}

/* What it sent before it left is heard first. */
static void leaves(struct muster_oob *oob, const void *argument)
{
	struct muster_mesh_message message = { .kind = MUSTER_MESH_WITHDRAW, .key = 1 };
	struct heard heard;
	struct muster_mesh *mesh = mesh_open(oob, &heard);

	(void)argument;
	if (oob->rank == 1)
		EXPECT(!muster_mesh_send(mesh, 0, &message, -1));	/* it never reads that */
	test_barrier(oob);
	for (int i = 0; i < 10 && oob->rank == 0; i++)
		EXPECT(!muster_mesh_send(mesh, 1, &message, -1));
	if (oob->rank == 1) {
		usleep(50000);
		wait_for_loss(mesh, &heard, 0);
		EXPECT(heard.nr == 10 && heard.left[0]);
	}
	muster_mesh_close(mesh);
}

static void a_rank_that_leaves_is_not_dead(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, leaves, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_hear_of_a_death_whoever_holds_its_sockets),
		cmocka_unit_test(all_hear_of_a_death_after_that_of_rank_0),
		cmocka_unit_test(a_rank_that_leaves_is_not_dead),
	};

	return cmocka_run_group_tests_name("mesh_lives", tests, NULL, NULL);
}
