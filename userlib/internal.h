/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the library core share: job, communicator, request, and the
 * cache of what was made of a schedule. Everything is reached from one struct
 * muster, which one thread uses at a time; there are no locks. (Only the caller's
 * allgather() runs on a thread of its own; see exchange.c.)
 *
 * Who calls whom: coll -> request -> (cache, host) -> message -> device. Errors
 * are noted by muster_fail() where they are found and returned upwards.
 */
#ifndef MUSTER_INTERNAL_H
#define MUSTER_INTERNAL_H

#include "dev.h"
#include "muster.h"
#include "host_plan.h"
#include "schedule.h"

enum muster_library_limit {
	MUSTER_ABI = 1,			/* raised when older ranks cannot join any more */
	MUSTER_SENTENCE_MAX = 512,	/* bytes of an error's sentence */
	MUSTER_CACHE_MAX = 64,		/* programs kept per communicator */
	MUSTER_BOUNCE_SLOTS = MUSTER_SEQ_QUEUE_MAX, /* small operations at once, per communicator */
	MUSTER_KEPT_SLOTS = 48,		/* programs that the device keeps, per communicator */
	MUSTER_HISTORY = 64,		/* operations whose signature is remembered */
	MUSTER_CREDITS_MAX = 64,	/* host path: fragments on their way to one member; 2^n */
	MUSTER_CREDIT_SLOTS = 5,	/* of control: 2 credits, a probe, a reply, a good-bye */
	MUSTER_REQUEST_BLOCK = 32,	/* requests allocated at once */
	MUSTER_SPIN_POLLS = 2000,	/* polls without success before a wait sleeps */
	MUSTER_SLEEP_US = 10000,	/* and how long, at most */
	MUSTER_LEAVE_SLEEPS = 50,	/* such sleeps at most, to say good-bye */
	MUSTER_PROBE_US = 200000,	/* how long ranks have to say where they are */
	MUSTER_DOUBT_US = 1000000,	/* waits this long: compare notes with the others */
	MUSTER_WHY_MAX = 192,
};

/* ---- settings.c: the environment ------------------------------------------ */

struct muster_settings {
	char device[16];
	char wire[16];
	char schedule[256];	/* empty: the library chooses */
	uint32_t offload;	/* enum muster_offload */
	uint32_t reserved;
	uint64_t deadline_us;
	uint64_t late_us;	/* 0: wait for ever */
};

/** muster_settings_read() - 0, or -EINVAL with why naming variable, value and what is allowed. */
int muster_settings_read(struct muster_settings *settings, char *why, size_t why_len);

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

struct muster {
	struct muster_oob oob;
	bool oob_owned;			/* made by muster_init() */
	struct muster_settings settings;
	struct muster_dev *dev;
	uint8_t id;			/* JobID */
	uint64_t key;
	struct muster_address *addresses;	/* by rank */
	void *exchanged;		/* by rank: what was said last (exchange.c) */
	struct muster_comm *world;
	struct muster_comm *comms;	/* all, world included */
	uint32_t next_context;
	uint32_t lives;			/* communicators made so far; at all ranks alike */
	uint32_t ring_free;		/* receive ring slots that no communicator holds */
	uint32_t kept_descs;		/* that the device keeps for all communicators */
	uint32_t spin_polls;
	struct muster_region *regions;	/* by address */
	size_t nr_regions;
	size_t max_regions;
	struct muster_request *free_requests;
	struct muster_request_block *blocks;
	uint8_t payload[MUSTER_MTU];	/* of the packet at hand */
	char sentence[MUSTER_SENTENCE_MAX];
};

/** muster_job_join() - muster_init_oob() with a choice of device; owned: close oob at the end. */
int muster_job_join(const struct muster_oob *oob, bool oob_owned, muster_dev_open *open,
		    struct muster **job);

/* ---- exchange.c: what each rank tells all others ------------------------------ */

enum muster_exchange_bytes {	/* of one rank at once; room for all is held */
	MUSTER_EXCHANGE_JOIN = 320,
	MUSTER_EXCHANGE_LATER = 40,
};

