/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the engine share: its state, from the outside in
 *
 *   engine > unit (packet buffer) > context > sequence > instance > send, entry
 *
 * and the functions of each file. Words are those of Documentation/sequence.md.
 * Functions that return bool say whether the thing is done; if it is not, an
 * event will come, or the context is `stalled` and tried again at the next step,
 * or it has failed. Nothing outside of this folder includes this header.
 */
#ifndef MUSTER_ENGINE_INTERNAL_H
#define MUSTER_ENGINE_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "buffer.h"
#include "member.h"
#include "program.h"

/* Layouts are read as they lie in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

enum engine_limit {
	REFUSED_MAX = 256,		/* contexts that wire or queue refuse in one step */
	CLOSED_MAX = MUSTER_CONTEXTS_MAX, /* closed and not yet told to all: no more are opened then */
	CLOSE_BUDGET = 64,		/* members told at once when it closes; steps tell the rest */
	MEMBERS_ALL_MAX = 64 * MUSTER_MEMBERS_MAX, /* of all contexts of an engine */
	CONTEXT_BUCKETS = 2048,		/* of the table that finds contexts, */
	TABLE_BUCKETS = 256,		/* and of that which finds tables of members */
	POOL_CLASSES = 10,		/* sizes of what the pool keeps: 64 bytes, 128, ... */
	POOL_KEEP_BYTES = 512 << 10,	/* that the pool keeps free */
	TRIES_MAX = 1 << 20,		/* steps in which a sequence has no memory to run */
	BASE_AGE_MAX = 1 << 30,		/* how far a member's base is remembered to lie back */
	BASE_AGE_EACH = 1 << 8,		/* after so many numbers one member's base is looked at: all, in time */
};

/* ---- contexts (context.c) ---- */

enum send_phase {
	SEND_HELD = 1,		/* by the window, or by the wire */
	SEND_HELD_ASKED,	/* the same, and the member was asked for its base */
	SEND_ASKED,		/* RTS has gone, GRANT has not come */
	SEND_GRANTED,		/* fragments go */
};

struct send {
	uint8_t phase;
	uint8_t slot;
	bool is_inline;
	bool eager;		/* goes without asking, if there is room for a copy */
	bool by_reference;
	bool is_copy;		/* the range: made for this send, */
	bool is_kept;		/* and the context's, which closes the send at once */
	bool to_tree;		/* and to no member */
	bool writes;		/* to the member's memory, and fills no slot */
	uint16_t flags;		/* MUSTER_PACKET_* */
	uint32_t member;
	uint32_t total;
	uint64_t gone;		/* fragments, a bit each, that have left */
	uint32_t key;
	uint64_t addr;
	struct outgoing out;	/* writes; where to is known before it is opened */
};

/* A sequence running for one pulse. */
struct instance {
	uint32_t pulse;
	uint32_t member_last;	/* wrote the last packet that was combined */
	uint8_t next;		/* step */
	uint8_t slot;		/* the cursor: slots below are combined */
	bool begun;		/* the next step has loaded its operand */
	bool has_operand;	/* of the next step */
	bool stored;		/* the store range of the next step holds its operand */
	uint64_t open;		/* bit per step: its send is not closed */
	uint64_t todo;		/* of these, those that wait for window or wire only */
	uint64_t kept;		/* bit per step: its send was of a copy that is kept */
	uint64_t early;		/* bit per step: its send was opened before its message was here, */
	uint64_t here;		/* of which these fragments are combined */
	uint8_t data[MUSTER_MP_MAX] __attribute__((aligned(32)));
	struct send sends[];		/* one for each step of the sequence; behind them what they hold back (transfer.c) */
};

struct failure {
	uint8_t status;		/* enum muster_status; 0: none */
	uint16_t by;		/* member that noticed; MUSTER_BY_NONE: a switch told */
	uint32_t culprit;
	uint32_t number;
};

/* What differed, of a context that has failed. */
struct difference {
	struct muster_signature ours;
	struct muster_signature other;	/* MISMATCH */
};

