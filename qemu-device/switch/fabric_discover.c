// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network from what its switches say of themselves: which each is, and what is at its ports. Nobody knows
 * beforehand how many there are: all that are named must have come, and both ends of each link must say the same.
 * What they say is another process's, and trusted in nothing.
 */
#include "fabric_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where a host is. */
struct place {
	uint32_t number;	/* of the switch; NOBODY */
	uint32_t port;
};

struct discovery {
	const struct muster_fabric_said **switches;	/* by number; NULL: it has not come */
	struct place *hosts;				/* by number */
	uint32_t nr_switches, nr_hosts;			/* one more than the largest number that is named */
	char *why;
	size_t why_len;
};

static bool is_switch(uint32_t node)
{
	return node >= MUSTER_NODE_AGGREGATION && node != MUSTER_FABRIC_NOTHING;
}

static uint32_t number_of(uint32_t node)
{
	return is_switch(node) ? node - MUSTER_NODE_AGGREGATION : node;
}

/* The first port at which it has that node; radix: it has none. */
static uint32_t port_to(const struct muster_fabric_said *said, uint32_t node)
{
	uint32_t port = 0;

	while (port < said->radix && said->nodes[port] != node)
		port++;
	return port;
}

/* ---- what one says ---- */

static int port_valid(const struct muster_fabric_said *said, uint32_t port, char *why, size_t why_len)
{
	uint32_t node = said->nodes[port], first = port_to(said, node);

	if (node == MUSTER_FABRIC_NOTHING)
		return 0;
	if (number_of(node) >= MUSTER_FABRIC_NODES_MAX)
		return fabric_refuse(why, why_len, -EINVAL, "what is at port %" PRIu32 " of switch %" PRIu32
				     " is neither a host nor a switch", port, said->number);
	if (node == MUSTER_NODE_AGGREGATION + said->number)
		return fabric_refuse(why, why_len, -EINVAL, "switch %" PRIu32 " is at port %" PRIu32 " of itself",
				     said->number, port);
	if (first != port)
		return fabric_refuse(why, why_len, -EINVAL, "%s %" PRIu32 " is at ports %" PRIu32 " and %" PRIu32
				     " of switch %" PRIu32, is_switch(node) ? "switch" : "host", number_of(node),
				     first, port, said->number);
	return 0;
}

static int said_valid(const struct muster_fabric_said *said, char *why, size_t why_len)
{
	int err = 0;

	if (said->number >= MUSTER_FABRIC_NODES_MAX)
		return fabric_refuse(why, why_len, -EINVAL, "switch %" PRIu32 ", but there can be %d nodes",
				     said->number, MUSTER_FABRIC_NODES_MAX);
	if (said->radix < MUSTER_SWITCH_RADIX_MIN || said->radix > MUSTER_SWITCH_RADIX_MAX)
		return fabric_refuse(why, why_len, -EINVAL, "switch %" PRIu32 " has %" PRIu32
				     " ports, but it can have %d to %d", said->number, said->radix,
				     MUSTER_SWITCH_RADIX_MIN, MUSTER_SWITCH_RADIX_MAX);
	for (uint32_t port = 0; port < said->radix && !err; port++)
		err = port_valid(said, port, why, why_len);
	return err;
}

/* ---- what all say ---- */

static void grow(uint32_t *nr, uint32_t number)
{
	if (number >= *nr)
		*nr = number + 1;
}

static void count(struct discovery *of, const struct muster_fabric_said *said)
{
	grow(&of->nr_switches, said->number);
	for (uint32_t port = 0; port < said->radix; port++) {
		uint32_t node = said->nodes[port];

		if (node != MUSTER_FABRIC_NOTHING)
			grow(is_switch(node) ? &of->nr_switches : &of->nr_hosts, number_of(node));
	}
}

static int discovery_begin(struct discovery *of, const struct muster_fabric_said *said, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; i < nr && !err; i++)
		err = said_valid(&said[i], of->why, of->why_len);
	if (err)
		return err;
	for (uint32_t i = 0; i < nr; i++)
		count(of, &said[i]);
	of->switches = calloc(of->nr_switches + 1, sizeof(*of->switches));
	of->hosts = calloc(of->nr_hosts + 1, sizeof(*of->hosts));
	if (!of->switches || !of->hosts)
		return fabric_refuse(of->why, of->why_len, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nr; i++)
		of->switches[said[i].number] = &said[i];
	for (uint32_t i = 0; i < of->nr_hosts; i++)
		of->hosts[i].number = NOBODY;
	return 0;
}

static int host_place(struct discovery *of, uint32_t host, uint32_t number, uint32_t port)
{
	struct place *place = &of->hosts[host];

	if (place->number != NOBODY)
		return fabric_refuse(of->why, of->why_len, -EINVAL, "host %" PRIu32 " is at port %" PRIu32
				     " of switch %" PRIu32 " and at port %" PRIu32 " of switch %" PRIu32, host,
				     place->port, place->number, port, number);
	*place = (struct place){ .number = number, .port = port };
	return 0;
}

