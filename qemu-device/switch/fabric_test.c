// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Networks are checked and the link that is wrong is named; ways lead where they should
 * and go round nowhere; trees have the shape that their network has.
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

enum { NODES_MAX = 64, LINKS_MAX = 256, NEVER = 99 };

static bool is_switch[NODES_MAX], is_plain[NODES_MAX];
static struct muster_fabric_link links[LINKS_MAX];
static struct muster_fabric_config config;
static struct muster_fabric *fabric;
static char why[256];

static void link_add(uint32_t a, uint32_t b)
{
	links[config.nr_links++] = (struct muster_fabric_link){ a, b };
}

/* Hosts 0 to 3, switches 4 and 5 with two each, switch 6 above. */
static void describe(void)
{
	memset(is_switch, 0, sizeof(is_switch));
	memset(is_plain, 0, sizeof(is_plain));
	config = (struct muster_fabric_config){
		.nodes = 7, .is_switch = is_switch, .is_plain = is_plain, .radix = 6, .links = links,
	};
	is_switch[4] = is_switch[5] = is_switch[6] = true;
	link_add(0, 4);
	link_add(4, 1);
	link_add(2, 5);
	link_add(3, 5);
	link_add(4, 6);
	link_add(5, 6);
}

static void make(void)
{
	uint32_t bad;

	if (muster_fabric_create(&config, &fabric, &bad, why, sizeof(why)))
		fail_msg("link %u: %s", bad, why);
}

