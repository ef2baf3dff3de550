/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The collective offload engine: the machine whose programs are descriptor
 * sequences. It parks each sequence until the packets that it names are in the
 * packet buffer, combines them in slot order, and sends on (Tianhe paper,
 * sections 1.2 and 1.3; the contract is Documentation/sequence.md).
 *
 * The engine knows no QEMU, thread, clock, socket or allocation: it reaches the
 * world only through struct muster_engine_world, and the caller steps it. Not
 * thread safe: one caller at a time. No function here calls back into the
 * caller except through the world, and the world must not call the engine back.
 */
#ifndef MUSTER_ENGINE_H
#define MUSTER_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster_desc.h"
#include "muster_look.h"
#include "muster_wire.h"

struct muster_engine;

/* What this engine can of what Documentation/sequence.md lays down: MUSTER_CAP_* of muster_regs.h. */
#define MUSTER_ENGINE_CAPABILITIES	\
	(MUSTER_CAP_WRITE | MUSTER_CAP_PULSES | MUSTER_CAP_NUMBERS | MUSTER_CAP_FORWARD | \
	 MUSTER_CAP_KEEP | MUSTER_CAP_PROGRAM | MUSTER_CAP_TREE)

/*
 * What the engine may do to the world. `world` is the pointer given to
 * muster_engine_create(). Optional entries may be NULL.
 */
/* As the context of what is lent: see there. */
enum { MUSTER_LEND_KEPT = 1 << 30 };

struct muster_engine_world {
	/*
	 * Read or write the memory of the process that owns a VP: len bytes at
	 * addr inside the registered region `key`. 0, or -EFAULT where the
	 * range is outside of the region or the access is not allowed.
	 */
	int (*dma_read)(void *world, uint16_t vp, uint32_t key, uint64_t addr,
			void *buf, uint32_t len);
	int (*dma_write)(void *world, uint16_t vp, uint32_t key, uint64_t addr,
			 const void *buf, uint32_t len);

	/*
	 * Optional: store a piece of what another member writes, len bytes at addr + at of a
	 * message that fills [addr, addr + total). 0, or -EFAULT where that is not wholly inside of
	 * the region, or is not for others to write. NULL: nobody may write anything.
	 */
	int (*remote_write)(void *world, uint16_t vp, uint32_t key, uint64_t addr, uint32_t total,
			    uint32_t at, const void *buf, uint32_t len);

	/*
	 * Optional: a pointer to the same memory, which stays valid until the
	 * region is deregistered, so that the engine may work in place. NULL
	 * where there is none; the engine then copies.
	 */
	void *(*dma_map)(void *world, uint16_t vp, uint32_t key, uint64_t addr,
			 uint64_t len, bool write);

	/*
	 * Which registration the key names now: a number that none has had before, or 0
	 * where there is none. Keys come round, these do not.
	 */
	uint64_t (*key_life)(void *world, uint16_t vp, uint32_t key);

	/*
	 * Optional: whether a node can read this VP's range in place, or in a copy that was
	 * made now, whose key, also of this VP, and address then stand in *lent; and a peer's
	 * range as such a place. With both, large data is not sent but taken by the receiver
	 * from where it lies (memory rings). A copy may be lent again, to another node, for the same
	 * context. It goes with lent_back(), which is called for each time that it was lent, or with
	 * its context. MUSTER_LEND_KEPT as context: only a copy will do, whatever the memory, as the
	 * send is closed at once; it goes with lent_back() alone, or never, if its receiver may be
	 * reading it still when it is not waited for any more.
	 */
	bool (*lend)(void *world, uint16_t vp, uint32_t context, uint32_t node,
		     struct muster_reference *lent);
	void (*lent_back)(void *world, const struct muster_reference *lent);
	const void *(*peer_map)(void *world, uint32_t node, uint16_t vp, uint32_t key,
				uint64_t addr, uint64_t len);

	/*
	 * With peer_map: whether a peer has ended a context, and may have given back
	 * the memory that it lent there. Asked after each reading of it.
	 */
	bool (*peer_ended)(void *world, uint32_t node, uint8_t job, uint32_t context);

