// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Torus allgathers on engines, one a node, whose packets come in any order: the
 * result is right to the bit, no packet but between neighbours, each datum comes
 * to each node once, and what a channel carries in a step is what the generator
 * says.
 */
#define WORLD_NODES 160

#include "test_world.h"

#include "dev.h"
#include "torus.h"
#include "synth.h"

enum { ELEMENTS = 3, OUT = 0, SCRATCH = WORLD_MEMORY / 2, STAGES_AT_ONCE = 4 };

static struct {
	const struct muster_schedule *schedule;
	const struct muster_topology *topology;
	uint8_t *came;			/* by node and chunk: how often */
	uint32_t *loads;		/* by step and link */
	uint32_t *step_of;		/* by node and chunk: the generator's step of its arrival */
} run;

/* A number that says which element it is. */
static double element(uint64_t i)
{
	return 0.1 * i + 1e6;
}

static uint32_t chunk_of(const double *payload)
{
	return (uint32_t)((*payload - 1e6) * 10 + 0.5) / ELEMENTS;
}

static int counting_send(void *opaque, uint32_t incarnation, const struct muster_packet *packet,
			 const void *payload)
{
	const struct world_node *node = opaque;
	int64_t link = muster_topology_find_link(run.topology, node->node, packet->dst_node);
	int err = world_send(opaque, incarnation, packet, payload);
	size_t at;

	if (link < 0)
		fail_msg("a packet from %u to %u, which are no neighbours", node->node,
			 packet->dst_node);
	if (err || packet->type != MUSTER_PACKET_DATA)
		return err;
	assert_int_equal(packet->length, ELEMENTS * sizeof(double));
	at = (size_t)packet->dst_node * run.schedule->chunks + chunk_of(payload);
	run.came[at]++;
	run.loads[(size_t)run.step_of[at] * run.topology->nr_links + link]++;
	return 0;
}

static void start(struct world *w, struct muster_engine_world *table)
{
	*table = world_table;
	table->send = counting_send;
	for (uint32_t i = 0; i < w->nr; i++) {
		struct muster_engine_config config = {
			.node = i, .model.units = 1, .hash_key = { 1, 1 },
		};

		assert_int_equal(muster_engine_create(&config, table, &w->nodes[i],
						      &w->nodes[i].engine), 0);
		assert_int_equal(muster_engine_vp_open(w->nodes[i].engine, WORLD_VP), 0);
		assert_int_equal(world_context_open(w, i, WORLD_CONTEXT), 0);
	}
}

static void bind_space(uint32_t *key, uint64_t *addr)
{
	if (*key == MUSTER_SPACE_NONE)
		return;
	assert_int_not_equal(*key, MUSTER_SPACE_IN);
	*addr += *key == MUSTER_SPACE_SCRATCH ? SCRATCH : OUT;
	*key = WORLD_KEY;
}

static struct muster_program *lower(const struct muster_schedule *schedule, uint32_t rank,
				    const struct muster_address *members)
{
	const struct muster_lower_params params = {
		.rank = rank, .count = (uint64_t)schedule->chunks * ELEMENTS,
		.type = MUSTER_DTYPE_F64, .op = MUSTER_REDOP_NONE, .job = WORLD_JOB,
		.context = WORLD_CONTEXT, .addresses = members, .in_place = true,
	};
	struct muster_program *program;
	char why[200];

	if (muster_schedule_lower(schedule, &params, &program, why, sizeof(why)))
		fail_msg("%s", why);
	assert_true(program->bytes <= SCRATCH);
	for (uint32_t i = 0; i < program->nr_descs; i++) {
		struct muster_desc *desc = &program->descs[i];
		uint32_t load = desc->range.load_key, store = desc->store_key;
		uint64_t from = desc->range.load_addr, to = desc->store_addr;

		bind_space(&load, &from);
		bind_space(&store, &to);
		desc->range.load_key = load;
		desc->range.load_addr = from;
		desc->store_key = store;
		desc->store_addr = to;
	}
	return program;
}

static void fill(struct world *w, const struct muster_schedule *schedule)
{
	for (uint32_t node = 0; node < w->nr; node++)
		for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++)
			for (uint64_t i = 0; i < ELEMENTS; i++)
				*world_double(w, node, (chunk * ELEMENTS + i) * sizeof(double)) =
					muster_coll_has(schedule, chunk, node) ?
					element(chunk * ELEMENTS + i) : -7;
}

