// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * muster_dump: packets that ranks have written (MUSTER_DUMP) as lines, as one file for
 * Wireshark, or counted.
 *
 * usage: muster_dump [OPTION]... FOLDER|FILE...
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "dump.h"
#include "pcapng.h"

static const struct diag_option options[] = {
	{ 'r', "node", "N", "only what this node has sent or gets; of local jobs it is a rank" },
	{ 'x', "context", "N", "only of this communicator" },
	{ 'o', "output", "FILE", "write one pcapng file, for Wireshark, instead of lines" },
	DIAG_OPTIONS_COMMON,
};

static const struct diag_tool tool = {
	.name = "muster_dump",
	.arguments = " FOLDER|FILE...",
	.about = "Show packets in the order of time: those that the ranks of a job wrote into FOLDER, as\n"
		 "MUSTER_DUMP=FOLDER told them, or those of a FILE.\n",
	.status = "0; 1 a file could not be read or written; 2 wrong usage.\n",
	.options = options,
};

static const char *const types[] = {
	"?", "DATA", "RTS", "GRANT", "CREDIT", "P2P", "ABORT", "WHY", "TREE_UP", "TREE_DOWN", "WRITE", "QP",
	"ROOM", "GONE", "WRITTEN",
};

enum { TYPES = sizeof(types) / sizeof(*types) };

struct request {
	long node, context;	/* -1: all */
	const char *output;
	bool json;
};

static const char *type_name(const struct muster_packet *packet)
{
	return types[packet->type < TYPES ? packet->type : 0];
}

static struct muster_packet packet_of(const struct dump_record *record)
{
	struct muster_packet packet;

	memcpy(&packet, record->bytes, sizeof(packet));
	return packet;
}

static bool is_asked_for(const struct request *request, const struct muster_packet *packet)
{
	if (request->context >= 0 && le32toh(packet->context) != (uint32_t)request->context)
		return false;
	return request->node < 0 || le32toh(packet->src_node) == (uint32_t)request->node ||
	       le32toh(packet->dst_node) == (uint32_t)request->node;
}

/* Those that are not asked for go. */
static void filter(const struct request *request, struct dump *dump)
{
	uint64_t nr = 0;

	for (uint64_t i = 0; i < dump->nr; i++) {
		struct muster_packet packet = packet_of(&dump->records[i]);

		if (is_asked_for(request, &packet))
			dump->records[nr++] = dump->records[i];
	}
	dump->nr = nr;
}

static void print_lines(const struct dump *dump)
{
	puts("         TIME TYPE      FROM.VP      TO.VP        JOB CONTEXT   NUMBER PULSE SLOT   OFFSET/TOTAL   BYTES");
	for (uint64_t i = 0; i < dump->nr; i++) {
		struct muster_packet p = packet_of(&dump->records[i]);
		uint64_t ns = dump->records[i].time_ns - dump->records[0].time_ns;
		char from[24], to[24], part[32];

		snprintf(from, sizeof(from), "%u.%u", le32toh(p.src_node), le16toh(p.src_vp));
		snprintf(to, sizeof(to), "%u.%u", le32toh(p.dst_node), le16toh(p.dst_vp));
		snprintf(part, sizeof(part), "%u/%u", le32toh(p.offset), le32toh(p.total));
		printf("%3" PRIu64 ".%09" PRIu64 " %-9s %-12s %-12s %3u %7u %8u %5u %4u %14s %7u\n", ns / 1000000000,
		       ns % 1000000000, type_name(&p), from, to, p.job, le32toh(p.context),
		       le32toh(p.number), le32toh(p.pulse), p.seq_id, part, le16toh(p.length));
	}
	diag_written(&tool);
}

static void print_counts(const struct dump *dump)
{
	uint64_t packets[TYPES] = { 0 }, bytes[TYPES] = { 0 };
	json_t *all = diag_object(&tool), *array = json_array(), *one;
	uint32_t strangers = 0;

	for (uint64_t i = 0; i < dump->nr; i++) {
		struct muster_packet packet = packet_of(&dump->records[i]);
		uint8_t type = packet.type < TYPES ? packet.type : 0;

		packets[type]++;
		bytes[type] += le16toh(packet.length);
	}
	for (uint32_t i = 0; i < dump->nr_files; i++)
		strangers += dump->files[i].strangers;
	for (size_t i = 0; i < TYPES; i++) {
		if (!packets[i])
			continue;
		one = json_object();
		diag_set_text(one, "type", types[i]);
		diag_set(one, "packets", json_integer((json_int_t)packets[i]));
		diag_set(one, "bytes", json_integer((json_int_t)bytes[i]));
		json_array_append_new(array, one);
	}
	diag_set(all, "files", json_integer(dump->nr_files));
	diag_set(all, "packets", json_integer((json_int_t)dump->nr));
	diag_set(all, "seconds", json_real(!dump->nr ? 0 : (double)(dump->records[dump->nr - 1].time_ns -
								    dump->records[0].time_ns) / 1e9));
	diag_set(all, "not_understood", json_integer(strangers));
	diag_set(all, "types", array);
	diag_print(&tool, all);
	json_decref(all);
}

static int write_file(const struct dump *dump, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int err = fd < 0 ? -errno : muster_pcapng_section(fd);

	for (uint32_t i = 0; !err && i < dump->nr_files; i++)
		err = muster_pcapng_interface(fd, dump->files[i].name);
	for (uint64_t i = 0; !err && i < dump->nr; i++) {
		const struct dump_record *r = &dump->records[i];

		err = muster_pcapng_packet(fd, r->file, r->time_ns, r->bytes, r->length, NULL, 0);
	}
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (err)
		fprintf(stderr, "%s: %s: %s\n", tool.name, path, strerror(-err));
	return err;
}

static long number(const char *what, const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 0 || value > UINT32_MAX)
		diag_usage(&tool, "%s is a number, not '%s'", what, text);
	return value;
}

int main(int argc, char **argv)
{
	struct request request = { .node = -1, .context = -1 };
	struct dump dump = { 0 };
	char why[DIAG_WHY_BYTES];
	int key, err = 0;

	while ((key = diag_option(&tool, argc, argv)) != -1)
		switch (key) {
		case 'r': request.node = number("a node", optarg); break;
		case 'x': request.context = number("a context", optarg); break;
		case 'o': request.output = optarg; break;
		case 'j': request.json = true; break;
		}
	if (optind == argc)
		diag_usage(&tool, "a folder or a file is missing");
	for (int i = optind; i < argc; i++)
		if (dump_read(&dump, argv[i], why, sizeof(why))) {
			fprintf(stderr, "%s: %s\n", tool.name, why);
			return 1;
		}
	dump_sort(&dump);
	filter(&request, &dump);
	if (request.output)
		err = write_file(&dump, request.output);
	if (request.json)
		print_counts(&dump);
	else if (!request.output)
		print_lines(&dump);
	dump_free(&dump);
	return err ? 1 : 0;
}