	/*
	 * Optional, both: say, for when this node has left, that it has ended all sequences of
	 * a context below base (false: it cannot be said so), and what a node that has left in
	 * good order, or is about to, said.
	 */
	bool (*base_leave)(void *world, uint32_t context, uint32_t life, uint32_t base);
	bool (*base_left)(void *world, uint32_t node, uint32_t context, uint32_t life,
			  uint32_t *base);

	/*
	 * Hand a packet for that life of its node to the wire, which keeps a copy:
	 * 0; -EAGAIN when it has no room now (the engine tries again at a later
	 * step); -EHOSTUNREACH when the peer is gone (muster_engine_peer_lost()
	 * will follow).
	 */
	int (*send)(void *world, uint32_t incarnation, const struct muster_packet *packet,
		    const void *payload);

	/* Append to the VP's completion queue: 0, or -EAGAIN when it is full. */
	int (*complete)(void *world, uint16_t vp, const struct muster_cqe *cqe);

	/*
	 * Append a point-to-point packet to the VP's receive ring: 0, or -ENOSPC
	 * when it is full; the packet is then dropped and counted.
	 */
	int (*deliver)(void *world, uint16_t vp, const struct muster_packet *packet,
		       const void *payload);

	void *(*alloc)(void *world, size_t bytes);	/* zeroed, 64-byte aligned; or NULL */
	void (*free)(void *world, void *p, size_t bytes);
};

#define MUSTER_ENGINE_NO_BUFFER	0xffffffffu
#define MUSTER_ENGINE_BUFFER_MAX	(128u << 20)

/*
 * What an architect may try less of: by the same names properties of QEMU's device, words of
 * MUSTER_ENGINE, and drawn in the simulated world. What peers see is less, never against the
 * contract. 0: the default, which is the most but for buffer and units.
 */
struct muster_engine_model {
	uint32_t units;		/* up to MUSTER_UNITS_MAX; by default MUSTER_UNITS */
	uint32_t buffer;	/* bytes of each unit, a multiple of MUSTER_MTU up to MUSTER_ENGINE_BUFFER_MAX;
				   MUSTER_ENGINE_NO_BUFFER: none */
	uint32_t window;	/* sequences that a send may be ahead of its receiver, up to MUSTER_WINDOW */
	uint32_t pulses;	/* of a sequence at once, up to MUSTER_PULSES_LIVE */
	uint32_t threads;	/* of a NIC, which has an engine for each (nic_engines.c): up to units; an engine knows none */
};

struct muster_engine_config {
	uint32_t node;		/* this NIC's NodeID */
	struct muster_engine_model model;
	uint64_t hash_key[2];	/* secret, where strangers choose the members: it hashes them */
};

/* A member of a context: where its packets go, and which life of it is meant. */
struct muster_member {
	uint32_t node;
	uint16_t vp;
	uint16_t reserved;
	uint32_t incarnation;
};

struct muster_context_config {
	uint8_t job;
	uint32_t context;	/* id, agreed among the members */
	uint32_t life;		/* of this use of the id, agreed likewise */
	uint16_t vp;		/* the local VP */
	uint64_t job_key;
	uint32_t self;		/* index of the local VP in members */
	uint32_t nr_members;	/* 1 to MUSTER_MEMBERS_MAX */
	const struct muster_member *members;	/* copied */
};

enum muster_engine_limit {
	MUSTER_ENGINE_TREES_MAX = 2,	/* of one context: one for each type */
};

/* A reduction tree that the members of a context share (Documentation/switch.md). */
struct muster_tree_config {
	uint32_t node;		/* the aggregation node that this member sends to, */
	uint32_t incarnation;	/* and which life of it is meant */
	uint16_t tree;
	uint32_t group;		/* of the context's members on this tree; not 0 */
	uint64_t key;		/* the group's: its members and switches have it, nobody else */
	uint32_t payload_max;	/* bytes of one packet that the tree takes; 1 to MUSTER_MTU */
};

