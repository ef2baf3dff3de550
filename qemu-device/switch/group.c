// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Groups: found by tree and handle. All that one ever needs is allocated with it, so what a
 * switch holds depends on groups, ports and window, and never on what is sent. A group that
 * fails stays, tells its neighbours, and takes nothing more until it is removed.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* ---- add and remove ---- */

static bool child_valid(const struct muster_switch *sw, const struct muster_switch_group *config,
			const struct muster_switch_child *child)
{
	return child->port < sw->radix && child->port != config->parent_port &&
	       child->node < MUSTER_NODES_MAX && child->node != sw->node &&
	       child->vp < MUSTER_VPS_MAX;
}

/* Of a low-latency tree a child may have a result that it is still owed: only the window bounds these. */
static bool segments_valid(const struct muster_switch_group *config)
{
	return !config->segments || config->segments == SEGMENTS ||
	       (config->type == MUSTER_SWITCH_SAT && config->segments >= MUSTER_SWITCH_SEGMENTS_MIN &&
		config->segments < SEGMENTS);
}

static bool config_valid(const struct muster_switch *sw, const struct muster_switch_group *config)
{
	bool root = config->parent_port == MUSTER_SWITCH_NO_PORT;

	if (!sw->node || !config->group || config->payload_max > MUSTER_MTU ||
	    config->type > MUSTER_SWITCH_SAT ||
	    (config->locks && (config->type != MUSTER_SWITCH_SAT || !config->tree)) || !segments_valid(config) ||
	    !config->nr_children || config->nr_children > sw->radix)
		return false;
	if (!root && (config->parent_port >= sw->radix || config->parent_node == sw->node ||
		      config->parent_node < MUSTER_NODE_AGGREGATION ||
		      config->parent_node >= MUSTER_NODES_MAX))
		return false;
	for (uint32_t i = 0; i < config->nr_children; i++)
		if (!child_valid(sw, config, &config->children[i]) ||
		    (i && config->type == MUSTER_SWITCH_SAT &&
		     config->children[i].port < config->children[i - 1].port))
			return false;
	return true;
}

/* One type for all groups of a tree, which all lock it or none. */
static bool tree_agrees(const struct muster_switch *sw, const struct muster_switch_group *config)
{
	for (uint32_t i = 0; i < GROUP_BUCKETS; i++)
		for (const struct group *group = sw->groups[i]; group; group = group->next_hashed)
			if (group->config.tree == config->tree &&
			    (group->config.type != config->type ||
			     group->config.locks != config->locks))
				return false;
	return true;
}

static bool ports_shared(const struct muster_switch_group *config)
{
	struct child_set ports = { 0 };

	for (uint32_t i = 0; i < config->nr_children; i++) {
		if (child_set_has(&ports, config->children[i].port))
			return true;
		child_set_add(&ports, config->children[i].port);
	}
	return false;
}

/* The group, its children, how far they are, and the data of its segments, one behind the other. */
struct group *group_new(struct muster_switch *sw, const struct muster_switch_group *config)
{
	uint32_t usual = config->type == MUSTER_SWITCH_SAT ? MUSTER_MTU : MUSTER_SWITCH_LLT_BYTES;
	uint32_t most = config->payload_max ? config->payload_max : usual;
	size_t data = (size_t)most * (NR_HALVES + config->nr_children);
	size_t children = config->nr_children * sizeof(struct muster_switch_child);
	size_t progress = config->nr_children * sizeof(struct progress);
	size_t from = config->nr_children * sizeof(uint8_t *);
	size_t before = sizeof(struct group) + SEGMENTS * from + children + progress;
	uint32_t segments = config->segments ? config->segments : SEGMENTS;
	size_t bytes = before + CACHE_LINE + segments * data;
	struct group *group = sw->world.alloc(sw->opaque, bytes);
	uint8_t *at = (uint8_t *)group + before;

	if (!group)
		return NULL;
	group->bytes = bytes;
	group->config = *config;
	group->config.payload_max = most;
	group->config.segments = segments;
	group->progress = (struct progress *)(at - progress);
	group->children = (struct muster_switch_child *)(at - progress - children);
	group->config.children = group->children;
	memcpy(group->children, config->children, children);
	group->own = (struct muster_packet){
		.version = MUSTER_PACKET_VERSION,
		.job = config->job,
		.src_node = sw->node,
		.incarnation = sw->incarnation,
		.tree = config->tree,
		.group = config->group,
		.job_key = config->key,
	};
	group->split = ring_split(config, sw->radix);
	memset(group->child_at, (int)config->nr_children, sizeof(group->child_at));
	for (uint32_t i = 0; i < config->nr_children; i++)
		group->child_at[config->children[i].port] = (uint8_t)i;
	at += CACHE_LINE - (uintptr_t)at % CACHE_LINE;
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		group->segments[i].sum = i < segments ? at + i * data : NULL;
		group->segments[i].from = (const uint8_t **)(group + 1) + i * config->nr_children;
		group->places[i] = &group->segments[i];
	}
	return group;
}

