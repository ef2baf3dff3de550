/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of muster.ko share. The device is never on trust: what it says
 * is read once and checked, and memory that it was given is freed only after it
 * has confirmed to be done with it, or after it was fenced (no bus mastering).
 *
 * struct muster_function lives from probe to remove; struct muster_dev is one
 * life of the device in it, from one reset to the next. A reset ends the life
 * and all its objects, and open files with it; a new one begins as a new ib_device.
 */
#ifndef MUSTER_H
#define MUSTER_H

#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "compat.h"
#include "muster_regs.h"
#include "rdma/muster-abi.h"

enum muster_driver_limit {
	MUSTER_ADMIN_ENTRIES = 64,
	MUSTER_EVENT_ENTRIES = 256,
	MUSTER_ADMIN_TIMEOUT_MS = 10000,	/* a device that is silent so long is fenced */
	MUSTER_RESET_TIMEOUT_MS = 1000,
	MUSTER_RECOVER_DELAY_MS = 100,	/* doubled each time that it fails */
	MUSTER_RECOVER_DELAY_MAX_MS = 30000,
	MUSTER_RQ_PART_SHIFT = 20,		/* of receive rings, whose parts need not adjoin */
	MUSTER_RQ_PART_BYTES = 1 << MUSTER_RQ_PART_SHIFT,
	MUSTER_QP_TOLD_MAX = 64,		/* events of one queue pair that are told */
	MUSTER_SRQ_TOLD_MAX = 4096,	/* limits of one shared queue */
	MUSTER_CQ_ARMS_MAX = 4,		/* of one completion queue that the device may not have told yet */
};

/* A node's GID is the prefix, and this plus the node. */
#define MUSTER_GID_PREFIX	0xfe80000000000000ull
#define MUSTER_GUID		0x024d535400000000ull

struct muster_dev;

/* main.c: what was known of a device as it was fenced for a reason; the rest of it as it was told. */
struct muster_fault {
	const char *why;		/* NULL: nothing has happened */
	u32 incarnation;
	u32 status;			/* MUSTER_STATE_* */
	u32 commands;			/* given so far, */
	u8 opcode;			/* and of the last */
	bool answered;
	u32 events;			/* taken so far */
	u32 vps, cqs, contexts;		/* that there were */
};

/* main.c: a PCI function. */
struct muster_function {
	struct pci_dev *pdev;
	void __iomem *regs;
	phys_addr_t doorbells;		/* MUSTER_VPS_MAX pages */
	unsigned int nr_vectors;
	struct mutex life;		/* protects the next eight: births and deaths */
	struct muster_dev *dev;		/* NULL: down */
	bool removing;
	bool resetting;			/* by the PCI core */
	unsigned int recover_delay_ms;	/* after the next birth that fails */
	u32 lives;			/* so far */
	struct muster_fault fault;	/* the newest */
	bool fault_new;			/* and nobody was told */
	bool retry;			/* a life did not begin */
	struct delayed_work recover;
	struct devlink *devlink;	/* health.c */
	struct devlink_health_reporter *reporter;
};

/* admin.c */
struct muster_admin {
	struct mutex lock;		/* one command at a time: protects all below */
	wait_queue_head_t wait;		/* for its reply */
	struct muster_admin_command *commands;
	struct muster_admin_reply *replies;
	dma_addr_t commands_dma;
	dma_addr_t replies_dma;
	u32 tail;			/* commands written so far */
};

/* event.c: touched by the interrupt thread of vector 0 only. */
struct muster_events {
	struct muster_event *ring;
	dma_addr_t dma;
	u32 head;
};

/* event.c: an MSI-X vector; vector 0 has no completion queues. */
struct muster_vector {
	struct muster_dev *dev;
	spinlock_t lock;		/* held while queues are told: they stay */
	union {				/* MUSTER_CQS_MAX bytes, by id: the device has set whom an interrupt is for */
		u8 *notices;
		u64 *notice_words;
	};
	dma_addr_t notices_dma;
};

/* quota.c: memory that counts for its process's RLIMIT_MEMLOCK. */
struct muster_pin {
	struct mm_struct *mm;
	unsigned long pages;
};

/* quota.c: something that the device has max of, and how many each user holds. */
struct muster_share {
	struct mutex lock;		/* protects users and used */
	struct xarray users;		/* kuid to its number, as a value */
	const char *what;		/* as it is called in traces */
	u32 max;
	u32 used;
};

/* quota.c: a virtual port's number. */
struct muster_number {
	u32 vp;
	kuid_t user;
#ifdef CONFIG_CGROUP_RDMA
	struct rdma_cgroup *group;
#endif
};

