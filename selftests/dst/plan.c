// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a seed to a plan. Each kind of fault is on in half of the seeds that can
 * have it, with a strength that is drawn too, so that seeds differ in kind and
 * not only in detail. Adding a draw here changes what all seeds mean.
 */
#include "dst.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "switch.h"

static const char *const cause_names[DST_CAUSES] = {
	"none", "death", "mismatch", "abort", "memory", "close", "switch", "cut",
};

static uint32_t half(struct dst_rng *rng, uint32_t bound)
{
	bool on = dst_draw(rng) & 1;
	uint32_t strength = 1 + dst_below(rng, bound);

	return on ? strength : 0;
}

static void plan_hardware(struct dst_plan *plan, struct dst_rng *rng)
{
	static const uint32_t buffers[] = {
		MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, 2 * MUSTER_PULSE_MAX, 8 * MUSTER_PULSE_MAX,
	};
	static const uint32_t budgets[] = { 1, 3, 16, 256, 100000 };
	static const uint32_t slots[] = { 1, 2, 4, 16, 64 };
	uint64_t how;

	plan->vps_per_node = 1 + (dst_below(rng, 4) == 0);
	plan->ranks = 2 + dst_below(rng, DST_RANKS_DRAWN - 1);
	plan->nodes = (plan->ranks + plan->vps_per_node - 1) / plan->vps_per_node;
	plan->comms = 1 + dst_below(rng, DST_COMMS_MAX);
	plan->model.units = 1 + (uint32_t)dst_below(rng, 2);
	plan->model.buffer = buffers[dst_below(rng, 4)];
	plan->budget = budgets[dst_below(rng, 5)];
	plan->cq_slots = slots[dst_below(rng, 5)];
	plan->map = dst_draw(rng) & 1;
	plan->rings = dst_below(rng, 3) == 0;
	how = dst_draw(rng);
	plan->by_reference = plan->rings && how & 1;
	plan->at_once = plan->rings && how & 2;
	plan->copies = plan->by_reference && plan->vps_per_node == 1 && how >> 40 & 1;
	plan->forwards = how & 4;
	plan->idles = how & 8;
	plan->pulses_live = how & 16 ? 0 : how / 32 % (MUSTER_PULSES_LIVE + 1);
	how /= 32 * (MUSTER_PULSES_LIVE + 1);
	plan->model.pulses = how & 1 ? 0 : how / 2 % (MUSTER_PULSES_LIVE + 1);
	plan->model.window = how & 1 << 10 ? 0 : (how >> 11) % (MUSTER_WINDOW + 1);
}

static void plan_faults(struct dst_plan *plan, struct dst_rng *rng)
{
	plan->drop = half(rng, 300);
	plan->duplicate = half(rng, 300);
	plan->reorder = half(rng, 400);
	plan->corrupt = half(rng, 100);
	plan->truncate = half(rng, 50);
	plan->link_full = half(rng, 300);
	plan->send_full = half(rng, 300);
	plan->replay = half(rng, 100);
	plan->forge = half(rng, 50);
	plan->cuts = half(rng, 4);
	plan->clogs = half(rng, 4);
	plan->heal_us = 1000 + dst_below(rng, 300000);
	plan->jitter_us = 1 + dst_below(rng, 100);
	plan->engine_us = 1 + dst_below(rng, 50);
	plan->host_us = 1 + (dst_below(rng, 3) ? dst_below(rng, 50) : dst_below(rng, 5000));
	plan->late_us = dst_below(rng, 3) ? half(rng, 1000) : dst_below(rng, 5000000);
}

static void plan_cause(struct dst_plan *plan, struct dst_rng *rng)
{
	plan->cause = dst_draw(rng) & 1 ? DST_NONE : 1 + dst_below(rng, DST_CAUSES_PLAIN - 1);
	plan->cause_rank = dst_below(rng, plan->ranks);
	plan->cause_comm = dst_below(rng, plan->comms);
	plan->cause_op = dst_draw(rng) % DST_OPS_MAX;
	plan->cause_us = dst_below(rng, dst_below(rng, 4) ? 3000 : 400000);
	plan->reborn = dst_draw(rng) & 1;
	if (plan->cause == DST_DEATH)
		plan->replay = 0;	/* whether all of a dead node's packets have come is counted */
}

