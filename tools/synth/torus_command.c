// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-synth torus: a plan, proved, with its sizes step by step.
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "show.h"
#include "torus.h"

static void show_report(const struct settings *s, const struct muster_torus_plan *plan,
			const struct muster_torus_report *report)
{
	uint32_t parts = plan->parts, channels = 2 * plan->torus.rings;
	double bound = (double)(plan->torus.nodes - 1) / channels;
	uint64_t bytes = (report->buffer * s->datum_bytes + parts - 1) / parts;
	uint64_t limit = s->buffer_bytes ? s->buffer_bytes : 1;

	printf("%" PRIu32 " nodes, %" PRIu32 " channels each way, %" PRIu32 " steps; each datum in "
	       "%" PRIu32 " part%s arrives everywhere once, from a neighbour: proved\n",
	       plan->torus.nodes, channels, plan->steps, parts, parts == 1 ? "" : "s");
	printf("%5s %12s %12s %12s\n", "step", "received", "busiest", "held");
	for (uint32_t step = 0; step < plan->steps; step++)
		printf("%5" PRIu32 " %12.6g %12.6g %12.6g\n", step + 1,
		       (double)report->received[step] / parts,
		       (double)report->busiest[step] / parts, (double)report->held[step] / parts);
	printf("largest buffer: %.6g data, %" PRIu64 " bytes of %" PRIu32 "; %" PRIu64 " pass%s "
	       "with %" PRIu64 " bytes\n", (double)report->buffer / parts, bytes, s->datum_bytes,
	       (bytes + limit - 1) / limit, bytes > limit ? "es" : "", limit);
	printf("time in data over one channel: %.6g; receive bound (N - 1) / %" PRIu32 ": %.6g; "
	       "efficiency %.2f %%\n", (double)report->time / parts, channels, bound,
	       100 * report->efficiency);
	printf("formula (2.1) with x = 2 (N - 1): x / %" PRIu32 " = %.6g\n", 2 * channels,
	       2.0 * (plan->torus.nodes - 1) / (2 * channels));
}

int run_torus(struct settings *s, int argc, char **argv)
{
	struct muster_torus_report report;
	struct muster_torus_plan *plan;
	struct muster_schedule *schedule;
	struct muster_torus torus;
	char why[300] = "no memory";

	if (argc != 1)
		die(2, "torus SHAPE");
	if (!s->output && strcmp(s->form, "schedule"))
		die(2, "torus: %s goes to a file, -o FILE: standard output has the sizes", s->form);
	if (muster_torus_read(argv[0], &torus, why, sizeof(why)))
		die(2, "%s", why);
	if (s->balanced ? muster_torus_plan_balanced(&torus, &plan) :
			  muster_torus_plan_blocks(&torus, !s->no_split, &plan))
		die(1, "%s", why);
	if (muster_torus_plan_check(plan, why, sizeof(why)) ||
	    muster_torus_report(plan, &report))
		die(1, "%s", why);
	show_report(s, plan, &report);
	if (s->output && !strcmp(s->form, "picture")) {
		FILE *out = open_output(s);

		muster_show_torus(plan, &report, out);
		close_output(s, out);
	} else if (s->output) {
		if (muster_torus_schedule(plan, &schedule, why, sizeof(why)))
			die(1, "%s", why);
		if (muster_schedule_check(schedule, why, sizeof(why)))
			die(1, "%s", why);
		if (!s->topology && muster_torus_topology(&torus, &s->topology, why, sizeof(why)))
			die(1, "%s", why);
		write_schedule(s, schedule);
		muster_schedule_free(schedule);
	}
	muster_torus_report_free(&report);
	muster_torus_plan_free(plan);
	return 0;
}
