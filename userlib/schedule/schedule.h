/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The schedule: a collective algorithm as data. Ranks, chunks, steps, and
 * transfers (chunk, from, to, step, copy or reduce), as in SCCL (section 3.2
 * there). Generators make schedules, files hold them, the checker proves them,
 * the lowering turns them into descriptor sequences, and the host path
 * interprets the very same thing. Pure: no I/O but on the caller's streams.
 *
 * All transfers of a step read what was there before the step. What a rank
 * receives in one step it combines in the order in which the transfers are
 * listed. A chunk is 1/chunks of the message, cut by muster_range_bytes(): evenly, and where ranks
 * own chunks, each rank's part by itself; or into blocks of given lengths.
 */
#ifndef MUSTER_SCHEDULE_H
#define MUSTER_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "muster_desc.h"

struct muster_address;

enum muster_coll {
	MUSTER_COLL_BARRIER = 1,
	MUSTER_COLL_BROADCAST = 2,
	MUSTER_COLL_REDUCE = 3,
	MUSTER_COLL_ALLREDUCE = 4,
	MUSTER_COLL_REDUCE_SCATTER = 5,
	MUSTER_COLL_ALLGATHER = 6,
	MUSTER_COLL_GATHER = 7,
	MUSTER_COLL_SCATTER = 8,
	MUSTER_COLL_ALLTOALL = 9,
	MUSTER_COLL_SCAN = 10,		/* inclusive */
	MUSTER_COLL_CUSTOM = 11,	/* by the schedule's own places */
	MUSTER_COLL_EXSCAN = 12,	/* rank 0 gets nothing */
	MUSTER_COLL_END,		/* one more than the last that schedules are of */

	/* Along the edges of a graph, by schedules of one rank's transfers alone; the last for all. */
	MUSTER_COLL_NEIGHBOUR_ALLGATHER = 28,
	MUSTER_COLL_NEIGHBOUR_ALLTOALL = 29,
	MUSTER_COLL_NEIGHBOURS = 30,

	/* Calls whose blocks have lengths of their own; they run the schedules of the others. */
	MUSTER_COLL_ALLGATHERV = 32,
	MUSTER_COLL_REDUCE_SCATTERV = 33,	/* MPI's reduce_scatter */
	MUSTER_COLL_GATHERV = 34,	/* of these not all ranks know all lengths */
	MUSTER_COLL_SCATTERV = 35,
	MUSTER_COLL_ALLTOALLV = 36,
	MUSTER_COLL_ALLTOALLW = 37,

	MUSTER_COLL_NEIGHBOUR_ALLGATHERV = 38,
	MUSTER_COLL_NEIGHBOUR_ALLTOALLV = 39,
	MUSTER_COLL_NEIGHBOUR_ALLTOALLW = 40,

	MUSTER_COLL_EXACT_SUM = 41,	/* of whatever collective: what it spans, then its limbs */
};

/* Which ranks a chunk concerns. Of G chunks rank r owns those from r * G / ranks on. */
enum muster_who {
	MUSTER_WHO_ALL,
	MUSTER_WHO_ROOT,
	MUSTER_WHO_OWNER,
	MUSTER_WHO_LATER,		/* all but rank 0 */
	MUSTER_WHO_PARTNER,		/* rank j, if the chunk is in the j-th share of its owner */
	MUSTER_WHO_PLACES,		/* as the schedule says itself */
};

/* What a rank has to do with a chunk, in a custom schedule. */
enum muster_place {
	MUSTER_PLACE_HAS = 1,		/* at the start: the same as others who have it, or, */
	MUSTER_PLACE_OWN = 2,		/* with this, a contribution of its own */
	MUSTER_PLACE_NEEDS = 4,
};

/* What a collective means; there is no more to it (collectives.c has the table). */
struct muster_coll_row {
	const char *name;
	enum muster_who has;		/* contribute to a chunk, at the start */
	enum muster_who needs;		/* must have the combination of them all, at the end */
	bool combines;			/* else a chunk has one contribution, which travels */
	bool has_data;			/* else it only matters who has heard of whom */
	bool prefix;			/* a rank's result is of the ranks before and, if rank 0 */
					/* has one, too, of itself */
};

