// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Above, the network: switches in rows by how far they are from a host, the trees in colours
 * beside the links that they use, a ring about each root. Switches that all have hosts, as in a
 * torus, stand in a circle. Below, one operation's packets (switch_play.h): a line for each
 * node, time to the right.
 */
#include "switch_draw.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switch_play.h"

enum {
	TREES = 2, HOST_GAP = 26, ROW_GAP = 110, MARGIN = 60, WIDTH_MIN = 880, TITLE = 40,
	LINE_GAP = 14, HOP = 64, LABEL = 46, PULSES = 4,
};

static const char *const tree_colours[TREES] = { "#c0392b", "#2471a3" };

struct place {
	double x, y;
};

struct drawing {
	FILE *to;
	const struct muster_fabric *fabric;
	uint32_t hosts, switches;
	uint32_t *level;		/* by switch: steps to the nearest that has a host */
	uint32_t levels;
	struct place *places;		/* hosts, then switches */
	double width, height;		/* of all; the network is above */
	char *why;
	size_t why_len;
};

static struct place *place_of(const struct drawing *drawing, bool is_host, uint32_t number)
{
	return &drawing->places[is_host ? number : drawing->hosts + number];
}

static struct place *place_of_node(const struct drawing *drawing, uint32_t node)
{
	return node < MUSTER_NODE_AGGREGATION ? place_of(drawing, true, node) :
						place_of(drawing, false, node - MUSTER_NODE_AGGREGATION);
}

/* ---- where ---- */

static void levels_find(struct drawing *drawing)
{
	struct muster_fabric_end end;
	bool changed = true;

	for (uint32_t i = 0; i < drawing->switches; i++)
		drawing->level[i] = drawing->switches;
	for (uint32_t i = 0; i < drawing->hosts; i++) {
		muster_fabric_uplink(drawing->fabric, i, &end);
		drawing->level[end.number] = 0;
	}
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < drawing->switches; i++)
			for (uint32_t port = 0; muster_fabric_end(drawing->fabric, i, port, &end); port++)
				if (!end.is_host && drawing->level[end.number] + 1 < drawing->level[i]) {
					drawing->level[i] = drawing->level[end.number] + 1;
					changed = true;
				}
	}
	for (uint32_t i = 0; i < drawing->switches; i++)
		if (drawing->level[i] + 1 > drawing->levels)
			drawing->levels = drawing->level[i] + 1;
}

static void row_place(struct drawing *drawing, uint32_t level, double y)
{
	uint32_t nr = 0, place = 0;

	for (uint32_t i = 0; i < drawing->switches; i++)
		nr += drawing->level[i] == level;
	for (uint32_t i = 0; i < drawing->switches; i++)
		if (drawing->level[i] == level)
			*place_of(drawing, false, i) = (struct place){
				MARGIN + (drawing->width - 2 * MARGIN) * (2 * place++ + 1) / (2.0 * nr), y,
			};
}

/* Hosts side by side, those of one switch together, and each leaf above its hosts. */
static void leaves_place(struct drawing *drawing, double y)
{
	double gap = (drawing->width - 2 * MARGIN) / drawing->hosts, at = MARGIN + gap / 2;
	struct muster_fabric_end end;

	for (uint32_t i = 0; i < drawing->switches; i++) {
		double first = at;

		if (drawing->level[i])
			continue;
		for (uint32_t port = 0; muster_fabric_end(drawing->fabric, i, port, &end); port++)
			if (end.is_host) {
				*place_of(drawing, true, end.number) = (struct place){ at, y + ROW_GAP };
				at += gap;
			}
		*place_of(drawing, false, i) = (struct place){ (first + at - gap) / 2, y };
	}
}

static void rows_place(struct drawing *drawing)
{
	double width = 2 * MARGIN + (double)drawing->hosts * HOST_GAP;

	if (width > drawing->width)
		drawing->width = width;
	for (uint32_t level = 1; level < drawing->levels; level++)
		row_place(drawing, level, MARGIN + TITLE + (drawing->levels - 1 - level) * ROW_GAP);
	leaves_place(drawing, MARGIN + TITLE + (drawing->levels - 1) * ROW_GAP);
	drawing->height = MARGIN + TITLE + (drawing->levels + 1) * ROW_GAP - ROW_GAP / 2.0;
}

