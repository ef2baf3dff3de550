// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_perf --plot: a picture by gnuplot, a panel a collective, time by size. It is
 * given one script, with the figures in it, which is written as they come.
 */
#include "perf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL_WIDTH = 640, PANEL_HEIGHT = 420, NAME_BYTES = 4096 };

struct perf_plot {
	const struct perf *perf;
	char file[NAME_BYTES];
	FILE *script;
	char *text;
	size_t bytes;
	enum perf_collective collectives[PERF_COLLECTIVES];
	uint32_t nr;
};

void perf_gnuplot_check(const char *file)
{
	FILE *picture;

	if (system("command -v gnuplot >/dev/null"))
		perf_die("--plot: gnuplot is not installed");
	if (strlen(file) >= NAME_BYTES || strchr(file, '\''))
		perf_die("--plot: a name without ' of less than %d bytes, not %s", NAME_BYTES, file);
	picture = fopen(file, "we");
	if (!picture)
		perf_die("cannot write %s: %s", file, strerror(errno));
	fclose(picture);
}

void perf_gnuplot_terminal(FILE *script, const char *file, uint32_t width, uint32_t height)
{
	size_t len = strlen(file);
	bool svg = len > 4 && !strcmp(file + len - 4, ".svg");

	fprintf(script, "set terminal %s size %" PRIu32 ",%" PRIu32 "\nset output '%s'\n",
		svg ? "svg background rgb 'white'" : "pngcairo", width, height, file);
}

void perf_gnuplot_run(FILE *script, char **text, const size_t *bytes, const char *file)
{
	FILE *gnuplot;
	bool written;

	if (fclose(script))
		perf_die("no memory for a picture");
	gnuplot = popen("gnuplot", "we");
	written = gnuplot && fwrite(*text, 1, *bytes, gnuplot) == *bytes;
	if (!gnuplot || pclose(gnuplot) || !written)
		perf_die("gnuplot could not draw %s", file);
	free(*text);
}

struct perf_plot *perf_plot_open(const struct perf *perf, const char *file)
{
	struct perf_plot *plot = calloc(1, sizeof(*plot));

	if (!plot)
		perf_die("no memory for a picture");
	perf_gnuplot_check(file);
	plot->perf = perf;
	strcpy(plot->file, file);
	plot->script = open_memstream(&plot->text, &plot->bytes);
	if (!plot->script)
		perf_die("no memory for a picture");
	return plot;
}

static void end_data(struct perf_plot *plot)
{
	if (plot->nr)
		fprintf(plot->script, "EOD\n");
}

void perf_plot_collective(struct perf_plot *plot, enum perf_collective collective)
{
	end_data(plot);
	plot->collectives[plot->nr] = collective;
	fprintf(plot->script, "$data%" PRIu32 " << EOD\n", plot->nr++);
}

/* Bytes (a barrier's 0 cannot stand on a logarithmic axis), then median and p99 by path. */
void perf_plot_add(struct perf_plot *plot, const struct perf_result *result)
{
	fprintf(plot->script, "%" PRIu64, result->bytes ? result->bytes : 1);
	for (enum perf_path path = 0; path < PERF_PATHS; path++)
		fprintf(plot->script, " %g %g", result->times[path].p50_us,
			result->times[path].p99_us);
	fprintf(plot->script, "\n");
}

static void write_panel(const struct perf_plot *plot, uint32_t panel)
{
	static const char *const colours[PERF_PATHS] = { "#0060ad", "#dd181f" };
	const struct perf_options *options = plot->perf->options;
	bool barrier = plot->collectives[panel] == PERF_BARRIER;
	const char *comma = "";

	fprintf(plot->script, "set title '%s' noenhanced\nset xrange [%g:%g]\nplot",
		perf_kinds[plot->collectives[panel]].name,
		barrier ? 0.9 : (double)options->bytes_min / 2,
		barrier ? 1.1 : (double)options->bytes_max * 2);
	for (enum perf_path path = 0; path < PERF_PATHS; path++) {
		if (!options->paths[path])
			continue;
		fprintf(plot->script, "%s $data%" PRIu32 " using 1:%d with linespoints lw 2 lc rgb '%s' "
			"title '%s, median', '' using 1:%d with lines dt 2 lc rgb '%s' title '%s, p99'",
			comma, panel, 2 + 2 * path, colours[path], perf_path_names[path],
			3 + 2 * path, colours[path], perf_path_names[path]);
		comma = ",";
	}
	fprintf(plot->script, "\n");
}

static void write_head(const struct perf_plot *plot)
{
	const struct perf_options *options = plot->perf->options;
	uint32_t columns = 1, rows;

	while (columns * columns < plot->nr)
		columns++;
	rows = (plot->nr + columns - 1) / columns;
	perf_gnuplot_terminal(plot->script, plot->file, columns * PANEL_WIDTH, rows * PANEL_HEIGHT + 40);
	fprintf(plot->script, "set multiplot layout %" PRIu32 ",%" PRIu32 " title '%" PRIu32 " ranks, "
		"%s; us of the slowest rank by bytes'\n", rows, columns, plot->perf->size,
		perf_type_name(options->type));
	fprintf(plot->script, "set grid\nset key left top\nset logscale x 2\nset logscale y\n"
		"set format x '%%.0b%%B'\nset format y '%%g'\n");
}

void perf_plot_close(struct perf_plot *plot)
{
	end_data(plot);
	write_head(plot);
	for (uint32_t i = 0; i < plot->nr; i++)
		write_panel(plot, i);
	fprintf(plot->script, "unset multiplot\n");
	perf_gnuplot_run(plot->script, &plot->text, &plot->bytes, plot->file);
	if (!plot->perf->options->json)
		printf("# %s is drawn\n", plot->file);
	free(plot);
}
