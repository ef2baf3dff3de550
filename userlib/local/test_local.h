/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What tests of the local device between real processes share: a device of each rank,
 * a context of all, and a message, transfer or completion at a time.
 */
#ifndef MUSTER_TEST_LOCAL_H
#define MUSTER_TEST_LOCAL_H

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"
#include "test_ranks.h"

enum { JOB = 3, CONTEXT = 5 };

static const char *const wires[] = { "ring", "unix", "udp" };

static inline struct muster_dev *dev_open(struct muster_oob *oob, const char *wire)
{
	const struct muster_local_config config = { .wire = wire, .deadline_us = TEST_EVER_US };
	struct muster_dev *dev = NULL;
	char why[256] = "";

	if (muster_local_open(oob, &config, &dev, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	EXPECT(dev);
	return dev;
}

/* One context of all ranks, open everywhere on return. */
static inline void context_open(struct muster_oob *oob, struct muster_dev *dev)
{
	struct muster_address members[TEST_RANKS_MAX];
	struct muster_dev_context context = {
		.context = CONTEXT, .job = JOB, .job_key = 42, .self = oob->rank,
		.nr_members = oob->size, .members = members,
	};

	EXPECT(!oob->allgather(oob->opaque, &dev->address, members, sizeof(members[0])));
	EXPECT(!dev->ops->context_open(dev, &context));
	test_barrier(oob);
}

static inline void message_post(struct muster_dev *dev, uint32_t to, uint64_t value)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .dest = to, .job = JOB, .context = CONTEXT,
		.inline_len = sizeof(value), .length = sizeof(value), .cookie = value,
	};
	int err;

	memcpy(desc.data, &value, sizeof(value));
	while ((err = dev->ops->post(dev, &desc, 1)) == -EAGAIN)
		dev->ops->poll(dev, &(struct muster_cqe){ 0 });
	EXPECT(!err);
}

/* The next completion. */
static inline struct muster_cqe completion(struct muster_dev *dev)
{
	struct muster_cqe cqe;

	while (!dev->ops->poll(dev, &cqe))
		dev->ops->wait(dev, TEST_EVER_US);
	test_moved();
	return cqe;
}

static inline bool message_take(struct muster_dev *dev, struct muster_packet *packet,
				uint64_t *value)
{
	uint8_t payload[MUSTER_MTU];

	dev->ops->poll(dev, &(struct muster_cqe){ 0 });
	if (!dev->ops->recv(dev, packet, payload))
		return false;
	EXPECT(packet->length == sizeof(*value));
	memcpy(value, payload, sizeof(*value));
	return true;
}

static inline struct muster_desc transfer(const void *memory, uint32_t key, uint64_t bytes,
					  bool sends)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_RDMA,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
		.job = JOB, .context = CONTEXT,
		.signature = { .type = MUSTER_DTYPE_I8, .digest = 77 }, .length = bytes,
		.range = { .pulse_len = MUSTER_PULSE_MAX,
			   .pulse_count = (bytes + MUSTER_PULSE_MAX - 1) / MUSTER_PULSE_MAX },
	};

	if (sends) {
		desc.flags |= MUSTER_DESC_CP;
		desc.dest = 1;
		desc.range.load_addr = (uintptr_t)memory;
		desc.range.load_key = key;
	} else {
		desc.cp_count = 1;
		desc.store_addr = (uintptr_t)memory;
		desc.store_key = key;
	}
	return desc;
}

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

#endif /* MUSTER_TEST_LOCAL_H */
