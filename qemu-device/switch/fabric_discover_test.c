// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A network that its switches have said is the one that they are of: the same numbers, ports, ways, trees and
 * orders. Who has not come is named, and so are both ends of what two say differently.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

#define NONE	MUSTER_FABRIC_NOTHING

enum { NODES_MAX = 64, LINKS_MAX = 256, SWITCHES_MAX = 16, RADIX = 8, A = MUSTER_NODE_AGGREGATION };

static struct muster_fabric_link links[LINKS_MAX];
static bool is_switch[NODES_MAX], is_plain[NODES_MAX];
static struct muster_fabric_config config;
static struct muster_fabric *fabric;
static uint32_t ports[SWITCHES_MAX][MUSTER_SWITCH_RADIX_MAX];
static struct muster_fabric_said said[SWITCHES_MAX];
static uint32_t nr_said;
static char why[192];

/* ---- networks, as links ---- */

static void begin(uint32_t hosts, uint32_t switches)
{
	memset(is_plain, 0, sizeof(is_plain));
	config = (struct muster_fabric_config){
		.nodes = hosts + switches, .is_switch = is_switch, .is_plain = is_plain, .radix = RADIX,
		.links = links,
	};
	for (uint32_t i = 0; i < config.nodes; i++)
		is_switch[i] = i >= hosts;
}

static void link_add(uint32_t a, uint32_t b)
{
	links[config.nr_links++] = (struct muster_fabric_link){ a, b };
}

static void fat_tree(uint32_t each, uint32_t leaves, uint32_t spines)
{
	uint32_t hosts = each * leaves;

	begin(hosts, leaves + spines);
	for (uint32_t i = 0; i < hosts; i++)
		link_add(i, hosts + i / each);
	for (uint32_t i = 0; i < leaves * spines; i++)
		link_add(hosts + i / spines, hosts + leaves + i % spines);
}

static void torus(uint32_t side)
{
	uint32_t nr = side * side;

	begin(nr, nr);
	for (uint32_t i = 0; i < nr; i++) {
		link_add(nr + i, nr + i / side * side + (i + 1) % side);
		link_add(nr + i, nr + (i + side) % nr);
		link_add(i, nr + i);
	}
}

/* All say what they are. */
static void make(void)
{
	uint32_t bad;

	if (muster_fabric_create(&config, &fabric, &bad, why, sizeof(why)))
		fail_msg("link %u: %s", bad, why);
	nr_said = muster_fabric_switches(fabric);
	for (uint32_t i = 0; i < nr_said; i++)
		muster_fabric_say(fabric, i, ports[i], &said[i]);
}

/* ---- whether two are the same ---- */

static void expect_same_ports(const struct muster_fabric *found)
{
	struct muster_fabric_end a, b;

	assert_int_equal(muster_fabric_hosts(found), muster_fabric_hosts(fabric));
	assert_int_equal(muster_fabric_switches(found), muster_fabric_switches(fabric));
	assert_int_equal(muster_fabric_radix(found), muster_fabric_radix(fabric));
	for (uint32_t i = 0; i < nr_said; i++) {
		assert_int_equal(muster_fabric_node(found, i), muster_fabric_node(fabric, i));
		for (uint32_t port = 0; port < RADIX; port++) {
			bool is_there = muster_fabric_end(fabric, i, port, &a);

			assert_int_equal(muster_fabric_end(found, i, port, &b), is_there);
			if (!is_there)
				continue;
			assert_int_equal(a.is_host, b.is_host);
			assert_int_equal(a.number, b.number);
			assert_int_equal(a.port, b.port);
		}
	}
	for (uint32_t i = 0; i < muster_fabric_hosts(fabric); i++) {
		muster_fabric_uplink(fabric, i, &a);
		muster_fabric_uplink(found, i, &b);
		assert_int_equal(a.number, b.number);
		assert_int_equal(a.port, b.port);
	}
}

