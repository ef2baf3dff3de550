// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two tenants of one NIC, of different users: what one shows as its credentials, which it has
 * forged, guessed, kept from before or seen the other use, gets it nothing of the other's. All
 * that is no secret (numbers of ports and queue pairs, keys of memory) the thief is told.
 *
 * usage: tenants TRIES      (root; prints how many of what were tried, and accepted)
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

enum {
	OWNER_UID = 65533, THIEF_UID = 65534,
	ENTRIES = 64,
	BYTES = 4096,
	PAGE = 4096,
	QKEY = 0x2a5c1d37,		/* the owner's; with the highest bit a sender means its own */
	THIEF_QKEY = 0x11111111,
	SLOW_TRIES = 1000,		/* of those that take many calls each; a 1000th of all, at most */
};

/* What the owner lets be known, and at last what it found. */
struct known {
	uint32_t qp, lkey, node, incarnation;
	uint16_t vp;
	uint64_t old_key;		/* of a job with the same number, that has ended */
	uint64_t address;
	_Atomic int ready, done;
	_Atomic uint64_t accepted;
};

static struct known *known;

static void accept(bool accepted, const char *what, uint64_t which)
{
	if (accepted && !known->accepted++)
		printf("accepted: %s %llu\n", what, (unsigned long long)which);
	fflush(stdout);
}

struct tenant {
	struct pair pair;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char bytes[BYTES];
};

static int qp_step(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .qkey = getuid() == OWNER_UID ? QKEY : THIEF_QKEY,
	};

	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

static void qp_ready(struct ibv_qp *qp)
{
	if (qp_step(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ||
	    qp_step(qp, IBV_QPS_RTR, 0) || qp_step(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN))
		err(1, "queue pair");
}

static void tenant_open(struct tenant *tenant, uid_t uid)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = { .max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setuid(uid))
		err(1, "setuid");
	errno = -pair_open(&tenant->pair);
	if (errno)
		err(1, "open");
	tenant->mr = ibv_reg_mr(tenant->pair.pd, tenant->bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	tenant->cq = ibv_create_cq(tenant->pair.ctx, 2 * ENTRIES, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = tenant->cq;
	tenant->qp = tenant->cq ? ibv_create_qp(tenant->pair.pd, &attr) : NULL;
	if (!tenant->mr || !tenant->qp)
		err(1, "queues");
	qp_ready(tenant->qp);
}

/* ---- who has something --------------------------------------------------------------- */

/* One receive: where the key is right it is taken. */
static void receive_post(struct tenant *tenant)
{
	struct ibv_sge sge = { (uintptr_t)tenant->bytes, BYTES, tenant->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(tenant->qp, &wr, &bad))
		errx(1, "post");
}

static void old_job(struct tenant *tenant)
{
	struct musterdv_job *job;
	uint64_t key;

	if (musterdv_job_create(tenant->pair.ctx, PORT_JOB, NULL, &job, &key) ||
	    musterdv_job_destroy(job))
		errx(1, "job");
	known->old_key = key;
}

static void own(void)
{
	static struct tenant tenant;
	struct musterdv_info info;
	struct ibv_wc wc;
	int n;

	tenant_open(&tenant, OWNER_UID);
	old_job(&tenant);
	receive_post(&tenant);
	musterdv_query(tenant.pair.ctx, &info);
	known->qp = tenant.qp->qp_num;
	known->lkey = tenant.mr->lkey;
	known->node = info.node;
	known->incarnation = info.incarnation;
	known->vp = tenant.pair.vps[1]->vp;
	known->address = (uintptr_t)tenant.bytes;
	known->ready = 1;
	while (!known->done)
		usleep(10000);
	n = ibv_poll_cq(tenant.cq, 1, &wc);
	accept(n, "datagram of length", n > 0 ? wc.byte_len : 0);
	accept(port_packet(tenant.pair.vps[1], 0) != NULL, "packet at port", known->vp);
	for (int i = 0; i < BYTES; i++)
		accept(tenant.bytes[i] != 0, "byte in memory", i);
	/* And it can all the while: the same with the right key. */
	if (pair_exchange(&tenant.pair))
		errx(1, "the owner's own message did not come");
	_exit(0);
}

/* ---- who wants it ----------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static void completions_take(struct tenant *tenant, uint64_t *outstanding)
{
	struct ibv_wc wcs[16];
	int n = ibv_poll_cq(tenant->cq, 16, wcs);

	if (n < 0)
		errx(1, "poll");
	*outstanding -= n;
}

/* A Q_Key that is not the right one: close to it, or any. */
static uint32_t qkey_wrong(void)
{
	uint32_t guess = random64() % 2 ? QKEY ^ 1u << random64() % 32 : random64() >> 32;

	return guess == QKEY ? QKEY + 1 : guess;
}

static struct ibv_ah *owner_address(struct tenant *tenant)
{
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = known->node + 1 };
	struct ibv_ah *ah = ibv_create_ah(tenant->pair.pd, &attr);

	if (!ah)
		err(1, "address");
	return ah;
}

static int send_post(struct tenant *tenant, struct ibv_ah *ah, uint32_t qkey, uint32_t lkey, uint64_t addr)
{
	struct ibv_sge sge = { addr, 64, lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { ah, known->qp, qkey },
	}, *bad;

	return ibv_post_send(tenant->qp, &wr, &bad);
}

static void guess_qkeys(struct tenant *tenant, uint64_t tries)
{
	struct ibv_ah *ah = owner_address(tenant);
	uint64_t outstanding = 0;

	for (uint64_t i = 0; i < tries || outstanding;) {
		if (i < tries && !send_post(tenant, ah, qkey_wrong(), tenant->mr->lkey,
					    (uintptr_t)tenant->bytes)) {
			i++;
			outstanding++;
		} else {
			completions_take(tenant, &outstanding);
		}
	}
	ibv_destroy_ah(ah);
}

/* The owner's memory, as the source of what the thief sends to itself, and near it. */
static void borrow_memory(struct tenant *tenant, uint64_t tries)
{
	struct ibv_ah *ah = owner_address(tenant);
	struct ibv_wc wc;
	int n;

	for (uint64_t i = 0; i < tries; i++) {
		uint32_t lkey = i % 2 ? known->lkey : random64() % (4 * known->lkey + 64);

		if (lkey == tenant->mr->lkey)
			continue;
		if (send_post(tenant, ah, QKEY, lkey, known->address))
			errx(1, "post");
		while (!(n = ibv_poll_cq(tenant->cq, 1, &wc)))
			;
		accept(n != 1 || wc.status != IBV_WC_LOC_PROT_ERR, "memory, status", wc.status);
		if (qp_step(tenant->qp, IBV_QPS_RESET, 0))
			errx(1, "reset");
		qp_ready(tenant->qp);
	}
	ibv_destroy_ah(ah);
}

/* Offsets of maps: its own are few, and none of them is below MAPS pages but by its own hand. */
static void guess_offsets(struct tenant *tenant, uint64_t tries)
{
	struct ibv_context *ctx = device_open();

	(void)tenant;
	if (!ctx)
		err(1, "open");
	/* A file of its own, which has made nothing: there is its page of bells (0) alone. */
	for (uint64_t i = 0; i < tries; i++) {
		uint64_t page = random64() % 2 ? 1 + random64() % 4096 : 1 + (random64() >> 30);
		void *at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx->cmd_fd, page * PAGE);

		accept(at != MAP_FAILED, "map of page", page);
	}
	ibv_close_device(ctx);
}

