// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-synth: makes schedules for topologies and says what is proved about them.
 * Options, and the commands that need little more than the library.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "version.h"
#include "baseline.h"
#include "command.h"
#include "shape.h"
#include "show.h"

static const char help[] =
	"Usage: muster-synth COMMAND [OPTION]...\n"
	"  solve CHUNKS STEPS ROUNDS   one schedule of this cost, or the proof that there is none\n"
	"  pareto                      the frontier from fewest steps to fewest rounds per chunk\n"
	"  show FILE                   a schedule (text or JSON) in another form\n"
	"  check FILE                  prove a schedule, and count its cost on a topology\n"
	"  baseline                    schedules by hand: rings, pipelined (dgx1, z52)\n"
	"  topology                    the topology as a file, and the bounds that it sets\n"
	"  tables                      the tables of the SCCL paper, found again\n"
	"  nodes NODES PER-NODE [NAME] inside of each node, across nodes by that algorithm, inside again\n"
	"  torus SHAPE                 allgather on a torus (6x6x6, 2.10x2.10x2.10)\n"
	"Options:\n"
	"  -t, --topology=WHICH   dgx1, z52, ring:N, line:N, star:N, switch:N, full:N, hypercube:D,\n"
	"                         mesh:AxB, torus:AxB, fat-tree:HxLxS, switch-torus:HxAxB, or a file\n"
	"  -c, --collective=NAME  broadcast, reduce, allreduce, reduce-scatter, allgather,\n"
	"                         gather, scatter, alltoall, scan\n"
	"  -r, --root=RANK        where there is one (0)\n"
	"  -f, --form=FORM        schedule (what the library loads), sends, json, picture (SVG)\n"
	"      --fit              split steps that are more than the NIC takes at once\n"
	"  -o, --output=FILE      instead of standard output; pareto: a folder\n"
	"      --conditions=FILE  solve: places of chunks instead of a collective\n"
	"  -k, --extra-rounds=K   pareto: at most K more rounds than steps (2)\n"
	"      --steps-max=S      pareto: no more steps than these\n"
	"      --chunks-max=C     pareto: no more chunks than these\n"
	"  -m, --pipelined=M      baseline: so many shares of a broadcast or reduce (2)\n"
	"      --cpu=SECONDS      of CPU time at most for each solve (120)\n"
	"  -j, --jobs=N           attempts at a time (the processors at hand)\n"
	"      --seed=N           of the solver\n"
	"      --seeds=N          tables: median of so many seeds (1)\n"
	"      --compare          tables: beside the plain encoding\n"
	"      --cache=FOLDER     keep what is solved, and go on from it\n"
	"      --direct           solve: what combines as it is, not by inversion\n"
	"      --plain            the paper's encoding C1 to C6, and nothing else\n"
	"      --full             the quick encoding's full formula, and nothing else\n"
	"      --balanced         torus: all channels alike, not the paper's blocks\n"
	"      --no-split         torus: no datum is split\n"
	"      --datum=BYTES      torus: of a node (28)\n"
	"      --buffer=BYTES     torus: that a node may hold (4194304)\n"
	"  -h, --help  -V, --version\n";

enum {
	CONDITIONS = 256, STEPS_MAX, CHUNKS_MAX, CPU, SEED, SEEDS, COMPARE, CACHE, PLAIN, FULL,
	BALANCED, NO_SPLIT, DATUM, BUFFER, FIT, DIRECT,
};

enum { CHUNKS = MUSTER_INSTANCE_CHUNKS_MAX, STEPS = MUSTER_INSTANCE_STEPS_MAX };

static const struct option options[] = {
	{ "topology", required_argument, NULL, 't' },
	{ "collective", required_argument, NULL, 'c' },
	{ "root", required_argument, NULL, 'r' },
	{ "form", required_argument, NULL, 'f' },
	{ "output", required_argument, NULL, 'o' },
	{ "conditions", required_argument, NULL, CONDITIONS },
	{ "extra-rounds", required_argument, NULL, 'k' },
	{ "steps-max", required_argument, NULL, STEPS_MAX },
	{ "chunks-max", required_argument, NULL, CHUNKS_MAX },
	{ "pipelined", required_argument, NULL, 'm' },
	{ "cpu", required_argument, NULL, CPU },
	{ "jobs", required_argument, NULL, 'j' },
	{ "seed", required_argument, NULL, SEED },
	{ "seeds", required_argument, NULL, SEEDS },
	{ "compare", no_argument, NULL, COMPARE },
	{ "cache", required_argument, NULL, CACHE },
	{ "direct", no_argument, NULL, DIRECT },
	{ "plain", no_argument, NULL, PLAIN },
	{ "full", no_argument, NULL, FULL },
	{ "balanced", no_argument, NULL, BALANCED },
	{ "no-split", no_argument, NULL, NO_SPLIT },
	{ "datum", required_argument, NULL, DATUM },
	{ "buffer", required_argument, NULL, BUFFER },
	{ "fit", no_argument, NULL, FIT },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

void die(int status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "muster-synth: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(status);
}

uint32_t number(const char *what, const char *word, uint32_t max)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(word, &end, 10);
	if (errno || *end || *word < '0' || *word > '9' || value > max)
		die(2, "%s \"%s\" is not a number from 0 to %" PRIu32, what, word, max);
	return value;
}

