// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Takes as much of something as it gets, as a user without any rights, says how
 * much that was and which error ended it, and keeps it until it is killed.
 *
 * usage: hoard numbers|contexts|rings UID
 *   numbers   virtual ports, each destroyed again but for its doorbells, which were moved
 *   contexts  of one member each, at one port
 *   rings     ports with the largest rings
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;

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

static int context_take(void)
{
	static struct musterdv_job *job;
	static struct musterdv_vp *vp;
	static uint16_t id;
	struct musterdv_member member = { };
	struct musterdv_context_attr attr = { .id = id++, .nr_members = 1, .members = &member };
	struct musterdv_context *context;
	struct musterdv_info info;

	if (!vp && (port_take(8, &vp) || musterdv_job_create(ctx, PORT_JOB, NULL, &job, NULL)))
		errx(1, "no port or job");
	musterdv_query(ctx, &info);
	member.node = info.node;
	member.vp = vp->vp;
	member.incarnation = info.incarnation;
	return musterdv_context_open(job, vp, &attr, &context);
}

int main(int argc, char **argv)
{
	int (*take)(void) = NULL, taken, error = 0;

	if (argc == 3 && !strcmp(argv[1], "numbers"))
		take = number_take;
	if (argc == 3 && !strcmp(argv[1], "contexts"))
		take = context_take;
	if (argc == 3 && !strcmp(argv[1], "rings"))
		take = rings_take;
	if (!take)
		errx(2, "usage: hoard numbers|contexts|rings UID");
	if (setuid((uid_t)atoi(argv[2])))
		err(1, "setuid");
	ctx = device_open();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		err(1, "open");
	for (taken = 0; !error; taken++)
		error = take();
	printf("%d %s\n", taken - 1, strerrorname_np(-error));
	fflush(stdout);
	pause();
	return 0;
}