void dst_plan_make(struct dst_plan *plan, uint64_t seed)
{
	struct dst_rng rng = { seed ^ 0x706c616e };

	*plan = (struct dst_plan){ .seed = seed, .messages = true };
	plan_hardware(plan, &rng);
	plan_faults(plan, &rng);
	plan_cause(plan, &rng);
}

/* Hosts at switches, one rank each; what else was drawn stays. */
void dst_plan_trees(struct dst_plan *plan)
{
	static const uint32_t low[] = { 64, 256, 256, 512, 1024 }, streaming[] = { 256, 1024, MUSTER_MTU };
	struct dst_rng rng = { plan->seed ^ 0x74726565 };
	uint32_t levels = 1 + dst_below(&rng, 3);

	plan->rings = plan->by_reference = plan->copies = plan->at_once = plan->reborn = false;
	plan->vps_per_node = 1;
	plan->ranks = 2 + dst_below(&rng, DST_HOSTS_DRAWN - 1);
	plan->levels[0] = levels > 1 ? 2 + dst_below(&rng, 3) : 1;
	plan->levels[1] = levels > 1 ? 1 + dst_below(&rng, 2) : 0;
	plan->levels[2] = levels > 2 ? 1 + dst_below(&rng, 2) : 0;
	plan->plain = dst_below(&rng, 4) == 0;
	plan->locks = dst_below(&rng, 2);
	plan->tree_bytes[0] = low[dst_below(&rng, 5)];
	plan->tree_bytes[1] = streaming[dst_below(&rng, 3)];
	plan->tree_pulses = dst_below(&rng, 2) ? MUSTER_TREE_PULSES_LIVE :
						 dst_below(&rng, MUSTER_TREE_PULSES_LIVE + 1);
	if (dst_below(&rng, 3) == 0)
		plan->cause = dst_below(&rng, 2) ? DST_SWITCH : DST_CUT;
	plan->cause_rank = dst_below(&rng, plan->ranks);
	plan->cause_switch = dst_below(&rng, 64);
	plan->cause_link = (uint32_t)dst_draw(&rng);
	plan->said = dst_below(&rng, 2);
	plan->replaced = half(&rng, 20);
	if (plan->cause == DST_SWITCH || plan->cause == DST_CUT)
		plan->replay = 0;	/* as for a death */
	plan->segments = dst_below(&rng, 3) ? 0 : MUSTER_SWITCH_SEGMENTS_MIN + dst_below(&rng, 18);
}

