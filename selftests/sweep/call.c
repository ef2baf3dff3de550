// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The calls of muster.h, each in its three forms, with the lengths that a shape says.
 */
#include "sweep.h"

/* What the forms with lengths take. */
struct lists {
	uint64_t counts[SWEEP_RANKS_MAX], displs[SWEEP_RANKS_MAX];
	enum muster_type types[SWEEP_RANKS_MAX];
};

struct call {
	struct muster_comm *comm;
	const struct sweep_case *c;
	const struct sweep_shape *shape;
	enum muster_type type;
	enum muster_op op;
	void *in, *out;
	struct lists given, got;
	struct muster_request **request;
};

#define CALL(name, ...)								\
	(call->c->form == SWEEP_BLOCKING ? muster_##name(__VA_ARGS__) :		\
	 call->c->form == SWEEP_STARTED ? muster_##name##_start(__VA_ARGS__, call->request) : \
					  muster_##name##_init(__VA_ARGS__, call->request))

static int call_whole(const struct call *call)
{
	struct muster_comm *comm = call->comm;
	uint64_t count = call->c->count;
	uint32_t root = call->shape->root;

	switch (call->c->coll) {
	case SWEEP_BARRIER:
		return CALL(barrier, comm);
	case SWEEP_BROADCAST:
		return CALL(broadcast, comm, call->out, count, call->type, root);
	case SWEEP_REDUCE:
		return CALL(reduce, comm, call->in, call->out, count, call->type, call->op, root);
	case SWEEP_ALLREDUCE:
		return CALL(allreduce, comm, call->in, call->out, count, call->type, call->op);
	case SWEEP_ALLGATHER:
		return CALL(allgather, comm, call->in, call->out, count, call->type);
	case SWEEP_REDUCE_SCATTER_BLOCK:
		return CALL(reduce_scatter_block, comm, call->in, call->out, count, call->type,
			    call->op);
	case SWEEP_ALLTOALL:
		return CALL(alltoall, comm, call->in, call->out, count, call->type);
	case SWEEP_GATHER:
		return CALL(gather, comm, call->in, call->out, count, call->type, root);
	case SWEEP_SCATTER:
		return CALL(scatter, comm, call->in, call->out, count, call->type, root);
	case SWEEP_SCAN:
		return CALL(scan, comm, call->in, call->out, count, call->type, call->op);
	default:
		return CALL(exscan, comm, call->in, call->out, count, call->type, call->op);
	}
}

static int call_cut(const struct call *call)
{
	const struct lists *in = &call->given, *out = &call->got;
	const uint64_t *in_displs = call->shape->spread ? in->displs : NULL;
	const uint64_t *out_displs = call->shape->spread ? out->displs : NULL;
	struct muster_comm *comm = call->comm;
	uint32_t root = call->shape->root;

	switch (call->c->coll) {
	case SWEEP_ALLGATHERV:
		return CALL(allgatherv, comm, call->in, call->out, out->counts, out_displs,
			    call->type);
	case SWEEP_REDUCE_SCATTER:
		return CALL(reduce_scatter, comm, call->in, call->out, in->counts, call->type,
			    call->op);
	case SWEEP_GATHERV:
		return CALL(gatherv, comm, call->in, in->counts[0], call->out, out->counts,
			    out_displs, call->type, root);
	case SWEEP_SCATTERV:
		return CALL(scatterv, comm, call->in, in->counts, in_displs, call->out,
			    out->counts[0], call->type, root);
	case SWEEP_ALLTOALLV:
		return CALL(alltoallv, comm, call->in, in->counts, in_displs, call->out,
			    out->counts, out_displs, call->type);
	default:
		return CALL(alltoallw, comm, call->in, in->counts, in_displs, in->types, call->out,
			    out->counts, out_displs, out->types);
	}
}

static int call_neighbours(const struct call *call)
{
	const struct lists *in = &call->given, *out = &call->got;
	const uint64_t *in_displs = call->shape->spread ? in->displs : NULL;
	const uint64_t *out_displs = call->shape->spread ? out->displs : NULL;
	struct muster_comm *comm = call->comm;

	switch (call->c->coll) {
	case SWEEP_NEIGHBOUR_ALLGATHER:
		return CALL(neighbour_allgather, comm, call->in, call->out, call->c->count,
			    call->type);
	case SWEEP_NEIGHBOUR_ALLTOALL:
		return CALL(neighbour_alltoall, comm, call->in, call->out, call->c->count,
			    call->type);
	case SWEEP_NEIGHBOUR_ALLGATHERV:
		return CALL(neighbour_allgatherv, comm, call->in, in->counts[0], call->out,
			    out->counts, out_displs, call->type);
	case SWEEP_NEIGHBOUR_ALLTOALLV:
		return CALL(neighbour_alltoallv, comm, call->in, in->counts, in_displs, call->out,
			    out->counts, out_displs, call->type);
	default:
		return CALL(neighbour_alltoallw, comm, call->in, in->counts, in_displs, in->types,
			    call->out, out->counts, out_displs, out->types);
	}
}

/* Types of blocks may differ: every other one is said in bytes, on the receiver's side. */
static void list(const struct sweep_case *c, const struct sweep_side *side, bool in,
		 struct lists *lists)
{
	bool typed = c->coll == SWEEP_ALLTOALLW || c->coll == SWEEP_NEIGHBOUR_ALLTOALLW;

	for (uint32_t k = 0; k < side->nr; k++) {
		bool bytes = typed && !in && k % 2;

		lists->types[k] = bytes ? MUSTER_U8 : c->type->type;
		lists->counts[k] = side->blocks[k].count * (bytes ? c->type->bytes : 1);
		lists->displs[k] = side->blocks[k].displ * (typed ? c->type->bytes : 1);
	}
}

int sweep_call(struct muster_comm *comm, const struct sweep_case *c, enum muster_op op,
	       const struct sweep_shape *shape, void *in, void *out, struct muster_request **request)
{
	struct call call = {
		.comm = comm, .c = c, .shape = shape, .op = op, .in = in, .out = out,
		.type = c->type->type, .request = request,
	};

	if (c->coll < SWEEP_ALLGATHERV)
		return call_whole(&call);
	list(c, &shape->in, true, &call.given);
	list(c, &shape->out, false, &call.got);
	return c->coll < SWEEP_NEIGHBOUR_ALLGATHER ? call_cut(&call) : call_neighbours(&call);
}