/** muster_exchange_open() - room for pieces of that size, so that later nothing is missing. */
int muster_exchange_open(struct muster *job, size_t piece_bytes);
/** muster_exchange_shrink() - later pieces are at most that long. */
void muster_exchange_shrink(struct muster *job, size_t piece_bytes);
void muster_exchange_close(struct muster *job);
/**
 * muster_exchange() - collective over the job: tell all, hear all; operations go on meanwhile.
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

int muster_pin(struct muster *job, const void *addr, uint64_t bytes, int access,
	       struct muster_pin *pin);
void muster_unpin(struct muster *job, struct muster_pin *pin);

/* ---- cache.c: schedules and what was made of them ----------------------------- */

struct muster_call {
	enum muster_coll coll;
	uint32_t type;
	uint32_t op;
	bool in_place;
	uint32_t root;
	uint64_t count;
	uint64_t bytes;
};

static inline bool muster_call_same(const struct muster_call *a, const struct muster_call *b)
{
	return a->count == b->count && a->coll == b->coll && a->type == b->type &&
	       a->op == b->op && a->root == b->root && a->in_place == b->in_place;
}

struct muster_entry {
	struct muster_call call;
	struct muster_signature signature;
	uint32_t refs;			/* requests that use it */
	bool cached;			/* else freed with the last of them */
	uint64_t used;			/* the communicator's clock at the last use */
	struct muster_schedule *schedule;
	bool schedule_owned;		/* else the user's file */
	struct muster_program *program;	/* NULL: not lowered, or not possible */
	struct muster_desc *bound;	/* the program with keys and addresses filled in */
	struct muster_kept *kept;	/* the program as the device keeps it; NULL: it does not */
	bool posted;			/* the program was, */
	bool keep_tried;		/* and may not be kept */
	struct muster_plan *plan;	/* host path; NULL until it is first used */
	int no_program;			/* why there is none: -errno, 0: not tried yet */
	char why[MUSTER_WHY_MAX];	/* and in words */
};

/** muster_entry_get() - find or make; holds a reference. */
int muster_entry_get(struct muster_comm *comm, const struct muster_call *call,
		     struct muster_entry **entry);
void muster_entry_put(struct muster_entry *entry);
/** muster_entry_lower() - see that entry->program or entry->no_program is set; else an error. */
int muster_entry_lower(struct muster_comm *comm, struct muster_entry *entry);
/** muster_entry_plan() - see that entry->plan is set. */
int muster_entry_plan(struct muster_comm *comm, struct muster_entry *entry);
/** muster_cache_clear() - forget all; entries in use live on until they are put. */
void muster_cache_clear(struct muster_comm *comm);
void muster_cache_close(struct muster_comm *comm);
/** muster_comm_inherit() - the schedule that the environment chose, where it fits. */
int muster_comm_inherit(struct muster_comm *comm);

/* ---- comm.c --------------------------------------------------------------------- */

/* A small program that the device keeps, and the place of its operand and result. */
struct muster_kept {
	struct muster_desc start;	/* runs it; its cookie is the number of the slot */
	uint8_t *data;
	uint32_t operand_bytes;
	bool owned;			/* an entry of the cache has it */
	bool busy;			/* it runs; others are posted meanwhile */
	uint32_t nr_descs;		/* that the device keeps under its cookie; 0: none yet */
};

struct muster_past {
	struct muster_signature signature;
	bool host;
};

struct muster_comm {
	struct muster *job;
	struct muster_comm *next;
	uint32_t context;
	uint32_t life;
	uint32_t rank;
	uint32_t size;
	struct muster_address *members;
	enum muster_offload offload;
	char schedule_name[MUSTER_SCHEDULE_NAME_MAX + 1];	/* empty: the library chooses */
	struct muster_schedule *schedule_file;	/* the user's own, for what it fits */
	struct muster_schedule **files;	/* all that were ever chosen */
	uint32_t nr_files;
	int failed;			/* the error that every later operation gets */
	char why[MUSTER_SENTENCE_MAX];	/* its sentence */
	struct muster_op_info last;
	char last_why[MUSTER_WHY_MAX];	/* where last.why is not static */

