// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network in modelled time is made (switch_net.h): links, switches with both trees of a group,
 * hosts with a context each, and of schedules their programs.
 */
#include "switch_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At one switch; idle hosts take the ports between those of the two halves. */
static uint32_t at_one(const struct net_case *what, struct net *net, struct muster_fabric_link *links)
{
	uint32_t half = (what->radix ? what->radix : MUSTER_SWITCH_RADIX) / 2;
	uint32_t nr = what->halves ? half + what->each / 2 : what->each;

	net->nr_members = 0;
	for (uint32_t i = 0; i < nr; i++) {
		links[i] = (struct muster_fabric_link){ i, nr };
		if (!what->halves || i < what->each / 2 || i >= half)
			net->members[net->nr_members++] = i;
	}
	return nr;
}

static uint32_t at_leaves(const struct net_case *what, struct net *net, struct muster_fabric_link *links)
{
	uint32_t hosts = what->leaves * what->each;

	for (uint32_t i = 0; i < hosts; i++) {
		links[i] = (struct muster_fabric_link){ i, hosts + i / what->each };
		net->members[i] = i;
	}
	for (uint32_t i = 0; i < what->leaves; i++)
		links[hosts + i] = (struct muster_fabric_link){ hosts + i, hosts + what->leaves };
	net->nr_members = hosts;
	return hosts;
}

static int fabric_make(struct net *net)
{
	static bool is_switch[2 * MUSTER_SWITCH_RADIX_MAX];
	static struct muster_fabric_link links[2 * MUSTER_SWITCH_RADIX_MAX];
	const struct net_case *what = net->what;
	struct muster_fabric_config config = {
		.is_switch = is_switch, .radix = what->radix, .links = links,
	};
	char why[256] = "";
	uint32_t bad;
	int err;

	net->nr_hosts = what->leaves > 1 ? at_leaves(what, net, links) : at_one(what, net, links);
	net->nr_boxes = what->leaves + (what->leaves > 1);
	if (what->two_alone) {
		net->members[1] = net->members[net->nr_members - 1];
		net->nr_members = 2;
	}
	config.nodes = net->nr_hosts + net->nr_boxes;
	config.nr_links = net->nr_hosts + (what->leaves > 1 ? what->leaves : 0);
	for (uint32_t i = 0; i < config.nodes; i++)
		is_switch[i] = i >= net->nr_hosts;
	err = muster_fabric_create(&config, &net->fabric, &bad, why, sizeof(why));
	if (!err)
		err = muster_fabric_group(net->fabric, 0, net->members, net->nr_members, &net->group, why,
					  sizeof(why));
	if (err)
		fprintf(stderr, "link %u: %s\n", bad, why);
	return err;
}

static int box_open(struct net *net, uint32_t number)
{
	struct muster_switch_route *routes = calloc(net->nr_hosts + net->nr_boxes, sizeof(*routes));
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	struct muster_switch_config config = {
		.node = muster_fabric_node(net->fabric, number), .incarnation = LIFE,
		.radix = muster_fabric_radix(net->fabric), .routes = routes, .trunks = trunks,
		.nr_routes = (uint32_t)muster_fabric_routes(net->fabric, number, routes),
	};
	struct box *box = &net->boxes[number];
	int err;

	muster_fabric_trunks(net->fabric, number, trunks);
	*box = (struct box){ .net = net, .number = number };
	err = muster_switch_create(&config, &net_box_table, box, &box->sw);
	free(routes);
	return err;
}

static int branch_add(struct net *net, const struct muster_fabric_branch *branch,
		      enum muster_switch_tree_type type)
{
	struct muster_switch_group group = branch->group;
	struct muster_switch_child *children = (struct muster_switch_child *)group.children;

	group.tree = type == MUSTER_SWITCH_SAT ? TREE + 1 : TREE;
	group.type = type;
	group.locks = type == MUSTER_SWITCH_SAT && net->what->how == NET_LOCK;
	group.segments = type == MUSTER_SWITCH_SAT ? net->what->segments : 0;
	group.group = GROUP;
	group.owner = 1;
	group.job = JOB;
	group.key = KEY;
	group.parent_incarnation = LIFE;
	for (uint32_t i = 0; i < group.nr_children; i++) {
		children[i].incarnation = LIFE;
		if (children[i].node >= MUSTER_NODE_AGGREGATION)
			continue;
		children[i].vp = VP;
		children[i].context = CONTEXT;
		children[i].life = LIFE;
	}
	return muster_switch_group_add(net->boxes[branch->number].sw, &group);
}

static int trees_join(const struct net *net, const struct host *host)
{
	struct muster_tree_config tree = {
		.node = net->group.nodes[host->member], .incarnation = LIFE, .tree = TREE, .group = GROUP,
		.key = KEY, .payload_max = MUSTER_SWITCH_LLT_BYTES,
	};
	int err = muster_engine_tree_join(host->engine, VP, JOB, CONTEXT, &tree);

	tree.tree = TREE + 1;
	tree.payload_max = MUSTER_MTU;
	return err ? err : muster_engine_tree_join(host->engine, VP, JOB, CONTEXT, &tree);
}

