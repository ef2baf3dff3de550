/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The seam between the library and its devices: one table. The local device
 * (local.c) runs engine and wire in the caller's process; the verbs device
 * (verbs.c) drives a NIC through the provider. Nothing above this knows which.
 *
 * One thread at a time. wait(), settle() and close() block. Those that make or end memory
 * or a context do not wait for peers, but on a NIC for the kernel, which gives a NIC that is
 * silent 10 s. Nothing else blocks.
 *
 * Errors are -errno and leave nothing changed: -ENOMEM everywhere, -ENOSPC when the device
 * has no room for one more, and what the kernel said; post() -EAGAIN when its queue is
 * full. What goes wrong later is told by completions.
 */
#ifndef MUSTER_DEV_H
#define MUSTER_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_desc.h"
#include "muster_look.h"
#include "muster_wire.h"

struct muster_dev;

enum muster_access {
	MUSTER_ACCESS_READ = 1,		/* the NIC may load from it */
	MUSTER_ACCESS_WRITE = 2,	/* and store to it */
	MUSTER_ACCESS_APART = 4,	/* peers are sent what lies there, and never read it in place */
	MUSTER_ACCESS_REMOTE = 8,	/* with WRITE: members may, too, by one-sided writes */
};

#define MUSTER_CONTEXT_NONE	0xffffffffu

/* Where a rank is reached. Exchanged at bootstrap, opaque above the device. */
struct muster_address {
	uint32_t node;
	uint16_t vp;
	uint16_t reserved;
	uint32_t incarnation;
};

struct muster_dev_limits {
	uint32_t contexts;	/* communicators at once */
	uint32_t ring_slots;	/* point-to-point packets that the receive ring holds */
	uint32_t program_descs;	/* of a program that it fetches from memory; 0: it fetches none */
	uint32_t kept_descs;	/* descriptors of all programs that are kept at once; 0: it keeps none */
	uint32_t pulse_bytes;	/* of what is passed on, for all its nodes alike; 0: as links like it */
	bool forwards;		/* it sends on what comes before all of it has come (MUSTER_DESC_FORWARD) */
	bool idles;		/* it ends many numbers by one descriptor (`numbers`) */
};

struct muster_dev_context {
	uint32_t context;
	uint32_t life;		/* of this use of the id: packets of another are dropped */
	uint8_t job;
	uint64_t job_key;
	uint32_t self;
	uint32_t nr_members;
	const struct muster_address *members;
};

/* A group on a reduction tree, as a member sees it (Documentation/switch.md). */
struct muster_dev_tree {
	uint32_t node;		/* of the aggregation node that it sends to, */
	uint32_t incarnation;	/* and which life of it */
	uint16_t tree;
	uint32_t group;
	uint64_t key;		/* the group's */
	uint32_t payload_max;	/* bytes of one packet */
};

struct muster_dev_ops {
	const char *name;

	/*
	 * End it: DMA stops first, then memory goes. Cannot fail. The local device first
	 * waits until what it has sent is taken, or nothing moves for its deadline.
	 */
	void (*close)(struct muster_dev *dev);

	/* Memory that NIC and, where possible, peers work on in place. */
	int (*mem_alloc)(struct muster_dev *dev, size_t bytes, void **addr, uint32_t *key);
	void (*mem_free)(struct muster_dev *dev, void *addr, size_t bytes, uint32_t key);

	/*
	 * The caller's own memory. -EFAULT: not mapped, or not with that access. Given back, it may be
	 * kept for the next time, as long as the device sees that the same pages lie there.
	 */
	int (*mem_register)(struct muster_dev *dev, void *addr, size_t bytes, int access,
			    uint32_t *key);
	void (*mem_deregister)(struct muster_dev *dev, uint32_t key);

	int (*context_open)(struct muster_dev *dev, const struct muster_dev_context *context);
	void (*context_close)(struct muster_dev *dev, uint8_t job, uint32_t context);

	/* Let the sequences of a context use a reduction tree. NULL: the device cannot. */
	int (*tree_join)(struct muster_dev *dev, uint8_t job, uint32_t context,
			 const struct muster_dev_tree *tree);

	/* From now on in that other group of a tree that it has joined; nothing of it is on the tree. With tree_join. */
	int (*tree_move)(struct muster_dev *dev, uint8_t job, uint32_t context,
			 const struct muster_dev_tree *tree);

	/* A whole sequence, a START or FORGET, or a point-to-point descriptor; errors as muster_engine_post(). */
	int (*post)(struct muster_dev *dev, const struct muster_desc *descs, uint32_t nr);

