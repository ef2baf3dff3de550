// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-am: the manager of a network's aggregation groups, as a process. This file reads the options,
 * and waits; what the manager does is in am_*.c (am.h), and what it asks of switches they do
 * themselves (switch_manager.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "am.h"
#include "am_order.h"
#include "clock.h"
#include "daemon.h"
#include "fabric_file.h"
#include "limit.h"

static const char help[] =
	"Usage: muster-am -m ADDRESS [OPTION]...\n"
	"       muster-am -m ADDRESS -x A-B\n"
	"       muster-am -m ADDRESS --clean\n"
	"       muster-am -m ADDRESS --drain=SWITCH | --undrain=SWITCH\n"
	"Make aggregation groups for the hosts of a network of switches, and take them back. The network is\n"
	"as its switches say it, each of its own ports; it is known when all have come.\n"
	"\n"
	"  -m, --manager=ADDRESS  where hosts and switches (muster-switchd -m) connect: @NAME, or a path\n"
	"  -t, --topology=TOPOLOGY  refuse switches that say otherwise: switch:N, fat-tree:HxLxS,\n"
	"                        fat-tree:HxLxAxPxC, switch-torus:HxAxB, or a file\n"
	"  -r, --radix=N         with -t: ports of each switch, 2 to 128 (40)\n"
	"  -S, --shared          jobs lock the streaming trees, of which there are two layouts; else each\n"
	"                        is one job's own\n"
	"  -g, --groups=N        so many of one job at once (256)\n"
	"  -p, --payload=N       bytes of one packet of low-latency trees, 16 to 4096 (256)\n"
	"  -x, --cut=A-B         have the running network whose manager is at ADDRESS take the link between\n"
	"                        switches A and B down, for good\n"
	"      --clean           have that manager take all groups back: those that are used fail; it ends when\n"
	"                        none of them is left\n"
	"      --drain=SWITCH    have groups and ways move away from that switch while jobs go on; it ends when\n"
	"                        nothing goes over it any more, and it can be stopped\n"
	"      --undrain=SWITCH  it may be used again\n"
	"  -h, --help  -V, --version\n"
	"\n"
	"It says \"ready\" when it listens. SIGUSR1 prints the network, switches, hosts and groups; SIGTERM and\n"
	"SIGINT end it, and groups of those that are there stay. Exit status: 0; 1 it cannot listen; 2 wrong\n"
	"usage.\n";

enum {
	PATIENCE_US = 1000000,	/* of a switch that has not answered yet, as we end */
	LOOK_MS = 1000,		/* while not all is known of what another manager made */
};

struct options {
	const char *topology, *manager;
	uint32_t radix, groups, payload;
	uint32_t cut[2];		/* switches */
	uint32_t drained;
	bool shared, cuts, cleans, drains, undrains;
};

enum { KEY_CLEAN = 256, KEY_DRAIN, KEY_UNDRAIN };

/* ---- options ---------------------------------------------------------------------- */

static int parse_cut(struct options *options, const char *text)
{
	uint64_t first, second;
	char rest;

	options->cuts = true;
	if (sscanf(text, "%" SCNu64 "-%" SCNu64 "%c", &first, &second, &rest) == 2 &&
	    first < MUSTER_FABRIC_NODES_MAX && second < MUSTER_FABRIC_NODES_MAX) {
		options->cut[0] = (uint32_t)first;
		options->cut[1] = (uint32_t)second;
		return 0;
	}
	return daemon_misused("-x wants A-B, numbers of switches, not", text);
}

static const struct option long_options[] = {
	{ "topology", required_argument, NULL, 't' }, { "radix", required_argument, NULL, 'r' },
	{ "manager", required_argument, NULL, 'm' }, { "shared", no_argument, NULL, 'S' },
	{ "groups", required_argument, NULL, 'g' }, { "payload", required_argument, NULL, 'p' },
	{ "cut", required_argument, NULL, 'x' }, { "clean", no_argument, NULL, KEY_CLEAN },
	{ "drain", required_argument, NULL, KEY_DRAIN }, { "undrain", required_argument, NULL, KEY_UNDRAIN },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
};

static int parse_option(int key, void *of)
{
	struct options *options = of;

	switch (key) {
	case 't':
		options->topology = optarg;
		return 0;
	case 'r':
		return daemon_number(optarg, MUSTER_SWITCH_RADIX_MIN, MUSTER_SWITCH_RADIX_MAX,
				     &options->radix);
	case 'm':
		options->manager = optarg;
		return 0;
	case 'S':
		options->shared = true;
		return 0;
	case 'g':
		return daemon_number(optarg, 1, MUSTER_SWITCH_GROUPS_MAX, &options->groups);
	case 'p':
		return daemon_number(optarg, 16, MUSTER_MTU, &options->payload);
	case 'x':
		return parse_cut(options, optarg);
	case KEY_CLEAN:
		options->cleans = true;
		return 0;
	case KEY_DRAIN:
		options->drains = true;
		return daemon_number(optarg, 0, MUSTER_FABRIC_NODES_MAX, &options->drained);
	case KEY_UNDRAIN:
		options->undrains = true;
		return daemon_number(optarg, 0, MUSTER_FABRIC_NODES_MAX, &options->drained);
	default:
		return DAEMON_EXIT_USAGE;
	}
}

static bool is_order(const struct options *options)
{
	return options->cuts || options->cleans || options->drains || options->undrains;
}

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct daemon_usage usage = {
		.help = help, .shorts = "t:r:m:Sg:p:x:hV", .longs = long_options, .take = parse_option,
	};
	int ret = daemon_options(&usage, argc, argv, options);

	if (!ret && !options->manager)
		ret = daemon_misused("say with -m where the manager is", NULL);
	if (!ret && options->radix && !options->topology)
		ret = daemon_misused("-r is for the network of -t: switches say how many ports they have", NULL);
	return ret;
}

