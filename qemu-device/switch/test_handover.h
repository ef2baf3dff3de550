/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For tests: another switch goes on with what one has. */
#ifndef MUSTER_SWITCH_TEST_HANDOVER_H
#define MUSTER_SWITCH_TEST_HANDOVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "switch.h"
#include "test_saved.h"

static inline void handover_save(struct muster_switch *sw, struct saved *saved)
{
	const struct muster_switch_store store = { saved, saved_write };

	*saved = (struct saved){ .bytes = NULL };
	assert_int_equal(muster_switch_save(sw, &store), 0);
}

static inline int handover_restore(struct muster_switch *sw, struct saved *saved)
{
	const struct muster_switch_store store = { saved, saved_read };

	saved->at = 0;
	return muster_switch_restore(sw, &store);
}

/* The old one is gone; the new one was made for its place, and has done nothing yet. */
static inline void handover(struct muster_switch *old, struct muster_switch *fresh)
{
	struct saved saved;

	handover_save(old, &saved);
	muster_switch_destroy(old);
	assert_int_equal(handover_restore(fresh, &saved), 0);
	assert_int_equal(saved.at, saved.len);
	free(saved.bytes);
}

#endif /* MUSTER_SWITCH_TEST_HANDOVER_H */
