// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a peer reads is written right either way, and by the way that is quicker where the peer is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fill.h"

enum { BYTES = 128 << 10 };

/* A copy by the way that is asked for takes ns_cached or ns_past. Return: how many went past the cache. */
static uint32_t go(struct muster_fill *fill, uint32_t copies, uint64_t ns_cached, uint64_t ns_past)
{
	uint32_t nr_past = 0;

	for (uint32_t i = 0; i < copies; i++) {
		bool past = muster_fill_past(fill);

		nr_past += past;
		muster_fill_took(fill, past, past ? ns_past : ns_cached, BYTES);
	}
	return nr_past;
}

static void who_is_near_is_written_to_by_the_cache(void **state)
{
	struct muster_fill fill = { .past = false };

	(void)state;
	assert_int_equal(go(&fill, MUSTER_FILL_AGAIN, 5000, 6000), 1);
	assert_int_equal(go(&fill, 10 * MUSTER_FILL_AGAIN, 5000, 6000), 10);
	/* as long as it takes no more than half as long again: to read it costs less */
	assert_int_equal(go(&fill, 10 * MUSTER_FILL_AGAIN, 8900, 6000), 10);
}

static void who_is_far_is_written_to_past_it(void **state)
{
	struct muster_fill fill = { .past = false };

	(void)state;
	assert_int_equal(go(&fill, MUSTER_FILL_AGAIN, 25000, 6000), MUSTER_FILL_AGAIN - 1);
	assert_int_equal(go(&fill, 10 * MUSTER_FILL_AGAIN, 25000, 6000), 10 * MUSTER_FILL_AGAIN - 10);
}

static void who_moves_is_followed(void **state)
{
	struct muster_fill fill = { .past = false };

	(void)state;
	go(&fill, 100, 5000, 6000);
	assert_false(fill.past);
	go(&fill, 1, 25000, 6000);
	assert_true(fill.past);
	go(&fill, MUSTER_FILL_AGAIN, 5000, 6000);
	assert_false(fill.past);
}

/* A processor that was taken away for a while in the middle of one copy. */
static void what_takes_long_once_is_soon_forgotten(void **state)
{
	struct muster_fill fill = { .past = false };

	(void)state;
	go(&fill, 100, 5000, 6000);
	go(&fill, 1, 4000000, 6000);
	assert_in_range(go(&fill, 2 * MUSTER_FILL_AGAIN, 5000, 6000), 1, MUSTER_FILL_AGAIN + 2);
	assert_false(fill.past);
}

static void copies_are_right_by_either_way(void **state)
{
	uint8_t *from = malloc(BYTES + 64), *to = NULL;

	(void)state;
	assert_non_null(from);
	assert_int_equal(posix_memalign((void **)&to, 64, BYTES + 64), 0);
	for (uint32_t i = 0; i < BYTES + 64; i++)
		from[i] = (uint8_t)(i * 7 + (i >> 8));
	for (uint32_t past = 0; past < 2; past++)
		for (uint32_t less = 0; less < 70; less++) {
			struct muster_fill fill = { .took = { past ? 1000000 : 1, past ? 1 : 1000000 }, .past = past };

			memset(to, 0xee, BYTES + 64);
			muster_fill(&fill, to, from + less % 5, BYTES - less);
			assert_memory_equal(to, from + less % 5, BYTES - less);
			for (uint32_t i = BYTES - less; i < BYTES + 64; i++)
				assert_int_equal(to[i], 0xee);
		}
	for (uint32_t bytes = 0; bytes < 300; bytes++) {
		struct muster_fill fill = { .past = false };

		memset(to, 0xee, 512);
		muster_fill(&fill, to, from + 3, bytes);
		assert_memory_equal(to, from + 3, bytes);
		assert_int_equal(to[bytes], 0xee);
		assert_int_equal(fill.took[0] + fill.took[1], 0);	/* not worth a look at the clock */
	}
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_near_is_written_to_by_the_cache),
		cmocka_unit_test(who_is_far_is_written_to_past_it),
		cmocka_unit_test(who_moves_is_followed),
		cmocka_unit_test(what_takes_long_once_is_soon_forgotten),
		cmocka_unit_test(copies_are_right_by_either_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
