/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of the provider share: muster.c (the device and opening it),
 * verbs.c (port, protection domains, memory), cq.c, cq_ex.c, qp.c, qp_ex.c, srq.c (ordinary queues), dv.c
 * (virtual ports), dv_job.c (jobs and contexts).
 * Built with rdma-core's private headers of interface 34.
 */
#ifndef MUSTER_PROVIDER_H
#define MUSTER_PROVIDER_H

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>

#include <infiniband/driver.h>

#include "musterdv.h"
#include "rdma/muster-abi.h"

struct muster_context {
	struct verbs_context ibvctx;
	struct muster_alloc_ucontext_resp info;
	volatile uint32_t *bells;	/* MUSTER_BELL_*; write only */
	const uint8_t *changes;		/* of watched memory, by place; NULL: none was so far; atomic */
	pthread_mutex_t qps_lock;	/* protects qps, and that those in it stay */
	struct muster_qp *qps[MUSTER_QPS_MAX];	/* by the index in their number */
};

struct muster_cq {
	union {
		struct ibv_cq ibvcq;
		struct ibv_cq_ex ibvcq_ex;	/* which is longer */
	};
	uint32_t number;
	bool for_qps;			/* else a virtual port's */
	struct muster_cq_record *record;
	/*
	 * After the record, and nothing of the device's: its own address, as long as the device
	 * lives. Then the kernel puts one page in the place of all that could be written.
	 */
	struct muster_cq **alive;
	pthread_mutex_t lock;		/* protects the rest */
	void *ring;			/* NULL: it could not be mapped when it was changed for another */
	size_t ring_bytes;
	uint32_t entries;
	uint32_t origin;		/* count of its first entry */
	struct muster_wc *kept;		/* entries of the ring before it */
	uint32_t nr_kept;		/* 0: all are polled */
	uint32_t kept_from;		/* count of the first */
	bool dead;
	uint32_t head;			/* polled so far */
	uint32_t seen;			/* found to be there so far */
	uint32_t arms;			/* as the record says */
	struct ibv_wc now;		/* cq_ex.c: the completion that is looked at */
};

/* One of a queue pair's. */
struct muster_queue {
	pthread_mutex_t lock;		/* protects tail, wr_ids and the ring */
	uint64_t *wr_ids;		/* as in the ring, which goes with the device */
	uint32_t entries;
	uint32_t sges;			/* of one request */
	uint32_t tail;			/* written so far */
	uint32_t head;			/* completed so far; atomic */
	uint32_t stale_until;		/* place in the completion queue: those before are of no use */
};

struct muster_qp {
	union {
		struct ibv_qp ibvqp;
		struct verbs_qp vqp;
	};
	void *queues;
	size_t queues_bytes;
	struct muster_qp_record *record;
	struct muster_work *requests;
	struct muster_receive *receives;
	struct muster_queue sq, rq;
	struct {			/* qp_ex.c: from wr_start to wr_complete; as sq */
		uint32_t tail;		/* as it was */
		int err;		/* the first */
		struct muster_work *work;	/* the last that has begun; NULL: none, or it failed */
	} batch;
};

struct muster_ah {
	struct ibv_ah ibvah;
	uint32_t node;
};

struct muster_srq {
	struct ibv_srq ibvsrq;
	struct muster_srq_record *record;
	struct muster_receive *receives;
	size_t queue_bytes;		/* of both */
	uint32_t entries;
	uint32_t sges;			/* of one receive */
	pthread_mutex_t lock;		/* protects tail and the ring */
	uint32_t tail;			/* written so far */
};

static inline struct muster_context *to_mctx(struct ibv_context *ibvctx)
{
	return container_of(ibvctx, struct muster_context, ibvctx.context);
}

static inline struct muster_cq *to_mcq(struct ibv_cq *ibvcq)
{
	return container_of(ibvcq, struct muster_cq, ibvcq);
}

static inline struct muster_qp *to_mqp(struct ibv_qp *ibvqp)
{
	return container_of(ibvqp, struct muster_qp, ibvqp);
}

static inline struct muster_srq *to_msrq(struct ibv_srq *ibvsrq)
{
	return container_of(ibvsrq, struct muster_srq, ibvsrq);
}

static inline struct muster_ah *to_mah(struct ibv_ah *ibvah)
{
	return container_of(ibvah, struct muster_ah, ibvah);
}

