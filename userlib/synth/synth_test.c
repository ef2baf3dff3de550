// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is found is right, what is refuted cannot be, and the ways to find out
 * agree with each other.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "build.h"
#include "flow.h"
#include "shape.h"
#include "store.h"
#include "synth.h"

/* Whether what takes long is wanted, too. */
static bool with_rest(void)
{
	return getenv("MUSTER_REST");
}

static struct muster_topology *make(const char *spec)
{
	struct muster_topology *topology;
	char why[400];

	if (muster_topology_make(spec, &topology, why, sizeof(why)))
		fail_msg("%s: %s", spec, why);
	return topology;
}

static struct muster_topology *read_topology(const char *text)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct muster_topology *topology;
	char why[400];

	if (muster_topology_read(in, &topology, why, sizeof(why)))
		fail_msg("%s", why);
	fclose(in);
	return topology;
}

static const struct {
	const char *topology;
	enum muster_coll coll;
	uint32_t root, chunks, steps, rounds;
	enum muster_proof proof;
	const char *why;		/* NULL: any */
} cases[] = {
	{ "dgx1", MUSTER_COLL_ALLGATHER, 0, 2, 2, 3, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_ALLREDUCE, 0, 16, 4, 6, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_REDUCE_SCATTER, 0, 8, 2, 2, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_REDUCE, 5, 6, 3, 3, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_BROADCAST, 3, 2, 2, 2, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_GATHER, 1, 6, 3, 7, MUSTER_PROOF_FOUND, "as a flow" },
	{ "dgx1", MUSTER_COLL_SCATTER, 1, 48, 3, 7, MUSTER_PROOF_FOUND, "as a flow" },
	{ "dgx1", MUSTER_COLL_ALLTOALL, 0, 8, 2, 3, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_ALLGATHER, 0, 3, 2, 4, MUSTER_PROOF_REFUTED,
	  "the full formula of 24 chunks in all, 2 steps and 4 rounds has no model, which proves "
	  "that there is none" },
	{ "dgx1", MUSTER_COLL_ALLGATHER, 0, 1, 1, 9, MUSTER_PROOF_REFUTED,
	  "1 steps, but node 4 is 2 hops from node 0" },
	{ "dgx1", MUSTER_COLL_ALLGATHER, 0, 7, 3, 8, MUSTER_PROOF_REFUTED,
	  "8 rounds, but 49 chunks must enter the nodes {0}, where 6 a round can" },
	{ "ring:5", MUSTER_COLL_GATHER, 0, 1, 2, 2, MUSTER_PROOF_FOUND, NULL },
	{ "ring:6", MUSTER_COLL_GATHER, 0, 2, 3, 5, MUSTER_PROOF_FOUND, NULL },
	{ "star:4", MUSTER_COLL_GATHER, 1, 1, 2, 3, MUSTER_PROOF_FOUND, NULL },
	{ "star:4", MUSTER_COLL_GATHER, 1, 1, 2, 2, MUSTER_PROOF_REFUTED, NULL },
	{ "line:3", MUSTER_COLL_ALLREDUCE, 0, 3, 4, 4, MUSTER_PROOF_FOUND, NULL },
	{ "hypercube:2", MUSTER_COLL_ALLTOALL, 0, 4, 2, 2, MUSTER_PROOF_FOUND, NULL },
};

static void found_and_refuted_as_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct muster_topology *topology = make(cases[i].topology);
		const struct muster_synth_request request = {
			.topology = topology, .coll = cases[i].coll, .root = cases[i].root,
			.chunks = cases[i].chunks, .steps = cases[i].steps,
			.rounds = cases[i].rounds,
		};
		struct muster_synth_result result;
		int err = muster_synthesize(&request, &result);

		if (err || result.proof != cases[i].proof || !result.schedule !=
		    (cases[i].proof != MUSTER_PROOF_FOUND) ||
		    (cases[i].why && strcmp(result.why, cases[i].why)))
			fail_msg("%s %s (%u, %u, %u): %d, %s: %s", cases[i].topology,
				 muster_coll_name(cases[i].coll), cases[i].chunks, cases[i].steps,
				 cases[i].rounds, err, muster_proof_name(result.proof), result.why);
		muster_schedule_free(result.schedule);
		muster_topology_free(topology);
	}
}

