// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Allreduces and broadcasts of engines over trees of switches: the same bits as the tree's own
 * order gives, whatever comes first, is lost, refused or comes twice.
 */
#include "test_allreduce.h"

static const struct run runs[] = {
	{ 8, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 64, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, false },
	{ 8, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, true },
	{ 2, MUSTER_DTYPE_F16, MUSTER_REDOP_PROD, false },
	{ 256, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },	/* one segment */
	{ 0, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 264, MUSTER_DTYPE_C32, MUSTER_REDOP_PROD, true },
	{ 4099, MUSTER_DTYPE_U8, MUSTER_REDOP_MAX, false },	/* 17 segments, the last of 3 bytes */
	{ 8192, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, true },
	{ 48, MUSTER_DTYPE_F64_I32, MUSTER_REDOP_MINLOC, false },
};

static void run_all(struct net *net)
{
	uint32_t i;

	net_start(net);
	for (i = 0; i < sizeof(runs) / sizeof(*runs); i++)
		allreduce(net, &runs[i], i + 1);
}

/* ---- tests ---- */

static void one_switch_gives_the_trees_bits(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct net *net = net_two_levels(1, 2 + seed % 7, seed);

		run_all(net);
		net_destroy(net);
	}
}

static void levels_of_switches_give_the_trees_bits(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 16; seed++) {
		struct net *net = seed % 4 ? net_two_levels(2 + seed % 3, 1 + seed % 4, seed) :
					     net_three_levels(seed % 8, seed);

		net->lose_percent = seed % 3 * 50;
		net->refuse_percent = seed % 2 * 40;
		net->w->map = seed % 5;
		net->w->refuse_percent = seed % 2 * 20;
		run_all(net);
		net_destroy(net);
	}
}

/* A plain leaf sends by its own lowest port, and not by the root's: the tree is laid where packets go. */
static void switches_that_only_forward_may_have_two_ways(void **state)
{
	static const struct muster_fabric_link links[] = {
		{ 0, 2 }, { 1, 3 }, { 3, 5 }, { 3, 4 }, { 2, 4 }, { 2, 5 },
	};
	const bool is_plain[6] = { [3] = true, [4] = true, [5] = true };

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct net *net = net_create(2, 4, links, sizeof(links) / sizeof(*links), is_plain, seed);

		run_all(net);
		net_destroy(net);
	}
}

/* The engine's own room is not needed: what comes before its turn is held all the same. */
static void results_need_no_room_at_hosts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct net *net = net_two_levels(2, 3, seed);

		net->w->model.buffer = MUSTER_ENGINE_NO_BUFFER;
		net->payload_max = seed % 2 ? MUSTER_MTU : 1024;
		run_all(net);
		net_destroy(net);
	}
}

/* What came first was stored; what the program did with its buffer since then stays. */
static void the_second_copy_is_absorbed(void **state)
{
	struct run run = { 8, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false };
	struct net *net = net_two_levels(1, 4, 1);
	uint8_t input[8] = { 0 };
	uint32_t i;

	(void)state;
	net_start(net);
	for (i = 0; i < 4; i++)
		post_inline(net, &run, i, input);
	while (!net->w->nodes[1].nr_cqes) {
		net_switches_step(net);
		for (i = 0; i < 4; i++)
			muster_engine_step(net->w->nodes[i].engine, 100);
		if (net->nr_flight)
			net_deliver_one(net, world_random(net->w, net->nr_flight));
	}
	memset(net->w->nodes[1].memory + OUT, 0x77, 8);
	net_run(net);
	for (i = 0; i < 8; i++)
		assert_int_equal(net->w->nodes[1].memory[OUT + i], 0x77);
	assert_int_equal(net->nr_once, 4);
	assert_int_equal(net->nr_down, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(world_counters(net->w, i).tree_down, 1);
		assert_int_equal(world_counters(net->w, i).drop_duplicate, 1);
	}
	net_destroy(net);
}

/*
 * Each host sends what it has once, and is sent the result and not what the others have: twice
 * at most, as a reliable copy that is first at a switch is not followed by the other.
 */