static int host_open(struct net *net, uint32_t member)
{
	struct host *host = &net->hosts[net->members[member]];
	const struct muster_engine_config config = { .node = net->members[member], .model.units = 1 };
	struct muster_member members[NET_HOSTS_MAX];
	const struct muster_context_config context = {
		.job = JOB, .context = CONTEXT, .life = LIFE, .vp = VP, .self = member,
		.nr_members = net->nr_members, .members = members,
	};
	int err;

	for (uint32_t i = 0; i < net->nr_members; i++)
		members[i] = (struct muster_member){
			.node = net->members[i], .vp = VP, .incarnation = LIFE,
		};
	*host = (struct host){ .net = net, .number = net->members[member], .member = member };
	err = muster_engine_create(&config, &net_host_table, host, &host->engine);
	if (!err)
		err = muster_engine_vp_open(host->engine, VP);
	if (!err)
		err = muster_engine_context_open(host->engine, &context);
	return err ? err : trees_join(net, host);
}

static int program_make(struct net *net, const struct muster_schedule *schedule, uint32_t member)
{
	struct host *host = &net->hosts[net->members[member]];
	struct muster_address addresses[NET_HOSTS_MAX];
	const bool in_place = schedule->coll == MUSTER_COLL_BROADCAST;
	const struct muster_lower_params params = {
		.rank = member, .count = net->what->bytes / 8, .type = MUSTER_DTYPE_F64,
		.op = in_place ? MUSTER_REDOP_NONE : MUSTER_REDOP_SUM, .in_place = in_place,
		.job = JOB, .context = CONTEXT, .addresses = addresses, .forwards = true,
	};
	char why[256] = "";
	int err;

	for (uint32_t i = 0; i < net->nr_members; i++)
		addresses[i] = (struct muster_address){
			.node = net->members[i], .vp = VP, .incarnation = LIFE,
		};
	err = muster_schedule_lower(schedule, &params, &host->program, why, sizeof(why));
	if (err) {
		fprintf(stderr, "%s: %s\n", schedule->name, why);
		return err;
	}
	host->space[KEY_OUT - 1] = calloc(1, net->what->bytes);
	host->space[SPACES - 1] = calloc(1, host->program->scratch_bytes + 1);
	host->brings_out = in_place && !member;
	if (host->brings_out)
		net_numbers(host->space[KEY_OUT - 1], 0, 0, params.count);
	for (uint32_t i = 0; i < host->program->nr_descs; i++) {
		struct muster_desc *desc = &host->program->descs[i];
		const uint64_t first = desc->range.load_addr / 8;	/* where data[] will be */

		net_numbers(desc->data, member, first, desc->inline_len / 8);
	}
	return 0;
}

static int programs_make(struct net *net)
{
	struct muster_schedule *schedule;
	char why[256] = "";
	int err = muster_schedule_by_rank(NULL, net->what->coll, net->nr_members, 0, net->what->bytes,
					  &schedule, why, sizeof(why));

	if (err) {
		fprintf(stderr, "%s\n", why);
		return err;
	}
	for (uint32_t i = 0; i < net->nr_members && !err; i++)
		err = program_make(net, schedule, i);
	muster_schedule_free(schedule);
	return err;
}

int net_make(struct net *net)
{
	int err = fabric_make(net);

	if (err)
		return err;
	net->hosts = calloc(net->nr_hosts, sizeof(*net->hosts));
	net->boxes = calloc(net->nr_boxes, sizeof(*net->boxes));
	for (uint32_t i = 0; i < net->nr_boxes && !err; i++)
		err = box_open(net, i);
	for (uint32_t i = 0; i < net->group.nr_branches && !err; i++) {
		err = branch_add(net, &net->group.branches[i], MUSTER_SWITCH_LLT);
		if (!err)
			err = branch_add(net, &net->group.branches[i], MUSTER_SWITCH_SAT);
	}
	for (uint32_t i = 0; i < net->nr_members && !err; i++)
		err = host_open(net, i);
	return err || net->what->how != NET_NIC ? err : programs_make(net);
}

static void box_close(struct box *box)
{
	for (uint32_t port = 0; port < MUSTER_SWITCH_RADIX_MAX; port++)
		for (struct event *event; (event = box->kept[port]); free(event))
			box->kept[port] = event->next;
	if (box->sw)
		muster_switch_destroy(box->sw);
}

void net_free(struct net *net)
{
	for (uint32_t i = 0; net->hosts && i < net->nr_members; i++) {
		struct host *host = &net->hosts[net->members[i]];

		if (host->engine)
			muster_engine_destroy(host->engine);
		for (uint32_t k = 0; k < SPACES; k++)
			free(host->space[k]);
		if (host->program)
			muster_program_free(host->program);
	}
	for (uint32_t i = 0; net->boxes && i < net->nr_boxes; i++)
		box_close(&net->boxes[i]);
	muster_fabric_group_free(&net->group);
	muster_fabric_free(net->fabric);
	timeline_free(&net->line);
	free(net->hosts);
	free(net->boxes);
}
