// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a collective to instances, and from solutions to its schedule.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "shape.h"
#include "store.h"
#include "synth.h"

/* What a collective is made of. */
struct recipe {
	enum muster_coll base;		/* does not combine */
	bool backwards;			/* begins with base backwards, over reversed links */
	bool forwards;			/* ends with base */
	bool chunks_of_all;		/* C counts the base's chunks of all nodes */
};

static struct recipe recipe_of(enum muster_coll coll)
{
	switch (coll) {
	case MUSTER_COLL_REDUCE:
		return (struct recipe){ MUSTER_COLL_BROADCAST, true, false, false };
	case MUSTER_COLL_REDUCE_SCATTER:
		return (struct recipe){ MUSTER_COLL_ALLGATHER, true, false, true };
	case MUSTER_COLL_ALLREDUCE:
		return (struct recipe){ MUSTER_COLL_ALLGATHER, true, true, true };
	default:
		return (struct recipe){ coll, false, true, false };
	}
}

uint32_t muster_synth_unit(enum muster_coll coll, uint32_t nodes, uint32_t *even)
{
	struct recipe recipe = recipe_of(coll);

	*even = recipe.backwards && recipe.forwards ? 2 : 1;
	return recipe.chunks_of_all ? nodes : muster_chunks_step(coll, nodes);
}

static int check_request(const struct muster_synth_request *request, char *why, size_t why_len)
{
	uint32_t even, unit;

	if (request->coll == MUSTER_COLL_BARRIER || request->coll >= MUSTER_COLL_SCAN) {
		snprintf(why, why_len, "a %s is not synthesized%s", muster_coll_name(request->coll),
			 request->coll == MUSTER_COLL_SCAN ? " by inversion" : "");
		return -EINVAL;
	}
	unit = muster_synth_unit(request->coll, request->topology->nodes, &even);
	if (request->chunks % unit || request->steps % even || request->rounds % even) {
		snprintf(why, why_len, "%s of %" PRIu32 " nodes: chunks are a multiple of %" PRIu32
			 "%s", muster_coll_name(request->coll), request->topology->nodes, unit,
			 even > 1 ? ", steps and rounds of 2: it is made of two halves" : "");
		return -EINVAL;
	}
	return 0;
}

/* The instance of the base, on the topology as it is or reversed. */
static int make_base(const struct muster_synth_request *request,
		     const struct muster_topology *topology, struct muster_instance **instance,
		     char *why, size_t why_len)
{
	struct recipe recipe = recipe_of(request->coll);
	uint32_t parts = recipe.backwards && recipe.forwards ? 2 : 1;
	uint32_t chunks = request->chunks;

	if (recipe.chunks_of_all)
		chunks /= topology->nodes;
	return muster_instance_make(topology, recipe.base, request->root, chunks,
				    request->steps / parts, request->rounds / parts, instance, why,
				    why_len);
}

/* ---- costs ----------------------------------------------------------------------- */

int muster_synth_loads(const struct muster_schedule *schedule,
		       const struct muster_topology *topology, uint32_t **loads, char *why,
		       size_t why_len)
{
	size_t nr = (size_t)schedule->steps * topology->nr_links;

	bool *usable = muster_topology_usable(topology);
	int err = 0;

	*loads = calloc(nr + 1, sizeof(**loads));
	if (!*loads || !usable)
		err = -ENOMEM;
	for (uint32_t i = 0; i < schedule->nr_transfers && !err; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];
		int64_t link = muster_topology_find_link(topology, t->from, t->to);

		if (link >= 0 && usable[link]) {
			(*loads)[(size_t)t->step * topology->nr_links + link]++;
			continue;
		}
		snprintf(why, why_len, "step %" PRIu32 ": there is no link %" PRIu32 " -> %" PRIu32
			 "%s", t->step, t->from, t->to, link < 0 ? "" : " that carries anything");
		err = -EINVAL;
	}
	if (err)
		free(*loads);
	free(usable);
	return err;
}

uint32_t muster_synth_rounds(const struct muster_topology *topology, const uint32_t *loads)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];
		uint64_t load = 0;

		for (uint32_t j = 0; j < limit->nr_links; j++)
			load += loads[limit->links[j]];
		if (load > most * limit->bandwidth)
			most = (load + limit->bandwidth - 1) / limit->bandwidth;
	}
	return most;
}

int muster_synth_cost(const struct muster_schedule *schedule,
		      const struct muster_topology *topology, uint32_t *rounds, char *why,
		      size_t why_len)
{
	uint64_t sum = 0;
	uint32_t *loads;
	int err = muster_synth_loads(schedule, topology, &loads, why, why_len);

	if (err)
		return err;
	for (uint32_t step = 0; step < schedule->steps; step++)
		sum += muster_synth_rounds(topology, loads + (size_t)step * topology->nr_links);
	free(loads);
	*rounds = sum > UINT32_MAX ? UINT32_MAX : sum;
	return 0;
}

