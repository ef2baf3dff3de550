// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ports that are neighbours of one that forwards: what is sent by it to others comes
 * exactly once, though it refuses what the next link has no room for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "wire.h"

enum { ENDS = 3, MIDDLE = 7, PACKETS = 350, PATIENCE_US = 20000000, DEADLINE_US = 60000000 };

static struct {
	struct muster_wire *ends[ENDS], *middle;
	uint32_t came[ENDS][ENDS][PACKETS];	/* at, from */
	uint32_t seen[ENDS][ENDS][PACKETS];
	uint32_t nr_came, nr_once, refused, met, lost;
	bool may_be_lost;
} t;

static void receive(void *owner, const struct muster_packet *packet, const void *payload,
		    uint32_t len)
{
	uint32_t at = (uint32_t)((struct muster_wire **)owner - t.ends);

	assert_int_equal(packet->dst_node, at);
	assert_true(len == 8 && !memcmp(payload, "neighbor", 8));
	if (packet->flags & MUSTER_PACKET_ONCE) {
		t.nr_once++;
		return;
	}
	t.came[at][packet->src_node][packet->number]++;
	t.nr_came++;
}

/* Some is refused at first, and what the next link has no room for. */
static bool take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
		 const void *payload, uint32_t len)
{
	(void)owner;
	(void)len;
	assert_int_equal(packet->src_node, neighbour);
	if (packet->flags & MUSTER_PACKET_ONCE) {
		t.middle->ops->send_once(t.middle, packet->dst_node, 100 + packet->dst_node, packet,
					 payload);
		return true;
	}
	if (packet->number % 7 == 0 && !t.seen[neighbour][packet->dst_node][packet->number]++) {
		t.refused++;
		return false;
	}
	return !t.middle->ops->send_by(t.middle, packet->dst_node, 100 + packet->dst_node, packet,
				       payload);
}

static void lost(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	t.lost++;
	if (t.may_be_lost)
		return;
	fail_msg("node %u is lost, %u is there; %u came, %u refused", node, present, t.nr_came, t.refused);
}

static void met(void *owner, uint32_t node, uint32_t present)
{
	assert_int_equal(present, 100 + node);
	t.met += owner == &t.middle;
}

static struct muster_wire *open_port(uint32_t node, void *owner, bool forwards)
{
	static const struct muster_wire_events end = { .receive = receive, .lost = lost, .met = met };
	static const struct muster_wire_events middle = { .take = take, .lost = lost, .met = met };
	struct muster_wire *wire;
	char spec[64], why[256] = "";

	snprintf(spec, sizeof(spec), "unix:@muster-neighbour-test-%d", getpid());
	if (muster_wire_socket_open(spec, node, 100 + node, DEADLINE_US, forwards ? &middle : &end,
				    owner, &wire, why, sizeof(why)))
		fail_msg("%s", why);
	return wire;
}

static int send_from(uint32_t from, uint32_t to, uint32_t n, uint16_t flags)
{
	struct muster_packet packet = {
		.src_node = from, .dst_node = to, .number = n, .flags = flags, .length = 8,
	};

	if (!flags)
		return t.ends[from]->ops->send_by(t.ends[from], MIDDLE, 100 + MIDDLE, &packet,
						  "neighbor");
	t.ends[from]->ops->send_once(t.ends[from], MIDDLE, 100 + MIDDLE, &packet, "neighbor");
	return 0;
}

static void poll_all(void)
{
	t.middle->ops->poll(t.middle, muster_clock_us(), 64);
	for (uint32_t i = 0; i < ENDS; i++)
		t.ends[i]->ops->poll(t.ends[i], muster_clock_us(), 64);
}

/* Until something more has come; a hang is told from slowness by that. */
static void poll_for(const uint32_t *what, uint32_t before)
{
	uint64_t end_us = muster_clock_us() + PATIENCE_US;

	while (*what == before) {
		poll_all();
		assert_true(muster_clock_us() < end_us);
	}
}

static void who_forwards_may_refuse_and_all_comes_once(void **state)
{
	uint32_t sent[ENDS][ENDS] = { 0 }, i, j, n;

	(void)state;
	for (i = 0; i < ENDS; i++)
		assert_int_equal(t.ends[i]->ops->watch(t.ends[i], MIDDLE, 100 + MIDDLE), 0);
	while (t.met < ENDS)
		poll_for(&t.met, t.met);
	while (t.nr_came < ENDS * (ENDS - 1) * PACKETS) {
		for (i = 0; i < ENDS; i++)
			for (j = 0; j < ENDS; j++)
				while (j != i && sent[i][j] < PACKETS &&
				       !send_from(i, j, sent[i][j], 0))
					sent[i][j]++;
		poll_for(&t.nr_came, t.nr_came);
	}
	for (i = 0; i < ENDS; i++)
		for (j = 0; j < ENDS; j++)
			for (n = 0; n < PACKETS && j != i; n++)
				assert_int_equal(t.came[i][j][n], 1);
	assert_int_equal(t.refused, ENDS * (ENDS - 1) * PACKETS / 7);
	send_from(0, 1, 0, MUSTER_PACKET_ONCE);
	poll_for(&t.nr_once, 0);
}

/* Hosts may be silent for as long as this port's deadline; a switch is asked each second. */
static void a_switch_that_goes_is_missed_by_who_sends_nothing(void **state)
{
	const uint32_t node = MUSTER_NODE_AGGREGATION + 5;
	struct muster_wire *far = open_port(node, &t.middle, true), *end = t.ends[0];
	struct muster_wire_counters counters = { .slots = 1 };
	uint64_t begun = muster_clock_us(), now = begun;

	(void)state;
	t.met = 0;
	assert_int_equal(end->ops->watch(end, node, 100 + node), 0);
	while (!t.met || counters.slots) {
		now = muster_clock_us();
		far->ops->poll(far, now, 64);
		end->ops->poll(end, now, 64);
		muster_wire_socket_counters(end, &counters);
		assert_true(now < begun + PATIENCE_US);
	}
	far->ops->close(far);
	t.may_be_lost = true;
	for (uint32_t i = 0; i < 20 && !t.lost; i++, now += 100000)
		end->ops->poll(end, now, 64);
	assert_int_equal(t.lost, 1);
}

static int setup(void **state)
{
	(void)state;
	t.middle = open_port(MIDDLE, &t.middle, true);
	for (uint32_t i = 0; i < ENDS; i++)
		t.ends[i] = open_port(i, &t.ends[i], false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	t.middle->ops->close(t.middle);
	for (uint32_t i = 0; i < ENDS; i++)
		t.ends[i]->ops->close(t.ends[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_forwards_may_refuse_and_all_comes_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_switch_that_goes_is_missed_by_who_sends_nothing,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
