// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The packet buffer against a plain array: what was added is found until it is
 * removed, and blocks are never given twice.
 */
#include "test_world.h"

#include "internal.h"

enum { NUMBERS = MUSTER_WINDOW, PULSES = MUSTER_PULSES_LIVE, SLOTS = MUSTER_SLOTS_MAX };

/* Two contexts of one unit that has blocks for two pulses. */
struct fixture {
	struct world *w;
	struct unit *unit;
	struct context *ctx[2];
};

static struct fixture fixture_create(uint64_t seed)
{
	struct fixture f = { .w = world_create(1, seed) };

	f.w->model.buffer = 2 * MUSTER_PULSE_MAX;
	world_start(f.w);
	assert_int_equal(world_context_open(f.w, 0, WORLD_CONTEXT + 1), 0);
	f.unit = f.w->nodes[0].engine->units[0];
	f.ctx[0] = muster_context_find(f.w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	f.ctx[1] = muster_context_find(f.w->nodes[0].engine, WORLD_VP, WORLD_JOB,
				       WORLD_CONTEXT + 1);
	return f;
}

static struct entry *find(const struct fixture *f, uint32_t c, uint32_t number, uint32_t pulse,
			  uint32_t slot)
{
	return muster_entry_find(f->ctx[c], number, pulse, slot);
}

static void entries_are_found_from_adding_to_removing(void **state)
{
	static struct entry *model[2][NUMBERS][PULSES][SLOTS];
	struct fixture f = fixture_create(1);
	uint32_t turn, c, n, p, s, added = 0;

	(void)state;
	for (turn = 0; turn < 60000; turn++) {
		c = world_random(f.w, 2);
		n = world_random(f.w, NUMBERS);
		p = world_random(f.w, PULSES);
		s = world_random(f.w, SLOTS);
		assert_ptr_equal(find(&f, c, 1000000 + n, p, s), model[c][n][p][s]);
		/* Mostly growing in the first half, mostly shrinking in the second. */
		if (!model[c][n][p][s] && world_random(f.w, 4) > turn / 30000) {
			model[c][n][p][s] = muster_entry_add(f.ctx[c], 1000000 + n, p, s);
			assert_non_null(model[c][n][p][s]);
			added++;
		} else if (model[c][n][p][s] && world_random(f.w, 4) < 1 + 2 * (turn / 30000)) {
			muster_entry_remove(model[c][n][p][s]);
			model[c][n][p][s] = NULL;
		}
	}
	assert_true(added > 5000);
	world_destroy(f.w);
}

static void there_is_an_entry_for_all_that_the_window_lets_through_while_it_is_needed(void **state)
{
	struct fixture f = fixture_create(1);
	uint32_t c, n, p, s;
	size_t before;

	(void)state;
	for (c = 0; c < 2; c++)
		for (n = 0; n < NUMBERS; n++)
			for (p = 0; p < (n ? PULSES : 2 * PULSES); p++)
				for (s = 0; s < SLOTS; s++)
					assert_non_null(muster_entry_add(f.ctx[c], n, p, s));
	assert_int_equal(find(&f, 1, 7, 3, 31)->slot, 31);
	assert_int_equal(world_counters(f.w, 0).buffer_entries_used,
			 2 * (NUMBERS + 1) * PULSES * SLOTS);
	before = f.w->allocated;
	muster_entries_remove(f.ctx[0]);
	muster_entries_remove(f.ctx[1]);
	assert_true(f.w->allocated + 2 * NUMBERS * PULSES * SLOTS * sizeof(struct entry) < before);
	world_destroy(f.w);
}

/* One lives on, and others come and go and are never all gone. */
static void a_burst_gives_back_what_it_took_while_others_go_on(void **state)
{
	struct fixture f = fixture_create(1);
	uint32_t n, p, s, slot = 0;
	size_t before;

	(void)state;
	muster_entry_add(f.ctx[1], 0, 0, 0);
	before = f.w->allocated;
	for (n = 0; n < NUMBERS; n++)
		for (p = 0; p < PULSES; p++)
			for (s = 0; s < SLOTS; s++)
				muster_entry_add(f.ctx[0], n, p, s);
	assert_true(f.w->allocated > before + 7 * sizeof(struct entry_chunk));
	muster_entry_add(f.ctx[1], 1, 0, slot);
	muster_entries_remove(f.ctx[0]);
	for (n = 0; n < 1000; n++) {
		muster_entry_add(f.ctx[1], 1, 0, (slot + 1) % SLOTS);
		muster_entry_remove(find(&f, 1, 1, 0, slot));
		slot = (slot + 1) % SLOTS;
	}
	assert_true(f.w->allocated <= before + 2 * sizeof(struct entry_chunk));
	world_destroy(f.w);
}

static void burst(struct fixture *f)
{
	uint32_t n, p, s;

	for (n = 0; n < NUMBERS; n++)
		for (p = 0; p < PULSES; p++)
			for (s = 0; s < SLOTS; s++)
				muster_entry_add(f->ctx[0], n, p, s);
	muster_entries_remove(f->ctx[0]);
}

/* What the first has given back the second one wants again; the third finds it. */
static void bursts_that_come_again_find_what_they_need_until_they_stay_away(void **state)
{
	struct fixture f = fixture_create(1);
	const uint32_t chunks = NUMBERS * PULSES * SLOTS / ENTRIES_CHUNK;
	size_t before, kept;
	uint32_t i;

	(void)state;
	muster_entry_add(f.ctx[1], 0, 0, 0);
	before = f.w->allocated;
	burst(&f);
	assert_true(f.w->allocated <= before + 2 * sizeof(struct entry_chunk));
	burst(&f);
	kept = f.w->allocated;
	assert_true(muster_engine_kept(f.w->nodes[0].engine) >= (chunks - 1) * sizeof(struct entry_chunk));
	assert_true(kept >= before + (chunks - 1) * sizeof(struct entry_chunk));
	burst(&f);
	assert_true(f.w->allocated <= kept + 2 * sizeof(struct entry_chunk));
	for (i = 0; i < 2 * SPARE_TAKES; i++)
		muster_entry_remove(muster_entry_add(f.ctx[1], 1, 0, i % SLOTS));
	assert_true(f.w->allocated <= before + 2 * sizeof(struct entry_chunk));
	world_destroy(f.w);
}

/* However large it is. */
static void of_bursts_that_come_again_so_much_is_kept_and_no_more(void **state)
{
	struct world *w = world_create(1, 1);
	struct fixture f = { .w = w };
	uint32_t c, i, n, p, s;
	size_t before;

	(void)state;
	world_start(w);
	f.unit = w->nodes[0].engine->units[0];
	for (c = 1; c < 16; c++)
		assert_int_equal(world_context_open(w, 0, WORLD_CONTEXT + c), 0);
	before = w->allocated;
	for (i = 0; i < 3; i++) {
		for (c = 0; c < 16; c++) {
			f.ctx[0] = muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT + c);
			for (n = 0; n < NUMBERS; n++)
				for (p = 0; p < PULSES; p++)
					for (s = 0; s < SLOTS; s++)
						assert_non_null(muster_entry_add(f.ctx[0], n, p, s));
		}
		for (c = 0; c < 16; c++)
			muster_entries_remove(muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
								  WORLD_CONTEXT + c));
		assert_true(f.unit->spare.nr <= SPARE_MAX);
	}
	assert_int_equal(f.unit->spare.nr, SPARE_MAX);
	assert_true(w->allocated > before);
	world_destroy(w);
}

