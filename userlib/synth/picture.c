// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pictures, as SVG: nodes on a circle (switches square), a panel for the topology and
 * one for each step, links as wide as what they carry beside the most that one carries;
 * and for a torus a field of loads.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "show.h"

enum {
	PANEL = 320, MARGIN = 40, COLUMNS = 4, HEAD = 28,
	CELL_W = 40, CELL_H = 20, LABEL_W = 110, TITLE_W = 520,
};

struct panel {
	const struct muster_topology *topology;
	FILE *out;
	double x, y;			/* of its middle */
};

static void place(const struct panel *panel, uint32_t node, double *x, double *y)
{
	double angle = 2 * M_PI * node / panel->topology->nodes - M_PI / 2;
	double radius = PANEL / 2.0 - MARGIN;

	*x = panel->x + radius * cos(angle);
	*y = panel->y + radius * sin(angle);
}

/* A number that lies over lines. */
static void draw_label(FILE *out, double x, double y, uint32_t number)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" text-anchor=\"middle\" "
		"stroke=\"#fff\" stroke-width=\"3\" stroke-linejoin=\"round\">%" PRIu32 "</text>"
		"<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" text-anchor=\"middle\">%" PRIu32
		"</text>\n", x, y + 3.5, number, x, y + 3.5, number);
}

/*
 * A bent arrow, so that both directions can be seen; or, so that no line covers it, the
 * number on it, nearer to where it begins.
 */
static void draw_link(const struct panel *panel, const struct muster_link *link, double width,
		      const char *color, uint32_t number)
{
	double x1, y1, x2, y2, bx, by, len;

	place(panel, link->from, &x1, &y1);
	place(panel, link->to, &x2, &y2);
	len = hypot(x2 - x1, y2 - y1);
	bx = (x1 + x2) / 2 - (y2 - y1) / len * 12;
	by = (y1 + y2) / 2 + (x2 - x1) / len * 12;
	if (number) {
		draw_label(panel->out, 0.49 * x1 + 0.42 * bx + 0.09 * x2,
			   0.49 * y1 + 0.42 * by + 0.09 * y2, number);
		return;
	}
	fprintf(panel->out, "<path d=\"M%.1f %.1f Q%.1f %.1f %.1f %.1f\" stroke=\"%s\" "
		"stroke-width=\"%.1f\" fill=\"none\" marker-end=\"url(#a)\"/>\n", x1, y1, bx, by,
		x2 - (x2 - x1) / len * 13, y2 - (y2 - y1) / len * 13, color, width);
}

static void draw_nodes(const struct panel *panel, const char *title)
{
	for (uint32_t node = 0; node < panel->topology->nodes; node++) {
		double x, y;

		place(panel, node, &x, &y);
		fprintf(panel->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"22\" "
			"rx=\"%d\" fill=\"#fff\" stroke=\"#222\"/><text x=\"%.1f\" y=\"%.1f\" "
			"text-anchor=\"middle\" font-size=\"11\">%" PRIu32 "</text>\n", x - 11,
			y - 11, panel->topology->is_switch[node] ? 2 : 11, x, y + 4, node);
	}
	fprintf(panel->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"13\">"
		"%s</text>\n", panel->x, panel->y - PANEL / 2.0 + 14, title);
}

static double width_of(uint32_t load, uint32_t most)
{
	return 0.5 + 2.5 * load / most;
}

static uint32_t most_of(const struct muster_topology *topology)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < topology->nr_limits; i++)
		if (topology->limits[i].bandwidth > most)
			most = topology->limits[i].bandwidth;
	return most;
}

static void draw_topology(const struct panel *panel)
{
	const struct muster_topology *topology = panel->topology;
	uint32_t most = most_of(topology);

	for (uint32_t i = 0; i < topology->nr_limits; i++)
		for (uint32_t j = 0; j < topology->limits[i].nr_links; j++)
			draw_link(panel, &topology->links[topology->limits[i].links[j]],
				  width_of(topology->limits[i].bandwidth, most),
				  topology->limits[i].nr_links > 1 ? "#c80" : "#999", 0);
	draw_nodes(panel, topology->name);
}

/* most: that a link carries in any step. */
static void draw_step(const struct panel *panel, const uint32_t *loads, uint32_t step,
		      uint32_t most)
{
	uint32_t rounds = muster_synth_rounds(panel->topology, loads);
	char title[64];

	for (int numbers = 0; numbers < 2; numbers++)
		for (uint32_t i = 0; i < panel->topology->nr_links; i++)
			if (loads[i])
				draw_link(panel, &panel->topology->links[i],
					  width_of(loads[i], most), "#06c", numbers ? loads[i] : 0);
	snprintf(title, sizeof(title), "step %" PRIu32 ": %" PRIu32 " round%s", step, rounds,
		 rounds == 1 ? "" : "s");
	draw_nodes(panel, title);
}