/* Nothing may be posted then: the device would take it for what comes after. */
static inline bool muster_qp_in_reset(const struct muster_qp *qp)
{
	return qp->ibvqp.state == IBV_QPS_RESET;
}

static inline bool muster_queue_full(const struct muster_queue *queue)
{
	return queue->tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) >= queue->entries;
}

/* Where the next one goes. */
static inline uint32_t muster_queue_place(const struct muster_queue *queue)
{
	return queue->tail & (queue->entries - 1);
}

/* The next one was written. */
static inline void muster_queue_put(struct muster_queue *queue, uint64_t wr_id)
{
	queue->wr_ids[muster_queue_place(queue)] = wr_id;
	queue->tail++;
}

/* After all that was written to rings and records before. */
static inline void muster_ring(struct ibv_context *ibvctx, uint32_t bell, uint32_t number)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	to_mctx(ibvctx)->bells[bell / sizeof(uint32_t)] = htole32(number);
}

/*
 * What destroying has come to: of a dead device everything is gone already, and
 * the kernel says EIO.
 */
static inline int destroyed(int err)
{
	return err == EIO ? 0 : err;
}

/* muster.c */
void *muster_map(struct ibv_context *ibvctx, uint64_t offset, uint64_t bytes, int prot);
void muster_unmap(void *addr, size_t bytes);

/* cq.c: as libibverbs has them; flags: MUSTER_CQ_*; verbs_init_cq() is the caller's */
struct ibv_cq *muster_cq_create(struct ibv_context *ibvctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector, uint32_t flags);
struct ibv_cq *muster_create_cq(struct ibv_context *ibvctx, int cqe,
				struct ibv_comp_channel *channel, int comp_vector);
int muster_destroy_cq(struct ibv_cq *ibvcq);
int muster_poll_cq(struct ibv_cq *ibvcq, int nr, struct ibv_wc *wc);
/* The same for who holds the queue's lock. */
int muster_cq_take(struct muster_cq *cq, int nr, struct ibv_wc *wc);
int muster_modify_cq(struct ibv_cq *ibvcq, struct ibv_modify_cq_attr *attr);
int muster_resize_cq(struct ibv_cq *ibvcq, int cqe);
int muster_req_notify_cq(struct ibv_cq *ibvcq, int solicited_only);
/* A virtual port's: the driver's half, before the doorbell. 0, or EIO for a dead device. */
int muster_cq_want(struct muster_cq *cq);
/* Completions that were ever there. */
uint32_t muster_cq_tail(struct ibv_cq *ibvcq);
uint32_t muster_power_of_two(uint32_t n);

/* cq_ex.c */
struct ibv_cq_ex *muster_create_cq_ex(struct ibv_context *ibvctx, struct ibv_cq_init_attr_ex *attr);

/* qp.c: as libibverbs has them */
struct ibv_ah *muster_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int muster_destroy_ah(struct ibv_ah *ibvah);
struct ibv_qp *muster_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int muster_destroy_qp(struct ibv_qp *ibvqp);
int muster_query_qp(struct ibv_qp *ibvqp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init_attr);
int muster_modify_qp(struct ibv_qp *ibvqp, struct ibv_qp_attr *attr, int mask);
int muster_post_send(struct ibv_qp *ibvqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int muster_post_recv(struct ibv_qp *ibvqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* The device learns of what was written so far; under the send queue's lock. */
void muster_sends_publish(struct muster_qp *qp);
void muster_sges_put(struct muster_sge *to, const struct ibv_sge *from, int nr);
void muster_receive_put(struct muster_receive *receive, const struct ibv_recv_wr *wr);

/* qp_ex.c */
struct ibv_qp *muster_create_qp_ex(struct ibv_context *ibvctx, struct ibv_qp_init_attr_ex *attr);

/* srq.c: as libibverbs has them */
struct ibv_srq *muster_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
int muster_destroy_srq(struct ibv_srq *ibvsrq);
int muster_modify_srq(struct ibv_srq *ibvsrq, struct ibv_srq_attr *attr, int mask);
int muster_query_srq(struct ibv_srq *ibvsrq, struct ibv_srq_attr *attr);
int muster_post_srq_recv(struct ibv_srq *ibvsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* verbs.c */
extern const struct verbs_context_ops muster_context_ops;

#endif /* MUSTER_PROVIDER_H */
