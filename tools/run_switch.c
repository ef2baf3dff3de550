// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network of switches for each rail of the ranks: muster-am and muster-switchd, one for all
 * switches or (--apart) one for each, and for each rank the port of the network's host with its number.
 * All of it listens on abstract sockets, and dies with the keeper: nothing is left, whoever is killed.
 */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric_file.h"

enum { TEXT_MAX = 64 };

struct network {
	const char *topology;
	struct muster_fabric *fabric;
	char wire[TEXT_MAX], manager[TEXT_MAX];
	uint32_t life;
	uint32_t nr;			/* processes of switches */
	struct run_daemon am, *switches;
};

struct run_switch {
	uint32_t rails;
	struct network networks[RUN_RAILS_MAX];
};

static int network_read(const struct run_options *options, struct network *net)
{
	char why[400] = "";
	int err = muster_fabric_read(net->topology, 0, &net->fabric, why, sizeof(why));

	if (err) {
		fprintf(stderr, "muster-run: --topology %s: %s\n", net->topology, why);
		return err;
	}
	if (muster_fabric_hosts(net->fabric) >= options->nr)
		return 0;
	fprintf(stderr, "muster-run: --topology %s: it has %" PRIu32 " hosts, fewer than the %" PRIu32
		" ranks\n", net->topology, muster_fabric_hosts(net->fabric), options->nr);
	return -EINVAL;
}

/* In the new processes. */
static void manager_become(const struct network *net)
{
	char *argv[RUN_ARGUMENTS_MAX + 1] = { NULL, "-m", (char *)net->manager };

	run_daemon_become("muster-am", argv, "MUSTER_AM_OPTIONS");
}

static void switches_become(const struct network *net, uint32_t number)
{
	char life[TEXT_MAX], which[TEXT_MAX];
	char *argv[RUN_ARGUMENTS_MAX + 1] = {
		NULL, "-t", (char *)net->topology, "-w", (char *)net->wire, life,
		"-m", (char *)net->manager, net->nr > 1 ? which : NULL,
	};

	snprintf(life, sizeof(life), "-l%" PRIu32, net->life);
	snprintf(which, sizeof(which), "-s%" PRIu32, number);
	run_daemon_become("muster-switchd", argv, "MUSTER_SWITCHD_OPTIONS");
}

static int manager_start(struct network *net)
{
	pid_t pid = run_daemon_fork(&net->am);
	int err;

	if (pid == 0)
		manager_become(net);
	err = pid < 0 ? pid : run_daemon_ready(&net->am);
	if (err)
		fprintf(stderr, "muster-run: the switches' manager did not start\n");
	return err;
}

/* All at once: one that is there speaks to its neighbours. */
static int switches_start(struct network *net)
{
	int err = 0;

	for (uint32_t i = 0; i < net->nr && !err; i++) {
		pid_t pid = run_daemon_fork(&net->switches[i]);

		if (pid == 0)
			switches_become(net, i);
		err = pid < 0 ? pid : 0;
	}
	for (uint32_t i = 0; i < net->nr && !err; i++)
		err = run_daemon_ready(&net->switches[i]);
	if (err)
		fprintf(stderr, "muster-run: the switches did not start\n");
	return err;
}

static int network_open(const struct run_options *options, struct network *net)
{
	uint64_t nonce;
	uint32_t nr;
	int err;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -errno;
	net->life = (uint32_t)nonce | 1;
	snprintf(net->wire, sizeof(net->wire), "unix:@muster-net-%d-%08" PRIx64, getpid(), nonce >> 32);
	snprintf(net->manager, sizeof(net->manager), "%.*s/manager", TEXT_MAX - 16,
		 strchr(net->wire, '@'));
	err = network_read(options, net);
	if (err)
		return err;
	nr = options->apart ? muster_fabric_switches(net->fabric) : 1;
	net->switches = calloc(nr, sizeof(*net->switches));
	if (!net->switches)
		return -ENOMEM;
	net->nr = nr;
	err = manager_start(net);
	return err ? err : switches_start(net);
}

int run_switch_open(struct run *run)
{
	const struct run_options *options = run->options;
	struct run_switch *all = calloc(1, sizeof(*all));
	int err = 0;

	if (!all)
		return -ENOMEM;
	run->net = all;
	while (all->rails < options->rails && !err) {
		uint32_t rail = all->rails++, last = options->topologies - 1;

		all->networks[rail].topology = options->topology[rail < last ? rail : last];
		err = network_open(options, &all->networks[rail]);
	}
	return err;
}