/* ---- schedules --------------------------------------------------------------------- */

static void add_forwards(struct muster_builder *builder, const struct muster_topology *topology,
			 const struct muster_solution *solution)
{
	for (uint32_t i = 0; i < solution->nr_sends; i++) {
		const struct muster_send *send = &solution->sends[i];

		if (!i || send->step != solution->sends[i - 1].step)
			muster_builder_step(builder);
		muster_builder_add(builder, send->chunk, topology->links[send->link].from,
				   topology->links[send->link].to, false);
	}
}

/* Last sends first, each the other way, combining what it meets. */
static void add_backwards(struct muster_builder *builder, const struct muster_topology *reversed,
			  const struct muster_solution *solution)
{
	for (uint32_t i = solution->nr_sends; i-- > 0;) {
		const struct muster_send *send = &solution->sends[i];

		if (i + 1 == solution->nr_sends || send->step != solution->sends[i + 1].step)
			muster_builder_step(builder);
		muster_builder_add(builder, send->chunk, reversed->links[send->link].to,
				   reversed->links[send->link].from, true);
	}
}

static void name_schedule(const struct muster_synth_request *request, char *name, size_t len)
{
	int n = snprintf(name, len, "%.8s-%.11s-%" PRIu32 "-%" PRIu32 "-%" PRIu32,
			 request->topology->name, muster_coll_name(request->coll), request->chunks,
			 request->steps, request->rounds);

	(void)n;
}

static int build(const struct muster_synth_request *request, const struct muster_topology *reversed,
		 const struct muster_solution *backwards, const struct muster_solution *forwards,
		 struct muster_schedule **schedule)
{
	const struct muster_topology *topology = request->topology;
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	struct recipe recipe = recipe_of(request->coll);
	uint32_t chunks = recipe.chunks_of_all ? request->chunks :
			  muster_global_chunks(request->coll, topology->nodes, request->chunks);
	struct muster_builder builder;

	name_schedule(request, name, sizeof(name));
	muster_builder_init(&builder, name, request->coll, topology->nodes, chunks, request->root);
	if (backwards)
		add_backwards(&builder, reversed, backwards);
	if (forwards)
		add_forwards(&builder, topology, forwards);
	return muster_builder_end(&builder, schedule);
}

/* Nothing leaves here that the checker has not passed, at the cost that was asked for. */
static int check(const struct muster_synth_request *request,
		 const struct muster_schedule *schedule, char *why, size_t why_len)
{
	char reason[160] = "";
	uint32_t rounds = 0;
	int err = muster_schedule_check(schedule, reason, sizeof(reason));

	if (!err)
		err = muster_synth_cost(schedule, request->topology, &rounds, reason,
					sizeof(reason));
	if (!err && (schedule->steps > request->steps || rounds > request->rounds)) {
		snprintf(reason, sizeof(reason), "it costs %" PRIu32 " steps and %" PRIu32
			 " rounds", schedule->steps, rounds);
		err = -EINVAL;
	}
	if (err == -EINVAL) {
		snprintf(why, why_len, "what was found is wrong: %s", reason);
		err = -EPROTO;
	}
	return err;
}

/* ---- solving ------------------------------------------------------------------------- */

static int solve_base(const struct muster_synth_request *request,
		      const struct muster_topology *topology, struct muster_synth_result *result,
		      struct muster_solution **solution)
{
	struct muster_instance *instance;
	struct muster_solved solved;
	int err = make_base(request, topology, &instance, result->why, sizeof(result->why));

	if (err)
		return err;
	err = muster_store_solve(request->folder, instance, &request->solve, &solved);
	muster_instance_free(instance);
	if (err)
		return err;
	result->proof = solved.proof;
	result->cpu_seconds += solved.cpu_seconds;
	result->kept |= solved.kept;
	snprintf(result->why, sizeof(result->why), "%s", solved.why);
	*solution = solved.solution;
	return 0;
}

/* Over the same links, if all of them go both ways: a solution there is one here. */
static bool carry_over(const struct muster_synth_request *request,
		       const struct muster_topology *to, const struct muster_solution *from,
		       struct muster_solution **solution)
{
	struct muster_solution *copy = muster_solution_copy(from);
	struct muster_instance *instance = NULL;
	char why[160];
	bool good = copy && !make_base(request, to, &instance, why, sizeof(why));

	for (uint32_t i = 0; good && i < copy->nr_sends; i++) {
		const struct muster_link *link = &request->topology->links[copy->sends[i].link];
		int64_t there = muster_topology_find_link(to, link->from, link->to);

		good = there >= 0;
		copy->sends[i].link = there;
	}
	good = good && !muster_solution_verify(instance, copy, why, sizeof(why));
	muster_instance_free(instance);
	if (good)
		*solution = copy;
	else
		muster_solution_free(copy);
	return good;
}

static int solve_parts(const struct muster_synth_request *request,
		       const struct muster_topology *reversed, struct muster_synth_result *result,
		       struct muster_solution **backwards, struct muster_solution **forwards)
{
	struct recipe recipe = recipe_of(request->coll);
	int err = 0;

