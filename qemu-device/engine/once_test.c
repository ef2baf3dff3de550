// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A sender that changes a packet as soon as the engine has read it, in memory that both see; or what
 * it has lent, as that is combined. Each instruction that touches it is run alone, and what it has
 * read is something else from then on. All goes on as if nothing were changed.
 */
#define WORLD_NODES	2
#define WORLD_BYTES	(1 << 16)
#include "test_world.h"

#ifdef __x86_64__
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, WORD = 4, RESULT = 4096, TRAP = 0x100 };

static struct {
	struct muster_packet packet;
	uint64_t payload[8];
} *shared;

static uint8_t *watched;		/* the page */
static uint8_t *read_last;
static uint32_t nr_reads, nr_taken;	/* the latter at once */
static size_t changes = WORD;		/* bytes of what was read */

/* A read of what is shared: let this instruction alone do it. */
static void touched(int signal, siginfo_t *info, void *context)
{
	uint8_t *at = info->si_addr;

	if (at < watched || at >= watched + PAGE)
		_exit(signal);
	read_last = at;
	nr_reads++;
	mprotect(watched, PAGE, PROT_READ | PROT_WRITE);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= TRAP;
}

static void done(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	memset(read_last, 0xee, changes);
	mprotect(watched, PAGE, PROT_NONE);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP;
}

static int setup(void **state)
{
	(void)state;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED;
}

static void take(struct world *w, uint32_t len)
{
	struct muster_engine *engine = w->nodes[0].engine;
	bool left;

	if (w->at_once && muster_engine_take_run(engine, 1, &shared->packet, shared->payload, len, &left))
		nr_taken++;
	else
		(w->recorded ? muster_engine_receive_recorded : muster_engine_receive)
			(engine, &shared->packet, shared->payload, len);
}

/* cmocka has handlers of its own in each test. */
static void watch(void *page)
{
	const struct sigaction touch = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO };
	const struct sigaction step = { .sa_sigaction = done, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(SIGSEGV, &touch, NULL) | sigaction(SIGTRAP, &step, NULL), 0);
	watched = page;
	nr_reads = 0;
	assert_int_equal(mprotect(watched, PAGE, PROT_NONE), 0);
}

static void watch_no_more(void)
{
	mprotect(watched, PAGE, PROT_READ | PROT_WRITE);
	assert_true(nr_reads);
}

static void give(struct world *w, struct muster_packet packet, const void *payload)
{
	shared->packet = packet;
	memcpy(shared->payload, payload, packet.length);
	watch(shared);
	take(w, packet.length);
	watch_no_more();
	world_run(w);
}

static struct muster_packet packet_of(uint8_t type, uint32_t number)
{
	return (struct muster_packet){
		.version = MUSTER_PACKET_VERSION, .type = type, .job = WORLD_JOB, .src_node = 1,
		.src_vp = WORLD_VP, .dst_vp = WORLD_VP, .src_member = 1,
		.context = WORLD_CONTEXT, .life = WORLD_LIFE, .number = number, .length = 8, .total = 8,
		.signature = SIGNATURE, .incarnation = 101, .base = number, .job_key = WORLD_JOB_KEY,
	};
}

static struct world *world_of(bool recorded)
{
	struct world *w = world_create(2, 1);

	w->map = true;
	w->recorded = recorded;
	world_start(w);
	return w;
}

/* The first one is new, the others are as predicted. */
static void data_are_read_once(void **state)
{
	static const struct muster_desc again = {
		.kind = MUSTER_DESC_START, .src_vp = WORLD_VP, .job = WORLD_JOB,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT, .context = WORLD_CONTEXT,
	};
	struct muster_desc sink = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END |
					  MUSTER_DESC_KEEP, 1, NULL);

	(void)state;
	desc_store(&sink, RESULT);
	for (int how = 0; how < 3; how++) {
		struct world *w = world_of(how == 1);

		w->at_once = how == 2;
		nr_taken = 0;
		for (uint32_t number = 0; number < 4; number++) {
			double value = 1.5 + number;

			world_post(w, 0, number ? &again : &sink, 1);
			world_run(w);
			give(w, packet_of(MUSTER_PACKET_DATA, number), &value);
			assert_int_equal(w->nodes[0].nr_cqes, number + 1);
			assert_int_equal(w->nodes[0].cqes[number].status, MUSTER_STATUS_OK);
			assert_memory_equal(w->nodes[0].memory + RESULT, &value, sizeof(value));
		}
		assert_int_equal(nr_taken, how == 2 ? 3 : 0);
		world_destroy(w);
	}
}