/* As if a context of the owner's job were there: to its port, with a key that is not its job's. */
static void guess_job_key(struct tenant *tenant, uint64_t key, uint32_t id, uint32_t *seen)
{
	struct musterdv_member members[2] = {
		{ .node = known->node, .vp = tenant->pair.vps[0]->vp, .incarnation = known->incarnation },
		{ .node = known->node, .vp = known->vp,
		  .incarnation = known->incarnation - (id % 4 == 0) },
	};
	const struct musterdv_context_attr attr = {
		.id = PORT_CONTEXT, .nr_members = 2, .members = members,
	};
	struct musterdv_context *context;
	struct musterdv_job *job;
	struct muster_desc desc;

	if (musterdv_job_create(tenant->pair.ctx, PORT_JOB, &key, &job, NULL) ||
	    musterdv_context_open(job, tenant->pair.vps[0], &attr, &context))
		errx(1, "context");
	desc = pair_message(&tenant->pair, "stolen");
	desc.dst_vp = htole16(known->vp);
	pair_put(&tenant->pair, desc);
	pair_ring(&tenant->pair);
	while (!port_completion(tenant->pair.vps[0], *seen))
		;
	if (musterdv_context_close(context) || musterdv_job_destroy(job))
		errx(1, "close");
	/* Of a context that failed there are two. */
	while (port_completion(tenant->pair.vps[0], *seen))
		++*seen;
	musterdv_doorbell(tenant->pair.vps[0], MUSTER_DOORBELL_CQ_HEAD, *seen);
}

static void guess_job_keys(struct tenant *tenant, uint64_t tries)
{
	uint32_t seen = 0;

	musterdv_context_close(tenant->pair.contexts[0]);
	tenant->pair.contexts[0] = NULL;
	for (uint64_t i = 0; i < tries; i++)
		guess_job_key(tenant, i % 2 ? known->old_key : random64() | 1, i, &seen);
}

static void thieve(uint64_t tries)
{
	const uint64_t slow = tries / 1000 < SLOW_TRIES ? tries / 1000 + 1 : SLOW_TRIES;
	static struct tenant tenant;

	random_state = tries | 1;
	while (!known->ready)
		usleep(10000);
	tenant_open(&tenant, THIEF_UID);
	guess_offsets(&tenant, tries / 4);
	borrow_memory(&tenant, slow);
	guess_job_keys(&tenant, slow);
	guess_qkeys(&tenant, tries - tries / 4 - 2 * slow);
	printf("# %llu Q_Keys, %llu map offsets, %llu keys of memory, %llu keys of jobs (every second the "
	       "last job's)\n", (unsigned long long)(tries - tries / 4 - 2 * slow),
	       (unsigned long long)(tries / 4), (unsigned long long)slow, (unsigned long long)slow);
	fflush(stdout);
	_exit(0);
}

static pid_t start(void (*role)(uint64_t), uint64_t tries)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid == 0)
		role(tries);
	return pid;
}

static void own_role(uint64_t tries)
{
	(void)tries;
	own();
}

int main(int argc, char **argv)
{
	uint64_t tries = argc == 2 ? strtoull(argv[1], NULL, 0) : 0;
	pid_t owner, thief;
	int status;

	if (tries < 1000)
		errx(2, "usage: tenants TRIES      (1000 at least)");
	known = mmap(NULL, sizeof(*known), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (known == MAP_FAILED)
		err(1, "mmap");
	owner = start(own_role, 0);
	thief = start(thieve, tries);
	if (waitpid(thief, &status, 0) != thief || status)
		errx(1, "the thief could not try");
	known->done = 1;
	if (waitpid(owner, &status, 0) != owner || status)
		errx(1, "the owner has suffered");
	printf("# %llu tries, %llu accepted\n", (unsigned long long)tries,
	       (unsigned long long)known->accepted);
	return known->accepted ? 1 : 0;
}