static void expect_same_routes(const struct muster_fabric *found)
{
	struct muster_switch_route a[NODES_MAX], b[NODES_MAX];

	for (uint32_t i = 0; i < nr_said; i++) {
		int64_t nr = muster_fabric_routes(fabric, i, a);

		assert_int_equal(muster_fabric_routes(found, i, b), nr);
		for (int64_t j = 0; j < nr; j++) {
			assert_int_equal(a[j].node, b[j].node);
			assert_int_equal(a[j].port, b[j].port);
		}
	}
}

static void expect_same_branch(const struct muster_switch_group *a, const struct muster_switch_group *b)
{
	assert_int_equal(a->parent_port, b->parent_port);
	assert_int_equal(a->parent_node, b->parent_node);
	assert_int_equal(a->nr_children, b->nr_children);
	for (uint32_t i = 0; i < a->nr_children; i++) {
		assert_int_equal(a->children[i].node, b->children[i].node);
		assert_int_equal(a->children[i].port, b->children[i].port);
	}
}

static void expect_same_order(const struct muster_fabric *found, const struct muster_fabric_group *a,
			      const struct muster_fabric_group *b, uint32_t members)
{
	struct muster_fabric_give gives[NODES_MAX], others[NODES_MAX];

	for (uint8_t type = MUSTER_SWITCH_LLT; type <= MUSTER_SWITCH_SAT; type++) {
		assert_int_equal(muster_fabric_order(fabric, a, type, gives), 0);
		assert_int_equal(muster_fabric_order(found, b, type, others), 0);
		assert_memory_equal(gives, others, (members - 1) * sizeof(gives[0]));
	}
}

static void expect_same_tree(const struct muster_fabric *found, uint32_t tree)
{
	uint32_t nr = muster_fabric_hosts(fabric), members[NODES_MAX];
	struct muster_fabric_group a, b;

	for (uint32_t i = 0; i < nr; i++)
		members[i] = nr - 1 - i;
	assert_int_equal(muster_fabric_group(fabric, tree, members, nr, &a, why, sizeof(why)), 0);
	assert_int_equal(muster_fabric_group(found, tree, members, nr, &b, why, sizeof(why)), 0);
	assert_int_equal(a.nr_branches, b.nr_branches);
	assert_memory_equal(a.nodes, b.nodes, nr * sizeof(*a.nodes));
	for (uint32_t i = 0; i < a.nr_branches; i++) {
		assert_int_equal(a.branches[i].number, b.branches[i].number);
		expect_same_branch(&a.branches[i].group, &b.branches[i].group);
	}
	expect_same_order(found, &a, &b, nr);
	muster_fabric_group_free(&a);
	muster_fabric_group_free(&b);
}

/* ---- what is found ---- */

/* The sequence of switches is another one in each round; before the last of them nothing is known. */
static void expect_found(void)
{
	struct muster_fabric_said sequence[SWITCHES_MAX];
	struct muster_fabric *found;

	for (uint32_t round = 0; round < 2 * nr_said; round++) {
		for (uint32_t i = 0; i < nr_said; i++)
			sequence[i] = said[(round + (round % 2 ? nr_said - i : i)) % nr_said];
		for (uint32_t nr = 0; nr < nr_said; nr++)
			assert_int_equal(muster_fabric_discover(sequence, nr, &found, why, sizeof(why)), -EAGAIN);
		assert_int_equal(muster_fabric_discover(sequence, nr_said, &found, why, sizeof(why)), 0);
		expect_same_ports(found);
		expect_same_routes(found);
		for (uint32_t tree = 0; tree < nr_said; tree++)
			expect_same_tree(found, tree);
		for (uint32_t i = 0; i < nr_said; i++)
			assert_int_equal(muster_fabric_agrees(found, &said[i], why, sizeof(why)), 0);
		muster_fabric_free(found);
	}
}

static void what_is_found_is_what_was_given(void **state)
{
	(void)state;
	fat_tree(4, 3, 2);
	make();
	expect_found();
	muster_fabric_free(fabric);
	torus(3);
	make();
	expect_found();
	muster_fabric_free(fabric);
}