/* Numbers that have ended, for what comes late: the last of the window, by number. */
struct ended {
	struct muster_signature last;	/* newest, and mostly of all */
	uint16_t stages[MUSTER_WINDOW];
};

/* What is left of a program that lies in memory. */
struct fetching {
	uint64_t addr;
	uint64_t life;			/* of the key's registration when it was posted */
	uint64_t cookie;		/* completes, if the context ends before all is fetched */
	uint32_t key;
	uint32_t left;			/* descriptors */
};

/* A reduction tree, and for how many pulses its aggregation node has given credits (tree.c). */
struct joined {
	struct muster_tree_config config;
	uint32_t credits;		/* pulses below may be sent, of the running sequence; before one of the last, */
	uint32_t pulses;		/* which had so many */
};

/*
 * At rest it is this and two bytes a member, in one allocation, what it knows of those with whom it
 * exchanged something, and its part in the table of its members. Everything else it has from the
 * pool while it needs it.
 */
struct context {
	/* What is looked at for every packet: two lines of the cache. */
	struct muster_engine *engine;
	struct member_table *table;
	struct context *next_hashed;
	uint64_t job_key;
	uint32_t id;
	uint16_t vp;
	uint8_t job;
	uint8_t unit;			/* of the engine */
	uint32_t nr_members;		/* there so far */
	uint32_t life;
	uint16_t self;
	bool closed;			/* for its owner; stays until all members are told */
	bool calm;			/* its program alone concerns it (predict.c) */
	bool running;			/* the sequence `base` */
	bool listed;			/* on the engine's list of what can run */
	uint16_t nr_arrived;
	uint32_t base;			/* oldest number not ended */
	uint32_t pulse_first;		/* live pulses are [pulse_first, pulse_next) */

	uint32_t pulse_next;
	struct failure failure;
	const struct expected *awaited;	/* the next packet is like this one (predict.c); or NULL */
	struct peer *peers;
	struct arrivals *arrivals;	/* what has come for each number of the window; NULL: nothing */
	struct sequence *current;	/* of those that are posted the first, number `base` */
	void *instances;		/* of the running sequence */
	uint32_t hash;			/* of what names it; whoever chooses that does not know the key */
	uint8_t queued;			/* sequences that are posted; the first has number `base` */
	uint8_t queue_first;		/* place of sequence `base`, modulo MUSTER_SEQ_QUEUE_MAX */
	bool moved;			/* something changed that lets something else go on */
	bool stalled;			/* wire, completion queue, memory or budget said: later */

	struct context *next_ready, *prev_ready;
	struct context *next_waiting, *prev_waiting; /* of the unit, for blocks */
	struct context *next_of_vp, *prev_of_vp;
	bool wants_room;		/* look again when blocks become free */
	bool coll_end;			/* of it: a packet carried COLL_END */
	bool cause_told;		/* a completion has carried the cause */
	bool context_told;		/* MUSTER_CQE_CONTEXT is written */
	bool instances_kept;		/* they are the sequence's */
	bool has_left;			/* some member has closed its context; */
	uint16_t left_first;		/* of them, the one that ended the fewest numbers */
	uint16_t nr_peers;
	uint16_t asking_first;		/* index in peers + 1 */
	uint8_t nr_kept;
	uint8_t nr_trees;
	uint8_t nr_ended;		/* so many that have ended are known, */
	uint8_t nr_alike;		/* of them the newest have the same signature */
	uint32_t told_next;		/* member to tell next of failure or end; nr_members: all know */
	uint32_t base_unheard;		/* of members that have told nothing: at least so much */
	struct asking *asking;		/* of each peer; NULL: none asks */
	struct writes *writes;		/* likewise; NULL: there was no one-sided write */
	struct message *messages;
	struct sequence **queue;	/* the others, from queue_first + 1 on; NULL: there was one at most */
	struct sequence *kept;		/* the last that was asked for first */
	struct joined *trees;		/* MUSTER_ENGINE_TREES_MAX; NULL: it has joined none */
	struct fetching *fetching;	/* NULL: nothing */
	struct entry *copies;		/* of what was sent unasked */
	struct muster_signature *signatures; /* of those that have ended, by number; NULL: all have the last */
	union {
		struct ended ended;
		struct difference difference;	/* who has failed judges nothing any more */
	};

