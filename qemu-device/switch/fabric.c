// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network, checked: which port leads where, and the shortest ways between switches.
 * Ways never lead through a host.
 */
#include "fabric_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fabric_refuse(char *why, size_t why_len, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, why_len, format, args);
	va_end(args);
	return err;
}

/* ---- create ---- */

struct check {
	const struct muster_fabric_config *config;
	struct muster_fabric *fabric;
	uint32_t *bad;
	char *why;
	size_t why_len;
};

static int count(struct check *check)
{
	const struct muster_fabric_config *config = check->config;
	struct muster_fabric *fabric = check->fabric;

	for (uint32_t node = 0; node < config->nodes; node++) {
		fabric->is_switch[node] = config->is_switch[node];
		fabric->is_plain[node] = config->is_plain && config->is_plain[node];
		if (fabric->is_switch[node]) {
			fabric->number[node] = fabric->nr_switches;
			fabric->switches[fabric->nr_switches++] = node;
		} else {
			fabric->number[node] = fabric->nr_hosts;
			fabric->hosts[fabric->nr_hosts++] = node;
		}
	}
	if (!fabric->nr_switches || !fabric->nr_hosts)
		return fabric_refuse(check->why, check->why_len, -EINVAL, "there are %" PRIu32
				     " hosts and %" PRIu32 " switches, but one of each is needed",
				     fabric->nr_hosts, fabric->nr_switches);
	if (fabric->nr_switches > MUSTER_NODES_MAX - MUSTER_NODE_AGGREGATION)
		return fabric_refuse(check->why, check->why_len, -EINVAL, "more than %d switches",
				     MUSTER_NODES_MAX - MUSTER_NODE_AGGREGATION);
	return 0;
}

static bool joined(const struct muster_fabric *fabric, uint32_t a, uint32_t b)
{
	for (uint32_t port = 0; port < fabric->nr_ports[a]; port++)
		if (fabric->ends[a * fabric->radix + port].node == b)
			return true;
	return false;
}

static int link_valid(const struct check *check, uint32_t a, uint32_t b)
{
	const struct muster_fabric *fabric = check->fabric;
	uint32_t most;

	if (a >= fabric->nodes || b >= fabric->nodes)
		return fabric_refuse(check->why, check->why_len, -EINVAL, "node %" PRIu32
				     ", but there are %" PRIu32, a < fabric->nodes ? b : a,
				     fabric->nodes);
	if (a == b)
		return fabric_refuse(check->why, check->why_len, -EINVAL,
				     "node %" PRIu32 " is linked to itself", a);
	if (!fabric->is_switch[a] && !fabric->is_switch[b])
		return fabric_refuse(check->why, check->why_len, -EINVAL, "hosts %" PRIu32 " and %"
				     PRIu32 " are linked, but a host's link leads to a switch", a, b);
	if (joined(fabric, a, b))
		return fabric_refuse(check->why, check->why_len, -EINVAL,
				     "nodes %" PRIu32 " and %" PRIu32 " are linked twice", a, b);
	for (uint32_t i = 0; i < 2; i++, a = b) {
		most = fabric->is_switch[a] ? fabric->radix : 1;
		if (fabric->nr_ports[a] == most)
			return fabric_refuse(check->why, check->why_len, -EINVAL, "%s %" PRIu32
					     " has more than %" PRIu32 " link%s",
					     fabric->is_switch[a] ? "switch" : "host", a, most,
					     most == 1 ? "" : "s");
	}
	return 0;
}

static int join(const struct check *check)
{
	struct muster_fabric *fabric = check->fabric;

	for (uint32_t i = 0; i < check->config->nr_links; i++) {
		uint32_t a = check->config->links[i].a, b = check->config->links[i].b;
		int err = link_valid(check, a, b);

		if (err) {
			*check->bad = i;
			return err;
		}
		fabric->ends[a * fabric->radix + fabric->nr_ports[a]] =
			(struct end){ .node = b, .port = fabric->nr_ports[b] };
		fabric->ends[b * fabric->radix + fabric->nr_ports[b]++] =
			(struct end){ .node = a, .port = fabric->nr_ports[a]++ };
	}
	return 0;
}

static int connected(const struct check *check)
{
	const struct muster_fabric *fabric = check->fabric;
	struct ways ways;

	if (ways_find(fabric, fabric->switches[0], &ways))
		return -ENOMEM;
	for (uint32_t node = 0; node < fabric->nodes; node++)
		if (ways.distance[node] == UNREACHED) {
			ways_free(&ways);
			return fabric_refuse(check->why, check->why_len, -EINVAL, "no way leads from "
					     "node %" PRIu32 " to node %" PRIu32,
					     fabric->switches[0], node);
		}
	ways_free(&ways);
	return 0;
}

struct muster_fabric *fabric_new(uint32_t nodes, uint32_t radix)
{
	struct muster_fabric *fabric = calloc(1, sizeof(*fabric));

