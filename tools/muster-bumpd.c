// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-bumpd: a bump in the wire as a process. This file reads the options, gives
 * the bump its world, and waits; what the bump does is in qemu-device/bump/.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bump.h"
#include "bump_ports.h"
#include "clock.h"
#include "daemon.h"
#include "topology.h"

static const char help[] =
	"Usage: muster-bumpd -e ELEMENT -n ELEMENTS -k KEY -H PORT [-p ELEMENT=PORT]... [OPTION]...\n"
	"Be the bump in a host's wire: carry its collectives out, pass everything else.\n"
	"A PORT is an Ethernet device, or udp:ADDRESS:PORT,ADDRESS:PORT (ours, theirs).\n"
	"\n"
	"  -e, --element=N          this bump's number, from 0\n"
	"  -n, --elements=N         how many there are, 1 to 1024\n"
	"  -t, --topology=NAME      ring (default), tree, torus, cube, or a file (with a slash):\n"
	"                           lines \"A B\", one a link\n"
	"  -H, --host=PORT          towards the host\n"
	"  -p, --port=N=PORT        towards neighbour N; each neighbour of the topology needs one\n"
	"  -k, --key=HEX            of a job that is served; up to 16\n"
	"  -a, --address=IPV4       the bump's own for its host (10.77.255.254)\n"
	"  -u, --udp-port=N         of offload packets (19778)\n"
	"      --plain              no bump: pass frames between the host and the first neighbour\n"
	"      --faults=L,R,O       lose, repeat, reorder so many of 1,000 frames on each link\n"
	"      --seed=N             of the faults\n"
	"  -j, --json               counters as JSON\n"
	"  -c, --counters=FILE      append counters to it, not to the standard output\n"
	"  -h, --help               show this\n"
	"  -V, --version            show the version\n"
	"\n"
	"It says \"ready\" when it serves. SIGUSR1 prints the counters; SIGTERM and SIGINT end it,\n"
	"with the counters. Exit status: 0; 1 a port failed, or counters are lost; 2 wrong\n"
	"usage.\n";

struct options {
	uint32_t element, elements;
	const char *topology;
	const char *host;
	const char *names[MUSTER_BUMP_PORTS_MAX];	/* of neighbours, as they were given */
	uint32_t neighbours[MUSTER_BUMP_PORTS_MAX];
	uint32_t nr_neighbours;
	uint64_t keys[MUSTER_BUMP_KEYS_MAX];
	uint32_t nr_keys;
	uint32_t address;
	uint16_t udp_port;
	bool plain, json;
	const char *counters;
	struct bump_faults faults;
};

struct daemon {
	struct options options;
	struct muster_bump_topology topology;
	struct bump_port ports[MUSTER_BUMP_PORTS_MAX];
	uint32_t nr_ports;
	struct muster_bump *bump;
	uint64_t frames;		/* passed by --plain */
	uint32_t held_port;		/* a frame that is reordered; held.data: its memory */
	struct muster_bump_frame held;
	struct muster_bump_frame late;	/* from the host: repeated, or reordered; len 0: none */
	bool ended;
};

/* ---- options ---- */

static int parse_port(struct options *options, const char *text)
{
	uint32_t at = options->nr_neighbours;
	char *name;
	unsigned long neighbour = strtoul(text, &name, 10);

	if (name == text || *name != '=' || neighbour >= MUSTER_BUMP_HOSTS_MAX ||
	    at == MUSTER_BUMP_PORTS_MAX - 1)
		return daemon_misused("-p wants NEIGHBOUR=PORT, at most 15 times, not", text);
	options->names[at] = name + 1;
	options->neighbours[at] = (uint32_t)neighbour;
	options->nr_neighbours++;
	return 0;
}

