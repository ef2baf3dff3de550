// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The text form of topologies (Documentation/synthesis.md), written and read. The
 * first line that is wrong ends the reading with its number and the reason.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topology.h"
#include "words.h"

#define TEXT_VERSION "1"

struct reader {
	struct muster_words words;
	struct muster_topology *topology;
	uint32_t *links;		/* of the line's limit */
	uint32_t nr_links;
};

static int read_heads(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	char name[MUSTER_TOPOLOGY_NAME_MAX + 1];
	const char *word;
	uint32_t nodes;
	int err = muster_words_head(words, "muster-topology", &word);

	if (!err && strcmp(word, TEXT_VERSION))
		err = muster_words_refuse(words, "version %.20s of the form, but this reads "
					  "version " TEXT_VERSION, word);
	if (!err)
		err = muster_words_head(words, "name", &word);
	if (!err)
		err = muster_words_name(words, word, name, sizeof(name));
	if (!err)
		err = muster_words_head(words, "nodes", &word);
	if (!err)
		err = muster_words_number(words, "nodes", word, 2, MUSTER_TOPOLOGY_NODES_MAX,
					  &nodes);
	if (err)
		return err;
	reader->topology = muster_topology_new(name, nodes);
	return reader->topology ? 0 : -ENOMEM;
}

static int parse_node(struct reader *reader, const char *word, uint32_t *node)
{
	return muster_words_number(&reader->words, "node", word, 0, reader->topology->nodes - 1,
				   node);
}

static int parse_bandwidth(struct reader *reader, const char *word, uint32_t *bandwidth)
{
	return muster_words_number(&reader->words, "bandwidth", word, 0,
				   MUSTER_TOPOLOGY_BANDWIDTH_MAX, bandwidth);
}

static int add_to_limit(struct reader *reader, uint32_t from, uint32_t to)
{
	int64_t link;

	if (from == to)
		return muster_words_refuse(&reader->words, "node %" PRIu32 " is linked to itself",
					   from);
	link = muster_topology_add_link(reader->topology, from, to);
	if (link < 0)
		return link;
	for (uint32_t i = 0; i < reader->nr_links; i++)
		if (reader->links[i] == link)
			return muster_words_refuse(&reader->words, "%" PRIu32 "->%" PRIu32
						   " stands here twice", from, to);
	reader->links = realloc(reader->links, (reader->nr_links + 1) * sizeof(*reader->links));
	if (!reader->links)
		return -ENOMEM;
	reader->links[reader->nr_links++] = link;
	return 0;
}

static int join(struct reader *reader, uint32_t from, uint32_t to, uint32_t bandwidth)
{
	if (from == to)
		return muster_words_refuse(&reader->words, "node %" PRIu32 " is linked to itself",
					   from);
	if (muster_topology_find_link(reader->topology, from, to) >= 0)
		return muster_words_refuse(&reader->words, "%" PRIu32 "->%" PRIu32
					   " stands further up already", from, to);
	return muster_topology_join(reader->topology, from, to, bandwidth);
}

/* link A -> B BANDWIDTH, link A -- B BANDWIDTH */
static int read_link(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	uint32_t from, to, bandwidth;
	bool both;
	int err;

	if (words->nr != 5 || (strcmp(words->word[2], "->") && strcmp(words->word[2], "--")))
		return muster_words_refuse(words, "\"link A -> B BANDWIDTH\" expected, or \"--\" "
					   "for both directions");
	both = words->word[2][1] == '-';
	err = parse_node(reader, words->word[1], &from);
	if (!err)
		err = parse_node(reader, words->word[3], &to);
	if (!err)
		err = parse_bandwidth(reader, words->word[4], &bandwidth);
	if (!err)
		err = join(reader, from, to, bandwidth);
	if (!err && both)
		err = join(reader, to, from, bandwidth);
	return err;
}

/* limit BANDWIDTH A->B C->D ... */
static int read_limit(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	int err = 0;

	if (words->nr < 3)
		return muster_words_refuse(words, "\"limit BANDWIDTH A->B C->D ...\" expected");
	for (uint32_t i = 2; i < words->nr && !err; i++) {
		char *arrow = strstr(words->word[i], "->");
		uint32_t from, to;

		if (!arrow)
			return muster_words_refuse(words, "\"%.40s\" is no link \"A->B\"",
						   words->word[i]);
		*arrow = '\0';
		err = parse_node(reader, words->word[i], &from);
		if (!err)
			err = parse_node(reader, arrow + 2, &to);
		if (!err)
			err = add_to_limit(reader, from, to);
	}
	return err;
}

/* bus BANDWIDTH A B C ...: every pair of them */
static int read_bus(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	uint32_t from, to;
	int err = 0;

	if (words->nr < 4)
		return muster_words_refuse(words, "\"bus BANDWIDTH A B C ...\" expected");
	for (uint32_t i = 2; i < words->nr && !err; i++) {
		err = parse_node(reader, words->word[i], &from);
		for (uint32_t j = 2; j < words->nr && !err; j++) {
			if (i == j)
				continue;
			err = parse_node(reader, words->word[j], &to);
			if (!err)
				err = add_to_limit(reader, from, to);
		}
	}
	return err;
}