static int trunk_agrees(const struct discovery *of, uint32_t number, uint32_t port, uint32_t other)
{
	const struct muster_fabric_said *there = of->switches[other];

	if (!there || port_to(there, MUSTER_NODE_AGGREGATION + number) < there->radix)
		return 0;
	return fabric_refuse(of->why, of->why_len, -EINVAL, "switch %" PRIu32 " is at port %" PRIu32 " of switch %"
			     PRIu32 ", but switch %" PRIu32 " is at no port of switch %" PRIu32, other, port, number,
			     number, other);
}

static int switch_agrees(struct discovery *of, uint32_t number, uint32_t first)
{
	const struct muster_fabric_said *said = of->switches[number];
	int err = 0;

	if (said->radix != of->switches[first]->radix)
		return fabric_refuse(of->why, of->why_len, -EINVAL, "switch %" PRIu32 " has %" PRIu32
				     " ports and switch %" PRIu32 " %" PRIu32 ", but all have as many", first,
				     of->switches[first]->radix, number, said->radix);
	for (uint32_t port = 0; port < said->radix && !err; port++) {
		uint32_t node = said->nodes[port];

		if (is_switch(node))
			err = trunk_agrees(of, number, port, number_of(node));
		else if (node != MUSTER_FABRIC_NOTHING)
			err = host_place(of, node, number, port);
	}
	return err;
}

static int all_agree(struct discovery *of)
{
	uint32_t first = NOBODY;
	int err = 0;

	for (uint32_t i = 0; i < of->nr_switches && !err; i++) {
		if (!of->switches[i])
			continue;
		if (first == NOBODY)
			first = i;
		err = switch_agrees(of, i, first);
	}
	return err;
}

/* ---- whether it is whole ---- */

static int all_have_come(const struct discovery *of)
{
	for (uint32_t i = 0; i < of->nr_switches; i++)
		for (uint32_t port = 0; of->switches[i] && port < of->switches[i]->radix; port++) {
			uint32_t node = of->switches[i]->nodes[port];

			if (is_switch(node) && !of->switches[number_of(node)])
				return fabric_refuse(of->why, of->why_len, -EAGAIN, "switch %" PRIu32
						     " is at port %" PRIu32 " of switch %" PRIu32
						     " and has not come", number_of(node), port, i);
		}
	return of->nr_switches ? 0 : fabric_refuse(of->why, of->why_len, -EAGAIN, "no switch has come");
}

/* Whoever is not there now is named by nobody, and never will be. */
static int all_are_there(const struct discovery *of)
{
	for (uint32_t i = 0; i < of->nr_switches; i++)
		if (!of->switches[i])
			return fabric_refuse(of->why, of->why_len, -EINVAL, "there is a switch %" PRIu32
					     ", but switch %" PRIu32 " is at no port", of->nr_switches - 1, i);
	for (uint32_t i = 0; i < of->nr_hosts; i++)
		if (of->hosts[i].number == NOBODY)
			return fabric_refuse(of->why, of->why_len, -EINVAL, "there is a host %" PRIu32
					     ", but host %" PRIu32 " is at no port", of->nr_hosts - 1, i);
	if (!of->nr_hosts)
		return fabric_refuse(of->why, of->why_len, -EINVAL, "no host is at any port");
	if (of->nr_hosts + of->nr_switches > MUSTER_FABRIC_NODES_MAX)
		return fabric_refuse(of->why, of->why_len, -EINVAL, "%" PRIu32 " nodes, but there can be %d",
				     of->nr_hosts + of->nr_switches, MUSTER_FABRIC_NODES_MAX);
	return 0;
}

/* ---- making it: hosts, then switches ---- */

static void host_fill(const struct discovery *of, struct muster_fabric *fabric, uint32_t host)
{
	fabric->hosts[host] = fabric->number[host] = host;
	fabric->nr_ports[host] = 1;
	fabric->ends[host * fabric->radix] = (struct end){
		.node = of->nr_hosts + of->hosts[host].number, .port = of->hosts[host].port,
	};
}

static struct end end_at(const struct discovery *of, uint32_t number, uint32_t port)
{
	uint32_t node = of->switches[number]->nodes[port];

	if (node == MUSTER_FABRIC_NOTHING)
		return (struct end){ .node = NOBODY };
	if (!is_switch(node))
		return (struct end){ .node = node };
	return (struct end){
		.node = of->nr_hosts + number_of(node),
		.port = port_to(of->switches[number_of(node)], MUSTER_NODE_AGGREGATION + number),
	};
}

