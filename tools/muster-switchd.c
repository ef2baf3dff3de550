// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster-switchd: switches of a network as a process. This file reads the options, and
 * waits; a switch on its wire is switch_box.c, what it does is in qemu-device/switch/, and
 * groups are made by muster-am, which switch_manager.c listens to.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "daemon.h"
#include "fabric_file.h"
#include "limit.h"
#include "switch_box.h"
#include "switch_draw.h"
#include "switch_manager.h"
#include "switch_replace.h"
#include "version.h"

static const char help[] =
	"Usage: muster-switchd -t TOPOLOGY -w WIRE [OPTION]...\n"
	"       muster-switchd -t TOPOLOGY -d FILE\n"
	"Be switches of a network of hosts and switches: forward packets, combine trees.\n"
	"TOPOLOGY is switch:N, fat-tree:HxLxS, fat-tree:HxLxAxPxC, switch-torus:HxAxB, or a file.\n"
	"\n"
	"  -t, --topology=TOPOLOGY  the network\n"
	"  -w, --wire=WIRE       unix:DIR, unix:@NAME, udp:@FILE: host H is node H there, switch S\n"
	"                        is 16711680 + S\n"
	"  -s, --switches=A[-B]  which of its switches (all)\n"
	"  -r, --radix=N         ports of each switch, 2 to 128 (40)\n"
	"  -S, --segments=N      of a streaming group at each switch, 2 to 32 (32): one more than it gives credits\n"
	"  -l, --life=N          number of this start of the network, the same at all its switches (1)\n"
	"  -m, --manager=ADDRESS  take part in the groups of the manager (muster-am) there: @NAME, or a path\n"
	"  -j, --json            counters as JSON, a line for each switch\n"
	"  -c, --counters=FILE   append counters to it, not to the standard output\n"
	"  -d, --draw=FILE       draw the network with its trees, and an operation's packets over time, as SVG\n"
	"  -h, --help  -V, --version\n"
	"\n"
	"It says \"ready\" when all its switches listen, and the manager knows them. SIGUSR1 prints the\n"
	"counters; SIGUSR2 has the program that is now where this one was go on in its place, with all that the\n"
	"switches have; SIGTERM and SIGINT end it, with the counters. Exit status: 0; 1 a switch cannot listen,\n"
	"the manager refuses it, or counters are lost; 2 wrong usage.\n";

enum {
	FDS_OWN = 2,
	LAST_STEPS = 1000,	/* at the end: whoever keeps us busy does not keep us */
	REPLACE_US = 10000,	/* until we look again whether another program can take our place */
};

struct options {
	const char *topology, *wire, *counters, *manager, *draw;
	uint32_t first, last;		/* switches; last UINT32_MAX: all that there are */
	uint32_t radix, life, segments;
	int resume;			/* where another program's state is; -1: there is none */
	bool trial;			/* only see whether that can be gone on with */
	bool json;
};

enum { KEY_RESUME = 256, KEY_TRIAL };

/* Of what one program writes for the next. */
struct heading {
	uint32_t version;		/* MUSTER_SWITCH_STATE_VERSION */
	uint32_t nr;			/* switches */
	uint32_t replaced;		/* programs so far, before this one */
	bool managed, ready;
};

struct daemon {
	struct options options;
	struct muster_fabric *fabric;
	uint32_t nr;
	struct switch_box *boxes;
	struct switch_manager *manager;	/* NULL: there is none */
	struct pollfd *fds;		/* signals, manager, then boxes */
	char **argv;
	FILE *state;			/* of another program, whose place we take; or NULL */
	bool leaves;			/* another program is to take ours: */
	pid_t trial;			/* it is being tried; 0: not yet, */
	uint32_t replaced;		/* as we have taken that of so many */
	int ret;			/* the exit status */
	bool ready;			/* whoever started us knows that we are */
	bool ended;
};

/* ---- options ---------------------------------------------------------------------- */