static struct entry *entry_with(struct fixture *f, uint32_t c, uint32_t slot, uint32_t total)
{
	struct entry *entry = muster_entry_add(f->ctx[c], 0, 0, slot);

	entry->total = total;
	return entry;
}

static void blocks_are_never_given_twice_and_all_come_back(void **state)
{
	struct fixture f = fixture_create(3);
	struct entry *held[SLOTS] = { 0 };
	uint8_t *block;
	uint32_t turn, s, at;

	(void)state;
	for (turn = 0; turn < 5000; turn++) {
		s = world_random(f.w, SLOTS);
		if (held[s]) {
			for (at = 0; at < held[s]->total; at += MUSTER_MTU) {
				block = muster_room_block(held[s], at);
				assert_int_equal(block[0], s);
				assert_int_equal(block[MUSTER_MTU - 1], s);
			}
			muster_entry_remove(held[s]);
			held[s] = NULL;
			continue;
		}
		held[s] = entry_with(&f, 0, s, 1 + world_random(f.w, MUSTER_PULSE_MAX));
		if (!muster_room_take(held[s])) {
			muster_entry_remove(held[s]);
			held[s] = NULL;
			continue;
		}
		for (at = 0; at < held[s]->total; at += MUSTER_MTU)
			memset(muster_room_block(held[s], at), s, MUSTER_MTU);
	}
	for (s = 0; s < SLOTS; s++)
		if (held[s])
			muster_entry_remove(held[s]);
	assert_int_equal(f.unit->nr_used, 0);
	assert_int_equal(f.unit->nr_free, 2 * PULSE_BLOCKS);
	assert_true(world_counters(f.w, 0).buffer_blocks_used_max > PULSE_BLOCKS);
	world_destroy(f.w);
}