static void port_of(const struct network *net, uint32_t host, struct run_port *port)
{
	struct muster_fabric_end end;

	muster_fabric_uplink(net->fabric, host, &end);
	*port = (struct run_port){
		.wire = net->wire, .manager = net->manager, .uplink = MUSTER_NODE_AGGREGATION + end.number,
		.life = net->life,
	};
}

void run_switch_port(const struct run *run, uint32_t host, struct run_port *port)
{
	port_of(&run->net->networks[0], host, port);
}

/* Of another rail than the first the variables have its number behind. */
static int rail_setenv(const char *name, uint32_t rail, const char *value)
{
	char numbered[TEXT_MAX];

	snprintf(numbered, sizeof(numbered), "%s_%" PRIu32, name, rail);
	return setenv(rail ? numbered : name, value, 1);
}

static int rail_enter(const struct network *net, uint32_t rail, uint32_t rank)
{
	struct run_port port;
	char uplink[TEXT_MAX];

	port_of(net, rank, &port);
	snprintf(uplink, sizeof(uplink), "%" PRIu32 ",%" PRIu32, port.uplink, port.life);
	if (rail_setenv("MUSTER_FABRIC", rail, port.wire) || rail_setenv("MUSTER_UPLINK", rail, uplink) ||
	    rail_setenv("MUSTER_MANAGER", rail, port.manager))
		return -errno;
	return 0;
}

int run_switch_enter(const struct run *run, uint32_t rank)
{
	const struct run_switch *all = run->net;
	char rails[TEXT_MAX];
	int err = 0;

	snprintf(rails, sizeof(rails), "%" PRIu32, all->rails);
	if (setenv("MUSTER_WIRE", "switch", 1) || setenv("MUSTER_RAILS", rails, 1))
		return -errno;
	for (uint32_t rail = 0; rail < all->rails && !err; rail++)
		err = rail_enter(&all->networks[rail], rail, rank);
	return err;
}

static void say_ended(struct run *run, const char *who, uint32_t rail, bool several, int wait_status)
{
	char where[TEXT_MAX] = "";

	if (run->net->rails > 1)
		snprintf(where, sizeof(where), " of rail %" PRIu32, rail);
	if (WIFSIGNALED(wait_status))
		run_sink_print(&run->err, "muster-run: %s%s %s killed by signal %d\n", who, where,
			       several ? "were" : "was", WTERMSIG(wait_status));
	else
		run_sink_print(&run->err, "muster-run: %s%s exited with status %d\n", who, where,
			       WEXITSTATUS(wait_status));
}

static void network_ended(struct run *run, uint32_t rail, pid_t pid, int wait_status)
{
	struct network *net = &run->net->networks[rail];
	char who[TEXT_MAX];

	if (run_daemon_ended(&net->am, pid))
		say_ended(run, "the manager of groups", rail, false, wait_status);
	for (uint32_t i = 0; i < net->nr; i++) {
		if (!run_daemon_ended(&net->switches[i], pid))
			continue;
		snprintf(who, sizeof(who), "switch %" PRIu32, i);
		say_ended(run, net->nr > 1 ? who : "the switches", rail, net->nr == 1, wait_status);
	}
}

void run_switch_ended(struct run *run, pid_t pid, int wait_status)
{
	for (uint32_t rail = 0; run->net && rail < run->net->rails; rail++)
		network_ended(run, rail, pid, wait_status);
}

static void daemon_reap(struct run *run, const struct run_daemon *daemon)
{
	int wait_status;
	pid_t pid = daemon->pid ? waitpid(daemon->pid, &wait_status, WNOHANG) : 0;

	if (pid > 0)
		run_switch_ended(run, pid, wait_status);
}

void run_switch_reap(struct run *run)
{
	for (uint32_t rail = 0; run->net && rail < run->net->rails; rail++) {
		const struct network *net = &run->net->networks[rail];

		daemon_reap(run, &net->am);
		for (uint32_t i = 0; i < net->nr; i++)
			daemon_reap(run, &net->switches[i]);
	}
}

/* The manager first: what it takes back the switches have when they say what they have. */
void run_switch_stop(struct run *run)
{
	for (uint32_t rail = 0; run->net && rail < run->net->rails; rail++) {
		struct network *net = &run->net->networks[rail];

		run_daemons_stop(&net->am, 1);
		run_daemons_stop(net->switches, net->nr);
	}
}

void run_switch_close(struct run *run)
{
	for (uint32_t rail = 0; run->net && rail < run->net->rails; rail++) {
		struct network *net = &run->net->networks[rail];

		if (net->fabric)
			muster_fabric_free(net->fabric);
		free(net->switches);
	}
	free(run->net);
	run->net = NULL;
}
