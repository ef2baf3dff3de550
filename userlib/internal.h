/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the library core share: job, communicator, request, and the
 * cache of what was made of a schedule. Everything is reached from one struct
 * muster, which one thread uses at a time: whose turn it is (turn.h).
 *
 * Who calls whom: coll -> request -> (cache, host) -> message -> pair -> device. Errors
 * are noted by muster_fail() where they are found and returned upwards.
 */
#ifndef MUSTER_INTERNAL_H
#define MUSTER_INTERNAL_H

#include "cache.h"
#include "dev.h"
#include "host_plan.h"
#include "warm.h"

#include <string.h>

enum muster_library_limit {
	MUSTER_ABI = 14,		/* raised when older ranks cannot join any more */
	MUSTER_SENTENCE_MAX = 512,	/* bytes of an error's sentence */
	MUSTER_COMM_BUCKETS = 1024,	/* of the tables that find communicators, */
	MUSTER_MEMBER_BUCKETS = 256,	/* and of that which finds their members */
	MUSTER_STREAM_FLOOR = 16,	/* host path: fragments that a member may send unasked */
	MUSTER_STREAM_MAX = 64,		/* and where they are awaited */
	MUSTER_PAIR_FLOOR_MIN = 2,	/* messages that each other rank may send at any time */
	MUSTER_PAIR_FLOOR_MAX = 8,
	MUSTER_PAIR_MAX = 64,		/* with what was lent to it */
	MUSTER_PAIR_REPORTS = 2,	/* of credits, that can lie in the ring */
	MUSTER_LENDERS_TRIED = 8,	/* pairs that are looked at for credits to get back */
	MUSTER_CONTROLS_OPEN = 8,	/* messages among libraries that have not left */
	MUSTER_PROBES_REPEAT = 8,	/* doubts until who does not answer is asked again */
	MUSTER_AGREE_WORDS = 2,
	MUSTER_EARLY_MAX = 4096,	/* parts of agreements that wait for threads to ask for them */
	MUSTER_REQUEST_BLOCK = 32,	/* requests allocated at once */
	MUSTER_LOOK_POLLS = 1024,	/* polls until the manager of groups is heard again */
	MUSTER_SPIN_POLLS = 2000,	/* polls without success before a wait sleeps */
	MUSTER_SLEEP_US = 10000,	/* and how long, at most */
	MUSTER_LEAVE_SLEEPS = 50,	/* such sleeps at most, to say good-bye */
	MUSTER_PROBE_US = 200000,	/* how long ranks have to say where they are */
	MUSTER_DOUBT_US = 1000000,	/* waits this long: compare notes with the others; and */
	MUSTER_DOUBT_RANKS = 64,	/* as long again for each so many of them */
};

/* ---- settings.c: the environment ------------------------------------------ */

struct muster_settings {
	char device[16];
	char wire[16];
	char fabric[64];	/* wire "switch": that of the switches, */
	uint32_t uplink;	/* and the one that this rank is at */
	uint32_t uplink_life;
	uint32_t first_host;	/* which of the network's rank 0 is; the others follow */
	bool mixed;		/* some ranks have another device than others, at the same network */
	uint32_t rails;		/* networks of switches that each rank is at (rails.h); */
	uint32_t rail;		/* these are the settings of this one; */
	uint64_t rail_bytes;	/* what is longer goes by all */
	char manager[64];	/* address of who makes groups on reduction trees; empty: nobody */
	uint32_t tree;		/* enum muster_offload: whether operations use them, */
	uint64_t tree_bytes;	/* the low-latency one up to so many bytes; */
	uint32_t order;		/* enum muster_offload: whether other paths combine in their order; */
	bool lock_fails;	/* another path is taken where the streaming one is locked; else it is */
	uint64_t lock_us;	/* waited for, so long at the most, */
	uint64_t slice_us;	/* and locked for about so long */
	uint32_t restart;	/* enum muster_restart: what becomes of operations at a loss */
	char schedule[256];	/* empty: the library chooses, */
	char tuning[128];	/* by this file, where it can; empty: there is none */
	char bump[32];		/* IPv4 address and port; empty: there is none */
	uint64_t bump_key;
	uint16_t bump_hosts;	/* 0: as many as ranks */
	uint8_t bump_local_rank;
	uint8_t bump_local_ranks;
	uint32_t offload;	/* enum muster_offload */
	uint64_t deadline_us;
	uint64_t late_us;	/* 0: wait for ever */
	bool trace;		/* record from the beginning */
	bool stats;		/* say at the end what ran, */
	bool log;		/* and once for each kind, when it does */
	bool helper;		/* a thread of the library's own makes progress */
};

