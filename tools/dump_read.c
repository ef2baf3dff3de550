// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files of packets (pcapng.h) are read: those that ranks or the simulated world have
 * written on a machine of this byte order. Lengths are not trusted; a file may end in the middle
 * of a block, as its writer may have been killed.
 */
#include "dump.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pcapng.h"

static int record_add(struct dump *dump, const struct dump_record *record)
{
	/* Room is doubled: at every power of two. */
	if (!(dump->nr & (dump->nr - 1))) {
		struct dump_record *more = realloc(dump->records, (dump->nr ? 2 * dump->nr : 1) *
						   sizeof(*more));

		if (!more)
			return -1;
		dump->records = more;
	}
	dump->records[dump->nr++] = *record;
	return 0;
}

static int packet_add(struct dump *dump, uint32_t file, const uint8_t *at, uint32_t block_len)
{
	struct muster_pcapng_packet head;
	struct muster_packet packet;
	struct dump_record record = { .file = file, .bytes = at + sizeof(head) };

	memcpy(&head, at, sizeof(head));
	record.time_ns = (uint64_t)head.time_high << 32 | head.time_low;
	record.length = head.captured;
	if (head.captured >= sizeof(packet) && head.captured <= block_len - sizeof(head) - 4) {
		memcpy(&packet, record.bytes, sizeof(packet));
		if (packet.version == MUSTER_PACKET_VERSION &&
		    le16toh(packet.length) == head.captured - sizeof(packet))
			return record_add(dump, &record);
	}
	dump->files[file].strangers++;
	return 0;
}

static int blocks_read(struct dump *dump, uint32_t file)
{
	const struct dump_file *f = &dump->files[file];
	struct muster_pcapng_block block;
	size_t at = 0;

	for (; f->bytes - at >= sizeof(block); at += block.length) {
		memcpy(&block, f->map + at, sizeof(block));
		if (block.length < sizeof(block) + 4 || block.length % 4 || block.length > f->bytes - at)
			break;
		if (block.type == MUSTER_PCAPNG_PACKET &&
		    block.length >= sizeof(struct muster_pcapng_packet) + 4 &&
		    packet_add(dump, file, f->map + at, block.length))
			return -1;
	}
	return 0;
}

static bool is_ours(const struct dump_file *file)
{
	const uint32_t wanted = MUSTER_PCAPNG_SECTION, order = MUSTER_PCAPNG_ORDER;

	return file->bytes >= 12 && !memcmp(file->map, &wanted, 4) && !memcmp(file->map + 8, &order, 4);
}

static int map(struct dump_file *file, const char *path, char *why, size_t why_len)
{
	struct stat status = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &status) && status.st_size > 0) {
		file->bytes = (size_t)status.st_size;
		file->map = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (fd < 0 || file->map == MAP_FAILED) {
		snprintf(why, why_len, "%s: %s", path, strerror(errno));
		file->map = NULL;
		file->bytes = 0;
	}
	if (fd >= 0)
		close(fd);
	if (file->map && is_ours(file))
		return 0;
	if (fd >= 0)
		snprintf(why, why_len, "%s: this is no pcapng file of this machine's byte order", path);
	return -1;
}

static int file_read(struct dump *dump, const char *path, char *why, size_t why_len)
{
	struct dump_file *more = realloc(dump->files, (dump->nr_files + 1) * sizeof(*more));
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct dump_file *file;

	snprintf(why, why_len, "%s: no memory", path);
	if (!more)
		return -1;
	dump->files = more;
	file = &more[dump->nr_files++];
	*file = (struct dump_file){ 0 };
	snprintf(file->name, sizeof(file->name), "%.*s", (int)strcspn(name, "."), name);
	if (map(file, path, why, why_len))
		return -1;
	return blocks_read(dump, dump->nr_files - 1);
}

static int is_dump(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 7 && !strcmp(entry->d_name + len - 7, ".pcapng");
}

int dump_read(struct dump *dump, const char *path, char *why, size_t why_len)
{
	struct dirent **entries;
	int nr = scandir(path, &entries, is_dump, versionsort), err = 0;

	if (nr < 0)
		return file_read(dump, path, why, why_len);
	for (int i = 0; i < nr; i++) {
		char whole[4096];

		snprintf(whole, sizeof(whole), "%s/%s", path, entries[i]->d_name);
		if (!err)
			err = file_read(dump, whole, why, why_len);
		free(entries[i]);
	}
	free(entries);
	if (nr)
		return err;
	snprintf(why, why_len, "%s: there are no .pcapng files in it", path);
	return -1;
}

static int by_time(const void *one, const void *other)
{
	const struct dump_record *a = one, *b = other;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->bytes < b->bytes ? -1 : 1;
}

void dump_sort(struct dump *dump)
{
	if (dump->nr)
		qsort(dump->records, dump->nr, sizeof(*dump->records), by_time);
}

void dump_free(struct dump *dump)
{
	for (uint32_t i = 0; i < dump->nr_files; i++)
		if (dump->files[i].map)
			munmap(dump->files[i].map, dump->files[i].bytes);
	free(dump->files);
	free(dump->records);
	*dump = (struct dump){ 0 };
}
