// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The sentence of a finding (explain_words.h): who waits for whom, step by step. */
#include "explain_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "schedule.h"

enum { SAID_FIRST = 5, SAID_LAST = 4 };	/* of a long way: EXPLAIN_WORDS_MAX has room for them, and the end */

struct words {
	char *text;	/* EXPLAIN_WORDS_MAX */
	size_t len;
};

static void say(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *words, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(words->text + words->len, EXPLAIN_WORDS_MAX - words->len, format, args);
	va_end(args);
	words->len += strlen(words->text + words->len);
}

static const char *coll_words(const struct muster_look_comm *comm)
{
	uint8_t coll = comm->signature.coll;

	return muster_coll_row(coll) ? muster_coll_name(coll) : "operation";
}

static void say_operation(struct words *words, const struct muster_look_comm *comm)
{
	if (comm)
		say(words, "%s %u of communicator %u ", coll_words(comm), comm->ended, comm->context);
	else
		say(words, "the making of a communicator ");
}

static void say_wait(struct words *words, const struct muster_look_wait *wait)
{
	switch (wait->cause) {
	case MUSTER_LOOK_WINDOW:
	case MUSTER_LOOK_CREDIT:
		say(words, "waits for a credit of rank %u", wait->rank);
		break;
	case MUSTER_LOOK_GRANT:
		say(words, "waits for rank %u to take what it has for it", wait->rank);
		break;
	case MUSTER_LOOK_WIRE:
		say(words, "waits for room on the way to rank %u", wait->rank);
		break;
	case MUSTER_LOOK_QUEUE:
		say(words, "cannot end");
		break;
	case MUSTER_LOOK_BUMP:
		say(words, "waits for the bump in the wire");
		break;
	default:
		say(words, "waits for rank %u", wait->rank);
	}
}

bool explain_is_same_operation(const struct hop *a, const struct hop *b)
{
	return a->comm && b->comm && a->comm->context == b->comm->context &&
	       a->comm->life == b->comm->life && a->comm->ended == b->comm->ended;
}

/* In the middle of a long way. */
static bool is_far(uint32_t nr, uint32_t i)
{
	return i >= SAID_FIRST && i + SAID_LAST < nr;
}

/* That, or in the middle of many that wait for each other in the same operation. */
static bool is_left_out(const struct hop *hops, uint32_t nr, uint32_t i)
{
	return is_far(nr, i) || (i > 1 && i + 1 < nr &&
				 explain_is_same_operation(&hops[i - 1], &hops[i]) &&
				 explain_is_same_operation(&hops[i], &hops[i + 1]));
}

static void say_hop(struct words *words, const struct hop *hops, uint32_t nr, uint32_t i)
{
	const struct hop *hop = &hops[i];

	if (is_left_out(hops, nr, i)) {
		if (!is_left_out(hops, nr, i - 1))
			say(words, ", and so on");
		return;
	}
	if (i)
		say(words, "; rank %u ", hop->rank);
	if (i && explain_is_same_operation(hop - 1, hop) && !is_far(nr, i - 1)) {
		say_wait(words, &hop->wait);
	} else {
		if (i)
			say(words, "is in ");
		say_operation(words, hop->comm);
		if (i)
			say(words, "and ");
		say_wait(words, &hop->wait);
	}
	if (hop->late)
		say(words, ", which has not called it");
}

size_t explain_say_hops(char *text, const struct hop *hops, uint32_t nr)
{
	struct words words = { text, 0 };

	*text = '\0';
	for (uint32_t i = 0; i < nr; i++)
		say_hop(&words, hops, nr, i);
	return words.len;
}