/* Where a context stands, for diagnosis. */
struct muster_context_state {
	uint32_t number;	/* running or next sequence */
	uint32_t queued;	/* sequences posted and not ended */
	uint32_t pulse;		/* oldest live pulse */
	uint8_t running;
	uint8_t cursor;		/* slot that the oldest pulse needs next */
	uint8_t waiting;	/* 1: for that slot; 0: for own sends or the wire */
	uint8_t failed;		/* enum muster_status */
	uint32_t culprit;
};

/**
 * muster_engine_create() - make an engine.
 * @config: copied.
 * @world: functions, must outlive the engine.
 * @opaque: first argument of every world function.
 * @engine: result.
 *
 * Return: 0; -EINVAL for a config outside the limits; -ENOMEM.
 */
int muster_engine_create(const struct muster_engine_config *config,
			 const struct muster_engine_world *world, void *opaque,
			 struct muster_engine **engine);

/** muster_engine_destroy() - end it, at once: no completions, and nobody is told. */
void muster_engine_destroy(struct muster_engine *engine);

/** muster_engine_vp_open() - 0; -EINVAL, -EBUSY (open already), -ENOMEM. */
int muster_engine_vp_open(struct muster_engine *engine, uint16_t vp);

/** muster_engine_vp_close() - close it, and its contexts as muster_engine_context_close(). */
void muster_engine_vp_close(struct muster_engine *engine, uint16_t vp);

/**
 * muster_engine_context_open() - let a VP run sequences with the given members.
 *
 * Packets that come before the context is open are dropped: open it on every
 * member before the first sequence is posted on any.
 *
 * Return: 0; -EINVAL; -EEXIST; -ENOSPC when there are MUSTER_CONTEXTS_MAX contexts
 * or too many members in all of them, or too many that were closed still have members
 * to tell (step, then try again); -ENOMEM.
 */
int muster_engine_context_open(struct muster_engine *engine,
			       const struct muster_context_config *config);

/**
 * muster_engine_context_begin() - the same in pieces, for tables that are long.
 *
 * config->members is not looked at. The context has its place from now on, but it is
 * open with its last member only: before that nobody can post to it or abort it, and
 * packets for it are dropped. A member there that is lost meanwhile fails it all the same.
 *
 * Return: as muster_engine_context_open().
 */
int muster_engine_context_begin(struct muster_engine *engine,
				const struct muster_context_config *config);

/**
 * muster_engine_context_add() - add the next members of a context that was begun.
 *
 * Return: 0; -ENOENT; -EINVAL for a member that is not valid or there already, and -ENOMEM:
 * the context is gone then; -EINVAL for more members than are wanted.
 */
int muster_engine_context_add(struct muster_engine *engine, uint16_t vp, uint8_t job,
			      uint32_t context, const struct muster_member *members, uint32_t nr);

/**
 * muster_engine_tree_join() - let the sequences of an open context use a reduction tree.
 *
 * Descriptors then name it: DestID the aggregation node, DestVP the tree. The members need
 * not join at once: a result follows upon a contribution of every one.
 *
 * Return: 0; -ENOENT: no such context; -EBUSY: it is in MUSTER_ENGINE_TREES_MAX, or in one of
 * that number; -EINVAL; -ENOMEM.
 */
int muster_engine_tree_join(struct muster_engine *engine, uint16_t vp, uint8_t job,
			    uint32_t context, const struct muster_tree_config *config);

/**
 * muster_engine_tree_move() - a context is in another group of a tree that it has joined, from now on.
 *
 * No sequence of it that uses the tree may be under way: that would end nowhere. All else of the
 * configuration is as it was.
 *
 * Return: 0; -ENOENT: no such context, or it has not joined; -EINVAL.
 */
int muster_engine_tree_move(struct muster_engine *engine, uint16_t vp, uint8_t job, uint32_t context,
			    const struct muster_tree_config *config);

/**
 * muster_engine_context_close() - no completion, DMA or packet of it afterwards.
 *
 * The other members are told, now or by the next steps as the wire allows, and when they
 * have what was sent to them without asking, so that operations which this one has ended
 * go on there, and those which still need it
 * fail with MUSTER_STATUS_PEER_LOST; or why it had failed, if it had.
 */
void muster_engine_context_close(struct muster_engine *engine, uint16_t vp, uint8_t job,
				 uint32_t context);