	if (!fabric)
		return NULL;
	fabric->nodes = nodes;
	fabric->radix = radix ? radix : MUSTER_SWITCH_RADIX;
	fabric->is_switch = calloc(nodes, sizeof(*fabric->is_switch));
	fabric->is_plain = calloc(nodes, sizeof(*fabric->is_plain));
	fabric->number = calloc(nodes, sizeof(*fabric->number));
	fabric->hosts = calloc(nodes, sizeof(*fabric->hosts));
	fabric->switches = calloc(nodes, sizeof(*fabric->switches));
	fabric->nr_ports = calloc(nodes, sizeof(*fabric->nr_ports));
	fabric->ends = calloc((size_t)nodes * fabric->radix, sizeof(*fabric->ends));
	if (fabric->is_switch && fabric->is_plain && fabric->number && fabric->hosts &&
	    fabric->switches && fabric->nr_ports && fabric->ends)
		return fabric;
	muster_fabric_free(fabric);
	return NULL;
}

int muster_fabric_create(const struct muster_fabric_config *config, struct muster_fabric **created,
			 uint32_t *bad, char *why, size_t why_len)
{
	struct check check = { .config = config, .bad = bad, .why = why, .why_len = why_len };
	int err;

	*bad = MUSTER_FABRIC_NO_LINK;
	if (!config->nodes || config->nodes > MUSTER_FABRIC_NODES_MAX)
		return fabric_refuse(why, why_len, -EINVAL, "%" PRIu32 " nodes, but there can be 1 to %d",
				     config->nodes, MUSTER_FABRIC_NODES_MAX);
	if (config->radix && (config->radix < MUSTER_SWITCH_RADIX_MIN ||
			      config->radix > MUSTER_SWITCH_RADIX_MAX))
		return fabric_refuse(why, why_len, -EINVAL, "radix %" PRIu32 ", but it can be %d to %d",
				     config->radix, MUSTER_SWITCH_RADIX_MIN,
				     MUSTER_SWITCH_RADIX_MAX);
	check.fabric = fabric_new(config->nodes, config->radix);
	if (!check.fabric)
		return fabric_refuse(why, why_len, -ENOMEM, "out of memory");
	err = count(&check);
	if (!err)
		err = join(&check);
	if (!err)
		err = connected(&check);
	if (err)
		muster_fabric_free(check.fabric);
	else
		*created = check.fabric;
	return err;
}

void muster_fabric_free(struct muster_fabric *fabric)
{
	if (!fabric)
		return;
	free(fabric->is_switch);
	free(fabric->is_plain);
	free(fabric->number);
	free(fabric->hosts);
	free(fabric->switches);
	free(fabric->nr_ports);
	free(fabric->ends);
	free(fabric);
}

/* ---- without some switches ---- */

static void copy(const struct muster_fabric *fabric, struct muster_fabric *to)
{
	to->nr_hosts = fabric->nr_hosts;
	to->nr_switches = fabric->nr_switches;
#define COPY(what, nr) memcpy(to->what, fabric->what, (size_t)(nr) * sizeof(*to->what))
	COPY(is_switch, fabric->nodes);
	COPY(is_plain, fabric->nodes);
	COPY(number, fabric->nodes);
	COPY(hosts, fabric->nr_hosts);
	COPY(switches, fabric->nr_switches);
	COPY(nr_ports, fabric->nodes);
	COPY(ends, fabric->nodes * fabric->radix);
#undef COPY
}

/* Its place and everybody's ports stay; nothing leads there. */
static void leave_out(struct muster_fabric *fabric, uint32_t node)
{
	fabric->is_plain[node] = true;
	for (uint32_t port = 0; port < fabric->nr_ports[node]; port++) {
		struct end *end = &fabric->ends[node * fabric->radix + port];

		if (end->node != NOBODY)
			fabric->ends[end->node * fabric->radix + end->port].node = NOBODY;
		end->node = NOBODY;
	}
}

static int hosts_reach_all(const struct muster_fabric *fabric, char *why, size_t why_len)
{
	struct ways ways;
	uint32_t i = 0;

	for (; i < fabric->nr_hosts; i++)
		if (fabric->ends[fabric->hosts[i] * fabric->radix].node == NOBODY)
			return fabric_refuse(why, why_len, -EINVAL, "host %" PRIu32
					     " hangs on it, by the only link that it has", i);
	if (ways_find(fabric, fabric->ends[fabric->hosts[0] * fabric->radix].node, &ways))
		return fabric_refuse(why, why_len, -ENOMEM, "out of memory");
	for (i = 0; i < fabric->nr_hosts && ways.distance[fabric->hosts[i]] != UNREACHED; i++)
		;
	ways_free(&ways);
	return i == fabric->nr_hosts ? 0 :
	       fabric_refuse(why, why_len, -EINVAL, "without it no way leads from host 0 to host %" PRIu32, i);
}

int muster_fabric_without(const struct muster_fabric *fabric, const bool *without,
			  struct muster_fabric **created, char *why, size_t why_len)
{
	struct muster_fabric *left = fabric_new(fabric->nodes, fabric->radix);
	int err;