/* out BANDWIDTH NODE, in BANDWIDTH NODE: all its links that stand further up */
static int read_node_limit(struct reader *reader, bool out)
{
	const struct muster_topology *topology = reader->topology;
	struct muster_words *words = &reader->words;
	uint32_t node;
	int err;

	if (words->nr != 3)
		return muster_words_refuse(words, "\"%s BANDWIDTH NODE\" expected",
					   out ? "out" : "in");
	err = parse_node(reader, words->word[2], &node);
	for (uint32_t i = 0; i < topology->nr_links && !err; i++)
		if ((out ? topology->links[i].from : topology->links[i].to) == node)
			err = add_to_limit(reader, topology->links[i].from, topology->links[i].to);
	if (!err && !reader->nr_links)
		err = muster_words_refuse(words, "node %" PRIu32 " has no such link further up",
					  node);
	return err;
}

/* switch A B ...: these nodes */
static int read_switches(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	uint32_t node;
	int err = 0;

	if (words->nr < 2)
		return muster_words_refuse(words, "\"switch NODE ...\" expected");
	for (uint32_t i = 1; i < words->nr && !err; i++) {
		err = parse_node(reader, words->word[i], &node);
		if (!err)
			reader->topology->is_switch[node] = true;
	}
	return err;
}

static int read_shared(struct reader *reader)
{
	const char *keyword = reader->words.word[0];
	uint32_t bandwidth;
	int err;

	reader->nr_links = 0;
	if (!strcmp(keyword, "limit"))
		err = read_limit(reader);
	else if (!strcmp(keyword, "bus"))
		err = read_bus(reader);
	else if (!strcmp(keyword, "out") || !strcmp(keyword, "in"))
		err = read_node_limit(reader, *keyword == 'o');
	else
		err = muster_words_refuse(&reader->words, "\"%.40s\", but a line begins with link, "
					  "limit, bus, out, in, switch or end", keyword);
	if (!err)
		err = parse_bandwidth(reader, reader->words.word[1], &bandwidth);
	return err ? err : muster_topology_add_limit(reader->topology, bandwidth, reader->links,
						     reader->nr_links);
}

static int read_body(struct reader *reader)
{
	struct muster_words *words = &reader->words;
	int err;

	while (!(err = muster_words_next(words))) {
		if (!words->nr)
			return muster_words_refuse(words, "the text ends without \"end\": it is "
						   "cut off");
		if (!strcmp(words->word[0], "end"))
			break;
		reader->topology->line = words->line;
		err = !strcmp(words->word[0], "link") ? read_link(reader) :
		      !strcmp(words->word[0], "switch") ? read_switches(reader) :
		      read_shared(reader);
		if (err)
			return err;
	}
	if (!err && words->nr != 1)
		err = muster_words_refuse(words, "\"end\" stands alone");
	if (!err)
		err = muster_words_next(words);
	if (!err && words->nr)
		err = muster_words_refuse(words, "\"%.40s\" follows after \"end\"", words->word[0]);
	return err;
}

int muster_topology_read(FILE *in, struct muster_topology **topology, char *why, size_t why_len)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	reader->words = (struct muster_words){ .in = in, .why = why, .why_len = why_len };
	err = read_heads(reader);
	if (!err)
		err = read_body(reader);
	if (err == -E2BIG)
		err = muster_words_refuse(&reader->words, "more than %d links",
					  MUSTER_TOPOLOGY_LINKS_MAX);
	if (err == -ENOMEM)
		muster_words_refuse(&reader->words, "out of memory");
	if (err)
		muster_topology_free(reader->topology);
	else
		*topology = reader->topology;
	free(reader->links);
	free(reader);
	return err;
}

int muster_topology_write(const struct muster_topology *topology, FILE *out)
{
	bool *joined = calloc(topology->nr_links + 1, 1);

	if (!joined)
		return -ENOMEM;
	fprintf(out, "muster-topology " TEXT_VERSION "\nname %s\nnodes %" PRIu32 "\n",
		topology->name, topology->nodes);
	for (uint32_t i = 0; i < topology->nr_limits; i++) {
		const struct muster_link_limit *limit = &topology->limits[i];
		const struct muster_link *link = &topology->links[limit->links[0]];

		if (limit->nr_links == 1 && !joined[limit->links[0]]) {
			fprintf(out, "link %" PRIu32 " -> %" PRIu32 " %" PRIu32 "\n", link->from,
				link->to, limit->bandwidth);
			joined[limit->links[0]] = true;
			continue;
		}
		fprintf(out, "limit %" PRIu32, limit->bandwidth);
		for (uint32_t j = 0; j < limit->nr_links; j++) {
			link = &topology->links[limit->links[j]];
			fprintf(out, " %" PRIu32 "->%" PRIu32, link->from, link->to);
			joined[limit->links[j]] = true;
		}
		fprintf(out, "\n");
	}
	for (uint32_t node = 0; node < topology->nodes; node++)
		if (topology->is_switch[node])
			fprintf(out, "switch %" PRIu32 "\n", node);
	fprintf(out, "end\n");
	free(joined);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