static void wrong_requests_are_refused(void **state)
{
	struct muster_topology *topology = make("dgx1");
	struct muster_synth_request request = {
		.topology = topology, .coll = MUSTER_COLL_ALLREDUCE, .chunks = 8, .steps = 3,
		.rounds = 4,
	};
	struct muster_synth_result result;

	(void)state;
	assert_int_equal(muster_synthesize(&request, &result), -EINVAL);
	request.steps = 4;
	request.chunks = 4;
	assert_int_equal(muster_synthesize(&request, &result), -EINVAL);
	request.coll = MUSTER_COLL_BARRIER;
	assert_int_equal(muster_synthesize(&request, &result), -EINVAL);
	request.coll = MUSTER_COLL_BROADCAST;
	request.root = 8;
	assert_int_equal(muster_synthesize(&request, &result), -EINVAL);
	assert_string_equal(result.why, "root 8, but there are 8 nodes");
	muster_topology_free(topology);
}

static enum muster_proof solve(const struct muster_instance *instance,
			       const struct muster_solve_options *options)
{
	struct muster_solved solved;
	char why[200];

	assert_int_equal(muster_solve(instance, options, &solved), 0);
	if (solved.proof == MUSTER_PROOF_FOUND)
		assert_int_equal(muster_solution_verify(instance, solved.solution, why,
							sizeof(why)), 0);
	muster_solution_free(solved.solution);
	return solved.proof;
}

static uint64_t seed = 5;

static uint32_t random_below(uint32_t bound)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % bound;
}

/* Places at random over a topology with shared limits. */
static struct muster_instance *random_instance(const struct muster_topology *topology)
{
	uint32_t chunks = 1 + random_below(5), steps = 1 + random_below(3);
	struct muster_instance *instance = muster_instance_new(topology, chunks, steps,
							       steps + random_below(2));

	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		instance->pre[chunk * topology->nodes + random_below(topology->nodes)] = true;
		for (uint32_t node = 0; node < topology->nodes; node++)
			instance->post[chunk * topology->nodes + node] = !random_below(2);
	}
	return instance;
}

static void the_encodings_agree(void **state)
{
	static const char *const texts[] = {
		"muster-topology 1\nname x\nnodes 4\nlink 0 -- 1 2\nlink 1 -- 2 1\nlink 2 -> 3 1\n"
		"link 3 -> 0 1\nend\n",
		"muster-topology 1\nname x\nnodes 4\nlink 0 -- 3 1\nbus 1 0 1 2\nout 1 0\nend\n",
		"muster-topology 1\nname x\nnodes 3\nlink 0 -- 1 1\nlink 1 -- 2 1\nlink 2 -- 0 0\n"
		"end\n",
	};
	const struct muster_solve_options plain = { .plain = true }, full = { .full_only = true };
	const struct muster_solve_options all = { .jobs = 2 };
	unsigned int seen[3] = { 0 };

	(void)state;
	for (int i = 0; i < (with_rest() ? 60 : 32); i++) {
		struct muster_topology *topology = read_topology(texts[i % 3]);
		struct muster_instance *instance = random_instance(topology);
		enum muster_proof proof = solve(instance, &plain);

		seen[proof]++;
		assert_int_equal(solve(instance, &full), proof);
		assert_int_equal(solve(instance, &all), proof);
		muster_instance_free(instance);
		muster_topology_free(topology);
	}
	assert_true(!seen[MUSTER_PROOF_UNKNOWN] && seen[MUSTER_PROOF_FOUND] > 10 &&
		    seen[MUSTER_PROOF_REFUTED] > 10);
}

static void flows_agree_with_the_formula(void **state)
{
	const struct muster_solve_options full = { .full_only = true };
	unsigned int seen[3] = { 0 };

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct muster_topology *topology = make(i & 1 ? "line:4" : "star:4");
		struct muster_instance *instance;
		struct muster_solution *solution = NULL;
		enum muster_proof proof;
		char why[200];
		uint32_t steps = 1 + random_below(4);

		assert_int_equal(muster_instance_make(topology, i & 2 ? MUSTER_COLL_GATHER :
						      MUSTER_COLL_SCATTER, random_below(4),
						      i & 2 ? 1 + random_below(2) :
						      4 + 4 * random_below(2), steps,
						      steps + random_below(3), &instance, why,
						      sizeof(why)), 0);
		assert_true(muster_flow_suits(instance));
		assert_int_equal(muster_flow_solve(instance, &proof, &solution), 0);
		if (solution)
			assert_int_equal(muster_solution_verify(instance, solution, why,
								sizeof(why)), 0);
		assert_int_equal(solve(instance, &full), proof);
		seen[proof]++;
		muster_solution_free(solution);
		muster_instance_free(instance);
		muster_topology_free(topology);
	}
	assert_true(seen[MUSTER_PROOF_FOUND] > 5 && seen[MUSTER_PROOF_REFUTED] > 5);
}

