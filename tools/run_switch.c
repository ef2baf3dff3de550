// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network of switches for the ranks of run_place_local: muster-switchd, and for each
 * rank the port of the network's host with its number. All of it listens on abstract
 * sockets, and muster-switchd dies with the keeper: nothing is left, whoever is killed.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric_file.h"

enum { ARGUMENTS_MAX = 32, TEXT_MAX = 64, STOP_MS = 2000 };

struct run_switch {
	struct muster_fabric *fabric;
	char wire[TEXT_MAX], manager[TEXT_MAX];
	uint32_t life;
	pid_t pid;			/* of muster-switchd; 0: none runs */
};

static int network_read(const struct run_options *options, struct run_switch *net)
{
	char why[400] = "";
	int err = muster_fabric_read(options->topology, 0, &net->fabric, why, sizeof(why));

	if (err) {
		fprintf(stderr, "muster-run: --topology %s: %s\n", options->topology, why);
		return err;
	}
	if (muster_fabric_hosts(net->fabric) >= options->nr)
		return 0;
	fprintf(stderr, "muster-run: --topology %s: it has %" PRIu32 " hosts, fewer than the %" PRIu32
		" ranks\n", options->topology, muster_fabric_hosts(net->fabric), options->nr);
	return -EINVAL;
}

/* In the new process. Options of one's own are in MUSTER_SWITCHD_OPTIONS. */
static void daemon_become(const struct run *run, const struct run_switch *net, pid_t keeper, int out)
{
	char program[4096], life[TEXT_MAX], *argv[ARGUMENTS_MAX + 1];
	char *more = getenv("MUSTER_SWITCHD_OPTIONS");
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 16);
	int nr = 0;
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper || len < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(RUN_EXIT_NOT_FOUND);
	program[len] = '\0';
	strcpy(strrchr(program, '/'), "/muster-switchd");
	snprintf(life, sizeof(life), "-l%" PRIu32, net->life);
	argv[nr++] = program;
	argv[nr++] = (char *)"-t";
	argv[nr++] = (char *)run->options->topology;
	argv[nr++] = (char *)"-w";
	argv[nr++] = (char *)net->wire;
	argv[nr++] = life;
	argv[nr++] = (char *)"-m";
	argv[nr++] = (char *)net->manager;
	for (more = more ? strtok(more, " ") : NULL; more && nr < ARGUMENTS_MAX;
	     more = strtok(NULL, " "))
		argv[nr++] = more;
	argv[nr] = NULL;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(program, argv);
	fprintf(stderr, "muster-run: cannot run '%s': %s\n", program, strerror(errno));
	_exit(RUN_EXIT_NOT_FOUND);
}

static int daemon_start(const struct run *run, struct run_switch *net)
{
	pid_t keeper = getpid();
	char word[8];
	int out[2], err;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	net->pid = fork();
	if (net->pid == 0)
		daemon_become(run, net, keeper, out[1]);
	err = net->pid < 0 ? -errno : 0;
	close(out[1]);
	if (!err && (read(out[0], word, 6) != 6 || memcmp(word, "ready\n", 6)))
		err = -EIO;
	/* What it counts it appends to a file, if it is told to: this pipe ends here. */
	close(out[0]);
	if (err)
		fprintf(stderr, "muster-run: the switches did not start\n");
	return err;
}

int run_switch_open(struct run *run)
{
	struct run_switch *net = calloc(1, sizeof(*net));
	uint64_t nonce;
	int err;

	if (!net)
		return -ENOMEM;
	run->net = net;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -errno;
	net->life = (uint32_t)nonce | 1;
	snprintf(net->wire, sizeof(net->wire), "unix:@muster-net-%d-%08" PRIx64, getpid(), nonce >> 32);
	snprintf(net->manager, sizeof(net->manager), "%.*s/manager", TEXT_MAX - 16,
		 strchr(net->wire, '@'));
	err = network_read(run->options, net);
	return err ? err : daemon_start(run, net);
}

int run_switch_enter(const struct run *run, uint32_t rank)
{
	const struct run_switch *net = run->net;
	struct muster_fabric_end end;
	char uplink[TEXT_MAX];

	muster_fabric_uplink(net->fabric, rank, &end);
	snprintf(uplink, sizeof(uplink), "%" PRIu32 ",%" PRIu32,
		 MUSTER_NODE_AGGREGATION + end.number, net->life);
	if (setenv("MUSTER_WIRE", "switch", 1) || setenv("MUSTER_FABRIC", net->wire, 1) ||
	    setenv("MUSTER_UPLINK", uplink, 1) || setenv("MUSTER_MANAGER", net->manager, 1))
		return -errno;
	return 0;
}

void run_switch_ended(struct run *run, pid_t pid, int wait_status)
{
	if (!run->net || run->net->pid != pid)
		return;
	run->net->pid = 0;
	if (WIFSIGNALED(wait_status))
		run_sink_print(&run->err, "muster-run: the switches were killed by signal %d\n",
			       WTERMSIG(wait_status));
	else
		run_sink_print(&run->err, "muster-run: the switches exited with status %d\n",
			       WEXITSTATUS(wait_status));
}

/* Politely, so that it says what it has counted. */
void run_switch_stop(struct run *run)
{
	struct run_switch *net = run->net;

	if (!net || net->pid <= 0 || kill(net->pid, SIGTERM))
		return;
	for (int tries = 0; net->pid && tries < STOP_MS; tries++) {
		if (waitpid(net->pid, NULL, WNOHANG))
			net->pid = 0;
		else
			poll(NULL, 0, 1);
	}
}

void run_switch_close(struct run *run)
{
	if (!run->net)
		return;
	if (run->net->fabric)
		muster_fabric_free(run->net->fabric);
	free(run->net);
	run->net = NULL;
}
