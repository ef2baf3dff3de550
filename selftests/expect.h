/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one rank of a behaviour test expects: what is not so is said on stderr, with
 * rank and line, and ends it with 1. A program that includes this has `rank`, and
 * for EXPECT_OK() `job`.
 */
#ifndef SELFTESTS_EXPECT_H
#define SELFTESTS_EXPECT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition, ...)							\
	do {									\
		if (!(condition)) {						\
			fprintf(stderr, "rank %" PRIu32 ", line %d: ", rank, __LINE__);	\
			fprintf(stderr, __VA_ARGS__);				\
			fputc('\n', stderr);					\
			exit(1);						\
		}								\
	} while (0)

#define EXPECT_OK(call)								\
	do {									\
		int ret_ = (call);						\
		EXPECT(!ret_, "%s: %s (%s)", #call, strerror(-ret_), muster_error(job)); \
	} while (0)

#endif
