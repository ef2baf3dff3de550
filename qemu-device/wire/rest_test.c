// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links that rest: given back while nothing is open on them, each end for itself, and
 * made again from what was kept. Nothing is lost or comes twice, whoever has ended
 * meanwhile is noticed, and a port that nobody needs keeps no link.
 */
#include "test_link.h"

#include <stdio.h>
#include <unistd.h>

#include "clock.h"

/* As a port does that has given it back, and needs it again. */
static void rest_and_resume(uint32_t at)
{
	struct end *end = &w.ends[at];
	struct muster_link_config config = end->link.config;
	struct muster_link_rest rest;

	muster_link_rest(&end->link, &rest);
	muster_link_drop(&end->link);
	muster_link_init(&end->link, &config);
	muster_link_resume(&end->link, w.now_us, &rest);
}

/* Each end sends when it likes, and rests whenever it can: what was sent before may still fly. */
static uint32_t exchange_with_rests(uint32_t count)
{
	uint32_t sent[ENDS] = { 0 }, rests = 0, events = 0;

	while (sent[0] < count || sent[1] < count || !muster_link_idle(&w.ends[0].link) ||
	       !muster_link_idle(&w.ends[1].link)) {
		for (uint32_t e = 0; e < ENDS; e++) {
			if (muster_link_idle(&w.ends[e].link) && chance(300)) {
				rest_and_resume(e);
				rests++;
			}
			if (sent[e] < count && chance(20) && !try_send(e, sent[e]))
				sent[e]++;
		}
		advance(w.now_us + 2000);
		assert_true(++events < 200000);
	}
	return rests;
}

static void links_that_rest_lose_and_repeat_nothing(void **state)
{
	uint32_t rests = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		begin(seed);
		w.faults = (struct faults){ .drop = 100, .duplicate = 200, .reorder = 300, .full = 50,
					    .refuse = 50 };
		rests += exchange_with_rests(60);
		assert_exactly_once(0, 60);
		assert_exactly_once(1, 60);
	}
	assert_true(rests > 1000);
}

static void a_life_that_ended_while_its_link_rested_is_lost_when_it_is_needed(void **state)
{
	(void)state;
	begin(3);
	exchange(20, 20);
	advance_until(w.now_us + 2 * DEADLINE_US);
	rest_and_resume(0);
	w.faults.cut[0] = w.faults.cut[1] = true;
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), 0);
	advance_until(w.now_us + 10 * DEADLINE_US);
	assert_int_equal(w.ends[0].lost, 1);
	assert_int_equal(w.ends[0].present, 0);
}

static void a_new_life_is_met_by_a_link_that_rested(void **state)
{
	(void)state;
	begin(4);
	exchange(20, 20);
	advance_until(w.now_us + 2 * DEADLINE_US);
	rest_and_resume(0);
	begin_life(1, 33);
	w.ends[0].means = 33;
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 33), 0);
	advance_until(w.now_us + DEADLINE_US);
	assert_int_equal(w.ends[0].present, 33);
	w.ends[0].lost = 0;
	memset(w.ends[0].came, 0, sizeof(w.ends[0].came));
	exchange(50, 50);
	assert_exactly_once(0, 50);
	assert_exactly_once(1, 50);
	rest_and_resume(0);
	assert_int_equal(muster_link_watch(&w.ends[0].link, w.now_us, 22), -EHOSTUNREACH);
}

/* Where no life is meant there is one question more, but nothing goes to the life that ended. */
static void what_is_for_whoever_is_there_reaches_the_life_that_came_meanwhile(void **state)
{
	(void)state;
	begin(5);
	exchange(20, 20);
	advance_until(w.now_us + 2 * DEADLINE_US);
	rest_and_resume(0);
	begin_life(1, 33);
	w.ends[0].means = 0;
	while (try_send(0, 0) == -EAGAIN)
		advance(w.now_us + 1000);
	advance_until(w.now_us + DEADLINE_US);
	assert_exactly_once(1, 1);
	assert_int_equal(w.ends[0].present, 33);
}

/* ---- ports --------------------------------------------------------------------------- */

