// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * 64 hosts below four leaf switches and a spine: every type and operation, counts about the
 * sizes that matter, both types of trees, in place and not; bit for bit in the tree's order.
 */
#include "test_allreduce.h"

enum { LEAVES = 4, EACH = 16 };

static struct net *open_net(uint8_t type, uint64_t seed)
{
	struct net *net = net_two_levels(LEAVES, EACH, seed);

	net->type = type;
	net->payload_max = type == MUSTER_SWITCH_SAT ? MUSTER_MTU : MUSTER_SWITCH_LLT_BYTES;
	net->lose_percent = 10;
	net->refuse_percent = 10;
	net->w->map = true;
	net_start(net);
	return net;
}

static void every_type_and_operation(void **state)
{
	struct net *net = open_net(MUSTER_SWITCH_LLT, 1);
	uint32_t ended = 1;

	(void)state;
	for (uint8_t type = 1; type <= MUSTER_DTYPE_LAST; type++)
		for (uint8_t op = 1; op <= MUSTER_REDOP_LAST; op++) {
			struct run run = {
				.bytes = (ended % 2 ? 1 : 37) * muster_dtype_size(type),
				.type = type, .op = op, .in_place = ended % 3,
			};

			if (muster_arith_supported(type, op))
				allreduce(net, &run, ended++);
		}
	assert_true(ended > 100);
	net_destroy(net);
}

static void counts(uint8_t type)
{
	static const uint32_t elements[] = {
		0, 1, 7, 31, 32, 33, 511, 512, 513, 1021, 2048, 8191,
	};
	struct net *net = open_net(type, 2 + type);

	for (uint32_t i = 0; i < sizeof(elements) / sizeof(*elements); i++) {
		struct run run = { 8 * elements[i], MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, i % 2 };

		allreduce(net, &run, i + 1);
	}
	net_destroy(net);
}

static void counts_on_a_low_latency_tree(void **state)
{
	(void)state;
	counts(MUSTER_SWITCH_LLT);
}

static void counts_on_a_streaming_tree(void **state)
{
	(void)state;
	counts(MUSTER_SWITCH_SAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operation),
		cmocka_unit_test(counts_on_a_low_latency_tree),
		cmocka_unit_test(counts_on_a_streaming_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
