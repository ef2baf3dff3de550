// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A buffer is of bytes, the others are numbers. */
static const struct {
	const char *name;
	size_t at;
	uint32_t least, most, unit;
} words[] = {
	{ "units=", offsetof(struct muster_engine_model, units), 1, MUSTER_UNITS_MAX, 1 },
	{ "buffer=", offsetof(struct muster_engine_model, buffer), 0, MUSTER_ENGINE_BUFFER_MAX, MUSTER_MTU },
	{ "window=", offsetof(struct muster_engine_model, window), 1, MUSTER_WINDOW, 1 },
	{ "pulses=", offsetof(struct muster_engine_model, pulses), 1, MUSTER_PULSES_LIVE, 1 },
	{ "engine-threads=", offsetof(struct muster_engine_model, threads), 1, MUSTER_UNITS_MAX, 1 },
};

/* Up to the next comma: false if it is no number, or too large. */
static bool number_read(const char **at, uint64_t *number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*number = strtoul(*at, &end, 10);
	if (errno || *number > UINT32_MAX)
		return false;
	if (*end == 'K' || *end == 'M')
		*number <<= *end++ == 'K' ? 10 : 20;
	*at = end + (*end == ',');
	return !*end || *end == ',';
}

static bool word_read(const char **at, struct muster_engine_model *model)
{
	uint64_t number;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t len = strlen(words[i].name);
		uint32_t value;

		if (strncmp(*at, words[i].name, len))
			continue;
		*at += len;
		if (!number_read(at, &number) || number < words[i].least || number > words[i].most ||
		    number % words[i].unit)
			return false;
		value = number ? (uint32_t)number : MUSTER_ENGINE_NO_BUFFER;
		memcpy((char *)model + words[i].at, &value, sizeof(value));
		return true;
	}
	return false;
}

int muster_model_read(const char *name, const char *text, struct muster_engine_model *model, char *why,
		      size_t why_len)
{
	const char *at = text ? text : "";

	memset(model, 0, sizeof(*model));
	while (*at)
		if (!word_read(&at, model)) {
			snprintf(why, why_len, "%s=%.64s: allowed is a list of units=1 to %d, buffer=0 to %dM in steps of %d bytes, window=1 to %d, pulses=1 to %d, engine-threads=1 to units, as in units=2,buffer=64K",
				 name, text, MUSTER_UNITS_MAX, MUSTER_ENGINE_BUFFER_MAX >> 20, MUSTER_MTU,
				 MUSTER_WINDOW, MUSTER_PULSES_LIVE);
			return -EINVAL;
		}
	return 0;
}