static void circle_place(struct drawing *drawing)
{
	double radius = drawing->switches * 22 > 150 ? drawing->switches * 22 : 150;
	uint32_t *seen = calloc(drawing->switches, sizeof(*seen));
	struct muster_fabric_end end;
	struct place centre;

	if (2 * radius + 4 * MARGIN > drawing->width)
		drawing->width = 2 * radius + 4 * MARGIN;
	drawing->height = TITLE + 2 * radius + 4 * MARGIN;
	centre = (struct place){ drawing->width / 2, TITLE + radius + 2 * MARGIN };
	for (uint32_t i = 0; i < drawing->switches; i++) {
		double turn = 2 * M_PI * i / drawing->switches;

		*place_of(drawing, false, i) = (struct place){ centre.x + radius * sin(turn),
							       centre.y - radius * cos(turn) };
	}
	for (uint32_t i = 0; i < drawing->hosts; i++) {
		double turn;

		muster_fabric_uplink(drawing->fabric, i, &end);
		turn = 2 * M_PI * end.number / drawing->switches + 0.12 * (seen ? seen[end.number]++ : 0);
		*place_of(drawing, true, i) = (struct place){ centre.x + (radius + MARGIN) * sin(turn),
							      centre.y - (radius + MARGIN) * cos(turn) };
	}
	free(seen);
}

/* ---- the network ---- */

static void line(const struct drawing *drawing, const char *class, const struct place *from,
		 const struct place *to, double aside)
{
	double dx = to->x - from->x, dy = to->y - from->y, length = sqrt(dx * dx + dy * dy);
	double ax = length > 0 ? -dy / length * aside : 0, ay = length > 0 ? dx / length * aside : 0;

	fprintf(drawing->to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		class, from->x + ax, from->y + ay, to->x + ax, to->y + ay);
}

static void links_draw(const struct drawing *drawing)
{
	struct muster_fabric_end end;

	for (uint32_t i = 0; i < drawing->switches; i++)
		for (uint32_t port = 0; muster_fabric_end(drawing->fabric, i, port, &end); port++)
			if (end.is_host || end.number > i)
				line(drawing, "link", place_of(drawing, false, i),
				     place_of(drawing, end.is_host, end.number), 0);
}

/* Whichever way up is: each tree has its side of a link. */
static void way_draw(const struct drawing *drawing, const char *class, uint32_t a, uint32_t b,
		     double aside)
{
	line(drawing, class, place_of_node(drawing, a < b ? a : b),
	     place_of_node(drawing, a < b ? b : a), aside);
}

static int tree_draw(const struct drawing *drawing, uint32_t tree)
{
	uint32_t *members = calloc(drawing->hosts, sizeof(*members));
	struct muster_fabric_group group;
	const struct place *root;
	char class[16];
	int err = -ENOMEM;

	for (uint32_t i = 0; i < drawing->hosts && members; i++)
		members[i] = i;
	if (members)
		err = muster_fabric_group(drawing->fabric, tree, members, drawing->hosts, &group,
					  drawing->why, drawing->why_len);
	free(members);
	if (err)
		return err;
	snprintf(class, sizeof(class), "tree%" PRIu32, tree);
	for (uint32_t i = 0; i < group.nr_branches; i++)
		for (uint32_t j = 0; j < group.branches[i].group.nr_children; j++)
			way_draw(drawing, class, group.branches[i].group.children[j].node,
				 MUSTER_NODE_AGGREGATION + group.branches[i].number, tree ? 3 : -3);
	root = place_of(drawing, false, group.branches[group.nr_branches - 1].number);
	fprintf(drawing->to, "<circle class=\"%s root\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>\n", class,
		root->x, root->y, 21 + 4 * (int)tree);
	muster_fabric_group_free(&group);
	return 0;
}

