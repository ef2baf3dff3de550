// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The torus allgather: the paper's counts, found by counting; every datum arrives
 * everywhere once, from a neighbour; and how well the channels are used.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synth.h"
#include "torus.h"

enum way { BLOCKS, SPLIT, BALANCED, WAYS };

static struct muster_torus_plan *make_plan(const char *shape, enum way way)
{
	struct muster_torus_plan *plan = NULL;
	struct muster_torus torus;
	char why[200];
	int err = muster_torus_read(shape, &torus, why, sizeof(why));

	if (!err)
		err = way == BALANCED ? muster_torus_plan_balanced(&torus, &plan) :
					muster_torus_plan_blocks(&torus, way == SPLIT, &plan);
	if (!err)
		err = muster_torus_plan_check(plan, why, sizeof(why));
	if (err)
		fail_msg("%s: %s", shape, why);
	return plan;
}

static double efficiency(const char *shape, enum way way, uint32_t *steps)
{
	struct muster_torus_plan *plan = make_plan(shape, way);
	struct muster_torus_report report;
	double result;

	assert_int_equal(muster_torus_report(plan, &report), 0);
	result = report.efficiency;
	*steps = plan->steps;
	muster_torus_report_free(&report);
	muster_torus_plan_free(plan);
	return result;
}

static uint64_t power(uint64_t base, unsigned int exponent)
{
	return exponent ? base * power(base, exponent - 1) : 1;
}

static uint64_t choose(unsigned int n, unsigned int k)
{
	return k ? choose(n, k - 1) * (n - k + 1) / k : 1;
}

static void six_rings_of_six_count_as_they_must(void **state)
{
	static const uint64_t counts[] = {
		12, 12, 6, 240, 120, 15, 1960, 520, 20, 8160, 1200, 15,
		17292, 1452, 6, 14896, 728, 1
	};
	struct muster_torus_plan *plan = make_plan("6x6x6x6x6x6", SPLIT);
	struct muster_torus_report report;

	(void)state;
	assert_int_equal(plan->steps, 18);
	assert_int_equal(muster_torus_report(plan, &report), 0);
	for (uint32_t step = 0; step < 18; step++)
		assert_int_equal(report.received[step], counts[step] * plan->parts);
	for (unsigned int block = 1; block <= 6; block++)
		assert_int_equal(counts[3 * block - 3] + counts[3 * block - 2] +
				 counts[3 * block - 1], choose(6, block) * power(5, block));
	assert_true(report.efficiency > 0.99999);
	assert_int_equal(report.buffer, 22995 * plan->parts);
	muster_torus_report_free(&report);
	muster_torus_plan_free(plan);
}

static void the_irregular_torus_needs_eighteen_steps_at_half_the_bandwidth(void **state)
{
	uint32_t steps;

	(void)state;
	assert_true(efficiency("2.10x2.10x2.10", SPLIT, &steps) > 0.4999);
	assert_int_equal(steps, 18);
	assert_true(efficiency("2.10x2.10x2.10", BALANCED, &steps) > 0.95);
	assert_in_range(steps, 18, 22);
	assert_true(efficiency("2.6x2.6x2.6", BALANCED, &steps) > 0.95);
}