static void expect_refused(uint32_t bad_link, const char *sentence)
{
	uint32_t bad = NEVER;

	assert_int_equal(muster_fabric_create(&config, &fabric, &bad, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, sentence);
	assert_int_equal(bad, bad_link);
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
#define REFUSED(bad, sentence, ...)		\
	do {					\
		describe();			\
		__VA_ARGS__;			\
		expect_refused(bad, sentence);	\
	} while (0)
	REFUSED(6, "node 7, but there are 7", link_add(7, 6));
	REFUSED(6, "node 5 is linked to itself", link_add(5, 5));
	REFUSED(6, "nodes 6 and 4 are linked twice", link_add(6, 4));
	REFUSED(6, "host 0 has more than 1 link", link_add(0, 5));
	REFUSED(6, "hosts 0 and 1 are linked, but a host's link leads to a switch", link_add(0, 1));
	REFUSED(4, "switch 4 has more than 2 links", config.radix = 2);
}

static void what_is_missing_is_named(void **state)
{
	(void)state;
	REFUSED(MUSTER_FABRIC_NO_LINK, "no way leads from node 4 to node 2", config.nr_links = 5);
	REFUSED(MUSTER_FABRIC_NO_LINK, "no way leads from node 4 to node 7",
		config.nodes = 8);
	REFUSED(MUSTER_FABRIC_NO_LINK, "there are 7 hosts and 0 switches, but one of each is needed",
		memset(is_switch, 0, sizeof(is_switch)));
	REFUSED(MUSTER_FABRIC_NO_LINK, "0 nodes, but there can be 1 to 65536", config.nodes = 0);
	REFUSED(MUSTER_FABRIC_NO_LINK, "radix 129, but it can be 2 to 128", config.radix = 129);
}

static void ports_follow_the_order_of_links(void **state)
{
	struct muster_fabric_end end;

	(void)state;
	describe();
	make();
	assert_int_equal(muster_fabric_hosts(fabric), 4);
	assert_int_equal(muster_fabric_switches(fabric), 3);
	muster_fabric_uplink(fabric, 1, &end);
	assert_false(end.is_host);
	assert_int_equal(end.number, 0);
	assert_int_equal(end.port, 1);
	assert_true(muster_fabric_end(fabric, 0, 2, &end));
	assert_int_equal(end.number, 2);
	assert_int_equal(end.port, 0);
	assert_false(muster_fabric_end(fabric, 0, 3, &end));
	muster_fabric_free(fabric);
}

/* From every switch to everything, by routes alone. */
static void expect_routes(void)
{
	uint32_t nr = muster_fabric_switches(fabric);
	struct muster_switch_route routes[NODES_MAX][NODES_MAX];
	int64_t count[NODES_MAX];

	for (uint32_t s = 0; s < nr; s++) {
		count[s] = muster_fabric_routes(fabric, s, routes[s]);
		for (int64_t i = 1; i < count[s]; i++)
			assert_true(routes[s][i - 1].node < routes[s][i].node);
	}
	for (uint32_t s = 0; s < nr; s++)
		for (int64_t i = 0; i < count[s]; i++) {
			struct muster_fabric_end at = { .number = s };
			uint32_t node = routes[s][i].node, hops = 0;

			while (!at.is_host && at.number + MUSTER_NODE_AGGREGATION != node) {
				int64_t j = 0;

				while (routes[at.number][j].node != node)
					j++;
				assert_true(muster_fabric_end(fabric, at.number,
							      routes[at.number][j].port, &at));
				assert_true(++hops <= nr);
			}
			assert_int_equal(node, at.number + (at.is_host ? 0 : MUSTER_NODE_AGGREGATION));
		}
}

static void routes_lead_to_all_nodes(void **state)
{
	(void)state;
	describe();
	make();
	expect_routes();
	muster_fabric_free(fabric);
	describe();			/* a ring of four switches, one host each: two ways */
	config.nodes = 8;
	config.nr_links = 0;
	for (uint32_t i = 0; i < 4; i++) {
		is_switch[i] = false;
		is_switch[4 + i] = true;
		link_add(i, 4 + i);
		link_add(4 + i, 4 + (i + 1) % 4);
	}
	make();
	expect_routes();
	muster_fabric_free(fabric);
}

/* ---- trees ---- */

static void lay(uint32_t tree, const uint32_t *members, uint32_t nr,
		struct muster_fabric_group *group)
{
	if (muster_fabric_group(fabric, tree, members, nr, group, why, sizeof(why)))
		fail_msg("%s", why);
}

static void a_tree_has_its_networks_shape(void **state)
{
	static const uint32_t all[] = { 0, 1, 2, 3 };
	struct muster_fabric_group group;
	const struct muster_switch_group *at;

	(void)state;
	describe();
	make();
	lay(0, all, 4, &group);
	assert_int_equal(group.nr_branches, 3);
	for (uint32_t i = 0; i < 2; i++) {
		at = &group.branches[i].group;
		assert_int_equal(group.branches[i].number, i);
		assert_int_equal(at->nr_children, 2);
		assert_int_equal(at->parent_node, MUSTER_NODE_AGGREGATION + 2);
		assert_int_equal(at->parent_port, 2);
		for (uint32_t j = 0; j < 2; j++) {
			assert_int_equal(at->children[j].node, 2 * i + j);
			assert_int_equal(at->children[j].port, j);
			assert_int_equal(at->children[j].member, 2 * i + j);
			assert_int_equal(group.nodes[2 * i + j], MUSTER_NODE_AGGREGATION + i);
		}
	}
	at = &group.branches[2].group;
	assert_int_equal(group.branches[2].number, 2);
	assert_int_equal(at->parent_port, MUSTER_SWITCH_NO_PORT);
	assert_int_equal(at->children[0].node, MUSTER_NODE_AGGREGATION);
	assert_int_equal(at->children[1].node, MUSTER_NODE_AGGREGATION + 1);
	muster_fabric_group_free(&group);
	muster_fabric_free(fabric);
}

/* Paper, figure 1a: the group's own root may be further down than the tree's. */
static void a_group_needs_no_more_than_its_members(void **state)
{
	static const uint32_t two[] = { 3, 2 };
	struct muster_fabric_group group;

	(void)state;
	describe();
	make();
	lay(0, two, 2, &group);
	assert_int_equal(group.nr_branches, 1);
	assert_int_equal(group.branches[0].number, 1);
	assert_int_equal(group.branches[0].group.parent_port, MUSTER_SWITCH_NO_PORT);
	assert_int_equal(group.branches[0].group.children[0].node, 2);
	assert_int_equal(group.branches[0].group.children[0].member, 1);
	assert_int_equal(group.branches[0].group.children[1].member, 0);
	muster_fabric_group_free(&group);
	muster_fabric_free(fabric);
}

/* Paper, figure 1a: switches on the way need be no aggregation nodes. */
static void a_plain_switch_is_passed(void **state)
{
	static const uint32_t one_each[] = { 0, 2 };
	static const uint32_t all[] = { 0, 1, 2, 3 };
	struct muster_fabric_group group;

	(void)state;
	describe();
	is_plain[4] = true;
	make();
	assert_int_equal(muster_fabric_node(fabric, 0), 0);
	lay(0, one_each, 2, &group);
	assert_int_equal(group.nr_branches, 2);
	assert_int_equal(group.nodes[0], MUSTER_NODE_AGGREGATION + 2);
	assert_int_equal(group.nodes[1], MUSTER_NODE_AGGREGATION + 1);
	assert_int_equal(group.branches[1].group.children[0].node, 0);
	muster_fabric_group_free(&group);
	assert_int_equal(muster_fabric_group(fabric, 0, all, 4, &group, why, sizeof(why)),
			 -EOPNOTSUPP);
	assert_string_equal(why, "nodes 0 and 1 come to switch 6 by one port, and a tree takes one "
			    "child a port: they must be combined before");
	muster_fabric_free(fabric);
}

static void trees_have_different_roots(void **state)
{
	static const uint32_t all[] = { 0, 1, 2, 3 };
	static const uint32_t roots[] = { 2, 0, 1, 2 };
	struct muster_fabric_group group;

	(void)state;
	describe();
	make();
	for (uint32_t tree = 0; tree < 4; tree++) {
		lay(tree, all, 4, &group);
		assert_int_equal(group.branches[group.nr_branches - 1].number, roots[tree]);
		muster_fabric_group_free(&group);
	}
	muster_fabric_free(fabric);
}

static void members_are_checked(void **state)
{
	static const uint32_t twice[] = { 0, 1, 0 }, none[] = { 0, 4 };
	struct muster_fabric_group group;

	(void)state;
	describe();
	make();
	assert_int_equal(muster_fabric_group(fabric, 0, twice, 3, &group, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "host 0 is a member twice");
	assert_int_equal(muster_fabric_group(fabric, 0, none, 2, &group, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "host 4 is not there");
	assert_int_equal(muster_fabric_group(fabric, 0, none, 0, &group, why, sizeof(why)), -EINVAL);
	muster_fabric_free(fabric);
	describe();
	is_plain[4] = is_plain[5] = is_plain[6] = true;
	make();
	assert_int_equal(muster_fabric_group(fabric, 0, twice, 2, &group, why, sizeof(why)),
			 -EOPNOTSUPP);
	assert_string_equal(why, "no switch has an aggregation node");
	muster_fabric_free(fabric);
}

/* ---- without some switches ---- */

/* Of two spines either can go, and not both; a leaf cannot. Ports stay as they are. */
static void what_is_left_out_is_passed_by_no_way_and_no_tree(void **state)
{
	static const uint32_t all[] = { 0, 1, 2, 3 };
	struct muster_switch_route routes[NODES_MAX];
	struct muster_fabric_group group;
	struct muster_fabric_end end;
	struct muster_fabric *whole, *left;
	bool without[4] = { [2] = true };

	(void)state;
	describe();
	config.nodes = 8;
	is_switch[7] = true;
	link_add(4, 7);
	link_add(5, 7);
	make();
	whole = fabric;
	assert_int_equal(muster_fabric_without(whole, without, &left, why, sizeof(why)), 0);
	assert_int_equal(muster_fabric_routes(left, 0, routes), 6);	/* hosts, the other leaf and spine */
	assert_int_equal(routes[2].port, 3);
	assert_false(muster_fabric_end(left, 0, 2, &end));
	assert_true(muster_fabric_end(left, 0, 3, &end));
	assert_int_equal(end.number, 3);
	fabric = left;
	for (uint32_t tree = 0; tree < 6; tree++) {
		lay(tree, all, 4, &group);
		for (uint32_t i = 0; i < group.nr_branches; i++)
			assert_int_not_equal(group.branches[i].number, 2);
		muster_fabric_group_free(&group);
	}
	without[3] = true;
	assert_int_equal(muster_fabric_without(whole, without, &fabric, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "without it no way leads from host 0 to host 2");
	without[3] = false;
	without[0] = true;
	assert_int_equal(muster_fabric_without(whole, without, &fabric, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "host 0 hangs on it, by the only link that it has");
	muster_fabric_free(left);
	muster_fabric_free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(ports_follow_the_order_of_links),
		cmocka_unit_test(routes_lead_to_all_nodes),
		cmocka_unit_test(a_tree_has_its_networks_shape),
		cmocka_unit_test(a_group_needs_no_more_than_its_members),
		cmocka_unit_test(a_plain_switch_is_passed),
		cmocka_unit_test(trees_have_different_roots),
		cmocka_unit_test(members_are_checked),
		cmocka_unit_test(what_is_left_out_is_passed_by_no_way_and_no_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