static void nodes_draw(const struct drawing *drawing)
{
	for (uint32_t i = 0; i < drawing->switches; i++) {
		const struct place *at = place_of(drawing, false, i);

		fprintf(drawing->to, "<circle class=\"switch\" cx=\"%.1f\" cy=\"%.1f\" r=\"17\"/>\n"
			"<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">s%" PRIu32 "</text>\n", at->x, at->y,
			at->x, at->y + 4, i);
	}
	for (uint32_t i = 0; i < drawing->hosts; i++) {
		const struct place *at = place_of(drawing, true, i);

		fprintf(drawing->to, "<rect class=\"host\" x=\"%.1f\" y=\"%.1f\" width=\"20\" height=\"16\"/>\n"
			"<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">%" PRIu32 "</text>\n", at->x - 10,
			at->y - 8, at->x, at->y + 4, i);
	}
}

/* ---- an operation ---- */

static double line_of(const struct drawing *drawing, double top, uint32_t node)
{
	uint32_t place = node < MUSTER_NODE_AGGREGATION ? node :
			 drawing->hosts + node - MUSTER_NODE_AGGREGATION;

	return top + LINE_GAP * (place + 1);
}

/* Time goes to the right: a packet takes one step for each link. */
static void lines_draw(const struct drawing *drawing, double left, double top, uint32_t end)
{
	double below = top + LINE_GAP * (drawing->hosts + drawing->switches + 2.0);

	for (uint32_t i = 0; i < drawing->hosts + drawing->switches; i++) {
		bool is_host = i < drawing->hosts;
		double y = top + LINE_GAP * (i + 1);

		fprintf(drawing->to, "<text x=\"%.1f\" y=\"%.1f\">%s%" PRIu32 "</text>\n", left, y + 4,
			is_host ? "host " : "s", is_host ? i : i - drawing->hosts);
		line(drawing, "time", &(struct place){ left + LABEL, y },
		     &(struct place){ left + LABEL + end * HOP, y }, 0);
	}
	fprintf(drawing->to, "<text x=\"%.1f\" y=\"%.1f\">links:</text>\n", left, below);
	for (uint32_t t = 0; t <= end; t++)
		fprintf(drawing->to, "<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">%" PRIu32 "</text>\n",
			left + LABEL + t * HOP, below, t);
}

static const char *class_of(const struct switch_play_packet *packet)
{
	return packet->type == MUSTER_PACKET_TREE_UP ? "up" : packet->once ? "once" : "down";
}

/* Return: how wide it is. */
static double play_draw(const struct drawing *drawing, const struct switch_play *play, double left,
			double top, const char *title)
{
	fprintf(drawing->to, "<text class=\"title\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left, top - 8,
		title);
	lines_draw(drawing, left, top, play->end);
	for (uint32_t i = 0; i < play->nr; i++) {
		const struct switch_play_packet *packet = &play->packets[i];
		struct place from = { left + LABEL + (packet->at - 1) * HOP,
				      line_of(drawing, top, packet->from) };
		struct place to = { from.x + HOP, line_of(drawing, top, packet->to) };

		line(drawing, class_of(packet), &from, &to, packet->once ? 2 : 0);
	}
	return LABEL + play->end * HOP + MARGIN;
}

/* ---- the file ---- */

static const char style[] =
	"<style>text{font:11px sans-serif;fill:#222}.title{font-size:15px}.middle{text-anchor:middle}"
	"line{stroke-width:1.2}.link{stroke:#bbb;stroke-width:1}.time{stroke:#ddd}"
	".tree0,.tree1{fill:none;stroke-width:2}.switch{fill:#fdf6e3;stroke:#444}"
	".host{fill:#eaf2f8;stroke:#444}.up{stroke:#2471a3}.down{stroke:#1e8449}"
	".once{stroke:#e67e22;stroke-dasharray:4 3}</style>\n";

