// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that leaves while its memory is in use: the other member is told that it is
 * lost, and not that a range was refused, whoever closes its file in the end. What it holds
 * goes newest first: here the memory that its operations store into, then some regions more,
 * its context last. Meanwhile what is stored comes piece by piece, far longer than that takes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

enum {
	ENTRIES = 32,
	SEQUENCES = MUSTER_SEQ_QUEUE_MAX,
	REGIONS = 16,			/* that go between the operations' memory and the context */
	PIECE_BYTES = 8,
	PIECES = 1 << 20,		/* of a sequence */
	STACK_BYTES = 64 << 10,
};

/* One of the two members, in its own process. */
struct member {
	uint32_t self;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct musterdv_vp *vp;
	struct musterdv_job *job;
	struct musterdv_context *context;
};

/* What the leaver is told and tells; all of it goes with exec. */
struct pipes {
	int to_leaver[2], from_leaver[2];
};

struct hello {
	uint64_t key;
	uint16_t vp;
};

static void port_open(struct member *member, const uint64_t *join_key, uint64_t *key)
{
	struct musterdv_vp_attr attr = {
		.dq_entries = ENTRIES, .rq_entries = ENTRIES, .cq_entries = ENTRIES,
	};

	member->ctx = device_open();
	assert_non_null(member->ctx);
	member->pd = ibv_alloc_pd(member->ctx);
	assert_non_null(member->pd);
	assert_int_equal(musterdv_vp_create(member->pd, &attr, &member->vp), 0);
	assert_int_equal(musterdv_job_create(member->ctx, PORT_JOB, join_key, &member->job, key),
			 0);
}

/* The witness is the first member, the leaver the second. */
static void context_open(struct member *member, uint16_t other)
{
	struct musterdv_member members[2] = { };
	const struct musterdv_context_attr attr = {
		.id = PORT_CONTEXT, .self = member->self, .nr_members = 2, .members = members,
	};
	struct musterdv_info info;

	musterdv_query(member->ctx, &info);
	for (uint32_t i = 0; i < 2; i++) {
		members[i].node = info.node;
		members[i].vp = i == member->self ? member->vp->vp : other;
		members[i].incarnation = info.incarnation;
	}
	assert_int_equal(musterdv_context_open(member->job, member->vp, &attr, &member->context),
			 0);
}

static struct ibv_mr *memory_register(const struct member *member)
{
	static uint64_t memory[PIECES] __attribute__((aligned(4096)));
	struct ibv_mr *mr = ibv_reg_mr(member->pd, memory, sizeof(memory),
				       IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(mr);
	return mr;
}

static struct muster_desc sequence(const struct member *member, uint16_t flags)
{
	return (struct muster_desc){
		.kind = MUSTER_DESC_RDMA,
		.flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT | flags),
		.src_vp = htole16(member->vp->vp),
		.job = PORT_JOB,
		.context = htole32(PORT_CONTEXT),
		.length = htole64(PIECES * PIECE_BYTES),
		.range.pulse_len = htole32(PIECE_BYTES),
		.range.pulse_count = htole32(PIECES),
	};
}

static void sequences_post(struct member *member, struct muster_desc desc)
{
	for (int i = 0; i < SEQUENCES; i++)
		member->vp->dq[i] = desc;
	musterdv_doorbell(member->vp, MUSTER_DOORBELL_DQ_TAIL, SEQUENCES);
}

/* ---- who leaves ------------------------------------------------------------------ */

static void receives_post(struct member *member)
{
	struct muster_desc desc = sequence(member, 0);
	/* Each its own: the kernel that watches minds memory that is registered twice. */
	static uint8_t pages[REGIONS][4096] __attribute__((aligned(4096)));
	struct ibv_mr *mr;

	for (int i = 0; i < REGIONS; i++)
		assert_non_null(ibv_reg_mr(member->pd, pages[i], sizeof(pages[i]), 0));
	mr = memory_register(member);
	desc.cp_count = 1;
	desc.store_addr = htole64((uintptr_t)mr->addr);
	desc.store_key = htole32(mr->lkey);
	sequences_post(member, desc);
}

static void die(void)
{
	raise(SIGKILL);
}

