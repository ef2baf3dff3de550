// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Topologies: those by name are what they should be, text reads back equal, and
 * each kind of wrong text is refused with its line and the reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "topology.h"

#define HEAD "muster-topology 1\nname x\nnodes 4\n"

static struct muster_topology *make(const char *spec)
{
	struct muster_topology *topology;
	char why[400];

	if (muster_topology_make(spec, &topology, why, sizeof(why)))
		fail_msg("%s: %s", spec, why);
	return topology;
}

static int read_text(const char *text, struct muster_topology **topology, char *why, size_t len)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	int err = muster_topology_read(in, topology, why, len);

	fclose(in);
	return err;
}

static uint32_t bandwidth_of(const struct muster_topology *topology, uint32_t from, uint32_t to)
{
	int64_t link = muster_topology_find_link(topology, from, to);

	for (uint32_t i = 0; i < topology->nr_limits; i++)
		if (topology->limits[i].nr_links == 1 && topology->limits[i].links[0] == link)
			return topology->limits[i].bandwidth;
	return 0;
}

static uint32_t diameter(const struct muster_topology *topology)
{
	uint32_t *hops = muster_topology_distances(topology), most = 0;

	for (uint32_t i = 0; i < topology->nodes * topology->nodes; i++)
		most = hops[i] > most ? hops[i] : most;
	free(hops);
	return most;
}

static const struct {
	const char *spec;
	uint32_t nodes, links, diameter;
	uint32_t symmetries;
} known[] = {
	{ "dgx1", 8, 32, 2, 4 }, { "z52", 8, 16, 4, 16 }, { "ring:5", 5, 10, 2, 10 },
	{ "line:4", 4, 6, 3, 2 }, { "star:5", 5, 8, 2, 24 }, { "switch:5", 5, 8, 2, 24 }, { "full:5", 5, 20, 1, 120 },
	{ "hypercube:3", 8, 24, 3, 48 }, { "mesh:3x2", 6, 14, 3, 4 },
	{ "torus:4x4", 16, 64, 4, 384 }, { "full:300", 300, 89700, 1, 0 },
	{ "torus:2x4x2x4", 64, 384, 6, 0 },
	{ "fat-tree:2x2x1", 7, 12, 4, 8 }, { "fat-tree:16x4x2", 70, 144, 4, 0 },
	{ "fat-tree:2x2x2x2x2", 18, 40, 6, 0 }, { "switch-torus:1x3x3", 18, 54, 4, 0 },
	{ "switch-torus:2x2x2", 12, 24, 4, 0 }, { "switch-torus:3x4", 16, 32, 4, 0 },
};

static void known_topologies_are_what_they_should_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct muster_topology *topology = make(known[i].spec);
		uint32_t *symmetries = NULL;
		int nr = muster_topology_symmetries(topology, 1000, &symmetries);

		if (topology->nodes != known[i].nodes || topology->nr_links != known[i].links ||
		    diameter(topology) != known[i].diameter ||
		    (known[i].symmetries && nr != (int)known[i].symmetries))
			fail_msg("%s: %u nodes, %u links, diameter %u, %d symmetries",
				 known[i].spec, topology->nodes, topology->nr_links,
				 diameter(topology), nr);
		free(symmetries);
		muster_topology_free(topology);
	}
}

static void a_dgx1_node_has_six_links_each_way(void **state)
{
	struct muster_topology *topology = make("dgx1");

	(void)state;
	for (uint32_t a = 0; a < 8; a++) {
		uint32_t out = 0;

		for (uint32_t b = 0; b < 8; b++) {
			out += bandwidth_of(topology, a, b);
			assert_int_equal(bandwidth_of(topology, a, b),
					 bandwidth_of(topology, b, a));
		}
		assert_int_equal(out, 6);
	}
	assert_int_equal(bandwidth_of(topology, 1, 4), 2);
	assert_int_equal(bandwidth_of(topology, 0, 5), 1);
	muster_topology_free(topology);
}

static void a_ring_of_two_in_a_torus_has_both_its_directions(void **state)
{
	struct muster_topology *topology = make("torus:2x3");

	(void)state;
	assert_int_equal(bandwidth_of(topology, 0, 3), 2);
	assert_int_equal(bandwidth_of(topology, 0, 1), 1);
	assert_int_equal(bandwidth_of(topology, 0, 2), 1);
	muster_topology_free(topology);
}