static void data_goes_once_up_and_twice_down(void **state)
{
	struct run run = { 8192, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false };
	struct net *net = net_two_levels(4, 4, 5);
	uint32_t i;

	(void)state;
	net_start(net);
	allreduce(net, &run, 1);
	for (i = 0; i < net->w->nr; i++) {
		assert_int_equal(world_counters(net->w, i).bytes_out, run.bytes);
		assert_in_range(world_counters(net->w, i).bytes_in, run.bytes, 2 * run.bytes);
	}
	assert_int_equal(net_counters(net, 4).contributions, 4 * run.bytes / net->payload_max);
	net_destroy(net);
}

/* Without an operation: what the root has comes to all, over either type of tree. */
static void broadcast(struct net *net, uint32_t bytes, uint32_t root, uint32_t ended)
{
	uint8_t message[1 << 14];

	for (uint32_t host = 0; host < net->w->nr; host++) {
		struct muster_desc d[2] = {
			desc_rdma(MUSTER_DESC_CH, 0, bytes, net->payload_max),
			desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, bytes, net->payload_max),
		};

		for (uint32_t i = 0; i < bytes; i++)
			net->w->nodes[host].memory[i] = world_random(net->w, 256);
		d[0].signature.op = d[1].signature.op = 0;
		d[0].signature.root = d[1].signature.root = root;
		d[0].length = host == root ? bytes : 0;
		desc_load(&d[0], 0);
		desc_to(&d[0], net->group.nodes[host], 0);
		d[0].dst_vp = NET_TREE;
		desc_store(&d[1], host == root ? 0 : OUT);
		world_post(net->w, host, d, 2);
	}
	memcpy(message, net->w->nodes[root].memory, bytes);
	net_run(net);
	for (uint32_t host = 0; host < net->w->nr; host++) {
		assert_int_equal(net->w->nodes[host].nr_cqes, ended);
		assert_int_equal(net->w->nodes[host].cqes[ended - 1].status, MUSTER_STATUS_OK);
		assert_memory_equal(net->w->nodes[host].memory + (host == root ? 0 : OUT),
				    message, bytes);
	}
}

static void broadcasts_bring_what_the_root_has(void **state)
{
	static const uint32_t bytes[] = { 1, 255, 257, 5000, 0, 12288 };

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct net *net = seed % 3 ? net_two_levels(3, 3, seed) :
					     net_three_levels(seed % 2, seed);

		net->type = seed % 2;
		net->payload_max = net->type == MUSTER_SWITCH_SAT ? MUSTER_MTU : 256;
		net->lose_percent = net->refuse_percent = 20;
		net_start(net);
		for (uint32_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
			broadcast(net, bytes[i], (seed + i) % net->w->nr, i + 1);
		net_destroy(net);
	}
}

/* Up and down once, in packets of an MTU, through both half rings. */
static void streaming_trees_give_their_own_bits(void **state)
{
	struct run run = { 0, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false };

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct net *net = net_two_levels(1 + seed % 2 * 2, seed % 2 ? 3 : 30, seed);
		uint32_t i, ended = 1;

		net->type = MUSTER_SWITCH_SAT;
		net->payload_max = MUSTER_MTU;
		net->refuse_percent = seed % 3 * 20;
		net_start(net);
		for (run.bytes = 8; run.bytes <= 1 << 16; run.bytes *= 8)
			allreduce(net, &run, ended++);
		assert_int_equal(net->nr_once, 0);
		for (i = 0; i < net->w->nr; i++)
			assert_int_equal(world_counters(net->w, i).bytes_in,
					 world_counters(net->w, i).bytes_out);
		net_destroy(net);
	}
}

/* What switches hold is there from the beginning, and no message makes it more. */
static void memory_depends_on_ports_and_window(void **state)
{
	struct run run = { 64, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false };
	struct net *net = net_two_levels(2, 3, 9);
	size_t bytes;
	uint32_t i;

	(void)state;
	net->refuse_percent = 30;
	net_start(net);
	bytes = net->allocated;
	for (i = 1; run.bytes <= 1 << 17; run.bytes *= 2, i++) {
		allreduce(net, &run, i);
		assert_int_equal(net->allocated, bytes);
	}
	net_destroy(net);
}

