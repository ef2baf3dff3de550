// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_fabric: check a network of hosts and switches, and show its ports and the reduction
 * tree that a group of hosts would have on it (Documentation/switch.md).
 *
 * usage: muster_fabric [OPTION]... WHICH
 */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric_file.h"
#include "version.h"

static const char help[] =
	"Usage: muster_fabric [OPTION]... WHICH\n"
	"Check a network of hosts and switches; show its ports, and a group's reduction tree.\n"
	"WHICH is switch:N, fat-tree:HxLxS, fat-tree:HxLxAxPxC, switch-torus:HxAxB, or a file.\n"
	"  -n, --hosts=N     the group: the first N hosts (all)\n"
	"  -r, --radix=N     ports of each switch, 2 to 128 (40)\n"
	"  -t, --tree=N      which of the network's trees (0)\n"
	"  -h, --help  -V, --version\n";

static const struct option options[] = {
	{ "hosts", required_argument, NULL, 'n' }, { "radix", required_argument, NULL, 'r' },
	{ "tree", required_argument, NULL, 't' }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { 0 },
};

static uint32_t number_of(const char *name, const char *text, uint32_t min, uint32_t max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < min || value > max)
		errx(2, "--%s=%s: a number from %" PRIu32 " to %" PRIu32 " is wanted", name, text,
		     min, max);
	return value;
}

static void print_node(uint32_t node)
{
	if (node < MUSTER_NODE_AGGREGATION)
		printf("host %" PRIu32, node);
	else
		printf("switch %" PRIu32, node - MUSTER_NODE_AGGREGATION);
}

static void print_ports(const struct muster_fabric *fabric)
{
	struct muster_fabric_end end;

	printf("hosts: %" PRIu32 ", switches: %" PRIu32 ", radix: %" PRIu32 "\n",
	       muster_fabric_hosts(fabric), muster_fabric_switches(fabric),
	       muster_fabric_radix(fabric));
	for (uint32_t number = 0; number < muster_fabric_switches(fabric); number++) {
		printf("switch %" PRIu32 ", node 0x%" PRIx32 ":", number,
		       muster_fabric_node(fabric, number));
		for (uint32_t port = 0; muster_fabric_end(fabric, number, port, &end); port++)
			printf(" %" PRIu32 "=%s%" PRIu32, port, end.is_host ? "h" : "s", end.number);
		printf("\n");
	}
}

static void print_group(const struct muster_fabric_group *group, uint32_t tree)
{
	printf("tree %" PRIu32 ", root switch %" PRIu32 "\n", tree,
	       group->branches[group->nr_branches - 1].number);
	for (uint32_t i = group->nr_branches; i--;) {
		const struct muster_switch_group *at = &group->branches[i].group;

		printf("switch %" PRIu32 " combines", group->branches[i].number);
		for (uint32_t j = 0; j < at->nr_children; j++) {
			printf("%s ", j ? "," : "");
			print_node(at->children[j].node);
		}
		if (at->parent_port == MUSTER_SWITCH_NO_PORT) {
			printf("; root\n");
			continue;
		}
		printf("; up to ");
		print_node(at->parent_node);
		printf(" by port %d\n", at->parent_port);
	}
}

static void show(const struct muster_fabric *fabric, uint32_t hosts, uint32_t tree)
{
	uint32_t all = muster_fabric_hosts(fabric), *members;
	struct muster_fabric_group group;
	char why[256];

	if (hosts > all)
		errx(1, "a group of %" PRIu32 " hosts, but there are %" PRIu32, hosts, all);
	if (!hosts)
		hosts = all;
	members = calloc(hosts, sizeof(*members));
	if (!members)
		err(1, NULL);
	for (uint32_t i = 0; i < hosts; i++)
		members[i] = i;
	print_ports(fabric);
	if (muster_fabric_group(fabric, tree, members, hosts, &group, why, sizeof(why)))
		errx(1, "%s", why);
	print_group(&group, tree);
	muster_fabric_group_free(&group);
	free(members);
}

int main(int argc, char **argv)
{
	uint32_t hosts = 0, radix = 0, tree = 0;
	struct muster_fabric *fabric;
	char why[400];
	int option;

	while ((option = getopt_long(argc, argv, "n:r:t:hV", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			hosts = number_of("hosts", optarg, 1, MUSTER_FABRIC_NODES_MAX);
			break;
		case 'r':
			radix = number_of("radix", optarg, MUSTER_SWITCH_RADIX_MIN,
					  MUSTER_SWITCH_RADIX_MAX);
			break;
		case 't':
			tree = number_of("tree", optarg, 0, UINT16_MAX);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		case 'V':
			puts("muster_fabric " MUSTER_VERSION);
			return 0;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	if (optind != argc - 1) {
		fputs(help, stderr);
		return 2;
	}
	if (muster_fabric_read(argv[optind], radix, &fabric, why, sizeof(why)))
		errx(1, "%s: %s", argv[optind], why);
	show(fabric, hosts, tree);
	muster_fabric_free(fabric);
	return 0;
}
