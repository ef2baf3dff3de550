/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The looking page: what a process of a job shows to other processes of its user.
 * Layouts only.
 *
 * It is an anonymous file (memfd) that its owner keeps open, named MUSTER_LOOK_NAME:
 * who looks finds it among the links of /proc/PID/fd and opens it there. It goes with
 * its owner, however that ends, and can be read while its owner is stopped. Only the
 * owner writes; it never waits for readers, and a reader trusts nothing: all that is read
 * is copied, and checked against the limits here. `seq` of the page and of each communicator
 * is odd while what belongs together is written; counters, and the counts of operations
 * started and ended, change one by one.
 *
 * The page of a process in a guest is shown on the host as well, by QEMU, as one of its own
 * files: a copy, some 20 times a second (Documentation/device.md), in times of the host. So
 * that its owner knows what the NIC waits for, the NIC writes `device` of communicators.
 *
 * Times are CLOCK_MONOTONIC, in microseconds. Ranks are the job's unless a name says
 * "member". Numbers of operations count from 0 in each communicator.
 */
#ifndef MUSTER_LOOK_H
#define MUSTER_LOOK_H

#include "muster_desc.h"

#define MUSTER_LOOK_NAME	"muster-look"
#define MUSTER_LOOK_MAGIC	0x6b6f6f6cu	/* "look" */
#define MUSTER_LOOK_VERSION	3
#define MUSTER_LOOK_NOBODY	0xffffffffu

enum muster_look_limit {
	MUSTER_LOOK_COMMS_MAX = 4096,	/* communicators; further ones are not shown */
	MUSTER_LOOK_WAITS_MAX = 8,	/* of one communicator at once */
	MUSTER_LOOK_SILENT_MAX = 6,	/* nodes; further ones are not shown */
	MUSTER_LOOK_NIC_COMMS = 252,	/* communicators that a NIC copies */
	MUSTER_TRACE_RECORDS = 1 << 15,	/* of the ring: 1 MiB, of which only what is written takes memory */
};

/*
 * What an engine counts, a line each: name, and what it is. All are monotonic, but those
 * that end in _used, and contexts_closing: they say what is now.
 */
#define MUSTER_ENGINE_COUNTERS(counter)						\
	counter(sequences_posted, "sequences posted")				\
	counter(sequences_ended, "sequences ended")				\
	counter(descriptors_executed, "descriptors executed")			\
	counter(triggers, "messages combined in their turn")			\
	counter(triggers_waited, "of them those that came before it")		\
	counter(pulses, "pulses begun")						\
	counter(probes, "entries of others met where one was looked for")	\
	counter(retries, "what the wire or memory refused, to be tried again")	\
	counter(packets_in, "packets in")					\
	counter(packets_out, "packets out")					\
	counter(bytes_in, "payload bytes in")					\
	counter(bytes_out, "payload bytes out")					\
	counter(bytes_referenced, "bytes taken in place from a peer")		\
	counter(dma_read_bytes, "bytes read from the owner's memory")		\
	counter(dma_write_bytes, "bytes written to the owner's memory")		\
	counter(grants, "answers to those who asked")				\
	counter(grants_streamed, "of them without room: combined as it comes")	\
	counter(credits, "credits told")					\
	counter(unasked, "messages that came without asking, and found room")	\
	counter(unasked_refused, "and those that did not")			\
	counter(drop_malformed, "dropped: version, type, flags, lengths, reserved bits") \
	counter(drop_stranger, "dropped: no such context, wrong key, member or incarnation") \
	counter(drop_duplicate, "dropped: slot is filled already")		\
	counter(drop_window, "dropped: number or pulse outside of the window")	\
	counter(drop_ring_full, "dropped: point to point, receive ring full")	\
	counter(tree_up, "contributions to reduction trees")			\
	counter(tree_down, "results of reduction trees that were taken")	\
	counter(contexts_failed, "contexts failed")				\
	counter(looked_at, "contexts and members looked at, for news of nodes")	\
	counter(buffer_blocks_used_max, "blocks used at most, of any unit")	\
	counter(buffer_blocks_used, "blocks used, of all units")		\
	counter(buffer_entries_used, "entries used, of all units")		\
	counter(contexts_closing, "contexts closed of which not all members have been told") \
	counter(writes, "packets of one-sided writes that were stored")		\
	counter(writes_refused, "and those that were refused: key, bounds, access")	\
	counter(tree_limited, "contributions without a credit: the limited packets")