enum muster_schedule_limit {
	MUSTER_SCHEDULE_RANKS_MAX = 65536,
	MUSTER_SCHEDULE_CHUNKS_MAX = 65536,
	MUSTER_SCHEDULE_STEPS_MAX = 1 << 20,
	MUSTER_SCHEDULE_TRANSFERS_MAX = 1 << 26,
	MUSTER_SCHEDULE_NAME_MAX = 31,
	MUSTER_SCHEDULE_PLACES_MAX = 1 << 24,
	MUSTER_STAGES_TELL = MUSTER_SEQ_QUEUE_MAX / 2,	/* of so many one tells that it has ended */
};

struct muster_transfer {
	uint32_t step;
	uint32_t chunk;
	uint32_t from;
	uint32_t to;
	bool reduce;		/* combine into what `to` has; else replace it */
};

struct muster_generator;

/* How a schedule is lowered (Documentation/schedule.md, 5), and run; all ranks alike. Zero: as suits. */
struct muster_variant {
	uint32_t pulse_bytes;	/* of one pulse at most, a multiple of 64; 0: what suits */
	bool memory;		/* payloads are in memory, never in descriptors */
	bool barrier;		/* a step begins at a rank when it has ended the one before */
	bool push;		/* peers are sent what is in the caller's buffers, never read it */
	bool host;		/* by the host path, unless that is not allowed */
};

/*
 * What a schedule of MUSTER_COLL_NEIGHBOURS says beside its transfers, which are one rank's own,
 * all in one step. Its chunks are blocks, and have numbers of that rank's own.
 */
struct muster_own {
	uint32_t needed;		/* chunks below this come to the rank, or stay there */
	uint64_t most_receives;		/* of any rank: all know, as all cut into stages alike */
	uint64_t most_messages;
	uint32_t slots[];		/* of each transfer, at the receiver */
};

struct muster_schedule {
	/* Says what each rank does (part.h); NULL: all transfers are listed. */
	const struct muster_generator *generator;
	char name[MUSTER_SCHEDULE_NAME_MAX + 1];
	enum muster_coll coll;
	uint32_t ranks;
	uint32_t chunks;
	uint32_t steps;
	uint32_t root;		/* where there is one (muster_coll_rooted()); else 0 */
	uint32_t nr_transfers;
	struct muster_transfer *transfers;	/* by step, then as listed */
	struct muster_variant variant;
	uint8_t *places;	/* custom: enum muster_place, by chunk and rank; else NULL */
	struct muster_own *own;	/* neighbours; else NULL */
};

/** muster_coll_row() - what a collective means; NULL: there is none of this number. */
const struct muster_coll_row *muster_coll_row(enum muster_coll coll);

const char *muster_coll_name(enum muster_coll coll);
/** muster_coll_rooted() - whether one rank is its root. */
bool muster_coll_rooted(enum muster_coll coll);

/** muster_coll_chunks_unit() - the chunks of its schedules are a multiple of this. */
uint64_t muster_coll_chunks_unit(enum muster_coll coll, uint32_t ranks);

/** muster_coll_has() - whether a rank contributes to a chunk; of a schedule of right form. */
bool muster_coll_has(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank);

/** muster_coll_origin() - whose contribution a rank has that has one: of the same, the first's. */
uint32_t muster_coll_origin(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank);

/** muster_coll_needs() - whether a rank must have a chunk's result. */
bool muster_coll_needs(const struct muster_schedule *schedule, uint32_t chunk, uint32_t rank);

/** muster_coll_wants() - whether a rank has a result. */
bool muster_coll_wants(enum muster_coll coll, uint32_t rank, uint32_t root);

/** muster_coll_in_place() - whether it runs in place alone: who has what says only a file. */
bool muster_coll_in_place(enum muster_coll coll);

void muster_schedule_free(struct muster_schedule *schedule);

/**
 * muster_schedule_hash() - a digest, the same on every rank: of everything but the name,
 * or, where nothing is listed, of the generator's name and version and its parameters.
 */
uint64_t muster_schedule_hash(const struct muster_schedule *schedule);

/**
 * muster_schedule_read() - read the text form (Documentation/schedule.md).
 * @why: gets "line N: what is wrong" on failure.
 * Return: 0; -EINVAL; -EIO; -ENOMEM; nothing is allocated on failure.
 */
int muster_schedule_read(FILE *in, struct muster_schedule **schedule, char *why, size_t why_len);

/** muster_schedule_write() - write the text form; reading it gives an equal schedule. 0; -EIO. */
int muster_schedule_write(const struct muster_schedule *schedule, FILE *out);