/* Members that pass the tree by for long come to it with numbers that look like older ones. */
static void numbers_may_pass_the_tree_by(void **state)
{
	static const uint32_t gaps[] = { 1, 7, 1000, 1u << 30, 1u << 31, 3u << 30 };
	struct net *net = net_two_levels(1, 2, 3);
	struct muster_packet up = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP, .job = WORLD_JOB,
		.dst_node = MUSTER_NODE_AGGREGATION, .src_vp = WORLD_VP, .context = WORLD_CONTEXT,
		.life = WORLD_LIFE, .tree = NET_TREE, .group = NET_GROUP, .job_key = NET_KEY,
	};
	uint32_t i, host;

	(void)state;
	net_start(net);
	for (i = 0; i < sizeof(gaps) / sizeof(*gaps); i++) {
		up.number += gaps[i];
		for (host = 0; host < 2; host++) {
			up.src_node = up.src_member = host;
			up.incarnation = 100 + host;
			muster_switch_receive(net->switches[0].sw, host, &up, NULL, 0);
		}
		assert_int_equal(net_counters(net, 0).combined, i + 1);
	}
	net_destroy(net);
}

/* ---- few segments ---- */

static const struct run stream_runs[] = {
	{ 8, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 4096, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, false },
	{ 0, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, false },
	{ 40000, MUSTER_DTYPE_F32, MUSTER_REDOP_SUM, true },
	{ 4099, MUSTER_DTYPE_U8, MUSTER_REDOP_MAX, false },
};

/* Return: contributions without a credit, of hosts. */
static uint64_t run_streaming(struct net *net, uint32_t times)
{
	uint64_t limited = 0;
	uint32_t ended = 0;

	net_start(net);
	for (uint32_t i = 0; i < times; i++)
		for (uint32_t r = 0; r < sizeof(stream_runs) / sizeof(*stream_runs); r++)
			allreduce(net, &stream_runs[r], ++ended);
	for (uint32_t i = 0; i < muster_fabric_switches(net->fabric); i++) {
		assert_int_equal(net_counters(net, i).drop_window, 0);
		assert_int_equal(net_counters(net, i).held_back, 0);
	}
	for (uint32_t host = 0; host < net->w->nr; host++)
		limited += world_counters(net->w, host).tree_limited;
	return limited;
}

static struct net *streaming(uint32_t segments, uint64_t seed)
{
	struct net *net = seed % 4 ? net_two_levels(2 + seed % 3, 1 + seed % 4, seed) :
				     net_three_levels(seed % 8, seed);

	net->type = MUSTER_SWITCH_SAT;
	net->payload_max = 512;
	net->segments = segments;
	net->pulses = MUSTER_TREE_PULSES_LIVE;
	return net;
}

static void few_segments_give_the_trees_bits(void **state)
{
	static const uint32_t segments[] = { 2, 3, 4, 9, 17, 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct net *net = streaming(segments[seed % 6], seed);

		net->refuse_percent = seed % 2 * 40;
		net->w->refuse_percent = seed % 3 * 20;
		run_streaming(net, 2);
		net_destroy(net);
	}
}

/* The first packet of all is limited; with room for all that live at once no other one ever is. */
static void where_there_is_room_only_the_first_packet_is_limited(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct net *net = streaming(0, seed);

		assert_int_equal(run_streaming(net, 3), net->w->nr);
		net_destroy(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_switch_gives_the_trees_bits),
		cmocka_unit_test(levels_of_switches_give_the_trees_bits),
		cmocka_unit_test(switches_that_only_forward_may_have_two_ways),
		cmocka_unit_test(results_need_no_room_at_hosts),
		cmocka_unit_test(the_second_copy_is_absorbed),
		cmocka_unit_test(data_goes_once_up_and_twice_down),
		cmocka_unit_test(broadcasts_bring_what_the_root_has),
		cmocka_unit_test(streaming_trees_give_their_own_bits),
		cmocka_unit_test(memory_depends_on_ports_and_window),
		cmocka_unit_test(numbers_may_pass_the_tree_by),
		cmocka_unit_test(few_segments_give_the_trees_bits),
		cmocka_unit_test(where_there_is_room_only_the_first_packet_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
