// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which a group's tree combines, told without switches and ports, is that of the
 * reduction units of its switches: both are written out as expressions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

enum { NODES_MAX = 128, LINKS_MAX = 512, MEMBERS_MAX = 64, WORDS = 512 };

typedef char expression[WORDS];

static struct muster_fabric_link links[LINKS_MAX];
static bool is_switch[NODES_MAX];
static struct muster_fabric_config config;
static struct muster_fabric *fabric;
static char why[256];

static void begin(uint32_t hosts, uint32_t switches, uint32_t radix)
{
	config = (struct muster_fabric_config){
		.nodes = hosts + switches, .is_switch = is_switch, .radix = radix, .links = links,
	};
	for (uint32_t i = 0; i < config.nodes; i++)
		is_switch[i] = i >= hosts;
}

static void link_add(uint32_t a, uint32_t b)
{
	links[config.nr_links++] = (struct muster_fabric_link){ a, b };
}

static void make(void)
{
	uint32_t bad;

	if (muster_fabric_create(&config, &fabric, &bad, why, sizeof(why)))
		fail_msg("link %u: %s", bad, why);
}

/* ---- what the units come to ---- */

static void branch_write(const struct muster_fabric_group *group, uint32_t number, uint8_t type, char *words);

static void append(char *sum, const char *operand)
{
	expression both;

	if (!*sum)
		memmove(sum, operand, strlen(operand) + 1);
	else if (snprintf(both, sizeof(both), "(%s %s)", sum, operand) < (int)sizeof(both))
		strcpy(sum, both);
	else
		fail_msg("too long: %s", both);
}

/* What comes by that port, if there is a child. */
static void port_append(const struct muster_fabric_group *group, const struct muster_switch_group *at, uint8_t type,
			uint32_t port, char *sum)
{
	for (uint32_t i = 0; i < at->nr_children; i++) {
		const struct muster_switch_child *child = &at->children[i];
		expression words = "";

		if (child->port != port)
			continue;
		if (child->node < MUSTER_NODE_AGGREGATION)
			snprintf(words, sizeof(words), "%u", child->member);
		else
			branch_write(group, child->node - MUSTER_NODE_AGGREGATION, type, words);
		append(sum, words);
	}
}

/* Paper, figure 1b: of the units of two ports each the lower half, rounded up, is one half ring. */
static void units_write(const struct muster_fabric_group *group, const struct muster_switch_group *at, char *words)
{
	uint32_t units = (config.radix + 1) / 2, top = (units + 1) / 2;
	expression left = "", right = "";

	for (uint32_t unit = 0; unit < units; unit++)
		for (uint32_t port = 2 * unit; port < 2 * unit + 2; port++)
			port_append(group, at, MUSTER_SWITCH_SAT, port, unit < top ? left : right);
	if (*left)
		append(words, left);
	if (*right)
		append(words, right);
}

static void branch_write(const struct muster_fabric_group *group, uint32_t number, uint8_t type, char *words)
{
	uint32_t i = 0;

	while (group->branches[i].number != number)
		i++;
	if (type == MUSTER_SWITCH_SAT)
		units_write(group, &group->branches[i].group, words);
	for (uint32_t port = 0; port < config.radix && type == MUSTER_SWITCH_LLT; port++)
		port_append(group, &group->branches[i].group, type, port, words);
}

/* ---- what is told ---- */

static void told_write(const struct muster_fabric_group *group, uint32_t nr, uint8_t type, char *words)
{
	static expression has[MEMBERS_MAX];
	struct muster_fabric_give gives[MEMBERS_MAX];

	assert_int_equal(muster_fabric_order(fabric, group, type, gives), 0);
	for (uint32_t i = 0; i < nr; i++)
		snprintf(has[i], sizeof(has[i]), "%u", i);
	for (uint32_t i = 0; i + 1 < nr; i++)
		append(has[gives[i].to], has[gives[i].from]);
	strcpy(words, has[nr > 1 ? gives[nr - 2].to : 0]);
}

static void expect_told(uint32_t tree, const uint32_t *members, uint32_t nr)
{
	struct muster_fabric_group group;

	if (muster_fabric_group(fabric, tree, members, nr, &group, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint8_t type = MUSTER_SWITCH_LLT; type <= MUSTER_SWITCH_SAT; type++) {
		expression told, wanted = "";

		told_write(&group, nr, type, told);
		branch_write(&group, group.branches[group.nr_branches - 1].number, type, wanted);
		assert_string_equal(told, wanted);
	}
	muster_fabric_group_free(&group);
}

/* Paper, figure 1b; its ports are counted from 1. */
static void figure_1b(void **state)
{
	static const uint32_t sources[] = { 0, 1, 2, 3, 4, 7, 9, 13 };
	struct muster_fabric_group group;
	expression told;

	(void)state;
	begin(16, 1, 16);
	for (uint32_t host = 0; host < 16; host++)
		link_add(host, 16);
	make();
	assert_int_equal(muster_fabric_group(fabric, 0, sources, 8, &group, why, sizeof(why)), 0);
	told_write(&group, 8, MUSTER_SWITCH_SAT, told);
	assert_string_equal(told, "((((((0 1) 2) 3) 4) 5) (6 7))");
	told_write(&group, 8, MUSTER_SWITCH_LLT, told);
	assert_string_equal(told, "(((((((0 1) 2) 3) 4) 5) 6) 7)");
	muster_fabric_group_free(&group);
	muster_fabric_free(fabric);
}

/* So many of the hosts, in any order. */
static void some_members(uint32_t hosts, uint32_t nr, uint32_t *members)
{
	uint32_t all[NODES_MAX];

	for (uint32_t i = 0; i < hosts; i++)
		all[i] = i;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = i + (uint32_t)rand() % (hosts - i), other = all[at];

		all[at] = all[i];
		members[i] = all[i] = other;
	}
}

static void expect_all_told(uint32_t hosts)
{
	uint32_t members[MEMBERS_MAX];

	make();
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t nr = 1 + (uint32_t)rand() % hosts;

		some_members(hosts, nr, members);
		expect_told(round % 8, members, nr);
	}
	muster_fabric_free(fabric);
}

static void any_group_on_a_fat_tree(void **state)
{
	(void)state;
	for (uint32_t radix = 10; radix < 14; radix++) {
		begin(35, 8, radix);	/* five leaves, three spines */
		for (uint32_t host = 0; host < 35; host++)
			link_add(host, 35 + host % 5);
		for (uint32_t leaf = 35; leaf < 40; leaf++)
			for (uint32_t spine = 40; spine < 43; spine++)
				link_add(leaf, spine);
		expect_all_told(35);
	}
}

/* Switches combine what others have come to in between their own hosts. */
static void any_group_on_a_ring(void **state)
{
	(void)state;
	for (uint32_t radix = 5; radix < 9; radix++) {
		begin(18, 6, radix);
		for (uint32_t i = 0; i < 6; i++) {
			link_add(i, 18 + i);
			link_add(18 + i, 18 + (i + 1) % 6);
			link_add(6 + i, 18 + i);
			link_add(12 + i, 18 + i);
		}
		expect_all_told(18);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figure_1b),
		cmocka_unit_test(any_group_on_a_fat_tree),
		cmocka_unit_test(any_group_on_a_ring),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
