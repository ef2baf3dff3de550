/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The dependencies of Debian packages as a graph. A link is one dependency: of
 * its alternatives the first that is in the text; a virtual package stands for
 * the first, by name, that provides it. What nothing in the text satisfies is no
 * link. Equal texts give equal graphs.
 */
#ifndef DPKG_GRAPH_H
#define DPKG_GRAPH_H

#include <stddef.h>
#include <stdint.h>

/* A piece of the text. */
struct slice {
	const char *at;
	const char *end;
};

struct package {
	struct slice name;
	struct slice depends[2];	/* Pre-Depends and Depends */
	struct slice provides;
};

/* A virtual package, and the package that it stands for. */
struct alias {
	struct slice name;
	uint32_t package;
};

struct graph {
	const char *text;
	struct package *packages;	/* by name; the index is the package's number */
	uint32_t nr_packages;
	struct alias *aliases;		/* by name, then by package */
	uint32_t nr_aliases;
	uint32_t *first;		/* package p links to links[first[p]] .. links[first[p + 1] - 1] */
	uint32_t *links;
	uint32_t nr_links;
	char why[128];			/* what is wrong with the text, "" if nothing is */
};

/**
 * graph_read() - make the graph of a text in the format of /var/lib/dpkg/status.
 * @text: must stay as long as the graph, which points into it.
 * Return: 0; -EINVAL, and graph->why has line and reason; -ENOMEM. In any case
 * graph_free() is due.
 */
int graph_read(struct graph *graph, const char *text, size_t len);
void graph_free(struct graph *graph);

#endif /* DPKG_GRAPH_H */
