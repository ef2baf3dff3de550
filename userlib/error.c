// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sentences: every error is noted here once, in words, and returned as -errno.
 * A sentence says what was wrong, where, and what to do.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static _Thread_local char init_sentence[MUSTER_SENTENCE_MAX] = "no error";
static _Thread_local char thread_sentence[MUSTER_SENTENCE_MAX] = "no error";

/* Where several threads use the job each has its own. */
static char *sentence_of(struct muster *job)
{
	return job->turn ? thread_sentence : job->sentence;
}

int muster_fail(struct muster *job, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence_of(job), MUSTER_SENTENCE_MAX, format, args);
	va_end(args);
	return err;
}

int muster_fail_init(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(init_sentence, sizeof(init_sentence), format, args);
	va_end(args);
	return err;
}

const char *muster_error(const struct muster *job)
{
	return job ? sentence_of((struct muster *)(uintptr_t)job) : init_sentence;
}

/* The public names of types and operations are those of the device, all of them. */
#define IS_SAME(name, number, ...) _Static_assert(MUSTER_##name == number, #name);
MUSTER_DTYPES(IS_SAME)
MUSTER_REDOPS(IS_SAME)

#define NAME(name, number, word, ...) [number] = word,

const char *muster_type_name(uint32_t type)
{
	static const char *const names[] = { "no type", MUSTER_DTYPES(NAME) };

	return type <= MUSTER_DTYPE_LAST ? names[type] : "an unknown type";
}

const char *muster_op_name(uint32_t op)
{
	static const char *const names[] = { "no operation", MUSTER_REDOPS(NAME) };

	return op <= MUSTER_REDOP_LAST ? names[op] : "an unknown operation";
}

void muster_signature_words(const struct muster_signature *signature, char *words, size_t len)
{
	const char *type = muster_type_name(signature->type);
	const char *op = muster_op_name(signature->op);
	uint32_t coll = signature->coll, root = signature->root;
	const struct muster_coll_row *row = muster_coll_row(coll);
	char with_root[32] = "";

	if (muster_coll_rooted(coll))
		snprintf(with_root, sizeof(with_root), " with root %u", root);
	if (!row)
		snprintf(words, len, "an unknown operation");
	else if (!row->has_data || (signature->op && !row->combines))	/* lengths are told */
		snprintf(words, len, "%s%s", row->name, with_root);
	else
		snprintf(words, len, "%s of %s%s%s%s", row->name, type, row->combines ? " " : "",
			 row->combines ? op : "", with_root);
}

int muster_status_errno(uint8_t status)
{
	switch (status) {
	case MUSTER_STATUS_OK:
		return 0;
	case MUSTER_STATUS_MISMATCH:
	case MUSTER_STATUS_PROTOCOL:
		return -EPROTO;
	case MUSTER_STATUS_PEER_LOST:
		return -ECONNRESET;
	case MUSTER_STATUS_ABORTED:
	case MUSTER_STATUS_FLUSHED:
	case MUSTER_STATUS_STARVED:
		return -ECONNABORTED;
	case MUSTER_STATUS_MEMORY:
		return -EFAULT;
	default:
		return -EIO;
	}
}

int muster_rank_errno(int32_t status)
{
	return status < 0 && status > -4096 ? status : -EPROTO;
}
