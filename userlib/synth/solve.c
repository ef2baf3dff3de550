// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The portfolio. First what needs no solver: bounds, and flows. Then attempts of
 * several kinds, in waves of growing time, since how long one takes varies by
 * orders of magnitude and the next seed may be lucky: fewer steps (a solution with
 * fewer is split), pipelined shares, quotients, and the full formula, which alone
 * can refute.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attempt.h"
#include "bounds.h"
#include "flow.h"
#include "pipeline.h"

enum {
	CPU_SECONDS = 120,
	KINDS_MAX = 24,
	QUOTIENTS = 3,			/* tried at full steps; at fewer, the best alone */
	JOBS_MAX = 64,
};

/* A kind of attempt: what is asked, and how its answer becomes one to the question. */
struct kind {
	struct muster_instance *instance;	/* own; NULL: the question itself */
	struct muster_quotient *quotients;
	int nr_quotients;
	int quotient;			/* its number; -1: none */
	uint32_t shares;		/* pipelined; else 0 */
	bool over;			/* it has been refuted: no use to repeat it */
	const char *name;
};

struct portfolio {
	const struct muster_instance *instance;
	const struct muster_solve_options *options;
	struct muster_solved *solved;
	struct kind kinds[KINDS_MAX];
	int nr_kinds;
	double budget;			/* seconds that are left */
	struct muster_attempt running[JOBS_MAX];
	int kind_of[JOBS_MAX];
	int nr_running;
	int jobs;
};

const char *muster_proof_name(enum muster_proof proof)
{
	static const char *const names[] = { "unknown", "found", "refuted" };

	return names[proof];
}

/* ---- splitting steps ------------------------------------------------------------------- */

static bool links_are_limited_alone(const struct muster_topology *topology)
{
	for (uint32_t i = 0; i < topology->nr_limits; i++)
		if (topology->limits[i].nr_links > 1)
			return false;
	return true;
}

/*
 * Cut a step of several rounds in two, the first of one round: on each link, what
 * its limit allows in one round goes first. Sends of a step do not need each other.
 */
static bool split_step(const struct muster_topology *topology, struct muster_solution *solution,
		       uint32_t step)
{
	uint32_t *left = calloc(topology->nr_links + 1, sizeof(*left));

	if (!left)
		return false;
	memset(left, 0xff, topology->nr_links * sizeof(*left));
	for (uint32_t i = 0; i < topology->nr_limits; i++)
		if (topology->limits[i].bandwidth < left[topology->limits[i].links[0]])
			left[topology->limits[i].links[0]] = topology->limits[i].bandwidth;
	for (uint32_t i = 0; i < solution->nr_sends; i++) {
		struct muster_send *send = &solution->sends[i];

		if (send->step > step || (send->step == step && !left[send->link]))
			send->step++;
		else if (send->step == step)
			left[send->link]--;
	}
	solution->steps++;
	free(left);
	return true;
}

static int by_step(const void *left, const void *right)
{
	const struct muster_send *a = left, *b = right;

	if (a->step != b->step)
		return a->step < b->step ? -1 : 1;
	return a->chunk < b->chunk ? -1 : a->chunk > b->chunk;
}

/* Until there are so many steps, as long as one has rounds to give. */
static void split_steps(const struct muster_instance *instance, struct muster_solution *solution)
{
	uint32_t step = 0;

	while (solution->steps < instance->steps && step < solution->steps) {
		if (muster_solution_rounds(instance->topology, solution, step) < 2 ||
		    !split_step(instance->topology, solution, step))
			step++;
		else
			qsort(solution->sends, solution->nr_sends, sizeof(*solution->sends),
			      by_step);
	}
}

/* ---- answers ----------------------------------------------------------------------------- */

/* A solver's word, made an answer to the question and verified. */
static int accept(struct portfolio *p, const struct kind *kind, struct muster_solution *solution)
{
	struct muster_solution *whole = solution;
	int err = 0;

	if (kind->shares) {
		err = muster_pipeline_expand(p->instance, kind->shares, solution, &whole);
		muster_solution_free(solution);
		if (err)
			return err;
	}
	err = muster_solution_trim(p->instance, whole);
	if (!err && whole->steps < p->instance->steps)
		split_steps(p->instance, whole);
	if (!err)
		err = muster_solution_verify(p->instance, whole, p->solved->why,
					     sizeof(p->solved->why));
	if (err) {
		muster_solution_free(whole);
		/* Where a switch combined several, the next model may do it in one order. */
		return p->instance->shape && err == -EINVAL ? 0 : err;
	}
	p->solved->solution = whole;
	p->solved->proof = MUSTER_PROOF_FOUND;
	snprintf(p->solved->why, sizeof(p->solved->why), "%s", kind->name);
	return 0;
}