static void blocks_that_come_back_wake_who_waits_for_them(void **state)
{
	struct fixture f = fixture_create(1);
	struct entry *all = entry_with(&f, 0, 0, MUSTER_PULSE_MAX);
	struct entry *more = entry_with(&f, 0, 1, MUSTER_PULSE_MAX);
	struct entry *wants = entry_with(&f, 1, 0, MUSTER_MTU);

	(void)state;
	assert_true(muster_room_take(all));
	assert_true(muster_room_take(more));
	assert_false(muster_room_take(wants));
	assert_false(f.ctx[1]->listed);
	muster_entry_remove(more);
	assert_true(f.ctx[1]->listed);
	assert_true(muster_room_take(wants));
	world_destroy(f.w);
}

static void contexts_go_to_the_least_loaded_unit(void **state)
{
	struct world *w = world_create(1, 1);
	struct unit *const *units;
	uint32_t i;

	(void)state;
	w->model.units = 3;
	world_start(w);
	units = w->nodes[0].engine->units;
	for (i = 1; i < 30; i++) {
		assert_int_equal(units[i % 3]->nr_contexts, i / 3);
		assert_int_equal(world_context_open(w, 0, WORLD_CONTEXT + i), 0);
		assert_int_equal(units[i % 3]->nr_contexts, i / 3 + 1);
	}
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT + 4);
	assert_int_equal(units[1]->nr_contexts, 9);
	assert_int_equal(world_context_open(w, 0, 1), 0);
	assert_int_equal(units[1]->nr_contexts, 10);
	world_destroy(w);
}

/* Two members have written it: each is there until it is removed, and leaves nothing behind. */
static void a_slot_that_came_twice_is_found_until_both_are_gone(void **state)
{
	struct fixture f = fixture_create(1);
	struct entry *first = muster_entry_add(f.ctx[0], 1, 0, 5), *second;

	(void)state;
	first->disputed = true;
	second = muster_entry_add(f.ctx[0], 1, 0, 5);
	assert_ptr_equal(muster_arrivals_first(f.ctx[0], 1), first);
	muster_entry_remove(first);
	assert_ptr_equal(find(&f, 0, 1, 0, 5), second);
	assert_null(find(&f, 0, 1, 0, 6));
	muster_entry_remove(second);
	assert_null(find(&f, 0, 1, 0, 5));
	assert_false(muster_entry_add(f.ctx[0], 1, 0, 5)->disputed);
	assert_false(muster_entry_add(f.ctx[0], 1, 0, 6)->disputed);
	world_destroy(f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found_from_adding_to_removing),
		cmocka_unit_test(there_is_an_entry_for_all_that_the_window_lets_through_while_it_is_needed),
		cmocka_unit_test(a_burst_gives_back_what_it_took_while_others_go_on),
		cmocka_unit_test(bursts_that_come_again_find_what_they_need_until_they_stay_away),
		cmocka_unit_test(of_bursts_that_come_again_so_much_is_kept_and_no_more),
		cmocka_unit_test(blocks_are_never_given_twice_and_all_come_back),
		cmocka_unit_test(blocks_that_come_back_wake_who_waits_for_them),
		cmocka_unit_test(contexts_go_to_the_least_loaded_unit),
		cmocka_unit_test(a_slot_that_came_twice_is_found_until_both_are_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
