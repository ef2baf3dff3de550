/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the local device share: local.c opens it and is its table of
 * operations, world.c is what its engine sees of the world,
 * progress.c moves packets, sleeps, and hears of deaths, and crowd.c shares processors.
 */
#ifndef MUSTER_LOCAL_INTERNAL_H
#define MUSTER_LOCAL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "copies.h"
#include "dev.h"
#include "engine.h"
#include "fill.h"
#include "local.h"
#include "mesh.h"
#include "regions.h"
#include "rings.h"
#include "wire.h"

enum local_limit {
	COMPLETIONS = 2048,		/* a power of two */
	RECEIVE_SLOTS_PER_RANK = 140,	/* point to point */
	RECEIVE_SLOTS_MAX = 16384,	/* only those that are used take memory */
};

struct received {
	struct muster_packet packet;
	uint8_t payload[MUSTER_MTU];
};

struct peer {
	struct muster_regions_peer memory;
	struct muster_fill fill;	/* how copies are written for it */
	bool ended;		/* its connection has; all that came before is yet to be handled */
	bool left;		/* in good order */
	bool lost;		/* and now the engine knows, too */
	bool full;		/* has no room for withdrawals now */
	bool gone;		/* the network does not lead there any more, or not back */
};

struct local {
	struct muster_dev dev;
	uint32_t rank;
	uint32_t size;
	uint64_t deadline_us;	/* how long a rank may be late before the others go */
	struct muster_engine *engine;
	struct muster_mesh *mesh;
	struct muster_wire *wire;	/* NULL: rings */
	uint32_t first;		/* the node of rank 0; the others follow */
	bool alone;		/* in its mesh */
	uint32_t uplink;	/* the switch that all packets go by; 0: there is none */
	uint32_t uplink_life;
	uint32_t rail;
	struct local *beside;	/* the devices of the rank's other rails, one behind the other */
	bool cut;		/* that switch is gone, and the engine does not know */
	struct muster_rings rings;
	struct muster_regions_own memory;
	struct muster_copies copies;
	bool withdrawing;	/* not all peers that knew of a region know that it is gone */
	bool sweeping;		/* some peer has withdrawn one */
	bool busy;		/* the engine could go on */
	struct muster_trace *trace;	/* where to record; NULL: nobody looks */
	struct muster_wire_events events;	/* another receive() while it is recorded */
	bool ended;		/* some peer is, and not lost */
	uint32_t polls;
	bool has_sent;		/* and not looked for an answer since */
	uint32_t patience;	/* before that look, in parts of a pause */
	uint32_t spoke_last;	/* the rank from which something came last; our own: none */
	bool counts_ticks;	/* there is a counter that costs less than a clock (ticks.h) */
	uint64_t looked;	/* ticks: when all rings were, though it was known who is awaited */
	uint64_t serviced_us;	/* when the mesh was looked at last */
	uint32_t lateness;	/* of yields */
	uint64_t yield_again_us; /* not before */
	bool patient;		/* the next wait() spins for long */
	uint64_t patient_again_us; /* not before */
	struct peer *peers;
	uint32_t completed;	/* both count up */
	uint32_t polled;
	struct muster_cqe completions[COMPLETIONS];
	struct {		/* dump.c */
		int fd;			/* -1: none */
		const struct muster_engine_world *world;	/* as it is without */
		struct muster_engine_world own;
	} dumped;
	uint32_t delivered;	/* both start again whenever all is taken: warm memory */
	uint32_t taken;
	struct received *received;
};

/* Of a node that is no rank: its size or more. */
static inline uint32_t muster_local_rank(const struct local *local, uint32_t node)
{
	return node - local->first;
}

/* ---- world.c ---- */

const struct muster_engine_world *muster_local_world(const char *wire);

/* ---- dump.c ---- */

/** muster_local_dump_open() - have the engine send by local->dumped.own. 0 or -errno. */
int muster_local_dump_open(struct local *local, const char *folder,
			   const struct muster_engine_world *world);
void muster_local_dump_close(struct local *local);

/* ---- progress.c ---- */

extern const struct muster_mesh_events muster_local_mesh_events;
extern const struct muster_wire_events muster_local_wire_events;

/* wire_events.take() of who is at a switch. */
bool muster_local_uplink_take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
			      const void *payload, uint32_t len);
/** muster_local_receive_set() - by which function packets come in. */
void muster_local_receive_set(struct local *local, bool recorded);
/** muster_local_record() - have packets go by functions that record them, or no more. */
void muster_local_record(struct local *local, bool on);
/** muster_local_share() - let a peer map a region of ours. Return: whether it will. */
bool muster_local_share(struct local *local, struct muster_region_own *region, uint32_t rank);
/** muster_local_withdraw() - tell peers of regions that are gone, as there is room. */
void muster_local_withdraw(struct local *local);
/** muster_local_give_back() - no peer may count on memory that was lent in a context. */
void muster_local_give_back(struct local *local, uint32_t context);
/** muster_local_end() - a peer is not there any more, or not sane. */
void muster_local_end(struct local *local, uint32_t rank);
/** muster_local_wake() - rings.h: who is written to slept. */
void muster_local_wake(void *owner, uint32_t rank);
/** muster_local_step() - let the engine run; wake whom it sent to. */
void muster_local_step(struct local *local);
/** muster_local_went() - the engine has been stepped by something else: wake whom it sent to. */
static inline void muster_local_went(struct local *local)
{
	if (local->busy) {
		muster_local_step(local);
	} else if (local->rings.nr_ringing) {
		muster_rings_flush(&local->rings, muster_local_wake, local);
		local->has_sent = true;
	}
}
/** muster_local_awaited() - the rank from whose ring something is awaited next; UINT32_MAX: not known. */
static inline uint32_t muster_local_awaited(const struct local *local)
{
	const uint32_t rank = local->wire ? UINT32_MAX : muster_engine_awaits_next(local->engine);

	return rank < local->size && !local->peers[rank].ended ? rank : UINT32_MAX;
}

/** muster_local_take() - what is awaited has come, and is handled: mostly all there is to do. */
bool muster_local_take(struct local *local);
/** muster_local_progress() - handle what has come. Return: whether anything had. */
bool muster_local_progress(struct local *local);
static inline bool muster_local_has_news(const struct local *local)
{
	return local->completed != local->polled || local->delivered != local->taken;
}

static inline void muster_local_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

/** muster_local_wait() - sleep until there is news for poll() or recv(), or the time is over. */
void muster_local_wait(struct local *local, uint64_t timeout_us);
/**
 * muster_local_settle() - see that what the wire refused or may lose comes to its
 * receivers; gives up when nothing has moved for patience_us.
 */
void muster_local_settle(struct local *local, uint64_t patience_us);

/* ---- crowd.c ---- */

/** muster_local_in_the_way() - whether a rank that is awaited runs on the processor that we have. */
bool muster_local_in_the_way(struct local *local);

/**
 * muster_local_give_way() - wait, from now on, where ranks outnumber processors: until there is news,
 * or nothing has come for a while, or the end. Return: whether to sleep.
 */
bool muster_local_give_way(struct local *local, uint64_t now, uint64_t end_us);

#endif /* MUSTER_LOCAL_INTERNAL_H */
