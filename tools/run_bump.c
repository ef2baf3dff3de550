// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hosts with bumps in their wires, on this machine: a network namespace for each host,
 * with one device, eth0; one more for the fabric, where the other ends of the devices
 * are, the links between bumps, and a muster-bumpd for each. Namespaces have no names:
 * the keeper holds them open, and when it and what runs in them are gone, so are they
 * and their devices.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topology.h"

enum { TEXT_MAX = 64 };

struct run_bump {
	uint32_t hosts;
	uint32_t per_host;
	uint64_t key;
	uint32_t group;
	int home, fabric;		/* network namespaces */
	int *namespaces;		/* of hosts */
	struct run_daemon *bumps;
	struct muster_bump_topology topology;
};

static int fail(const char *what, int ret)
{
	fprintf(stderr, "muster-run: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* ---- namespaces ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Who is not root becomes it in a user namespace, which owns all that follows. */
static int become_root(void)
{
	char map[TEXT_MAX];
	unsigned int uid = geteuid(), gid = getegid();

	if (!uid)
		return 0;
	if (unshare(CLONE_NEWUSER))
		return -errno;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", uid);
	return write_file("/proc/self/uid_map", map);
}

static int namespace_open(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int namespace_make(void)
{
	return unshare(CLONE_NEWNET) ? -errno : namespace_open();
}

static int namespaces_make(struct run_bump *net)
{
	int ret = become_root();

	if (ret)
		return fail("cannot make network namespaces without root", ret);
	net->home = namespace_open();
	for (uint32_t i = 0; i < net->hosts; i++) {
		net->namespaces[i] = namespace_make();
		if (net->namespaces[i] < 0)
			return fail("cannot make a network namespace", net->namespaces[i]);
	}
	net->fabric = namespace_make();
	if (net->home < 0 || net->fabric < 0)
		return fail("cannot make a network namespace",
			    net->home < 0 ? net->home : net->fabric);
	/* The fabric's devices are wires: nothing of its own goes over them. */
	write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	/* From a user namespace there is no way back; the fabric will do for the keeper. */
	return setns(net->home, CLONE_NEWNET) && errno != EPERM ? -errno : 0;
}

/* ---- devices ---- */

/* Run what is written to the pipe with ip(8) in a namespace. Return: its standard input. */
static int ip_begin(int space, FILE **commands, pid_t *pid)
{
	int in[2];

	if (pipe2(in, O_CLOEXEC))
		return -errno;
	*pid = fork();
	if (*pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!setns(space, CLONE_NEWNET) && dup2(in[0], STDIN_FILENO) >= 0)
			execlp("ip", "ip", "-batch", "-", NULL);
		_exit(127);
	}
	close(in[0]);
	*commands = *pid < 0 ? NULL : fdopen(in[1], "w");
	return *commands ? 0 : -errno;
}

static int ip_end(FILE *commands, pid_t pid)
{
	int status = -1;

	fclose(commands);
	waitpid(pid, &status, 0);
	if (!status)
		return 0;
	fprintf(stderr, "muster-run: cannot set up devices with ip(8); is iproute2 installed?\n");
	return -EIO;
}

/* eth0 at the host, h<e> at its bump; b<e>p<port> at both ends of a link between bumps. */
static void write_fabric(const struct run_bump *net, FILE *to)
{
	const struct muster_bump_topology *t = &net->topology;

	for (uint32_t e = 0; e < net->hosts; e++) {
		fprintf(to, "link add h%u type veth peer name eth0 netns /proc/%d/fd/%d\n", e,
			getpid(), net->namespaces[e]);
		fprintf(to, "link set h%u up\n", e);
		for (uint32_t port = 1; port < t->nr_ports[e]; port++) {
			uint32_t other = t->neighbours[e][port];

			if (other > e)
				fprintf(to, "link add b%up%u type veth peer name b%up%u\n", e, port,
					other, muster_bump_topology_port(t, other, e));
		}
	}
	for (uint32_t e = 0; e < net->hosts; e++)
		for (uint32_t port = 1; port < t->nr_ports[e]; port++)
			fprintf(to, "link set b%up%u up\n", e, port);
}

/* To compare with: eth1 of all hosts at one bridge of the kernel, without bumps. */
static void write_bridge(const struct run_bump *net, FILE *to)
{
	fprintf(to, "link add bridge type bridge\nlink set bridge up\n");
	for (uint32_t e = 0; e < net->hosts; e++)
		fprintf(to, "link add d%u type veth peer name eth1 netns /proc/%d/fd/%d\n"
			"link set d%u master bridge up\n", e, getpid(), net->namespaces[e], e);
}

static int devices_make(const struct run_bump *net)
{
	bool bridged = getenv("MUSTER_BUMP_BRIDGE");
	FILE *commands;
	pid_t pid;
	int ret = ip_begin(net->fabric, &commands, &pid);

	if (ret)
		return fail("cannot start ip", ret);
	write_fabric(net, commands);
	if (bridged)
		write_bridge(net, commands);
	ret = ip_end(commands, pid);
	for (uint32_t host = 0; host < net->hosts && !ret; host++) {
		ret = ip_begin(net->namespaces[host], &commands, &pid);
		if (ret)
			return fail("cannot start ip", ret);
		fprintf(commands, "link set lo up\naddr add 10.77.%u.%u/16 dev eth0\n"
			"link set eth0 up\n", (host + 1) >> 8, (host + 1) & 255);
		if (bridged)
			fprintf(commands, "addr add 10.78.%u.%u/16 dev eth1\nlink set eth1 up\n",
				(host + 1) >> 8, (host + 1) & 255);
		ret = ip_end(commands, pid);
	}
	return ret;
}

/* ---- bumps ---- */

/*
 * One CPU for a bump: what it sends from two of them may change its order on the way
 * (a virtual device has a queue for each CPU), which TCP takes for a loss.
 */
static void bump_bind(uint32_t e)
{
	cpu_set_t cpus;

	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		run_bind(&cpus, e);
}

/* In the new process. */
static void bump_become(const struct run *run, const struct run_bump *net, uint32_t e)
{
	char text[MUSTER_BUMP_PORTS_MAX + 5][TEXT_MAX];
	const struct muster_bump_topology *t = &net->topology;
	char *argv[RUN_ARGUMENTS_MAX + 1] = { NULL, "-t", (char *)run->options->bump };
	int nr = 3, at = 0;

	if (setns(net->fabric, CLONE_NEWNET))
		_exit(RUN_EXIT_NOT_FOUND);
	bump_bind(e);
	snprintf(argv[nr++] = text[at++], TEXT_MAX, "-e%u", e);
	snprintf(argv[nr++] = text[at++], TEXT_MAX, "-n%u", net->hosts);
	snprintf(argv[nr++] = text[at++], TEXT_MAX, "-k%llx", (unsigned long long)net->key);
	snprintf(argv[nr++] = text[at++], TEXT_MAX, "-Hh%u", e);
	snprintf(argv[nr++] = text[at++], TEXT_MAX, "--seed=%u", net->group ^ e);
	for (uint32_t port = 1; port < t->nr_ports[e]; port++)
		snprintf(argv[nr++] = text[at++], TEXT_MAX, "-p%u=b%up%u", t->neighbours[e][port],
			 e, port);
	run_daemon_become("muster-bumpd", argv, "MUSTER_BUMPD_OPTIONS");
}

static int bumps_start(const struct run *run, struct run_bump *net)
{
	for (uint32_t e = 0; e < net->hosts; e++) {
		pid_t pid = run_daemon_fork(&net->bumps[e]);

		if (pid == 0)
			bump_become(run, net, e);
		if (pid < 0)
			return fail("cannot start a bump", pid);
	}
	for (uint32_t e = 0; e < net->hosts; e++)
		if (run_daemon_ready(&net->bumps[e]))
			return fail("a bump did not start", -EIO);
	return 0;
}

/* ---- for the place ---- */

static int topology_make(const struct run_options *options, struct run_bump *net)
{
	char why[96];
	FILE *in;
	int ret;

	if (!strchr(options->bump, '/')) {
		ret = muster_bump_topology_make(&net->topology, options->bump, net->hosts);
		return ret ? fail("--bump is ring, tree, torus, cube or a file with a slash", ret) : 0;
	}
	in = fopen(options->bump, "re");
	if (!in)
		return fail(options->bump, -errno);
	ret = muster_bump_topology_read(&net->topology, in, net->hosts, why, sizeof(why));
	fclose(in);
	if (ret)
		fprintf(stderr, "muster-run: %s: %s\n", options->bump, why);
	return ret;
}

int run_bump_open(struct run *run)
{
	struct run_bump *net = calloc(1, sizeof(*net));
	int ret;

	if (!net)
		return -ENOMEM;
	run->bump = net;
	net->home = net->fabric = -1;
	net->per_host = run->options->per_host;
	net->hosts = run->options->nr / net->per_host;
	net->namespaces = calloc(net->hosts, sizeof(int));
	net->bumps = calloc(net->hosts, sizeof(*net->bumps));
	if (!net->namespaces || !net->bumps ||
	    getrandom(&net->key, sizeof(net->key), 0) != sizeof(net->key) ||
	    getrandom(&net->group, sizeof(net->group), 0) != sizeof(net->group))
		return -ENOMEM;
	ret = topology_make(run->options, net);
	if (!ret)
		ret = namespaces_make(net);
	if (!ret)
		ret = devices_make(net);
	if (!ret)
		ret = bumps_start(run, net);
	return ret;
}

int run_bump_enter(const struct run *run, uint32_t rank)
{
	const struct run_bump *net = run->bump;
	char key[TEXT_MAX], group[TEXT_MAX], hosts[TEXT_MAX], local[TEXT_MAX], locals[TEXT_MAX];
	char ours[TEXT_MAX];

	snprintf(key, sizeof(key), "%llx", (unsigned long long)net->key);
	snprintf(group, sizeof(group), "%u", net->group);
	snprintf(hosts, sizeof(hosts), "%u", net->hosts);
	snprintf(local, sizeof(local), "%u", rank % net->per_host);
	snprintf(locals, sizeof(locals), "%u", net->per_host);
	snprintf(ours, sizeof(ours), "/proc/%d/ns/net", getppid());
	if (setns(net->namespaces[rank / net->per_host], CLONE_NEWNET) ||
	    setenv("MUSTER_BUMP", "10.77.255.254:19778", 1) || setenv("MUSTER_BUMP_KEY", key, 1) ||
	    setenv("MUSTER_BUMP_GROUP", group, 1) || setenv("MUSTER_BUMP_HOSTS", hosts, 1) ||
	    setenv("MUSTER_BUMP_LOCAL_RANK", local, 1) ||
	    setenv("MUSTER_BUMP_LOCAL_RANKS", locals, 1) || setenv("MUSTER_NAMESPACE", ours, 1))
		return -errno;
	return 0;
}

void run_bump_ended(struct run *run, pid_t pid, int wait_status)
{
	for (uint32_t e = 0; run->bump && e < run->bump->hosts; e++) {
		if (!run_daemon_ended(&run->bump->bumps[e], pid))
			continue;
		if (WIFSIGNALED(wait_status))
			run_sink_print(&run->err, "muster-run: the bump of host %u was killed by signal %d\n",
				       e, WTERMSIG(wait_status));
		else
			run_sink_print(&run->err, "muster-run: the bump of host %u exited with status %d\n",
				       e, WEXITSTATUS(wait_status));
	}
}

void run_bump_stop(struct run *run)
{
	if (run->bump)
		run_daemons_stop(run->bump->bumps, run->bump->hosts);
}

void run_bump_close(struct run *run)
{
	struct run_bump *net = run->bump;

	if (!net)
		return;
	free(net->namespaces);
	free(net->bumps);
	free(net);
	run->bump = NULL;
}