/** muster_schedule_name() - the name of an algorithm, counted from 0; NULL: there are not so many. */
const char *muster_schedule_name(uint32_t nr);

/**
 * muster_schedule_by_rank() - take an algorithm by name; nothing is listed.
 * @name: one of Documentation/schedule.md, section 3; NULL: the one that suits coll,
 *	ranks and bytes.
 *
 * It can be lowered, run and freed; whoever looks at transfers needs
 * muster_schedule_generate().
 * Return: 0; -EINVAL (unknown name, root or rank count); -EOPNOTSUPP (this name
 * does not do this collective); -ENOMEM. why as above.
 */
int muster_schedule_by_rank(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root,
			    uint64_t bytes, struct muster_schedule **schedule, char *why,
			    size_t why_len);

/** muster_schedule_generate() - the same with the transfers of all ranks listed. */
int muster_schedule_generate(const char *name, enum muster_coll coll, uint32_t ranks,
			     uint32_t root, uint64_t bytes, struct muster_schedule **schedule,
			     char *why, size_t why_len);

/* Parts of a schedule of ranks that sit in nodes, all of the same number, neighbours together. All are listed. */
struct muster_nest {
	const struct muster_schedule *up;	/* a node's reduce; NULL for a broadcast */
	const struct muster_schedule *across;	/* a rank is a node's leader here */
	const struct muster_schedule *down;	/* a node's broadcast, with the root of up; NULL for a reduce */
};

/**
 * muster_schedule_nest() - inside of each node, across the nodes, and inside again.
 *
 * The collective is that of the part across: barrier, broadcast, reduce or allreduce; a node's leader, and
 * its root in the root's node, is the root of the parts inside.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_schedule_nest(const struct muster_nest *nest, struct muster_schedule **schedule, char *why,
			 size_t why_len);

/* What a rank has come to is combined into what another one has. */
struct muster_give {
	uint16_t from, to;
};

/**
 * muster_schedule_order() - a reduce, allreduce or reduce-scatter whose order of combination is given.
 * @gives: ranks - 1, which one after the other come to the result; each rank but one gives once, and then
 *	takes no more. Those that do not depend on each other are done at once.
 *
 * In an allreduce the result goes back the same ways; of a reduce-scatter each block goes them and then to its
 * rank. All are listed.
 * Return: 0; -EINVAL with why; -ENOMEM.
 */
int muster_schedule_order(const char *name, enum muster_coll coll, uint32_t ranks, uint32_t root,
			  const struct muster_give *gives, struct muster_schedule **schedule, char *why,
			  size_t why_len);

/**
 * muster_schedule_check() - prove by symbolic execution that it computes its collective.
 *
 * Each contribution is counted exactly once, nothing is sent that is not there,
 * every rank that must have the result has it, and all of them have the same
 * expression, up to op(a, b) = op(b, a): the same bits.
 * Return: 0; -EINVAL with why naming step, ranks and chunk; -ENOMEM.
 */
int muster_schedule_check(const struct muster_schedule *schedule, char *why, size_t why_len);

/** muster_chunk_range() - elements [*first, *first + *nr) of count elements, cut evenly. */
void muster_chunk_range(uint64_t count, uint32_t chunks, uint32_t chunk, uint64_t *first,
			uint64_t *nr);

/* Elements [first, first + nr) of a buffer. */
struct muster_block {
	uint64_t first;
	uint64_t nr;
};

/* A message with a block for each rank, of any lengths. */
struct muster_cut {
	const struct muster_block *in;	/* where what a rank has lies in its buffer, by rank */
	const struct muster_block *out;	/* and where all else does; the same, or in alltoall */
	uint32_t nr;
	uint64_t longest;		/* elements; all ranks have the same */
};

/**
 * muster_blocks_range() - chunks [chunk, chunk + nr_chunks), if each block is cut into so many.
 *
 * Those of several blocks lie behind each other.
 */
void muster_blocks_range(const struct muster_block *blocks, uint32_t each, uint32_t chunk,
			 uint32_t nr_chunks, uint64_t *first, uint64_t *nr);

/**
 * muster_range_bytes() - where chunks of a message lie, in bytes.
 * @count: elements of the message.
 * @blocks: by rank, how it is cut; NULL: evenly.
 */