	uint16_t peer_of[];		/* index in peers + 1 of each member; 0: nothing was exchanged yet */
};

_Static_assert(offsetof(struct context, pulse_next) == 64 && offsetof(struct context, next_ready) <= 128,
	       "what every packet looks at: two lines");
_Static_assert(sizeof(struct context) <= 304, "what an idle one costs");

struct vp {
	struct context *contexts;
	uint32_t nr_kept_descs;		/* of all its contexts */
	uint32_t nr_unasked;		/* blocks that hold what came or went without asking */
};

/* Memory that was given back, by size. */
struct pool {
	struct pool_item *free[POOL_CLASSES];
	size_t kept;
};

struct muster_engine {
	struct muster_engine_world world;
	void *opaque;
	uint32_t node;
	uint64_t hash_key[2];
	uint64_t hash_factor[2];	/* by it: odd */
	uint32_t nr_units;
	int32_t window;			/* sequences that a send may be ahead of its receiver; */
	int32_t asks_from;		/* from so many on it asks, which is half of them */
	uint32_t pulses;		/* of a sequence at once, whatever it says */
	uint32_t budget;		/* what is left of this step's */
	struct context *ready_first, *ready_last;
	const uint64_t *keys_gone;	/* counts keys given back; NULL: nobody does */
	struct context *waited_last;	/* of those with `awaited`; or NULL */
	uint32_t nr_contexts;		/* open, or being opened */
	uint32_t nr_closed;		/* contexts that only have to tell their members */
	uint32_t nr_members;		/* of both */
	bool leaving;			/* who closes a context need not say so */
	struct context *contexts[CONTEXT_BUCKETS];
	struct member_table *tables[TABLE_BUCKETS];
	struct book book;
	struct vp *vps[MUSTER_VPS_MAX];
	struct unit *units[MUSTER_UNITS_MAX];
	struct pool pool;
	struct muster_engine_counters *counters;
	struct muster_engine_counters own_counters; /* where no other place was given */
	struct muster_trace *trace;	/* where to record; NULL: nobody wants it */
	bool taken_at_once;		/* a packet was, since this was false: cheaper than a test */
	struct muster_desc fetched[MUSTER_SEQ_DESCS_MAX]; /* what was read last from memory */
};

