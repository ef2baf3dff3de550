// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Settings from the environment, read once when a job starts. What is set must
 * be understood: a bad value is an error that names the variable, its value and
 * what is allowed. Nothing is ever ignored.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap.h"
#include "rails.h"
#include "schedule.h"

enum {
	SECONDS_MAX = 86400,
	RAIL_BYTES = 65536,
	LOCK_US = 10000000, SLICE_US = 20000,
	TREE_BYTES = 1024,	/* as many packets of a low-latency tree as go at once; above it is slower */
};

/* One of the words, as its index; -EINVAL with why. */
static int word_read(const char *name, const char *value, const char *const *words,
		     const char *allowed, char *why, size_t why_len)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	snprintf(why, why_len, "%s=%s: allowed is %s", name, value, allowed);
	return -EINVAL;
}

static int seconds_read(const char *name, uint64_t *us, char *why, size_t why_len)
{
	const char *value = getenv(name);
	double seconds;
	char *end;

	if (!value)
		return 0;
	seconds = strtod(value, &end);
	if (end != value && !*end && isfinite(seconds) && seconds >= 0.001 &&
	    seconds <= SECONDS_MAX) {
		*us = (uint64_t)(seconds * 1e6);
		return 0;
	}
	snprintf(why, why_len, "%s=%s: allowed is a number of seconds from 0.001 to %d", name,
		 value, SECONDS_MAX);
	return -EINVAL;
}

static uint64_t number_read(const char *name, uint64_t unset, int radix, uint64_t max, bool *wrong)
{
	const char *value = getenv(name);
	char *end;
	uint64_t number;

	if (!value)
		return unset;
	errno = 0;
	number = strtoull(value, &end, radix);
	*wrong |= errno || end == value || *end || *value == '-' || number > max;
	return number;
}

/* Of another rail than the first, the variable that has its number behind. */
static const char *rail_variable(const struct muster_settings *settings, const char *name)
{
	char full[32];

	if (!settings->rail)
		return getenv(name);
	snprintf(full, sizeof(full), "%s_%" PRIu32, name, settings->rail);
	return getenv(full);
}

static int host_read(struct muster_settings *settings, char *why, size_t why_len)
{
	bool wrong = false;

	settings->first_host = (uint32_t)number_read("MUSTER_FIRST_HOST", 0, 10,
						     MUSTER_NODE_AGGREGATION - 1, &wrong);
	if (!wrong)
		return 0;
	snprintf(why, why_len, "MUSTER_FIRST_HOST=%.32s: allowed is the number of one of the network's hosts",
		 getenv("MUSTER_FIRST_HOST"));
	return -EINVAL;
}

/* The switch that this rank is at: its node and life. */
static bool uplink_read(struct muster_settings *settings)
{
	const char *uplink = rail_variable(settings, "MUSTER_UPLINK");
	char rest;

	return uplink &&
	       sscanf(uplink, "%" SCNu32 ",%" SCNu32 "%c", &settings->uplink, &settings->uplink_life,
		      &rest) == 2 &&
	       settings->uplink >= MUSTER_NODE_AGGREGATION && settings->uplink < MUSTER_NODES_MAX &&
	       settings->uplink_life;
}

/* A NIC's wire is its own; but its host is to know which switch that leads to, if any. */
static int nic_uplink_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *uplink = getenv("MUSTER_UPLINK");

	if (!uplink || uplink_read(settings))
		return 0;
	snprintf(why, why_len, "MUSTER_UPLINK=%.32s: expected are node and life of the switch that the NIC is at (muster-run --vm --topology sets them)",
		 uplink);
	return -EINVAL;
}

/* The network of switches: its wire, and the one that this rank is at. */
static int fabric_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *fabric = rail_variable(settings, "MUSTER_FABRIC");
	const char *uplink = rail_variable(settings, "MUSTER_UPLINK");

	if (fabric && *fabric && strlen(fabric) < sizeof(settings->fabric) && uplink_read(settings)) {
		strcpy(settings->fabric, fabric);
		return host_read(settings, why, why_len);
	}
	snprintf(why, why_len, "MUSTER_WIRE=switch needs MUSTER_FABRIC, the wire of the switches, and MUSTER_UPLINK, the node and life of this rank's own (muster-run --topology sets them), not %.64s and %.32s",
		 fabric ? fabric : "none", uplink ? uplink : "none");
	return -EINVAL;
}