static void text_reads_back_equal(void **state)
{
	static const char text[] = HEAD "link 0 -- 1 2 # a comment\nlink 1 -> 2 1\n\n"
		"link 2 -> 0 0\n"
		"bus 1 1 2 3\nout 2 1\nin 1 3\nlimit 5 0->1 1->2 3->0\nend\n";
	struct muster_topology *first, *second;
	bool *usable;
	char why[400] = "", *written;
	size_t len;
	FILE *out = open_memstream(&written, &len);

	(void)state;
	if (read_text(text, &first, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(first->nr_links, 10);
	assert_int_equal(first->nr_limits, 8);
	usable = muster_topology_usable(first);
	assert_false(usable[muster_topology_find_link(first, 2, 0)]);
	assert_true(usable[muster_topology_find_link(first, 0, 1)]);
	free(usable);
	assert_int_equal(muster_topology_write(first, out), 0);
	fclose(out);
	if (read_text(written, &second, why, sizeof(why)))
		fail_msg("%s\n%s", why, written);
	assert_true(muster_topology_hash(first) == muster_topology_hash(second));
	free(written);
	muster_topology_free(first);
	muster_topology_free(second);
}

static const struct {
	const char *text;
	const char *reason;
} refused[] = {
	{ "", "line 1: the text ends where \"muster-topology\" should follow" },
	{ "muster-topology 2\n", "line 1: version 2 of the form, but this reads version 1" },
	{ "muster-topology 1\nname a/b\n",
	  "line 2: a name has only letters, digits, '.', '_' and '-'" },
	{ "muster-topology 1\nname x\nnodes 1\n", "line 3: nodes 1, but it can be 2 to 4096" },
	{ "muster-topology 1\nname x\nnodes many\n", "line 3: nodes \"many\" is not a number" },
	{ HEAD, "line 4: the text ends without \"end\": it is cut off" },
	{ HEAD "wire 0 1\nend\n",
	  "line 4: \"wire\", but a line begins with link, limit, bus, out, in, switch or end" },
	{ HEAD "switch\nend\n", "line 4: \"switch NODE ...\" expected" },
	{ HEAD "switch 4\nend\n", "line 4: node 4, but it can be 0 to 3" },
	{ HEAD "link 0 -> 4 1\nend\n", "line 4: node 4, but it can be 0 to 3" },
	{ HEAD "link 0 -> 0 1\nend\n", "line 4: node 0 is linked to itself" },
	{ HEAD "link 0 = 1 1\nend\n",
	  "line 4: \"link A -> B BANDWIDTH\" expected, or \"--\" for both directions" },
	{ HEAD "link 0 -> 1 70000\nend\n", "line 4: bandwidth 70000, but it can be 0 to 65536" },
	{ HEAD "link 0 -> 1 1\nlink 0 -- 1 1\nend\n", "line 5: 0->1 stands further up already" },
	{ HEAD "limit 1 0-1\nend\n", "line 4: \"0-1\" is no link \"A->B\"" },
	{ HEAD "limit 1 0->1 0->1\nend\n", "line 4: 0->1 stands here twice" },
	{ HEAD "bus 1 2\nend\n", "line 4: \"bus BANDWIDTH A B C ...\" expected" },
	{ HEAD "out 1 2\nend\n", "line 4: node 2 has no such link further up" },
	{ HEAD "end 1\n", "line 4: \"end\" stands alone" },
	{ HEAD "end\nlink 0 -> 1 1\n", "line 5: \"link\" follows after \"end\"" },
};

static void wrong_text_is_refused_with_line_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct muster_topology *topology = NULL;
		char why[400] = "";

		if (read_text(refused[i].text, &topology, why, sizeof(why)) != -EINVAL ||
		    strcmp(why, refused[i].reason))
			fail_msg("\"%s\"\ngave     \"%s\"\nexpected \"%s\"", refused[i].text, why,
				 refused[i].reason);
		assert_null(topology);
	}
}

static void wrong_names_and_sizes_are_refused(void **state)
{
	static const char *const specs[] = {
		"ring", "ring:", "ring:0", "ring:1", "ring:x", "ring:4x4", "mesh:4y4", "torus:4x",
		"torus:100x100", "hypercube:40", "full:-3", "dgx1:2", "/nowhere", "full:4096",
	};
	struct muster_topology *topology;
	char why[400];

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (!muster_topology_make(specs[i], &topology, why, sizeof(why)))
			fail_msg("%s was taken", specs[i]);
	assert_int_equal(muster_topology_make("fat-tree:4x4", &topology, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "HxLxS or HxLxAxPxC"));
}

static void assert_is_whole(const struct muster_topology *topology)
{
	for (uint32_t i = 0; i < topology->nr_links; i++) {
		assert_in_range(topology->links[i].from, 0, topology->nodes - 1);
		assert_in_range(topology->links[i].to, 0, topology->nodes - 1);
		assert_int_not_equal(topology->links[i].from, topology->links[i].to);
	}
	for (uint32_t i = 0; i < topology->nr_limits; i++)
		for (uint32_t j = 0; j < topology->limits[i].nr_links; j++)
			assert_in_range(topology->limits[i].links[j], 0, topology->nr_links - 1);
}

/* Bytes of a good text changed at random: read or refused, with a line; never more. */
static void spoiled_text_is_read_or_refused(void **state)
{
	static const char text[] = HEAD "link 0 -- 1 2\nlink 1 -> 2 1\nbus 1 1 2 3\nout 2 1\n"
		"limit 5 0->1 1->2 3->0\nend\n";
	static const char bytes[] = "0123456789 \n->-x#\t\r";
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct muster_topology *topology = NULL;
		char spoiled[sizeof(text)], why[400] = "";

		memcpy(spoiled, text, sizeof(text));
		for (int j = 0; j <= i % 4; j++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			spoiled[(seed >> 33) % (sizeof(text) - 1)] =
				bytes[(seed >> 50) % (sizeof(bytes) - 1)];
		}
		if (read_text(spoiled, &topology, why, sizeof(why))) {
			if (strncmp(why, "line ", 5))
				fail_msg("\"%s\" gave \"%s\"", spoiled, why);
			continue;
		}
		assert_is_whole(topology);
		muster_topology_free(topology);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_topologies_are_what_they_should_be),
		cmocka_unit_test(a_dgx1_node_has_six_links_each_way),
		cmocka_unit_test(a_ring_of_two_in_a_torus_has_both_its_directions),
		cmocka_unit_test(text_reads_back_equal),
		cmocka_unit_test(wrong_text_is_refused_with_line_and_reason),
		cmocka_unit_test(wrong_names_and_sizes_are_refused),
		cmocka_unit_test(spoiled_text_is_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