/* Mostly one element. */
static inline void muster_copy_small(void *to, const void *from, uint32_t bytes)
{
	if (bytes == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (bytes)
		memcpy(to, from, bytes);
}

/* Whose blocks and scratch memory a context uses. */
static inline struct unit *muster_unit(const struct context *ctx)
{
	return ctx->engine->units[ctx->unit];
}

/* pool.c */
/* Not zeroed; NULL when the world has none. */
void *muster_pool_take(struct muster_engine *engine, size_t bytes);
void muster_pool_give(struct muster_engine *engine, void *p, size_t bytes);
void muster_pool_destroy(struct muster_engine *engine);

/* ready.c: the list of contexts that can run, in which mostly one is alone */
/* Behind others; and off a list of several. */
void muster_context_ready_last(struct context *ctx);
void muster_context_unready_between(struct context *ctx);
/* Run the context at the next step. */
static inline void muster_context_ready(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;
	if (ctx->listed)
		return;
	if (engine->ready_last) {
		muster_context_ready_last(ctx);
		return;
	}
	ctx->listed = true;
	ctx->next_ready = ctx->prev_ready = NULL;
	engine->ready_first = engine->ready_last = ctx;
}
static inline void muster_context_unready(struct context *ctx)
{
	struct muster_engine *engine = ctx->engine;
	if (!ctx->listed)
		return;
	ctx->listed = false;
	if (engine->ready_first == engine->ready_last)
		engine->ready_first = engine->ready_last = NULL;
	else
		muster_context_unready_between(ctx);
}

/* context.c */
/* An open one; those that are still being opened, or closed, take part in nothing. */
struct context *muster_context_find(const struct muster_engine *engine, uint16_t vp, uint8_t job,
				    uint32_t id);
/* The same by what a packet says; also one that is closed, and has copies yet. */
struct context *muster_context_of(const struct muster_engine *engine,
				  const struct muster_packet *packet);
/* The first of those that may be it; or NULL. */
const struct context *muster_context_probable(const struct muster_engine *engine, uint16_t vp,
					      uint8_t job, uint32_t id);
static inline bool muster_context_is_opening(const struct context *ctx)
{
	return ctx->nr_members < ctx->table->wanted;
}
/* No completion, DMA or received packet of it afterwards; told to the members. */
void muster_context_close(struct context *ctx);
void muster_context_free(struct context *ctx);
/* Of all open contexts, in no order: *next starts at 0. NULL: that was the last. */
struct context *muster_context_next(const struct muster_engine *engine, uint32_t *next,
				    const struct context *before);

/* known.c */
enum { MUSTER_KNOWN_NONE = UINT32_MAX };	/* there is no memory */
/* Its number, and a reference to it. */
uint32_t muster_known_take(struct muster_engine *engine, const struct member *member);
void muster_known_give(struct muster_engine *engine, uint32_t number);
void muster_known_destroy(struct muster_engine *engine);

/* member.c */
/* Valid until another context is opened. */
static inline const struct member *muster_member(const struct context *ctx, uint32_t index)
{
	return &ctx->engine->book.known[ctx->table->numbers[index]].member;
}
/* Index of the member, or nr_members. */
uint32_t muster_member_find(const struct context *ctx, uint32_t node, uint16_t vp);
/* False: none is. */
bool muster_member_may_be_at(const struct context *ctx, uint32_t node);
/* In a life other than the present one; 0: in any. */
static inline bool muster_member_was_at(const struct context *ctx, uint32_t index, uint32_t node,
					uint32_t present)
{
	const struct member *member = muster_member(ctx, index);

	return member->node == node && (!present || member->incarnation != present);
}
/* Empty, with room for so many; or NULL. */
struct member_table *muster_member_table_new(struct muster_engine *engine, uint32_t nr);
/* The next one: 0; -EINVAL: out of range, there already, or not where self must be; -ENOMEM. */
int muster_member_add(struct context *ctx, const struct muster_member *from);
/* In place of one that is whole: the one with the same members, if there is one. */
struct member_table *muster_member_table_share(struct muster_engine *engine,
					       struct member_table *table);
void muster_member_table_put(struct muster_engine *engine, struct member_table *table);

/* peer.c */
/* NULL: nothing was exchanged with it yet. */
static inline struct peer *muster_member_peer(const struct context *ctx, uint32_t index)
{
	uint32_t peer = ctx->peer_of[index];

	return peer ? &ctx->peers[peer - 1] : NULL;
}
/* What each waits to be told, while one does. False: the context has failed. */
bool muster_asking_take(struct context *ctx);
void muster_asking_give(struct context *ctx);
bool muster_writes_take(struct context *ctx);	/* likewise, for good */
void muster_peers_give(struct context *ctx);
struct peer *muster_member_first_met(struct context *ctx, uint32_t index);
/* The same, made where there is none; it moves with the next. NULL: the context has failed. */
static inline struct peer *muster_member_meet(struct context *ctx, uint32_t index)
{
	struct peer *peer = muster_member_peer(ctx, index);

	return peer ? peer : muster_member_first_met(ctx, index);
}

/* failure.c */
/* The first cause stays. other: MISMATCH, the culprit's signature; or NULL. */
void muster_context_fail(struct context *ctx, uint8_t status, uint32_t culprit,
			 const struct muster_signature *other);
/* Fails it where memory is out. */
void muster_context_starve(struct context *ctx);
/* Fills in what all completions of a context share. False: the queue is full, stalled. */
bool muster_context_complete(struct context *ctx, struct muster_cqe *cqe);

/* drain.c */
/* Tell members and completion queue of a failed context what has become of it. */
void muster_context_drain(struct context *ctx);

/* decode.c: 0 or -EINVAL, and *bad the index of the descriptor. */
int muster_decode_sequence(const struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			   struct sequence *seq, uint32_t *bad);
int muster_decode_message(const struct context *ctx, const struct muster_desc *desc,
			  struct message *message);
bool muster_decode_packet(const struct muster_packet *packet, uint32_t len);
/* What a step moves in a pulse. */
static inline uint32_t muster_step_bytes(const struct sequence *seq, const struct step *step,
					 uint32_t pulse)
{
	uint64_t done = (uint64_t)pulse * seq->pulse_len;

	if (step->kind == MUSTER_DESC_MP)
		return step->length;
	if (done >= step->length)
		return 0;
	return step->length - done < seq->pulse_len ? step->length - done : seq->pulse_len;
}

/* copy.c: what was sent without waiting for its receiver, until that has it */
/* A place for the message of a send (muster_entry_give() drops it); NULL: it has to ask. */
struct entry *muster_copy_new(struct context *ctx, const struct send *send);
/* The same, without room: for one that is lent. */
struct entry *muster_copy_new_lent(struct context *ctx, const struct send *send);
/* It has gone: keep what was sent. */
void muster_copy_keep(struct context *ctx, struct entry *copy, const void *data);
/* It lies there, which was lent as MUSTER_LEND_KEPT. */
void muster_copy_keep_lent(struct context *ctx, struct entry *copy,
			   const struct muster_reference *lent);
/* Whether what a send of the running number lent so is still there. */
bool muster_copy_is_lent(const struct context *ctx, const struct send *send);
/* A member has ended all numbers below its base; or needs nothing any more. */
void muster_copies_release(struct context *ctx, const struct peer *peer);
void muster_copies_forget(struct context *ctx, uint32_t node, uint32_t present);
/* False: no copy is meant by it. */
bool muster_copy_granted(struct context *ctx, uint32_t member, const struct muster_packet *packet);
/* Send what was asked for. Closed: ask for the rest. */
void muster_copies_run(struct context *ctx);
void muster_copies_remove(struct context *ctx);
/* The context fails: what was lent stays until its owner, who hears of it, closes it. */
void muster_copies_fail(struct context *ctx);
/* A member of one that is closed has failed. */
void muster_copies_abandon(struct context *ctx);
/* It closes: those that may still be needed count no more as its VP's, which may go. */
void muster_copies_disown(struct context *ctx);
/* It is closed and its node leaves: who has left before it is asked in vain. Others: stalled. */
void muster_copies_look(struct context *ctx);

/*
 * predict.c: small programs that are kept, with all prepared that is alike in each of their runs.
 * While a context is calm they run at once: whatever else comes to it, fails it or is done with it
 * says that it is not, and a step that finds nothing but its program to run says that it is.
 */
/* Prepare what can be. */
void muster_predict_bind(struct context *ctx, struct sequence *seq);
void muster_predict_drop(struct context *ctx, struct sequence *seq);
/* The running program has taken this packet at once: so the next one for that slot will be. */
void muster_predict_learn(struct context *ctx, const struct muster_packet *packet);
/* One is awaited: whether this is it, as it was predicted. Then it is combined. */
bool muster_predict_take(struct context *ctx, const struct muster_packet *packet,
			 const void *payload, uint32_t len);
/* Run what was predicted. True: nothing is left; false: all else is to be looked at. */
bool muster_predict_run(struct context *ctx);

/* packet.c */
static inline void muster_packet_prepare(const struct context *ctx, uint8_t type, uint32_t member,
					 struct muster_packet *packet)
{
	const struct member *to = muster_member(ctx, member);

	*packet = (struct muster_packet){
		.version = MUSTER_PACKET_VERSION,
		.type = type,
		.job = ctx->job,
		.src_node = ctx->engine->node,
		.src_vp = ctx->vp,
		.context = ctx->id,
		.life = ctx->life,
		.src_member = ctx->self,
		.incarnation = muster_member(ctx, ctx->self)->incarnation,
		.job_key = ctx->job_key,
		.dst_node = to->node,
		.dst_vp = to->vp,
		.base = ctx->base,
	};
}
/* 0; -EAGAIN, the context is stalled; or -EHOSTUNREACH. */
int muster_packet_try(struct context *ctx, uint32_t member, const struct muster_packet *packet,
		      const void *payload);
/* Whether it has gone; if not, the context is stalled, or has failed: it needs that member. */
bool muster_packet_send(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload);

/* The same for any node: no member's. */
int muster_packet_emit(struct context *ctx, uint32_t incarnation,
		       const struct muster_packet *packet, const void *payload);

/* tree.c */
void muster_tree_leave(struct context *ctx);
/* Which of the context's trees a descriptor names. */
bool muster_tree_find(const struct context *ctx, uint32_t node, uint16_t number, uint8_t *tree);
/* Whether an aggregation node of its trees says it. */
bool muster_tree_says(const struct context *ctx, const struct muster_packet *packet);
/* Whether it was in a life of that node other than the present one; 0: in any. */
bool muster_tree_was_at(const struct context *ctx, uint32_t node, uint32_t present);
/* Index of what is wrong with the sequence's use of the tree; nr_steps: nothing. */
uint32_t muster_tree_check(const struct context *ctx, const struct sequence *seq);
/* The sequence that uses it begins. */
void muster_tree_begin(const struct context *ctx, const struct sequence *seq);
/* Whether the contribution has gone; if not, it has no credit, or the context is stalled, or has failed. */
bool muster_tree_send(struct context *ctx, const struct instance *inst, const struct send *send,
		      const void *data);
/* Whether a result is for a live pulse that has contributed; else it was counted. */
bool muster_tree_awaits(struct context *ctx, const struct muster_packet *packet);
/* What it says of credits. */
void muster_tree_hear(const struct context *ctx, const struct muster_packet *packet);

/* What has come for a number of the window, and was not combined. */
static inline struct entry *muster_arrivals_first(const struct context *ctx, uint32_t number)
{
	return ctx->arrivals ? ctx->arrivals[number % MUSTER_WINDOW].first : NULL;
}

/* Whether something may have come for that slot of it, of any pulse. */
static inline bool muster_arrivals_any(const struct context *ctx, uint32_t number, uint32_t slot)
{
	return ctx->arrivals && ctx->arrivals[number % MUSTER_WINDOW].slots >> slot & 1;
}

/* landing.c */
/* From the tree, once or twice. */
void muster_landing_result(struct context *ctx, const struct muster_packet *packet,
			   const void *payload);
void muster_landing_data(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			 const void *payload);
void muster_landing_rts(struct context *ctx, uint32_t member, const struct muster_packet *packet,
			const void *payload);
/* Whether what came for the running sequence agrees with it, or that and all behind it; else the context fails. */
bool muster_landing_check(struct context *ctx, const struct entry *entry);
bool muster_landing_check_all(struct context *ctx, const struct entry *first);

/* combine.c */
static inline bool muster_combine_replaces(const struct step *step, const struct entry *entry)
{
	return entry->flags & MUSTER_PACKET_SWAP_DATA || !(step->flags & MUSTER_DESC_REDUCE);
}
/* Fails the context: the packet should have brought what nothing else does. */
bool muster_combine_operand_missing(struct context *ctx, const struct entry *entry);
bool muster_combine_overlaps(const struct sequence *seq, const struct instance *inst,
			     const struct step *step);
/* Rule 3: what is stored must not overwrite what is still being sent. */
static inline bool muster_combine_waits(const struct sequence *seq, const struct instance *inst,
					const struct step *step)
{
	return inst->open && muster_combine_overlaps(seq, inst, step);
}
/* A message: in the sender's memory; or peer is NULL, and it is in the entry's blocks. */
struct source {
	struct entry *entry;
	const uint8_t *peer;
};
/* Of the next slots, in their order; none but the first replaces. */
bool muster_combine_messages(struct context *ctx, const struct instance *inst,
			     const struct step *step, const struct source *sources, uint32_t nr);
/* What is loaded, into what the store range holds; unless it is MP. */
bool muster_combine_own(struct context *ctx, const struct instance *inst, const struct step *step);
/* Of a slot whose turn it is; unless it is MP. */
bool muster_combine_fragment(struct context *ctx, const struct entry *entry, uint32_t at,
			     const void *from, uint32_t len);

/* grant.c */
/* Look again at those who asked for slots of the running sequence. */
void muster_grant_run(struct context *ctx);
bool muster_grant_tell_taken(struct context *ctx, struct entry *entry);

/* farewell.c: members that close their context in good order */
/* Tell the members that it has failed or ended. False: the wire is full, stalled. */
bool muster_farewell_say(struct context *ctx);
void muster_farewell_receive(struct context *ctx, uint32_t index,
			     const struct muster_packet *packet);
/* Whether the member has left, and nothing that it had sent is still to come. */
bool muster_farewell_complete(const struct peer *peer);
/* Whether the member has left with its node, as can be read where that noted its base. */
bool muster_farewell_is_noted(const struct context *ctx, uint32_t member);
/* Whether no member has left before it ended number base; else the context fails. */
bool muster_farewell_check(struct context *ctx);

/* transfer.c: the sends of an instance */
/* The packet of an inline step, but for number, base and CREDIT_WANTED. */
void muster_send_prepare(const struct context *ctx, const struct sequence *seq,
			 const struct step *step, struct muster_packet *packet);
void muster_send_open(struct context *ctx, struct instance *inst, uint32_t step);
/* One of inline data, which the wire has just refused. */
void muster_send_hold(struct context *ctx, struct instance *inst, uint32_t step);
void muster_sends_run(struct context *ctx, struct instance *inst);
/* FORWARD: the next step, and those behind it that send the same, whose message comes now. */
void muster_sends_forward(struct context *ctx, struct instance *inst);
/* More of that message is where it is sent from. */
void muster_sends_forward_more(struct context *ctx, struct instance *inst, uint64_t fragments);
bool muster_sends_overlap(const struct instance *inst, uint64_t addr, uint64_t len);
void muster_send_granted(struct context *ctx, uint32_t member,
			 const struct muster_packet *packet);

/* memory.c: all but map() fail the context where the range is refused. */
const void *muster_memory_source(struct context *ctx, uint32_t key, uint64_t addr, uint32_t len);
/* Which registration the key names now (engine.h). */
uint64_t muster_memory_life(const struct context *ctx, uint32_t key);
bool muster_memory_write(struct context *ctx, uint32_t key, uint64_t addr, const void *from,
			 uint32_t len);
static inline void *muster_memory_map(struct context *ctx, uint32_t key, uint64_t addr,
				      uint64_t len, bool write)
{
	const struct muster_engine *engine = ctx->engine;

	if (!engine->world.dma_map)
		return NULL;
	return engine->world.dma_map(engine->opaque, ctx->vp, key, addr, len, write);
}

/* instance.c */
static inline void muster_instance_start(struct instance *inst, uint32_t pulse)
{
	memset(inst, 0, offsetof(struct instance, data));
	inst->pulse = pulse;
}
void muster_instance_run(struct context *ctx, struct instance *inst);
static inline bool muster_instance_ended(const struct sequence *seq, const struct instance *inst)
{
	return inst->next == seq->nr_steps && !inst->open;
}
/* The message of its next slot was, and this is what it said. */
static inline void muster_instance_combined(struct context *ctx, struct instance *inst,
					    uint32_t member, uint16_t flags)
{
	inst->member_last = member;
	inst->has_operand = true;
	inst->slot++;
	ctx->engine->counters->triggers++;
	ctx->coll_end |= !!(flags & MUSTER_PACKET_COLL_END);
	ctx->moved = true;
	ctx->awaited = NULL;
}
/* Whether what comes for a slot of the running sequence can be combined as it comes. */
bool muster_instance_awaits(const struct context *ctx, uint32_t pulse, uint32_t slot);
/* Combine a message of one packet that it awaits. False: the context has failed. */
bool muster_instance_take(struct context *ctx, const struct entry *entry, const void *payload);

/* sequence.c */
/* The oldest that has not ended: the running one, if there is one. */
static inline struct sequence *muster_sequence_current(const struct context *ctx)
{
	return ctx->current;
}

/* Of a live pulse of the running sequence. */
static inline struct instance *muster_instance(const struct context *ctx, uint32_t pulse)
{
	return (struct instance *)((uint8_t *)ctx->instances +
				   (pulse & (muster_sequence_current(ctx)->nr_instances - 1)) *
				   muster_sequence_current(ctx)->instance_bytes);
}

void muster_instances_give(struct context *ctx, const struct sequence *seq, void *instances);

int muster_sequence_post(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			 uint32_t *bad);
/* The same where there is room, whatever is to be fetched before. */
int muster_sequence_add(struct context *ctx, const struct muster_desc *descs, uint32_t nr,
			uint32_t *bad);
/* START: the one that is kept under that cookie, once more; and if that is known to be the first. */
int muster_sequence_restart(struct context *ctx, const struct muster_desc *desc);
int muster_sequence_restart_first(struct context *ctx);
void muster_sequence_run(struct context *ctx);
/* The completion of the running one. */
struct muster_cqe muster_sequence_cqe(const struct context *ctx, const struct sequence *seq);
void muster_sequences_drop(struct context *ctx);	/* all that are posted; base stays */
/* Whether there is memory for one more, where the queue has room. */
bool muster_sequence_has_place(struct context *ctx);
void muster_queue_give(struct context *ctx);	/* it is empty */
/* The number `base` has ended, of that signature: others may be remembered yet, or are not. */
void muster_sequence_remember(struct context *ctx, const struct muster_signature *signature);
/* Of a number that has ended; NULL: not known any more. */
const struct muster_signature *muster_sequence_ended(const struct context *ctx, uint32_t number);
void muster_ended_forget(struct context *ctx);
void muster_sequence_free(struct context *ctx, struct sequence *seq);
static inline void muster_sequence_put(struct context *ctx, struct sequence *seq)	/* one reference less */
{
	if (!--seq->refs)
		muster_sequence_free(ctx, seq);
}

/* fetch.c: programs that lie in memory */
/* PROGRAM. 0; -EAGAIN: its context has no room, or another one; -EINVAL; -ENOMEM. */
int muster_fetch_begin(struct context *ctx, const struct muster_desc *desc);
/* The next sequences, if few are queued. May fail the context. */
void muster_fetch_run(struct context *ctx);
/* What was not fetched will not be. */
void muster_fetch_forget(struct context *ctx);

/* keep.c: programs that stay */
/* NULL: none is kept under that cookie, or START says more than whose it is and which program. */
struct sequence *muster_kept_find(struct context *ctx, const struct muster_desc *start);
/* In the place of the one with its cookie, if there is one. -ENOSPC: one too many. */
int muster_kept_add(struct context *ctx, struct sequence *seq);
/* Whether its keys name what they named when it was kept; the latter looks each of them up. */
bool muster_kept_look_up(const struct context *ctx, struct sequence *seq);
static inline bool muster_kept_holds(const struct context *ctx, struct sequence *seq)
{
	const uint64_t *gone = ctx->engine->keys_gone;

	return (gone && *gone == seq->keys_gone) || muster_kept_look_up(ctx, seq);
}
/* Of an open context, which needs not be the right one: whether START starts what it has started last. */
static inline bool muster_kept_is_first(const struct context *ctx, uint16_t vp,
					const struct muster_desc *start)
{
	return ctx && ctx->kept && ctx->vp == vp && !memcmp(start, &ctx->kept->start, sizeof(*start));
}
/* What desc, a FORGET, names; a start of it that waits runs. 0; -EINVAL: nothing, or desc is no such. */
int muster_kept_forget(struct context *ctx, const struct muster_desc *desc);
void muster_kept_forget_all(struct context *ctx);

/* write.c */
/* Answer those that were not yet. False: the wire is full. */
bool muster_writes_answer(struct context *ctx);

/* p2p.c */
int muster_message_post(struct context *ctx, const struct muster_desc *desc);
void muster_messages_run(struct context *ctx);
void muster_message_forget(struct context *ctx);
void muster_message_receive(struct context *ctx, const struct muster_packet *packet,
			    const void *payload);

#endif /* MUSTER_ENGINE_INTERNAL_H */