/** muster_settings_read() - 0, or -EINVAL with why naming variable, value and what is allowed. */
int muster_settings_read(struct muster_settings *settings, char *why, size_t why_len);
/** muster_settings_rail() - those of another rail of a job that has the first one's. */
int muster_settings_rail(struct muster_settings *settings, const struct muster_settings *first,
			 uint32_t rail, char *why, size_t why_len);

/* ---- job.c ----------------------------------------------------------------- */

/* Opens a device for a job; why gets the sentence when it fails. */
typedef int muster_dev_open(const struct muster_oob *oob, const struct muster_settings *settings,
			    struct muster_dev **dev, char *why, size_t why_len);

/** muster_device_open() - the device that the settings name (device.c). */
muster_dev_open muster_device_open;

/* A piece of muster_alloc() memory. */
struct muster_region {
	char *addr;
	size_t bytes;
	uint32_t key;
};

struct muster_locks {
	uint64_t nr;		/* got; waited for: */
	uint64_t wait_us, wait_us_max;
	uint64_t lease_us_max;	/* from when it was got to when the last operation had ended */
	uint64_t given_up;
};

/* An operation of the caller's own. */
struct muster_user_op {
	muster_combine combine;	/* NULL: it was freed */
	void *opaque;
};

struct muster {
	struct muster_oob oob;
	bool oob_owned;			/* made by muster_init() */
	struct muster *whole;		/* of a rail: the job that the caller has (rails.h), */
	struct muster *next_rail;	/* and of each its next one, or NULL */
	struct muster_settings settings;
	struct muster_dev *dev;
	uint8_t id;			/* JobID */
	uint64_t key;
	struct muster_address *addresses;	/* by rank */
	void *exchanged;		/* by rank: what was said last (exchange.c) */
	struct muster_comm *world;
	struct muster_comm *comms[MUSTER_COMM_BUCKETS];	/* all, world included, by context */
	struct muster_members *members[MUSTER_MEMBER_BUCKETS];	/* of them (members.c) */
	struct muster_comm *active;	/* of them those that are to be visited */
	uint32_t nr_comms;
	uint32_t ids_from;		/* all context ids below are in use here */
	uint32_t lives;			/* the last life that a communicator of this rank had, or may get */
	uint32_t lived;			/* the last that one has had */
	struct muster_pair *pairs;	/* by rank (pair.c) */
	uint32_t pair_floor;		/* credits of each that are never lent */
	uint32_t pair_hand;		/* whom to ask next for what was lent */
	uint32_t pair_clock;		/* messages read so far */
	bool pairs_due;			/* some are to be told something, or have credits that are waited for */
	uint32_t nr_waiting;		/* of communicators, for credits */
	struct muster_early *early;	/* of agreements, beside what pairs hold */
	uint32_t nr_early;
	uint32_t ring_free;		/* receive ring slots that no pair holds */
	uint32_t controls_open;		/* messages among libraries that have not left */
	struct muster_channel *closed[MUSTER_COMM_BUCKETS];	/* that await farewells */
	uint32_t nr_closed;
	struct muster_bounce_chunk *bounce_chunks;
	struct muster_warm *warm;	/* of communicators (warm.c), */
	uint32_t nr_warm;
	uint32_t warm_max;		/* so many may be, or more if all run */
	void *limbs;			/* of the last exact sum, for the next one; or NULL */
	size_t limbs_bytes;
	uint32_t kept_descs;		/* that the device keeps for all communicators */
	uint32_t spin_polls;
	bool counts_ticks;		/* there is a counter that costs less than a clock (ticks.h) */
	struct muster_region *regions;	/* by address */
	size_t nr_regions;
	size_t max_regions;
	struct muster_bump *bump;	/* NULL: there is none; */
	char no_bump[MUSTER_WHY_MAX];	/* and why, if the environment names one */
	struct muster_user_op *user_ops; /* by op - MUSTER_OP_USER (user.c) */
	uint32_t nr_user_ops;
	struct muster_manager *manager;	/* of groups on trees (manager.c); likewise */
	uint32_t polls;			/* so far, to hear it now and then */
	char no_tree[MUSTER_WHY_MAX];
	char *tuned;			/* what was measured on rank 0's machine, as text, while it joins; */
	struct muster_tuning *tuning;	/* and then this (tuning.h); or NULL */
	struct muster_locks locks;	/* of streaming trees, so far (lock.c) */
	struct muster_turn *turn;	/* of several threads (turn.h); NULL: there is one */
	uint32_t under_way;		/* operations started and not done */
	bool has_lost;			/* communicators have lost somebody, and may begin anew (restart.c) */
	uint64_t era;			/* another one whenever entries go, or paths are chosen anew */
	struct muster_request *free_requests;
	struct muster_request *again;	/* the last that was started once more, and runs; or NULL */
	const struct muster_comm *dozing;	/* whose operation somebody sleeps for; or NULL */
	struct muster_request_block *blocks;
	struct muster_look *look;	/* what others may see (look.c); NULL: nothing */
	struct muster_stats *stats;	/* (stats.h); NULL: nobody asks */
	struct muster_trace *trace;	/* where to record; NULL: nowhere */
	const __le32 *traced;		/* whether to: its `on`, */
	__le32 untraced;		/* or this, which is 0 */
	struct muster_look_comm unseen;	/* for communicators that it has no place for */
	uint64_t told_us;		/* when waits were told there last */
	int look_fd;
	uint8_t payload[MUSTER_MTU];	/* of the packet at hand */
	char sentence[MUSTER_SENTENCE_MAX];
};

