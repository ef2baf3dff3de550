// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * coll/muster: a component of Open MPI 4.1 before the same core as libmuster-mpi. Open MPI calls it where
 * it calls any of its own: for Fortran and for itself, too, and nothing is preloaded. It has the blocking
 * collectives. What is not offloaded goes to the component that a communicator had chosen before.
 *
 * MPI_Init is over when the first collective comes. The first of a communicator of all ranks joins a job, by
 * one thread's at a time. Members of another one agree at its first whether all have joined by then.
 */
#include "../shim.h"

#include <errno.h>
#include <stdlib.h>

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "opal/runtime/opal_progress.h"

#define UNWRAP(...)	__VA_ARGS__

#define EVEN	const void *in, int in_count, MPI_Datatype in_type, \
		void *out, int out_count, MPI_Datatype out_type
#define EVEN_ARGS	in, in_count, in_type, out, out_count, out_type
#define OUT_V	const void *in, int in_count, MPI_Datatype in_type, \
		void *out, const int *out_counts, const int *out_displs, MPI_Datatype out_type
#define OUT_V_ARGS	in, in_count, in_type, out, out_counts, out_displs, out_type
#define BOTH_V	const void *in, const int *in_counts, const int *in_displs, MPI_Datatype in_type, \
		void *out, const int *out_counts, const int *out_displs, MPI_Datatype out_type
#define BOTH_V_ARGS	in, in_counts, in_displs, in_type, out, out_counts, out_displs, out_type
#define BOTH_W(displ)	const void *in, const int *in_counts, const displ *in_displs, \
		MPI_Datatype const *in_types, void *out, const int *out_counts, \
		const displ *out_displs, MPI_Datatype const *out_types
#define BOTH_W_ARGS	in, in_counts, in_displs, in_types, out, out_counts, out_displs, out_types
#define REDUCTION	const void *in, void *out, int count, MPI_Datatype type, MPI_Op op
#define REDUCTION_ARGS	in, out, count, type, op

/* Open MPI's name, MPI's, parameters before the communicator, and how they are passed on. */
#define WITH_DATA(X)							\
	X(bcast, Bcast, (void *out, int count, MPI_Datatype type, int root), (out, count, type, root))	\
	X(reduce, Reduce, (REDUCTION, int root), (REDUCTION_ARGS, root))	\
	X(allreduce, Allreduce, (REDUCTION), (REDUCTION_ARGS))		\
	X(gather, Gather, (EVEN, int root), (EVEN_ARGS, root))		\
	X(gatherv, Gatherv, (OUT_V, int root), (OUT_V_ARGS, root))	\
	X(scatter, Scatter, (EVEN, int root), (EVEN_ARGS, root))	\
	X(scatterv, Scatterv, (const void *in, const int *counts, const int *displs, MPI_Datatype in_type, \
	  void *out, int out_count, MPI_Datatype out_type, int root),	\
	  (in, counts, displs, in_type, out, out_count, out_type, root))	\
	X(allgather, Allgather, (EVEN), (EVEN_ARGS))			\
	X(allgatherv, Allgatherv, (OUT_V), (OUT_V_ARGS))		\
	X(alltoall, Alltoall, (EVEN), (EVEN_ARGS))			\
	X(alltoallv, Alltoallv, (BOTH_V), (BOTH_V_ARGS))		\
	X(alltoallw, Alltoallw, (BOTH_W(int)), (BOTH_W_ARGS))		\
	X(reduce_scatter, Reduce_scatter, (const void *in, void *out, const int *counts, MPI_Datatype type, \
	  MPI_Op op), (in, out, counts, type, op))			\
	X(reduce_scatter_block, Reduce_scatter_block, (REDUCTION), (REDUCTION_ARGS))	\
	X(scan, Scan, (REDUCTION), (REDUCTION_ARGS))			\
	X(exscan, Exscan, (REDUCTION), (REDUCTION_ARGS))		\
	X(neighbor_allgather, Neighbor_allgather, (EVEN), (EVEN_ARGS))	\
	X(neighbor_allgatherv, Neighbor_allgatherv, (OUT_V), (OUT_V_ARGS))	\
	X(neighbor_alltoall, Neighbor_alltoall, (EVEN), (EVEN_ARGS))	\
	X(neighbor_alltoallv, Neighbor_alltoallv, (BOTH_V), (BOTH_V_ARGS))	\
	X(neighbor_alltoallw, Neighbor_alltoallw, (BOTH_W(MPI_Aint)), (BOTH_W_ARGS))

/* ---- modules: one of each communicator ------------------------------------------------------- */

typedef struct module {		/* Open MPI's classes are of one word */
	mca_coll_base_module_t base;
	mca_coll_base_comm_coll_t before;	/* what the communicator had chosen */
	bool entered;				/* its first collective has come; and */
	bool offloads;				/* by then all its members had joined, or found out that they cannot */
} module_t;

static void construct(module_t *module)
{
	module->entered = module->offloads = false;
}

static OBJ_CLASS_INSTANCE(module_t, mca_coll_base_module_t, construct, NULL);

static atomic_int joined;	/* or tried to */

/* While it is this one's turn, all have joined or none. */
static bool join_by(MPI_Comm comm)
{
	const struct muster_mpi_members all = { (uint32_t)ompi_comm_size(comm), NULL };
	int err = muster_mpi_take_turn(comm, ompi_comm_rank(comm), &all);

	if (err)
		return err == -ECONNRESET;	/* all had joined: to hear of the dead, not wait for them */
	if (!atomic_load(&joined)) {
		muster_mpi_join(comm);
		atomic_store(&joined, 1);
	}
	muster_mpi_end_turn();
	return true;
}

