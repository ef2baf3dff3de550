// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of addresses that "udp:@FILE" names: a line for each node or range of nodes,
 *
 *	NODE HOST:PORT
 *	FIRST-LAST HOST:PORT	(FIRST is HOST at PORT, FIRST + 1 at PORT + 1, ...)
 *
 * in any order, with comments behind #. Each node has one address, each address one node,
 * and all are of one family, because a port has one socket. Kept sorted by node, a range
 * as one entry.
 */
#include "address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster_desc.h"

/* What is being read, and where its errors go. */
struct reader {
	struct muster_addresses *addresses;
	size_t room;			/* entries */
	const char *path;
	uint32_t line;
	char *why;
	size_t why_len;
};

static int wrong(const struct reader *reader, uint32_t line, const char *what)
{
	return muster_wire_refuse(reader->why, reader->why_len, "%s:%u: %s", reader->path, line,
				  what);
}

/* Digits up to `end`, a number of a node. */
static bool parse_node(const char *text, const char *end, uint32_t *node)
{
	*node = 0;
	if (text == end)
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		*node = *node * 10 + (*text - '0');
		if (*node >= MUSTER_NODES_MAX)
			return false;
	}
	return true;
}

static bool parse_nodes(const char *text, struct muster_address_range *range)
{
	const char *end = text + strlen(text), *dash = strchr(text, '-');

	if (!parse_node(text, dash ? dash : end, &range->first))
		return false;
	range->last = range->first;
	return !dash || (parse_node(dash + 1, end, &range->last) && range->first <= range->last);
}

/* Nobody can be reached at it, or not through the same socket as those before. */
static const char *unfit(const struct muster_addresses *addresses,
			 const struct muster_address *address)
{
	const struct sockaddr *any = &address->any;

	if (addresses->nr_ranges && any->sa_family != addresses->table[0].any.sa_family)
		return "IPv4 and IPv6 in one table";
	if (any->sa_family == AF_INET ? address->in.sin_addr.s_addr == INADDR_ANY
				      : IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr))
		return "the host must be an address that others can send to";
	return NULL;
}

static int take_line(struct reader *reader, char *line)
{
	const char *space = " \t\r\n";
	struct muster_addresses *addresses = reader->addresses;
	struct muster_address_range range = { .line = reader->line };
	struct muster_address address;
	char *rest, *nodes, *where;
	const char *what;

	line[strcspn(line, "#")] = '\0';
	nodes = strtok_r(line, space, &rest);
	if (!nodes)
		return 0;
	where = strtok_r(NULL, space, &rest);
	if (!where || strtok_r(NULL, space, &rest))
		return wrong(reader, reader->line, "must be NODE HOST:PORT or FIRST-LAST HOST:PORT");
	if (!parse_nodes(nodes, &range))
		return wrong(reader, reader->line,
			     "nodes must be NODE or FIRST-LAST, counted up and below 16777216");
	what = muster_address_numeric(&address, where);
	if (!what)
		what = unfit(addresses, &address);
	if (what)
		return wrong(reader, reader->line, what);
	memcpy(&range.any, &address.any, address.len);
	if (ntohs(*muster_address_port(&range.any)) + range.last - range.first > UINT16_MAX)
		return wrong(reader, reader->line, "the last node's port would be above 65535");
	addresses->table[addresses->nr_ranges++] = range;
	return 0;
}

static int make_room(struct reader *reader)
{
	struct muster_addresses *addresses = reader->addresses;
	struct muster_address_range *table;

	if (addresses->nr_ranges < reader->room)
		return 0;
	reader->room = reader->room ? 2 * reader->room : 16;
	table = realloc(addresses->table, reader->room * sizeof(*table));
	if (!table)
		return -ENOMEM;
	addresses->table = table;
	return 0;
}