struct frontier {
	unsigned int nr;
	struct muster_pareto_point points[8];
};

static void keep_point(const struct muster_pareto_point *point,
		       const struct muster_synth_result *result, void *arg)
{
	struct frontier *frontier = arg;

	assert_non_null(result->schedule);
	assert_in_range(frontier->nr, 0, 7);
	frontier->points[frontier->nr++] = *point;
}

static void the_frontier_of_an_allgather_is_known(void **state)
{
	struct muster_topology *topology = make("dgx1");
	const struct muster_synth_request request = {
		.topology = topology, .coll = MUSTER_COLL_ALLGATHER,
	};
	struct frontier frontier = { 0 };
	const struct muster_pareto_options options = {
		.extra_rounds = 4, .found = keep_point, .arg = &frontier,
	};
	char why[200];

	(void)state;
	assert_int_equal(muster_pareto(&request, &options, why, sizeof(why)), 0);
	assert_int_equal(frontier.nr, 2);
	assert_true(frontier.points[0].least_steps && frontier.points[0].proved);
	assert_int_equal(frontier.points[0].steps, 2);
	assert_int_equal(frontier.points[0].rounds * 2, frontier.points[0].chunks * 3);
	assert_true(frontier.points[1].least_rounds && frontier.points[1].proved);
	assert_int_equal(frontier.points[1].steps, 3);
	assert_int_equal(frontier.points[1].rounds, 7);
	assert_int_equal(frontier.points[1].chunks, 6);
	muster_topology_free(topology);
}

static void what_was_solved_is_kept(void **state)
{
	char folder[] = "/tmp/muster-synth-XXXXXX", command[64];
	struct muster_topology *topology = make("dgx1");
	struct muster_synth_request request = {
		.topology = topology, .coll = MUSTER_COLL_ALLGATHER, .chunks = 1, .steps = 2,
		.rounds = 2, .folder = mkdtemp(folder),
	};
	struct muster_synth_result first, second;

	(void)state;
	assert_int_equal(muster_synthesize(&request, &first), 0);
	assert_int_equal(muster_synthesize(&request, &second), 0);
	assert_string_equal(second.why, "solved before");
	assert_true(muster_schedule_hash(first.schedule) == muster_schedule_hash(second.schedule));
	muster_schedule_free(second.schedule);
	snprintf(command, sizeof(command), "sed -i '4s/.*/send 1 0 0/' %s/*", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(muster_synthesize(&request, &second), 0);
	assert_int_equal(second.proof, MUSTER_PROOF_FOUND);
	assert_string_not_equal(second.why, "solved before");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	muster_schedule_free(first.schedule);
	muster_schedule_free(second.schedule);
	muster_topology_free(topology);
}

/* At most so many steps and rounds, or refuted: what is to be combined, as it is. */
static const struct {
	const char *topology;
	enum muster_coll coll;
	uint32_t root, chunks, steps, rounds;
	enum muster_proof proof;
	const char *why;		/* NULL: any */
} direct_cases[] = {
	/* recursive doubling is found, and that there is nothing shorter */
	{ "hypercube:3", MUSTER_COLL_ALLREDUCE, 0, 1, 3, 3, MUSTER_PROOF_FOUND, NULL },
	{ "hypercube:3", MUSTER_COLL_ALLREDUCE, 0, 1, 2, 6, MUSTER_PROOF_REFUTED,
	  "2 steps, but node 0 is 3 hops from node 7" },
	/* by inversion it takes 4 steps here */
	{ "dgx1", MUSTER_COLL_ALLREDUCE, 0, 1, 3, 3, MUSTER_PROOF_FOUND, NULL },
	{ "dgx1", MUSTER_COLL_ALLREDUCE, 0, 1, 2, 4, MUSTER_PROOF_REFUTED,
	  "the direct formula of 1 chunks in all, 2 steps and 4 rounds has no model, which proves "
	  "that there is none of its class" },
	{ "full:3", MUSTER_COLL_ALLREDUCE, 0, 1, 1, 1, MUSTER_PROOF_REFUTED, NULL },
	{ "full:3", MUSTER_COLL_REDUCE_SCATTER, 0, 3, 1, 1, MUSTER_PROOF_FOUND, NULL },
	{ "line:3", MUSTER_COLL_REDUCE, 1, 2, 1, 2, MUSTER_PROOF_FOUND, NULL },
	{ "ring:4", MUSTER_COLL_REDUCE, 3, 1, 1, 4, MUSTER_PROOF_REFUTED, NULL },
	{ "line:4", MUSTER_COLL_SCAN, 0, 1, 3, 3, MUSTER_PROOF_FOUND, NULL },
	{ "line:4", MUSTER_COLL_SCAN, 0, 1, 2, 4, MUSTER_PROOF_REFUTED,
	  "2 steps, but node 3 is 3 hops from node 0" },
	{ "full:4", MUSTER_COLL_SCAN, 0, 2, 2, 4, MUSTER_PROOF_FOUND, NULL },
	{ "hypercube:3", MUSTER_COLL_SCAN, 0, 1, 3, 3, MUSTER_PROOF_FOUND, NULL },
	/* within the distances, but too much for one link; a scan goes one way */
	{ "line:3", MUSTER_COLL_REDUCE, 0, 3, 2, 2, MUSTER_PROOF_REFUTED,
	  "2 rounds, but 3 chunks must enter the nodes {0}, where 1 a round can" },
	{ "line:2", MUSTER_COLL_SCAN, 0, 3, 2, 2, MUSTER_PROOF_REFUTED,
	  "2 rounds, but 3 chunks must enter the nodes {1}, where 1 a round can" },
	/* a switch that combines; what it cannot do is be a rank */
	{ "switch:5", MUSTER_COLL_ALLREDUCE, 0, 3, 2, 6, MUSTER_PROOF_FOUND, NULL },
	{ "switch:5", MUSTER_COLL_ALLREDUCE, 0, 3, 2, 5, MUSTER_PROOF_REFUTED, NULL },
	{ "switch:5", MUSTER_COLL_REDUCE, 2, 2, 3, 3, MUSTER_PROOF_FOUND, NULL },
	{ "switch:5", MUSTER_COLL_ALLGATHER, 0, 1, 2, 4, MUSTER_PROOF_FOUND, NULL },
	{ "switch:5", MUSTER_COLL_BROADCAST, 1, 2, 2, 4, MUSTER_PROOF_FOUND, NULL },
};

static void what_combines_is_solved_directly(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(direct_cases) / sizeof(direct_cases[0]); i++) {
		struct muster_topology *topology = make(direct_cases[i].topology);
		const struct muster_synth_request request = {
			.topology = topology, .coll = direct_cases[i].coll, .direct = true,
			.root = direct_cases[i].root, .chunks = direct_cases[i].chunks,
			.steps = direct_cases[i].steps, .rounds = direct_cases[i].rounds,
		};
		struct muster_synth_result result;
		int err = muster_synthesize(&request, &result);

		if (err || result.proof != direct_cases[i].proof ||
		    (direct_cases[i].why && strcmp(result.why, direct_cases[i].why)))
			fail_msg("%s %s (%u, %u, %u): %d, %s: %s", topology->name,
				 muster_coll_name(request.coll), request.chunks, request.steps,
				 request.rounds, err, muster_proof_name(result.proof), result.why);
		muster_schedule_free(result.schedule);
		muster_topology_free(topology);
	}
}