static bool is_of_all(MPI_Comm comm)
{
	int same;

	return !PMPI_Comm_compare(comm, MPI_COMM_WORLD, &same) && (same == MPI_IDENT || same == MPI_CONGRUENT);
}

static bool is_running(void)
{
	int began = 0, over = 0;

	PMPI_Initialized(&began);
	PMPI_Finalized(&over);
	return began && !over;
}

static bool all_have_joined(MPI_Comm comm)
{
	int mine = atomic_load(&joined), all = 0;

	return !muster_mpi_beneath.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) && all;
}

static bool offloads(mca_coll_base_module_t *base, MPI_Comm comm)
{
	struct module *module = (struct module *)base;

	if (module->entered || !is_running())
		return module->offloads && !muster_mpi.left;
	module->entered = true;
	module->offloads = is_of_all(comm) ? join_by(comm) : all_have_joined(comm);
	return module->offloads && !muster_mpi.left;
}

/* ---- collectives: as Open MPI calls them, and those before us as the core does ------------------ */

#define COLLECTIVE(lower, name, parameters, arguments)			\
	static int on_##lower(UNWRAP parameters, MPI_Comm comm, mca_coll_base_module_t *base)	\
	{								\
		const mca_coll_base_comm_coll_t *before = &((struct module *)base)->before;	\
									\
		if (offloads(base, comm))				\
			return PMPI_##name(UNWRAP arguments, comm);	\
		return before->coll_##lower(UNWRAP arguments, comm, before->coll_##lower##_module);	\
	}								\
									\
	static int before_##lower(UNWRAP parameters, MPI_Comm comm)	\
	{								\
		const mca_coll_base_comm_coll_t *chosen = comm->c_coll;	\
									\
		if (chosen->coll_##lower == on_##lower)			\
			chosen = &((struct module *)chosen->coll_##lower##_module)->before;	\
		return chosen->coll_##lower(UNWRAP arguments, comm, chosen->coll_##lower##_module);	\
	}

WITH_DATA(COLLECTIVE)

static int on_barrier(MPI_Comm comm, mca_coll_base_module_t *base)
{
	const mca_coll_base_comm_coll_t *before = &((struct module *)base)->before;

	return offloads(base, comm) ? PMPI_Barrier(comm) : before->coll_barrier(comm, before->coll_barrier_module);
}

static int before_barrier(MPI_Comm comm)
{
	const mca_coll_base_comm_coll_t *chosen = comm->c_coll;

	if (chosen->coll_barrier == on_barrier)
		chosen = &((struct module *)chosen->coll_barrier_module)->before;
	return chosen->coll_barrier(comm, chosen->coll_barrier_module);
}

/* Types that Open MPI makes for itself have none, and to ask is an error. */
static int envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner)
{
	if (!ompi_datatype_is_predefined(type) && !type->args)
		return MPI_ERR_TYPE;
	return PMPI_Type_get_envelope(type, integers, addresses, types, combiner);
}

struct muster_mpi_beneath muster_mpi_beneath = {
#define BEFORE(lower, name, parameters, arguments)	.name = before_##lower,
	WITH_DATA(BEFORE)
#undef BEFORE
	.Barrier = before_barrier,
	.Iallreduce = PMPI_Iallreduce,
	.Test = PMPI_Test,
	.Type_free = PMPI_Type_free,
	.Type_get_envelope = envelope,
	.Op_free = PMPI_Op_free,
	.progress = opal_progress,
	.progress_register = opal_progress_register,
	.progress_unregister = opal_progress_unregister,
};

/* ---- what Open MPI asks ------------------------------------------------------------------------- */

static int priority = 90;	/* above all of Open MPI's own */

mca_coll_base_component_t mca_coll_muster_component;

static int register_variables(void)
{
	return mca_base_component_var_register(&mca_coll_muster_component.collm_version, "priority",
		"Priority of the muster coll component; 0: it is not used", MCA_BASE_VAR_TYPE_INT, NULL, 0, 0,
		OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &priority) < 0 ? OMPI_ERROR : OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool threads)
{
	(void)progress_threads;
	(void)threads;
	muster_mpi.within = true;
	return OMPI_SUCCESS;
}

/* We are the last that it chooses: what it has then is what there was before. */
static int enable(mca_coll_base_module_t *base, MPI_Comm comm)
{
	((struct module *)base)->before = *comm->c_coll;
	return OMPI_SUCCESS;
}

/* A callback that was called behind ours may have found it again: what was found by its handle is nobody's now. */
static int disable(mca_coll_base_module_t *base, MPI_Comm comm)
{
	(void)base;
	(void)comm;
	atomic_fetch_add(&muster_mpi_comms_freed, 1);
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(MPI_Comm comm, int *chosen_priority)
{
	module_t *module;

	if (priority <= 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
		return NULL;
	module = OBJ_NEW(module_t);
	if (!module)
		return NULL;
	*chosen_priority = priority;
	module->base.coll_module_enable = enable;
	module->base.coll_module_disable = disable;
#define SET(lower, name, parameters, arguments)	module->base.coll_##lower = on_##lower;
	WITH_DATA(SET)
#undef SET
	module->base.coll_barrier = on_barrier;
	return &module->base;
}

mca_coll_base_component_t mca_coll_muster_component = {
	.collm_version = {
		MCA_COLL_BASE_VERSION_2_0_0,
		.mca_component_name = "muster",
		MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
		.mca_register_component_params = register_variables,
	},
	.collm_data = { MCA_BASE_METADATA_PARAM_NONE },
	.collm_init_query = init_query,
	.collm_comm_query = comm_query,
};
