// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Switches that are replaced in the middle of operations: all go on, with the same bits, and nobody
 * drops or misses a packet. What another program or switch has written is refused.
 */
#include "test_allreduce.h"
#include "test_handover.h"

static const struct run runs[] = {
	{ 8, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 0, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 4099, MUSTER_DTYPE_U8, MUSTER_REDOP_MAX, false },
	{ 65536, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, true },
};

static struct muster_switch *fresh(struct net *net, uint32_t number)
{
	struct muster_switch *old = net->switches[number].sw, *sw;

	net_open_switch(net, number);
	sw = net->switches[number].sw;
	net->switches[number].sw = old;
	return sw;
}

static void replace(struct net *net, uint32_t number)
{
	struct muster_switch *sw = fresh(net, number);
	struct muster_switch_counters before = net_counters(net, number), after;

	handover(net->switches[number].sw, sw);
	net->switches[number].sw = sw;
	after = net_counters(net, number);
	assert_memory_equal(&before, &after, sizeof(before));
}

/* As net_run(), with a switch that is replaced now and then. */
static uint32_t run_replacing(struct net *net)
{
	struct world *w = net->w;
	uint32_t nr = 0, host;

	for (uint32_t quiet = 0; quiet < 2000; quiet++) {
		if (!world_random(w, 40)) {
			replace(net, world_random(w, muster_fabric_switches(net->fabric)));
			nr++;
		}
		if (!world_random(w, 4))
			net_switches_step(net);
		if (net->nr_flight && world_random(w, 3))
			net_deliver_one(net, world_random(w, net->nr_flight));
		host = world_random(w, w->nr);
		muster_engine_step(w->nodes[host].engine, 1 + world_random(w, 16));
		if (net->nr_flight)
			quiet = 0;
	}
	net_run(net);
	return nr;
}

static void allreduce_replacing(struct net *net, const struct run *run, uint32_t ended)
{
	uint8_t *inputs = malloc(net->w->nr * run->bytes + 1);

	post_all(net, run, inputs);
	assert_true(run_replacing(net) > 10);
	expect(net, run, inputs, ended);
	free(inputs);
}

static void nothing_was_dropped(const struct net *net)
{
	for (uint32_t i = 0; i < muster_fabric_switches(net->fabric); i++) {
		struct muster_switch_counters counters = net_counters(net, i);

		assert_int_equal(counters.drop_malformed + counters.drop_route + counters.drop_stranger +
				 counters.drop_window + counters.drop_failed + counters.failed, 0);
		assert_int_equal(counters.held, 0);
	}
}

/* ---- tests ---- */

static void operations_go_on_at_a_switch_that_is_replaced(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct net *net = seed % 4 ? net_two_levels(2 + seed % 3, 1 + seed % 4, seed) :
					     net_three_levels(seed % 8, seed);

		net->type = seed % 3 == 1 ? MUSTER_SWITCH_SAT : MUSTER_SWITCH_LLT;
		net->payload_max = net->type == MUSTER_SWITCH_SAT ? MUSTER_MTU : 256;
		net->segments = seed % 6 == 1 ? 3 : 0;
		net->pulses = net->segments ? MUSTER_TREE_PULSES_LIVE : 0;
		net->lose_percent = seed % 3 * 40;
		net->refuse_percent = seed % 2 * 40;
		net_start(net);
		for (uint32_t i = 0; i < sizeof(runs) / sizeof(*runs); i++)
			allreduce_replacing(net, &runs[i], i + 1);
		nothing_was_dropped(net);
		net_destroy(net);
	}
}

/* Packets that wait for a link, in their order, and what a neighbour may yet send of their flow. */
static void what_waits_goes_on(void **state)
{
	struct net *net = net_two_levels(2, 2, 1);
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .job = WORLD_JOB, .src_node = 0,
		.dst_node = 2,
	};
	uint32_t i;

	(void)state;
	net_start(net);
	net->refuse_percent = 100;
	for (i = 0; i < MUSTER_SWITCH_CREDITS; i++) {
		packet.number = i;
		assert_int_equal(muster_switch_receive(net->switches[0].sw, 0, &packet, NULL, 0), 0);
	}
	replace(net, 0);
	assert_int_equal(net_counters(net, 0).held, MUSTER_SWITCH_CREDITS);
	assert_int_equal(muster_switch_receive(net->switches[0].sw, 0, &packet, NULL, 0), -EAGAIN);
	net->refuse_percent = 0;
	net_switches_step(net);
	assert_int_equal(net->nr_flight, MUSTER_SWITCH_CREDITS);
	for (i = 0; i < net->nr_flight; i++)
		assert_int_equal(net->flight[i]->packet.number, i);
	/* The neighbour has said nothing of them: it has no room for more, and whoever comes next knows. */
	replace(net, 0);
	assert_int_equal(muster_switch_receive(net->switches[0].sw, 0, &packet, NULL, 0), 0);
	net_switches_step(net);
	assert_int_equal(net->nr_flight, MUSTER_SWITCH_CREDITS);
	assert_int_equal(net_counters(net, 0).held, 1);
	net_destroy(net);
}

/* Who cannot be reached, and a group that has failed and has not said so to all. */
static void losses_are_remembered(void **state)
{
	struct net *net = net_two_levels(2, 2, 1);
	uint32_t nr_aborts = 0;

	(void)state;
	net_start(net);
	net->refuse_percent = 100;
	muster_switch_port_lost(net->switches[0].sw, 2);
	net_switches_step(net);
	replace(net, 0);
	assert_true(net_counters(net, 0).gone > 0);
	net->refuse_percent = 0;
	net_switches_step(net);
	for (uint32_t i = 0; i < net->nr_flight; i++)
		nr_aborts += net->flight[i]->packet.type == MUSTER_PACKET_ABORT;
	assert_int_equal(nr_aborts, 2);
	net_destroy(net);
}

static void what_is_not_its_own_is_refused(void **state)
{
	struct net *net = net_two_levels(2, 2, 1);
	struct muster_switch *sw;
	struct saved saved;
	size_t len;

	(void)state;
	net_start(net);
	handover_save(net->switches[0].sw, &saved);
	sw = fresh(net, 1);
	assert_int_equal(handover_restore(sw, &saved), -EINVAL);
	muster_switch_destroy(sw);
	len = saved.len;
	for (saved.len = 0; saved.len < len; saved.len += 1 + saved.len / 50) {
		sw = fresh(net, 0);
		assert_int_equal(handover_restore(sw, &saved), -EIO);
		muster_switch_destroy(sw);
	}
	saved.len = len;
	saved.bytes[0]++;	/* the version */
	sw = fresh(net, 0);
	assert_int_equal(handover_restore(sw, &saved), -EINVAL);
	muster_switch_destroy(sw);
	free(saved.bytes);
	net_destroy(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_go_on_at_a_switch_that_is_replaced),
		cmocka_unit_test(what_waits_goes_on),
		cmocka_unit_test(losses_are_remembered),
		cmocka_unit_test(what_is_not_its_own_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