	/* The same for a START that is as it was when it was posted before. NULL: by post(). */
	int (*start)(struct muster_dev *dev, const struct muster_desc *start);

	/* Next completion: 1 and *cqe, or 0. Makes progress. */
	int (*poll)(struct muster_dev *dev, struct muster_cqe *cqe);

	/*
	 * Next point-to-point packet: 1, *packet and up to MUSTER_MTU bytes of
	 * payload; or 0. Makes progress.
	 */
	int (*recv)(struct muster_dev *dev, struct muster_packet *packet, void *payload);

	/* Sleep until poll or recv may have something, at most timeout_us. */
	void (*wait)(struct muster_dev *dev, uint64_t timeout_us);

	/* wait() ends, too, when that other device of this rank has something; NULL: when none has. NULL: it need not. */
	void (*beside)(struct muster_dev *dev, struct muster_dev *other);

	/* Whether what is awaited cannot come as long as the caller keeps its processor. NULL: it can. */
	bool (*in_the_way)(struct muster_dev *dev);

	/* End the wait() of another thread. NULL: it cannot. */
	void (*wake)(struct muster_dev *dev);

	/*
	 * Before the caller blocks somewhere else: see, until nothing has moved for a
	 * second, that what was sent reaches its receivers without us. NULL: it always does.
	 */
	void (*settle)(struct muster_dev *dev);

	/*
	 * The caller goes: it closes its contexts and then the device, and posts no more. Where
	 * peers hear of that by themselves, they are told of no context. NULL: they must be.
	 */
	void (*leave)(struct muster_dev *dev);

	/*
	 * While dev->holding: whether something that was sent in a context (MUSTER_CONTEXT_NONE: in
	 * none), or to the addresses of one of these ranks, waits for room until the library is called again.
	 * NULL: it leaves by itself.
	 */
	bool (*holds)(struct muster_dev *dev, uint8_t job, uint32_t context,
		      const struct muster_address *addresses, const uint32_t *ranks, uint32_t nr);

	/* Fail a context everywhere. */
	void (*abort)(struct muster_dev *dev, uint8_t job, uint32_t context, uint8_t status,
		      uint32_t culprit);

	/*
	 * Where others look (look.c): count there from now on; somebody records there, now and until
	 * the device sees, by itself, that `on` is taken back, which ends dev->recording (NULL: it
	 * sees the beginning, too); and what the running sequence of a context waits for, by member: 0; -ENOENT: none runs. NULL: a device that
	 * can tell writes it there by itself.
	 */
	void (*look)(struct muster_dev *dev, struct muster_look_file *file);
	void (*record)(struct muster_dev *dev);
	int (*waits)(struct muster_dev *dev, uint8_t job, uint32_t context,
		     struct muster_look_waits *waits);

	/* Whether who is at that address is known to have died or left. NULL: the device tells contexts only. */
	bool (*lost)(struct muster_dev *dev, const struct muster_address *address);

	/* Nodes that acknowledge nothing, as wires say; NULL: the device cannot tell. */
	uint32_t (*silent)(struct muster_dev *dev, struct muster_look_silence *list, uint32_t max);

	/* A world of its own has its own time and chance; NULL: the system's. */
	uint64_t (*now_us)(struct muster_dev *dev);
	uint64_t (*random)(struct muster_dev *dev);
};

/* Devices embed this first. */
struct muster_dev {
	const struct muster_dev_ops *ops;
	struct muster_address address;	/* own */
	struct muster_dev_limits limits;
	bool holding;			/* something waits for room here: holds() knows what */
	bool recording;			/* since record() */
	bool hurried;			/* the next wait() sleeps at once, without looking often first */
	bool crowded;			/* ranks outnumber processors: wait() is better than many polls */

	/*
	 * Where several threads use it, one at a time: wait() calls these around its sleep, and
	 * now and then, so that others get in. NULL: there is one.
	 */
	void (*sleep_begin)(void *sleeper);
	void (*sleep_end)(void *sleeper);

	/*
	 * For which nodes, as far as is known, somebody is in wait(), who would give its processor to
	 * one of them. Return: how many. NULL: nobody says.
	 */
	uint32_t (*awaited)(void *sleeper, uint32_t nodes[MUSTER_LOOK_WAITS_MAX]);
	void *sleeper;
};

static inline void muster_dev_sleep_begin(struct muster_dev *dev)
{
	if (dev->sleep_begin)
		dev->sleep_begin(dev->sleeper);
}

static inline void muster_dev_sleep_end(struct muster_dev *dev)
{
	if (dev->sleep_end)
		dev->sleep_end(dev->sleeper);
}

#endif /* MUSTER_DEV_H */