static int parse_switches(struct options *options, const char *text)
{
	unsigned int first, last;
	char rest;
	int nr = sscanf(text, "%u-%u%c", &first, &last, &rest);

	if (nr == 1)
		last = first;
	if (nr < 1 || nr > 2 || first > last || last >= MUSTER_FABRIC_NODES_MAX)
		return daemon_misused("-s wants A or A-B, numbers of switches, not", text);
	options->first = first;
	options->last = last;
	return 0;
}

static const struct option long_options[] = {
	{ "topology", required_argument, NULL, 't' }, { "wire", required_argument, NULL, 'w' },
	{ "switches", required_argument, NULL, 's' }, { "radix", required_argument, NULL, 'r' },
	{ "segments", required_argument, NULL, 'S' },
	{ "life", required_argument, NULL, 'l' }, { "json", no_argument, NULL, 'j' },
	{ "counters", required_argument, NULL, 'c' }, { "manager", required_argument, NULL, 'm' },
	{ "draw", required_argument, NULL, 'd' }, { "resume", required_argument, NULL, KEY_RESUME },
	{ "trial", no_argument, NULL, KEY_TRIAL }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
};

static int parse_option(int key, void *of)
{
	struct options *options = of;

	switch (key) {
	case 't':
		options->topology = optarg;
		return 0;
	case 'w':
		options->wire = optarg;
		return 0;
	case 's':
		return parse_switches(options, optarg);
	case 'r':
		return daemon_number(optarg, MUSTER_SWITCH_RADIX_MIN, MUSTER_SWITCH_RADIX_MAX,
				     &options->radix);
	case 'S':
		return daemon_number(optarg, MUSTER_SWITCH_SEGMENTS_MIN, MUSTER_SWITCH_SEGMENTS, &options->segments);
	case 'l':
		return daemon_number(optarg, 1, UINT32_MAX, &options->life);
	case 'j':
		options->json = true;
		return 0;
	case 'c':
		options->counters = optarg;
		return 0;
	case 'm':
		options->manager = optarg;
		return 0;
	case 'd':
		options->draw = optarg;
		return 0;
	case KEY_RESUME:
		options->resume = atoi(optarg);
		return 0;
	case KEY_TRIAL:
		options->trial = true;
		return 0;
	default:
		return DAEMON_EXIT_USAGE;
	}
}

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct daemon_usage usage = {
		.help = help, .shorts = "t:w:s:r:S:l:m:d:jc:hV", .longs = long_options,
		.take = parse_option,
	};
	int ret = daemon_options(&usage, argc, argv, options);

	if (!ret && (!options->topology || (!options->wire && !options->draw)))
		ret = daemon_misused("say with -t which network, and with -w where its nodes listen",
				     NULL);
	return ret;
}

/* ---- counters ---------------------------------------------------------------------- */

#define COUNTER(name) { #name, offsetof(struct muster_switch_counters, name) }

static const struct daemon_counter counter_names[] = {
	COUNTER(packets_in), COUNTER(forwarded), COUNTER(held_back), COUNTER(contributions),
	COUNTER(combined), COUNTER(results), COUNTER(limited), COUNTER(copies_once), COUNTER(copies),
	COUNTER(copies_spared), COUNTER(failed), COUNTER(drop_malformed), COUNTER(drop_route),
	COUNTER(drop_stranger), COUNTER(drop_duplicate), COUNTER(drop_window), COUNTER(drop_failed),
	COUNTER(drop_unlocked), COUNTER(locks), COUNTER(locks_refused), COUNTER(locked), COUNTER(lock_waits),
	COUNTER(groups), COUNTER(bytes), COUNTER(held), COUNTER(flows),
	COUNTER(gone),
};

