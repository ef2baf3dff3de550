// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Nested schedules: whatever is put inside and across, the whole is proved, and no more goes from node to
 * node than the part across sends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "schedule.h"

enum { NODES_MAX = 9, PER_NODE_MAX = 5 };

struct shape {
	enum muster_coll coll;
	uint32_t nodes, per_node, root, leader;
};

static struct muster_schedule *generate(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root)
{
	struct muster_schedule *schedule = NULL;
	char why[300];
	int err = muster_schedule_generate(name, coll, ranks, root, 8, &schedule, why, sizeof(why));

	if (err && err != -EOPNOTSUPP && err != -EINVAL)
		fail_msg("%s", why);
	return err ? NULL : schedule;
}

static bool goes_up(enum muster_coll coll)
{
	return coll != MUSTER_COLL_BROADCAST;
}

static bool goes_down(enum muster_coll coll)
{
	return coll != MUSTER_COLL_REDUCE;
}

static uint32_t between_nodes(const struct muster_schedule *schedule, uint32_t per_node)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		nr += schedule->transfers[i].from / per_node != schedule->transfers[i].to / per_node;
	return nr;
}

/* Between nodes: what goes across, but for what a leader sends itself. */
static void is_right(const struct muster_schedule *nested, const struct muster_nest *nest, const struct shape *shape,
		     const char *name)
{
	uint32_t each = nested->chunks / nest->across->chunks;
	char why[300];

	if (muster_schedule_check(nested, why, sizeof(why)))
		fail_msg("%s %s across %u nodes of %u, root %u: %s", name, muster_coll_name(shape->coll), shape->nodes,
			 shape->per_node, nested->root, why);
	assert_int_equal(nested->ranks, shape->nodes * shape->per_node);
	assert_int_equal(between_nodes(nested, shape->per_node), each * between_nodes(nest->across, 1));
	if (muster_coll_rooted(shape->coll))
		assert_int_equal(nested->root, shape->root * shape->per_node + shape->leader);
}

/* Return: whether there is such an algorithm. */
static bool nest_one(const char *name, const char *inside, const struct shape *shape)
{
	struct muster_nest nest = { .across = generate(name, shape->coll, shape->nodes, shape->root) };
	struct muster_schedule *nested;
	char why[300];

	if (!nest.across)
		return false;
	if (goes_up(shape->coll))
		nest.up = generate(inside, MUSTER_COLL_REDUCE, shape->per_node, shape->leader);
	if (goes_down(shape->coll))
		nest.down = generate(inside, MUSTER_COLL_BROADCAST, shape->per_node, shape->leader);
	if (muster_schedule_nest(&nest, &nested, why, sizeof(why)))
		fail_msg("%s", why);
	is_right(nested, &nest, shape, name);
	muster_schedule_free(nested);
	muster_schedule_free((struct muster_schedule *)nest.up);
	muster_schedule_free((struct muster_schedule *)nest.across);
	muster_schedule_free((struct muster_schedule *)nest.down);
	return true;
}

/* Across by every algorithm that there is, from every root. */
static unsigned int nest_all(enum muster_coll coll, uint32_t nodes, uint32_t per_node)
{
	uint32_t roots = muster_coll_rooted(coll) ? nodes : 1;
	unsigned int nr = 0;
	const char *name;

	for (uint32_t i = 0; (name = muster_schedule_name(i)); i++)
		for (uint32_t root = 0; root < roots; root++)
			for (uint32_t leader = 0; leader < per_node; leader++)
				nr += nest_one(name, "binomial",
					       &(struct shape){ coll, nodes, per_node, root, leader });
	return nr;
}

static void all_that_is_nested_is_proved(void **state)
{
	static const enum muster_coll colls[] = { MUSTER_COLL_BARRIER, MUSTER_COLL_BROADCAST, MUSTER_COLL_REDUCE,
						  MUSTER_COLL_ALLREDUCE };
	unsigned int nr = 0;

	(void)state;
	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++)
		for (uint32_t nodes = 1; nodes <= NODES_MAX; nodes++)
			for (uint32_t per_node = 1; per_node <= PER_NODE_MAX; per_node++)
				nr += nest_all(colls[c], nodes, per_node);
	assert_true(nr > 5000);
}

/* A ring's chunks and those of halving have a common measure. */
static void parts_of_different_chunks_are_cut_alike(void **state)
{
	struct muster_nest nest = {
		.across = generate("ring", MUSTER_COLL_BROADCAST, 4, 1),
		.down = generate("ring", MUSTER_COLL_BROADCAST, 6, 2),
	};
	struct muster_schedule *nested;
	char why[300];

	(void)state;
	assert_int_equal(muster_schedule_nest(&nest, &nested, why, sizeof(why)), 0);
	assert_int_equal(nested->chunks, 12);
	is_right(nested, &nest, &(struct shape){ MUSTER_COLL_BROADCAST, 4, 6, 1, 2 }, "ring");
	muster_schedule_free(nested);
	muster_schedule_free((struct muster_schedule *)nest.across);
	muster_schedule_free((struct muster_schedule *)nest.down);
}

static void expect_refused(const struct muster_schedule *up, const struct muster_schedule *across,
			   const struct muster_schedule *down)
{
	const struct muster_nest nest = { up, across, down };
	struct muster_schedule *nested;
	char why[300] = "";

	assert_int_equal(muster_schedule_nest(&nest, &nested, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "nest"));
}

static void what_does_not_fit_together_is_refused(void **state)
{
	struct muster_schedule *sum = generate("recursive-doubling", MUSTER_COLL_ALLREDUCE, 4, 0);
	struct muster_schedule *up = generate("binomial", MUSTER_COLL_REDUCE, 3, 0);
	struct muster_schedule *down = generate("binomial", MUSTER_COLL_BROADCAST, 3, 0);
	struct muster_schedule *elsewhere = generate("binomial", MUSTER_COLL_BROADCAST, 3, 1);
	struct muster_schedule *more = generate("binomial", MUSTER_COLL_BROADCAST, 5, 0);
	struct muster_schedule *gather = generate("ring", MUSTER_COLL_ALLGATHER, 4, 0);
	struct muster_schedule *by_rank;
	char why[300];

	(void)state;
	assert_int_equal(muster_schedule_by_rank("binomial", MUSTER_COLL_REDUCE, 3, 0, 8, &by_rank, why, sizeof(why)), 0);
	expect_refused(up, sum, elsewhere);
	expect_refused(up, sum, more);
	expect_refused(NULL, sum, down);
	expect_refused(up, sum, NULL);
	expect_refused(down, sum, up);
	expect_refused(up, gather, down);
	expect_refused(by_rank, sum, down);
	expect_refused(up, down, down);
	muster_schedule_free(sum);
	muster_schedule_free(up);
	muster_schedule_free(down);
	muster_schedule_free(elsewhere);
	muster_schedule_free(more);
	muster_schedule_free(gather);
	muster_schedule_free(by_rank);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_nested_is_proved),
		cmocka_unit_test(parts_of_different_chunks_are_cut_alike),
		cmocka_unit_test(what_does_not_fit_together_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
