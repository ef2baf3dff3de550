// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The picture of --tune: a panel a collective, time by size. Each candidate is a thin line; the
 * library's choice is dashed, and what stands in the file is thick, with its model.
 */
#include "perf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL_WIDTH = 760, PANEL_HEIGHT = 480, COLOURS = 8 };

struct perf_tune_plot {
	const struct perf *perf;
	const char *file;
	FILE *data, *panels;		/* what is drawn, and how */
	char *data_text, *panels_text;
	size_t data_bytes, panels_bytes;
	uint32_t nr, curves, colours;
};

struct perf_tune_plot *perf_tune_plot_open(const struct perf *perf, const char *file)
{
	struct perf_tune_plot *plot = calloc(1, sizeof(*plot));

	if (!plot)
		perf_die("no memory for a picture");
	perf_gnuplot_check(file);
	plot->perf = perf;
	plot->file = file;
	plot->data = open_memstream(&plot->data_text, &plot->data_bytes);
	plot->panels = open_memstream(&plot->panels_text, &plot->panels_bytes);
	if (!plot->data || !plot->panels)
		perf_die("no memory for a picture");
	return plot;
}

void perf_tune_plot_collective(struct perf_tune_plot *plot, enum perf_collective collective)
{
	bool barrier = collective == PERF_BARRIER;

	plot->nr++;
	plot->colours = 0;
	fprintf(plot->panels, "\nset title '%s' noenhanced\nset xrange [%g:%g]\nplot 1/0 notitle",
		perf_kinds[collective].name,
		barrier ? 0.9 : (double)plot->perf->options->bytes_min / 2,
		barrier ? 1.1 : (double)plot->perf->options->bytes_max * 2);
}

/* Bytes (a barrier's 0 cannot stand on a logarithmic axis), us, us where it was chosen, its model's. */
static bool write_data(struct perf_tune_plot *plot, const struct perf_tune_curve *curve)
{
	bool chosen = false;

	fprintf(plot->data, "$curve%" PRIu32 " << EOD\n", ++plot->curves);
	for (uint32_t i = 0; i < curve->nr; i++) {
		if (!(curve->us[i] > 0))
			continue;
		fprintf(plot->data, "%" PRIu64 " %g ", curve->bytes[i] ? curve->bytes[i] : 1, curve->us[i]);
		if (curve->chosen[i])
			fprintf(plot->data, "%g %g\n", curve->us[i],
				perf_model_us(curve->model, curve->bytes[i]));
		else
			fprintf(plot->data, "NaN NaN\n");
		chosen = chosen || curve->chosen[i];
	}
	fprintf(plot->data, "EOD\n");
	return chosen;
}

void perf_tune_plot_curve(struct perf_tune_plot *plot, const struct perf_tune_curve *curve)
{
	static const char *const colours[COLOURS] = {
		"#0060ad", "#dd181f", "#2a9d3a", "#8a3fb5", "#e07b00", "#00939c", "#b5306f", "#6b6b00",
	};
	const char *colour = colours[plot->colours % COLOURS];
	bool chosen = write_data(plot, curve);

	fprintf(plot->panels, ", $curve%" PRIu32 " using 1:2 with lines lc rgb '%s'%s %s", plot->curves,
		curve->own ? "#000000" : "#cccccc", curve->own ? " dt 2" : "",
		curve->own ? "title 'as without tuning'" : "notitle");
	if (!chosen)
		return;
	fprintf(plot->panels, ", '' using 1:3 with linespoints pt 7 lw 3 lc rgb '%s' title '%s' noenhanced, "
		"'' using 1:4 with lines dt 3 lw 2 lc rgb '%s' notitle", colour, curve->name, colour);
	plot->colours++;
}

void perf_tune_plot_close(struct perf_tune_plot *plot)
{
	uint32_t columns = 1, rows;
	char *text;
	size_t bytes;
	FILE *script = open_memstream(&text, &bytes);

	while (columns * columns < plot->nr)
		columns++;
	rows = (plot->nr + columns - 1) / columns;
	if (!script || fclose(plot->data) || fclose(plot->panels))
		perf_die("no memory for a picture");
	perf_gnuplot_terminal(script, plot->file, columns * PANEL_WIDTH, rows * PANEL_HEIGHT + 40);
	fprintf(script, "%sset multiplot layout %" PRIu32 ",%" PRIu32
		" title '%" PRIu32 " ranks: what was chosen (thick), its model (dotted), all candidates; "
		"us by bytes'\n", plot->data_text, rows, columns, plot->perf->size);
	fprintf(script, "set grid\nset key left top\nset logscale x 2\nset logscale y\n"
		"set format x '%%.0b%%B'\nset format y '%%g'\n%s\nunset multiplot\n", plot->panels_text);
	perf_gnuplot_run(script, &text, &bytes, plot->file);
	printf("# %s is drawn\n", plot->file);
	free(plot->data_text);
	free(plot->panels_text);
	free(plot);
}