	if (recipe.forwards)
		err = solve_base(request, request->topology, result, forwards);
	if (err || !recipe.backwards || (recipe.forwards && !*forwards))
		return err;
	if (*forwards && carry_over(request, reversed, *forwards, backwards))
		return 0;
	return solve_base(request, reversed, result, backwards);
}

/* ---- directly ------------------------------------------------------------------------ */

static bool has_switches(const struct muster_topology *topology)
{
	for (uint32_t node = 0; node < topology->nodes; node++)
		if (topology->is_switch[node])
			return true;
	return false;
}

static bool is_direct(const struct muster_synth_request *request)
{
	return request->direct || request->shape || request->coll == MUSTER_COLL_SCAN ||
	       has_switches(request->topology);
}

static int solve_shape(const struct muster_synth_request *request,
		       const struct muster_schedule *shape, struct muster_synth_result *result)
{
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	struct muster_instance *instance;
	struct muster_solved solved;
	int err = muster_instance_of_shape(request->topology, shape, request->steps,
					   request->rounds, &instance, result->why,
					   sizeof(result->why));

	if (err)
		return err;
	err = muster_store_solve(request->folder, instance, &request->solve, &solved);
	muster_instance_free(instance);
	if (err)
		return err;
	result->proof = solved.proof;
	result->cpu_seconds = solved.cpu_seconds;
	result->kept = solved.kept;
	snprintf(result->why, sizeof(result->why), "%s", solved.why);
	if (!solved.solution)
		return 0;
	name_schedule(request, name, sizeof(name));
	err = muster_shape_schedule(shape, name, request->topology, solved.solution,
				    &result->schedule);
	muster_solution_free(solved.solution);
	return err ? err : check(request, result->schedule, result->why, sizeof(result->why));
}

static int synthesize_directly(const struct muster_synth_request *request,
			       struct muster_synth_result *result)
{
	struct muster_schedule *made = NULL;
	int err = 0;

	if (!request->shape)
		err = muster_shape_make(request->topology, request->coll, request->root,
					request->chunks, &made, result->why, sizeof(result->why));
	if (!err)
		err = solve_shape(request, request->shape ? request->shape : made, result);
	muster_schedule_free(made);
	if (err) {
		muster_schedule_free(result->schedule);
		result->schedule = NULL;
	}
	return err;
}

int muster_synthesize(const struct muster_synth_request *request,
		      struct muster_synth_result *result)
{
	struct muster_solution *backwards = NULL, *forwards = NULL;
	struct muster_topology *reversed = NULL;
	int err;

	*result = (struct muster_synth_result){ .proof = MUSTER_PROOF_UNKNOWN };
	if (is_direct(request))
		return synthesize_directly(request, result);
	err = check_request(request, result->why, sizeof(result->why));
	if (!err)
		err = muster_topology_reverse(request->topology, &reversed);
	if (!err)
		err = solve_parts(request, reversed, result, &backwards, &forwards);
	if (!err && result->proof == MUSTER_PROOF_FOUND)
		err = build(request, reversed, backwards, forwards, &result->schedule);
	if (!err && result->schedule)
		err = check(request, result->schedule, result->why, sizeof(result->why));
	if (err) {
		muster_schedule_free(result->schedule);
		result->schedule = NULL;
	}
	muster_solution_free(backwards);
	muster_solution_free(forwards);
	muster_topology_free(reversed);
	return err;
}

int muster_synth_bounds(const struct muster_synth_request *request, uint32_t *steps,
			uint64_t *rounds, uint64_t *chunks, char *why, size_t why_len)
{
	struct recipe recipe = recipe_of(request->coll);
	struct muster_synth_request least = *request;
	struct muster_topology *reversed = NULL;
	struct muster_instance *instance = NULL;
	struct muster_bounds bounds;
	uint32_t parts;
	int err;

	if (has_switches(request->topology)) {
		snprintf(why, why_len, "bounds are of topologies without switches");
		return -EINVAL;
	}
	least.chunks = muster_synth_unit(request->coll, request->topology->nodes, &parts);
	least.steps = least.rounds = parts;
	err = check_request(&least, why, why_len);
	if (!err)
		err = muster_topology_reverse(request->topology, &reversed);
	if (!err)
		err = make_base(&least, recipe.forwards ? request->topology : reversed, &instance,
				why, why_len);
	if (!err)
		err = muster_bounds(instance, &bounds);
	if (!err && bounds.steps == MUSTER_FAR) {
		snprintf(why, why_len, "node %" PRIu32 " cannot be reached", bounds.far_to);
		err = -EINVAL;
	}
	if (!err) {
		*steps = parts * bounds.steps;
		*rounds = parts * bounds.enter;
		*chunks = least.chunks * (bounds.capacity ? bounds.capacity : 1);
	}
	muster_instance_free(instance);
	muster_topology_free(reversed);
	return err;
}