/**
 * muster_engine_post() - give a VP one whole sequence, or one point-to-point descriptor.
 * @descs: CH to CT, a single START, or a single descriptor without C; copied.
 *
 * Everything is checked before anything is done; after an error nothing has
 * changed. A sequence posted to a context that has failed is taken and completes
 * with MUSTER_STATUS_FLUSHED.
 *
 * Return: 0; -EAGAIN when the queue is full (step and poll, then try again);
 * -EINVAL for a descriptor that is not valid, with *bad (if not NULL) set to its
 * index; -ENOENT for an unknown VP or context; -ENOSPC for one more program to keep
 * than the context or the VP may; -ENOMEM.
 */
int muster_engine_post(struct muster_engine *engine, uint16_t vp,
		       const struct muster_desc *descs, uint32_t nr, uint32_t *bad);

/**
 * muster_engine_start_run() - post a START that is the same as it was when it was posted before,
 * and do what the next step would do first, where that is simple.
 * @left: set to whether steps have something to do.
 *
 * For who may be called by its world's functions here. Return: as muster_engine_post().
 */
int muster_engine_start_run(struct muster_engine *engine, uint16_t vp,
			    const struct muster_desc *start, bool *left);

enum { MUSTER_ENGINE_EXPECT_MAX = 16 };

/**
 * muster_engine_expect() - these packets will be received next, in this order: asks for the memory
 * that each of them needs, and changes nothing.
 * @nr: of these at most MUSTER_ENGINE_EXPECT_MAX are looked at.
 *
 * For who gets several at once. Nothing needs to be right: it is believed for nothing.
 */
void muster_engine_expect(const struct muster_engine *engine,
			  const struct muster_packet *const *packets, uint32_t nr);

/**
 * muster_engine_receive() - a packet has come from the wire.
 * @len: bytes at payload; must equal the packet's length or it is dropped.
 *
 * Takes what it needs; packet and payload belong to the caller again on return. They may be
 * written to meanwhile: the packet is copied before anything of it is looked at.
 * Never fails: what is wrong is counted and dropped.
 */
void muster_engine_receive(struct muster_engine *engine, const struct muster_packet *packet,
			   const void *payload, uint32_t len);

/**
 * muster_engine_receive_recorded() - what is to be called in its place while a place for trace
 * records is put, and then alone: so who does not record has no test for that on its way.
 */
void muster_engine_receive_recorded(struct muster_engine *engine,
				    const struct muster_packet *packet, const void *payload,
				    uint32_t len);

/**
 * muster_engine_take_run() - if it is the packet that is awaited next, as it was the last time: take
 * it, and do what the next step would do first; for who may be called by its world's functions here.
 * Packet and payload may be written to meanwhile: nothing is read twice that decides anything. If it
 * is not taken, nothing that was looked at counts: it is read anew where it is received.
 * @node: that it has come from.
 * @left: set then to whether steps have something to do.
 *
 * Return: whether it was; else nothing has been done.
 */
bool muster_engine_take_run(struct muster_engine *engine, uint32_t node,
			    const struct muster_packet *packet, const void *payload, uint32_t len,
			    bool *left);

/**
 * muster_engine_receive_run() - that, or else muster_engine_receive(), recorded or not.
 *
 * Return: whether steps have something to do.
 */
bool muster_engine_receive_run(struct muster_engine *engine, const struct muster_packet *packet,
			       const void *payload, uint32_t len);

/**
 * muster_engine_step() - run what can run.
 * @budget: descriptors and packets to handle at most, so that a caller with
 * other duties gets control back.
 *
 * Return: true when something is left that could run now or that the wire
 * refused (call again); false when only an event can change anything.
 */
bool muster_engine_step(struct muster_engine *engine, uint32_t budget);

/** muster_engine_is_ready() - whether a step would do something. */
bool muster_engine_is_ready(const struct muster_engine *engine);

/**
 * muster_engine_peer_lost() - the wire has given a node up.
 *
 * Every context with a member there fails: its sequences complete with
 * MUSTER_STATUS_PEER_LOST and the member's index, and the other members are told
 * by ABORT packets.
 */
