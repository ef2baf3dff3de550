// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Virtual ports: a completion queue, a queue pair of the driver's own kind, and
 * their rings and doorbells mapped into the process.
 */
#include "muster.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAPPINGS = 4 };

struct mapping {
	void *addr;
	size_t bytes;
};

struct port {
	struct musterdv_vp vp;
	struct ibv_qp ibvqp;
	struct mapping mappings[MAPPINGS];
	int nr_mappings;
};

static struct port *to_port(struct musterdv_vp *vp)
{
	return container_of(vp, struct port, vp);
}

static bool size_valid(uint32_t entries, uint32_t max)
{
	return entries && entries <= max && !(entries & (entries - 1));
}

static int attr_check(struct ibv_context *ibvctx, const struct musterdv_vp_attr *attr)
{
	struct musterdv_info info;
	int err = musterdv_query(ibvctx, &info);

	if (err)
		return err;
	if (!size_valid(attr->dq_entries, info.dq_entries_max) ||
	    !size_valid(attr->rq_entries, info.rq_entries_max) ||
	    !size_valid(attr->cq_entries, info.cq_entries_max) || attr->reserved)
		return -EINVAL;
	return 0;
}

/* NULL, when it or one before it failed; *err keeps the first error. */
static void *map(struct port *port, uint64_t offset, uint64_t bytes, int prot, int *err)
{
	struct mapping *mapping = &port->mappings[port->nr_mappings];

	if (*err)
		return NULL;
	mapping->addr = muster_map(port->ibvqp.context, offset, bytes, prot);
	if (!mapping->addr) {
		*err = -errno;
		return NULL;
	}
	mapping->bytes = bytes;
	port->nr_mappings++;
	return mapping->addr;
}

static void unmap(struct port *port)
{
	while (port->nr_mappings--)
		muster_unmap(port->mappings[port->nr_mappings].addr,
			     port->mappings[port->nr_mappings].bytes);
	port->nr_mappings = 0;
}

/* The parts of a receive ring, each in its place behind the one before, or none. */
static int parts_map(struct port *port, const struct muster_create_vp_resp *resp, char *place)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < resp->nr_rq_parts; i++, at += resp->rq_part_bytes) {
		uint64_t left = resp->rq_bytes - at;

		if (mmap(place + at, left < resp->rq_part_bytes ? left : resp->rq_part_bytes, PROT_READ,
			 MAP_SHARED | MAP_FIXED, port->ibvqp.context->cmd_fd,
			 resp->rq_offsets[i]) == MAP_FAILED)
			return -errno;
	}
	return 0;
}

static void *rq_map(struct port *port, const struct muster_create_vp_resp *resp, int *err)
{
	struct mapping *mapping = &port->mappings[port->nr_mappings];

	if (*err)
		return NULL;
	mapping->addr = mmap(NULL, resp->rq_bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapping->addr == MAP_FAILED) {
		*err = -errno;
		return NULL;
	}
	mapping->bytes = resp->rq_bytes;
	port->nr_mappings++;
	*err = parts_map(port, resp, mapping->addr);
	return mapping->addr;
}

static int rings_map(struct port *port, const struct muster_create_vp_resp *resp)
{
	struct musterdv_vp *vp = &port->vp;
	size_t page = MUSTER_DOORBELL_STRIDE;
	int err = 0;

	vp->dq = map(port, resp->dq_offset, resp->dq_bytes, PROT_READ | PROT_WRITE, &err);
	vp->rq = rq_map(port, resp, &err);
	vp->status = map(port, resp->status_offset, page, PROT_READ, &err);
	vp->doorbells = map(port, resp->doorbell_offset, page, PROT_WRITE, &err);
	if (err)
		unmap(port);
	return err;
}

static int qp_open(struct ibv_pd *pd, struct port *port)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = port->vp.ibcq,
		.recv_cq = port->vp.ibcq,
		.qp_type = IBV_QPT_DRIVER,
	};
	struct {
		struct ibv_create_qp ibv;
		struct muster_create_vp_cmd own;
	} cmd = {
		.own.dq_entries = port->vp.dq_entries,
		.own.rq_entries = port->vp.rq_entries,
	};
	struct {
		struct ib_uverbs_create_qp_resp ibv;
		struct muster_create_vp_resp own;
	} resp = {};
	int err;

	err = -ibv_cmd_create_qp(pd, &port->ibvqp, &attr, &cmd.ibv, sizeof(cmd), &resp.ibv,
				 sizeof(resp));
	if (err)
		return err;
	err = rings_map(port, &resp.own);
	if (err) {
		ibv_cmd_destroy_qp(&port->ibvqp);
		return err;
	}
	port->vp.qp = &port->ibvqp;
	port->vp.vp = resp.own.vp;
	return 0;
}

/* Ports of a process take the completion vectors in turn. */
static int next_vector(const struct ibv_context *ibvctx)
{
	static unsigned int next;

	return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % ibvctx->num_comp_vectors;
}

int musterdv_vp_create(struct ibv_pd *pd, const struct musterdv_vp_attr *attr,
		       struct musterdv_vp **vp)
{
	struct port *port;
	int err;

	err = attr_check(pd->context, attr);
	if (err)
		return err;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->vp.dq_entries = attr->dq_entries;
	port->vp.rq_entries = attr->rq_entries;
	port->vp.cq_entries = attr->cq_entries;
	port->vp.ibcq = muster_cq_create(pd->context, attr->cq_entries, attr->channel,
					 next_vector(pd->context), 0);
	if (!port->vp.ibcq) {
		err = -errno;
		goto err_free;
	}
	verbs_init_cq(port->vp.ibcq, pd->context, attr->channel, NULL);
	port->vp.cq = to_mcq(port->vp.ibcq)->ring;
	err = qp_open(pd, port);
	if (err)
		goto err_cq;
	*vp = &port->vp;
	return 0;

err_cq:
	ibv_destroy_cq(port->vp.ibcq);
err_free:
	free(port);
	return err;
}

int musterdv_vp_destroy(struct musterdv_vp *vp)
{
	struct port *port = to_port(vp);
	int err = vp->qp ? -destroyed(ibv_cmd_destroy_qp(vp->qp)) : 0;

	if (err)
		return err;
	/* Who calls again goes on here. */
	vp->qp = NULL;
	unmap(port);
	err = -ibv_destroy_cq(vp->ibcq);
	if (!err)
		free(port);
	return err;
}

int musterdv_vp_arm(struct musterdv_vp *vp, uint32_t cq_head)
{
	int err;

	if (!vp->ibcq->channel)
		return -EINVAL;
	err = -muster_cq_want(to_mcq(vp->ibcq));
	if (err)
		return err;
	musterdv_doorbell(vp, MUSTER_DOORBELL_CQ_ARM, cq_head);
	return 0;
}