static void report_box(const struct daemon_report *report, const struct daemon *daemon,
		       const struct switch_box *box)
{
	struct muster_switch_counters counters;
	struct muster_wire_counters wire;

	muster_switch_counters_get(box->sw, &counters);
	muster_wire_socket_counters(box->wire, &wire);
	daemon_report_begin(report, "switch", box->number);
	daemon_report_all(report, counter_names, sizeof(counter_names) / sizeof(counter_names[0]),
			  &counters);
	daemon_report_one(report, "frames_in", wire.frames_in);
	daemon_report_one(report, "frames_out", wire.frames_out);
	daemon_report_one(report, "retransmitted", wire.retransmitted);
	daemon_report_one(report, "refused", wire.refused);
	daemon_report_one(report, "replaced", daemon->replaced);
	daemon_report_end(report);
}

static int print_counters(const struct daemon *daemon)
{
	struct daemon_report report;
	int ret = daemon_report_open(&report, daemon->options.counters, daemon->options.json);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < daemon->nr; i++)
		report_box(&report, daemon, &daemon->boxes[i]);
	return daemon_report_close(&report);
}

/* ---- opening ------------------------------------------------------------------------ */

static int network_read(struct daemon *daemon)
{
	struct options *options = &daemon->options;
	uint32_t all;
	char why[400] = "";

	if (muster_fabric_read(options->topology, options->radix, &daemon->fabric, why, sizeof(why))) {
		fprintf(stderr, "muster-switchd: %s: %s\n", options->topology, why);
		return 2;
	}
	all = muster_fabric_switches(daemon->fabric);
	if (options->last == UINT32_MAX)
		options->last = all - 1;
	if (options->last >= all)
		return daemon_misused("-s names a switch that is not in", options->topology);
	return 0;
}

static int box_open(const struct daemon *daemon, struct switch_box *box, uint32_t number, char *why,
		    size_t why_len)
{
	const struct options *options = &daemon->options;

	return daemon->state ?
	       switch_box_resume(box, daemon->fabric, number, options->wire, daemon->state, why, why_len) :
	       switch_box_open(box, daemon->fabric, number, options->wire, options->life, why, why_len);
}

static int boxes_open(struct daemon *daemon, int signals)
{
	uint32_t wanted = daemon->options.last - daemon->options.first + 1;
	char why[400] = "";

	daemon->boxes = calloc(wanted, sizeof(*daemon->boxes));
	daemon->fds = calloc(FDS_OWN + wanted, sizeof(*daemon->fds));
	if (!daemon->boxes || !daemon->fds)
		return daemon_failed("switches", strerror(ENOMEM));
	daemon->fds[0] = (struct pollfd){ .fd = signals, .events = POLLIN };
	daemon->fds[1].fd = -1;
	for (uint32_t i = 0; i < wanted; i++, daemon->nr++) {
		struct switch_box *box = &daemon->boxes[i];

		if (box_open(daemon, box, daemon->options.first + i, why, sizeof(why))) {
			fprintf(stderr, "muster-switchd: switch %" PRIu32 ": %s\n",
				daemon->options.first + i, why);
			return 1;
		}
		box->segments = daemon->options.segments;
		daemon->fds[FDS_OWN + i] = (struct pollfd){ .fd = box->wire->ops->fd(box->wire),
							    .events = POLLIN };
	}
	return 0;
}

static int manager_open(struct daemon *daemon)
{
	const char *address = daemon->options.manager;
	int err;

	if (!address)
		return 0;
	err = switch_manager_open(address, daemon->fabric, daemon->boxes, daemon->nr, &daemon->manager);
	if (!err && daemon->state)
		err = switch_manager_resume(daemon->manager, daemon->state);
	if (err)
		return daemon_failed(address, strerror(-err));
	daemon->fds[1] = (struct pollfd){ .fd = switch_manager_fd(daemon->manager),
					  .events = POLLIN };
	return 0;
}