/* Take the answer of a running attempt. */
static int take(struct portfolio *p, int index, bool lost)
{
	struct kind *kind = &p->kinds[p->kind_of[index]];
	struct muster_solution *solution;
	enum muster_proof proof = muster_attempt_end(&p->running[index], lost, &solution);
	double used = p->running[index].cpu_seconds;

	p->solved->cpu_seconds += used;
	p->budget -= used;
	p->nr_running--;
	p->running[index] = p->running[p->nr_running];
	p->kind_of[index] = p->kind_of[p->nr_running];
	if (proof == MUSTER_PROOF_FOUND)
		return accept(p, kind, solution);
	if (proof != MUSTER_PROOF_REFUTED)
		return 0;
	kind->over = true;
	if (!kind->instance && kind->quotient < 0) {
		p->solved->proof = MUSTER_PROOF_REFUTED;
		snprintf(p->solved->why, sizeof(p->solved->why), "%s of %u chunks in all, %u steps "
			 "and %u rounds has no model, which proves that %s", kind->name,
			 p->instance->chunks, p->instance->steps, p->instance->rounds,
			 p->instance->shape ? "there is none of its class" : "there is none");
	}
	return 0;
}

static void kill_all(struct portfolio *p)
{
	while (p->nr_running)
		take(p, 0, true);
}

