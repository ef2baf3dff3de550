// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Progress of the local device: packets from the wire go to the engine, the
 * engine steps, sleepers are woken. The mesh is looked at now and then, as that
 * takes a system call. A death is told to the engine only when all that the dead
 * had sent before is handled: it may say who died first.
 */
#include "internal.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "clock.h"
#include "ticks.h"

enum {
	DRAIN_AT_ONCE = 64,	/* packets of one ring before the engine steps */
	DRAIN_TURNS = 1024,	/* of what came before a death, at most */
	POLLS_PER_LOOK = 64,	/* at the clock */
	POLLS_PER_ROUND = 8,	/* among all rings, while something comes from one */
	POLLS_AWAITING = 64,	/* the same, while it is known who is awaited */
	TICKS_AWAITING = 1 << 18, /* the same, while nothing comes from it; about 100 us */
	PATIENCE_PAUSE = 64,	/* parts of a pause, which takes 20 ns or 40 */
	PATIENCE_MAX = 6 * PATIENCE_PAUSE,
	PATIENCE_MORE = 16,	/* after a look in vain; after another one there is one less */
	SERVICE_US = 3000,	/* between two looks at the mesh, while polling */
	POLLS_PER_TURN = 16,	/* between two looks at the clock */
	STEP_BUDGET = 4096,	/* descriptors and packets */
	SPIN_US = 100,		/* without a packet before wait() sleeps */
	SPIN_LONG_US = 1000,	/* the same where the last sleep was shorter than that */
	SPIN_LATE_US = 500,	/* looks so far apart: somebody else was at work on this processor */
	SPIN_PAUSE_US = 30000,	/* then not for long again so soon */
	SLEEP_BUSY_US = 1000,	/* a full ring or socket makes room without a sound */
	OPEN_US = 2000000,	/* what the wire repeats or owes is due sooner, a keep-alive later */
	OWED_US = 10000,	/* the same where the other end is kept alive often */
};

/* ---- memory that peers map -------------------------------------------------------- */

bool muster_local_share(struct local *local, struct muster_region_own *region, uint32_t rank)
{
	const struct muster_mesh_message message = {
		.kind = MUSTER_MESH_REGION,
		.key = region->key,
		.addr = region->addr,
		.bytes = region->bytes,
	};

	if (region->fd < 0 || muster_mesh_send(local->mesh, rank, &message, region->fd))
		return false;	/* what is sent from it goes as if it were not shared */
	muster_region_told(region, rank);
	return true;
}

/* One that has no room now, as it computes, keeps nobody else waiting. */
static void tell_peers(struct local *local, struct muster_region_own *region)
{
	const struct muster_mesh_message message = {
		.kind = MUSTER_MESH_WITHDRAW,
		.key = region->key,
	};

	for (uint32_t rank = 0; rank < local->size && region->nr_known; rank++) {
		struct peer *peer = &local->peers[rank];

		if (peer->full || !muster_region_known(region, rank))
			continue;
		peer->full = muster_mesh_send(local->mesh, rank, &message, -1) == -EAGAIN;
		if (!peer->full)
			muster_region_told(region, rank);
	}
}

void muster_local_withdraw(struct local *local)
{
	local->withdrawing = false;
	for (uint32_t rank = 0; rank < local->size; rank++)
		local->peers[rank].full = false;
	for (uint32_t i = 0; i < local->memory.nr; i++) {
		struct muster_region_own *region = &local->memory.table[i];

		if (!region->key || !region->withdrawn)
			continue;
		tell_peers(local, region);
		if (region->nr_known)
			local->withdrawing = true;
		else
			muster_region_forget(region);
	}
}

/*
 * A peer may be reading what was lent in a context that has failed here. It looks at this
 * afterwards; so it must be set before the owner hears of the failure, and writes there.
 */
void muster_local_give_back(struct local *local, uint32_t context)
{
	if (!local->wire)
		muster_ring_sign(&local->rings.inbound, context, true);
}

/* ---- what mesh and wire say --------------------------------------------------------- */

void muster_local_end(struct local *local, uint32_t rank)
{
	local->peers[rank].ended = true;
	local->ended = true;
}