static enum muster_proof solve_directly(struct muster_synth_request *request, bool bounded,
					bool *by_bound)
{
	struct muster_synth_result result;

	request->solve.full_only = !bounded;
	assert_int_equal(muster_synthesize(request, &result), 0);
	*by_bound = result.proof == MUSTER_PROOF_REFUTED && !strstr(result.why, "formula");
	muster_schedule_free(result.schedule);
	return result.proof;
}

/* Neither too many, nor what the formula would find. */
static void bounds_of_what_combines_agree_with_the_formula(void **state)
{
	static const char *const specs[] = { "line:3", "ring:4", "star:4", "switch:4" };
	static const char one_way[] = "muster-topology 1\nname x\nnodes 3\nlink 0 -> 1 2\n"
		"link 1 -> 2 2\nend\n";
	static const enum muster_coll colls[] = {
		MUSTER_COLL_ALLREDUCE, MUSTER_COLL_REDUCE, MUSTER_COLL_SCAN,
	};
	unsigned int found = 0, bounded = 0;

	(void)state;
	for (int i = 0; i < (with_rest() ? 60 : 32); i++) {
		struct muster_topology *topology = i % 5 < 4 ? make(specs[i % 5]) :
							       read_topology(one_way);
		struct muster_synth_request request = {
			.topology = topology, .coll = colls[i % 5 == 3 ? i % 2 : i % 3],
			.root = random_below(3), .direct = true, .chunks = 1 + random_below(3),
			.steps = 1 + random_below(3),
		};
		bool by_bound, by_formula;
		enum muster_proof proof;

		request.rounds = request.steps + random_below(2);
		proof = solve_directly(&request, false, &by_formula);
		assert_int_equal(solve_directly(&request, true, &by_bound), proof);
		assert_false(by_formula);
		found += proof == MUSTER_PROOF_FOUND;
		bounded += by_bound;
		muster_topology_free(topology);
	}
	assert_true(found > 5 && bounded > 5);
}

