/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For tests of contexts that end before their time: the smallest sequences that send
 * and receive, and what the last completion must say of a failure.
 */
#ifndef MUSTER_ENGINE_TEST_FAILURE_H
#define MUSTER_ENGINE_TEST_FAILURE_H

#include "test_world.h"

enum { RESULT = 4096 };

static inline struct muster_desc send_to(uint32_t to, uint32_t slot, double value)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  0, &value);

	desc_to(&desc, to, slot);
	return desc;
}

static inline struct muster_desc receive(uint8_t cp_count)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  cp_count, NULL);

	desc_store(&desc, RESULT);
	return desc;
}

static inline const struct muster_cqe *last_cqe(const struct world *w, uint32_t i)
{
	assert_true(w->nodes[i].nr_cqes > 0);
	return &w->nodes[i].cqes[w->nodes[i].nr_cqes - 1];
}

static inline void expect_failed(const struct world *w, uint32_t i, uint8_t status,
				 uint32_t culprit)
{
	assert_int_equal(last_cqe(w, i)->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(last_cqe(w, i)->status, status);
	assert_int_equal(last_cqe(w, i)->culprit, culprit);
	assert_int_equal(world_counters(w, i).contexts_failed, 1);
}

#endif /* MUSTER_ENGINE_TEST_FAILURE_H */
