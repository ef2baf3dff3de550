// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-run: start the ranks of a job on this machine. This file reads the
 * options and is the front process: the one that the shell knows. It starts the
 * keeper (run_keeper.c), passes signals on to it and takes over its exit status.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model.h"
#include "muster_bump.h"
#include "version.h"
#include "vm.h"

enum { GRACE_DEFAULT_MS = 12000, GRACE_MAX_S = 86400 };

static const char help[] =
	"Usage: muster-run -n RANKS [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       muster-run -n RANKS --vm --shell\n"
	"Run PROGRAM as the RANKS ranks of one Muster job on this machine.\n"
	"\n"
	"  -n, --ranks=RANKS     how many processes to start, 1 to 1024\n"
	"      --no-prefix       print lines as they are, without \"[rank] \" before them\n"
	"      --bind, --no-bind pin ranks to CPUs, round robin, or do not; without either\n"
	"                        ranks are pinned if CPUs suffice, or each gets as many\n"
	"      --grace=SECONDS   when a rank fails, how long the others may take to end by\n"
	"                        themselves (12: a little more than the library's deadline)\n"
	"      --vm              each rank in a virtual machine of its own, as root, with this\n"
	"                        machine's files (changes are not kept), without input\n"
	"      --nics=N          with --vm: Muster NICs of each, 1 to 8 (1); see MUSTER_NIC\n"
	"      --count           with --vm: count their instructions, for muster_count\n"
	"      --keep            with --vm: when PROGRAM has ended, a shell in guest 0\n"
	"      --shell           with --vm: only that shell\n"
	"      --bump[=TOPOLOGY] each rank at a host of its own (a network namespace), with a bump\n"
	"                        in its wire; joined as ring (default), tree, torus, cube, or a\n"
	"                        file says, lines \"A B\"; see MUSTER_BUMP\n"
	"      --per-host=N      with --bump or --vm: so many ranks at each host, or in each guest (1)\n"
	"      --topology=NET    each rank at a host of a network of switches: switch:N,\n"
	"                        fat-tree:HxLxS, fat-tree:HxLxAxPxC, switch-torus:HxAxB or a file\n"
	"                        (with --vm: in guests, each with one rank and one NIC)\n"
	"      --local=N         with --vm and --topology: the last N ranks are processes of this\n"
	"                        machine, beside the guests\n"
	"      --rails=N         with --topology: each rank is at N such networks, 1 to 8, and what\n"
	"                        is long goes over all; several --topology: the first ones' networks\n"
	"      --apart           with --topology: each switch is a process of its own\n"
	"  -h, --help            show this\n"
	"  -V, --version         show the version\n"
	"\n"
	"Rank 0 reads the standard input. Exit status: 0 when all ranks exit with 0; else\n"
	"that of the rank that failed first, 128+N if signal N killed it; 2 wrong usage,\n"
	"125 muster-run itself failed, 126 PROGRAM cannot be run, 127 it is not there.\n"
	"When muster-run ends, or is killed, nothing of what it started is left.\n";

static int usage_error(const char *what, const char *value)
{
	fprintf(stderr, "muster-run: %s%s%s%s\nTry 'muster-run --help'.\n", what,
		value ? " '" : "", value ? value : "", value ? "'" : "");
	return RUN_EXIT_USAGE;
}

static int parse_ranks(const char *wanted, const char *text, uint32_t *nr)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 1 || value > RUN_RANKS_MAX)
		return usage_error(wanted, text);
	*nr = (uint32_t)value;
	return 0;
}

static int parse_grace(const char *text, uint64_t *grace_ms)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value <= GRACE_MAX_S))
		return usage_error("--grace wants seconds from 0 to 86400, not", text);
	*grace_ms = (uint64_t)(value * 1000);
	return 0;
}

static int parse_few(const char *wanted, const char *text, uint32_t *nr)
{
	if (text[0] < '1' || text[0] > '8' || text[1])
		return usage_error(wanted, text);
	*nr = (uint32_t)(text[0] - '0');
	return 0;
}

static int parse_per_host(const char *text, uint32_t *nr)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value < 1 || value > MUSTER_BUMP_LOCAL_MAX)
		return usage_error("--per-host wants a number from 1 to 16, not", text);
	*nr = (uint32_t)value;
	return 0;
}