static void become_another(void)
{
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* Shares the memory and keeps the file, and is not the process that they belong to. */
static int outlive(void *owner)
{
	while (getppid() == *(pid_t *)owner)
		usleep(1000);
	become_another();
	return 1;
}

static void leave_memory_to_another(void)
{
	static uint8_t stack[STACK_BYTES] __attribute__((aligned(16)));
	static pid_t owner;

	owner = getpid();
	if (clone(outlive, stack + sizeof(stack), CLONE_VM | SIGCHLD, &owner) < 0)
		_exit(1);
}

static void leave(const struct pipes *pipes, void (*how)(void))
{
	struct member member = { .self = 1 };
	struct hello hello;

	/* What fails here shall end this process, and not go on with the tests. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	close(pipes->to_leaver[1]);
	assert_int_equal(read(pipes->to_leaver[0], &hello, sizeof(hello)), sizeof(hello));
	port_open(&member, &hello.key, NULL);
	context_open(&member, hello.vp);
	receives_post(&member);
	hello.vp = member.vp->vp;
	assert_int_equal(write(pipes->from_leaver[1], &hello, sizeof(hello)), sizeof(hello));
	assert_int_equal(read(pipes->to_leaver[0], &hello, 1), 0);
	how();
	_exit(0);
}

/* ---- who stays ------------------------------------------------------------------- */

/* What the context ended with; NULL: it has not. */
static const struct muster_cqe *end_of_context(const struct musterdv_vp *vp)
{
	const struct muster_cqe *cqe;

	for (uint32_t i = 0; (cqe = port_completion(vp, i)); i++)
		if (cqe->kind == MUSTER_CQE_CONTEXT)
			return cqe;
	return NULL;
}

static struct ibv_mr *sends_post(struct member *member, uint16_t to)
{
	struct muster_desc desc = sequence(member, MUSTER_DESC_CP);
	struct ibv_mr *mr = memory_register(member);
	struct musterdv_info info;

	musterdv_query(member->ctx, &info);
	desc.dest = htole32(info.node);
	desc.dst_vp = htole16(to);
	desc.range.load_addr = htole64((uintptr_t)mr->addr);
	desc.range.load_key = htole32(mr->lkey);
	sequences_post(member, desc);
	return mr;
}

static void witness_close(struct member *member)
{
	assert_int_equal(musterdv_context_close(member->context), 0);
	assert_int_equal(musterdv_job_destroy(member->job), 0);
	assert_int_equal(musterdv_vp_destroy(member->vp), 0);
	assert_int_equal(ibv_dealloc_pd(member->pd), 0);
	assert_int_equal(ibv_close_device(member->ctx), 0);
}

static void is_lost_who_leaves(void (*how)(void))
{
	struct member member = { .self = 0 };
	const struct muster_cqe *end;
	struct hello hello;
	struct pipes pipes;
	struct ibv_mr *mr;
	pid_t leaver;

	assert_int_equal(pipe2(pipes.to_leaver, O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipes.from_leaver, O_CLOEXEC), 0);
	leaver = fork();
	if (leaver == 0)
		leave(&pipes, how);
	close(pipes.to_leaver[0]);
	close(pipes.from_leaver[1]);
	port_open(&member, NULL, &hello.key);
	hello.vp = member.vp->vp;
	assert_int_equal(write(pipes.to_leaver[1], &hello, sizeof(hello)), sizeof(hello));
	assert_int_equal(read(pipes.from_leaver[0], &hello, sizeof(hello)), sizeof(hello));
	context_open(&member, hello.vp);
	mr = sends_post(&member, hello.vp);
	close(pipes.to_leaver[1]);
	while (!(end = end_of_context(member.vp)))
		usleep(1000);
	assert_int_equal(end->status, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(le32toh(end->culprit), 1);
	waitpid(leaver, NULL, 0);
	close(pipes.from_leaver[0]);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	witness_close(&member);
}

static void who_dies_is_lost(void **state)
{
	(void)state;
	is_lost_who_leaves(die);
}

static void who_becomes_another_program_is_lost(void **state)
{
	(void)state;
	is_lost_who_leaves(become_another);
}

static void who_leaves_its_memory_to_another_is_lost(void **state)
{
	(void)state;
	is_lost_who_leaves(leave_memory_to_another);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_dies_is_lost),
		cmocka_unit_test(who_becomes_another_program_is_lost),
		cmocka_unit_test(who_leaves_its_memory_to_another_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
