// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The bump's parts, each alone: instructions of the CIPE, the input arbiter, topologies,
 * and the count of cycles. What hosts see is in bump_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cipe.h"
#include "cycles.h"
#include "test_net.h"

static void an_instruction_that_is_not_defined_is_refused(void **state)
{
	const uint8_t a[8] = { 1 }, b[8] = { 2 }, *const operands[] = { a, b };
	uint64_t sum = CIPE_PREP(CIPE_WORDS, 1) | CIPE_PREP(CIPE_OPCODE, CIPE_COMBINE) |
		       CIPE_PREP(CIPE_TYPE, MUSTER_DTYPE_U32) |
		       CIPE_PREP(CIPE_REDOP, MUSTER_REDOP_SUM) | CIPE_PREP(CIPE_OPERANDS, 2);
	uint8_t result[8] = { 0 };

	(void)state;
	assert_int_equal(cipe_execute(sum, operands, result, 8), 0);
	assert_int_equal(result[0], 3);
	assert_true(cipe_execute(sum, operands, result, 16));
	assert_true(cipe_execute(sum & ~CIPE_OPCODE, operands, result, 8));
	assert_true(cipe_execute(sum & ~CIPE_TYPE, operands, result, 8));
	assert_true(cipe_execute(sum & ~CIPE_OPERANDS, operands, result, 8));
	assert_true(cipe_execute(sum | CIPE_OPERANDS, operands, result, 8));
	assert_int_equal(result[0], 3);
}

/* 8 bits message, 8 bits size, 16 bits UDP port, 32 bits instruction: the paper's. */
static void an_instruction_has_the_papers_fields(void **state)
{
	const uint8_t a[24] = { 1, 2, 3 }, *const operands[] = { a };
	uint64_t pass = cipe_pass(MUSTER_BUMP_RESPONSE, 0x4d42, 17);
	uint8_t result[17];

	(void)state;
	assert_true(pass == 0x02034d4201000001u);
	assert_true((CIPE_MESSAGE | CIPE_WORDS | CIPE_UDP_PORT | CIPE_OPCODE | CIPE_TYPE |
		     CIPE_REDOP | CIPE_OPERANDS) == UINT64_MAX);
	assert_int_equal(cipe_execute(pass, operands, result, 17), 0);
	assert_memory_equal(result, a, 17);
	assert_true(MUSTER_BUMP_DATA_MAX / 8 <= CIPE_GET(CIPE_WORDS, UINT64_MAX));
}

/* Each port's frames are worth a digit; what is taken is written down. */
struct flood {
	uint32_t left[3], nr;
	char order[16];
	uint8_t frame[14];
};

static bool flood_receive(void *world, uint32_t port, struct muster_bump_frame *frame)
{
	struct flood *flood = world;

	if (!flood->left[port])
		return false;
	flood->left[port]--;
	flood->order[flood->nr++] = (char)('0' + port);
	*frame = (struct muster_bump_frame){ .data = flood->frame, .len = sizeof(flood->frame) };
	return true;
}

static bool flood_send(void *world, uint32_t port, const struct muster_bump_frame *frame)
{
	(void)world;
	(void)port;
	(void)frame;
	return true;
}

static uint64_t flood_now(void *world)
{
	(void)world;
	return 0;
}

