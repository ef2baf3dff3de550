// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * All that a switch has, to be gone on with by another program in its place: groups with the segments that
 * are on their way, flows with the packets that wait, who cannot be reached, locks and counters. It is as it
 * stands in memory, so it is for a program with the same structures; the first words say which. Pointers
 * are made anew, and of lists the order does not count.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* What is written first, and must be the same where it is read. */
struct heading {
	uint32_t version;	/* MUSTER_SWITCH_STATE_VERSION */
	uint32_t node, incarnation, radix, nr_routes;
	uint32_t group_bytes, flow_bytes, packet_bytes;
	uint32_t nr_groups, nr_flows;
};

static int move(const struct muster_switch_store *store, void *bytes, size_t len)
{
	return len ? store->move(store->opaque, bytes, len) : 0;
}

static struct heading heading_of(const struct muster_switch *sw)
{
	return (struct heading){
		.version = MUSTER_SWITCH_STATE_VERSION,
		.node = sw->node, .incarnation = sw->incarnation, .radix = sw->radix, .nr_routes = sw->nr_routes,
		.group_bytes = sizeof(struct group), .flow_bytes = sizeof(struct flow),
		.packet_bytes = sizeof(struct muster_packet),
		.nr_groups = sw->nr_groups, .nr_flows = sw->nr_flows,
	};
}

/* ---- what is no list goes both ways alike ---- */

#define FIELD(name) { offsetof(struct muster_switch, name), sizeof(((struct muster_switch *)NULL)->name) }

static int fields_move(struct muster_switch *sw, const struct muster_switch_store *store)
{
	static const struct {
		size_t at, len;
	} fields[] = {
		FIELD(nr_gone), FIELD(way), FIELD(passed), FIELD(streams), FIELD(lock_count), FIELD(hurries), FIELD(lock_news),
		FIELD(nr_waiting), FIELD(counters),
	};
	int ret = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !ret; i++)
		ret = move(store, (uint8_t *)sw + fields[i].at, fields[i].len);
	return ret;
}

static bool is_port(const struct muster_switch *sw, uint8_t port)
{
	return port < sw->radix || port == MUSTER_SWITCH_NO_PORT;
}

/* The network must be the same one, but ways may lead around some of its switches. */
static int routes_move(struct muster_switch *sw, const struct muster_switch_store *store)
{
	for (uint32_t i = 0; i < sw->nr_routes; i++) {
		struct route route = sw->routes[i];
		int ret = move(store, &route, sizeof(route));

		if (ret)
			return ret;
		if (route.node != sw->routes[i].node || !is_port(sw, route.ports[0]) || !is_port(sw, route.ports[1]))
			return -EINVAL;
		sw->routes[i] = route;
	}
	return 0;
}

/* Data of segments that are in use; the others' is worth nothing. */
static int sums_move(struct group *group, const struct muster_switch_store *store)
{
	size_t len = (size_t)group->config.payload_max * (NR_HALVES + group->config.nr_children);
	int ret = 0;

	for (uint32_t i = 0; i < SEGMENTS && !ret; i++)
		if (group->segments[i].phase != SEGMENT_FREE)
			ret = move(store, group->segments[i].sum, len);
	return ret;
}

static int progress_move(struct group *group, const struct muster_switch_store *store)
{
	return move(store, group->progress, group->config.nr_children * sizeof(*group->progress));
}

/* ---- writing ---- */

static int group_save(struct group *group, const struct muster_switch_store *store)
{
	int ret = move(store, group, sizeof(*group));

	if (!ret)
		ret = move(store, group->children, group->config.nr_children * sizeof(*group->children));
	if (!ret)
		ret = progress_move(group, store);
	return ret ? ret : sums_move(group, store);
}

static int groups_save(struct muster_switch *sw, const struct muster_switch_store *store)
{
	int ret = 0;

	for (uint32_t i = 0; i < GROUP_BUCKETS; i++)
		for (struct group *group = sw->groups[i]; group && !ret; group = group->next_hashed)
			ret = group_save(group, store);
	return ret;
}

static int flow_save(struct flow *flow, const struct muster_switch_store *store)
{
	int ret = move(store, flow, sizeof(*flow));

	for (struct held *held = flow->held; held && !ret; held = held->next) {
		ret = move(store, &held->packet, sizeof(held->packet));
		if (!ret)
			ret = move(store, held->payload, held->packet.length);
	}
	return ret;
}

static int flows_save(struct muster_switch *sw, const struct muster_switch_store *store)
{
	struct flow *flow = sw->ring;
	int ret = 0;

	for (uint32_t i = sw->nr_flows; i-- && !ret; flow = flow->next)
		ret = flow_save(flow, store);
	return ret;
}