enum option_key {
	KEY_NO_PREFIX = 256, KEY_BIND, KEY_NO_BIND, KEY_GRACE, KEY_VM, KEY_NICS, KEY_KEEP,
	KEY_SHELL, KEY_COUNT, KEY_BUMP, KEY_PER_HOST, KEY_TOPOLOGY, KEY_APART,
	KEY_LOCAL, KEY_RAILS,
};

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "no-prefix", no_argument, NULL, KEY_NO_PREFIX },
	{ "bind", no_argument, NULL, KEY_BIND },
	{ "no-bind", no_argument, NULL, KEY_NO_BIND },
	{ "grace", required_argument, NULL, KEY_GRACE },
	{ "vm", no_argument, NULL, KEY_VM },
	{ "nics", required_argument, NULL, KEY_NICS },
	{ "count", no_argument, NULL, KEY_COUNT },
	{ "keep", no_argument, NULL, KEY_KEEP },
	{ "shell", no_argument, NULL, KEY_SHELL },
	{ "bump", optional_argument, NULL, KEY_BUMP },
	{ "per-host", required_argument, NULL, KEY_PER_HOST },
	{ "topology", required_argument, NULL, KEY_TOPOLOGY },
	{ "rails", required_argument, NULL, KEY_RAILS },
	{ "apart", no_argument, NULL, KEY_APART },
	{ "local", required_argument, NULL, KEY_LOCAL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* Return: 0; or an exit status; or -1 when there is nothing left to do. */
static int parse_option(int key, struct run_options *options)
{
	switch (key) {
	case 'n':
		return parse_ranks("-n wants a number of ranks from 1 to 1024, not", optarg, &options->nr);
	case KEY_NO_PREFIX:
		options->prefix = false;
		return 0;
	case KEY_BIND:
		options->bind = RUN_BIND_ON;
		return 0;
	case KEY_NO_BIND:
		options->bind = RUN_BIND_OFF;
		return 0;
	case KEY_GRACE:
		return parse_grace(optarg, &options->grace_ms);
	case KEY_VM:
		options->vm = true;
		return 0;
	case KEY_NICS:
		return parse_few("--nics wants a number from 1 to 8, not", optarg, &options->nics);
	case KEY_COUNT:
		options->count = true;
		return 0;
	case KEY_KEEP:
		options->keep = true;
		return 0;
	case KEY_SHELL:
		options->keep = options->shell = true;
		return 0;
	case KEY_BUMP:
		options->bump = optarg ? optarg : "ring";
		return 0;
	case KEY_PER_HOST:
		return parse_per_host(optarg, &options->per_host);
	case KEY_TOPOLOGY:
		if (options->topologies == RUN_RAILS_MAX)
			return usage_error("there are at most 8 rails, but one more --topology", optarg);
		options->topology[options->topologies++] = optarg;
		return 0;
	case KEY_RAILS:
		return parse_few("--rails wants a number from 1 to 8, not", optarg, &options->rails);
	case KEY_APART:
		options->apart = true;
		return 0;
	case KEY_LOCAL:
		return parse_ranks("--local wants a number of ranks from 1 to 1024, not", optarg,
				   &options->local);
	case 'h':
		fputs(help, stdout);
		return -1;
	case 'V':
		puts("muster-run " MUSTER_VERSION);
		return -1;
	default:
		fputs("Try 'muster-run --help'.\n", stderr);
		return RUN_EXIT_USAGE;
	}
}

/* Each guest has a port for each of its ranks, and one for counts. */
static int check_per_guest(const struct run_options *options)
{
	if (options->nr % options->per_host)
		return usage_error("each guest has as many ranks: -n is no multiple of --per-host", NULL);
	if (run_in_guests(options) / options->per_host > MUSTER_VM_GUESTS_MAX)
		return usage_error("--vm starts at most 64 guests", NULL);
	if (options->per_host > MUSTER_VM_PORTS_MAX)
		return usage_error("a guest has at most 14 ranks", NULL);
	if (options->per_host > 1 && options->count)
		return usage_error("--count counts guests with one rank each", NULL);
	return 0;
}

/* What goes together where ranks run in guests, and only there. */
static int check_guests(struct run_options *options)
{
	const char *device = getenv("MUSTER_DEVICE");
	struct muster_engine_model model;
	char why[256];

	if (!options->vm && (options->nics || options->keep || options->count))
		return usage_error("--nics, --count, --keep and --shell go with --vm only", NULL);
	if (!options->vm)
		return 0;
	if (options->bind == RUN_BIND_ON)
		return usage_error("--bind does not go with --vm", NULL);
	if (options->local >= options->nr)
		return usage_error("--local leaves no rank for a guest", NULL);
	if (device && strcmp(device, "verbs"))
		return usage_error("in guests the device is verbs; unset MUSTER_DEVICE, which is",
				   device);
	if (muster_model_read("MUSTER_ENGINE", getenv("MUSTER_ENGINE"), &model, why, sizeof(why)))
		return usage_error(why, NULL);
	if (!options->nics)
		options->nics = 1;
	return check_per_guest(options);
}

/* The same for hosts with bumps. */
static int check_bump(const struct run_options *options)
{
	if (options->bump && options->vm)
		return usage_error("--bump does not go with --vm", NULL);
	if (options->bump && options->nr % options->per_host)
		return usage_error("each host has as many ranks: -n is no multiple of --per-host", NULL);
	if (options->bump && options->nr / options->per_host > RUN_BUMPS_MAX)
		return usage_error("--bump starts at most 64 hosts", NULL);
	return 0;
}

/* The same for switches. */
static int check_switches(struct run_options *options)
{
	const char *wire = getenv("MUSTER_WIRE");

	if (options->local && (!options->vm || !options->topologies || options->shell))
		return usage_error("--local goes with --vm and --topology, and not with --shell", NULL);
	if ((options->apart || options->rails) && !options->topologies)
		return usage_error("--apart and --rails go with --topology only", NULL);
	if (!options->topologies)
		return 0;
	if (!options->rails)
		options->rails = options->topologies;
	if (options->topologies > options->rails)
		return usage_error("there are fewer --rails than networks", NULL);
	if (options->vm && options->rails > 1)
		return usage_error("a host of --topology is a guest with one NIC: --rails does not go with --vm", NULL);
	if (options->bump)
		return usage_error("--topology does not go with --bump", NULL);
	if (options->vm && (options->per_host > 1 || options->nics > 1))
		return usage_error("a host of --topology is a guest with one rank and one NIC", NULL);
	if (wire && strcmp(wire, "switch"))
		return usage_error("with --topology the wire is that of its switches; unset MUSTER_WIRE, which is",
				   wire);
	return 0;
}

static int parse_options(int argc, char **argv, struct run_options *options)
{
	int key, ret;

	while ((key = getopt_long(argc, argv, "+n:hV", long_options, NULL)) != -1) {
		ret = parse_option(key, options);
		if (ret)
			return ret;
	}
	if (!options->nr)
		return usage_error("say with -n how many ranks to start", NULL);
	if (options->per_host && !options->bump && !options->vm)
		return usage_error("--per-host goes with --bump and --vm only", NULL);
	if (!options->per_host)
		options->per_host = 1;
	ret = check_guests(options);
	if (!ret)
		ret = check_bump(options);
	if (!ret)
		ret = check_switches(options);
	if (ret)
		return ret;
	if (options->shell != (optind == argc))
		return usage_error(options->shell ? "--shell runs no program" :
				   "say which program to run", NULL);
	if (!options->shell)
		options->argv = argv + optind;
	return 0;
}

/*
 * Where a standard stream is closed, the next file that is opened would take its
 * place and get what ranks print. What cannot be written is an error; input is empty.
 */
static int hold_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDONLY);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -errno : close(fd);
}

