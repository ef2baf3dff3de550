// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two ports of one NIC and what goes between them: packets of the NIC to itself,
 * which take every step but the wire.
 */
#include "port.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>

struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	errno = ENODEV;
	for (int i = 0; list && list[i] && !ctx; i++)
		if (musterdv_is_supported(list[i]))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static int ports_open(struct pair *pair, uint32_t rq_entries)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = PORT_ENTRIES,
		.rq_entries = rq_entries,
		.cq_entries = PORT_ENTRIES,
		.channel = pair->channel,
	};

	for (int i = 0; i < 2; i++) {
		int err = musterdv_vp_create(pair->pd, &attr, &pair->vps[i]);

		if (err)
			return err;
	}
	return 0;
}

static int contexts_open(struct pair *pair)
{
	struct musterdv_member members[2] = { };
	struct musterdv_info info;
	int err;

	musterdv_query(pair->ctx, &info);
	for (int i = 0; i < 2; i++) {
		members[i].node = info.node;
		members[i].vp = pair->vps[i]->vp;
		members[i].incarnation = info.incarnation;
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct musterdv_context_attr attr = {
			.id = PORT_CONTEXT, .self = i, .nr_members = 2, .members = members,
		};

		err = musterdv_context_open(pair->job, pair->vps[i], &attr, &pair->contexts[i]);
		if (err)
			return err;
	}
	return 0;
}

static int parts_open(struct pair *pair, uint32_t rq_entries)
{
	int err;

	pair->pd = ibv_alloc_pd(pair->ctx);
	pair->channel = ibv_create_comp_channel(pair->ctx);
	if (!pair->pd || !pair->channel)
		return -errno;
	err = ports_open(pair, rq_entries);
	if (!err)
		err = musterdv_job_create(pair->ctx, PORT_JOB, NULL, &pair->job, NULL);
	return err ? err : contexts_open(pair);
}

int pair_open(struct pair *pair)
{
	struct ibv_context *ctx = device_open();

	memset(pair, 0, sizeof(*pair));
	return ctx ? pair_open_at(pair, ctx) : -errno;
}

int pair_open_at(struct pair *pair, struct ibv_context *ctx)
{
	return pair_open_sized(pair, ctx, PORT_ENTRIES);
}

int pair_open_sized(struct pair *pair, struct ibv_context *ctx, uint32_t rq_entries)
{
	int err;

	memset(pair, 0, sizeof(*pair));
	pair->ctx = ctx;
	err = parts_open(pair, rq_entries);
	if (err)
		pair_close(pair);
	return err;
}

/* Goes on after an error, and returns the first. */
int pair_close(struct pair *pair)
{
	int err = 0, e;

#define CLOSE(what, close) \
	do { \
		e = (what) ? (close) : 0; \
		err = err ? err : e; \
	} while (0)
	for (int i = 0; i < 2; i++)
		CLOSE(pair->contexts[i], musterdv_context_close(pair->contexts[i]));
	CLOSE(pair->job, musterdv_job_destroy(pair->job));
	for (int i = 0; i < 2; i++)
		CLOSE(pair->vps[i], musterdv_vp_destroy(pair->vps[i]));
	CLOSE(pair->channel, -ibv_destroy_comp_channel(pair->channel));
	CLOSE(pair->pd, -ibv_dealloc_pd(pair->pd));
	CLOSE(pair->ctx, -ibv_close_device(pair->ctx));
#undef CLOSE
	return err;
}

void pair_put(struct pair *pair, struct muster_desc desc)
{
	struct musterdv_vp *vp = pair->vps[0];

	vp->dq[pair->sent++ & (vp->dq_entries - 1)] = desc;
}

void pair_ring(const struct pair *pair)
{
	musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_DQ_TAIL, pair->sent);
}

struct muster_desc pair_message(const struct pair *pair, const char *text)
{
	struct musterdv_info info;
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP,
		.flags = htole16(MUSTER_DESC_COLL_END),
		.src_vp = htole16(pair->vps[0]->vp),
		.dst_vp = htole16(pair->vps[1]->vp),
		.job = PORT_JOB,
		.context = htole16(PORT_CONTEXT),
		.cookie = htole64(pair->sent),
		.inline_len = strlen(text),
		.length = htole64(strlen(text)),
	};

	musterdv_query(pair->ctx, &info);
	desc.dest = htole32(info.node);
	memcpy(desc.data, text, strlen(text));
	return desc;
}

static int there(const __le32 *valid, uint32_t i, uint32_t entries)
{
	return le32toh(__atomic_load_n(valid, __ATOMIC_ACQUIRE)) == !(i & entries);
}

const struct muster_cqe *port_completion(const struct musterdv_vp *vp, uint32_t i)
{
	const struct muster_cqe *cqe = &vp->cq[i & (vp->cq_entries - 1)];

	return there(&cqe->valid, i, vp->cq_entries) ? cqe : NULL;
}

const struct muster_recv_slot *port_packet(const struct musterdv_vp *vp, uint32_t i)
{
	const struct muster_recv_slot *slot = &vp->rq[i & (vp->rq_entries - 1)];

	return there(&slot->valid, i, vp->rq_entries) ? slot : NULL;
}

int pair_exchange(struct pair *pair)
{
	struct timespec pause = { .tv_nsec = 100000 };
	uint32_t i = pair->sent;

	pair_put(pair, pair_message(pair, "a grain of salt"));
	pair_ring(pair);
	for (int tries = 0; tries < PORT_WAIT_MS * 10; tries++) {
		const struct muster_cqe *cqe = port_completion(pair->vps[0], i);
		const struct muster_recv_slot *slot = port_packet(pair->vps[1], i);

		if (cqe && cqe->status)
			return -EIO;
		if (cqe && slot) {
			musterdv_doorbell(pair->vps[0], MUSTER_DOORBELL_CQ_HEAD, i + 1);
			musterdv_doorbell(pair->vps[1], MUSTER_DOORBELL_RQ_HEAD, i + 1);
			return memcmp(slot->payload, "a grain of salt", 15) ? -EIO : 0;
		}
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}
