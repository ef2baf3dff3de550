// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Takes as much of something as it gets, as a user without any rights, says how
 * much that was and which error ended it, and keeps it until it is killed.
 *
 * usage: hoard numbers|contexts|rings|absent|colliding|lives UID [MOST]
 *   numbers   virtual ports, each destroyed again but for its doorbells, which were moved
 *   contexts  of one member each, at one port
 *   rings     ports with the largest rings
 *   absent    CROWDS contexts of as many members as there can be, at nodes that are not there
 *   colliding the same, with addresses that a plain multiplicative hash puts into one place
 *   lives     CROWDS contexts with a life of the next node that there is not, each until it fails
 */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port.h"

enum { CROWDS = 8 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct musterdv_vp *contexts_vp;	/* that they are opened at */

static int port_take(uint32_t entries, struct musterdv_vp **vp)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = entries, .rq_entries = entries, .cq_entries = entries,
	};

	return musterdv_vp_create(pd, &attr, vp);
}

/* Where the provider does not find it when it unmaps. */
static void doorbells_keep(const struct musterdv_vp *vp)
{
	void *place = mmap(NULL, MUSTER_DOORBELL_STRIDE, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED ||
	    mremap((void *)(uintptr_t)vp->doorbells, MUSTER_DOORBELL_STRIDE,
		   MUSTER_DOORBELL_STRIDE, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
		err(1, "moving doorbells");
}

static int number_take(void)
{
	struct musterdv_vp *vp;
	int error = port_take(1, &vp);

	if (error)
		return error;
	doorbells_keep(vp);
	return musterdv_vp_destroy(vp);
}

static int rings_take(void)
{
	struct musterdv_vp *vp;

	return port_take(512, &vp);
}

/* The first of them is we. */
static int context_open(struct musterdv_member *members, uint32_t nr)
{
	static struct musterdv_job *job;
	static uint16_t id;
	struct musterdv_context_attr attr = { .id = id++, .nr_members = nr, .members = members };
	struct musterdv_context *context;
	struct musterdv_info info;

	if (!contexts_vp && (port_take(8, &contexts_vp) || musterdv_job_create(ctx, PORT_JOB, NULL, &job, NULL)))
		errx(1, "no port or job");
	musterdv_query(ctx, &info);
	members[0].node = info.node;
	members[0].vp = contexts_vp->vp;
	members[0].incarnation = info.incarnation;
	return musterdv_context_open(job, contexts_vp, &attr, &context);
}

static int context_take(void)
{
	struct musterdv_member member = { };

	return context_open(&member, 1);
}

static int crowd_take(uint32_t nodes, uint32_t ports)
{
	static struct musterdv_member members[MUSTER_MEMBERS_MAX];

	for (uint32_t i = 0; i < MUSTER_MEMBERS_MAX; i++) {
		members[i].node = 4000 - i % nodes;
		members[i].vp = i / nodes % ports;
		members[i].incarnation = 7;
	}
	return context_open(members, MUSTER_MEMBERS_MAX);
}

static int absent_take(void)
{
	return crowd_take(3000, 100);
}

/* node * A + vp * B is small: of A there is an inverse. */
static int colliding_take(void)
{
	static struct musterdv_member members[MUSTER_MEMBERS_MAX];
	const uint32_t a = 0x9e3779b1, b = 0x85ebca77;
	uint32_t inverse = a, nr = 1, node;

	while (inverse * a != 1)
		inverse *= 2 - a * inverse;
	for (uint32_t i = 0; nr < MUSTER_MEMBERS_MAX && i < MUSTER_VPS_MAX << 15; i++) {
		node = ((i & 0x7fff) - (i >> 15) * b) * inverse;
		if (node && node < MUSTER_NODE_AGGREGATION)
			members[nr++] = (struct musterdv_member){ .node = node, .vp = i >> 15,
								  .incarnation = 7 };
	}
	return context_open(members, nr);
}

/* It fails alone, and soon: there is no such life. */
static int life_take(void)
{
	static uint32_t taken;
	struct musterdv_member members[2] = { };
	const struct muster_cqe *cqe;
	struct musterdv_info info;
	int error;

	musterdv_query(ctx, &info);
	members[1].node = info.node + 1;
	members[1].incarnation = 7;
	error = context_open(members, 2);
	if (error)
		return error;
	while (!(cqe = port_completion(contexts_vp, taken)))
		usleep(1000);
	taken++;
	return cqe->kind == MUSTER_CQE_CONTEXT && cqe->status == MUSTER_STATUS_PEER_LOST ?
		0 : -EPROTO;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*take)(void);
		int most;
	} whats[] = {
		{ "numbers", number_take, INT_MAX }, { "contexts", context_take, INT_MAX },
		{ "rings", rings_take, INT_MAX }, { "absent", absent_take, CROWDS },
		{ "colliding", colliding_take, CROWDS }, { "lives", life_take, CROWDS },
	};
	const size_t nr = sizeof(whats) / sizeof(whats[0]);
	int taken, most, error = 0;
	size_t what = 0;

	while (what < nr && (argc < 3 || strcmp(argv[1], whats[what].name)))
		what++;
	if (what == nr || argc > 4)
		errx(2, "usage: hoard numbers|contexts|rings|absent|colliding|lives UID [MOST]");
	most = argc == 4 ? atoi(argv[3]) : whats[what].most;
	if (setuid((uid_t)atoi(argv[2])))
		err(1, "setuid");
	ctx = device_open();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		err(1, "open");
	for (taken = 0; taken < most && !(error = whats[what].take()); taken++)
		;
	printf("%d %s\n", taken, error ? strerrorname_np(-error) : "");
	fflush(stdout);
	pause();
	return 0;
}