/* The place of another program, whose state was written with the same options. */
static int state_open(struct daemon *daemon)
{
	uint32_t wanted = daemon->options.last - daemon->options.first + 1;
	struct heading heading;

	if (daemon->options.resume < 0)
		return 0;
	daemon->state = fdopen(daemon->options.resume, "r");
	if (!daemon->state || fread(&heading, sizeof(heading), 1, daemon->state) != 1)
		return daemon_failed("--resume", "there is nothing to go on with: it is given by SIGUSR2 only");
	if (heading.version != MUSTER_SWITCH_STATE_VERSION || heading.nr != wanted ||
	    heading.managed != !!daemon->options.manager)
		return daemon_failed("--resume", "what was written is another program's");
	daemon->ready = heading.ready;
	daemon->replaced = heading.replaced + 1;
	return 0;
}

static int draw(const struct daemon *daemon)
{
	char why[400] = "";

	if (!switch_draw(daemon->fabric, daemon->options.topology, daemon->options.draw, why, sizeof(why)))
		return 0;
	fprintf(stderr, "muster-switchd: %s: %s\n", daemon->options.draw, why);
	return 1;
}

/* ---- running ------------------------------------------------------------------------- */

static void handle_signal(struct daemon *daemon)
{
	int signal = daemon_signal(daemon->fds[0].fd);

	if (signal == SIGUSR1)
		print_counters(daemon);
	else if (signal == SIGUSR2)
		daemon->leaves = true;
	else if (signal)
		daemon->ended = true;
}

/* ---- giving our place away --------------------------------------------------------- */

static int state_save(const struct daemon *daemon, FILE *to)
{
	const struct heading heading = {
		.version = MUSTER_SWITCH_STATE_VERSION, .nr = daemon->nr, .replaced = daemon->replaced,
		.managed = !!daemon->manager, .ready = daemon->ready,
	};
	int err = fwrite(&heading, sizeof(heading), 1, to) == 1 ? 0 : -EIO;

	for (uint32_t i = 0; i < daemon->nr && !err; i++)
		err = switch_box_save(&daemon->boxes[i], to);
	if (!err && daemon->manager)
		err = switch_manager_save(daemon->manager, to);
	if (!err && fflush(to))
		err = -errno;
	return err;
}

/* NULL: it could not be written; -EAGAIN: what a manager has no room for is to be said first. */
static FILE *state_new(const struct daemon *daemon, int *err)
{
	FILE *state = switch_replace_state();

	*err = state ? state_save(daemon, state) : -errno;
	if (!*err)
		return state;
	if (state)
		fclose(state);
	return NULL;
}

/* First another process tries with what we have now, then we become that program with what we have then. */
static int replace_step(struct daemon *daemon)
{
	int err = daemon->trial ? switch_replace_tried(daemon->trial) : 0;
	FILE *state = err ? NULL : state_new(daemon, &err);

	if (!state)
		return err;
	if (daemon->trial) {
		err = switch_replace(daemon->argv, state);
	} else {
		daemon->trial = switch_replace_try(daemon->argv, state);
		err = daemon->trial < 0 ? daemon->trial : -EAGAIN;
	}
	fclose(state);
	return err;
}

static void replace(struct daemon *daemon)
{
	int err = replace_step(daemon);

	if (err == -EAGAIN)
		return;
	fprintf(stderr, "muster-switchd: the program at %s does not go on with what this one has (%s); this one does\n",
		daemon->argv[0], strerror(-err));
	daemon->leaves = false;
	daemon->trial = 0;
}

/* Of a life that is over all has been taken that had come before. */
static void losses_tell(struct daemon *daemon, struct switch_box *box)
{
	if (daemon->manager)
		switch_manager_tell_losses(daemon->manager, box);
	switch_box_tell_losses(box);
}

/* Those to whom something has come, or for whom something is due. Return: when to look again. */
static uint64_t boxes_step(struct daemon *daemon)
{
	uint64_t now = muster_clock_us(), next = UINT64_MAX, due;

	for (uint32_t i = 0; i < daemon->nr; i++) {
		struct switch_box *box = &daemon->boxes[i];

		due = switch_box_due_us(box);
		if (daemon->fds[FDS_OWN + i].revents || due <= now)
			due = switch_box_step(box, now) ? now : switch_box_due_us(box);
		if (box->lost) {
			losses_tell(daemon, box);
			due = now;
		}
		if (due < next)
			next = due;
	}
	return next;
}

