// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch as a whole: made, stepped, and told of what is no packet.
 */
#include "internal.h"

#include <errno.h>

static bool config_valid(const struct muster_switch_config *config)
{
	uint32_t radix = config->radix ? config->radix : MUSTER_SWITCH_RADIX;

	if (radix < MUSTER_SWITCH_RADIX_MIN || radix > MUSTER_SWITCH_RADIX_MAX ||
	    config->node >= MUSTER_NODES_MAX || config->nr_routes > MUSTER_NODES_MAX ||
	    (config->node && config->node < MUSTER_NODE_AGGREGATION))
		return false;
	for (uint32_t i = 0; i < config->nr_routes; i++)
		if (config->routes[i].port >= radix || config->routes[i].node >= MUSTER_NODES_MAX ||
		    (i && config->routes[i].node <= config->routes[i - 1].node) ||
		    (config->node && config->routes[i].node == config->node))
			return false;
	return true;
}

int muster_switch_create(const struct muster_switch_config *config,
			 const struct muster_switch_world *world, void *opaque,
			 struct muster_switch **created)
{
	struct muster_switch *sw;
	int ret;

	if (!config_valid(config))
		return -EINVAL;
	sw = world->alloc(opaque, sizeof(*sw));
	if (!sw)
		return -ENOMEM;
	sw->world = *world;
	sw->opaque = opaque;
	sw->node = config->node;
	sw->incarnation = config->incarnation;
	sw->radix = config->radix ? config->radix : MUSTER_SWITCH_RADIX;
	for (uint32_t port = 0; config->trunks && port < sw->radix; port++) {
		if (!config->trunks[port])
			continue;
		child_set_add(&sw->trunks, port);
		child_set_add(&sw->ports, port);	/* perhaps no shortest way leads there */
	}
	ret = forward_create(sw, config);
	if (ret) {
		muster_switch_destroy(sw);
		return ret;
	}
	*created = sw;
	return 0;
}

void muster_switch_destroy(struct muster_switch *sw)
{
	for (uint32_t i = 0; i < GROUP_BUCKETS; i++)
		while (sw->groups[i])
			group_free(sw, sw->groups[i]);
	forward_destroy(sw);
	credit_destroy(sw);
	sw->world.free(sw->opaque, sw, sizeof(*sw));
}

/*
 * Each that there is has its turn, and the next time another one the first. What a flow sends may
 * free others, so the ring itself says who is next.
 */
static bool flows_step(struct muster_switch *sw)
{
	bool left = false;

	for (uint32_t i = sw->nr_flows; i-- && sw->ring;) {
		struct flow *flow = sw->ring;

		sw->ring = flow->next;
		forward_held(sw, flow);
		left |= credit_settle(sw, flow);
	}
	if (sw->ring)
		sw->ring = sw->ring->next;
	return left;
}

/* Once round: who is refused stays on the list. */
bool muster_switch_step(struct muster_switch *sw)
{
	struct group *group, *next;
	bool left;

	lock_step(sw);
	group = sw->owing;
	left = flows_step(sw);
	left |= reach_settle(sw);
	for (; group; group = next) {
		next = group->next_owing;
		group_settle(sw, group);
	}
	return left || sw->owing || sw->lock_news;
}

int muster_switch_child_left(struct muster_switch *sw, uint16_t tree, uint32_t handle,
			     uint32_t host)
{
	struct group *group = group_find(sw, tree, handle);
	uint32_t child = 0;

	while (group && child < group->config.nr_children && group->children[child].node != host)
		child++;
	if (!group || child == group->config.nr_children)
		return -ENOENT;
	child_set_add(&group->left, child);
	return 0;
}

void muster_switch_port_lost(struct muster_switch *sw, uint32_t port)
{
	struct group *group;
	uint32_t i, child;

	credit_port_lost(sw, port);
	reach_port_lost(sw, port);
	for (i = 0; i < GROUP_BUCKETS; i++)
		for (group = sw->groups[i]; group; group = group->next_hashed) {
			if (group->config.parent_port == port)
				group_fail(sw, group, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE,
					   NULL, group->config.nr_children);
			for (child = 0; child < group->config.nr_children; child++)
				if (group->children[child].port == port &&
				    !child_set_has(&group->left, child))
					group_fail(sw, group, MUSTER_STATUS_PEER_LOST,
						   group_culprit(sw, group, child), NULL, child);
		}
}

void muster_switch_counters_get(const struct muster_switch *sw,
				struct muster_switch_counters *counters)
{
	*counters = sw->counters;
	counters->groups = sw->nr_groups;
	counters->flows = sw->nr_flows;
	counters->lock_waits = sw->nr_waiting;
	counters->gone = sw->nr_gone;
}