/* The schedule of all nodes: checked rank by rank, over links that exist, loads as planned. */
static void check_all_nodes(const char *shape, enum way way)
{
	struct muster_torus_plan *plan = make_plan(shape, way);
	uint32_t channels = 2 * plan->torus.rings, nodes = plan->torus.nodes, *loads;
	struct muster_torus_report report;
	struct muster_schedule *schedule;
	struct muster_topology *topology;
	char why[300] = "";
	int err;

	err = muster_torus_schedule(plan, &schedule, why, sizeof(why));
	if (!err)
		err = muster_schedule_check(schedule, why, sizeof(why));
	if (!err)
		err = muster_torus_topology(&plan->torus, &topology, why, sizeof(why));
	if (!err)
		err = muster_synth_loads(schedule, topology, &loads, why, sizeof(why));
	if (err)
		fail_msg("%s: %s", shape, why);
	/* So many transfers, and everything arrives: nothing arrives twice. */
	assert_int_equal(schedule->nr_transfers, nodes * (nodes - 1) * plan->parts);
	assert_int_equal(muster_torus_report(plan, &report), 0);
	for (uint32_t step = 0; step < plan->steps; step++)
		for (uint32_t c = 0; c < channels; c++)
			for (uint32_t node = 0; node < nodes; node++) {
				uint32_t to = muster_torus_go(&plan->torus, node, c);
				int64_t link = muster_topology_find_link(topology, node, to);
				uint64_t load = report.load[step * channels + c];

				if (plan->torus.size[c / 2] == 2)
					load += report.load[step * channels + (c ^ 1)];
				assert_int_equal(loads[step * topology->nr_links + link], load);
			}
	free(loads);
	muster_torus_report_free(&report);
	muster_topology_free(topology);
	muster_schedule_free(schedule);
	muster_torus_plan_free(plan);
}

static void all_nodes_get_all_data_from_neighbours(void **state)
{
	static const char *const shapes[] = {
		"2", "3", "7", "2x2", "2.3", "3x4", "4x4", "2x2x2x2", "2.2x2.2", "5x5", "3x3x3",
		"2.4x2.4", "8x4", "2x4x2x4", "2x2x2x2x2x2x2x2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (enum way way = BLOCKS; way < WAYS; way++)
			check_all_nodes(shapes[i], way);
}

static void larger_shapes_are_proved_from_one_origin(void **state)
{
	static const char *const shapes[] = {
		"16x16", "2.16x2.16", "5x7x9", "2.4x2.4x2.4", "4x4x4x4x4x4", "2x2x2x2x2x2x2x2x2",
		"3x3x3x3x3x3x3", "64x64", "2.8x2.8x2.8", "1021x3", "2.10x2.10x2.10",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (enum way way = BLOCKS; way < WAYS; way++)
			muster_torus_plan_free(make_plan(shapes[i], way));
}

static void a_wrong_plan_is_refused(void **state)
{
	struct muster_torus_plan *plan = make_plan("4x4", BLOCKS);
	struct muster_torus_hop hop = plan->hops[0];
	char why[200];

	(void)state;
	plan->hops[0].step = 5;
	assert_int_equal(muster_torus_plan_check(plan, why, sizeof(why)), -EINVAL);
	plan->hops[0] = plan->hops[1];
	assert_int_equal(muster_torus_plan_check(plan, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "step 0: 3 receives it again");
	plan->hops[0] = hop;
	plan->hops[0].channel ^= 1;
	assert_int_equal(muster_torus_plan_check(plan, why, sizeof(why)), -EINVAL);
	plan->hops[0] = hop;
	plan->nr_hops--;
	assert_int_equal(muster_torus_plan_check(plan, why, sizeof(why)), -EINVAL);
	muster_torus_plan_free(plan);
}

static void wrong_shapes_are_refused(void **state)
{
	static const char *const shapes[] = {
		"", "1", "4x", "4y4", "x4", "4..4", "2x2x2x2x2x2x2x2x2x2x2x2x2", "2000x2000", "-4",
	};
	struct muster_torus torus;
	char why[200];

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (muster_torus_read(shapes[i], &torus, why, sizeof(why)) != -EINVAL)
			fail_msg("\"%s\" was taken", shapes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(six_rings_of_six_count_as_they_must),
		cmocka_unit_test(the_irregular_torus_needs_eighteen_steps_at_half_the_bandwidth),
		cmocka_unit_test(all_nodes_get_all_data_from_neighbours),
		cmocka_unit_test(larger_shapes_are_proved_from_one_origin),
		cmocka_unit_test(a_wrong_plan_is_refused),
		cmocka_unit_test(wrong_shapes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