static int device_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const devices[] = { "local", "verbs", NULL };
	static const char *const wires[] = { "ring", "unix", "udp", "switch", NULL };
	const char *device = getenv("MUSTER_DEVICE");
	const char *wire = getenv("MUSTER_WIRE");
	int index;

	index = word_read("MUSTER_DEVICE", device ? device : "local", devices, "local or verbs",
			  why, why_len);
	if (index < 0)
		return index;
	strcpy(settings->device, devices[index]);
	if (index == 1 && wire) {
		snprintf(why, why_len, "MUSTER_WIRE=%s: the verbs device's wire is its NIC's; unset it",
			 wire);
		return -EINVAL;
	}
	if (index == 1 && getenv("MUSTER_ENGINE")) {
		snprintf(why, why_len, "MUSTER_ENGINE=%.64s: the verbs device's engine is its NIC's, which muster-run --vm has as this says; unset it",
			 getenv("MUSTER_ENGINE"));
		return -EINVAL;
	}
	if (index == 1 && getenv("MUSTER_DUMP")) {
		snprintf(why, why_len, "MUSTER_DUMP=%.64s: packets of the verbs device are its NIC's, which muster-run --vm has write them; unset it",
			 getenv("MUSTER_DUMP"));
		return -EINVAL;
	}
	if (index == 1)
		return nic_uplink_read(settings, why, why_len);
	index = word_read("MUSTER_WIRE", wire ? wire : "ring", wires, "ring, unix, udp or switch",
			  why, why_len);
	if (index < 0)
		return index;
	strcpy(settings->wire, wires[index]);
	return strcmp(settings->wire, "switch") ? 0 : fabric_read(settings, why, why_len);
}

/* False: there is no room for it. */
static bool list_add(struct muster_settings *settings, const char *item, size_t len)
{
	size_t at = strlen(settings->schedule), comma = at > 0;

	if (at + comma + len >= sizeof(settings->schedule))
		return false;
	snprintf(settings->schedule + at, len + comma + 1, "%s%s", comma ? "," : "", item);
	return true;
}

/* MUSTER_ALLREDUCE=4K=direct,ring and the like: the same as allreduce:4K=direct,allreduce=ring. */
static int collective_read(struct muster_settings *settings, enum muster_coll coll, char *why,
			   size_t why_len)
{
	char name[32], item[MUSTER_SCHEDULE_NAME_MAX + 32];
	const char *value, *from, *end;
	int at = snprintf(name, sizeof(name), "MUSTER_%s", muster_coll_name(coll)), len = 0;

	while (at-- > 0)
		name[at] = name[at] == '-' ? '_' : (char)toupper((unsigned char)name[at]);
	value = getenv(name);
	for (from = value; from; from = *end ? end + 1 : NULL) {
		end = strchrnul(from, ',');
		len = snprintf(item, sizeof(item), "%s%s%.*s", muster_coll_name(coll),
			       memchr(from, '=', (size_t)(end - from)) ? ":" : "=", (int)(end - from), from);
		if (end == from || strchr(item, '/') || len >= (int)sizeof(item) ||
		    !list_add(settings, item, (size_t)len)) {
			snprintf(why, why_len, "%s=%.32s: allowed are schedules' names, each by itself or behind the size up to which it is meant (4K=direct,ring); a file goes to MUSTER_SCHEDULE",
				 name, value);
			return -EINVAL;
		}
	}
	return 0;
}

/* Only the form is checked here; that the schedule exists and fits, when the world is there. */
static int schedule_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *value = getenv("MUSTER_SCHEDULE");
	int err = 0;

	for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END && !err; coll++)
		err = coll == MUSTER_COLL_CUSTOM ? 0 : collective_read(settings, coll, why, why_len);
	if (err || !value)
		return err;
	if (*settings->schedule && (!strchr(value, '=') || strchr(value, '/'))) {
		snprintf(why, why_len, "MUSTER_SCHEDULE=%.32s beside %.64s of a collective's own variable: it has to be a list there, such as broadcast=binomial",
			 value, settings->schedule);
		return -EINVAL;
	}
	if (!*value || !list_add(settings, value, strlen(value))) {
		snprintf(why, why_len,
			 "MUSTER_SCHEDULE=%.32s: allowed is a schedule's name or a file, of 1 to %zu bytes",
			 value, sizeof(settings->schedule) - 1);
		return -EINVAL;
	}
	return 0;
}

/* Where muster-tune writes; nobody need have run it. */
static bool tuning_find(char *path, size_t len)
{
	const char *home = getenv("HOME");

	return home && *home == '/' &&
	       (size_t)snprintf(path, len, "%s/.config/muster/tuning", home) < len && !access(path, R_OK);
}

