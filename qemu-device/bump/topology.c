// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links, and what follows from them. Ways are shortest ones, found breadth first;
 * other traffic goes on the tree of the shortest ways from element 0.
 */
#include "topology.h"

#include <errno.h>
#include <string.h>

#include "program.h"

uint32_t muster_bump_topology_port(const struct muster_bump_topology *topology, uint32_t element,
				   uint32_t neighbour)
{
	for (uint32_t port = 1; port < topology->nr_ports[element]; port++)
		if (topology->neighbours[element][port] == neighbour)
			return port;
	return 0;
}

static int add_link(struct muster_bump_topology *topology, uint32_t a, uint32_t b)
{
	if (a >= topology->nr || b >= topology->nr)
		return -ERANGE;
	if (a == b)
		return -EINVAL;
	if (muster_bump_topology_port(topology, a, b))
		return 0;
	if (topology->nr_ports[a] == MUSTER_BUMP_PORTS_MAX ||
	    topology->nr_ports[b] == MUSTER_BUMP_PORTS_MAX)
		return -ENOSPC;
	topology->neighbours[a][topology->nr_ports[a]++] = (uint16_t)b;
	topology->neighbours[b][topology->nr_ports[b]++] = (uint16_t)a;
	return 0;
}

static int begin(struct muster_bump_topology *topology, uint32_t nr)
{
	if (!nr || nr > MUSTER_BUMP_HOSTS_MAX)
		return -EINVAL;
	memset(topology, 0, sizeof(*topology));
	topology->nr = (uint16_t)nr;
	memset(topology->nr_ports, 1, nr);
	return 0;
}

/* ---- by name ---- */

static void add_ring(struct muster_bump_topology *topology, uint32_t base, uint32_t pitch,
		     uint32_t nr)
{
	for (uint32_t i = 0; nr > 1 && i < nr; i++)
		add_link(topology, base + i * pitch, base + (i + 1) % nr * pitch);
}

static void add_torus(struct muster_bump_topology *topology)
{
	uint32_t rows = program_rows(topology->nr), columns = topology->nr / rows;

	for (uint32_t row = 0; row < rows; row++)
		add_ring(topology, row * columns, 1, columns);
	for (uint32_t column = 0; column < columns; column++)
		add_ring(topology, column, columns, rows);
}

/* Tree: each element with itself less its lowest bit; cube: less each of its bits. */
static void add_bits(struct muster_bump_topology *topology, int lowest)
{
	for (uint32_t i = 1; i < topology->nr; i++)
		for (uint32_t bit = 1; bit <= i; bit <<= 1) {
			if (!(i & bit))
				continue;
			add_link(topology, i - bit, i);
			if (lowest)
				break;
		}
}

int muster_bump_topology_make(struct muster_bump_topology *topology, const char *name, uint32_t nr)
{
	if (begin(topology, nr))
		return -EINVAL;
	if (!strcmp(name, "ring"))
		add_ring(topology, 0, 1, nr);
	else if (!strcmp(name, "torus"))
		add_torus(topology);
	else if (!strcmp(name, "tree") || !strcmp(name, "cube"))
		add_bits(topology, !strcmp(name, "tree"));
	else
		return -EINVAL;
	return 0;
}

/* ---- ways ---- */

/* From where each element is reached first, beginning at `start`; itself: not reached. */
static void search(const struct muster_bump_topology *topology, uint32_t start,
		   uint16_t reached_from[MUSTER_BUMP_HOSTS_MAX],
		   uint16_t order[MUSTER_BUMP_HOSTS_MAX], uint32_t *nr)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < topology->nr; i++)
		reached_from[i] = (uint16_t)i;
	order[0] = (uint16_t)start;
	for (*nr = 1; at < *nr; at++) {
		uint16_t element = order[at];

		for (uint32_t port = 1; port < topology->nr_ports[element]; port++) {
			uint16_t next = topology->neighbours[element][port];

			if (next == start || reached_from[next] != next)
				continue;
			reached_from[next] = element;
			order[(*nr)++] = next;
		}
	}
}

void muster_bump_topology_routes(const struct muster_bump_topology *topology, uint32_t element,
				 uint8_t routes[MUSTER_BUMP_HOSTS_MAX])
{
	uint16_t from[MUSTER_BUMP_HOSTS_MAX], order[MUSTER_BUMP_HOSTS_MAX];
	uint32_t nr;

	memset(routes, MUSTER_BUMP_NO_PORT, MUSTER_BUMP_HOSTS_MAX);
	search(topology, element, from, order, &nr);
	for (uint32_t i = 1; i < nr; i++) {
		uint16_t to = order[i];

		routes[to] = from[to] == element ?
			     (uint8_t)muster_bump_topology_port(topology, element, to) :
			     routes[from[to]];
	}
}

uint32_t muster_bump_topology_open(const struct muster_bump_topology *topology, uint32_t element)
{
	uint16_t from[MUSTER_BUMP_HOSTS_MAX], order[MUSTER_BUMP_HOSTS_MAX];
	uint32_t mask = 1u << MUSTER_BUMP_HOST_PORT, nr;

	search(topology, 0, from, order, &nr);
	for (uint32_t port = 1; port < topology->nr_ports[element]; port++) {
		uint16_t other = topology->neighbours[element][port];

		if (from[other] == element || from[element] == other)
			mask |= 1u << port;
	}
	return mask;
}

/* ---- from a file ---- */

static const char *no_link(int err)
{
	switch (err) {
	case -ERANGE:
		return "there is no element of that number";
	case -ENOSPC:
		return "an element has at most 15 neighbours";
	default:
		return "a link is two different elements, as \"0 1\"";
	}
}

int muster_bump_topology_read(struct muster_bump_topology *topology, FILE *in, uint32_t nr,
			      char *why, size_t why_len)
{
	uint16_t from[MUSTER_BUMP_HOSTS_MAX], order[MUSTER_BUMP_HOSTS_MAX];
	char text[256], rest;
	unsigned int a, b;
	uint32_t reached, line;
	int err = begin(topology, nr);

	snprintf(why, why_len, "from 1 to %u elements can be joined", MUSTER_BUMP_HOSTS_MAX);
	for (line = 1; !err && fgets(text, sizeof(text), in); line++) {
		text[strcspn(text, "#\n")] = '\0';
		if (!text[strspn(text, " \t\r")])
			continue;
		err = sscanf(text, "%u %u %c", &a, &b, &rest) != 2 ? -EINVAL :
								     add_link(topology, a, b);
		if (err)
			snprintf(why, why_len, "line %u: %s", line, no_link(err));
	}
	if (err)
		return -EINVAL;
	snprintf(why, why_len, "not all of %u elements are joined", nr);
	search(topology, 0, from, order, &reached);
	return reached == nr ? 0 : -EINVAL;
}