static void legend_draw(const struct drawing *drawing, double top)
{
	static const char *const words[][2] = {
		{ "tree0", "tree 0, with its root" }, { "tree1", "tree 1" }, { "up", "contribution" },
		{ "once", "result without a promise" }, { "down", "result, reliable" },
	};

	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		double x = MARGIN / 2.0 + i * 165;

		line(drawing, words[i][0], &(struct place){ x, top }, &(struct place){ x + 18, top }, 0);
		fprintf(drawing->to, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x + 22, top + 4, words[i][1]);
	}
}

/* A file's name may have anything in it. */
static void text_write(const struct drawing *drawing, const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == '&' || *text == '<')
			fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "?", drawing->to);
		else
			fputc(*text, drawing->to);
}

static int all_draw(struct drawing *drawing, const char *name, const struct switch_play *llt,
		    const struct switch_play *sat)
{
	double below = (drawing->hosts + drawing->switches + 3) * LINE_GAP + 2 * MARGIN, left;
	int err = 0;

	fprintf(drawing->to, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\">\n"
		"%s<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", drawing->width,
		drawing->height + below, style);
	for (uint32_t i = 0; i < TREES; i++)
		fprintf(drawing->to, "<style>.tree%" PRIu32 "{stroke:%s}</style>\n", i, tree_colours[i]);
	fprintf(drawing->to, "<text class=\"title\" x=\"%d\" y=\"24\">", MARGIN / 2);
	text_write(drawing, name);
	fprintf(drawing->to, ": %" PRIu32 " hosts, %" PRIu32 " switches</text>\n", drawing->hosts,
		drawing->switches);
	legend_draw(drawing, TITLE);
	links_draw(drawing);
	for (uint32_t i = 0; i < TREES && !err; i++)
		err = tree_draw(drawing, i);
	nodes_draw(drawing);
	left = play_draw(drawing, llt, MARGIN / 2, drawing->height + MARGIN,
			 "an allreduce on the low-latency tree");
	play_draw(drawing, sat, MARGIN / 2 + left, drawing->height + MARGIN,
		  "and one of four packets on the streaming tree");
	fprintf(drawing->to, "</svg>\n");
	return err;
}

static void places_find(struct drawing *drawing, uint32_t hops)
{
	double width = 2 * LABEL + hops * HOP + 3 * MARGIN;

	drawing->width = width > WIDTH_MIN ? width : WIDTH_MIN;
	levels_find(drawing);
	if (drawing->levels == 1 && drawing->switches > 1)
		circle_place(drawing);
	else
		rows_place(drawing);
}

static int drawing_write(struct drawing *drawing, const char *name, const char *file)
{
	struct switch_play llt = { 0 }, sat = { 0 };
	int err = switch_play(drawing->fabric, MUSTER_SWITCH_LLT, 1, &llt, drawing->why, drawing->why_len);

	if (err)
		return err;
	err = switch_play(drawing->fabric, MUSTER_SWITCH_SAT, PULSES, &sat, drawing->why, drawing->why_len);
	if (!err) {
		places_find(drawing, llt.end + sat.end);
		drawing->to = fopen(file, "w");
		err = drawing->to ? all_draw(drawing, name, &llt, &sat) : -errno;
		free(sat.packets);
	}
	if (drawing->to && (ferror(drawing->to) | fclose(drawing->to)) && !err)
		err = -EIO;
	free(llt.packets);
	return err;
}

int switch_draw(const struct muster_fabric *fabric, const char *name, const char *file, char *why,
		size_t why_len)
{
	struct drawing drawing = {
		.fabric = fabric, .hosts = muster_fabric_hosts(fabric),
		.switches = muster_fabric_switches(fabric), .why = why, .why_len = why_len,
	};
	int err = -ENOMEM;

	*why = '\0';
	drawing.level = calloc(drawing.switches, sizeof(*drawing.level));
	drawing.places = calloc(drawing.hosts + drawing.switches, sizeof(*drawing.places));
	if (drawing.level && drawing.places)
		err = drawing_write(&drawing, name, file);
	if (err && !*why)
		strncpy(why, strerror(-err), why_len - 1);
	free(drawing.level);
	free(drawing.places);
	return err;
}