static int tuning_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *value = getenv("MUSTER_TUNING");

	if (!value && !tuning_find(settings->tuning, sizeof(settings->tuning)))
		memset(settings->tuning, 0, sizeof(settings->tuning));
	if (!value || !strcmp(value, "off"))
		return 0;
	if (!strchr(value, '/') || strlen(value) >= sizeof(settings->tuning)) {
		snprintf(why, why_len, "MUSTER_TUNING=%.32s: allowed is off, or a file with a slash in its path, of at most %zu bytes",
			 value, sizeof(settings->tuning) - 1);
		return -EINVAL;
	}
	strcpy(settings->tuning, value);
	return 0;
}

static int offload_read(const char *name, const char *unset, uint32_t *offload, char *why, size_t why_len)
{
	static const char *const words[] = { "off", "try", "force", NULL };
	const char *value = getenv(name);
	int index = word_read(name, value ? value : unset, words, "off, try or force", why, why_len);

	if (index < 0)
		return index;
	*offload = (uint32_t)index;
	return 0;
}

/* Where another job may have the streaming tree. */
static int lock_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const words[] = { "wait", "fail", NULL };
	const char *value = getenv("MUSTER_LOCK");
	int ret = word_read("MUSTER_LOCK", value ? value : "wait", words, "wait or fail", why, why_len);

	if (ret < 0)
		return ret;
	settings->lock_fails = ret == 1;
	settings->lock_us = LOCK_US;
	settings->slice_us = SLICE_US;
	ret = seconds_read("MUSTER_LOCK_WAIT", &settings->lock_us, why, why_len);
	return ret ? ret : seconds_read("MUSTER_LOCK_SLICE", &settings->slice_us, why, why_len);
}

static int manager_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *manager = rail_variable(settings, "MUSTER_MANAGER");

	memset(settings->manager, 0, sizeof(settings->manager));
	if (manager && (!*manager || strlen(manager) >= sizeof(settings->manager))) {
		snprintf(why, why_len, "MUSTER_MANAGER=%.32s: allowed is an address of 1 to %zu bytes",
			 manager, sizeof(settings->manager) - 1);
		return -EINVAL;
	}
	if (manager)
		strcpy(settings->manager, manager);
	return 0;
}

/* The reduction switches: whether to use them, or at least their order, who makes groups, and up to which length. */
static int tree_read(struct muster_settings *settings, char *why, size_t why_len)
{
	bool wrong = false;
	int err = offload_read("MUSTER_SWITCH", "try", &settings->tree, why, why_len);

	if (!err)
		err = offload_read("MUSTER_SWITCH_ORDER", "off", &settings->order, why, why_len);
	if (err)
		return err;
	settings->tree_bytes = number_read("MUSTER_SWITCH_BYTES", TREE_BYTES, 10, INT64_MAX, &wrong);
	if (wrong) {
		snprintf(why, why_len, "MUSTER_SWITCH_BYTES=%.32s: allowed is a number of bytes",
			 getenv("MUSTER_SWITCH_BYTES"));
		return -EINVAL;
	}
	err = manager_read(settings, why, why_len);
	return err ? err : lock_read(settings, why, why_len);
}

/* How many NICs a rank has, each at a network of switches. */
static int rails_read(struct muster_settings *settings, char *why, size_t why_len)
{
	bool wrong = false;

	settings->rails = (uint32_t)number_read("MUSTER_RAILS", 1, 10, MUSTER_RAILS_MAX, &wrong);
	if (wrong || !settings->rails || (settings->rails > 1 && strcmp(settings->wire, "switch"))) {
		snprintf(why, why_len, "MUSTER_RAILS=%.32s: allowed is 1, and up to %d with MUSTER_WIRE=switch (muster-run --rails sets them)",
			 getenv("MUSTER_RAILS"), MUSTER_RAILS_MAX);
		return -EINVAL;
	}
	settings->rail_bytes = number_read("MUSTER_RAIL_BYTES", RAIL_BYTES, 10, INT64_MAX, &wrong);
	if (!wrong)
		return 0;
	snprintf(why, why_len, "MUSTER_RAIL_BYTES=%.32s: allowed is a number of bytes", getenv("MUSTER_RAIL_BYTES"));
	return -EINVAL;
}

/* All that the caller sees is the first one's: what is chosen, counted, recorded and begun anew. */
int muster_settings_rail(struct muster_settings *settings, const struct muster_settings *first,
			 uint32_t rail, char *why, size_t why_len)
{
	int err;

	*settings = *first;
	settings->rail = rail;
	settings->mixed = true;		/* who is lost the first one says, or the network */
	settings->restart = MUSTER_RESTART_OFF;
	settings->trace = settings->stats = settings->log = settings->helper = false;
	memset(settings->schedule, 0, sizeof(settings->schedule));
	memset(settings->tuning, 0, sizeof(settings->tuning));
	memset(settings->bump, 0, sizeof(settings->bump));
	memset(settings->fabric, 0, sizeof(settings->fabric));
	err = fabric_read(settings, why, why_len);
	return err ? err : manager_read(settings, why, why_len);
}