static void who_only_forwards_says_so(void **state)
{
	struct muster_fabric *found;

	(void)state;
	torus(3);
	is_plain[9 + 1] = is_plain[9 + 4] = is_plain[9 + 8] = true;
	make();
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(said[i].is_plain, i == 1 || i == 4 || i == 8);
	assert_int_equal(muster_fabric_discover(said, nr_said, &found, why, sizeof(why)), 0);
	expect_same_ports(found);
	expect_same_routes(found);
	muster_fabric_free(found);
	muster_fabric_free(fabric);
}

static int discover(void)
{
	struct muster_fabric *found;
	int err = muster_fabric_discover(said, nr_said, &found, why, sizeof(why));

	if (!err)
		muster_fabric_free(found);
	return err;
}

/* Two leaves with two hosts each, and a spine; ports as they are written, not from 0 on. */
static void say_three(void)
{
	static const uint32_t three[][RADIX] = {
		{ NONE, 0, NONE, 1, A + 2, NONE, NONE, NONE },
		{ 2, 3, NONE, NONE, NONE, NONE, NONE, A + 2 },
		{ A + 1, NONE, A + 0, NONE, NONE, NONE, NONE, NONE },
	};

	nr_said = 3;
	for (uint32_t i = 0; i < nr_said; i++) {
		memcpy(ports[i], three[i], sizeof(three[i]));
		said[i] = (struct muster_fabric_said){ .number = i, .radix = RADIX, .nodes = ports[i] };
	}
}

static void ports_may_be_empty(void **state)
{
	struct muster_fabric_group group;
	uint32_t members[] = { 0, 3 };
	struct muster_fabric_end end;

	(void)state;
	say_three();
	assert_int_equal(muster_fabric_discover(said, nr_said, &fabric, why, sizeof(why)), 0);
	assert_false(muster_fabric_end(fabric, 0, 0, &end));
	assert_true(muster_fabric_end(fabric, 0, 3, &end));
	assert_true(end.is_host);
	assert_int_equal(end.number, 1);
	assert_true(muster_fabric_end(fabric, 1, 7, &end));
	assert_int_equal(end.number, 2);
	assert_int_equal(end.port, 0);
	assert_int_equal(muster_fabric_group(fabric, 0, members, 2, &group, why, sizeof(why)), 0);
	assert_int_equal(group.nr_branches, 3);
	assert_int_equal(group.branches[2].number, 2);
	assert_int_equal(group.branches[2].group.children[0].node, A + 1);
	muster_fabric_group_free(&group);
	muster_fabric_free(fabric);
}

/* ---- what is missing or wrong ---- */

#define SAID(err, sentence, ...)				\
	do {							\
		say_three();					\
		__VA_ARGS__;					\
		assert_int_equal(discover(), err);		\
		assert_string_equal(why, sentence);		\
	} while (0)

static void who_has_not_come_is_named(void **state)
{
	(void)state;
	SAID(-EAGAIN, "no switch has come", nr_said = 0);
	SAID(-EAGAIN, "switch 2 is at port 4 of switch 0 and has not come", nr_said = 2);
	SAID(-EAGAIN, "switch 1 is at port 0 of switch 2 and has not come", said[1] = said[2], nr_said = 2);
	SAID(-EAGAIN, "switch 9 is at port 6 of switch 1 and has not come", ports[1][6] = A + 9);
}

static void both_ends_of_a_contradiction_are_named(void **state)
{
	(void)state;
	SAID(-EINVAL, "switch 2 is at port 4 of switch 0, but switch 0 is at no port of switch 2",
	     ports[2][2] = NONE);
	SAID(-EINVAL, "switch 1 is at port 5 of switch 0, but switch 0 is at no port of switch 1", ports[0][5] = A + 1);
	SAID(-EINVAL, "host 3 is at port 0 of switch 0 and at port 1 of switch 1", ports[0][0] = 3);
	SAID(-EINVAL, "switch 0 has 8 ports and switch 1 9, but all have as many", said[1].radix = 9,
	     ports[1][8] = NONE);
	/* Said before all have come. */
	SAID(-EINVAL, "switch 2 is at port 4 of switch 0, but switch 0 is at no port of switch 2",
	     ports[2][2] = A + 7);
}