	struct muster_entry *cache[MUSTER_CACHE_MAX];
	struct muster_entry *recent;	/* found last time */
	uint64_t clock;

	struct muster_request *first;	/* started and not finished, in order */
	struct muster_request *end;
	struct muster_request *unposted; /* the first that the device has not all of */
	uint32_t number;		/* of the next operation */
	struct muster_past history[MUSTER_HISTORY];
	uint32_t sequences;		/* given to the device */
	uint32_t sequences_ended;	/* of them, as far as completions have told */
	uint32_t posted;		/* small operations given to the device */
	uint32_t completed;
	uint8_t *bounce;		/* their results, by order; then the slots of kept ones */
	uint32_t bounce_key;
	struct muster_kept *kept[MUSTER_KEPT_SLOTS];
	void *scratch;			/* what is no result, or not yet */
	size_t scratch_bytes;
	uint32_t scratch_key;

	struct muster_channel *channel;	/* message.c */
	struct muster_host *host;	/* host.c: the operation on the CPU */
};

/** muster_comm_open() - collective over the job; world: ranks are all and it is the first. */
int muster_comm_open(struct muster *job, uint32_t nr, const uint32_t *ranks,
		     struct muster_comm **comm);
/** muster_comm_close() - as muster_comm_free(), for the world too. */
void muster_comm_close(struct muster_comm *comm);
struct muster_comm *muster_comm_find(struct muster *job, uint8_t id, uint32_t context);
/* failure.c */
/** muster_comm_fail() - end it: all pending and later operations get err and the sentence. */
void muster_comm_fail(struct muster_comm *comm, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** muster_comm_fail_status() - the same from what the device said. */
void muster_comm_fail_status(struct muster_comm *comm, uint8_t status, uint32_t culprit,
			     const struct muster_signature *theirs,
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
/** muster_comm_scratch() - see that the scratch has that many bytes; nothing uses it now. */
int muster_comm_scratch(struct muster_comm *comm, uint64_t bytes);

/* ---- request.c ---------------------------------------------------------------------- */

enum muster_request_state {
	MUSTER_REQUEST_FREE,
	MUSTER_REQUEST_QUEUED,		/* not, or not all, with the device */
	MUSTER_REQUEST_RUNNING,
	MUSTER_REQUEST_DONE,
};

struct muster_request {
	struct muster_request *next;
	struct muster *job;
	struct muster_comm *comm;
	struct muster_entry *entry;
	const uint8_t *in;
	uint8_t *out;
	uint8_t *copy_out;	/* small results: where they go at the end, or NULL */
	const uint8_t *result_at; /* and where they come from */
	struct muster_kept *kept; /* it runs by this, or NULL */
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
	int result;
	const char *why;
};

/** muster_request_start() - queue an operation whose arguments were checked. */
int muster_request_start(struct muster_comm *comm, const struct muster_call *call, const void *in,
			 void *out, struct muster_request **request);
/** muster_request_finish() - the first of its communicator is done. */
void muster_request_finish(struct muster_request *request, int result);
/** muster_request_end() - of one that is done: free it. Return: its result. */
int muster_request_end(struct muster_request *request);
/** muster_request_blocks_free() - all requests of a job; none is in use. */
void muster_request_blocks_free(struct muster *job);
/** muster_advance() - post and run what can. */
void muster_advance(struct muster_comm *comm);

/* ---- progress.c --------------------------------------------------------------------------- */

/** muster_progress() - take what the device has; true when it had something. */
bool muster_progress(struct muster *job);

/* ---- choose.c ----------------------------------------------------------------------------- */

/* What a path says of an operation that it runs; else -errno: it cannot go on. */
enum muster_run {
	MUSTER_RUN_AGAIN,	/* call again */
	MUSTER_RUN_POSTED,	/* the device has all of it, and tells its end */
	MUSTER_RUN_DONE,
};

/** muster_path_choose() - set a request's path, why and run(); the same on every rank. */
int muster_path_choose(struct muster_request *request);

/* ---- nic.c ------------------------------------------------------------------------------- */

/** muster_nic_post() - 0: the device has all of it; -EAGAIN: call again later; -errno. */
int muster_nic_post(struct muster_request *request);
/** muster_nic_ended() - of a small one that was posted: its place is free again. */
void muster_nic_ended(struct muster_request *request);

/* ---- keep.c: programs that the device keeps ----------------------------------------------- */

/** muster_kept_post() - run a small operation by a kept program: 0; 1: it must be posted; -errno. */
int muster_kept_post(struct muster_request *request);
/** muster_kept_release() - the entry goes; what the device keeps stays for the next to replace. */
void muster_kept_release(struct muster_entry *entry);
/** muster_kept_close() - of a communicator whose context is closed. */
void muster_kept_close(struct muster_comm *comm);

/* ---- host.c ----------------------------------------------------------------------------- */

/** muster_host_advance() - begin or go on with the oldest operation. Return: as run(). */
int muster_host_advance(struct muster_request *request);
/** muster_host_cancel() - forget the running operation. */
void muster_host_cancel(struct muster_comm *comm);
void muster_host_close(struct muster_comm *comm);
/** muster_host_take() - what its channels hand the next fragment of a member's stream to. */
int muster_host_take(struct muster_comm *comm, uint32_t member, uint32_t number,
		     const void *payload, uint32_t len);

/* ---- message.c: ordered streams between members, with credits ----------------------------- */

/**
 * The next fragment of a member's stream.
 * Return: 1: used; 0: not now; -errno: it does not fit what is awaited.
 */
typedef int muster_channel_take(struct muster_comm *comm, uint32_t member, uint32_t number,
				const void *payload, uint32_t len);

int muster_channel_open(struct muster_comm *comm, uint32_t credits, muster_channel_take *take);
uint32_t muster_channel_credits(const struct muster_comm *comm);
void muster_channel_close(struct muster_comm *comm);
/** muster_channel_slots() - receive ring slots of a communicator with that many credits. */
uint32_t muster_channel_slots(uint32_t size, uint32_t credits);

struct muster_fragment {
	uint32_t member;
	uint32_t number;	/* of the operation */
	struct muster_signature signature;
	const void *data;
	uint32_t len;
	uint32_t key;		/* of the memory at data; not needed for inline data */
};

/** muster_channel_send() - 0; -EAGAIN: no credit or no room now; -errno. */
int muster_channel_send(struct muster_comm *comm, const struct muster_fragment *fragment);
/** muster_channel_sent() - the device says that one message has left. */
void muster_channel_sent(struct muster_comm *comm);
/** muster_channel_receive() - a packet has come. */
void muster_channel_receive(struct muster_comm *comm, const struct muster_packet *packet,
			    const void *payload);
/**
 * muster_channel_clashes() - the NIC path begins an operation: has a member sent
 * something for it on the host path? The communicator has failed then.
 */
bool muster_channel_clashes(struct muster_comm *comm, uint32_t number);
/** muster_channel_deliver() - offer to take() what was kept of a member. */
void muster_channel_deliver(struct muster_comm *comm, uint32_t member);
/** muster_channel_flush() - send control messages that found no room. */
void muster_channel_flush(struct muster_comm *comm);
/** muster_channel_leave() - tell all members that no further operation is joined from here. */
void muster_channel_leave(struct muster_comm *comm);
/** muster_channel_left() - whether a member left before that operation, which then has failed. */
bool muster_channel_left(struct muster_comm *comm, uint32_t number);
/** muster_channel_idle() - whether everything sent has left. */
bool muster_channel_idle(const struct muster_comm *comm);
/**
 * muster_channel_probe() - an operation takes long: tell all members which it is, and ask
 * where they are. One that called something else in its place ends the communicator.
 */
void muster_channel_probe(struct muster_comm *comm);
/** muster_channel_silent() - how many members have not answered the last probe. */
uint32_t muster_channel_silent(const struct muster_comm *comm);
/** muster_channel_who_is_late() - by their answers; names those that have not come to number. */
void muster_channel_who_is_late(const struct muster_comm *comm, uint32_t number, char *names,
				size_t len);

#endif /* MUSTER_INTERNAL_H */