/* An IPv4 address and a port. */
static bool is_endpoint(const char *value)
{
	char address[INET_ADDRSTRLEN], *end;
	const char *colon = strchr(value, ':');
	size_t len = colon ? (size_t)(colon - value) : sizeof(address);
	struct in_addr binary;
	unsigned long port;

	if (len >= sizeof(address) || colon[1] < '0' || colon[1] > '9' || strlen(colon) > 6)
		return false;
	memcpy(address, value, len);
	address[len] = '\0';
	port = strtoul(colon + 1, &end, 10);
	return inet_pton(AF_INET, address, &binary) == 1 && !*end && port && port <= UINT16_MAX;
}

static int bump_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *value = getenv("MUSTER_BUMP");
	bool wrong = false;

	if (!value)
		return 0;
	if (!is_endpoint(value)) {
		snprintf(why, why_len, "MUSTER_BUMP=%.64s: expected is an IPv4 address and a port, as 10.77.255.254:19778",
			 value);
		return -EINVAL;
	}
	settings->bump_key = number_read("MUSTER_BUMP_KEY", 0, 16, UINT64_MAX, &wrong);
	settings->bump_hosts = (uint16_t)number_read("MUSTER_BUMP_HOSTS", 0, 10, 1024, &wrong);
	settings->bump_local_rank = (uint8_t)number_read("MUSTER_BUMP_LOCAL_RANK", 0, 10, 15, &wrong);
	settings->bump_local_ranks = (uint8_t)number_read("MUSTER_BUMP_LOCAL_RANKS", 1, 10, 16, &wrong);
	if (wrong || !getenv("MUSTER_BUMP_KEY")) {
		snprintf(why, why_len, "MUSTER_BUMP=%s also needs MUSTER_BUMP_KEY (hexadecimal); MUSTER_BUMP_HOSTS, _LOCAL_RANK and _LOCAL_RANKS, if they are set, are numbers (muster(7))",
			 value);
		return -EINVAL;
	}
	strcpy(settings->bump, value);
	return 0;
}

static int restart_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const words[] = { "off", "try", "agreed", NULL };
	const char *value = getenv("MUSTER_RESTART");
	int index = word_read("MUSTER_RESTART", value ? value : "off", words, "off, try or agreed", why, why_len);

	settings->restart = index < 0 ? MUSTER_RESTART_OFF : (uint32_t)index;
	return index < 0 ? index : 0;
}

static int flag_read(const char *name, bool *flag, char *why, size_t why_len)
{
	bool wrong = false;

	*flag = number_read(name, 0, 10, 1, &wrong);
	if (!wrong)
		return 0;
	snprintf(why, why_len, "%s=%.32s: allowed is 0 or 1", name, getenv(name));
	return -EINVAL;
}

static int progress_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const words[] = { "calls", "thread", NULL };
	const char *value = getenv("MUSTER_PROGRESS");
	int index = word_read("MUSTER_PROGRESS", value ? value : "calls", words, "calls or thread",
			      why, why_len);

	settings->helper = index == 1;
	return index < 0 ? index : 0;
}

static int log_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const words[] = { "off", "info", NULL };
	const char *value = getenv("MUSTER_LOG");
	int index = word_read("MUSTER_LOG", value ? value : "off", words, "off or info", why, why_len);

	settings->log = index == 1;
	return index < 0 ? index : 0;
}

int muster_settings_read(struct muster_settings *settings, char *why, size_t why_len)
{
	int err;

	memset(settings, 0, sizeof(*settings));	/* it travels: no byte undefined */
	err = device_read(settings, why, why_len);
	if (!err)
		err = schedule_read(settings, why, why_len);
	if (!err)
		err = tuning_read(settings, why, why_len);
	if (!err)
		err = offload_read("MUSTER_OFFLOAD", "try", &settings->offload, why, why_len);
	if (!err)
		err = tree_read(settings, why, why_len);
	if (!err)
		err = rails_read(settings, why, why_len);
	if (!err)
		err = bump_read(settings, why, why_len);
	if (!err)
		err = restart_read(settings, why, why_len);
	if (!err)
		err = muster_bootstrap_deadline(&settings->deadline_us, why, why_len);
	if (!err)
		err = seconds_read("MUSTER_LATE_TIMEOUT", &settings->late_us, why, why_len);
	if (!err)
		err = flag_read("MUSTER_TRACE", &settings->trace, why, why_len);
	if (!err)
		err = flag_read("MUSTER_STATS", &settings->stats, why, why_len);
	if (!err)
		err = log_read(settings, why, why_len);
	if (!err)
		err = progress_read(settings, why, why_len);
	return err;
}
