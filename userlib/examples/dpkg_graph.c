// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads package lists into a graph: paragraphs of "Field: value" lines, one for
 * each package. Only Package, Pre-Depends, Depends and Provides are looked at,
 * but every line must have the right form.
 */
#include "dpkg_graph.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int graph_error(struct graph *graph, const char *where, const char *what)
{
	unsigned long line = 1;

	for (const char *c = graph->text; c < where; c++)
		line += *c == '\n';
	snprintf(graph->why, sizeof(graph->why), "line %lu: %s", line, what);
	return -EINVAL;
}

/* Arrays grow to the next power of two. */
static int grow(void *array, uint32_t nr, size_t size)
{
	void *grown;

	if (nr & (nr - 1))
		return 0;
	grown = reallocarray(*(void **)array, nr ? 2 * (size_t)nr : 1, size);
	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	return 0;
}

static int slice_compare(const struct slice *a, const struct slice *b)
{
	size_t a_len = (size_t)(a->end - a->at), b_len = (size_t)(b->end - b->at);
	int order = memcmp(a->at, b->at, a_len < b_len ? a_len : b_len);

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static void skip_space(struct slice *text)
{
	while (text->at < text->end && isspace((unsigned char)*text->at))
		text->at++;
}

static struct slice take_name(struct slice *text)
{
	struct slice name;

	skip_space(text);
	name.at = text->at;
	while (text->at < text->end && (isalnum((unsigned char)*text->at) ||
					memchr("+-._", *text->at, 4)))
		text->at++;
	name.end = text->at;
	return name;
}

/*
 * One "name[:arch] [(version)]" and what follows it, ',' or '|' or the end
 * (*separator 0). Versions do not matter here: the file names what goes together.
 */
static int take_relation(struct graph *graph, struct slice *text, struct slice *name,
			 char *separator)
{
	*name = take_name(text);
	if (name->at == name->end)
		return graph_error(graph, name->at, "expected the name of a package");
	if (text->at < text->end && *text->at == ':') {
		text->at++;
		take_name(text);
	}
	skip_space(text);
	if (text->at < text->end && *text->at == '(') {
		const char *close = memchr(text->at, ')', (size_t)(text->end - text->at));

		if (!close)
			return graph_error(graph, text->at, "a version has no closing ')'");
		text->at = close + 1;
		skip_space(text);
	}
	*separator = 0;
	if (text->at == text->end)
		return 0;
	if (*text->at != ',' && *text->at != '|')
		return graph_error(graph, text->at, "expected ',' or '|' between packages");
	*separator = *text->at++;
	return 0;
}

/* A field's value ends where a line starts with anything but space. */
static const char *value_end(const char *at, const char *end)
{
	const char *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		at = newline + 1;
		if (at == end || (*at != ' ' && *at != '\t'))
			return newline;
	}
	return end;
}

static int take_field(struct graph *graph, struct package *package, struct slice *text)
{
	const char *line = text->at;
	struct slice name = take_name(text), value;
	size_t len = (size_t)(name.end - line);

	if (name.at != line || name.end == line || text->at == text->end || *text->at != ':')
		return graph_error(graph, line, "expected \"Field: value\" or an empty line");
	value.at = text->at + 1;
	value.end = value_end(text->at, text->end);
	text->at = value.end < text->end ? value.end + 1 : value.end;
	skip_space(&value);
	while (value.end > value.at && isspace((unsigned char)value.end[-1]))
		value.end--;
	if (len == 7 && !strncasecmp(line, "Package", len)) {
		if (package->name.at)
			return graph_error(graph, line, "a second Package in one paragraph");
		package->name = take_name(&value);
		skip_space(&value);
		if (package->name.at == package->name.end || value.at != value.end)
			return graph_error(graph, line, "this is not the name of a package");
	} else if (len == 11 && !strncasecmp(line, "Pre-Depends", len)) {
		package->depends[0] = value;
	} else if (len == 7 && !strncasecmp(line, "Depends", len)) {
		package->depends[1] = value;
	} else if (len == 8 && !strncasecmp(line, "Provides", len)) {
		package->provides = value;
	}
	return 0;
}

/* Paragraphs, separated by empty lines, of fields: one paragraph a package. */
static int take_packages(struct graph *graph, struct slice text)
{
	while (text.at < text.end) {
		const char *start = text.at;
		struct package package = { 0 };
		int ret = 0;

		while (!ret && text.at < text.end && *text.at != '\n')
			ret = take_field(graph, &package, &text);
		if (!ret && text.at > start && !package.name.at)
			ret = graph_error(graph, start, "a paragraph without Package");
		if (!ret && package.name.at)
			ret = grow(&graph->packages, graph->nr_packages, sizeof(package));
		if (ret)
			return ret;
		if (package.name.at)
			graph->packages[graph->nr_packages++] = package;
		text.at += text.at < text.end;
	}
	return graph->nr_packages ? 0 : graph_error(graph, text.at, "there are no packages");
}