/** muster_job_whole() - that which the caller has. */
static inline struct muster *muster_job_whole(struct muster *job)
{
	return job->whole ? job->whole : job;
}

/** muster_job_join() - muster_init_oob() with a choice of device; owned: close oob at the end. */
int muster_job_join(const struct muster_oob *oob, bool oob_owned, muster_dev_open *open,
		    struct muster **job);

/** muster_job_new() - one that is not joined; NULL: no memory. */
struct muster *muster_job_new(const struct muster_oob *oob);
/** muster_job_enter() - join it. 0; -errno with its sentence. */
int muster_job_enter(struct muster *job, muster_dev_open *open);
void muster_job_free(struct muster *job);

/* ---- exchange.c: what each rank tells all others ------------------------------ */

enum muster_exchange_bytes {	/* of one rank at once; room for all is held */
	MUSTER_EXCHANGE_JOIN = 704,
};

/** muster_exchange_open() - room for pieces of that size, so that later nothing is missing. */
int muster_exchange_open(struct muster *job, size_t piece_bytes);
void muster_exchange_close(struct muster *job);
/**
 * muster_exchange() - collective over the job: tell all, hear all.
 * @status: of this rank; what it says of it in mine. Its sentence stays, and it is returned.
 * @all: what they said, by rank; valid until the next exchange.
 * Return: 0; status; what the allgather said, with a sentence.
 */
int muster_exchange(struct muster *job, int status, const void *mine, size_t bytes,
		    const void **all);

/* ---- error.c ---------------------------------------------------------------- */

