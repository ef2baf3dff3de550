// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From the topology that the synthesizer knows, of one-way links, to a switch's network, of
 * links that lead both ways; with the line of the file that is to blame.
 */
#include "fabric_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/topology.h"

/* Puts the line before the sentence. */
static int blame(const struct muster_topology *topology, int64_t link, int err, const char *sentence,
		 char *why, size_t why_len)
{
	uint32_t line = link >= 0 ? topology->lines[link] : 0;

	if (line)
		snprintf(why, why_len, "line %" PRIu32 ": %s", line, sentence);
	else
		snprintf(why, why_len, "%s", sentence);
	return err;
}

/* Each pair of links once, in the order of the first; from[i]: which that was. */
static int pair_links(const struct muster_topology *topology, struct muster_fabric_link *links,
		      uint32_t *from, uint32_t *nr, char *why, size_t why_len)
{
	char sentence[160];

	*nr = 0;
	for (uint32_t i = 0; i < topology->nr_links; i++) {
		uint32_t a = topology->links[i].from, b = topology->links[i].to;
		int64_t back = muster_topology_find_link(topology, b, a);

		if (back < 0) {
			snprintf(sentence, sizeof(sentence), "%" PRIu32 " -> %" PRIu32 " leads one "
				 "way, but a network's links lead both ways (--)", a, b);
			return blame(topology, i, -EINVAL, sentence, why, why_len);
		}
		if (back < i)
			continue;
		from[*nr] = i;
		links[(*nr)++] = (struct muster_fabric_link){ a, b };
	}
	return 0;
}

static int make(const struct muster_topology *topology, uint32_t radix,
		struct muster_fabric **fabric, struct muster_fabric_link *links, uint32_t *from,
		char *why, size_t why_len)
{
	struct muster_fabric_config config = {
		.nodes = topology->nodes, .is_switch = topology->is_switch, .radix = radix,
		.links = links,
	};
	char sentence[200];
	uint32_t bad;
	int err = pair_links(topology, links, from, &config.nr_links, why, why_len);

	if (err)
		return err;
	err = muster_fabric_create(&config, fabric, &bad, sentence, sizeof(sentence));
	if (err)
		blame(topology, bad == MUSTER_FABRIC_NO_LINK ? -1 : (int64_t)from[bad], err,
		      sentence, why, why_len);
	return err;
}

int muster_fabric_read(const char *spec, uint32_t radix, struct muster_fabric **fabric, char *why,
		       size_t why_len)
{
	struct muster_topology *topology;
	struct muster_fabric_link *links;
	uint32_t *from;
	int err = muster_topology_make(spec, &topology, why, why_len);

	if (err)
		return err;
	links = calloc(topology->nr_links + 1, sizeof(*links));
	from = calloc(topology->nr_links + 1, sizeof(*from));
	if (links && from) {
		err = make(topology, radix, fabric, links, from, why, why_len);
	} else {
		err = -ENOMEM;
		snprintf(why, why_len, "out of memory");
	}
	free(links);
	free(from);
	muster_topology_free(topology);
	return err;
}

static uint64_t mix(uint64_t digest, uint32_t word)
{
	return (digest ^ word) * 0x100000001b3ull;
}

uint64_t muster_fabric_digest(const struct muster_fabric *fabric)
{
	uint64_t digest = mix(mix(0xcbf29ce484222325ull, muster_fabric_hosts(fabric)), muster_fabric_radix(fabric));
	struct muster_fabric_end end;

	for (uint32_t i = 0; i < muster_fabric_switches(fabric); i++) {
		digest = mix(digest, muster_fabric_node(fabric, i));
		for (uint32_t port = 0; port < muster_fabric_radix(fabric); port++)
			if (muster_fabric_end(fabric, i, port, &end))
				digest = mix(mix(mix(digest, port), end.number), end.is_host);
	}
	return digest;
}