static void mesh_message(void *owner, uint32_t rank, const struct muster_mesh_message *message,
			 int fd)
{
	struct local *local = owner;
	struct muster_regions_peer *memory = &local->peers[rank].memory;

	if (message->kind == MUSTER_MESH_REGION && fd >= 0) {
		/* If it cannot be mapped here, its owner's messages come by copy: not an error. */
		muster_region_peer_map(memory, message->key, message->addr, message->bytes, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (message->kind == MUSTER_MESH_WITHDRAW) {
		muster_region_peer_withdraw(memory, message->key);
		local->sweeping = true;
	}
}

static void mesh_lost(void *owner, uint32_t rank, bool left)
{
	struct local *local = owner;

	local->peers[rank].left = left;
	muster_local_end(local, rank);
}

static void mesh_sleeps(void *owner, bool begins)
{
	struct local *local = owner;

	if (begins)
		muster_dev_sleep_begin(&local->dev);
	else
		muster_dev_sleep_end(&local->dev);
}

const struct muster_mesh_events muster_local_mesh_events = {
	.message = mesh_message,
	.lost = mesh_lost,
	.sleeps = mesh_sleeps,
};

static void wire_receive(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	struct local *local = owner;

	muster_engine_receive(local->engine, packet, payload, len);
}

/* Rings may be sent to meanwhile. */
static void ring_receive(void *owner, const struct muster_packet *packet, const void *payload,
			 uint32_t len)
{
	struct local *local = owner;

	local->busy |= muster_engine_receive_run(local->engine, packet, payload, len);
}

/* By the other clock, or no more. Apart, so that who has the cheap clock needs no frame. */
static __attribute__((noinline)) void look_slowly(struct local *local)
{
	if (!local->trace->on)
		muster_local_record(local, false);
	else
		local->trace->now = muster_ticks(local->trace->clock);
}

/* In their place while somebody records. */
static void receive_recorded(void *owner, const struct muster_packet *packet, const void *payload,
			     uint32_t len)
{
	struct local *local = owner;
	struct muster_trace *trace = local->trace;

	if (trace->on && trace->clock == MUSTER_TRACE_TSC)
		trace->now = muster_ticks_tsc();
	else
		look_slowly(local);
	if (local->wire)
		(local->dev.recording ? muster_engine_receive_recorded : muster_engine_receive)
			(local->engine, packet, payload, len);
	else
		ring_receive(local, packet, payload, len);
}

void muster_local_receive_set(struct local *local, bool recorded)
{
	local->events.receive = recorded ? receive_recorded : local->wire ? wire_receive : ring_receive;
}

void muster_local_record(struct local *local, bool on)
{
	local->dev.recording = on;
	muster_local_receive_set(local, on);
	muster_engine_trace_put(local->engine, on ? local->trace : NULL);
}

/*
 * The mesh says so as well, and it alone knows whether that was a death: who leaves in
 * good order may be gone from the wire first.
 */
static void wire_met(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	(void)node;
	(void)present;
}

/* Of its own switch the mesh knows nothing. */
static void wire_lost(void *owner, uint32_t node, uint32_t present)
{
	struct local *local = owner;

	(void)present;
	local->cut |= local->uplink && node == local->uplink;
}

/* Not all reach ourselves: who cannot will not hear it from us. */
bool muster_local_uplink_take(void *owner, uint32_t neighbour, const struct muster_packet *packet,
			      const void *payload, uint32_t len)
{
	struct local *local = owner;
	uint32_t node = le32toh(packet->arg), rank = muster_local_rank(local, node);

	if (packet->type != MUSTER_PACKET_GONE || neighbour != local->uplink) {
		local->events.receive(local, packet, payload, len);
		return true;
	}
	if (rank < local->size)
		local->peers[rank].gone = true;
	if (rank == local->rank)
		local->cut = true;
	else
		muster_engine_peer_lost(local->engine, node);
	return true;
}

static void wire_expect(void *owner, const struct muster_packet *const *packets, uint32_t nr)
{
	struct local *local = owner;

	muster_engine_expect(local->engine, packets, nr);
}

const struct muster_wire_events muster_local_wire_events = {
	.receive = wire_receive,
	.expect = wire_expect,
	.lost = wire_lost,
	.met = wire_met,
};

/* ---- packets -------------------------------------------------------------------------- */

static int drain_rank(struct local *local, uint32_t rank)
{
	int nr = muster_rings_receive(&local->rings, rank, DRAIN_AT_ONCE,
				      &local->events, local);

	if (nr > 0)
		local->spoke_last = rank;
	if (nr >= 0)
		return nr;
	muster_local_end(local, rank);
	return 0;
}

static int drain(struct local *local)
{
	int nr = 0;

	if (local->wire)
		return local->wire->ops->poll(local->wire, muster_clock_us(), DRAIN_AT_ONCE);
	for (uint32_t word = 0; word < local->rings.nr_words; word++)
		for (uint64_t used = muster_rings_used(&local->rings, word); used;
		     used &= used - 1) {
			uint32_t rank = 64 * word + __builtin_ctzll(used);

			if (!local->peers[rank].ended)
				nr += drain_rank(local, rank);
		}
	return nr;
}

/* Who looks seldom looks at all each time. */
static bool looked_lately(struct local *local)
{
	uint64_t now = muster_ticks_tsc();

	if (!local->counts_ticks || now - local->looked >= TICKS_AWAITING) {
		local->looked = now;
		return false;
	}
	return true;
}

/*
 * If it is known who is awaited, others are looked at now and then: what comes early from them would
 * be put aside, and is taken quickest when its turn has come. Else who spoke last is mostly who is
 * awaited: a look there first, and at others if there is nothing.
 */
static inline int drain_some(struct local *local)
{
	const uint32_t awaited = muster_local_awaited(local), last = local->spoke_last;

	if (awaited < local->size && !muster_rings_waits(&local->rings, awaited))
		return looked_lately(local) ? 0 : drain(local);
	if (awaited < local->size && local->polls % POLLS_AWAITING)
		return drain_rank(local, awaited);
	if (last != local->rank && local->polls % POLLS_PER_ROUND &&
	    muster_rings_waits(&local->rings, last) && !local->peers[last].ended)
		return drain_rank(local, last);
	return drain(local);
}

void muster_local_wake(void *owner, uint32_t rank)
{
	struct local *local = owner;

	muster_mesh_wake(local->mesh, rank);
}

static void hold_review(struct local *local)
{
	struct muster_wire *wire = local->wire;

	local->dev.holding = local->busy || (wire && wire->ops->waiting(wire, MUSTER_WIRE_ALL));
}

void muster_local_step(struct local *local)
{
	local->busy = muster_engine_step(local->engine, STEP_BUDGET);
	if (local->rings.nr_ringing)
		muster_rings_flush(&local->rings, muster_local_wake, local);
	hold_review(local);
}

static void handle_all_from(struct local *local, uint32_t rank)
{
	for (int turn = 0; turn < DRAIN_TURNS; turn++) {
		if (!(local->wire ? drain(local) : drain_rank(local, rank)))
			return;
		muster_local_step(local);
	}
}

static void tell_lost(struct local *local)
{
	local->ended = false;
	for (uint32_t rank = 0; rank < local->size; rank++)
		if (local->peers[rank].ended && !local->peers[rank].lost)
			handle_all_from(local, rank);
	for (uint32_t rank = 0; rank < local->size; rank++) {
		struct peer *peer = &local->peers[rank];

		if (!peer->ended || peer->lost)
			continue;
		peer->lost = true;
		if (local->wire)
			local->wire->ops->gone(local->wire, local->first + rank);
		/* Over sockets its farewell may be under way still; it comes by itself. */
		if (!peer->left)
			muster_engine_peer_lost(local->engine, local->first + rank);
		else if (!local->wire)
			muster_engine_peer_left(local->engine, rank);
	}
	muster_local_step(local);
}

/* The switch that all goes by is gone, and with it everybody. */
static void network_lost(struct local *local)
{
	local->cut = false;
	local->peers[local->rank].gone = true;
	muster_engine_network_lost(local->engine);
	for (uint32_t rank = 0; rank < local->size; rank++)
		if (rank != local->rank)
			muster_engine_peer_lost(local->engine, local->first + rank);
	muster_local_step(local);
}

/* What is not for the hot path, after deaths: memory that we or peers took back. */
static void tidy(struct local *local)
{
	if (local->withdrawing)
		muster_local_withdraw(local);
	for (uint32_t rank = 0; rank < local->size && local->sweeping; rank++)
		if (local->peers[rank].memory.nr_withdrawn)
			muster_regions_peer_sweep(&local->peers[rank].memory);
	local->sweeping = false;
}

static void look(struct local *local)
{
	uint64_t now = muster_clock_us();

	if (now - local->serviced_us < SERVICE_US)
		return;
	local->serviced_us = now;
	muster_mesh_service(local->mesh);
	tidy(local);
}

/* Records of what comes need the time. False: it is to be seen by what clock, or whether at all. */
static inline bool look_at_clock(struct local *local)
{
	struct muster_trace *trace = local->trace;

	if (!trace->on || trace->clock != MUSTER_TRACE_TSC)
		return false;
	trace->now = muster_ticks_tsc();
	return true;
}

/*
 * Ranks that call the same at the same time have their answers some 100 ns after they sent. Who looks
 * before takes the line out of the cache of whoever is about to write to it, so that it comes
 * later still. How long to wait for the first look is found by how often it was in vain. Where ranks
 * outnumber processors it may have none who is to answer, and to wait is to keep ours from it.
 */
static inline void let_answer(const struct local *local)
{
	uint32_t left = local->has_sent ? local->patience : 0;

	for (; left >= PATIENCE_PAUSE; left -= PATIENCE_PAUSE)
		muster_local_relax();
}

static inline void let_answer_review(struct local *local, bool came)
{
	if (!local->has_sent)
		return;
	local->has_sent = false;
	if (came)
		local->patience -= local->patience > 0;
	else if (local->patience < PATIENCE_MAX && !local->dev.crowded)
		local->patience += PATIENCE_MORE;
}

/* One packet alone: if there are more, they may be of what is started next. */
bool muster_local_take(struct local *local)
{
	const uint32_t rank = muster_local_awaited(local);
	const struct muster_ring_record *record;
	struct muster_ring_consumer *from;
	uint32_t length;
	bool left = false;

	if (rank >= local->size || local->polls % POLLS_AWAITING == 0 || local->busy)
		return false;
	from = &local->rings.peers[rank].from;
	let_answer(local);
	record = muster_ring_peek(from, &length);
	let_answer_review(local, record);
	if (!record || (__builtin_expect(local->dev.recording, 0) && !look_at_clock(local)) ||
	    !muster_engine_take_run(local->engine, rank, &record->packet, record->payload, length,
				    &left))
		return false;
	muster_ring_release(from);
	local->polls++;
	local->busy = left;
	muster_local_went(local);
	return true;
}

bool muster_local_progress(struct local *local)
{
	bool came = drain_some(local) > 0;

	local->busy |= local->wire && came;
	muster_local_went(local);
	if (local->dev.holding)		/* some may have left */
		hold_review(local);
	if (++local->polls % POLLS_PER_LOOK == 0)
		look(local);
	if (local->ended)
		tell_lost(local);
	if (local->cut)
		network_lost(local);
	return came;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Whether something came or there is news, after looking a few times. */
static bool look_often(struct local *local)
{
	muster_dev_sleep_begin(&local->dev);	/* others, if there are */
	muster_dev_sleep_end(&local->dev);
	for (int i = 0; i < POLLS_PER_TURN; i++) {
		if (muster_local_progress(local) || muster_local_has_news(local))
			return true;
		muster_local_relax();
	}
	return false;
}

/* Who spins while others want the processor may keep just the rank from it that it waits for. */
static void spin_interrupted(struct local *local, uint64_t now)
{
	local->patient = false;
	local->patient_again_us = now + SPIN_PAUSE_US;
}

/*
 * Until there is news, or nothing has come for a while, or the end.
 * Return: whether to sleep.
 */
static bool spin(struct local *local, uint64_t now, uint64_t end_us)
{
	uint64_t last = now;

	while (now < end_us && now - last < (local->patient ? SPIN_LONG_US : SPIN_US)) {
		uint64_t before = now;
		bool came = look_often(local);

		if (came)
			last = now;
		if (muster_local_has_news(local))
			return false;
		now = muster_clock_us();
		if (!came && now - before >= SPIN_LATE_US)
			spin_interrupted(local, now);
	}
	return now < end_us;
}

/*
 * To wake a sleeper costs who wakes it some ten microseconds, and it comes later still: all wait for that.
 * So after a sleep that ended soon it is better to spin as long the next time; after one that did
 * not, a processor would be kept busy for nothing. Over sockets each look is a system call.
 */
static void sleep_judge(struct local *local, uint64_t began_us, bool came)
{
	uint64_t now = muster_clock_us();

	local->patient = came && !local->wire && now - began_us < SPIN_LONG_US &&
			 now >= local->patient_again_us;
}

/* The rings are looked at once more after we said that we sleep: no wake-up gets lost. */
static void sleep_rings(struct local *local, uint64_t timeout_us)
{
	muster_ring_sleep_begin(&local->rings.inbound);
	if (muster_rings_empty(&local->rings))
		muster_mesh_wait(local->mesh, timeout_us);
	muster_ring_sleep_end(&local->rings.inbound);
}

static void sleep_wire(struct local *local, uint64_t timeout_us)
{
	uint64_t due = UINT64_MAX, now = muster_clock_us();

	for (const struct local *rail = local; rail; rail = rail->beside) {
		uint64_t its = rail->wire->ops->deadline_us(rail->wire);

		due = its < due ? its : due;
	}
	if (due > now)
		muster_mesh_wait(local->mesh, due - now < timeout_us ? due - now : timeout_us);
}

static bool is_busy(const struct local *local)
{
	while (local && !local->busy)
		local = local->beside;
	return local;
}

void muster_local_wait(struct local *local, uint64_t timeout_us)
{
	uint64_t began_us = muster_clock_us(), end_us = began_us + timeout_us, now;
	bool hurried = local->dev.hurried;

	local->dev.hurried = false;
	if (muster_local_has_news(local) || (!hurried &&
	    !(local->dev.crowded ? muster_local_give_way : spin)(local, began_us, end_us)))
		return;
	now = muster_clock_us();
	timeout_us = end_us > now ? end_us - now : 0;
	if (is_busy(local) && timeout_us > SLEEP_BUSY_US)
		timeout_us = SLEEP_BUSY_US;
	if (local->wire)
		sleep_wire(local, timeout_us);
	else
		sleep_rings(local, timeout_us);
	tidy(local);
	sleep_judge(local, began_us, muster_local_progress(local));
}

/*
 * Every member has what was sent to it, and knows that we go. Sockets: nothing to send
 * again and nothing to acknowledge.
 */
static bool settled(struct local *local, bool came)
{
	struct muster_engine_counters counters;
	struct muster_wire_counters wire;

	muster_engine_counters_get(local->engine, &counters);
	if (came || local->busy || counters.contexts_closing)
		return false;
	if (!local->wire)
		return true;
	muster_wire_socket_counters(local->wire, &wire);
	return local->wire->ops->deadline_us(local->wire) >
	       muster_clock_us() + (local->uplink && !wire.slots ? OWED_US : OPEN_US);
}

static uint64_t packets_out(struct local *local)
{
	struct muster_engine_counters counters;

	muster_engine_counters_get(local->engine, &counters);
	return counters.packets_out;
}

/* A slow receiver is told from one that does not look by what still moves. */
void muster_local_settle(struct local *local, uint64_t patience_us)
{
	uint64_t moved_us = muster_clock_us(), sent = packets_out(local), now;
	bool came;

	do {
		came = muster_local_progress(local);
		if (settled(local, came))
			return;
		if (!came)
			muster_mesh_wait(local->mesh, SLEEP_BUSY_US);
		now = muster_clock_us();
		if (came || packets_out(local) != sent)
			moved_us = now;
		sent = packets_out(local);
	} while (now < moved_us + patience_us);
}