static enum muster_coll collective(const char *name)
{
	for (enum muster_coll coll = MUSTER_COLL_BARRIER + 1; coll < MUSTER_COLL_CUSTOM; coll++)
		if (!strcmp(muster_coll_name(coll), name))
			return coll;
	die(2, "there is no collective \"%s\" to synthesize; see --help", name);
}

static void set(struct settings *s, int option)
{
	switch (option) {
	case 't': s->topology_name = optarg; break;
	case 'c': s->request.coll = collective(optarg); break;
	case 'r': s->request.root = number("root", optarg, MUSTER_TOPOLOGY_NODES_MAX); break;
	case 'f': s->form = optarg; break;
	case 'o': s->output = optarg; break;
	case CONDITIONS: s->conditions = optarg; break;
	case 'k': s->extra_rounds = number("k", optarg, 64); break;
	case STEPS_MAX: s->steps_max = number("steps", optarg, STEPS); break;
	case CHUNKS_MAX: s->chunks_max = number("chunks", optarg, CHUNKS); break;
	case 'm': s->pipelined = number("shares", optarg, 4096); break;
	case CPU: s->request.solve.cpu_seconds = number("seconds", optarg, 1000000); break;
	case 'j': s->request.solve.jobs = number("jobs", optarg, 64); break;
	case SEED: s->request.solve.seed = number("seed", optarg, UINT32_MAX); break;
	case SEEDS: s->seeds = number("seeds", optarg, 99); break;
	case COMPARE: s->compare = true; break;
	case CACHE: s->request.folder = optarg; break;
	case DIRECT: s->request.direct = true; break;
	case PLAIN: s->request.solve.plain = true; break;
	case FULL: s->request.solve.full_only = true; break;
	case BALANCED: s->balanced = true; break;
	case FIT: s->fit = true; break;
	case NO_SPLIT: s->no_split = true; break;
	case DATUM: s->datum_bytes = number("bytes", optarg, UINT32_MAX); break;
	case BUFFER: s->buffer_bytes = number("bytes", optarg, UINT32_MAX); break;
	case 'h':
		fputs(help, stdout);
		exit(0);
	case 'V':
		puts("muster-synth " MUSTER_VERSION);
		exit(0);
	default:
		exit(2);
	}
}

FILE *open_output(const struct settings *settings)
{
	FILE *out = settings->output ? fopen(settings->output, "we") : stdout;

	if (!out)
		die(1, "%s: %s", settings->output, strerror(errno));
	return out;
}

void close_output(const struct settings *settings, FILE *out)
{
	if (fflush(out) || ferror(out) || (out != stdout && fclose(out)))
		die(1, "%s: %s", settings->output ? settings->output : "standard output",
		    strerror(errno));
}

static void need_topology(const struct settings *s)
{
	if (!s->topology)
		die(2, "which topology? --topology=WHICH");
}

static struct muster_schedule *fit(const struct muster_schedule *schedule)
{
	struct muster_schedule *fitted;
	char why[300] = "no memory";

	if (muster_synth_fit(schedule, &fitted, why, sizeof(why)))
		die(1, "%s", why);
	return fitted;
}

void write_schedule(const struct settings *s, const struct muster_schedule *given)
{
	struct muster_schedule *fitted = s->fit ? fit(given) : NULL;
	const struct muster_schedule *schedule = fitted ? fitted : given;
	FILE *out = open_output(s);
	char why[300] = "it cannot be written";
	int err;

	if (!strcmp(s->form, "schedule")) {
		err = muster_schedule_write(schedule, out);
	} else if (!strcmp(s->form, "json")) {
		err = muster_show_json(schedule, out);
	} else {
		need_topology(s);
		if (!strcmp(s->form, "sends"))
			err = muster_show_sends(schedule, s->topology, out, why, sizeof(why));
		else
			err = muster_show_picture(schedule, s->topology, out, why, sizeof(why));
	}
	if (err)
		die(1, "%s", why);
	close_output(s, out);
	muster_schedule_free(fitted);
}