	if (!left)
		return fabric_refuse(why, why_len, -ENOMEM, "out of memory");
	copy(fabric, left);
	for (uint32_t i = 0; i < fabric->nr_switches; i++)
		if (without[i])
			leave_out(left, fabric->switches[i]);
	err = hosts_reach_all(left, why, why_len);
	if (err)
		muster_fabric_free(left);
	else
		*created = left;
	return err;
}

/* ---- what is where ---- */

uint32_t muster_fabric_hosts(const struct muster_fabric *fabric)
{
	return fabric->nr_hosts;
}

uint32_t muster_fabric_switches(const struct muster_fabric *fabric)
{
	return fabric->nr_switches;
}

uint32_t muster_fabric_radix(const struct muster_fabric *fabric)
{
	return fabric->radix;
}

uint32_t muster_fabric_node(const struct muster_fabric *fabric, uint32_t number)
{
	return fabric->is_plain[fabric->switches[number]] ? 0 : MUSTER_NODE_AGGREGATION + number;
}

static void describe(const struct muster_fabric *fabric, uint32_t node, uint32_t port,
		     struct muster_fabric_end *end)
{
	const struct end *from = &fabric->ends[node * fabric->radix + port];

	end->is_host = !fabric->is_switch[from->node];
	end->number = fabric->number[from->node];
	end->port = from->port;
}

bool muster_fabric_end(const struct muster_fabric *fabric, uint32_t number, uint32_t port,
		       struct muster_fabric_end *end)
{
	uint32_t node = fabric->switches[number];

	if (port >= fabric->nr_ports[node] || fabric->ends[node * fabric->radix + port].node == NOBODY)
		return false;
	describe(fabric, node, port, end);
	return true;
}

void muster_fabric_trunks(const struct muster_fabric *fabric, uint32_t number, bool *trunks)
{
	struct muster_fabric_end end;

	for (uint32_t port = 0; port < fabric->radix; port++)
		trunks[port] = muster_fabric_end(fabric, number, port, &end) && !end.is_host;
}

void muster_fabric_uplink(const struct muster_fabric *fabric, uint32_t host,
			  struct muster_fabric_end *end)
{
	describe(fabric, fabric->hosts[host], 0, end);
}

/* ---- ways ---- */

int ways_find(const struct muster_fabric *fabric, uint32_t start, struct ways *ways)
{
	uint32_t *order = calloc(fabric->nodes, sizeof(*order)), nr = 1;

	ways->distance = calloc(fabric->nodes, sizeof(*ways->distance));
	ways->back = calloc(fabric->nodes, sizeof(*ways->back));
	if (!order || !ways->distance || !ways->back) {
		free(order);
		ways_free(ways);
		return -ENOMEM;
	}
	for (uint32_t node = 0; node < fabric->nodes; node++)
		ways->distance[node] = UNREACHED;
	ways->distance[start] = 0;
	order[0] = start;
	for (uint32_t at = 0; at < nr; at++) {
		uint32_t node = order[at];

		for (uint32_t port = 0; port < fabric->nr_ports[node]; port++) {
			const struct end *end = &fabric->ends[node * fabric->radix + port];

			if (end->node == NOBODY || ways->distance[end->node] != UNREACHED)
				continue;
			ways->distance[end->node] = ways->distance[node] + 1;
			ways->back[end->node] = end->port;
			if (fabric->is_switch[end->node])
				order[nr++] = end->node;
		}
	}
	free(order);
	return 0;
}

void ways_free(struct ways *ways)
{
	free(ways->distance);
	free(ways->back);
}

/* The port at which the way from a switch to a node begins. */
static uint8_t first_port(const struct muster_fabric *fabric, const struct ways *ways,
			  uint32_t start, uint32_t node)
{
	const struct end *end;

	do {
		end = &fabric->ends[node * fabric->radix + ways->back[node]];
		node = end->node;
	} while (node != start);
	return end->port;
}

int fabric_way(const struct muster_fabric *fabric, uint32_t start, uint32_t node, uint32_t *port)
{
	struct ways ways;

	if (ways_find(fabric, start, &ways))
		return -ENOMEM;
	*port = first_port(fabric, &ways, start, node);
	ways_free(&ways);
	return 0;
}

int64_t muster_fabric_routes(const struct muster_fabric *fabric, uint32_t number,
			     struct muster_switch_route *routes)
{
	uint32_t start = fabric->switches[number], nr = 0, i;
	struct ways ways;

	if (ways_find(fabric, start, &ways))
		return -ENOMEM;
	for (i = 0; i < fabric->nr_hosts; i++)
		if (ways.distance[fabric->hosts[i]] != UNREACHED)
			routes[nr++] = (struct muster_switch_route){
				.node = i,
				.port = first_port(fabric, &ways, start, fabric->hosts[i]),
			};
	for (i = 0; i < fabric->nr_switches; i++)
		if (i != number && !fabric->is_plain[fabric->switches[i]] &&
		    ways.distance[fabric->switches[i]] != UNREACHED)
			routes[nr++] = (struct muster_switch_route){
				.node = MUSTER_NODE_AGGREGATION + i,
				.port = first_port(fabric, &ways, start, fabric->switches[i]),
			};
	ways_free(&ways);
	return nr;
}