struct muster_dev {
	struct ib_device ibdev;
	struct muster_function *fn;
	u32 node;
	u32 incarnation;
	u32 capabilities;		/* MUSTER_CAP_* */
	struct mutex link_lock;		/* protects registered */
	bool registered;		/* the core wants to hear of the link */
	struct mutex fence_lock;	/* one fences */
	struct muster_fault fault;	/* under fence_lock, before fenced */
	bool fenced;			/* set once DMA has stopped; no command goes out any more */
	struct muster_admin admin;
	struct muster_events events;
	struct muster_vector vectors[MUSTER_MSIX_VECTORS];
	struct xarray vps;		/* id to struct muster_vp; taken while it can be rung */
	struct xarray cqs;		/* id to struct muster_cq */
	struct xarray mrs;		/* key to struct muster_mr */
	struct xarray qps;		/* index to struct muster_qp */
	struct xarray srqs;		/* id to struct muster_srq */
	atomic_t qp_uses;		/* of indices, so far */
	struct ida pds;
	struct ida counters;		/* sets of what queue pairs count, from 1 */
	struct xarray jobs;		/* struct muster_job.shown, for netlink.c, as */
	struct xarray contexts;		/* struct muster_context.shown; the locks keep them there */
	u32 next_job, next_context;
	struct list_head netlink_entry;
	u32 netlink_number;
	struct mutex mappings_lock;	/* protects mappings */
	struct list_head mappings;	/* struct muster_mapping.dev_entry: memory, not doorbells */
	struct muster_share vps_share, cqs_share, contexts_share, qps_share, srqs_share;
	u32 next_vp, next_cq, next_mr, next_qp, next_srq;	/* so that ids are not used again soon */
};

struct muster_ucontext {
	struct ib_ucontext ibucontext;
	struct muster_mapping *bells;
	struct muster_mapping *changes;	/* watch.c; NULL: nothing was watched so far */
	struct ida watches;		/* places there */
	struct mutex lock;		/* protects contexts, and that changes is made once */
	struct list_head contexts;	/* context.c; those open at ports of this file */
};

struct muster_pd {
	struct ib_pd ibpd;
	u32 id;
};

enum muster_mapping_kind {
	MUSTER_MAP_FROM_PROCESS,	/* read and write */
	MUSTER_MAP_FROM_DEVICE,		/* read only; zero when the device has died */
	MUSTER_MAP_DOORBELL,		/* a page of BAR 2; keeps the VP's number taken */
	MUSTER_MAP_BELLS,		/* the page of BAR 0 that all may ring */
};

/*
 * A ring as the device writes it: each entry has one byte that is never zero in an
 * entry that is there. It is the first to go when the device has died, so who finds
 * it after reading an entry has read the whole of it.
 */
struct muster_ring_layout {
	size_t stride;			/* 0: no ring */
	size_t mark;
	size_t before;			/* bytes of the ring that are in other mappings, made before */
};

/* ucontext.c: something that a process may map; it goes with the last mapping. */
struct muster_mapping {
	struct rdma_user_mmap_entry entry;
	struct muster_dev *dev;
	enum muster_mapping_kind kind;
	size_t bytes;			/* whole pages */
	struct list_head dev_entry;	/* of memory; doorbells have none of these five */
	struct muster_pin pin;
	void *cpu;
	dma_addr_t dma;
	struct muster_ring_layout layout;
	struct muster_number number;	/* DOORBELL */
};

struct muster_cq {
	struct ib_cq ibcq;
	kuid_t user;			/* whose share it is of */
	u32 id;
	struct mutex lock;		/* protects ring, ibcq.cqe and next */
	struct muster_mapping *ring;
	struct muster_mapping *next;	/* prepared for a change of size; or NULL */
	struct muster_mapping *record;
	bool for_qps;			/* else for virtual ports */
	struct muster_vector *vector;
	u32 told;			/* its process, as often as that has armed it; under vector->lock */
	bool overrun;			/* its process was told; under dev->cqs's lock */
};

struct muster_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	struct muster_pin pin;		/* of who registered it; the core counts all but dma-bufs */
	struct muster_watch *watch;	/* NULL: nobody has asked for it */
	u32 page_size;			/* as the device was told */
	u32 nr_pages;
};

