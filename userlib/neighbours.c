// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Neighbour collectives: what a rank has goes to the ranks that it has named, and to nobody
 * else. Who names whom is agreed upon once, by muster_comm_neighbours(); after that a rank
 * knows of the graph its own edges alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arith.h"
#include "calls.h"
#include "graph.h"
#include "turn.h"

/* ---- the graph ------------------------------------------------------------------- */

static int list_check(struct muster_comm *comm, const char *name, uint32_t nr, const uint32_t *ranks)
{
	if (nr && !ranks)
		return muster_fail(comm->job, -EFAULT, "neighbours: %s is NULL", name);
	if (nr > MUSTER_SCHEDULE_CHUNKS_MAX)
		return muster_fail(comm->job, -EOVERFLOW, "neighbours: %u %s are more than %d", nr,
				   name, MUSTER_SCHEDULE_CHUNKS_MAX);
	for (uint32_t i = 0; i < nr; i++)
		if (ranks[i] >= comm->size)
			return muster_fail(comm->job, -EINVAL, "neighbours: rank %u among %s, but the communicator has %u ranks, counted from 0",
					   ranks[i], name, comm->size);
	return 0;
}

static int ask(struct muster_comm *comm, const struct muster_call *call, void *in, void *out)
{
	struct muster_request *request;
	int err = muster_request_start(comm, call, in, out, &request);

	return err ? err : muster_wait(request);
}

/* Each rank tells its sources how often it has named them, and in which slots it takes theirs. */
static int slots_exchange(struct muster_comm *comm, uint32_t *words)
{
	const struct muster_call call = {
		.coll = MUSTER_COLL_ALLTOALL, .as = MUSTER_COLL_NEIGHBOURS, .type = MUSTER_U32,
		.count = 2ull * comm->size, .bytes = 2ull * comm->size * sizeof(*words),
		.parts = true,
	};

	return ask(comm, &call, words, words + 2 * (size_t)comm->size);
}

/* What all must know: whether there is a pair that does not agree, and how large the graph is. */
enum { WRONG_PAIR, MOST_RECEIVES, MOST_MESSAGES, WORDS };

static int verdict(struct muster_comm *comm, struct muster_graph *graph, uint32_t wrong)
{
	uint64_t words[WORDS] = {
		[WRONG_PAIR] = wrong < comm->size ? 1 + (uint64_t)comm->rank * comm->size + wrong : 0,
		[MOST_RECEIVES] = graph->nr_receives,
		[MOST_MESSAGES] = (uint64_t)graph->nr_receives + graph->nr_sends + graph->nr_selves,
	};
	const struct muster_call call = {
		.coll = MUSTER_COLL_ALLREDUCE, .as = MUSTER_COLL_NEIGHBOURS, .type = MUSTER_U64,
		.op = MUSTER_MAX, .count = WORDS, .bytes = sizeof(words), .in_place = true,
	};
	int err = ask(comm, &call, words, words);

	if (err)
		return err;
	graph->most_receives = words[MOST_RECEIVES];
	graph->most_messages = words[MOST_MESSAGES];
	if (!words[WRONG_PAIR])
		return 0;
	words[WRONG_PAIR]--;
	return muster_fail(comm->job, -EINVAL, "neighbours: rank %u does not name rank %u as a destination as often as that one names it as a source",
			   (uint32_t)(words[WRONG_PAIR] / comm->size),
			   (uint32_t)(words[WRONG_PAIR] % comm->size));
}

static int agree(struct muster_comm *comm, struct muster_graph *graph)
{
	uint32_t *words = calloc(4 * (size_t)comm->size, sizeof(*words));
	uint32_t wrong = 0;
	int err;

	if (!words)
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM,
							     "no memory for neighbours"));
	muster_graph_tell(graph, comm->rank, comm->size, words);
	err = slots_exchange(comm, words);
	if (!err)
		wrong = muster_graph_hear(graph, comm->size, words + 2 * (size_t)comm->size);
	free(words);
	return err ? err : verdict(comm, graph, wrong);
}

int muster_comm_neighbours(struct muster_comm *comm, uint32_t nr_sources, const uint32_t *sources,
			   uint32_t nr_destinations, const uint32_t *destinations)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *none = NULL;
	struct muster_graph *graph;
	int err = muster_comm_check(comm, &none);

	if (!err)
		err = list_check(comm, "sources", nr_sources, sources);
	if (!err)
		err = list_check(comm, "destinations", nr_destinations, destinations);
	if (err)
		return err;
	graph = muster_graph_new(comm->rank, nr_sources, sources, nr_destinations, destinations);
	if (!graph)
		return muster_comm_give_up(comm, muster_fail(comm->job, -ENOMEM,
							     "no memory for neighbours"));
	err = agree(comm, graph);
	if (err) {
		muster_graph_free(graph);
		return err;
	}
	muster_graph_free(comm->graph);
	comm->graph = graph;
	muster_cache_clear(comm);	/* what was made for the last one */
	return 0;
}

/* ---- blocks ------------------------------------------------------------------------ */