void muster_engine_peer_lost(struct muster_engine *engine, uint32_t node);

/**
 * muster_engine_network_lost() - nobody can be reached any more: every context with other
 * members fails with MUSTER_STATUS_PEER_LOST, and no member is named.
 */
void muster_engine_network_lost(struct muster_engine *engine);

/**
 * muster_engine_needs() - whether a context could want to hear that this node is lost. It may be
 * said of a node that no context has a member at, never the other way round.
 */
bool muster_engine_needs(const struct muster_engine *engine, uint32_t node);

/** muster_engine_peer_present() - of this node that life is there (0: none): others of it are lost. */
void muster_engine_peer_present(struct muster_engine *engine, uint32_t node,
				uint32_t incarnation);

/**
 * muster_engine_peer_left() - a node went in good order: all that it had sent has been
 * received. Contexts with a member there go on as far as that member has ended
 * their sequences, as if it had closed its context.
 */
void muster_engine_peer_left(struct muster_engine *engine, uint32_t node);

/**
 * muster_engine_leave() - from now on contexts that are closed in good order say so by the
 * world's base_leave(): this node goes, and its peers will hear of that by
 * muster_engine_peer_left().
 */
void muster_engine_leave(struct muster_engine *engine);

/** muster_engine_abort() - fail a context from here and tell all members. -ENOENT. */
int muster_engine_abort(struct muster_engine *engine, uint16_t vp, uint8_t job,
			uint32_t context, uint8_t status, uint32_t culprit);

int muster_engine_context_query(const struct muster_engine *engine, uint16_t vp, uint8_t job,
				uint32_t context, struct muster_context_state *state);

/**
 * muster_engine_waits() - what the running sequence of a context waits for.
 * @waits: of its oldest pulse: the slot, then sends that are open. Their `rank` is the
 *	member's index; MUSTER_LOOK_NOBODY: the engine cannot know it, as a descriptor does
 *	not say who fills its slots.
 *
 * Return: 0; -ENOENT: no such context, or nothing runs.
 */
int muster_engine_waits(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			uint32_t context, struct muster_look_waits *waits);

/**
 * muster_engine_awaits() - from which nodes something is still to come, for what runs in the
 * context that waited last. Known only of programs for which something has come before.
 * Return: how many nodes[] there are.
 */
uint32_t muster_engine_awaits(const struct muster_engine *engine, uint32_t nodes[MUSTER_SLOTS_MAX]);

/**
 * muster_engine_awaits_next() - from which node muster_engine_take_run() would take a packet now;
 * MUSTER_NODES_MAX: from none.
 */
uint32_t muster_engine_awaits_next(const struct muster_engine *engine);

/**
 * muster_engine_owes() - whether a context has ended a number whose end a member asked for, and
 * the wire had no room to say so.
 */
bool muster_engine_owes(const struct muster_engine *engine, uint16_t vp, uint8_t job,
			uint32_t context);

/** muster_engine_counters_get() - with what is used now. */
void muster_engine_counters_get(const struct muster_engine *engine,
				struct muster_engine_counters *counters);

/**
 * muster_engine_kept() - bytes that were given back and are kept for the next that needs them: up to
 * a limit, as much as has been in use at once; and of packet buffers the entries that nothing is in.
 */
size_t muster_engine_kept(const struct muster_engine *engine);

/**
 * muster_engine_trace_put() - from now on write trace records there, with the time that the
 * caller has put into `now`. It must stay until another is put; NULL: none.
 */
void muster_engine_trace_put(struct muster_engine *engine, struct muster_trace *trace);

/**
 * muster_engine_keys_put() - where the caller counts the keys that were given back, so that as
 * long as none is, key_life() needs not be asked for each again. It must stay as long as the engine.
 */
void muster_engine_keys_put(struct muster_engine *engine, const uint64_t *gone);

/**
 * muster_engine_counters_put() - count there from now on, where others may look; not what
 * is used now. It must stay as long as the engine.
 */
void muster_engine_counters_put(struct muster_engine *engine,
				struct muster_engine_counters *where);

#endif /* MUSTER_ENGINE_H */
