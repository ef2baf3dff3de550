// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Settings from the environment, read once when a job starts. What is set must
 * be understood: a bad value is an error that names the variable, its value and
 * what is allowed. Nothing is ever ignored.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"
#include "internal.h"

enum { SECONDS_MAX = 86400 };

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

static int device_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const devices[] = { "local", "verbs", NULL };
	static const char *const wires[] = { "ring", "unix", "udp", NULL };
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
	if (index == 1)
		return 0;
	index = word_read("MUSTER_WIRE", wire ? wire : "ring", wires, "ring, unix or udp", why,
			  why_len);
	if (index < 0)
		return index;
	strcpy(settings->wire, wires[index]);
	return 0;
}

/* Only the length is checked here; that the schedule exists and fits, when the world is there. */
static int schedule_read(struct muster_settings *settings, char *why, size_t why_len)
{
	const char *value = getenv("MUSTER_SCHEDULE");

	if (!value)
		return 0;
	if (!*value || strlen(value) >= sizeof(settings->schedule)) {
		snprintf(why, why_len,
			 "MUSTER_SCHEDULE=%.32s: allowed is a schedule's name or a file, of 1 to %zu bytes",
			 value, sizeof(settings->schedule) - 1);
		return -EINVAL;
	}
	strcpy(settings->schedule, value);
	return 0;
}

static int offload_read(struct muster_settings *settings, char *why, size_t why_len)
{
	static const char *const words[] = { "off", "try", "force", NULL };
	const char *value = getenv("MUSTER_OFFLOAD");
	int index = word_read("MUSTER_OFFLOAD", value ? value : "try", words, "off, try or force",
			      why, why_len);

	if (index < 0)
		return index;
	settings->offload = (uint32_t)index;
	return 0;
}

int muster_settings_read(struct muster_settings *settings, char *why, size_t why_len)
{
	int err;

	memset(settings, 0, sizeof(*settings));	/* it travels: no byte undefined */
	err = device_read(settings, why, why_len);
	if (!err)
		err = schedule_read(settings, why, why_len);
	if (!err)
		err = offload_read(settings, why, why_len);
	if (!err)
		err = muster_bootstrap_deadline(&settings->deadline_us, why, why_len);
	if (!err)
		err = seconds_read("MUSTER_LATE_TIMEOUT", &settings->late_us, why, why_len);
	return err;
}
