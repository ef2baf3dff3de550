/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of muster_perf: options (muster_perf.c), the collectives (perf_collectives.c),
 * one measurement (perf_measure.c), what is in the buffers (perf_data.c), what is printed
 * (perf_report.c) and drawn (perf_plot.c), the comparison with the limits of the machine
 * (perf_limits.c) and tuning (perf_tune.c), with models (perf_fit.c) and a picture (perf_tune_plot.c). Every rank runs all of it in step; rank 0 prints.
 */
#ifndef MUSTER_PERF_H
#define MUSTER_PERF_H

#include <jansson.h>
#include <muster.h>
#include <stdio.h>

enum perf_limit {
	PERF_SAMPLES_MAX = 10000,	/* by size and path */
	PERF_BATCH_MAX = 64,		/* operations of one sample */
	PERF_SCHEDULES_MAX = 16,	/* files beside the algorithms by name */
	PERF_NEIGHBOURS = 2,		/* of each rank, on a ring */
};

enum perf_collective {
	PERF_ALLREDUCE,
	PERF_REDUCE,
	PERF_BROADCAST,
	PERF_BARRIER,
	PERF_ALLGATHER,
	PERF_REDUCE_SCATTER_BLOCK,
	PERF_ALLTOALL,
	PERF_GATHER,
	PERF_SCATTER,
	PERF_SCAN,
	PERF_EXSCAN,
	PERF_ALLGATHERV,
	PERF_REDUCE_SCATTER,
	PERF_GATHERV,
	PERF_SCATTERV,
	PERF_ALLTOALLV,
	PERF_ALLTOALLW,
	PERF_NEIGHBOUR_ALLGATHER,
	PERF_NEIGHBOUR_ALLTOALL,
	PERF_NEIGHBOUR_ALLGATHERV,
	PERF_NEIGHBOUR_ALLTOALLV,
	PERF_NEIGHBOUR_ALLTOALLW,
	PERF_COLLECTIVES,
};

/* The two paths that are measured side by side. */
enum perf_path {
	PERF_NIC,
	PERF_HOST,
	PERF_PATHS,
};

struct perf_options {
	bool collectives[PERF_COLLECTIVES];
	bool paths[PERF_PATHS];
	uint64_t bytes_min;
	uint64_t bytes_max;
	uint32_t samples_max;
	uint32_t warmup;
	uint32_t batch;			/* operations a sample; 0: as many as are fast */
	double seconds;			/* by size */
	enum muster_type type;
	enum muster_op op;
	uint32_t root;
	bool plain;			/* buffers by malloc() */
	bool validate;
	bool json;
	bool full;			/* OSU's columns, of one path */
	bool tail;			/* and percentiles */
	double skew_us;			/* a rank calls so much later; 0: none */
	uint32_t late;			/* that rank */
	const char *plot;		/* picture to be drawn; NULL: none */
	bool against_limits;
	const char *output;		/* folder for the files of against_limits */
	const char *algorithm;		/* as MUSTER_SCHEDULE; NULL: that, or the library's choice */
	const char *tune;		/* file to be written; NULL: none */
	const char *schedules[PERF_SCHEDULES_MAX];	/* paths of candidates */
	uint32_t nr_schedules;
};

/* The job, and the buffers that all sizes use. */
struct perf {
	const struct perf_options *options;
	struct muster *job;
	struct muster_comm *world;
	uint32_t rank;
	uint32_t size;
	bool one_clock;			/* all ranks read the same (perf_clocks_compare()) */
	void *in;
	uint32_t nr_counts;		/* entries of these, which are of blocks */
	uint64_t *counts;
	uint64_t *displs;
	enum muster_type *types;
	void *out[PERF_PATHS];
	double *samples[PERF_PATHS];	/* microseconds an operation, the slowest rank's */
};

/* Of the slowest rank, but for rank_*: means of each rank's own time. */
struct perf_times {
	uint32_t samples;
	double avg_us;
	double min_us;
	double p50_us;
	double p90_us;
	double p99_us;
	double p999_us;
	double max_us;
	double rank_avg_us;
	double rank_min_us;
	double rank_max_us;
	struct muster_op_info info;
	char why[224];			/* its why is that of the next operation by now */
};

struct perf_result {
	enum perf_collective collective;
	uint64_t bytes;			/* of a block, where there are blocks */
	uint32_t batch;			/* operations a sample */
	struct perf_times times[PERF_PATHS];
	bool equal;			/* both paths gave the same bits, on every rank */
	bool own_order;			/* switches or bumps said that they round in their own order */
	bool valid;			/* and what was computed apart from both (-c) */
};

/* How many blocks a buffer has. */
enum perf_blocks {
	PERF_BLOCKS_ONE,
	PERF_BLOCKS_RANKS,
	PERF_BLOCKS_NEIGHBOURS,
};

/* What is to be known of a collective (perf_collectives.c has the table). */
struct perf_kind {
	const char *name;
	enum perf_blocks in_blocks;
	enum perf_blocks out_blocks;
	bool one_way;			/* a rank may run ahead of the others */
	bool at_root;			/* the result is the root's alone */
	bool rooted;			/* one rank is its root */
	bool combines;			/* by an operation */
	bool by_counts;			/* called with a count for each rank, here equal ones */
	/* Blocking; count is that of a block. */
	int (*operate)(const struct perf *perf, uint64_t count, void *out);
};

extern const struct perf_kind perf_kinds[PERF_COLLECTIVES];
extern const char *const perf_path_names[PERF_PATHS];

/** perf_die() - say what is wrong and exit with 1; muster-run ends the others. */
void perf_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/** perf_check() - the same with the library's sentence, unless ret is 0. */
void perf_check(const struct perf *perf, int ret, const char *what);