static void begin(FILE *out, unsigned int width, unsigned int height)
{
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"font-family=\"sans-serif\">\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" "
		"refX=\"6\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
		"markerUnits=\"userSpaceOnUse\" "
		"orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#333\"/></marker></defs>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", width, height);
}

static int end(FILE *out)
{
	fprintf(out, "</svg>\n");
	return fflush(out) || ferror(out) ? -EIO : 0;
}

static void draw_head(const struct muster_schedule *schedule, FILE *out)
{
	fprintf(out, "<text x=\"8\" y=\"18\" font-size=\"13\">%s: %s, %" PRIu32 " chunks, %" PRIu32
		" steps. On a link: its chunks in the step</text>\n", schedule->name,
		muster_coll_name(schedule->coll), schedule->chunks, schedule->steps);
}

int muster_show_picture(const struct muster_schedule *schedule,
			const struct muster_topology *topology, FILE *out, char *why,
			size_t why_len)
{
	uint32_t panels = schedule->steps + 1, columns = panels < COLUMNS ? panels : COLUMNS;
	uint32_t *loads, most = 1;
	int err = muster_synth_loads(schedule, topology, &loads, why, why_len);

	if (err)
		return err;
	for (size_t i = 0; i < (size_t)schedule->steps * topology->nr_links; i++)
		most = loads[i] > most ? loads[i] : most;
	begin(out, columns * PANEL, HEAD + (panels + columns - 1) / columns * PANEL);
	draw_head(schedule, out);
	for (uint32_t i = 0; i < panels; i++) {
		const struct panel panel = {
			.topology = topology, .out = out,
			.x = (i % columns + 0.5) * PANEL, .y = HEAD + (i / columns + 0.5) * PANEL,
		};

		if (i)
			draw_step(&panel, loads + (size_t)(i - 1) * topology->nr_links, i - 1,
				  most);
		else
			draw_topology(&panel);
	}
	free(loads);
	return end(out);
}

/* ---- the field of a torus ----------------------------------------------------------- */

/* most: of the step's channels; a step may have nothing to do. */
static void draw_cell(FILE *out, uint32_t step, uint32_t channel, double load, double most)
{
	double share = most > 0 ? load / most : 0;
	int shade = 255 - (int)(share * 110);
	unsigned int x = LABEL_W + step * CELL_W, y = MARGIN + channel * CELL_H;

	fprintf(out, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,255)\" "
		"stroke=\"#ddd\"/><text x=\"%u\" y=\"%u\" font-size=\"9\" text-anchor=\"middle\">"
		"%.*g</text>\n", x, y, CELL_W, CELL_H, shade, shade, x + CELL_W / 2, y + 13, load < 1 ? 2 : 4, load);
}

int muster_show_torus(const struct muster_torus_plan *plan,
		      const struct muster_torus_report *report, FILE *out)
{
	uint32_t channels = 2 * plan->torus.rings;
	uint32_t width = LABEL_W + plan->steps * CELL_W + MARGIN;

	begin(out, width > TITLE_W ? width : TITLE_W, MARGIN + channels * CELL_H + MARGIN);
	fprintf(out, "<text x=\"8\" y=\"16\" font-size=\"10\">data by channel and step; %.1f %% of "
		"the receive bound; darker: nearer to the step's busiest</text>\n",
		100 * report->efficiency);
	for (uint32_t step = 0; step < plan->steps; step++)
		fprintf(out, "<text x=\"%u\" y=\"%d\" font-size=\"10\" text-anchor=\"middle\">%s%"
			PRIu32 "</text>\n", LABEL_W + step * CELL_W + CELL_W / 2, MARGIN - 5,
			step ? "" : "step ", step + 1);
	for (uint32_t c = 0; c < channels; c++) {
		fprintf(out, "<text x=\"8\" y=\"%u\" font-size=\"10\">ring %" PRIu32 " (of %" PRIu32
			") %s</text>\n", MARGIN + c * CELL_H + 14, c / 2,
			plan->torus.size[c / 2], c & 1 ? "down" : "up");
		for (uint32_t step = 0; step < plan->steps; step++)
			draw_cell(out, step, c,
				  (double)report->load[step * channels + c] / plan->parts,
				  (double)report->busiest[step] / plan->parts);
	}
	return end(out);
}