/* As many stages as may be queued are posted by all before anything moves. */
static void execute(struct world *w, const struct muster_schedule *schedule)
{
	struct muster_program *programs[WORLD_NODES_MAX];
	struct muster_address members[WORLD_NODES_MAX];
	uint32_t stages = 0;		/* the same for all */

	for (uint32_t i = 0; i < w->nr; i++)
		members[i] = (struct muster_address){
			.node = i, .vp = WORLD_VP, .incarnation = 100 + i,
		};
	for (uint32_t i = 0; i < w->nr; i++) {
		programs[i] = lower(schedule, i, members);
		stages = programs[i]->nr_stages;
	}
	for (uint32_t stage = 0; stage < stages; stage++) {
		for (uint32_t i = 0; i < w->nr; i++) {
			const uint32_t *first = &programs[i]->stage_first[stage];

			world_post(w, i, programs[i]->descs + first[0], first[1] - first[0]);
		}
		if (stage % STAGES_AT_ONCE == STAGES_AT_ONCE - 1 || stage + 1 == stages)
			world_run(w);
	}
	for (uint32_t i = 0; i < w->nr; i++) {
		assert_int_equal(w->nodes[i].nr_cqes, 1);
		assert_int_equal(w->nodes[i].cqes[0].status, MUSTER_STATUS_OK);
		muster_program_free(programs[i]);
	}
}

static void check_values(struct world *w)
{
	for (uint32_t node = 0; node < w->nr; node++)
		for (uint64_t i = 0; i < (uint64_t)run.schedule->chunks * ELEMENTS; i++)
			if (*world_double(w, node, i * sizeof(double)) != element(i))
				fail_msg("node %u: element %lu is wrong", node, (unsigned long)i);
}

static void check_packets(const struct muster_torus_plan *plan)
{
	uint32_t channels = 2 * plan->torus.rings, nodes = plan->torus.nodes;
	struct muster_torus_report report;

	for (uint32_t node = 0; node < nodes; node++)
		for (uint32_t chunk = 0; chunk < run.schedule->chunks; chunk++)
			assert_int_equal(run.came[(size_t)node * run.schedule->chunks + chunk],
					 !muster_coll_has(run.schedule, chunk, node));
	assert_int_equal(muster_torus_report(plan, &report), 0);
	for (uint32_t step = 0; step < plan->steps; step++)
		for (uint32_t c = 0; c < channels; c++)
			for (uint32_t node = 0; node < nodes; node++) {
				uint32_t to = muster_torus_go(&plan->torus, node, c);
				int64_t link = muster_topology_find_link(run.topology, node, to);
				uint64_t load = report.load[step * channels + c];

				if (plan->torus.size[c / 2] == 2)	/* both ways lead there */
					load += report.load[step * channels + (c ^ 1)];
				assert_int_equal(run.loads[(size_t)step * run.topology->nr_links +
							   link], load);
			}
	muster_torus_report_free(&report);
}

/* In steps that the NIC takes at once. */
static void run_schedule(const struct muster_schedule *schedule, uint64_t seed)
{
	struct world *w = world_create(schedule->ranks, seed);
	struct muster_engine_world table;
	struct muster_schedule *fitted;
	char why[200];

	if (muster_synth_fit(schedule, &fitted, why, sizeof(why)))
		fail_msg("%s", why);
	w->refuse_percent = 3;
	fill(w, fitted);
	start(w, &table);
	execute(w, fitted);
	check_values(w);
	muster_schedule_free(fitted);
	world_destroy(w);
}

static void run_plan(struct muster_torus_plan *plan, uint64_t seed)
{
	struct muster_schedule *schedule;
	struct muster_topology *topology = NULL;
	char why[200];

	if (muster_torus_schedule(plan, &schedule, why, sizeof(why)) ||
	    muster_torus_topology(&plan->torus, &topology, why, sizeof(why)))
		fail_msg("%s", why);
	run.schedule = schedule;
	run.topology = topology;
	run.came = calloc((size_t)schedule->ranks * schedule->chunks, 1);
	run.step_of = calloc((size_t)schedule->ranks * schedule->chunks, sizeof(*run.step_of));
	run.loads = calloc((size_t)schedule->steps * topology->nr_links, sizeof(*run.loads));
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];

		run.step_of[(size_t)t->to * schedule->chunks + t->chunk] = t->step;
	}
	run_schedule(schedule, seed);
	check_packets(plan);
	free(run.loads);
	free(run.step_of);
	free(run.came);
	muster_topology_free(topology);
	muster_schedule_free(schedule);
}

static void run_shape(const char *shape, bool balanced, uint64_t seed)
{
	struct muster_torus_plan *plan;
	struct muster_torus torus;
	char why[200];

	if (muster_torus_read(shape, &torus, why, sizeof(why)))
		fail_msg("%s", why);
	if (balanced)
		assert_int_equal(muster_torus_plan_balanced(&torus, &plan), 0);
	else
		assert_int_equal(muster_torus_plan_blocks(&torus, torus.nodes <= 16, &plan), 0);
	run_plan(plan, seed);
	muster_torus_plan_free(plan);
}

static void it_runs_among_neighbours_with_the_loads_of_the_generator(void **state)
{
	static const char *const shapes[] = {
		"2x2x2x2", "4x4", "3x3x3", "2x4x2x4", "2.4x2.4", "2.6x2.6",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int balanced = 0; balanced < 2; balanced++)
			run_shape(shapes[i], balanced, 10 * i + balanced);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_runs_among_neighbours_with_the_loads_of_the_generator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
