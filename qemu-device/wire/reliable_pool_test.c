// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The slots that the links of a port share: who has nothing unacknowledged keeps none,
 * whatever became of its packets, and no link takes from all others what they need.
 */
#include "test_link.h"

enum { LINKS = 40, SHARED = 128 };

static void who_has_nothing_open_keeps_no_slot(void **state)
{
	(void)state;
	begin(1);
	exchange(PACKETS, PACKETS);
	assert_int_equal(w.nr_slots, 0);
	assert_int_equal(w.ends[0].pool.used + w.ends[1].pool.used, 0);
	assert_exactly_once(0, PACKETS);
}

static void who_gives_a_peer_up_gives_its_slots_back(void **state)
{
	uint32_t sent = 0;

	(void)state;
	begin(2);
	exchange(10, 10);
	w.faults.cut[1] = true;
	while (!try_send(0, sent % PACKETS))
		sent++;
	assert_int_equal(sent, MUSTER_LINK_WINDOW);
	assert_int_equal(w.nr_slots, MUSTER_LINK_WINDOW);
	advance_until(w.now_us + 2 * DEADLINE_US);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[0].pool.used, 0);
	assert_int_equal(w.ends[0].link.kept, 0);
}

static void a_new_life_begins_without_the_slots_of_the_former(void **state)
{
	uint32_t sent = 0;

	(void)state;
	begin(3);
	exchange(10, 10);
	begin_life(1, 33);
	while (!try_send(0, sent % PACKETS))
		sent++;
	advance_until(w.now_us + 100000);
	assert_int_equal(w.ends[0].present, 33);
	assert_int_equal(w.nr_slots, 0);
	assert_int_equal(w.ends[0].pool.used, 0);
}

/* What one slot a link is for: nothing stands still when others have all that is shared. */
static void packets_come_exactly_once_though_nothing_is_left_to_share(void **state)
{
	(void)state;
	for (uint64_t seed = 500; seed < 540; seed++) {
		begin(seed);
		w.ends[0].pool.size = w.ends[1].pool.size = seed % 3;
		w.faults.drop = draw() % 300;
		w.faults.duplicate = draw() % 300;
		w.faults.reorder = draw() % 500;
		w.faults.full = draw() % 300;
		exchange(PACKETS / 6, PACKETS / 6);
		assert_exactly_once(0, PACKETS / 6);
		assert_exactly_once(1, PACKETS / 6);
		assert_int_equal(w.nr_slots, 0);
	}
}

static int into_the_void(void *owner, const struct muster_frame *frame,
			 const struct muster_packet *packet, const void *payload)
{
	(void)owner;
	(void)frame;
	(void)packet;
	(void)payload;
	return 0;
}

static uint32_t fill(struct muster_link *link)
{
	struct muster_packet packet = { .length = 0 };
	uint32_t sent = 0;

	while (!muster_link_send(link, 1000, 7, &packet, NULL))
		sent++;
	return sent;
}

/* Links to peers that never answer, one after another, each with as much as it is given. */
static void links_that_want_everything_leave_some_for_whoever_comes(void **state)
{
	static const struct muster_link_ops ops = { take, give, into_the_void, deliver, lost, met };
	struct muster_link_pool pool = { .size = SHARED };
	static struct muster_link links[LINKS];
	uint32_t sent[LINKS], all = 0;

	(void)state;
	begin(4);
	for (uint32_t i = 0; i < LINKS; i++) {
		struct muster_link_config config = {
			.node = 0, .peer = 1 + i, .incarnation = 1, .deadline_us = DEADLINE_US,
			.ops = &ops, .pool = &pool, .counters = &w.counters,
		};

		muster_link_init(&links[i], &config);
		sent[i] = fill(&links[i]);
		assert_in_range(sent[i], MUSTER_LINK_FLOOR, MUSTER_LINK_WINDOW);
		all += sent[i];
	}
	assert_int_equal(sent[0], MUSTER_LINK_WINDOW);		/* alone: whole */
	assert_true(sent[1] >= MUSTER_LINK_WINDOW / 2);
	assert_true(sent[3] > MUSTER_LINK_FLOOR);
	assert_true(all <= SHARED + LINKS * MUSTER_LINK_FLOOR);
	assert_int_equal(w.nr_slots, all);
	muster_link_drop(&links[0]);
	assert_true(fill(&links[LINKS - 1]) > 0);		/* what one gives back, others get */
	for (uint32_t i = 0; i < LINKS; i++)
		muster_link_drop(&links[i]);
	assert_int_equal(pool.used, 0);
	assert_int_equal(w.nr_slots, 0);
}

/* What has flown once is not the sender's alone any more; the rest waits for its calls. */
static void what_was_never_sent_is_counted(void **state)
{
	struct muster_link *link = &w.ends[0].link;

	(void)state;
	begin(5);
	exchange(10, 10);
	w.faults.full = 1000;
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(try_send(0, 10 + i), 0);
	assert_int_equal(muster_link_waiting(link), 7);
	assert_int_equal(w.ends[0].pool.waiting, 7);
	w.faults.full = 0;
	w.faults.cut[1] = true;		/* lost on the way, but sent */
	advance_until(w.now_us + 1000);
	assert_int_equal(muster_link_waiting(link), 0);
	assert_int_equal(w.ends[0].pool.waiting, 0);
	w.faults.full = 1000;
	assert_int_equal(try_send(0, 20), 0);
	assert_int_equal(w.ends[0].pool.waiting, 1);
	muster_link_gone(link);
	assert_int_equal(w.ends[0].pool.waiting, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_nothing_open_keeps_no_slot),
		cmocka_unit_test(who_gives_a_peer_up_gives_its_slots_back),
		cmocka_unit_test(a_new_life_begins_without_the_slots_of_the_former),
		cmocka_unit_test(packets_come_exactly_once_though_nothing_is_left_to_share),
		cmocka_unit_test(what_was_never_sent_is_counted),
		cmocka_unit_test(links_that_want_everything_leave_some_for_whoever_comes),
	};

	return cmocka_run_group_tests(tests, NULL, clear);
}