static int parse_key(struct options *options, const char *text)
{
	const char *number = strncmp(text, "0x", 2) ? text : text + 2;
	size_t digits = strspn(number, "0123456789abcdefABCDEF");

	if (options->nr_keys == MUSTER_BUMP_KEYS_MAX)
		return daemon_misused("-k: at most 16 keys", NULL);
	if (!digits || digits > 16 || number[digits])
		return daemon_misused("-k wants a hexadecimal number of at most 16 digits, not", text);
	options->keys[options->nr_keys++] = strtoull(text, NULL, 16);
	return 0;
}

static int parse_faults(struct bump_faults *faults, const char *text)
{
	char rest;

	if (sscanf(text, "%u,%u,%u%c", &faults->loss, &faults->repeat, &faults->reorder,
		   &rest) == 3 && faults->loss <= 1000 && faults->repeat <= 1000 &&
	    faults->reorder <= 1000)
		return 0;
	return daemon_misused("--faults wants three numbers up to 1000, as 10,10,10, not", text);
}

static int parse_address(struct options *options, const char *text)
{
	struct in_addr address;

	if (inet_pton(AF_INET, text, &address) != 1)
		return daemon_misused("-a wants an IPv4 address, not", text);
	options->address = ntohl(address.s_addr);
	return 0;
}

enum { KEY_PLAIN = 256, KEY_FAULTS, KEY_SEED };

static const struct option long_options[] = {
	{ "element", required_argument, NULL, 'e' }, { "elements", required_argument, NULL, 'n' },
	{ "topology", required_argument, NULL, 't' }, { "host", required_argument, NULL, 'H' },
	{ "port", required_argument, NULL, 'p' }, { "key", required_argument, NULL, 'k' },
	{ "address", required_argument, NULL, 'a' }, { "udp-port", required_argument, NULL, 'u' },
	{ "plain", no_argument, NULL, KEY_PLAIN }, { "faults", required_argument, NULL, KEY_FAULTS },
	{ "seed", required_argument, NULL, KEY_SEED }, { "json", no_argument, NULL, 'j' },
	{ "counters", required_argument, NULL, 'c' }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
};