static void switch_fill(const struct discovery *of, struct muster_fabric *fabric, uint32_t number)
{
	uint32_t node = of->nr_hosts + number;

	fabric->switches[number] = node;
	fabric->number[node] = number;
	fabric->is_switch[node] = true;
	fabric->is_plain[node] = of->switches[number]->is_plain;
	for (uint32_t port = 0; port < fabric->radix; port++) {
		struct end end = end_at(of, number, port);

		fabric->ends[node * fabric->radix + port] = end;
		if (end.node != NOBODY)
			fabric->nr_ports[node] = port + 1;
	}
}

static int hangs_together(const struct discovery *of, const struct muster_fabric *fabric)
{
	struct ways ways;
	uint32_t i = 0;

	if (ways_find(fabric, fabric->switches[0], &ways))
		return fabric_refuse(of->why, of->why_len, -ENOMEM, "out of memory");
	while (i < of->nr_switches && ways.distance[fabric->switches[i]] != UNREACHED)
		i++;
	ways_free(&ways);
	return i == of->nr_switches ? 0 :
	       fabric_refuse(of->why, of->why_len, -EINVAL, "no way leads from switch 0 to switch %" PRIu32, i);
}

static int make(const struct discovery *of, struct muster_fabric **created)
{
	struct muster_fabric *fabric = fabric_new(of->nr_hosts + of->nr_switches, of->switches[0]->radix);
	int err;

	if (!fabric)
		return fabric_refuse(of->why, of->why_len, -ENOMEM, "out of memory");
	fabric->nr_hosts = of->nr_hosts;
	fabric->nr_switches = of->nr_switches;
	for (uint32_t i = 0; i < of->nr_hosts; i++)
		host_fill(of, fabric, i);
	for (uint32_t i = 0; i < of->nr_switches; i++)
		switch_fill(of, fabric, i);
	err = hangs_together(of, fabric);
	if (err)
		muster_fabric_free(fabric);
	else
		*created = fabric;
	return err;
}

int muster_fabric_discover(const struct muster_fabric_said *said, uint32_t nr, struct muster_fabric **created,
			   char *why, size_t why_len)
{
	struct discovery of = { .why = why, .why_len = why_len };
	int err = discovery_begin(&of, said, nr);

	if (!err)
		err = all_agree(&of);
	if (!err)
		err = all_have_come(&of);
	if (!err)
		err = all_are_there(&of);
	if (!err)
		err = make(&of, created);
	free(of.switches);
	free(of.hosts);
	return err;
}

/* ---- beside a network that is known ---- */

static const char *words(uint32_t node, char *text, size_t len)
{
	if (node == MUSTER_FABRIC_NOTHING)
		return "nothing";
	snprintf(text, len, "%s %" PRIu32, is_switch(node) ? "switch" : "host", number_of(node));
	return text;
}

void muster_fabric_say(const struct muster_fabric *fabric, uint32_t number, uint32_t *nodes,
		       struct muster_fabric_said *said)
{
	struct muster_fabric_end end;

	*said = (struct muster_fabric_said){
		.number = number, .is_plain = fabric->is_plain[fabric->switches[number]], .radix = fabric->radix,
		.nodes = nodes,
	};
	for (uint32_t port = 0; port < fabric->radix; port++)
		nodes[port] = !muster_fabric_end(fabric, number, port, &end) ? MUSTER_FABRIC_NOTHING :
			      end.is_host ? end.number : MUSTER_NODE_AGGREGATION + end.number;
}

int muster_fabric_agrees(const struct muster_fabric *fabric, const struct muster_fabric_said *said, char *why,
			 size_t why_len)
{
	uint32_t nodes[MUSTER_SWITCH_RADIX_MAX], port = 0;
	char here[32], there[32];
	struct muster_fabric_said known;

	if (said->number >= fabric->nr_switches)
		return fabric_refuse(why, why_len, -EINVAL, "the network has no switch %" PRIu32, said->number);
	muster_fabric_say(fabric, said->number, nodes, &known);
	if (said->radix != known.radix)
		return fabric_refuse(why, why_len, -EINVAL, "switch %" PRIu32 " has %" PRIu32
				     " ports, but in the network %" PRIu32, said->number, said->radix, known.radix);
	if (said->is_plain != known.is_plain)
		return fabric_refuse(why, why_len, -EINVAL, "switch %" PRIu32
				     " has %s aggregation node, but in the network it has %s", said->number,
				     known.is_plain ? "an" : "no", known.is_plain ? "none" : "one");
	while (port < known.radix && said->nodes[port] == nodes[port])
		port++;
	return port == known.radix ? 0 :
	       fabric_refuse(why, why_len, -EINVAL, "at port %" PRIu32 " of switch %" PRIu32
			     " is %s, but in the network %s", port, said->number,
			     words(said->nodes[port], here, sizeof(here)), words(nodes[port], there, sizeof(there)));
}