/* ---- running ------------------------------------------------------------------------- */

/* Who has gone before us has given back what it had, as far as switches answer. */
static void end(struct am *am)
{
	uint64_t until_us = muster_clock_us() + PATIENCE_US;

	while (am_step(am) || (!am_settled(am) && muster_clock_us() < until_us))
		if (!am_settled(am))
			poll(&(struct pollfd){ .fd = am->epoll_fd, .events = POLLIN }, 1, 1);
}

static void run(struct am *am, int signals)
{
	struct pollfd fds[2] = {
		{ .fd = signals, .events = POLLIN }, { .fd = am->epoll_fd, .events = POLLIN },
	};
	int signal = 0;

	while (signal != SIGTERM && signal != SIGINT) {
		int look = am_groups_sweep(am) ? LOOK_MS : -1, due = am_drain_step(am);

		poll(fds, 2, due >= 0 && (look < 0 || due < look) ? due : look);
		signal = fds[0].revents ? daemon_signal(signals) : 0;
		am_step(am);
		if (signal == SIGUSR1)
			am_report(am, stdout);
	}
	end(am);
}

static int serve(const struct options *options, const struct muster_fabric *fabric, int signals)
{
	const struct am_config config = {
		.fabric = fabric, .address = options->manager, .groups_max = options->groups,
		.payload_max = options->payload / 16 * 16,	/* whole elements of every type */
		.shared = options->shared,
	};
	struct am *am;
	int err;

	muster_limit_raise();	/* a connection for each host and switch */
	err = am_open(&config, &am);
	if (err)
		return daemon_failed(config.address, strerror(-err));
	daemon_ready();
	run(am, signals);
	am_close(am);
	return 0;
}

static int manage(const struct options *options, int signals)
{
	struct muster_fabric *fabric = NULL;
	char why[400] = "";
	int ret;

	if (options->topology &&
	    muster_fabric_read(options->topology, options->radix, &fabric, why, sizeof(why))) {
		daemon_failed(options->topology, why);
		return DAEMON_EXIT_USAGE;
	}
	ret = serve(options, fabric, signals);
	muster_fabric_free(fabric);
	return ret;
}

static int order(const struct options *options)
{
	char why[400] = "";
	int err;

	if (options->cleans)
		err = am_order_clean(options->manager, why, sizeof(why));
	else if (options->cuts)
		err = am_order_cut(options->manager, options->cut[0], options->cut[1], why, sizeof(why));
	else
		err = am_order_drain(options->manager, options->drained, options->undrains, why, sizeof(why));
	return err ? daemon_failed(options->manager, why) : 0;
}

int main(int argc, char **argv)
{
	struct options options = { .groups = AM_GROUPS_MAX };
	int signals, ret = parse_options(argc, argv, &options);

	if (ret)
		return ret < 0 ? 0 : ret;
	if (is_order(&options))
		return order(&options);
	signals = daemon_signals(0);
	return signals < 0 ? 1 : manage(&options, signals);
}