static void what_is_no_network_is_refused(void **state)
{
	(void)state;
	SAID(-EINVAL, "there is a host 4, but host 2 is at no port", ports[1][0] = 4);
	SAID(-EINVAL, "there is a switch 3, but switch 1 is at no port", said[1].number = 3, ports[2][0] = A + 3);
	SAID(-EINVAL, "no way leads from switch 0 to switch 1", ports[1][7] = ports[2][0] = NONE);
	SAID(-EINVAL, "no host is at any port",
	     ports[0][1] = ports[0][3] = ports[1][0] = ports[1][1] = NONE);
}

static void ports_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	SAID(-EINVAL, "what is at port 6 of switch 1 is neither a host nor a switch",
	     ports[1][6] = MUSTER_FABRIC_NODES_MAX);
	SAID(-EINVAL, "what is at port 6 of switch 1 is neither a host nor a switch", ports[1][6] = A - 1);
	SAID(-EINVAL, "what is at port 6 of switch 1 is neither a host nor a switch",
	     ports[1][6] = A + MUSTER_FABRIC_NODES_MAX);
	SAID(-EINVAL, "what is at port 6 of switch 1 is neither a host nor a switch", ports[1][6] = UINT32_MAX - 1);
	SAID(-EINVAL, "switch 1 is at port 6 of itself", ports[1][6] = A + 1);
	SAID(-EINVAL, "switch 2 is at ports 6 and 7 of switch 1", ports[1][6] = A + 2);
	SAID(-EINVAL, "host 3 is at ports 1 and 6 of switch 1", ports[1][6] = 3);
	SAID(-EINVAL, "switch 1 has 1 ports, but it can have 2 to 128", said[1].radix = 1);
	SAID(-EINVAL, "switch 1 has 0 ports, but it can have 2 to 128", said[1].radix = 0);
	SAID(-EINVAL, "switch 1 has 4096 ports, but it can have 2 to 128", said[1].radix = 4096);
	SAID(-EINVAL, "switch 65536, but there can be 65536 nodes", said[1].number = MUSTER_FABRIC_NODES_MAX);
	SAID(-EINVAL, "switch 4278255616, but there can be 65536 nodes", said[1].number = 0u - A);
}

static void what_differs_from_a_known_network_is_named(void **state)
{
	(void)state;
	say_three();
	assert_int_equal(muster_fabric_discover(said, nr_said, &fabric, why, sizeof(why)), 0);
#define DIFFERS(sentence, ...)										\
	do {												\
		say_three();										\
		__VA_ARGS__;										\
		assert_int_equal(muster_fabric_agrees(fabric, &said[1], why, sizeof(why)), -EINVAL);	\
		assert_string_equal(why, sentence);							\
	} while (0)
	DIFFERS("the network has no switch 3", said[1].number = 3);
	DIFFERS("switch 1 has 7 ports, but in the network 8", said[1].radix = 7);
	DIFFERS("switch 1 has no aggregation node, but in the network it has one", said[1].is_plain = true);
	DIFFERS("at port 0 of switch 1 is host 5, but in the network host 2", ports[1][0] = 5);
	DIFFERS("at port 7 of switch 1 is nothing, but in the network switch 2", ports[1][7] = NONE);
	DIFFERS("at port 3 of switch 1 is switch 0, but in the network nothing", ports[1][3] = A + 0);
	muster_fabric_free(fabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_found_is_what_was_given),
		cmocka_unit_test(who_only_forwards_says_so),
		cmocka_unit_test(ports_may_be_empty),
		cmocka_unit_test(who_has_not_come_is_named),
		cmocka_unit_test(both_ends_of_a_contradiction_are_named),
		cmocka_unit_test(what_is_no_network_is_refused),
		cmocka_unit_test(ports_that_make_no_sense_are_refused),
		cmocka_unit_test(what_differs_from_a_known_network_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