int muster_switch_save(struct muster_switch *sw, const struct muster_switch_store *store)
{
	struct heading heading = heading_of(sw);
	int ret = move(store, &heading, sizeof(heading));

	muster_switch_give_back(sw);
	if (!ret)
		ret = routes_move(sw, store);
	if (!ret)
		ret = fields_move(sw, store);
	if (!ret)
		ret = groups_save(sw, store);
	return ret ? ret : flows_save(sw, store);
}

/* ---- reading ---- */

static struct group *group_begin(struct muster_switch *sw, struct group *was,
				 const struct muster_switch_store *store, int *ret)
{
	struct muster_switch_child children[MUSTER_SWITCH_RADIX_MAX];
	struct group *group;

	*ret = move(store, was, sizeof(*was));
	if (!*ret && (was->config.nr_children > sw->radix || was->config.payload_max > MUSTER_MTU ||
		      was->config.segments > SEGMENTS))
		*ret = -EINVAL;
	if (!*ret)
		*ret = move(store, children, was->config.nr_children * sizeof(children[0]));
	if (*ret)
		return NULL;
	was->config.children = children;
	group = group_new(sw, &was->config);
	*ret = group ? 0 : -ENOMEM;
	return group;
}

/* All of it but where things lie, and which lists it is on. */
static void group_become(struct group *group, const struct group *was)
{
	struct group own = *group;

	*group = *was;
	group->next_hashed = group->next_owing = group->prev_owing = NULL;
	group->owing = false;
	group->bytes = own.bytes;
	group->config.children = group->children = own.children;
	group->progress = own.progress;
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		group->segments[i].sum = own.segments[i].sum;
		group->segments[i].from = own.segments[i].from;
		group->places[i] = own.places[i];
		if (i < group->config.segments)
			ring_at_home(group, &group->segments[i]);
	}
}

static int group_restore(struct muster_switch *sw, const struct muster_switch_store *store)
{
	struct group was, *group;
	int ret;

	group = group_begin(sw, &was, store, &ret);
	if (!group)
		return ret;
	group_become(group, &was);
	group_insert(sw, group);
	if (was.owing)
		group_owes(sw, group);
	ret = progress_move(group, store);
	return ret ? ret : sums_move(group, store);
}

static int held_restore(struct muster_switch *sw, struct flow *flow, const struct muster_switch_store *store)
{
	struct muster_packet packet;
	int ret = move(store, &packet, sizeof(packet));
	struct held **place = &flow->held, *held;

	if (ret || packet.length > MUSTER_MTU)
		return ret ? ret : -EINVAL;
	held = sw->world.alloc(sw->opaque, sizeof(*held) + packet.length);
	if (!held)
		return -ENOMEM;
	held->packet = packet;
	while (*place)
		place = &(*place)->next;
	*place = held;
	flow->nr_held++;
	return move(store, held->payload, packet.length);
}

static int flow_restore(struct muster_switch *sw, const struct muster_switch_store *store)
{
	struct flow was, *flow;
	int ret = move(store, &was, sizeof(was));

	if (ret || was.port >= sw->radix)
		return ret ? ret : -EINVAL;
	flow = credit_flow(sw, was.port, &(struct muster_packet){
		.flags = was.way ? MUSTER_PACKET_WAY : 0, .job = was.job, .src_node = was.source,
	});
	if (!flow)
		return -ENOMEM;
	flow->moved = was.moved;
	flow->owed = was.owed;
	flow->out = was.out;
	for (uint32_t i = 0; i < was.nr_held && !ret; i++)
		ret = held_restore(sw, flow, store);
	return ret;
}

/* To put a group in counts it, as it has been already. */
int muster_switch_restore(struct muster_switch *sw, const struct muster_switch_store *store)
{
	struct heading heading, own = heading_of(sw);
	struct muster_switch_counters counters;
	int ret = move(store, &heading, sizeof(heading));

	if (ret)
		return ret;
	own.nr_groups = heading.nr_groups;
	own.nr_flows = heading.nr_flows;
	if (memcmp(&heading, &own, sizeof(own)))
		return -EINVAL;
	ret = routes_move(sw, store);
	if (!ret)
		ret = fields_move(sw, store);
	counters = sw->counters;
	for (uint32_t i = 0; i < heading.nr_groups && !ret; i++)
		ret = group_restore(sw, store);
	for (uint32_t i = 0; i < heading.nr_flows && !ret; i++)
		ret = flow_restore(sw, store);
	sw->counters = counters;
	return ret;
}