/* Of either side: lengths as a caller gives them, or equal ones. */
struct side {
	const char *name;
	struct muster_lengths lengths;
	uint64_t count;			/* of each block, where lengths has no counts, */
	uint64_t apart;			/* and elements from one to the next */
};

static int side_set(struct muster_comm *comm, const struct muster_call *call,
		    const struct side *side, uint32_t nr, const uint32_t *chunks,
		    struct muster_block *blocks)
{
	struct muster_block *given = comm->graph->given;
	int err = 0;

	memset(given, 0, comm->graph->chunks * sizeof(*given));
	if (side->name)
		err = muster_blocks_lie(comm, call, side->name, nr, &side->lengths, given);
	for (uint32_t i = 0; i < nr && !side->name; i++)
		given[i] = (struct muster_block){ .first = i * side->apart, .nr = side->count };
	for (uint32_t i = 0; i < nr && !err; i++)
		blocks[chunks[i]] = given[i];
	return err;
}

/* The caller's own blocks, cut as the graph's chunks. */
static int cut_set(struct muster_comm *comm, struct muster_call *call, const struct side *in,
		   const struct side *out)
{
	struct muster_graph *graph = comm->graph;
	struct muster_block *ins = graph->blocks, *outs = graph->blocks + graph->chunks;
	int err;

	memset(graph->blocks, 0, 2 * (size_t)graph->chunks * sizeof(*graph->blocks));
	graph->cut = (struct muster_cut){ .in = ins, .out = outs, .nr = graph->chunks };
	call->cut = &graph->cut;
	err = side_set(comm, call, out, graph->nr_sources, graph->source_chunks, outs);
	if (!err)
		err = side_set(comm, call, in, graph->nr_destinations, graph->destination_chunks,
			       ins);
	for (uint32_t i = 0; i < graph->nr_selves && !err; i++)
		err = muster_own_check(comm, call, ins[i].nr, outs[i].nr);
	/* Where all ranks have the same length they know it, even those without neighbours. */
	graph->cut.longest = out->name ? muster_cut_longest(&graph->cut) : out->count;
	return err;
}

/* ---- starting ----------------------------------------------------------------------- */

/* One rank: all neighbours are itself. */
static int alone(struct muster_comm *comm, struct muster_call *call, const void *in, void *out,
		 struct muster_request **request)
{
	size_t size = muster_dtype_size((uint8_t)call->type);
	const struct muster_cut *cut = call->cut;
	struct muster_aside *aside = muster_aside_new(comm, 0, cut->nr);
	int err;

	if (!aside)
		return -ENOMEM;
	for (uint32_t i = 0; i < cut->nr; i++)
		if (cut->out[i].nr)
			aside->pieces[aside->nr++] = (struct muster_piece){
				.to = (uint8_t *)out + cut->out[i].first * size,
				.from = (const uint8_t *)in + cut->in[i].first * size,
				.bytes = cut->out[i].nr * size,
			};
	call->bytes = 0;
	err = muster_request_start(comm, call, NULL, NULL, request);
	return muster_aside_give(aside, err, err ? NULL : *request);
}

/* in and out are where the first element of what a rank has and needs lies. */
static int begin(struct muster_comm *comm, struct muster_call *call, const void *in, void *out,
		 struct muster_request **request)
{
	if (!muster_call_hides(call))
		return muster_request_start(comm, call, in, out, request);
	return muster_lengths_begin(comm, call, in, out, call->cut->longest, NULL, request);
}

static int start(struct muster_comm *comm, struct muster_call call, const void *in,
		 const struct side *in_side, void *out, const struct side *out_side,
		 struct muster_request **request)
{
	struct muster_span has, needs;
	int err;

	call.coll = MUSTER_COLL_NEIGHBOURS;
	call.parts = true;
	err = cut_set(comm, &call, in_side, out_side);
	if (err)
		return err;
	muster_cut_count(&call);
	has = muster_call_has(comm, &call);
	needs = muster_call_needs(comm, &call);
	err = muster_cut_buffers_check(comm, &call, in, &has, out, &needs);
	if (err)
		return err;
	if (has.bytes && needs.bytes)
		err = muster_apart_check(comm, &call, (const uint8_t *)in + has.first, has.bytes,
					 (uint8_t *)out + needs.first, needs.bytes);
	if (err)
		return err;
	if (comm->size == 1)
		return alone(comm, &call, in, out, request);
	return begin(comm, &call, (const uint8_t *)in + has.first, (uint8_t *)out + needs.first,
		     request);
}

/* What does not concern blocks: call->count is that of one, if they are equal. */
static int call_check(struct muster_comm **on, struct muster_call *call, struct muster_request **request)
{
	int err = muster_call_check(on, call, request);
	struct muster_comm *comm = *on;
	uint64_t count = call->count;

	if (!err && !comm->graph)
		err = muster_fail(comm->job, -EINVAL, "%s: the communicator has no neighbours; muster_comm_neighbours() names them",
				  muster_coll_name(call->as));
	if (!err && __builtin_mul_overflow(count, comm->graph->chunks, &call->count))
		call->count = UINT64_MAX;	/* which is refused */
	if (!err)
		err = muster_type_check(comm, call);
	call->count = count;
	return err;
}

