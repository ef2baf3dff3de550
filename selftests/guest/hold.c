// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Keeps everything of the driver's open and messages going, and says "ready",
 * until the device is taken away. Then checks that a dead device is dead cleanly:
 * IBV_EVENT_DEVICE_FATAL has come, calls fail with EIO, what the device writes is
 * zero from then on, the rest can still be written, and everything destroyed.
 * Exit status 0: all of that; 1, and a line on stderr: not.
 *
 * usage: hold [--incarnation]     (says the device's incarnation, and ends)
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port.h"

enum { MEMORY_BYTES = 1 << 20 };

static int fail(const char *what, int err)
{
	fprintf(stderr, "hold: %s: %s\n", what, strerror(err < 0 ? -err : err));
	return 1;
}

static int fatal_told(struct ibv_context *ctx, int timeout_ms)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int fatal;

	if (poll(&fd, 1, timeout_ms) != 1 || ibv_get_async_event(ctx, &event))
		return 0;
	fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
	ibv_ack_async_event(&event);
	return fatal;
}

static bool zero(const void *memory, size_t bytes)
{
	const uint64_t *words = memory;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

/* What the device writes; the rings' ends as well, to the page. */
static const char *not_zero(const struct musterdv_vp *vp)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t cq = vp->cq_entries * sizeof(*vp->cq), rq = vp->rq_entries * sizeof(*vp->rq);

	if (!zero(vp->cq, (cq + page - 1) & ~(page - 1)))
		return "a completion queue";
	if (!zero(vp->rq, (rq + page - 1) & ~(page - 1)))
		return "a receive ring";
	return zero((const void *)vp->status, page) ? NULL : "a status page";
}

static int zero_check(const struct pair *pair, const char *when)
{
	for (int i = 0; i < 2; i++) {
		const char *what = not_zero(pair->vps[i]);

		if (what) {
			fprintf(stderr, "hold: %s of a dead device is not zero, %s\n", what, when);
			return 1;
		}
	}
	return 0;
}

static void scribble(const struct musterdv_vp *vp)
{
	memset(vp->dq, 0xff, vp->dq_entries * sizeof(*vp->dq));
	for (uint32_t at = 0; at < MUSTER_DOORBELL_STRIDE; at += sizeof(uint32_t))
		musterdv_doorbell(vp, at, UINT32_MAX);
}

static int dead_check(struct pair *pair)
{
	struct musterdv_job *job;
	int err;

	if (zero_check(pair, "when this is told"))
		return 1;
	err = musterdv_job_create(pair->ctx, 1, NULL, &job, NULL);
	if (err != -EIO)
		return fail("a call on a dead device", err);
	scribble(pair->vps[0]);
	return zero_check(pair, "after writing what is ours to write");
}

/* Whether the i-th message has come, before the device dies. */
static bool arrived(const struct pair *pair, uint32_t i)
{
	while (!port_packet(pair->vps[1], i)) {
		if (fatal_told(pair->ctx, 0))
			return false;
		usleep(100);
	}
	return true;
}

/* Messages until it dies, one at a time. All the time the pages of memory go. */
static void traffic(struct pair *pair, void *memory)
{
	for (uint32_t i = 0; !fatal_told(pair->ctx, 0); i++) {
		pair_put(pair, pair_message(pair, "traffic"));
		madvise(memory, MEMORY_BYTES, MADV_DONTNEED);
		pair_ring(pair);
		if (!arrived(pair, i))
			return;
		musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_HEAD, i + 1);
		musterdv_doorbell(pair->vps[1], MUSTER_DOORBELL_RQ_HEAD, i + 1);
	}
}

static int incarnation_print(void)
{
	struct ibv_context *ctx = device_open();
	struct musterdv_info info;

	if (!ctx)
		return fail("open", errno);
	musterdv_query(ctx, &info);
	printf("%u\n", info.incarnation);
	ibv_close_device(ctx);
	return 0;
}

int main(int argc, char **argv)
{
	void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *changed;
	struct pair pair;
	struct ibv_mr *mr;
	int err;

	if (argc == 2 && !strcmp(argv[1], "--incarnation"))
		return incarnation_print();
	err = pair_open(&pair);
	if (err)
		return fail("open", err);
	err = pair_exchange(&pair);
	if (err)
		return fail("exchange", err);
	pair_close(&pair);
	err = pair_open(&pair);
	if (err)
		return fail("open again", err);
	if (memory == MAP_FAILED)
		return fail("no memory", errno);
	err = musterdv_mr_register(pair.pd, memory, MEMORY_BYTES, IBV_ACCESS_LOCAL_WRITE, &mr, &changed);
	if (err)
		return fail("register memory", err);
	puts("ready");
	fflush(stdout);
	traffic(&pair, memory);
	if (dead_check(&pair))
		return 1;
	err = ibv_dereg_mr(mr);
	if (err)
		return fail("deregister memory of a dead device", err);
	err = pair_close(&pair);
	if (err)
		return fail("close a dead device", err);
	return 0;
}