/* ---- less of it --------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t offset, size;
} faults[] = {
#define FAULT(name, member) { name, offsetof(struct dst_plan, member), sizeof(((struct dst_plan *)0)->member) }
	FAULT("cause", cause), FAULT("messages", messages), FAULT("drop", drop),
	FAULT("duplicate", duplicate), FAULT("reorder", reorder), FAULT("corrupt", corrupt),
	FAULT("truncate", truncate), FAULT("link-full", link_full), FAULT("send-full", send_full),
	FAULT("replay", replay), FAULT("forge", forge), FAULT("cuts", cuts), FAULT("clogs", clogs),
	FAULT("late", late_us), FAULT("map", map), FAULT("by-reference", by_reference),
	FAULT("copies", copies),
	FAULT("at-once", at_once), FAULT("forwards", forwards),
	FAULT("idles", idles), FAULT("pulses-live", pulses_live), FAULT("plain", plain),
	FAULT("locks", locks), FAULT("replaced", replaced), FAULT("segments", segments),
#undef FAULT
};

const char *dst_fault_name(uint32_t fault)
{
	return fault < sizeof(faults) / sizeof(faults[0]) ? faults[fault].name : NULL;
}

static void at_most(uint32_t *value, uint32_t limit)
{
	if (limit && *value > limit)
		*value = limit;
}

void dst_plan_limit(struct dst_plan *plan, const struct dst_limits *limits)
{
	at_most(&plan->ranks, limits->ranks);
	at_most(&plan->comms, limits->comms);
	plan->switches = plan->levels[0] + plan->levels[1] + plan->levels[2];
	plan->nodes = (plan->ranks + plan->vps_per_node - 1) / plan->vps_per_node + plan->switches;
	plan->cause_rank %= plan->ranks;
	plan->cause_comm = plan->comms ? plan->cause_comm % plan->comms : 0;
	for (uint32_t i = 0; dst_fault_name(i); i++)
		if (limits->without >> i & 1)
			memset((uint8_t *)plan + faults[i].offset, 0, faults[i].size);
}

bool dst_plan_touches(const struct dst_plan *plan, uint32_t comm)
{
	if (plan->cause >= DST_CAUSES_PLAIN)
		return true;
	return plan->cause == DST_DEATH || (plan->cause != DST_NONE && comm == plan->cause_comm);
}

void dst_plan_print(const struct dst_plan *plan)
{
	printf("  %u ranks on %u nodes, %u communicators, budget %u, %u completion slots\n",
	       plan->ranks, plan->nodes, plan->comms, plan->budget, plan->cq_slots);
	printf("  engines: %u units of %u KiB, window %u, at most %u pulses\n", plan->model.units,
	       plan->model.buffer == MUSTER_ENGINE_NO_BUFFER ? 0 : plan->model.buffer >> 10,
	       plan->model.window ? plan->model.window : MUSTER_WINDOW,
	       plan->model.pulses ? plan->model.pulses : MUSTER_TREE_PULSES_LIVE);
	printf("  %s%s%s%s%s%s, %u pulses live; jitter %u us, engine %u us, host %u us, late up to %" PRIu64 " us\n",
	       plan->rings ? "rings" : "links", !plan->by_reference ? "" : plan->copies ? ", by reference, copies" : ", by reference",
	       plan->at_once ? ", at once" : "",
	       plan->map ? ", mapped" : "", plan->forwards ? ", forwards" : "",
	       plan->idles ? ", idles" : "",
	       plan->pulses_live ? plan->pulses_live : MUSTER_PULSES_LIVE, plan->jitter_us,
	       plan->engine_us, plan->host_us, plan->late_us);
	printf("  per thousand: drop %u, duplicate %u, reorder %u, corrupt %u, truncate %u, link full %u, send refused %u, replay %u, forge %u\n",
	       plan->drop, plan->duplicate, plan->reorder, plan->corrupt, plan->truncate,
	       plan->link_full, plan->send_full, plan->replay, plan->forge);
	printf("  %u cuts, %u clogs; healed after %" PRIu64 " us\n", plan->cuts, plan->clogs,
	       plan->heal_us);
	if (plan->switches)
		printf("  switches: %u, %u, %u%s%s; packets of %u and %u bytes, %u pulses live, %u segments; %u replaced\n", plan->levels[0],
		       plan->levels[1], plan->levels[2], plan->plain ? ", some only forward" : "",
		       plan->locks ? ", with locks" : "",
		       plan->tree_bytes[0], plan->tree_bytes[1], plan->tree_pulses,
		       plan->segments ? plan->segments : MUSTER_SWITCH_SEGMENTS, plan->replaced);
	printf("  cause: %s", cause_names[plan->cause]);
	if (plan->cause == DST_SWITCH || plan->cause == DST_CUT)
		printf(" %u at %" PRIu64 " us%s",
		       plan->cause == DST_SWITCH ? plan->cause_switch % plan->switches : plan->cause_link,
		       plan->cause_us, plan->cause == DST_CUT && plan->said ? ", said" : "");
	else if (plan->cause != DST_NONE)
		printf(" of rank %u, communicator %u, operation %u, at %" PRIu64 " us%s",
		       plan->cause_rank, plan->cause_comm, plan->cause_op, plan->cause_us,
		       plan->reborn ? ", reborn" : "");
	printf("\n");
}