int muster_neighbour_allgather_start(struct muster_comm *comm, const void *in, void *out,
				     uint64_t count, enum muster_type type,
				     struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.as = MUSTER_COLL_NEIGHBOUR_ALLGATHER, .type = type, .count = count,
	};
	const struct side same = { .count = count }, each = { .count = count, .apart = count };
	int err = call_check(&comm, &call, request);

	return err ? err : start(comm, call, in, &same, out, &each, request);
}

int muster_neighbour_alltoall_start(struct muster_comm *comm, const void *in, void *out,
				    uint64_t count, enum muster_type type,
				    struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.as = MUSTER_COLL_NEIGHBOUR_ALLTOALL, .type = type, .count = count,
	};
	const struct side each = { .count = count, .apart = count };
	int err = call_check(&comm, &call, request);

	return err ? err : start(comm, call, in, &each, out, &each, request);
}

int muster_neighbour_allgatherv_start(struct muster_comm *comm, const void *in, uint64_t count,
				      void *out, const uint64_t *counts, const uint64_t *displs,
				      enum muster_type type, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = {
		.as = MUSTER_COLL_NEIGHBOUR_ALLGATHERV, .type = type, .count = count,
	};
	const struct side same = { .count = count };
	const struct side outs = { .name = "counts", .lengths = { counts, displs, NULL } };
	int err = call_check(&comm, &call, request);

	return err ? err : start(comm, call, in, &same, out, &outs, request);
}

int muster_neighbour_alltoallv_start(struct muster_comm *comm, const void *in,
				     const uint64_t *in_counts, const uint64_t *in_displs, void *out,
				     const uint64_t *out_counts, const uint64_t *out_displs,
				     enum muster_type type, struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = { .as = MUSTER_COLL_NEIGHBOUR_ALLTOALLV, .type = type };
	const struct side ins = { .name = "in_counts", .lengths = { in_counts, in_displs, NULL } };
	const struct side outs = { .name = "out_counts",
				   .lengths = { out_counts, out_displs, NULL } };
	int err = call_check(&comm, &call, request);

	return err ? err : start(comm, call, in, &ins, out, &outs, request);
}

int muster_neighbour_alltoallw_start(struct muster_comm *comm, const void *in,
				     const uint64_t *in_counts, const uint64_t *in_displs,
				     const enum muster_type *in_types, void *out,
				     const uint64_t *out_counts, const uint64_t *out_displs,
				     const enum muster_type *out_types,
				     struct muster_request **request)
{
	MUSTER_TURN_OF(comm);
	struct muster_call call = { .as = MUSTER_COLL_NEIGHBOUR_ALLTOALLW, .type = MUSTER_U8 };
	const struct side ins = { .name = "in_counts",
				  .lengths = { in_counts, in_displs, in_types } };
	const struct side outs = { .name = "out_counts",
				   .lengths = { out_counts, out_displs, out_types } };
	int err = call_check(&comm, &call, request);

	if (!err)
		err = muster_types_check(comm, call.as, comm->graph->nr_destinations, in_types,
					 "in_types");
	if (!err)
		err = muster_types_check(comm, call.as, comm->graph->nr_sources, out_types,
					 "out_types");
	return err ? err : start(comm, call, in, &ins, out, &outs, request);
}

/* ---- blocking -------------------------------------------------------------------------- */

int muster_neighbour_allgather(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			       enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_neighbour_allgather_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_neighbour_alltoall(struct muster_comm *comm, const void *in, void *out, uint64_t count,
			      enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_neighbour_alltoall_start(comm, in, out, count, type, &request);

	return err ? err : muster_wait(request);
}

int muster_neighbour_allgatherv(struct muster_comm *comm, const void *in, uint64_t count, void *out,
				const uint64_t *counts, const uint64_t *displs,
				enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_neighbour_allgatherv_start(comm, in, count, out, counts, displs, type,
						    &request);

	return err ? err : muster_wait(request);
}

int muster_neighbour_alltoallv(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			       const uint64_t *in_displs, void *out, const uint64_t *out_counts,
			       const uint64_t *out_displs, enum muster_type type)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_neighbour_alltoallv_start(comm, in, in_counts, in_displs, out, out_counts,
						   out_displs, type, &request);

	return err ? err : muster_wait(request);
}

int muster_neighbour_alltoallw(struct muster_comm *comm, const void *in, const uint64_t *in_counts,
			       const uint64_t *in_displs, const enum muster_type *in_types,
			       void *out, const uint64_t *out_counts, const uint64_t *out_displs,
			       const enum muster_type *out_types)
{
	MUSTER_TURN_OF(comm);
	struct muster_request *request;
	int err = muster_neighbour_alltoallw_start(comm, in, in_counts, in_displs, in_types, out,
						   out_counts, out_displs, out_types, &request);

	return err ? err : muster_wait(request);
}