static int status_of(enum muster_proof proof)
{
	return proof == MUSTER_PROOF_FOUND ? 0 : proof == MUSTER_PROOF_REFUTED ? 3 : 4;
}

/* ---- commands --------------------------------------------------------------------- */

static struct muster_schedule *read_conditions(const struct settings *s)
{
	FILE *in = fopen(s->conditions, "re");
	struct muster_schedule *shape;
	char why[300];

	if (!in)
		die(1, "%s: %s", s->conditions, strerror(errno));
	if (muster_shape_read(in, s->topology, &shape, why, sizeof(why)))
		die(2, "%s: %s", s->conditions, why);
	fclose(in);
	return shape;
}

static int run_solve(struct settings *s, int argc, char **argv)
{
	struct muster_schedule *shape = NULL;
	struct muster_synth_result result;
	int err;

	if (argc != 3)
		die(2, "solve CHUNKS STEPS ROUNDS");
	need_topology(s);
	s->request.chunks = number("chunks", argv[0], CHUNKS);
	s->request.steps = number("steps", argv[1], STEPS);
	s->request.rounds = number("rounds", argv[2], MUSTER_INSTANCE_ROUNDS_MAX);
	if (s->conditions)
		s->request.shape = shape = read_conditions(s);
	if (shape)
		s->request.coll = MUSTER_COLL_CUSTOM;
	err = muster_synthesize(&s->request, &result);
	muster_schedule_free(shape);
	if (err)
		die(err == -EINVAL ? 2 : 1, "%s", *result.why ? result.why : strerror(-err));
	fprintf(stderr, "%s: %s (%.2f s of CPU time)\n", muster_proof_name(result.proof),
		result.why, result.cpu_seconds);
	if (result.proof != MUSTER_PROOF_FOUND)
		return status_of(result.proof);
	write_schedule(s, result.schedule);
	muster_schedule_free(result.schedule);
	return 0;
}

static void show_point(const struct muster_pareto_point *point,
		       const struct muster_synth_result *result, void *arg)
{
	const struct settings *s = arg;
	struct settings file = *s;
	char path[4096];

	printf("(%" PRIu32 ", %" PRIu32 ", %" PRIu32 ")%s%s%s  %.2f s, %s\n", point->chunks,
	       point->steps, point->rounds, point->least_steps ? "  fewest steps" : "",
	       point->least_rounds ? "  fewest rounds per chunk" : "",
	       point->proved ? "" : "  (something better was left open)", result->cpu_seconds,
	       result->why);
	fflush(stdout);
	if (!s->output)
		return;
	snprintf(path, sizeof(path), "%s/%s.%s", s->output, result->schedule->name,
		 !strcmp(s->form, "picture") ? "svg" : s->form);
	file.output = path;
	write_schedule(&file, result->schedule);
}

static void show_try(uint32_t chunks, uint32_t steps, uint32_t rounds,
		     const struct muster_synth_result *result, void *arg)
{
	(void)arg;
	if (result->proof != MUSTER_PROOF_FOUND)
		printf("  (%" PRIu32 ", %" PRIu32 ", %" PRIu32 ") %s  %.2f s%s%s\n", chunks, steps,
		       rounds, muster_proof_name(result->proof), result->cpu_seconds,
		       *result->why ? ", " : "", result->why);
	fflush(stdout);
}

static int run_pareto(struct settings *s, int argc, char **argv)
{
	const struct muster_pareto_options pareto = {
		.extra_rounds = s->extra_rounds, .steps_max = s->steps_max,
		.chunks_max = s->chunks_max, .found = show_point, .tried = show_try, .arg = s,
	};
	char why[300] = "";
	int err;

	(void)argv;
	if (argc)
		die(2, "pareto has options alone");
	need_topology(s);
	if (s->request.direct || s->conditions)
		die(2, "pareto is for collectives as the paper makes them; see solve");
	err = muster_pareto(&s->request, &pareto, why, sizeof(why));
	if (err)
		die(err == -EINVAL ? 2 : 1, "%s", *why ? why : strerror(-err));
	return 0;
}

static struct muster_schedule *read_schedule(const char *path)
{
	struct muster_schedule *schedule;
	FILE *in = fopen(path, "re");
	char why[300];
	int c, err;

	if (!in)
		die(1, "%s: %s", path, strerror(errno));
	c = getc(in);
	ungetc(c, in);
	if (c == '{')
		err = muster_show_json_read(in, &schedule, why, sizeof(why));
	else
		err = muster_schedule_read(in, &schedule, why, sizeof(why));
	if (err)
		die(2, "%s: %s", path, why);
	fclose(in);
	return schedule;
}