void group_insert(struct muster_switch *sw, struct group *group)
{
	struct group **first = group_bucket(sw, group->config.tree, group->config.group);

	group->next_hashed = *first;
	*first = group;
	sw->nr_groups++;
	sw->counters.bytes += group->bytes;
}

int muster_switch_group_add(struct muster_switch *sw, const struct muster_switch_group *config)
{
	struct group *group;
	int ret;

	if (!config_valid(sw, config))
		return -EINVAL;
	if (ports_shared(config))
		return -EOPNOTSUPP;
	if (group_find(sw, config->tree, config->group))
		return -EEXIST;
	if (sw->nr_groups == MUSTER_SWITCH_GROUPS_MAX)
		return -ENOSPC;
	if (!tree_agrees(sw, config))
		return -EINVAL;
	group = group_new(sw, config);
	if (!group)
		return -ENOMEM;
	ret = lock_begin(sw, group);
	if (ret) {
		sw->world.free(sw->opaque, group, group->bytes);
		return ret;
	}
	group_insert(sw, group);
	return 0;
}

static void owes_nothing(struct muster_switch *sw, struct group *group)
{
	if (!group->owing)
		return;
	group->owing = false;
	if (group->prev_owing)
		group->prev_owing->next_owing = group->next_owing;
	else
		sw->owing = group->next_owing;
	if (group->next_owing)
		group->next_owing->prev_owing = group->prev_owing;
}

void group_owes(struct muster_switch *sw, struct group *group)
{
	if (group->owing)
		return;
	group->owing = true;
	group->prev_owing = NULL;
	group->next_owing = sw->owing;
	if (sw->owing)
		sw->owing->prev_owing = group;
	sw->owing = group;
}

static void borrows_nothing(struct muster_switch *sw, struct group *group)
{
	struct group **link = &sw->borrowing;

	while (*link && *link != group)
		link = &(*link)->next_borrowing;
	if (*link)
		*link = group->next_borrowing;
}

void group_borrows(struct muster_switch *sw, struct group *group, struct segment *segment)
{
	segment->lent = true;
	if (!group->borrowing) {
		group->next_borrowing = sw->borrowing;
		sw->borrowing = group;
	}
	group->borrowing |= segment_bit(group, segment);
}

/* Nobody answers it any more. */
static void forget_waiting(struct muster_switch *sw, struct group *group)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		if (group->segments[i].phase != SEGMENT_WAITING)
			continue;
		segment_free(group, &group->segments[i]);
		sw->nr_waiting--;
	}
}

void group_free(struct muster_switch *sw, struct group *group)
{
	struct group **link = group_bucket(sw, group->config.tree, group->config.group);

	while (*link != group)
		link = &(*link)->next_hashed;
	*link = group->next_hashed;
	owes_nothing(sw, group);
	borrows_nothing(sw, group);
	forget_waiting(sw, group);
	lock_end(sw, group);
	sw->nr_groups--;
	sw->counters.bytes -= group->bytes;
	sw->world.free(sw->opaque, group, group->bytes);
}

int muster_switch_group_remove(struct muster_switch *sw, uint16_t tree, uint32_t handle)
{
	struct group *group = group_find(sw, tree, handle);

	if (!group)
		return -ENOENT;
	group_free(sw, group);
	return 0;
}

/* ---- what it owes ---- */

bool group_settle(struct muster_switch *sw, struct group *group)
{
	bool left = false;

	if (group->failed)
		left = generator_abort(sw, group);
	for (uint32_t i = 0; i < SEGMENTS && !group->failed; i++)
		left |= segment_settle(sw, group, &group->segments[i]);
	if (group->failed)	/* perhaps just now */
		left = group->parent_untold || !child_set_empty(&group->untold);
	if (!left)
		owes_nothing(sw, group);
	return left;
}

/* ---- failure ---- */

void group_tell_again(struct muster_switch *sw, struct group *group, uint32_t child)
{
	child_set_add(&group->untold, child);
	group_owes(sw, group);
}

void group_fail(struct muster_switch *sw, struct group *group, uint8_t status, uint32_t culprit,
		const struct muster_signature *signature, uint32_t by)
{
	if (group->failed)
		return;
	group->failed = true;
	group->why.number = status;
	group->why.arg = culprit;
	if (signature)
		group->why.signature = *signature;
	child_set_fill(&group->untold, group->config.nr_children);
	if (by < group->config.nr_children)
		child_set_remove(&group->untold, by);
	group->parent_untold = !group_is_root(group) && by != group->config.nr_children;
	sw->counters.failed++;
	forget_waiting(sw, group);
	lock_end(sw, group);
	group_owes(sw, group);
}

int muster_switch_group_fail(struct muster_switch *sw, uint16_t tree, uint32_t handle)
{
	struct group *group = group_find(sw, tree, handle);

	if (!group)
		return -ENOENT;
	group_fail(sw, group, MUSTER_STATUS_PEER_LOST, MUSTER_CULPRIT_NONE, NULL, MUSTER_SWITCH_RADIX_MAX + 1);
	return 0;
}