/* Return: when to look again. */
static uint64_t manager_step(struct daemon *daemon)
{
	uint64_t now = muster_clock_us();

	if (daemon->manager &&
	    (daemon->fds[1].revents || switch_manager_due_us(daemon->manager) <= now))
		switch_manager_step(daemon->manager, now);
	return daemon->manager ? switch_manager_due_us(daemon->manager) : UINT64_MAX;
}

static void ready_say(struct daemon *daemon)
{
	int welcome = daemon->manager ? switch_manager_welcome(daemon->manager) : 1;

	if (welcome > 0)
		daemon_ready();
	daemon->ready = welcome > 0;
	daemon->ended |= welcome < 0;
	daemon->ret = welcome < 0;
}

/* What hosts that have gone have left in the network: credits, mostly, that are told back. */
static bool boxes_settle(struct daemon *daemon)
{
	bool moved = false;

	for (uint32_t i = 0; i < daemon->nr; i++) {
		moved |= switch_box_step(&daemon->boxes[i], muster_clock_us());
		moved |= daemon->boxes[i].owes;
	}
	return moved;
}

static void run(struct daemon *daemon)
{
	while (!daemon->ended) {
		uint64_t next = boxes_step(daemon), due = manager_step(daemon);

		if (!daemon->ready)
			ready_say(daemon);
		if (daemon->ended)
			break;
		next = due < next ? due : next;
		if (daemon->leaves && next > muster_clock_us() + REPLACE_US)
			next = muster_clock_us() + REPLACE_US;
		poll(daemon->fds, FDS_OWN + daemon->nr, daemon_patience_ms(next));
		if (daemon->fds[0].revents)
			handle_signal(daemon);
		if (daemon->leaves)
			replace(daemon);
	}
	for (int i = 0; i < LAST_STEPS && boxes_settle(daemon); i++)
		;
	/* What a manager that has ended before us has taken back. */
	for (int i = 0; i < LAST_STEPS && daemon->manager; i++)
		if (!switch_manager_step(daemon->manager, 0))
			break;
}

static void daemon_close(struct daemon *daemon)
{
	switch_manager_close(daemon->manager);
	for (uint32_t i = 0; i < daemon->nr; i++)
		switch_box_close(&daemon->boxes[i]);
	free(daemon->boxes);
	free(daemon->fds);
	if (daemon->fabric)
		muster_fabric_free(daemon->fabric);
}

static int serve(struct daemon *daemon, int signals)
{
	int ret = daemon_report_try(daemon->options.counters);

	muster_limit_raise();	/* of each switch: its wire, and its manager */
	if (!ret)
		ret = state_open(daemon);
	if (!ret)
		ret = boxes_open(daemon, signals);
	if (!ret)
		ret = manager_open(daemon);
	if (daemon->options.trial)
		_exit(ret);	/* nothing is ours to close */
	if (ret)
		return ret;
	if (daemon->state)
		fclose(daemon->state);
	run(daemon);
	ret = print_counters(daemon);
	return ret ? ret : daemon->ret;
}

int main(int argc, char **argv)
{
	struct daemon daemon = { .options = { .last = UINT32_MAX, .life = 1, .resume = -1 }, .argv = argv };
	int signals = daemon_signals(SIGUSR2), ret;

	ret = signals < 0 ? 1 : parse_options(argc, argv, &daemon.options);
	if (!ret)
		ret = network_read(&daemon);
	if (!ret)
		ret = daemon.options.draw ? draw(&daemon) : serve(&daemon, signals);
	daemon_close(&daemon);
	return ret < 0 ? 0 : ret;
}