static void *flood_alloc(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static void the_arbiter_serves_ports_in_turn(void **state)
{
	static const struct muster_bump_world world = {
		.now_us = flood_now, .receive = flood_receive, .send = flood_send,
		.alloc = flood_alloc, .free = net_release,
	};
	static const uint8_t routes[3] = { MUSTER_BUMP_NO_PORT, 1, 2 };
	static const uint16_t neighbours[3] = { 0, 1, 2 };
	static const uint64_t key = 1;
	struct muster_bump_config config = {
		.nr_elements = 3, .nr_ports = 3, .open_ports = 7, .routes = routes,
		.neighbours = neighbours, .nr_keys = 1, .keys = &key,
	};
	struct flood flood = { .left = { 6, 2, 3 } };
	struct muster_bump *bump;

	(void)state;
	assert_int_equal(muster_bump_create(&config, &world, &flood, &bump), 0);
	while (muster_bump_step(bump))
		;
	assert_string_equal(flood.order, "12012020000");
	muster_bump_free(bump);
}

static void topologies_are_read_and_judged(void **state)
{
	static const char *const bad[][2] = {
		{ "0 1\n1 x\n", "line 2: a link is two different elements, as \"0 1\"" },
		{ "0 1\n1 20\n", "line 2: there is no element of that number" },
		{ "0 0\n", "line 1: a link is two different elements, as \"0 1\"" },
		{ "0 1\n2 3\n", "not all of 20 elements are joined" },
		{ "0 1\n0 2\n0 3\n0 4\n0 5\n0 6\n0 7\n0 8\n0 9\n0 10\n0 11\n0 12\n0 13\n0 14\n0 15\n0 16\n",
		  "line 16: an element has at most 15 neighbours" },
	};
	struct muster_bump_topology topology;
	char good[] = "# a star\n0 1\n 0 2 # leg\n\n0 3\n";
	uint8_t routes[MUSTER_BUMP_HOSTS_MAX];
	char why[96];
	FILE *in = fmemopen(good, strlen(good), "r");

	(void)state;
	assert_int_equal(muster_bump_topology_read(&topology, in, 4, why, sizeof(why)), 0);
	fclose(in);
	muster_bump_topology_routes(&topology, 3, routes);
	assert_int_equal(routes[1], 1);
	assert_int_equal(topology.nr_ports[0], 4);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		in = fmemopen((char *)bad[i][0], strlen(bad[i][0]), "r");
		assert_true(muster_bump_topology_read(&topology, in, 20, why, sizeof(why)));
		assert_string_equal(why, bad[i][1]);
		fclose(in);
	}
	assert_true(muster_bump_topology_make(&topology, "star", 4));
	assert_true(muster_bump_topology_make(&topology, "ring", 0));
	assert_true(muster_bump_topology_make(&topology, "ring", MUSTER_BUMP_HOSTS_MAX + 1));
}

/* The paper's bump takes 25 cycles. */
static void a_head_is_through_in_no_more_cycles_than_the_papers(void **state)
{
	static const uint8_t types[] = { MUSTER_DTYPE_I32, MUSTER_DTYPE_U32, MUSTER_DTYPE_F64 };
	struct cycles cycles;

	(void)state;
	for (uint32_t width = 64; width <= 256; width *= 4)
		for (int t = 0; t < 3; t++)
			for (uint8_t redop = 1; redop <= MUSTER_REDOP_LXOR; redop++)
				for (uint32_t operands = 1; operands <= 3; operands++) {
					cycles_count(width, types[t], redop, operands, &cycles);
					assert_true(cycles.total <= 25);
					assert_int_equal(cycles.total, cycles.parse + cycles.look_up +
							 cycles.decide + cycles.instruct +
							 cycles.decode + cycles.adders +
							 cycles.leave);
				}
	cycles_count(64, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2, &cycles);
	assert_int_equal(cycles.total, 14);
	cycles_count(256, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2, &cycles);
	assert_int_equal(cycles.total, 14);
	cycles_count(256, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 3, &cycles);
	assert_int_equal(cycles.total, 25);
	cycles_count(256, MUSTER_DTYPE_I32, MUSTER_REDOP_SUM, 2, &cycles);
	assert_int_equal(cycles.total, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instruction_that_is_not_defined_is_refused),
		cmocka_unit_test(an_instruction_has_the_papers_fields),
		cmocka_unit_test(the_arbiter_serves_ports_in_turn),
		cmocka_unit_test(topologies_are_read_and_judged),
		cmocka_unit_test(a_head_is_through_in_no_more_cycles_than_the_papers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