static int run_show(struct settings *s, int argc, char **argv)
{
	struct muster_schedule *schedule;

	if (argc != 1)
		die(2, "show FILE");
	schedule = read_schedule(argv[0]);
	write_schedule(s, schedule);
	muster_schedule_free(schedule);
	return 0;
}

static int run_check(struct settings *s, int argc, char **argv)
{
	struct muster_schedule *schedule;
	uint32_t rounds;
	char why[300];

	if (argc != 1)
		die(2, "check FILE");
	schedule = read_schedule(argv[0]);
	if (muster_schedule_check(schedule, why, sizeof(why)))
		die(1, "%s: %s", argv[0], why);
	printf("%s is a right %s of %" PRIu32 " ranks, %" PRIu32 " chunks, %" PRIu32 " steps",
	       schedule->name, muster_coll_name(schedule->coll), schedule->ranks, schedule->chunks,
	       schedule->steps);
	if (s->topology) {
		if (muster_synth_cost(schedule, s->topology, &rounds, why, sizeof(why)))
			die(1, "%s: %s", argv[0], why);
		printf(", %" PRIu32 " rounds on %s", rounds, s->topology->name);
	}
	printf("\n");
	muster_schedule_free(schedule);
	return 0;
}

static int run_baseline(struct settings *s, int argc, char **argv)
{
	struct muster_schedule *schedule;
	char why[300] = "";

	(void)argv;
	if (argc)
		die(2, "baseline has options alone");
	need_topology(s);
	if (muster_baseline(s->topology_name, s->request.coll, s->request.root, s->pipelined,
			    &schedule, why, sizeof(why)))
		die(2, "%s", why);
	write_schedule(s, schedule);
	muster_schedule_free(schedule);
	return 0;
}

static int run_topology(struct settings *s, int argc, char **argv)
{
	FILE *out;

	(void)argv;
	if (argc)
		die(2, "topology has options alone");
	need_topology(s);
	out = open_output(s);
	muster_topology_write(s->topology, out);
	for (enum muster_coll coll = MUSTER_COLL_BROADCAST; coll < MUSTER_COLL_SCAN; coll++) {
		struct muster_synth_request request = s->request;
		uint64_t rounds, chunks;
		uint32_t steps;
		char why[300];

		request.coll = coll;
		if (muster_synth_bounds(&request, &steps, &rounds, &chunks, why, sizeof(why)))
			fprintf(out, "# %s: %s\n", muster_coll_name(coll), why);
		else
			fprintf(out, "# %s: at least %" PRIu32 " steps and %.4g rounds per chunk\n",
				muster_coll_name(coll), steps, (double)rounds / chunks);
	}
	close_output(s, out);
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(struct settings *settings, int argc, char **argv);
} commands[] = {
	{ "solve", run_solve }, { "pareto", run_pareto }, { "nodes", run_nodes }, { "show", run_show },
	{ "check", run_check }, { "baseline", run_baseline }, { "topology", run_topology },
	{ "tables", run_tables }, { "torus", run_torus },
};

static void check_form(const char *form)
{
	static const char *const forms[] = { "schedule", "sends", "json", "picture" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strcmp(form, forms[i]))
			return;
	die(2, "form \"%s\", but it can be schedule, sends, json or picture", form);
}

int main(int argc, char **argv)
{
	struct settings s = {
		.form = "schedule", .extra_rounds = 2, .pipelined = 2, .seeds = 1,
		.datum_bytes = 28, .buffer_bytes = 4 << 20, .request.coll = MUSTER_COLL_ALLGATHER,
		.request.solve.jobs = sysconf(_SC_NPROCESSORS_ONLN),
	};
	const struct command *command = NULL;
	char why[400];
	int option;

	while ((option = getopt_long(argc, argv, "t:c:r:f:o:k:m:j:hV", options, NULL)) != -1)
		set(&s, option);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]) && optind < argc; i++)
		if (!strcmp(commands[i].name, argv[optind]))
			command = &commands[i];
	if (!command)
		die(2, optind < argc ? "there is no command \"%s\"; see --help" : "which command? "
		    "see --help%s", optind < argc ? argv[optind] : "");
	check_form(s.form);
	if (s.topology_name && muster_topology_make(s.topology_name, &s.topology, why, sizeof(why)))
		die(2, "%s%s%s", strchr(why, '"') == why ? "" : s.topology_name,
		    strchr(why, '"') == why ? "" : ": ", why);
	s.request.topology = s.topology;
	option = command->run(&s, argc - optind - 1, argv + optind + 1);
	muster_topology_free(s.topology);
	return option;
}