struct muster_vp {
	struct ib_qp ibqp;		/* qp_num is its number; usecnt counts its contexts */
	struct muster_mapping *dq;
	struct muster_mapping *rq[MUSTER_RQ_PARTS_MAX];	/* one behind the other */
	u32 nr_rq;
	struct muster_mapping *status;
	struct muster_mapping *doorbell;
	u32 pd_id, cq_id;		/* what was asked for, for fill_res_qp_entry */
	u32 dq_entries, rq_entries;
	bool failed;			/* and its process was told; under dev->vps's lock */
};

struct muster_qp {
	struct ib_qp ibqp;
	kuid_t user;			/* whose share it is of */
	u32 index;
	struct muster_mapping *queues;
	struct ib_qp_cap cap;
	bool signals_all;
	bool failed;			/* and its process was told, since its last reset; under */
	u32 told;			/* dev->qps's lock, as how often it was told of anything */
	struct mutex lock;		/* protects attr, and with it changes of state */
	struct muster_admin_qp_modify attr;	/* as the device was told */
	u32 datagram_psn;		/* which it is not: datagrams have none */
};

struct muster_srq {
	struct ib_srq ibsrq;
	kuid_t user;			/* whose share it is of */
	u32 id;
	struct muster_mapping *queue;
	u32 max_wr, max_sge;
	u32 told;			/* events so far; under dev->srqs's lock */
};

/* What the core allocates, for whichever of the two. */
struct muster_any_qp {
	union {
		struct ib_qp ibqp;
		struct muster_vp vp;
		struct muster_qp qp;
	};
};

/* netlink.c: an object of our own, as it is in dev->jobs or dev->contexts. */
struct muster_shown {
	kuid_t user;			/* who made it, and sees it; of a context: whose share it is of */
	u32 number;			/* there */
};

struct muster_job {
	struct muster_shown shown;
	struct muster_dev *dev;
	u64 key;
	u8 id;
	atomic_t users;			/* contexts */
};

struct muster_context {
	struct muster_shown shown;
	struct muster_dev *dev;
	struct muster_job *job;		/* one of its users */
	struct ib_qp *vp;		/* likewise */
	struct list_head entry;		/* in the file's muster_ucontext.contexts */
	u32 self;
	u32 nr_members;
	u32 id;
	u32 life;
};

static inline struct muster_dev *to_mdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct muster_dev, ibdev);
}

static inline struct muster_ucontext *to_mucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct muster_ucontext, ibucontext);
}

static inline struct muster_pd *to_mpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct muster_pd, ibpd);
}

static inline struct muster_cq *to_mcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct muster_cq, ibcq);
}

static inline struct muster_mr *to_mmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct muster_mr, ibmr);
}

static inline struct muster_vp *to_mvp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct muster_vp, ibqp);
}

static inline struct muster_qp *to_mqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct muster_qp, ibqp);
}

static inline struct muster_srq *to_msrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct muster_srq, ibsrq);
}

static inline u32 muster_reg_read(struct muster_dev *dev, u32 reg)
{
	return readl(dev->fn->regs + reg);
}

static inline void muster_reg_write(struct muster_dev *dev, u32 reg, u32 value)
{
	writel(value, dev->fn->regs + reg);
}

static inline void muster_reg_write64(struct muster_dev *dev, u32 reg, u64 value)
{
	muster_reg_write(dev, reg, lower_32_bits(value));
	muster_reg_write(dev, reg + 4, upper_32_bits(value));
}

/* main.c */
void muster_dev_fence(struct muster_dev *dev, const char *why);
int muster_function_recover(struct muster_function *fn);

/* health.c: what it does where there is no devlink follows here */
#if IS_ENABLED(CONFIG_NET_DEVLINK)
int muster_health_open(struct muster_function *fn);
void muster_health_close(struct muster_function *fn);
void muster_health_lost(struct muster_function *fn);
void muster_health_recovered(struct muster_function *fn);
#else
static inline int muster_health_open(struct muster_function *fn)
{
	return 0;
}

static inline void muster_health_close(struct muster_function *fn)
{
}

static inline void muster_health_lost(struct muster_function *fn)
{
	muster_function_recover(fn);
}

static inline void muster_health_recovered(struct muster_function *fn)
{
}
#endif

/* admin.c */
int muster_admin_open(struct muster_dev *dev);
void muster_admin_close(struct muster_dev *dev);
void muster_admin_fault(const struct muster_dev *dev, struct muster_fault *fault);
int muster_admin_ask(struct muster_dev *dev, struct muster_admin_command *cmd, u32 *detail);
int muster_admin_run(struct muster_dev *dev, struct muster_admin_command *cmd);
void muster_admin_end(struct muster_dev *dev, struct muster_admin_command *cmd);
void muster_admin_destroy(struct muster_dev *dev, u8 opcode, u32 id);