static int parse_option(int key, void *of)
{
	struct options *options = of;
	uint32_t number = 0;
	int ret;

	switch (key) {
	case 'e':
		return daemon_number(optarg, 0, MUSTER_BUMP_HOSTS_MAX - 1, &options->element);
	case 'n':
		return daemon_number(optarg, 0, MUSTER_BUMP_HOSTS_MAX, &options->elements);
	case 't':
		options->topology = optarg;
		return 0;
	case 'H':
		options->host = optarg;
		return 0;
	case 'p':
		return parse_port(options, optarg);
	case 'k':
		return parse_key(options, optarg);
	case 'a':
		return parse_address(options, optarg);
	case 'u':
		ret = daemon_number(optarg, 1, 65535, &number);
		options->udp_port = (uint16_t)number;
		return ret;
	case KEY_PLAIN:
		options->plain = true;
		return 0;
	case KEY_FAULTS:
		return parse_faults(&options->faults, optarg);
	case KEY_SEED:
		ret = daemon_number(optarg, 0, UINT32_MAX, &number);
		options->faults.rng = number;
		return ret;
	case 'j':
		options->json = true;
		return 0;
	case 'c':
		options->counters = optarg;
		return 0;
	default:
		return DAEMON_EXIT_USAGE;
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct daemon_usage usage = {
		.help = help, .shorts = "e:n:t:H:p:k:a:u:c:jhV", .longs = long_options,
		.take = parse_option,
	};
	int ret = daemon_options(&usage, argc, argv, options);

	if (ret)
		return ret;
	if (!options->elements || options->element >= options->elements)
		return daemon_misused("say with -e and -n which element of how many this is", NULL);
	if (!options->host || !options->nr_keys)
		return daemon_misused("say with -H where the host is, and with -k which key is served",
				      NULL);
	return 0;
}

/* ---- the bump's world ---- */

static uint64_t world_now_us(void *world)
{
	(void)world;
	return muster_clock_us();
}

static bool chance(struct bump_faults *faults, uint32_t of_1000)
{
	if (!of_1000)
		return false;
	faults->rng = faults->rng * 6364136223846793005u + 1442695040888963407u;
	return (faults->rng >> 33) % 1000 < of_1000;
}

/* A frame that is held goes after the next one. */
static void hold(struct daemon *daemon, uint32_t port, const struct muster_bump_frame *frame)
{
	uint8_t *memory = malloc(frame->len);

	if (!memory)
		return;
	daemon->held = *frame;
	daemon->held.data = memcpy(memory, frame->data, frame->len);
	daemon->held_port = port;
}

static void release(struct daemon *daemon)
{
	if (!daemon->held.data)
		return;
	bump_port_send(&daemon->ports[daemon->held_port], &daemon->held);
	free(daemon->held.data);
	daemon->held.data = NULL;
}

/* What comes from the host goes the same way with faults: its link has no bump at the other end. */
static void keep_late(struct daemon *daemon, const struct muster_bump_frame *frame)
{
	uint8_t *memory = daemon->late.data ? daemon->late.data : malloc(BUMP_FRAME_MAX);

	if (!memory)
		return;
	daemon->late = *frame;
	daemon->late.data = memcpy(memory, frame->data, frame->len);
}

static bool take_late(struct daemon *daemon, struct muster_bump_frame *frame)
{
	*frame = daemon->late;
	daemon->late.len = 0;	/* its memory is the next one's, after this one is through */
	return frame->len != 0;
}

static bool receive_from_host(struct daemon *daemon, struct muster_bump_frame *frame)
{
	struct bump_faults *faults = &daemon->options.faults;

	if (daemon->late.len)
		return take_late(daemon, frame);
	while (bump_port_receive(&daemon->ports[MUSTER_BUMP_HOST_PORT], frame)) {
		if (chance(faults, faults->loss))
			continue;
		if (daemon->late.len)
			return true;
		if (chance(faults, faults->reorder)) {
			keep_late(daemon, frame);
			continue;
		}
		if (chance(faults, faults->repeat))
			keep_late(daemon, frame);
		return true;
	}
	return take_late(daemon, frame);
}

static bool world_receive(void *world, uint32_t port, struct muster_bump_frame *frame)
{
	struct daemon *daemon = world;

	return port == MUSTER_BUMP_HOST_PORT ? receive_from_host(daemon, frame) :
					       bump_port_receive(&daemon->ports[port], frame);
}

static bool world_send(void *world, uint32_t port, const struct muster_bump_frame *frame)
{
	struct daemon *daemon = world;
	struct bump_faults *faults = &daemon->options.faults;
	bool sent = true;

	if (chance(faults, faults->loss))
		return true;
	if (!daemon->held.data && chance(faults, faults->reorder)) {
		hold(daemon, port, frame);
		return true;
	}
	if (chance(faults, faults->repeat))
		bump_port_send(&daemon->ports[port], frame);
	sent = bump_port_send(&daemon->ports[port], frame);
	release(daemon);
	return sent;
}

static void *world_alloc(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static void world_free(void *world, void *p)
{
	(void)world;
	free(p);
}

/* ---- counters ---- */

#define COUNTER(name) { #name, offsetof(struct muster_bump_counters, name) }

static const struct daemon_counter counter_names[] = {
	COUNTER(requests), COUNTER(repeated), COUNTER(responses), COUNTER(errors),
	COUNTER(operations), COUNTER(failed), COUNTER(data_in), COUNTER(data_out),
	COUNTER(duplicates), COUNTER(transit), COUNTER(wants_in), COUNTER(wants_out),
	COUNTER(repaired), COUNTER(dropped_key), COUNTER(dropped_bad), COUNTER(dropped_early),
	COUNTER(dropped_full), COUNTER(dropped_memory), COUNTER(passed), COUNTER(passed_bytes),
	COUNTER(live), COUNTER(groups),
};

static int print_counters(struct daemon *daemon)
{
	struct daemon_report report;
	uint64_t missed = 0;
	int ret = daemon_report_open(&report, daemon->options.counters, daemon->options.json);

	if (ret)
		return ret;
	daemon_report_begin(&report, "element", daemon->options.element);
	if (daemon->bump)
		daemon_report_all(&report, counter_names,
				  sizeof(counter_names) / sizeof(counter_names[0]),
				  muster_bump_counters(daemon->bump));
	else
		daemon_report_one(&report, "passed", daemon->frames);
	for (uint32_t port = 0; port < daemon->nr_ports; port++)
		missed += bump_port_missed(&daemon->ports[port]);
	daemon_report_one(&report, "missed", missed);
	daemon_report_end(&report);
	return daemon_report_close(&report);
}

/* ---- opening ---- */

static int topology_make(struct daemon *daemon)
{
	const struct options *options = &daemon->options;
	char why[96];
	FILE *in;
	int ret;

	if (!strchr(options->topology, '/')) {
		if (muster_bump_topology_make(&daemon->topology, options->topology,
					      options->elements))
			return daemon_misused("-t is ring, tree, torus, cube or a file with a slash, "
					      "not", options->topology);
		return 0;
	}
	in = fopen(options->topology, "r");
	if (!in)
		return daemon_misused("cannot read", options->topology);
	ret = muster_bump_topology_read(&daemon->topology, in, options->elements, why,
					sizeof(why));
	fclose(in);
	if (ret)
		fprintf(stderr, "muster-bumpd: %s: %s\n", options->topology, why);
	return ret ? 2 : 0;
}

static int port_open(struct daemon *daemon, uint32_t port, const char *name)
{
	int ret = bump_port_open(&daemon->ports[port], name);

	if (ret == -EINVAL)
		return daemon_misused("a tunnel is udp:ADDRESS:PORT,ADDRESS:PORT (ours, theirs), not",
				      name);
	if (ret)
		fprintf(stderr, "muster-bumpd: port '%s': %s\n", name, strerror(-ret));
	return ret ? 1 : 0;
}

static int ports_open(struct daemon *daemon)
{
	const struct options *options = &daemon->options;
	int ret = port_open(daemon, MUSTER_BUMP_HOST_PORT, options->host);

	daemon->nr_ports = daemon->topology.nr_ports[options->element];
	for (uint32_t i = 0; !ret && i < options->nr_neighbours; i++) {
		uint32_t port = muster_bump_topology_port(&daemon->topology, options->element,
							  options->neighbours[i]);

		if (!port || daemon->ports[port].fd >= 0)
			return daemon_misused("-p: no neighbour, or given twice, is the one at",
					      options->names[i]);
		ret = port_open(daemon, port, options->names[i]);
	}
	for (uint32_t port = 1; !ret && port < daemon->nr_ports; port++)
		if (daemon->ports[port].fd < 0 && !options->plain)
			return daemon_misused("a neighbour of the topology has no port (-p)", NULL);
	return ret;
}

static int bump_open(struct daemon *daemon)
{
	static const struct muster_bump_world world = {
		.now_us = world_now_us, .receive = world_receive, .send = world_send,
		.alloc = world_alloc, .free = world_free,
	};
	const struct options *options = &daemon->options;
	uint8_t routes[MUSTER_BUMP_HOSTS_MAX];
	struct muster_bump_config config = {
		.element = (uint16_t)options->element, .nr_elements = (uint16_t)options->elements,
		.nr_ports = daemon->nr_ports, .routes = routes,
		.open_ports = muster_bump_topology_open(&daemon->topology, options->element),
		.neighbours = daemon->topology.neighbours[options->element],
		.udp_port = options->udp_port, .address = options->address,
		.nr_keys = options->nr_keys, .keys = options->keys,
	};

	if (options->plain)
		return 0;
	muster_bump_topology_routes(&daemon->topology, options->element, routes);
	return muster_bump_create(&config, &world, daemon, &daemon->bump) ?
	       daemon_misused("there is no memory", NULL) : 0;
}

/* ---- running ---- */

enum { TURNS_MAX = 64 };

/* --plain: return whether there was a frame. */
static bool pass_plainly(struct daemon *daemon)
{
	struct muster_bump_frame frame;
	bool came = false;

	for (uint32_t port = 0; port < 2 && port < daemon->nr_ports; port++)
		if (world_receive(daemon, port, &frame)) {
			world_send(daemon, !port, &frame);
			daemon->frames++;
			came = true;
		}
	return came;
}

/*
 * While frames come, but no longer than that: whether other ports have some, and signals,
 * only poll() says, and one port that is flooded would keep it from asking. Return whether
 * there may be more to do, of which poll() knows nothing: what it has received already.
 */
static bool serve(struct daemon *daemon)
{
	for (uint32_t turn = 0; turn < TURNS_MAX; turn++)
		if (!(daemon->bump ? muster_bump_step(daemon->bump) : pass_plainly(daemon)))
			return false;
	return true;
}

static void handle_signal(struct daemon *daemon, int signals)
{
	int signal = daemon_signal(signals);

	if (signal == SIGUSR1)
		print_counters(daemon);
	else if (signal)
		daemon->ended = true;
}

/*
 * Milliseconds until the bump wants to be stepped; a frame that is held does not wait long,
 * one of the host's that is late but there not at all.
 */
static int patience_ms(const struct daemon *daemon)
{
	if (daemon->late.len)
		return 0;
	if (daemon->held.data)
		return 1;
	return daemon_patience_ms(daemon->bump ? muster_bump_deadline_us(daemon->bump) : UINT64_MAX);
}

static void run(struct daemon *daemon, int signals)
{
	struct pollfd fds[MUSTER_BUMP_PORTS_MAX + 1] = { { .fd = signals, .events = POLLIN } };
	bool more = false;

	for (uint32_t port = 0; port < daemon->nr_ports; port++)
		fds[port + 1] = (struct pollfd){ .fd = daemon->ports[port].fd, .events = POLLIN };
	while (!daemon->ended) {
		if (poll(fds, daemon->nr_ports + 1, more ? 0 : patience_ms(daemon)) == 0)
			release(daemon);
		for (uint32_t port = 0; port < daemon->nr_ports; port++)
			daemon->ports[port].ready = fds[port + 1].revents;
		if (fds[0].revents)
			handle_signal(daemon, signals);
		more = serve(daemon);
	}
}

int main(int argc, char **argv)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int signals = daemon_signals(0), ret;

	if (!daemon)
		return daemon_failed("start", strerror(ENOMEM));
	if (signals < 0)
		return 1;
	daemon->options.topology = "ring";
	daemon->options.address = 0x0a4dfffe;
	for (uint32_t port = 0; port < MUSTER_BUMP_PORTS_MAX; port++)
		daemon->ports[port].fd = -1;
	ret = parse_options(argc, argv, &daemon->options);
	if (!ret)
		ret = topology_make(daemon);
	if (!ret)
		ret = daemon_report_try(daemon->options.counters);
	if (!ret)
		ret = ports_open(daemon);
	if (!ret)
		ret = bump_open(daemon);
	if (!ret) {
		daemon_ready();
		run(daemon, signals);
		ret = print_counters(daemon);
	}
	muster_bump_free(daemon->bump);
	free(daemon->late.data);
	for (uint32_t port = 0; port < MUSTER_BUMP_PORTS_MAX; port++)
		if (daemon->ports[port].fd >= 0)
			bump_port_close(&daemon->ports[port]);
	free(daemon);
	return ret < 0 ? 0 : ret;
}