/* ---- perf_collectives.c ------------------------------------------------------ */

/** perf_collectives_open() - what calls need beside buffers. */
void perf_collectives_open(struct perf *perf);
void perf_collectives_close(struct perf *perf);
uint64_t perf_blocks(const struct perf *perf, enum perf_blocks blocks);
/** perf_blocks_max() - of the larger of its two buffers. */
uint64_t perf_blocks_max(const struct perf *perf, enum perf_collective collective);
/** perf_neighbour() - a rank on the ring: 0: the one before, 1: the one behind. */
uint32_t perf_neighbour(const struct perf *perf, uint32_t which);

/* ---- perf_measure.c --------------------------------------------------------- */

double perf_now_us(void);
/** perf_clocks_compare() - find out whether all ranks read one clock: then they enter operations at one time. */
void perf_clocks_compare(struct perf *perf);

/** perf_path_choose() - all operations from here on take this path or fail. */
void perf_path_choose(const struct perf *perf, enum perf_path path);

/** perf_operate() - one operation into out, and make sure of the path that it took. */
void perf_operate(const struct perf *perf, enum perf_collective collective, uint64_t bytes,
		  enum perf_path path);

/** perf_max() - the largest of all ranks' values, on every rank. */
double perf_max(const struct perf *perf, double value);

/** perf_measure() - one size of one collective, on all chosen paths. */
void perf_measure(struct perf *perf, enum perf_collective collective, uint64_t bytes,
		  struct perf_result *result);

/* ---- perf_data.c ------------------------------------------------------------ */

size_t perf_type_bytes(enum muster_type type);
const char *perf_type_name(enum muster_type type);
const char *perf_op_name(enum muster_op op);
/** Return: the type or operation of that name, 0 if there is none. */
enum muster_type perf_type_read(const char *name);
enum muster_op perf_op_read(const char *name);

/** perf_fill() - this rank's input: values of all sizes, whose sum depends on the order. */
void perf_fill(const struct perf *perf, void *data, uint64_t bytes);
/** perf_fill_simple() - this rank's input: small numbers, exact in every order. */
void perf_fill_simple(const struct perf *perf, void *data, uint64_t bytes);
/** perf_is_right() - is data the collective's result of perf_fill_simple()? bytes: of a block. */
bool perf_is_right(const struct perf *perf, enum perf_collective collective, const void *data,
		   uint64_t bytes);

/* ---- perf_report.c ---------------------------------------------------------- */

/** perf_header() - versions, ranks, device and CPU, as text lines and as JSON. */
void perf_header(const struct perf *perf);
json_t *perf_header_json(const struct perf *perf);
void perf_columns(const struct perf *perf, enum perf_collective collective);
void perf_row(const struct perf *perf, const struct perf_result *result);
json_t *perf_result_json(const struct perf *perf, const struct perf_result *result);

/* ---- perf_plot.c ------------------------------------------------------------ */

struct perf_plot;

/** perf_plot_open() - of rank 0: a picture to be drawn into file, PNG or SVG by its name. */
struct perf_plot *perf_plot_open(const struct perf *perf, const char *file);
/** perf_plot_collective() - what perf_plot_add() brings from here on is of that one. */
void perf_plot_collective(struct perf_plot *plot, enum perf_collective collective);
void perf_plot_add(struct perf_plot *plot, const struct perf_result *result);
/** perf_plot_close() - draw it. */
void perf_plot_close(struct perf_plot *plot);
/** perf_gnuplot_check() - end with a sentence if file cannot be drawn. */
void perf_gnuplot_check(const char *file);
/** perf_gnuplot_terminal() - what a script for that file begins with. */
void perf_gnuplot_terminal(FILE *script, const char *file, uint32_t width, uint32_t height);
/** perf_gnuplot_run() - a script, which is closed, and its text freed. */
void perf_gnuplot_run(FILE *script, char **text, const size_t *bytes, const char *file);

/* ---- perf_fit.c --------------------------------------------------------------- */

struct perf_piece {
	double us;
	double us_per_byte;
};

struct perf_model {
	uint64_t short_max;		/* bytes; above is another piece than below */
	struct perf_piece below, above;
	double off;			/* from what was measured, in relation to it: root of the mean square */
};

/** perf_model_fit() - of nr measurements, by rising size. */
void perf_model_fit(struct perf_model *model, const uint64_t *bytes, const double *us, uint32_t nr);
double perf_model_us(const struct perf_model *model, uint64_t bytes);

/* ---- perf_limits.c ---------------------------------------------------------- */

/** perf_against_limits() - what muster_perf --against-limits does. */
void perf_against_limits(struct perf *perf);

/* ---- perf_tune.c ------------------------------------------------------------ */

/** perf_tune() - what muster_perf --tune does. */
void perf_tune(struct perf *perf);

/* ---- perf_tune_plot.c ----------------------------------------------------------- */

struct perf_tune_plot;

/* One candidate's times by size (0: not measured), and whether it was chosen. */
struct perf_tune_curve {
	const char *name;
	const uint64_t *bytes;
	const double *us;
	const bool *chosen;
	uint32_t nr;
	const struct perf_model *model;
	bool own;			/* the library's choice */
};

struct perf_tune_plot *perf_tune_plot_open(const struct perf *perf, const char *file);
void perf_tune_plot_collective(struct perf_tune_plot *plot, enum perf_collective collective);
void perf_tune_plot_curve(struct perf_tune_plot *plot, const struct perf_tune_curve *curve);
void perf_tune_plot_close(struct perf_tune_plot *plot);

#endif /* MUSTER_PERF_H */