/* Block what the front waits for, so that nothing is lost before it does. */
static void block_signals(sigset_t *set)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction action;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		sigaction(wanted[i], NULL, &action);
		if (action.sa_handler != SIG_IGN) /* nohup stays in force */
			sigaddset(set, wanted[i]);
	}
	sigprocmask(SIG_BLOCK, set, NULL);
}

/* Pass signals on until the keeper has ended. Return: its exit status. */
static int front_wait(const sigset_t *set, pid_t keeper)
{
	int signal, status;

	for (;;) {
		signal = sigwaitinfo(set, NULL);
		if (signal == SIGCHLD && waitpid(keeper, &status, WNOHANG) == keeper)
			break;
		if (signal > 0 && signal != SIGCHLD)
			kill(keeper, signal);
	}
	run_kill_descendants();
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "muster-run: the process that watches the ranks was killed by signal %d; "
		"all ranks are stopped\n", WTERMSIG(status));
	return RUN_EXIT_FAILED;
}

int main(int argc, char **argv)
{
	struct run_options options = { .prefix = true, .grace_ms = GRACE_DEFAULT_MS };
	pid_t front = getpid(), keeper;
	sigset_t set;
	int ret;

	if (hold_streams())
		return RUN_EXIT_FAILED;
	ret = parse_options(argc, argv, &options);
	if (ret)
		return ret < 0 ? 0 : ret;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals(&set);
	keeper = fork();
	if (keeper < 0) {
		perror("muster-run: cannot fork");
		return RUN_EXIT_FAILED;
	}
	if (keeper == 0)
		return run_keeper(&options, front);
	return front_wait(&set, keeper);
}
