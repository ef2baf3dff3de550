// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From a seed that fails to the least of it that fails as well: fewer ranks, communicators
 * and operations, and each kind of fault left out. What is left need not be the same
 * bug, but it is one. Limits are a text, too, so that it can be run again.
 */
#include "dst.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 };

/* ---- limits as a text --------------------------------------------------------------- */

static struct amount {
	const char *name;
	size_t offset;
	uint32_t least;
} const amounts[] = {
	{ "comms", offsetof(struct dst_limits, comms), 1 },
	{ "ranks", offsetof(struct dst_limits, ranks), 2 },
	{ "ops", offsetof(struct dst_limits, ops), 1 },
};

enum { AMOUNTS = sizeof(amounts) / sizeof(amounts[0]) };

static uint32_t *amount_of(struct dst_limits *limits, uint32_t i)
{
	return (uint32_t *)((uint8_t *)limits + amounts[i].offset);
}

static bool word_read(struct dst_limits *limits, const char *word)
{
	for (uint32_t i = 0; i < AMOUNTS; i++) {
		size_t len = strlen(amounts[i].name);

		if (!strncmp(word, amounts[i].name, len) && word[len] == '=') {
			*amount_of(limits, i) = (uint32_t)atoi(word + len + 1);
			return *amount_of(limits, i) >= amounts[i].least;
		}
	}
	for (uint32_t i = 0; !strncmp(word, "no-", 3) && dst_fault_name(i); i++)
		if (!strcmp(word + 3, dst_fault_name(i))) {
			limits->without |= 1u << i;
			return true;
		}
	return false;
}

bool dst_limits_read(struct dst_limits *limits, const char *text)
{
	char copy[DST_WHY_MAX], *place, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &place); word; word = strtok_r(NULL, ",", &place))
		if (!word_read(limits, word))
			return false;
	return true;
}

void dst_limits_write(const struct dst_limits *limits, char *text, size_t size)
{
	struct dst_limits copy = *limits;
	const char *comma = "";
	size_t at = 0;

	*text = '\0';
	for (uint32_t i = 0; i < AMOUNTS; i++) {
		if (!*amount_of(&copy, i) || at >= size)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s%s=%u", comma, amounts[i].name,
				       *amount_of(&copy, i));
		comma = ",";
	}
	for (uint32_t i = 0; dst_fault_name(i); i++) {
		if (!(limits->without >> i & 1) || at >= size)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%sno-%s", comma, dst_fault_name(i));
		comma = ",";
	}
}

/* ---- less and less ------------------------------------------------------------------ */

/* Whether it fails under these limits; then they are kept. */
static bool still_fails(struct dst_world *w, uint64_t seed, const struct dst_limits *limits)
{
	const struct dst_limits before = w->limits;

	w->limits = *limits;
	if (!dst_world_run(w, seed))
		return true;
	w->limits = before;
	return false;
}

/* The least from below: most bugs need little. */
static bool less_of(struct dst_world *w, uint64_t seed, uint32_t i, uint32_t now)
{
	uint32_t had = *amount_of(&w->limits, i) ? *amount_of(&w->limits, i) : now;

	for (uint32_t nr = amounts[i].least; nr < had; nr++) {
		struct dst_limits limits = w->limits;

		*amount_of(&limits, i) = nr;
		if (still_fails(w, seed, &limits))
			return true;
	}
	return false;
}

static bool round_of(struct dst_world *w, uint64_t seed, const uint32_t *most)
{
	bool less = false;

	for (uint32_t i = 0; i < AMOUNTS; i++)
		less |= less_of(w, seed, i, most[i]);
	for (uint32_t i = 0; dst_fault_name(i); i++) {
		struct dst_limits limits = w->limits;

		limits.without |= 1u << i;
		if (limits.without != w->limits.without)
			less |= still_fails(w, seed, &limits);
	}
	return less;
}

bool dst_shrink(struct dst_world *w, uint64_t seed)
{
	const uint32_t most[AMOUNTS] = { w->library ? 0 : w->plan.comms, w->plan.ranks, DST_OPS_MAX };
	bool less = false;

	for (int i = 0; i < ROUNDS_MAX && round_of(w, seed, most); i++)
		less = true;
	return less && !dst_world_run(w, seed);
}