/* Of nothing that is predicted: neither the slot's message nor one for the receive ring. */
static void what_waits_for_its_turn_and_messages_are_read_once(void **state)
{
	struct muster_desc sink = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1, NULL);

	(void)state;
	desc_store(&sink, RESULT);
	for (int recorded = 0; recorded < 2; recorded++) {
		struct world *w = world_of(recorded);
		double value = 2.5;

		give(w, packet_of(MUSTER_PACKET_DATA, 0), &value);
		world_post(w, 0, &sink, 1);
		world_run(w);
		assert_int_equal(w->nodes[0].nr_cqes, 1);
		assert_memory_equal(w->nodes[0].memory + RESULT, &value, sizeof(value));
		give(w, packet_of(MUSTER_PACKET_P2P, 77), &value);
		assert_int_equal(w->nodes[0].nr_delivered, 1);
		assert_int_equal(w->nodes[0].delivered.packet.number, 77);
		assert_memory_equal(w->nodes[0].delivered.payload, &value, sizeof(value));
		assert_int_equal(world_counters(w, 0).drop_stranger + world_counters(w, 0).drop_malformed, 0);
		world_destroy(w);
	}
}

/* So many doubles, which the peer has lent: a sum, or a copy; into what is mapped, or by DMA. */
static void combine_lent(bool reduces, bool mapped, uint32_t nr)
{
	struct world *w = world_create(2, 1);
	struct muster_desc sink = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END |
					    (reduces ? MUSTER_DESC_REDUCE : 0), 1, nr * sizeof(double), PAGE);
	struct muster_packet rts = packet_of(MUSTER_PACKET_RTS, 0);
	struct muster_reference lent = { .length = nr * sizeof(double), .key = WORLD_KEY };
	double own[PAGE / sizeof(double)], sum[PAGE / sizeof(double)], *theirs;
	uint8_t *memory;

	w->map = mapped;
	world_start(w);
	memory = w->nodes[1].memory;
	theirs = (double *)(((uintptr_t)memory + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	for (uint32_t i = 0; i < nr; i++) {
		theirs[i] = own[i] = 1.5 + i;		/* alike: no bit of either is rounded away */
		sum[i] = reduces ? own[i] + theirs[i] : theirs[i];
	}
	memcpy(w->nodes[0].memory, own, nr * sizeof(double));
	if (reduces)
		desc_load(&sink, 0);
	desc_store(&sink, 2 * PAGE);
	world_post(w, 0, &sink, 1);
	world_run(w);
	lent.addr = (uint64_t)((uint8_t *)theirs - memory);
	rts.flags = MUSTER_PACKET_REFERENCE;
	rts.total = nr * sizeof(double);
	rts.length = sizeof(lent);
	muster_engine_receive(w->nodes[0].engine, &rts, &lent, sizeof(lent));
	watch(theirs);
	muster_engine_step(w->nodes[0].engine, 100);
	watch_no_more();
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].status, MUSTER_STATUS_OK);
	assert_int_equal(world_counters(w, 0).bytes_referenced, nr * sizeof(double));
	assert_memory_equal(w->nodes[0].memory + 2 * PAGE, sum, nr * sizeof(double));
	world_destroy(w);
}

/* It may be read byte by byte. How a copy is made by DMA, or of a few elements, is the C library's. */
static void what_a_peer_has_lent_is_read_once(void **state)
{
	static const uint32_t numbers[] = { 1, 4, 7, 16, 64, 512 };

	(void)state;
	changes = 1;
	for (uint32_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (int mapped = 0; mapped < 2; mapped++)
			combine_lent(true, mapped, numbers[i]);
	combine_lent(false, true, 1);
	combine_lent(false, true, 512);
	changes = WORD;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_peer_has_lent_is_read_once),
		cmocka_unit_test(data_are_read_once),
		cmocka_unit_test(what_waits_for_its_turn_and_messages_are_read_once),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
#else
int main(void)
{
	puts("what an instruction reads is seen on x86-64 only");
	return 4;
}
#endif