static enum muster_proof solve_conditions(const char *spec, const char *text, char *why)
{
	struct muster_topology *topology = make(spec);
	struct muster_synth_request request = {
		.topology = topology, .coll = MUSTER_COLL_CUSTOM, .steps = 2, .rounds = 2,
	};
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	struct muster_synth_result result = { 0 };
	struct muster_schedule *shape = NULL;

	if (!muster_shape_read(in, topology, &shape, why, 200)) {
		request.shape = shape;
		assert_int_equal(muster_synthesize(&request, &result), 0);
	}
	assert_true(!result.schedule || result.schedule->coll == MUSTER_COLL_CUSTOM);
	fclose(in);
	muster_schedule_free(result.schedule);
	muster_schedule_free(shape);
	muster_topology_free(topology);
	return result.proof;
}

#define CONDITIONS "muster-conditions 1\nchunks 2\n"

static void conditions_of_a_file_are_solved(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} bad[] = {
		{ "muster-conditions 2\n",
		  "line 1: version 2 of the form, but this reads version 1" },
		{ CONDITIONS "chunk 0 at 0 to 1 9\n", "line 3: node 9, but it can be 0 to 3" },
		{ CONDITIONS "chunk 1 at 0 to 1\n", "line 3: chunk 1, but it can be 0 to 0" },
		{ CONDITIONS "chunk 0 at 0 1 2\n",
		  "line 3: \"to\" and the nodes that need it are missing" },
		{ CONDITIONS "chunk 0 at 0 to 1\nchunk 1 sum 0 to 1\n",
		  "line 5: \"end\" expected after 2 chunks" },
	};
	char why[200];

	(void)state;
	assert_int_equal(solve_conditions("ring:4", CONDITIONS "chunk 0 at 0 to 1 2\n"
					  "chunk 1 at 0 1 to 3\nend\n", why), MUSTER_PROOF_FOUND);
	assert_int_equal(solve_conditions("ring:4", CONDITIONS "chunk 0 sum 0 2 to 0 1 2\n"
					  "chunk 1 at 0 1 to 3\nend\n", why), MUSTER_PROOF_FOUND);
	assert_int_equal(solve_conditions("line:4", CONDITIONS "chunk 0 sum 0 2 to 3\n"
					  "chunk 1 at 0 1 to 3\nend\n", why),
			 MUSTER_PROOF_REFUTED);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(solve_conditions("ring:4", bad[i].text, why),
				 MUSTER_PROOF_UNKNOWN);
		assert_string_equal(why, bad[i].why);
	}
}

static void wrong_solutions_are_refused(void **state)
{
	struct muster_topology *topology = make("line:3");
	struct muster_send sends[] = { { 0, 0, 0, false }, { 1, 0, 2, false } };
	struct muster_solution solution = { 2, 2, sends };
	struct muster_instance *instance;
	char why[200];

	(void)state;
	assert_int_equal(muster_instance_make(topology, MUSTER_COLL_BROADCAST, 0, 1, 2, 2,
					      &instance, why, sizeof(why)), 0);
	assert_int_equal(muster_solution_verify(instance, &solution, why, sizeof(why)), 0);
	sends[1].step = 0;
	assert_int_equal(muster_solution_verify(instance, &solution, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "step 0, 1 -> 2, chunk 0: it is not there yet");
	solution.nr_sends = 1;
	assert_int_equal(muster_solution_verify(instance, &solution, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "chunk 0 does not reach node 2");
	muster_instance_free(instance);
	muster_topology_free(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_and_refuted_as_known),
		cmocka_unit_test(wrong_requests_are_refused),
		cmocka_unit_test(the_encodings_agree),
		cmocka_unit_test(flows_agree_with_the_formula),
		cmocka_unit_test(what_was_solved_is_kept),
		cmocka_unit_test(what_combines_is_solved_directly),
		cmocka_unit_test(bounds_of_what_combines_agree_with_the_formula),
		cmocka_unit_test(conditions_of_a_file_are_solved),
		cmocka_unit_test(wrong_solutions_are_refused),
	};
	const struct CMUnitTest rest[] = { cmocka_unit_test(the_frontier_of_an_allgather_is_known) };
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (with_rest())
		failed += cmocka_run_group_tests(rest, NULL, NULL);
	return failed;
}