static int read_lines(struct reader *reader, FILE *file)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	while (!err && (len = getline(&line, &room, file)) >= 0) {
		reader->line++;
		err = make_room(reader);
		if (!err && memchr(line, '\0', len))
			err = wrong(reader, reader->line, "is no text");
		else if (!err)
			err = take_line(reader, line);
	}
	free(line);
	if (!err && ferror(file))
		err = wrong(reader, reader->line + 1, "cannot be read");
	return err;
}

static int by_node(const void *a, const void *b)
{
	const struct muster_address_range *one = a, *other = b;

	return (one->first > other->first) - (one->first < other->first);
}

static int compare_hosts(const struct muster_address_range *a,
			 const struct muster_address_range *b)
{
	if (a->any.sa_family == AF_INET)
		return memcmp(&a->in.sin_addr, &b->in.sin_addr, sizeof(a->in.sin_addr));
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
}

static int port_of(const struct muster_address_range *range)
{
	return ntohs(range->any.sa_family == AF_INET ? range->in.sin_port : range->in6.sin6_port);
}

static int by_address(const void *a, const void *b)
{
	int hosts = compare_hosts(a, b);

	return hosts ? hosts : port_of(a) - port_of(b);
}

/* Two neighbours in a sorted table that have something in common: blames the later line. */
static int twice(const struct reader *reader, const struct muster_address_range *a,
		 const struct muster_address_range *b, const char *what)
{
	uint32_t line = a->line > b->line ? a->line : b->line;
	uint32_t before = a->line > b->line ? b->line : a->line;

	return muster_wire_refuse(reader->why, reader->why_len, "%s:%u: %s line %u already",
				  reader->path, line, what, before);
}

/* Leaves the table sorted by node. */
static int refuse_twice(const struct reader *reader)
{
	struct muster_address_range *table = reader->addresses->table;
	size_t nr = reader->addresses->nr_ranges;

	qsort(table, nr, sizeof(*table), by_address);
	for (size_t i = 1; i < nr; i++) {
		const struct muster_address_range *a = &table[i - 1], *b = &table[i];

		if (!compare_hosts(a, b) &&
		    (uint32_t)(port_of(b) - port_of(a)) <= a->last - a->first)
			return twice(reader, a, b, "an address is given to a node of");
	}
	qsort(table, nr, sizeof(*table), by_node);
	for (size_t i = 1; i < nr; i++)
		if (table[i].first <= table[i - 1].last)
			return twice(reader, &table[i - 1], &table[i], "a node has an address in");
	return 0;
}

int muster_address_table_read(struct muster_addresses *addresses, const char *path, char *why,
			      size_t why_len)
{
	struct reader reader = { .addresses = addresses, .path = path, .why = why,
				 .why_len = why_len };
	FILE *file = fopen(path, "re");
	int err;

	if (!file)
		return muster_wire_refuse(why, why_len, "wire \"udp:@%s\": cannot be opened: %s",
					  path, strerror(errno));
	err = read_lines(&reader, file);
	fclose(file);
	if (err)
		return err;
	if (!addresses->nr_ranges)
		return muster_wire_refuse(why, why_len, "wire \"udp:@%s\": names no node", path);
	return refuse_twice(&reader);
}

int muster_address_table_find(const struct muster_addresses *addresses, uint32_t node,
			      struct muster_address *address)
{
	size_t low = 0, high = addresses->nr_ranges;
	const struct muster_address_range *range;
	in_port_t *port;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (addresses->table[middle].first <= node)
			low = middle;
		else
			high = middle;
	}
	range = &addresses->table[low];
	if (node < range->first || node > range->last)
		return -ENOENT;
	if (range->any.sa_family == AF_INET) {
		address->in = range->in;
		address->len = sizeof(address->in);
	} else {
		address->in6 = range->in6;
		address->len = sizeof(address->in6);
	}
	port = muster_address_port(&address->any);
	*port = htons(ntohs(*port) + (node - range->first));
	return 0;
}