/** muster_fail() - note the sentence of an error; returns it. */
int muster_fail(struct muster *job, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** muster_fail_init() - the same for muster_init(), which has no job yet. */
int muster_fail_init(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *muster_type_name(uint32_t type);
const char *muster_op_name(uint32_t op);
/** muster_signature_words() - "allreduce of f64 sum" or "broadcast of i32 with root 3". */
void muster_signature_words(const struct muster_signature *signature, char *words, size_t len);
int muster_status_errno(uint8_t status);
/** muster_rank_errno() - what another rank says its error is; never 0 or above. */
int muster_rank_errno(int32_t status);

/* ---- memory.c ---------------------------------------------------------------- */

/* What makes a buffer known to the device while an operation runs. */
struct muster_pin {
	uint32_t key;		/* 0: nothing pinned */
	bool owned;		/* registered for this operation alone */
};

/* With MUSTER_ACCESS_APART it has a key of its own, also in memory of muster_alloc(). */
int muster_pin(struct muster *job, const void *addr, uint64_t bytes, int access,
	       struct muster_pin *pin);
void muster_unpin(struct muster *job, struct muster_pin *pin);

/* ---- comm.c --------------------------------------------------------------------- */

struct muster_comm {
	struct muster *job;
	struct muster_comm *next;	/* of its bucket */
	struct muster_comm *next_active;
	struct muster_comm *whole;	/* on a rail: that of the same members which the caller has, */
	struct muster_comm *next_rail;	/* and of each that on the next rail; or NULL */
	uint32_t context;
	uint32_t life;
	uint32_t rank;
	uint32_t size;
	uint32_t created;		/* communicators that all of its members have made of it */
	uint32_t ids_from;		/* where they look for the next id */
	bool active;			/* it is to be visited */
	bool again;			/* and after this visit, too: something found no room */
	bool freed;			/* by its owner; closed when nothing of it is under way */
	uint32_t refs;			/* while it is not closed, and of requests that failed with it */
	const uint32_t *ranks;		/* of its members in the job (members.c) */
	enum muster_offload offload;
	enum muster_offload tree;	/* whether it uses its groups on trees */
	int failed;			/* the error that every later operation gets */
	char *why;			/* its sentence; NULL: there was no memory for that */
	uint32_t culprit;		/* of an error: who is to blame; not known from size on; */
	uint8_t status;			/* and what the device said, if it was that */
	struct muster_told *told;	/* which schedules to use (schedules.c); NULL: the library chooses */
	struct muster_op_info last;
	char *last_why;			/* where last.why is not static; or NULL */

	struct muster_warm *warm;	/* what it has to run (warm.c); NULL: it is cool, */
	struct muster_runs *runs;	/* and this is all that it remembers, or NULL */
	struct muster_cut *cut;		/* room for that of the call that is started, or NULL */
	struct muster_graph *graph;	/* neighbours (graph.h), or NULL */

	struct muster_request *first;	/* started and not finished, in order */
	struct muster_request *end;
	struct muster_request *unposted; /* the first that the device has not all of */
	struct muster_request *ready;	/* what it ran last, if it can run once more (again.c); or NULL */
	struct muster_request *persistent; /* all that are, idle or not */
	bool persists;			/* what is called now is to be persistent */
	uint32_t number;		/* of the next operation */
	uint32_t sequences;		/* given to the device */
	uint32_t sequences_ended;	/* of them, as far as completions have told */
	uint32_t fetched_to;		/* those below may be fetched by the device, and not be there yet */

	struct muster_look_comm *look;	/* what others see of it; never NULL */
	struct muster_channel *channel;	/* message.c; NULL: nothing was said */
	struct muster_host *host;	/* host.c: the operation on the CPU */
	struct muster_bump_run *bump;	/* bump.c: the operation there */
	struct muster_trees *trees;	/* tree.c: its groups; NULL: it has none, */
	char *no_tree;			/* and why, if that is its own affair; or NULL */
	struct muster_restarts *restarts;	/* restart.h; NULL: a loss is an error */
};

/** muster_copy() - of small data, which is one element mostly. */
static inline void muster_copy(void *to, const void *from, size_t bytes)
{
	if (bytes == sizeof(uint64_t))
		memcpy(to, from, sizeof(uint64_t));
	else if (bytes)
		memcpy(to, from, bytes);
}

/* group.c */
/** muster_comm_make_on() - collective over the members of one: another one of them on another rail. */
int muster_comm_make_on(struct muster *rail, const struct muster_comm *comm, struct muster_comm **made);

/* members.c */
/** muster_members_get() - a table of these ranks, and a reference to it. NULL: there is no memory. */
const uint32_t *muster_members_get(struct muster *job, uint32_t nr, const uint32_t *ranks);
void muster_members_put(struct muster *job, const uint32_t *ranks);
static inline const struct muster_address *muster_comm_address(const struct muster_comm *comm,
							       uint32_t member)
{
	return &comm->job->addresses[comm->ranks[member]];
}

/** muster_comm_open_world() - the communicator of all; the first one. */
int muster_comm_open_world(struct muster *job);
/** muster_comm_build() - this rank's part of one whose members have agreed on it. */
int muster_comm_build(struct muster *job, uint32_t context, uint32_t life, uint32_t nr,
		      const uint32_t *ranks, struct muster_comm **comm);
/** muster_comm_close() - at once. Why it failed stays, for who has not been told. */
void muster_comm_close(struct muster_comm *comm);
void muster_comm_put(struct muster_comm *comm);
/** muster_comms_close() - all, world included, after what is to be said of them. */
void muster_comms_close(struct muster *job);
struct muster_comm *muster_comm_find(struct muster *job, uint8_t id, uint32_t context);
/** muster_comm_member() - a rank's place in it; its size: it is no member. */
uint32_t muster_comm_member(const struct muster_comm *comm, uint32_t rank);
/** muster_comm_activate() - something may go on: visit it with the next progress. */
void muster_comm_activate(struct muster_comm *comm);
/** muster_comms_visit() - let those go on that were activated. */
void muster_comms_visit(struct muster *job);
/**
 * muster_comm_holds() - whether something that members need waits here for room in a full wire:
 * an operation does not end before that has left, as its caller may stay away for long.
 */
static inline bool muster_comm_holds(const struct muster_comm *comm)
{
	struct muster_dev *dev = comm->job->dev;

	return __builtin_expect(dev->holding, 0) &&
	       dev->ops->holds(dev, comm->job->id, comm->context, comm->job->addresses, comm->ranks,
				comm->size);
}
/** muster_member_holds() - the same of what one member needs, in whatever communicator. */
static inline bool muster_member_holds(const struct muster_comm *comm, uint32_t member)
{
	struct muster_dev *dev = comm->job->dev;

	return __builtin_expect(dev->holding, 0) &&
	       dev->ops->holds(dev, comm->job->id, MUSTER_CONTEXT_NONE, comm->job->addresses,
				&comm->ranks[member], 1);
}
/**
 * muster_comm_has_room() - whether the device takes one more sequence at once, as far as is
 * known: it fetches of a long program when half of its queue is free.
 */
static inline bool muster_comm_has_room(const struct muster_comm *comm)
{
	uint32_t queued = comm->sequences - comm->sequences_ended;
	bool fetches = (int32_t)(comm->fetched_to - comm->sequences_ended) > 0;

	return queued < (fetches ? MUSTER_SEQ_QUEUE_MAX / 2 + 1 : MUSTER_SEQ_QUEUE_MAX);
}
/** muster_comm_bounce() - see that there is memory for small results. */
int muster_comm_bounce(struct muster_comm *comm);
/** muster_comm_scratch_free() - nothing of it is in use. */
void muster_comm_scratch_free(struct muster_comm *comm);

/* warm.h */
static inline void muster_warm_limit(struct muster *job)
{
	if (__builtin_expect(job->nr_warm > job->warm_max, 0))
		muster_warm_review(job, job->warm_max);
}

/* failure.c */
/** muster_comm_why() - of one that has failed: the sentence. */
const char *muster_comm_why(const struct muster_comm *comm);
/**
 * muster_comm_fail_status() - end it, from what the device said: all its operations fail.
 * @by: the member that noticed, or MUSTER_BY_NONE; of MUSTER_STATUS_ABORTED the one that gave up, for
 * the culprit.
 */
void muster_comm_fail_status(struct muster_comm *comm, uint8_t status, uint32_t culprit,
			     uint32_t by, const struct muster_signature *theirs,
			     const struct muster_signature *ours);
/** muster_comm_abort() - fail it here and at all members. */
void muster_comm_abort(struct muster_comm *comm, uint8_t status, uint32_t culprit,
		       const struct muster_signature *theirs, const struct muster_signature *ours);
/**
 * muster_comm_give_up() - this rank alone cannot go on: the same, but here with the error
 * and the sentence that were just noted; all others are told that it was this rank.
 * Return: err.
 */
int muster_comm_give_up(struct muster_comm *comm, int err);
/** muster_comm_give_up_for() - the same, and that it was for the culprit's sake. */
int muster_comm_give_up_for(struct muster_comm *comm, int err, uint32_t culprit);
/** muster_comm_scratch() - see that the scratch has that many bytes; nothing uses it now. */
int muster_comm_scratch(struct muster_comm *comm, uint64_t bytes);

/* ---- request.c ---------------------------------------------------------------------- */

struct muster_aside;

enum muster_request_state {
	MUSTER_REQUEST_FREE,
	MUSTER_REQUEST_QUEUED,		/* not, or not all, with the device */
	MUSTER_REQUEST_RUNNING,
	MUSTER_REQUEST_DONE,
	MUSTER_REQUEST_IDLE,		/* persistent: it can be started */
	MUSTER_REQUEST_LOST,		/* to be begun anew (restart.c) */
};

struct muster_request {
	struct muster_request *next;
	struct muster_request *next_rail;	/* has the next part of the operation; or NULL */
	struct muster *job;
	struct muster_comm *comm;	/* until it is done */
	uint32_t context;		/* of comm */
	struct muster_entry *entry;
	const uint8_t *in;	/* where the message would begin, of which it holds a part; */
	uint8_t *out;		/* so with out */
	struct muster_aside *aside;	/* the library's own, if in or out is there; or NULL */
	uint8_t *copy_out;	/* small results: where they go at the end, or NULL */
	const uint8_t *result_at; /* and where they come from */
	struct muster_kept *kept; /* it runs by this, or NULL */
	struct muster_desc *fetched; /* what the device fetches of it (long.c), or NULL, */
	uint32_t fetched_key;	/* and its registration; */
	uint32_t fetched_scratch_key; /* it names this scratch, */
	const void *fetched_scratch; /* which lies there */
	struct muster_pin in_pin;
	struct muster_pin out_pin;
	uint32_t number;
	uint32_t stage;		/* next to be posted */
	uint32_t sequence;	/* number of the last one posted */
	uint32_t bounce;
	uint64_t cookie;	/* of its completion */
	enum muster_path path;
	int (*run)(struct muster_request *request);	/* on that path (choose.c) */
	enum muster_request_state state;
	bool scratch;		/* its result goes to the communicator's scratch */
	bool persistent;	/* entry, pins and aside stay until it is freed */
	bool traced;		/* its call is recorded, and so will its end be */
	bool own;		/* as its call */
	bool awaited;		/* a thread sleeps until it ends */
	bool locked;		/* it is one of those that a lock was got for */
	bool ready;		/* its communicator runs it once more (again.c), and holds its entry */
	struct muster_request *next_persistent;	/* of its communicator */
	uint64_t nothing_bytes;	/* where there is no entry: what goes from in to out */
	enum muster_coll coll;	/* that was called, */
	uint64_t began_us;	/* and when, if there are statistics */
	bool ended;		/* for the device; it is not done before what it has sent has left */
	int result;
	struct muster_comm *failed; /* has the sentence of an error, of which it holds a reference */
	bool anew;		/* it is begun anew after a loss (restart.c), */
	bool agrees;		/* or waits for all to have the result of one that is: */
	struct muster_request *agreement; /* the one of the other; NULL: there is none */
	uint64_t place;		/* among all that are; the same at all members */
	struct muster_input *input; /* what it began with, where its result comes; or NULL */
	char *sentence;		/* of an error of its own; or NULL */
	const char *why;
};

/** muster_request_new() - one of this call; nothing of it is prepared. 0; -ENOMEM. */
int muster_request_new(struct muster_comm *comm, const struct muster_call *call,
		       struct muster_request **request);
/** muster_request_put() - it is free for the next one. */
void muster_request_put(struct muster_request *request);
/** muster_request_pin() - in and out are its buffers, on its path. 0 or -errno. */
int muster_request_pin(struct muster_request *request, const void *in, void *out);
/** muster_request_unpin() - nothing of it names them any more. */
void muster_request_unpin(struct muster_request *request);
/** muster_request_go() - it runs now, in its turn. */
void muster_request_go(struct muster_request *request);
/** muster_request_persist() - it waits to be started, as often as its caller likes. */
void muster_request_persist(struct muster_request *request);
/** muster_request_start() - queue an operation whose arguments were checked. */
int muster_request_start(struct muster_comm *comm, const struct muster_call *call, const void *in,
			 void *out, struct muster_request **request);
/** muster_request_make() - the same, short of starting it. 0; -errno. */
int muster_request_make(struct muster_comm *comm, const struct muster_call *call, const void *in,
			void *out, struct muster_request **request);
/** muster_request_unmake() - it is not to be started. */
void muster_request_unmake(struct muster_request *request);
/**
 * muster_request_start_lengths() - the same of one of whose blocks not all ranks know all
 * lengths: the longest is agreed upon first, in an operation of its own. So is what an exact sum
 * spans; in and out come with its limbs then.
 * @aside: has the longest that this rank knows, or its numbers; stays the caller's when it fails.
 */
int muster_request_start_lengths(struct muster_comm *comm, const struct muster_call *call,
				 const void *in, void *out, struct muster_aside *aside,
				 struct muster_request **request);
/** muster_request_lengths_again() - a persistent one with something beside it is started again. */
int muster_request_lengths_again(struct muster_request *request);
/** muster_request_is_late() - whether ranks agree upon something first. */
bool muster_request_is_late(const struct muster_request *request);
/** muster_request_lengths_anew() - of such a one: what was agreed upon is forgotten. */
int muster_request_lengths_anew(struct muster_request *request);
/** muster_request_elsewhere() - it cannot have its tree: as its run() on another path. */
int muster_request_elsewhere(struct muster_request *request);
/** muster_request_restart() - start one that is persistent and idle. */
int muster_request_restart(struct muster_request *request);
/** muster_request_reset() - as if it had not run. */
void muster_request_reset(struct muster_request *request);
/** muster_request_unlist() - it is not one of its communicator's persistent ones any more. */
void muster_request_unlist(struct muster_request *request);
/** muster_request_release() - of one that is persistent and not under way: all that it holds. */
void muster_request_release(struct muster_request *request);
/**
 * muster_request_enqueue() - it runs in its turn, or waits to be begun anew, where its
 * communicator has lost somebody.
 */
void muster_request_enqueue(struct muster_request *request);
/** muster_request_move() - to another communicator, as if it had been called there; not started. 0 or -errno. */
int muster_request_move(struct muster_request *request, struct muster_comm *comm);
/** muster_request_done() - with this result: its caller may have it. */
void muster_request_done(struct muster_request *request, int result);
/** muster_request_finish() - the first of its communicator is done. */
void muster_request_finish(struct muster_request *request, int result);
/** muster_ended_finish() - those that the device has ended, as far as what they sent has left. */
void muster_ended_finish(struct muster_comm *comm);
/**
 * muster_request_end() - of one that is done, in a call of its owner's: what is beside the
 * buffers is folded and copied, and it is freed. Return: its result.
 */
int muster_request_end(struct muster_request *request);
/** muster_last_set() - it has succeeded, and is what its communicator did last (last.c). */
void muster_last_set(struct muster_comm *comm, const struct muster_request *request);
void muster_last_set_nothing(const struct muster_request *request);
/** muster_last_fill() - what it was, whoever asked for it: an entry's request that has ended. */
void muster_last_fill(const struct muster_request *request, struct muster_op_info *info);
/** muster_request_blocks_free() - all requests of a job; none is in use. */
void muster_request_blocks_free(struct muster *job);
/** muster_advance() - post and run what can. */
void muster_advance(struct muster_comm *comm);
/** muster_again_drop() - what it ran last is not to run once more as it did (again.c). */
void muster_again_drop(struct muster_comm *comm);

/* ---- progress.c --------------------------------------------------------------------------- */

/** muster_progress_open() - the device of the job is open. */
void muster_progress_open(struct muster *job);
/** muster_sleep() - until the device or the bump may have something, or a little. */
void muster_sleep(struct muster *job, uint64_t us);
/** muster_now_us() - of a clock that only goes forward; a simulated world has its own. */
uint64_t muster_now_us(const struct muster *job);
/** muster_device_empty() - all of it, and no more: nothing is left of a context that was closed. */
void muster_device_empty(struct muster *job);

/* ---- choose.c ----------------------------------------------------------------------------- */

/* What a path says of an operation that it runs; else -errno: it cannot go on. */
enum muster_run {
	MUSTER_RUN_AGAIN,	/* call again */
	MUSTER_RUN_POSTED,	/* the device has all of it, and tells its end */
	MUSTER_RUN_DONE,
};

/** muster_path_is_posted() - whether the device runs it, and tells its end. */
static inline bool muster_path_is_posted(enum muster_path path)
{
	return path == MUSTER_PATH_NIC || path == MUSTER_PATH_SWITCH;
}

/** muster_path_choose() - set a request's path, why and run(); the same on every rank. */
int muster_path_choose(struct muster_request *request);

/* ---- nic.c ------------------------------------------------------------------------------- */

/** muster_nic_post() - 0: the device has all of it; -EAGAIN: call again later; -errno. */
int muster_nic_post(struct muster_request *request);
/** muster_nic_ended() - of a small one that was posted: its place is free again. */
void muster_nic_ended(struct muster_request *request);
/** muster_long_forget() - what a long one's device fetches goes before the pins that it names. */
void muster_long_forget(struct muster_request *request);

/* ---- keep.c: programs that the device keeps ----------------------------------------------- */

/** muster_kept_started() - the device runs it for that request. */
static inline void muster_kept_started(struct muster_request *request, struct muster_kept *kept)
{
	kept->busy = true;
	request->kept = kept;
	request->cookie = kept->start.cookie;
	request->result_at = kept->result;
	request->sequence = request->comm->sequences++;
	request->state = MUSTER_REQUEST_RUNNING;
}

/** muster_kept_run() - have the device run it; errors as of post(). */
static inline int muster_kept_run(struct muster_dev *dev, const struct muster_kept *kept)
{
	return dev->ops->start ? dev->ops->start(dev, &kept->start) :
				 dev->ops->post(dev, &kept->start, 1);
}

/** muster_kept_post() - run an operation by a kept program: 0; 1: it must be posted; -errno. */
int muster_kept_post(struct muster_request *request);
/** muster_kept_release() - the entry goes; what the device keeps stays for the next to replace. */
void muster_kept_release(struct muster_entry *entry);
/** muster_kept_give_back() - what no entry has the device forgets. -EAGAIN: it has no room, call again. */
int muster_kept_give_back(struct muster_comm *comm);
/** muster_kept_close() - of a communicator whose context is closed, or that has given all back. */
void muster_kept_close(struct muster_comm *comm);

#endif /* MUSTER_INTERNAL_H */