/* event.c */
int muster_events_open(struct muster_dev *dev);
void muster_events_close(struct muster_dev *dev);
int muster_interrupts_open(struct muster_dev *dev);
void muster_interrupts_close(struct muster_dev *dev);

/* device.c */
int muster_ibdev_register(struct muster_dev *dev);
void muster_ibdev_unregister(struct muster_dev *dev);
void muster_link_changed(struct muster_dev *dev);
bool muster_udata_unused(struct ib_udata *udata);
int muster_udata_read(struct ib_udata *udata, void *cmd, size_t bytes);

/* ucontext.c */
int muster_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void muster_dealloc_ucontext(struct ib_ucontext *ibucontext);
void muster_disassociate_ucontext(struct ib_ucontext *ibucontext);
int muster_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void muster_mmap_free(struct rdma_user_mmap_entry *entry);
struct muster_mapping *muster_mapping_create(struct ib_ucontext *ibucontext,
					     enum muster_mapping_kind kind, size_t bytes,
					     struct muster_ring_layout layout);
struct muster_mapping *muster_doorbell_create(struct ib_ucontext *ibucontext);
void muster_mapping_remove(struct muster_mapping *mapping);
u64 muster_mapping_offset(const struct muster_mapping *mapping);
void muster_mappings_clear(struct muster_dev *dev);

/* quota.c */
int muster_pin_charge(struct muster_dev *dev, struct muster_pin *pin, size_t bytes);
void muster_pin_uncharge(struct muster_pin *pin);
void muster_share_init(struct muster_share *share, const char *what, u32 max);
void muster_share_destroy(struct muster_share *share);
int muster_share_take(struct muster_dev *dev, struct muster_share *share, kuid_t *user);
void muster_share_give(struct muster_share *share, kuid_t user);
int muster_number_take(struct muster_dev *dev, struct muster_number *number);
void muster_number_give(struct muster_dev *dev, struct muster_number *number);

/* pd.c */
int muster_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int muster_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* cq.c */
int muster_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     MUSTER_CREATE_CQ_ARG *arg);
int muster_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int muster_modify_cq(struct ib_cq *ibcq, u16 count, u16 period_us);
int muster_resize_cq(struct ib_cq *ibcq, int entries, struct ib_udata *udata);
bool muster_cq_armed(struct muster_cq *cq);
void muster_cqs_interrupted(struct muster_vector *vector);
void muster_cq_overrun(struct muster_dev *dev, u32 id);

/* mr.c */
struct ib_mr *muster_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				 int access, struct ib_udata *udata);
struct ib_mr *muster_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					int fd, int access, MUSTER_REG_DMABUF_ARG *arg);
int muster_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* watch.c */
int muster_watch_create(u64 start, u64 length, struct ib_udata *udata,
			struct muster_watch **result);
void muster_watch_destroy(struct muster_watch *watch);

/* vp.c */
int muster_create_vp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int muster_destroy_vp(struct ib_qp *ibqp, struct ib_udata *udata);
int muster_query_vp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr);
void muster_vp_failed(struct muster_dev *dev, u32 id);

/* qp.c */
int muster_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int muster_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int muster_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata);
int muster_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr);
void muster_qp_event(struct muster_dev *dev, u32 number, enum ib_event_type what);

/* srq.c */
int muster_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int muster_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int muster_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		      struct ib_udata *udata);
int muster_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
void muster_srq_event(struct muster_dev *dev, u32 id, enum ib_event_type what);

/* job.c, context.c: objects of our own, for ib_device.driver_def */
extern const struct uapi_definition muster_job_defs[];
extern const struct uapi_definition muster_context_defs[];
void muster_contexts_orphan(struct muster_ucontext *ucontext);

/* counters.c */
struct rdma_hw_stats *muster_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int muster_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			int index);
int muster_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp);
int muster_counter_unbind_qp(struct ib_qp *ibqp);
int muster_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *muster_counter_alloc_stats(struct rdma_counter *counter);
int muster_counter_update_stats(struct rdma_counter *counter);

/* netlink.c; changed(): an object has come or gone */
int muster_netlink_open(void);
void muster_netlink_close(void);
void muster_netlink_add(struct muster_dev *dev);
void muster_netlink_remove(struct muster_dev *dev);
void muster_netlink_changed(void);

/* resource.c */
int muster_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int muster_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int muster_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);

#endif /* MUSTER_H */
