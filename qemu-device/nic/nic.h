/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device behind its registers (uapi/muster_regs.h): admin queue, events,
 * virtual ports and their rings, memory regions, with engines and one wire
 * inside. Plain C: it knows no QEMU and no threads, and reaches guest memory
 * and interrupts through struct muster_nic_world. muster.c puts it behind PCI.
 *
 * Everything that the guest writes is hostile: it is read once into a local,
 * checked, and only then acted on. Nothing of it can end the process, nor make
 * the device touch memory that the guest has not given it.
 *
 * muster_nic_reg_read(), muster_nic_reg_write() of any register but CONTROL, and
 * muster_nic_doorbell() may be called from any thread at any time. Everything
 * else belongs to one caller at a time.
 */
#ifndef MUSTER_NIC_H
#define MUSTER_NIC_H

#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine.h"
#include "muster_regs.h"

struct muster_nic;

enum muster_nic_limit {
	MUSTER_NIC_PAGES_MAX = 1 << 23,	/* of all memory regions: 32 GiB in small pages */
	MUSTER_NIC_LOOPBACK_MAX = 256,	/* packets between VPs of this NIC, underway */
};

struct muster_nic_world {
	/* Guest memory at a DMA address: 0, or -EIO when it is refused. */
	int (*dma_read)(void *world, uint64_t addr, void *buf, uint32_t len);
	int (*dma_write)(void *world, uint64_t addr, const void *buf, uint32_t len);
	void (*interrupt)(void *world, uint32_t vector);
	uint64_t (*now_us)(void *world);
	/*
	 * Optional, all three, for model.threads: call run(arg, i) for each i below nr, side by
	 * side, and come back when all have; and keep others of these out meanwhile. Only DMA
	 * and now_us() are called from there without the lock.
	 */
	void (*parallel)(void *world, void (*run)(void *arg, uint32_t i), void *arg, uint32_t nr);
	void (*lock)(void *world);
	void (*unlock)(void *world);
	/* There is work for muster_nic_step(). Called from whichever thread rang. */
	void (*kick)(void *world);
};

struct muster_nic_config {
	uint32_t node;
	uint32_t incarnation;	/* of this life; counts up with every reset */
	const char *wire;	/* as muster_wire_socket_open() reads it; must outlive the NIC */
	uint32_t uplink;	/* the node of the switch that all goes by; 0: there is none */
	uint32_t uplink_life;	/* and which life of it */
	uint64_t deadline_us;	/* after which a silent node is lost */
	const char *dump;	/* folder for a file of the packets that it sends; NULL: none */
	struct muster_engine_model model;
	uint64_t hash_key[2];	/* secret; the guest chooses what is hashed with it */
};

/**
 * muster_nic_create() - a NIC after power-on.
 * @world: must outlive the NIC.
 * @why: gets what was wrong with the engine's model, the uplink, the wire, or the dump.
 *
 * Return: 0; -EINVAL, -ENOMEM, or what the wire's socket said.
 */
int muster_nic_create(const struct muster_nic_config *config,
		      const struct muster_nic_world *world, void *opaque,
		      struct muster_nic **nic, char *why, size_t why_len);

/**
 * muster_nic_close() - for good: no DMA and no packet of it any more, and no reset.
 *
 * Registers and doorbells may still be written, to no effect, until muster_nic_destroy().
 */
void muster_nic_close(struct muster_nic *nic);
void muster_nic_destroy(struct muster_nic *nic);

/** muster_nic_reset() - as after power-on, with a new incarnation. No DMA afterwards. */
void muster_nic_reset(struct muster_nic *nic);

/**
 * muster_nic_link_set() - pull the cable out, or put it back; a reset changes nothing about it.
 *
 * Whoever is silent for longer than the wire's deadline is lost to others, and they to it, so after
 * that long only a reset makes this node reachable again.
 */
void muster_nic_link_set(struct muster_nic *nic, bool up);

/** muster_nic_reg_read() - BAR 0. Anything but an aligned 32-bit access reads 0. */
uint64_t muster_nic_reg_read(struct muster_nic *nic, uint64_t addr, unsigned int size);

/** muster_nic_reg_write() - BAR 0. CONTROL has acted when this returns. */
void muster_nic_reg_write(struct muster_nic *nic, uint64_t addr, uint64_t value,
			  unsigned int size);

/** muster_nic_doorbell() - a write to BAR 2. */
void muster_nic_doorbell(struct muster_nic *nic, uint64_t addr, uint64_t value,
			 unsigned int size);

/**
 * muster_nic_step() - do what can be done now, for a bounded while.
 *
 * Return: after how many microseconds to call again at the latest (0: at once;
 * UINT64_MAX: when kicked or when muster_nic_fd() is readable).
 */
uint64_t muster_nic_step(struct muster_nic *nic);

/** muster_nic_fd() - readable when the wire has something; may change with a reset; -1: none. */
int muster_nic_fd(const struct muster_nic *nic);

#endif /* MUSTER_NIC_H */