void muster_range_bytes(const struct muster_schedule *schedule, uint64_t count, uint8_t type,
			const struct muster_block *blocks, uint32_t chunk, uint32_t nr_chunks,
			uint64_t *first, uint64_t *bytes);

/** muster_schedule_each() - into how many chunks each block is cut. */
uint32_t muster_schedule_each(const struct muster_schedule *schedule);

/** muster_blocks_hash() - a digest of their lengths, from that of something else. */
uint64_t muster_blocks_hash(const struct muster_block *blocks, uint32_t nr, uint64_t hash);

/* The memory that a program's ranges refer to until the library puts in addresses and keys. */
enum muster_space {
	MUSTER_SPACE_NONE = 0,
	MUSTER_SPACE_IN = 1,	/* the caller's contribution, never written */
	MUSTER_SPACE_OUT = 2,	/* result, or what stands for it where there is none */
	MUSTER_SPACE_SCRATCH = 3, /* beside it: what comes while that in OUT is being sent */
	MUSTER_SPACE_PART = 4,	/* the caller's place for what it needs of the message */
};

struct muster_lower_params {
	uint32_t rank;
	uint64_t count;		/* elements */
	const struct muster_cut *cut;	/* NULL: cut evenly */
	uint8_t type;		/* enum muster_dtype */
	uint8_t op;
	uint8_t job;
	uint32_t context;
	const struct muster_address *addresses;	/* by rank of the job (dev.h) */
	const uint32_t *ranks;	/* of the job, by rank; NULL: the same */
	bool in_place;		/* input is in OUT already */
	bool parts;		/* buffers hold no more of the message than the rank has and needs */
	uint32_t pulse_bytes;	/* of one pulse of what is passed on, at most; 0: as links like it */
	bool forwards;		/* what is sent on goes as it comes (MUSTER_DESC_FORWARD) */
	bool idles;		/* one descriptor ends stages in which the rank has nothing to do: see below */
};

/*
 * One rank's descriptors for one schedule, as a template: load_key and store_key
 * hold an enum muster_space, the addresses offsets into it. Stages are separate
 * sequences, one after the other in descs.
 */
struct muster_program {
	uint32_t nr_stages;
	uint32_t nr_descs;
	uint32_t *stage_first;	/* nr_stages + 1 indices into descs; idle stages may have none (idles) */
	struct muster_desc *descs;
	uint32_t (*sources)[MUSTER_SLOTS_MAX];	/* of each stage: who fills its slots */
	bool is_inline;		/* MP */
	bool is_small;		/* and no more than a descriptor brings: with load_key the caller's input goes to data[] */
	uint64_t bytes;		/* of the whole message */
	uint64_t scratch_bytes;	/* of MUSTER_SPACE_SCRATCH; 0: unused */
	uint64_t out_bytes;	/* of MUSTER_SPACE_OUT, up to the last that is used */
};

/**
 * muster_schedule_lower() - one rank's program.
 *
 * Cuts the schedule into stages at the same steps on every rank, so that none
 * needs more than MUSTER_SLOTS_MAX slots or MUSTER_SEQ_DESCS_MAX descriptors, and
 * slices large chunks into pulses. Messages of one chunk and at most
 * MUSTER_MP_MAX bytes become MP descriptors.
 * With idles the first of such stages has their descriptor and the others have none, up to a stage whose
 * number is a multiple of MUSTER_STAGES_TELL.
 * Offsets are those of the whole message in every space. Of IN a rank reads only what it
 * has at the start. OUT is the whole message, unless with parts ranks need only what they
 * own: then that goes to PART, and OUT is what passes through.
 * Return: 0; -E2BIG with why naming the limit and the step; -ENOMEM.
 */
int muster_schedule_lower(const struct muster_schedule *schedule,
			  const struct muster_lower_params *params,
			  struct muster_program **program, char *why, size_t why_len);

void muster_program_free(struct muster_program *program);

/**
 * muster_signature() - what all ranks of one operation must share.
 * @hash: muster_schedule_hash() of the schedule that they run.
 *
 * Lowered descriptors carry it; the host path puts the same into its packets.
 */
struct muster_signature muster_signature(enum muster_coll coll, uint8_t type, uint8_t op,
					 uint32_t root, uint64_t count, uint64_t hash);

bool muster_signatures_agree(const struct muster_signature *a, const struct muster_signature *b);

#endif /* MUSTER_SCHEDULE_H */