static int wait_for_one(struct portfolio *p)
{
	struct pollfd fds[JOBS_MAX];

	for (int i = 0; i < p->nr_running; i++)
		fds[i] = (struct pollfd){ .fd = p->running[i].pipe, .events = POLLIN };
	if (poll(fds, p->nr_running, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < p->nr_running; i++)
		if (fds[i].revents)
			return take(p, i, false);
	return 0;
}

/* ---- the portfolio ------------------------------------------------------------------------- */

static struct kind *add_kind(struct portfolio *p, struct muster_instance *own, const char *name)
{
	struct kind *kind = &p->kinds[p->nr_kinds++];

	*kind = (struct kind){ .instance = own, .quotient = -1, .name = name };
	return kind;
}

/* The same in fewer steps, on its own copy. */
static int add_fewer(struct portfolio *p, uint32_t steps)
{
	const struct muster_instance *from = p->instance;
	size_t places = (size_t)from->chunks * from->topology->nodes;
	struct muster_instance *own;
	struct kind *kind;

	own = muster_instance_new(from->topology, from->chunks, steps, from->rounds);
	if (!own)
		return -ENOMEM;
	memcpy(own->pre, from->pre, places);
	memcpy(own->post, from->post, places);
	kind = add_kind(p, own, "in fewer steps, then split");
	kind->nr_quotients = muster_quotients(own, 1, &kind->quotients);
	if (kind->nr_quotients < 0)
		return kind->nr_quotients;
	kind->quotient = kind->nr_quotients ? 0 : -1;
	return 0;
}

static int add_shares(struct portfolio *p, uint32_t shares)
{
	struct muster_instance *own;
	int err = muster_pipeline_share(p->instance, shares, &own);

	if (!err)
		add_kind(p, own, "pipelined")->shares = shares;
	return err == -EINVAL ? 0 : err;
}

static int add_quotients(struct portfolio *p)
{
	struct muster_quotient *quotients;
	int nr = muster_quotients(p->instance, QUOTIENTS, &quotients);

	for (int i = 0; i < nr; i++) {
		struct kind *kind = add_kind(p, NULL, "by symmetry");

		kind->quotients = quotients;
		kind->nr_quotients = i ? 0 : nr;	/* the first one frees them */
		kind->quotient = i;
	}
	return nr < 0 ? nr : 0;
}

static int make_kinds(struct portfolio *p, const struct muster_bounds *bounds)
{
	const struct muster_instance *instance = p->instance;
	int err = 0;

	if (p->options->plain || p->options->full_only || instance->shape) {
		add_kind(p, NULL, instance->shape ? "the direct formula" : "the full formula");
		return 0;
	}
	for (uint32_t shares = instance->steps; shares > 1 && !err &&
	     instance->rounds == instance->steps && p->nr_kinds < KINDS_MAX / 3; shares--)
		if (instance->steps - shares + 1 >= bounds->steps)
			err = add_shares(p, shares);
	for (uint32_t steps = bounds->steps; steps < instance->steps && !err && steps &&
	     p->nr_kinds < KINDS_MAX - QUOTIENTS - 1 &&
	     links_are_limited_alone(instance->topology); steps++)
		err = add_fewer(p, steps);
	if (!err)
		err = add_quotients(p);
	if (!err)
		add_kind(p, NULL, "the full formula");
	return err;
}

static int start(struct portfolio *p, int index, double seconds, unsigned int wave)
{
	const struct kind *kind = &p->kinds[index];
	struct muster_attempt *attempt = &p->running[p->nr_running];
	int first = index - (kind->instance ? 0 : kind->quotient);

	*attempt = (struct muster_attempt){
		.instance = kind->instance ? kind->instance : p->instance,
		.plain = p->options->plain,
		.window = kind->shares,
		.seed = p->options->seed + wave * 7919 + index,
		.cpu_seconds = seconds < p->budget ? seconds : p->budget,
	};
	if (kind->quotient >= 0)
		attempt->quotient = &p->kinds[first].quotients[kind->quotient];
	p->kind_of[p->nr_running] = index;
	return muster_attempt_start(attempt);
}

static bool is_done(const struct portfolio *p)
{
	return p->solved->proof != MUSTER_PROOF_UNKNOWN || p->budget <= 0.01;
}

static int run_wave(struct portfolio *p, double seconds, unsigned int wave)
{
	int err = 0;

	for (int i = 0; i < p->nr_kinds && !err && !is_done(p); i++) {
		if (p->kinds[i].over)
			continue;
		err = start(p, i, seconds, wave);
		p->nr_running += !err;
		while (!err && p->nr_running == p->jobs && !is_done(p))
			err = wait_for_one(p);
	}
	while (!err && p->nr_running && !is_done(p))
		err = wait_for_one(p);
	kill_all(p);
	return err;
}

static int run_portfolio(struct portfolio *p, const struct muster_bounds *bounds)
{
	double seconds = p->options->plain || p->options->full_only ? p->budget : 0.25;
	int err = make_kinds(p, bounds);

	for (unsigned int wave = 0; !err && !is_done(p); wave++, seconds *= wave & 1 ? 1 : 2)
		err = run_wave(p, seconds, wave);
	for (int i = 0; i < p->nr_kinds; i++) {
		muster_instance_free(p->kinds[i].instance);
		if (p->kinds[i].nr_quotients > 0)
			muster_quotients_free(p->kinds[i].quotients, p->kinds[i].nr_quotients);
	}
	return err;
}

static int solve_flow(struct portfolio *p)
{
	const struct kind flow = { .name = "as a flow" };
	struct muster_solution *solution = NULL;
	enum muster_proof proof;
	int err = muster_flow_solve(p->instance, &proof, &solution);

	if (err)
		return err;
	if (proof == MUSTER_PROOF_FOUND)
		return accept(p, &flow, solution);
	p->solved->proof = proof;
	snprintf(p->solved->why, sizeof(p->solved->why), "no flow, however the rounds are given");
	return 0;
}

static double own_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int muster_solve(const struct muster_instance *instance,
		 const struct muster_solve_options *options, struct muster_solved *solved)
{
	struct portfolio *p = calloc(1, sizeof(*p));
	double began = own_seconds();
	struct muster_bounds bounds;
	int err = p ? muster_bounds(instance, &bounds) : -ENOMEM;

	*solved = (struct muster_solved){ .proof = MUSTER_PROOF_UNKNOWN };
	if (err) {
		free(p);
		return err;
	}
	*p = (struct portfolio){
		.instance = instance, .options = options, .solved = solved,
		.budget = options->cpu_seconds ? options->cpu_seconds : CPU_SECONDS,
		.jobs = options->jobs > JOBS_MAX ? JOBS_MAX : options->jobs ? options->jobs : 1,
	};
	if (options->plain || options->full_only)
		err = run_portfolio(p, &bounds);
	else if (muster_bounds_refute(instance, &bounds, solved->why, sizeof(solved->why)))
		solved->proof = MUSTER_PROOF_REFUTED;
	else if (!instance->shape && muster_flow_suits(instance))
		err = solve_flow(p);
	if (!err && !options->plain && !options->full_only &&
	    solved->proof == MUSTER_PROOF_UNKNOWN)
		err = run_portfolio(p, &bounds);
	solved->cpu_seconds += own_seconds() - began;
	free(p);
	return err;
}