enum { PORTS = 2, PATIENCE_US = 20000000 };

static struct {
	struct muster_wire *ports[PORTS];
	uint32_t came[PORTS], lost;
	bool needed;
} t;

static void port_receive(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	uint32_t *came = owner;

	(void)payload;
	(void)len;
	assert_int_equal(packet->number, *came);	/* one is sent after the other */
	(*came)++;
}

static void port_lost(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	(void)node;
	(void)present;
	t.lost++;
}

static void port_met(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	assert_int_equal(present, 10 + node);
}

static bool port_needs(void *owner, uint32_t node)
{
	(void)owner;
	(void)node;
	return t.needed;
}

static struct muster_wire_counters counters_of(uint32_t port)
{
	struct muster_wire_counters counters;

	muster_wire_socket_counters(t.ports[port], &counters);
	return counters;
}

static uint64_t links(uint32_t port)
{
	return counters_of(port).links;
}

static void poll_both(uint64_t ahead_us)
{
	for (uint32_t i = 0; i < PORTS; i++)
		t.ports[i]->ops->poll(t.ports[i], muster_clock_us() + ahead_us, 64);
}

static void send_one(uint32_t from, uint32_t n)
{
	struct muster_packet packet = { .src_node = from, .dst_node = !from, .number = n };
	uint64_t end_us = muster_clock_us() + PATIENCE_US;

	while (t.ports[from]->ops->send(t.ports[from], 10 + !from, &packet, NULL))
		poll_both(0);
	while (t.came[!from] <= n) {
		poll_both(0);
		assert_true(muster_clock_us() < end_us);
	}
}

/* A while that is over for the ports: what is to be acknowledged still is so first. */
static void fall_silent(void)
{
	uint64_t end_us = muster_clock_us() + PATIENCE_US;

	do {
		usleep(1000);
		poll_both(0);
		assert_true(muster_clock_us() < end_us);
	} while (counters_of(0).slots || counters_of(1).slots);
	usleep(2 * MUSTER_PACE_ACK_DELAY_US);
	poll_both(0);
	poll_both(DEADLINE_US);
}

static int ports_open(void **state)
{
	static const struct muster_wire_events events = {
		.receive = port_receive, .lost = port_lost, .met = port_met, .needs = port_needs,
	};
	char spec[64], why[256];

	(void)state;
	memset(&t, 0, sizeof(t));
	snprintf(spec, sizeof(spec), "unix:@muster-rest-test-%d", getpid());
	for (uint32_t i = 0; i < PORTS; i++)
		if (muster_wire_socket_open(spec, i, 10 + i, DEADLINE_US, &events, &t.came[i],
					    &t.ports[i], why, sizeof(why)))
			return -1;
	return 0;
}

static int ports_close(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PORTS; i++)
		t.ports[i]->ops->close(t.ports[i]);
	return 0;
}

static void a_link_that_nobody_needs_is_given_back_and_made_again(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		send_one(n % PORTS, n / PORTS);
		assert_int_equal(links(n % PORTS), 1);
		fall_silent();
		assert_int_equal(links(0) + links(1), 0);
	}
	assert_int_equal(t.lost, 0);
}

static void a_link_that_is_needed_stays(void **state)
{
	(void)state;
	t.needed = true;
	send_one(0, 0);
	for (int i = 0; i < 5; i++) {
		fall_silent();
		assert_int_equal(links(0), 1);
		assert_int_equal(links(1), 1);
	}
	assert_int_equal(t.lost, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, clear)
#define PORT_TEST(name) cmocka_unit_test_setup_teardown(name, ports_open, ports_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(links_that_rest_lose_and_repeat_nothing),
		TEST(a_life_that_ended_while_its_link_rested_is_lost_when_it_is_needed),
		TEST(a_new_life_is_met_by_a_link_that_rested),
		TEST(what_is_for_whoever_is_there_reaches_the_life_that_came_meanwhile),
		PORT_TEST(a_link_that_nobody_needs_is_given_back_and_made_again),
		PORT_TEST(a_link_that_is_needed_stays),
	};

	return cmocka_run_group_tests_name("rest", tests, NULL, NULL);
}
