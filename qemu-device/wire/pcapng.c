// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Blocks of pcapng (draft-ietf-opsawg-pcapng), in the byte order of this machine, which the
 * section says.
 */
#include "pcapng.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	SNAP_BYTES = 1 << 16,
	NAME_MAX_BYTES = 64,
	OPTION_NAME = 2,
	OPTION_RESOLUTION = 9,
	NANOSECONDS = 9,	/* 10^-9 */
};

static const uint32_t zeros;

static size_t padded(size_t len)
{
	return (len + 3) / 4 * 4;
}

static int write_all(int fd, const struct iovec *parts, int nr)
{
	size_t len = 0;
	ssize_t written;

	for (int i = 0; i < nr; i++)
		len += parts[i].iov_len;
	do
		written = writev(fd, parts, nr);
	while (written < 0 && errno == EINTR);
	if (written < 0)
		return -errno;
	return (size_t)written == len ? 0 : -ENOSPC;
}

int muster_pcapng_section(int fd)
{
	const struct {
		struct muster_pcapng_block block;
		uint32_t order;
		uint16_t major, minor;
		uint32_t bytes[2];	/* not known */
		uint32_t length;
	} section = {
		.block = { MUSTER_PCAPNG_SECTION, sizeof(section) },
		.order = MUSTER_PCAPNG_ORDER,
		.major = 1,
		.bytes = { UINT32_MAX, UINT32_MAX },
		.length = sizeof(section),
	};
	const struct iovec part = { (void *)&section, sizeof(section) };

	return write_all(fd, &part, 1);
}

int muster_pcapng_interface(int fd, const char *name)
{
	size_t name_len = strnlen(name, NAME_MAX_BYTES);
	struct {
		struct muster_pcapng_block block;
		uint16_t link, reserved;
		uint32_t snap;
		uint16_t name_option, name_len;
	} head = {
		.block.type = MUSTER_PCAPNG_INTERFACE,
		.link = MUSTER_PCAPNG_LINK,
		.snap = SNAP_BYTES,
		.name_option = OPTION_NAME,
		.name_len = (uint16_t)name_len,
	};
	struct {
		uint16_t option, option_len;
		uint8_t resolution, padding[3];
		uint32_t end_of_options;
		uint32_t length;
	} tail = { .option = OPTION_RESOLUTION, .option_len = 1, .resolution = NANOSECONDS };
	const struct iovec parts[] = {
		{ &head, sizeof(head) }, { (void *)name, name_len },
		{ (void *)&zeros, padded(name_len) - name_len }, { &tail, sizeof(tail) },
	};

	head.block.length = (uint32_t)(sizeof(head) + padded(name_len) + sizeof(tail));
	tail.length = head.block.length;
	return write_all(fd, parts, 4);
}

int muster_pcapng_packet(int fd, uint32_t interface, uint64_t time_ns, const void *head,
			 size_t head_len, const void *payload, size_t payload_len)
{
	size_t len = head_len + payload_len;
	struct muster_pcapng_packet record = {
		.block = { MUSTER_PCAPNG_PACKET, (uint32_t)(sizeof(record) + padded(len) + 4) },
		.interface = interface,
		.time_high = (uint32_t)(time_ns >> 32),
		.time_low = (uint32_t)time_ns,
		.captured = (uint32_t)len,
		.length = (uint32_t)len,
	};
	const struct iovec parts[] = {
		{ &record, sizeof(record) }, { (void *)head, head_len },
		{ (void *)payload, payload_len }, { (void *)&zeros, padded(len) - len },
		{ &record.block.length, sizeof(uint32_t) },
	};

	return write_all(fd, parts, 5);
}

int muster_pcapng_create(const char *path, const char *name)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return -errno;
	err = muster_pcapng_section(fd);
	if (!err)
		err = muster_pcapng_interface(fd, name);
	if (!err)
		return fd;
	close(fd);
	return err;
}

uint64_t muster_pcapng_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int muster_pcapng_sent(int fd, uint64_t time_ns, const struct muster_packet *packet,
		       const void *payload)
{
	struct muster_packet head = *packet;

	head.job_key = 0;	/* a secret, and of no use to who looks */
	return muster_pcapng_packet(fd, 0, time_ns, &head, sizeof(head), payload,
				    le16toh(packet->length));
}