static int package_compare(const void *a_in, const void *b_in)
{
	const struct package *a = a_in, *b = b_in;
	int order = slice_compare(&a->name, &b->name);

	return order ? order : (a->name.at > b->name.at) - (a->name.at < b->name.at);
}

/* By name; of several versions of a package the one that came first stays. */
static void sort_packages(struct graph *graph)
{
	struct package *packages = graph->packages;
	uint32_t nr = 1;

	qsort(packages, graph->nr_packages, sizeof(*packages), package_compare);
	for (uint32_t i = 1; i < graph->nr_packages; i++)
		if (slice_compare(&packages[nr - 1].name, &packages[i].name))
			packages[nr++] = packages[i];
	graph->nr_packages = nr;
}

/* ---- links ----------------------------------------------------------------- */

static int alias_compare(const void *a_in, const void *b_in)
{
	const struct alias *a = a_in, *b = b_in;
	int order = slice_compare(&a->name, &b->name);

	return order ? order : (a->package > b->package) - (a->package < b->package);
}

static int take_aliases(struct graph *graph)
{
	for (uint32_t p = 0; p < graph->nr_packages; p++) {
		struct slice text = graph->packages[p].provides;

		while (text.at < text.end) {
			struct alias alias = { .package = p };
			char separator;
			int ret = take_relation(graph, &text, &alias.name, &separator);

			if (!ret)
				ret = grow(&graph->aliases, graph->nr_aliases, sizeof(alias));
			if (ret)
				return ret;
			graph->aliases[graph->nr_aliases++] = alias;
		}
	}
	if (graph->nr_aliases)
		qsort(graph->aliases, graph->nr_aliases, sizeof(*graph->aliases), alias_compare);
	return 0;
}

/* The first of the n entries that is not less than name; each entry starts with its name. */
static const void *lower_bound(const void *entries, uint32_t nr, size_t size,
			       const struct slice *name)
{
	const char *low = entries;

	while (nr) {
		const char *middle = low + nr / 2 * size;

		if (slice_compare((const struct slice *)(const void *)middle, name) < 0) {
			low = middle + size;
			nr -= nr / 2 + 1;
		} else {
			nr /= 2;
		}
	}
	return low;
}

static bool find_package(const struct graph *graph, const struct slice *name, uint32_t *number)
{
	const struct package *package = lower_bound(graph->packages, graph->nr_packages,
						    sizeof(*package), name);
	const struct alias *alias;

	if (package < graph->packages + graph->nr_packages &&
	    !slice_compare(&package->name, name)) {
		*number = (uint32_t)(package - graph->packages);
		return true;
	}
	if (!graph->nr_aliases)
		return false;
	alias = lower_bound(graph->aliases, graph->nr_aliases, sizeof(*alias), name);
	if (alias == graph->aliases + graph->nr_aliases || slice_compare(&alias->name, name))
		return false;
	*number = alias->package;
	return true;
}

static int add_link(struct graph *graph, uint32_t to)
{
	int ret = grow(&graph->links, graph->nr_links, sizeof(*graph->links));

	if (!ret)
		graph->links[graph->nr_links++] = to;
	return ret;
}

/* One field: clauses separated by ',', each of alternatives separated by '|'. */
static int take_links(struct graph *graph, uint32_t from, struct slice text)
{
	bool linked = false;

	while (text.at < text.end) {
		struct slice name;
		char separator;
		uint32_t to;
		int ret = take_relation(graph, &text, &name, &separator);

		if (!ret && !linked && find_package(graph, &name, &to)) {
			linked = true;
			if (to != from)
				ret = add_link(graph, to);
		}
		if (ret)
			return ret;
		if (separator == ',')
			linked = false;
	}
	return 0;
}

static int take_all_links(struct graph *graph)
{
	graph->first = calloc((size_t)graph->nr_packages + 1, sizeof(*graph->first));
	if (!graph->first)
		return -ENOMEM;
	for (uint32_t p = 0; p < graph->nr_packages; p++) {
		int ret = take_links(graph, p, graph->packages[p].depends[0]);

		if (!ret)
			ret = take_links(graph, p, graph->packages[p].depends[1]);
		if (ret)
			return ret;
		graph->first[p + 1] = graph->nr_links;
	}
	return 0;
}

int graph_read(struct graph *graph, const char *text, size_t len)
{
	int ret;

	*graph = (struct graph){ .text = text };
	ret = take_packages(graph, (struct slice){ text, text + len });
	if (ret)
		return ret;
	sort_packages(graph);
	ret = take_aliases(graph);
	return ret ? ret : take_all_links(graph);
}

void graph_free(struct graph *graph)
{
	free(graph->packages);
	free(graph->aliases);
	free(graph->first);
	free(graph->links);
}