#define MUSTER_ENGINE_COUNTER(name, words) __u64 name;

struct muster_engine_counters {
	MUSTER_ENGINE_COUNTERS(MUSTER_ENGINE_COUNTER)
};

/* Where a process is. */
enum muster_look_place {
	MUSTER_LOOK_OUTSIDE = 0,	/* not in the library, or not for long */
	MUSTER_LOOK_WAITS = 1,		/* in the library, for an operation of `context` */
	MUSTER_LOOK_MAKES = 2,		/* in the making of a communicator out of `context` */
	MUSTER_LOOK_LEAVES = 3,		/* in muster_finalize() */
};

/* What keeps an operation from going on. */
enum muster_look_cause {
	MUSTER_LOOK_SLOT = 1,		/* a slot's message has not begun to come from rank */
	MUSTER_LOOK_DATA = 2,		/* it was asked for, and the rest has not come */
	MUSTER_LOOK_WINDOW = 3,		/* rank's window (credit) has not moved, so a send is held */
	MUSTER_LOOK_GRANT = 4,		/* rank has not answered a send that asked */
	MUSTER_LOOK_WIRE = 5,		/* the wire to rank takes no more */
	MUSTER_LOOK_QUEUE = 6,		/* the completion queue is full: the owner does not read it */
	MUSTER_LOOK_STREAM = 7,		/* host path: a fragment of rank's has not come */
	MUSTER_LOOK_CREDIT = 8,		/* host path: rank has given no credit for what is to be sent */
	MUSTER_LOOK_AGREEMENT = 9,	/* what rank says of the communicator that is being made */
	MUSTER_LOOK_BUMP = 10,		/* the bump in the wire */
};

struct muster_look_wait {
	__le32 rank;		/* MUSTER_LOOK_NOBODY: not known */
	__u8 cause;		/* enum muster_look_cause */
	__u8 slot;
	__le16 stage;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_look_wait) == 8, "size");

/* What a sequence waits for, or an operation on the host path. */
struct muster_look_waits {
	__le32 number;		/* of the sequence, in its context */
	__le32 pulse;		/* oldest that has not ended */
	__le32 nr;		/* of all; the first of them follow */
	__le32 reserved;
	struct muster_look_wait waits[MUSTER_LOOK_WAITS_MAX];
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_look_waits) == 80, "size");

/* A node that acknowledges nothing of what is sent to it, again and again. */
struct muster_look_silence {
	__le32 node;
	__le32 reserved;
	__le64 since_us;
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_look_silence) == 16, "size");

/*
 * A communicator. Another rank's record is of the same one if context, life and lead are
 * the same. Of its operations [ended, started) are not finished; the first of these is
 * described. What it waits for is told when its owner has waited for some milliseconds, or
 * leaves the library without its end, and by the library's own thread while that goes on with
 * it: of operation `told`, at the time told_us.
 */
struct muster_look_comm {
	__le32 seq;		/* odd: it is being written */
	__le32 used;		/* 0: free; what the last one left stays */
	__le32 context;
	__le32 life;
	__le32 lead;		/* rank of member 0 */
	__le32 member;		/* the owner's place */
	__le32 size;
	__le32 failed;		/* its error, negated; 0: none */
	__le32 started;
	__le32 ended;
	__u8 path;		/* enum muster_path, of the operation `ended` */
	__u8 reserved[7];
	struct muster_signature signature;
	__le64 bytes;		/* of its whole message */
	__le64 told_us;
	__le64 since_us;	/* when it was first seen to wait */
	__le32 told;
	__le32 reserved2;
	struct muster_look_waits waits;
	struct muster_look_waits device;	/* as the NIC has told, without who fills slots */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_look_comm) == 256, "size");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_look_comm, signature) == 48, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_look_comm, waits) == 96, "offset");

/*
 * Records of what happens, kept in a ring: written one after the other while `on` is not 0,
 * which who records sets, with the file opened for writing. `written` counts all that ever
 * were; it is raised when a record is there, so a reader copies first and then sees by it
 * what was overwritten meanwhile.
 */
enum muster_trace_kind {
	MUSTER_TRACE_CALL = 1,		/* operation `number` is started; slot: collective, pulse: bytes
					   of its message, member: enum muster_path */
	MUSTER_TRACE_DONE = 2,		/* it has ended for its owner; no more is said of it. By engines: */
	MUSTER_TRACE_SEND = 3,		/* a packet has gone to member; type and part: of the packet */
	MUSTER_TRACE_RECEIVE = 4,	/* one has come from member, */
	MUSTER_TRACE_RECEIVE_TAKE = 5,	/* and was at once what TAKE says, too */
	MUSTER_TRACE_TAKE = 6,		/* a slot's message is combined; it was member's */
};

struct muster_trace_record {
	__le64 time;		/* of the clock that the page names */
	__le32 context;		/* these five are in a row as in a packet */
	__le32 life;		/* of the context: ids come round, lives do not */
	__le32 member;
	__le32 number;		/* of the operation, or the sequence */
	__le32 pulse;
	__u8 kind;		/* enum muster_trace_kind */
	__u8 slot;
	__u8 type;		/* SEND, RECEIVE: enum muster_packet_type, */
	__u8 part;		/* and which fragment of the slot's message */
};

MUSTER_STATIC_ASSERT(sizeof(struct muster_trace_record) == 32, "size");

enum muster_trace_clock {
	MUSTER_TRACE_NS = 1,		/* CLOCK_MONOTONIC, in nanoseconds */
	MUSTER_TRACE_TSC = 2,		/* what RDTSC says, the same on all processors */
};

/* Of the clock: who records says again and again that it goes on, for so long; some 10 to 30 s. */
#define MUSTER_TRACE_LEASE	(1ull << 35)

struct muster_trace {
	__le32 on;
	__le32 clock;		/* enum muster_trace_clock */
	__le64 written;
	__le64 now;		/* the owner's: as of its last call, or the last packet that came */
	__le64 until;		/* the recorder's: the owner's first call after it takes back `on` */
	__u8 reserved[32];
	struct muster_trace_record records[MUSTER_TRACE_RECORDS];
};

MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_trace, records) == 64, "offset");

struct muster_look {
	__le32 magic;		/* MUSTER_LOOK_MAGIC, written when the rest is there */
	__le32 version;		/* MUSTER_LOOK_VERSION */
	__le32 pid;		/* as its owner sees it */
	__le32 seq;		/* odd: what follows up to `counters` is being written */
	__le64 job_name;	/* random; the same at all ranks of the job, and not its key */
	__le64 began_us;
	__le32 rank;
	__le32 size;
	__le32 node;
	__le32 incarnation;
	__le16 vp;
	__u8 job;		/* JobID */
	__u8 place;		/* enum muster_look_place */
	__le32 context;		/* of the place */
	__le64 place_us;	/* since when it is there */
	__le64 seen_us;		/* when its owner was last seen to advance an unfinished operation */
	char device[16];
	char wire[16];		/* empty: the device has its own */
	struct muster_look_wait wait;	/* MAKES: whom it waits for */
	__le32 nr_comms;	/* places of comms[] that were ever used */
	__le32 nr_hidden;	/* copy: further ones, which are not in it */
	__le64 copied_us;	/* copy of a guest's page: when; 0: it is its owner's own */
	char command[16];	/* the owner's program */
	__le32 copied_by;	/* copy: the process that makes it, as it sees itself */
	__le32 nr_silent;	/* as of when waits were told last; none on a wire that loses nothing */
	struct muster_look_silence silent[MUSTER_LOOK_SILENT_MAX];
	__u8 reserved2[8];
	struct muster_engine_counters counters;	/* local device: its engine's, live; copy: the NIC's */
	__u8 reserved3[56 * 8 - sizeof(struct muster_engine_counters)];
	struct muster_look_comm comms[MUSTER_LOOK_COMMS_MAX];
};

/* All that lies in the file. */
struct muster_look_file {
	struct muster_look look;
	struct muster_trace trace;
};

MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_look, counters) == 256, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_look, comms) == 704, "offset");
MUSTER_STATIC_ASSERT(__builtin_offsetof(struct muster_look_file, trace) % 64 == 0, "offset");

#endif /* MUSTER_LOOK_H */
