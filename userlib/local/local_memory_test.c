// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The local device between real processes: shared memory is read in place, and given back. */
#include <sys/mman.h>
#include <sys/resource.h>

#include "test_local.h"

static uint64_t bytes_referenced(struct muster_dev *dev)
{
	struct muster_engine_counters counters;

	muster_engine_counters_get(((struct local *)dev)->engine, &counters);
	return counters.bytes_referenced;
}

struct transfer_case {
	const char *wire;
	bool shared;		/* allocated by the device, else registered */
	int access;		/* of the latter */
	bool in_place;		/* what is to be expected: it is not sent in packets */
	bool full;		/* rank 1 can open no more files, and has memory of its own */
};

/* Let no further file be opened here. */
static void limit_open_files(void)
{
	int next = dup(0);
	struct rlimit limit = { .rlim_cur = (rlim_t)next, .rlim_max = (rlim_t)next };

	close(next);
	EXPECT(next > 0 && !setrlimit(RLIMIT_NOFILE, &limit));
}

/* Rank 0's memory goes to rank 1, by sequences of one descriptor. */
static void transfers(struct muster_oob *oob, const void *argument)
{
	enum { BYTES = 300000, ROUNDS = 5 };
	const struct transfer_case *it = argument;
	struct muster_dev *dev = dev_open(oob, it->wire);
	bool shared = it->shared && !(it->full && oob->rank == 1);
	struct muster_desc desc;
	struct muster_cqe cqe;
	uint32_t key;
	void *memory;

	context_open(oob, dev);
	if (it->full && oob->rank == 1)
		limit_open_files();
	for (int round = 0; round < ROUNDS; round++) {
		if (shared) {
			EXPECT(!dev->ops->mem_alloc(dev, BYTES, &memory, &key));
		} else {
			memory = calloc(1, BYTES);
			EXPECT(!dev->ops->mem_register(dev, memory, BYTES, it->access, &key));
		}
		if (oob->rank == 0)
			memset(memory, 'a' + round, BYTES);
		desc = transfer(memory, key, BYTES, oob->rank == 0);
		EXPECT(!dev->ops->post(dev, &desc, 1));
		cqe = completion(dev);
		EXPECT(cqe.status == MUSTER_STATUS_OK && cqe.number == (uint32_t)round);
		for (int i = 0; i < BYTES; i++)
			EXPECT(((char *)memory)[i] == 'a' + round);
		if (shared) {
			dev->ops->mem_free(dev, memory, BYTES, key);
		} else {
			dev->ops->mem_deregister(dev, key);
			free(memory);
		}
	}
	EXPECT(((struct local *)dev)->copies.nr_free == (((struct local *)dev)->copies.key ?
							 MUSTER_COPIES_MAX : 0));
	EXPECT(bytes_referenced(dev) == (it->in_place && oob->rank == 1 ? ROUNDS * BYTES : 0));
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
}

static void memory_is_read_in_place_or_as_a_copy_or_sent(void **state)
{
	enum { RW = MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE };
	static const struct transfer_case cases[] = {
		{ "ring", true, 0, true, false }, { "ring", false, RW, true, false },
		{ "ring", false, RW | MUSTER_ACCESS_APART, false, false },
		{ "unix", true, 0, false, false }, { "udp", false, RW, false, false },
		{ "ring", true, RW, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(test_ranks(2, transfers, &cases[i]), 0);
}

/* Those that somebody has to be told of still, too. */
static uint32_t keys_in_use(struct muster_dev *dev)
{
	const struct muster_regions_own *memory = &((struct local *)dev)->memory;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < memory->nr; i++)
		nr += memory->table[i].key != 0;
	return nr;
}

/* What it sends to a rank, but without a sequence. Return: whether it will be mapped there. */
static bool share(struct muster_dev *dev, uint32_t key, uint32_t rank)
{
	struct local *local = (struct local *)dev;

	return muster_local_share(local, muster_region_find(&local->memory, key), rank);
}

/*
 * Rank 1 computes while rank 0 shares with it and frees more than the mesh has room for;
 * then rank 2 reads rank 0's memory, and rank 1 comes back.
 */
static void shares_past_one_that_computes(struct muster_oob *oob, const void *argument)
{
	enum { REGIONS = 600, BYTES = 300000 };
	struct muster_dev *dev = dev_open(oob, argument);
	uint32_t key, keys[REGIONS], refused = 0;
	void *memory[REGIONS];
	struct muster_desc desc;
	int fds = count_fds();

	context_open(oob, dev);
	for (int i = 0; i < REGIONS && oob->rank == 0; i++) {
		EXPECT(!dev->ops->mem_alloc(dev, 5000, &memory[i], &keys[i]));
		refused += !share(dev, keys[i], 1);
	}
	EXPECT(oob->rank || refused);
	for (int i = 0; i < REGIONS && oob->rank == 0; i++)
		dev->ops->mem_free(dev, memory[i], 5000, keys[i]);
	EXPECT(oob->rank || keys_in_use(dev));	/* rank 1 is yet to hear of some */
	if (oob->rank != 1) {
		EXPECT(!dev->ops->mem_alloc(dev, BYTES, &memory[0], &key));
		desc = transfer(memory[0], key, BYTES, oob->rank == 0);
		if (oob->rank == 0)
			desc.dest = 2;
		EXPECT(!dev->ops->post(dev, &desc, 1));
		EXPECT(completion(dev).status == MUSTER_STATUS_OK);
		EXPECT(bytes_referenced(dev) == (oob->rank == 2 ? BYTES : 0));
		dev->ops->mem_free(dev, memory[0], BYTES, key);
	}
	test_barrier(oob);
	while (oob->rank ? !((struct local *)dev)->peers[0].ended : keys_in_use(dev))
		dev->ops->wait(dev, 10000);	/* told by nothing but a look */
	EXPECT(oob->rank || count_fds() <= fds + 4);	/* connections and eventfds of the others */
	dev->ops->close(dev);
}

static void one_that_computes_keeps_no_other_from_memory(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(3, shares_past_one_that_computes, "ring"), 0);
}

/* A rank's memory, as the others know it. */
struct place {
	uint64_t addr;
	uint32_t open, own;	/* two keys of it: for others to write, and not */
};

static struct muster_cqe written(struct muster_dev *dev, struct muster_desc desc, const struct place *to, uint32_t key)
{
	desc.flags = MUSTER_DESC_COLL_END;
	desc.range.pulse_len = desc.range.pulse_count = 0;
	desc.signature = (struct muster_signature){ 0 };
	desc.range.remote_addr = to->addr;
	desc.range.remote_key = key;
	EXPECT(!dev->ops->post(dev, &desc, 1));
	return completion(dev);
}

/* The other rank says that it is so far; what lies here then. */
static void expect_all(struct muster_dev *dev, const char *memory, size_t bytes, char value)
{
	struct muster_packet packet;
	uint64_t word;

	while (!message_take(dev, &packet, &word))
		dev->ops->wait(dev, TEST_EVER_US);
	for (size_t i = 0; i < bytes; i++)
		EXPECT(memory[i] == value);
}

static void send_from_own(struct muster_dev *dev, uint32_t key, void *memory, uint64_t bytes)
{
	struct muster_desc desc = transfer(memory, key, bytes, true);

	EXPECT(!dev->ops->post(dev, &desc, 1));
	EXPECT(completion(dev).status == MUSTER_STATUS_OK);
}

static void take_to_own(struct muster_dev *dev, uint32_t key, void *memory, uint64_t bytes)
{
	struct muster_desc desc = transfer(memory, key, bytes, false);

	EXPECT(!dev->ops->post(dev, &desc, 1));
	EXPECT(completion(dev).status == MUSTER_STATUS_OK);
}

/* Rank 0 writes to rank 1's, by the wrong key and then by the right one, and says so; then it sends to it. */
static void writes(struct muster_oob *oob, const void *argument)
{
	enum { BYTES = 300000, RW = MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE };
	struct muster_dev *dev = dev_open(oob, argument);
	char *memory = calloc(1, BYTES);
	struct place own = { .addr = (uintptr_t)memory }, all[2];
	struct muster_cqe cqe;

	context_open(oob, dev);
	EXPECT(!dev->ops->mem_register(dev, memory, BYTES, RW | MUSTER_ACCESS_REMOTE, &own.open));
	EXPECT(!dev->ops->mem_register(dev, memory, BYTES, RW, &own.own));
	EXPECT(!oob->allgather(oob->opaque, &own, all, sizeof(own)));
	if (oob->rank == 0) {
		memset(memory, 'a', BYTES);
		cqe = written(dev, transfer(memory, own.own, BYTES, true), &all[1], all[1].own);
		EXPECT(cqe.kind == MUSTER_CQE_SEND && cqe.status == MUSTER_STATUS_MEMORY && cqe.culprit == 1);
		message_post(dev, 1, 0);
		expect_all(dev, memory, BYTES, 'a');
		cqe = written(dev, transfer(memory, own.own, BYTES, true), &all[1], all[1].open);
		EXPECT(cqe.kind == MUSTER_CQE_SEND && cqe.status == MUSTER_STATUS_OK);
		message_post(dev, 1, 0);
		send_from_own(dev, all[0].own, memory, BYTES);
	} else {
		expect_all(dev, memory, BYTES, 0);
		message_post(dev, 0, 0);
		expect_all(dev, memory, BYTES, 'a');
		memset(memory, 'b', BYTES);
		take_to_own(dev, all[1].own, memory, BYTES);
		for (size_t i = 0; i < BYTES; i++)
			EXPECT(memory[i] == 'a');
	}
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
	free(memory);
}

static void memory_that_is_open_to_others_is_written_to(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wires) / sizeof(wires[0]); i++)
		assert_int_equal(test_ranks(2, writes, wires[i]), 0);
}

static void looks_at_new_memory(struct muster_oob *oob, const void *argument)
{
	enum { PAGE = 4096, PAGES = 700 };
	struct muster_dev *dev = dev_open(oob, argument);
	unsigned char there[PAGES];
	uint32_t key;
	void *memory;

	EXPECT(!dev->ops->mem_alloc(dev, PAGES * PAGE - 5, &memory, &key));
	EXPECT(!mincore(memory, PAGES * PAGE, there));
	for (int i = 0; i < PAGES; i++)
		EXPECT(there[i] & 1);
	test_barrier(oob);
	dev->ops->close(dev);
}

static void new_memory_is_there_before_it_is_touched(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(1, looks_at_new_memory, "ring"), 0);
}

/*
 * Rank 0 lends its memory to rank 1, which computes; gives up, while the ring has no
 * room to say so; and writes there. Rank 1 must not take that for what was sent.
 */
static void lends_and_gives_up(struct muster_oob *oob, const void *argument)
{
	enum { BYTES = 30000, MESSAGES = 10000 };
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_desc full = { .kind = MUSTER_DESC_MP, .dest = 1, .job = JOB,
				    .context = CONTEXT };
	struct muster_desc desc;
	struct muster_cqe cqe;
	uint32_t key;
	void *memory;

	context_open(oob, dev);
	EXPECT(!dev->ops->mem_alloc(dev, BYTES, &memory, &key));
	desc = transfer(memory, key, BYTES, oob->rank == 0);
	memset(memory, 'a', BYTES);
	if (oob->rank == 0) {
		EXPECT(!dev->ops->post(dev, &desc, 1));
		for (int i = 0; i < MESSAGES && dev->ops->post(dev, &full, 1) != -EAGAIN; i++)
			;
		dev->ops->abort(dev, JOB, CONTEXT, MUSTER_STATUS_ABORTED, 0);
		memset(memory, 'b', BYTES);
	}
	test_barrier(oob);
	if (oob->rank == 1)
		EXPECT(!dev->ops->post(dev, &desc, 1));
	do {
		cqe = completion(dev);
	} while (cqe.kind == MUSTER_CQE_SEND);
	EXPECT(cqe.status == MUSTER_STATUS_ABORTED && cqe.culprit == 0);
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
}

/*
 * Rank 0 sends what is its own and what is shared, and goes on before rank 1 begins: its memory is
 * other things' by then, and its context closed. Copies are kept in half of the places at most.
 */
static void sends_and_goes_on(struct muster_oob *oob, const void *argument)
{
	enum { OWN = 30000, SHARED = 16000, NUMBERS = 4 };
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_copies *copies = &((struct local *)dev)->copies;
	char *own = calloc(1, OWN), *shared;
	uint32_t own_key, shared_key;
	void *memory;

	context_open(oob, dev);
	EXPECT(!dev->ops->mem_register(dev, own, OWN, 3, &own_key));
	EXPECT(!dev->ops->mem_alloc(dev, OWN, &memory, &shared_key));
	shared = memory;
	for (int i = 0; oob->rank == 0 && i < NUMBERS; i++) {
		memset(own, 'a' + i, OWN);
		memset(shared, 'A' + i, SHARED);
		send_from_own(dev, own_key, own, OWN);
		send_from_own(dev, shared_key, shared, SHARED);
	}
	if (oob->rank == 0) {
		EXPECT(copies->nr_kept == 2 * NUMBERS);
		memset(own, 'x', OWN);
		memset(shared, 'x', OWN);
		dev->ops->context_close(dev, JOB, CONTEXT);
		EXPECT(copies->nr_kept == 2 * NUMBERS);
		while (muster_copy_take(copies, &((struct local *)dev)->memory, MUSTER_LEND_KEPT))
			;
		EXPECT(copies->nr_kept == MUSTER_COPIES_KEPT && copies->nr_free == MUSTER_COPIES_MAX - MUSTER_COPIES_KEPT);
	}
	test_barrier(oob);
	for (int i = 0; oob->rank == 1 && i < NUMBERS; i++) {
		take_to_own(dev, own_key, own, OWN);
		take_to_own(dev, shared_key, shared, SHARED);
		EXPECT(own[0] == 'a' + i && own[OWN - 1] == 'a' + i);
		EXPECT(shared[0] == 'A' + i && shared[SHARED - 1] == 'A' + i);
	}
	while (oob->rank == 0 && copies->nr_kept > MUSTER_COPIES_KEPT - 2 * NUMBERS)
		dev->ops->wait(dev, 20000);
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
	free(own);
}

static void who_sends_a_copy_goes_on(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, sends_and_goes_on, "ring"), 0);
}

/*
 * Copies of a context that failed are others' again when it is closed, and not before, and who
 * finds no place for a copy sends: it takes nobody's.
 */
static void copies_end_with_their_context(struct muster_oob *oob, const void *argument)
{
	enum { BYTES = MUSTER_PULSE_MAX * 3 };
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_copies *copies = &((struct local *)dev)->copies;
	void *memory = calloc(1, BYTES);
	struct muster_desc desc;
	uint32_t key, nr;

	context_open(oob, dev);
	EXPECT(!dev->ops->mem_register(dev, memory, BYTES, 3, &key));
	if (oob->rank == 0) {
		desc = transfer(memory, key, BYTES, true);
		EXPECT(!dev->ops->post(dev, &desc, 1));
		EXPECT(copies->nr_free == MUSTER_COPIES_MAX - 3);
		dev->ops->abort(dev, JOB, CONTEXT, MUSTER_STATUS_ABORTED, 0);
		EXPECT(copies->nr_free == MUSTER_COPIES_MAX - 3);
		dev->ops->context_close(dev, JOB, CONTEXT);
		EXPECT(copies->nr_free == MUSTER_COPIES_MAX);
		for (nr = 0; muster_copy_take(copies, &((struct local *)dev)->memory, 9); nr++)
			;
		EXPECT(nr == MUSTER_COPIES_MAX && !copies->nr_free);
		muster_copies_drop(copies, 8);
		EXPECT(!copies->nr_free);
		muster_copies_drop(copies, 9);
		EXPECT(copies->nr_free == MUSTER_COPIES_MAX);
		for (nr = 0; nr < 3 * MUSTER_COPIES_MAX; nr++) {
			uint8_t *place = muster_copy_take(copies, &((struct local *)dev)->memory, 9);

			EXPECT(place == copies->memory + nr % MUSTER_COPIES_WARM * (size_t)MUSTER_PULSE_MAX);
			muster_copy_again(copies, place);
			muster_copy_give(copies, place);
			EXPECT(copies->nr_free == MUSTER_COPIES_MAX - 1);
			muster_copy_give(copies, place);
		}
	}
	test_barrier(oob);
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
	free(memory);
}

static void copies_that_were_lent_end_with_their_context(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, copies_end_with_their_context, "ring"), 0);
}

static void memory_that_was_lent_and_given_back_counts_for_nothing(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, lends_and_gives_up, "ring"), 0);
}

/* The kernel writes there for us, and does not crash over it. */
static bool writable(const void *there)
{
	int ends[2];
	bool is;

	EXPECT(!pipe(ends) && write(ends[1], there, 1) == 1);
	is = read(ends[0], (void *)(uintptr_t)there, 1) == 1;
	close(ends[0]);
	close(ends[1]);
	return is;
}

static void looks_at_its_rings(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	const struct muster_rings *rings = &((struct local *)dev)->rings;

	context_open(oob, dev);
	for (uint32_t rank = 0; rank < oob->size; rank++) {
		const struct muster_rings_peer *peer = &rings->peers[rank];

		if (rank == oob->rank)
			continue;
		EXPECT(!peer->to.lines);	/* until something is sent */
		message_post(dev, rank, 1);
		EXPECT(writable(peer->to.lines) && !writable(peer->to.control));
		EXPECT(writable(peer->from.control) && !writable(peer->from.lines));
	}
	test_barrier(oob);
	dev->ops->close(dev);
}

static void each_end_of_a_ring_can_write_only_what_is_its_own(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(3, looks_at_its_rings, "ring"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read_in_place_or_as_a_copy_or_sent),
		cmocka_unit_test(one_that_computes_keeps_no_other_from_memory),
		cmocka_unit_test(memory_that_is_open_to_others_is_written_to),
		cmocka_unit_test(who_sends_a_copy_goes_on),
		cmocka_unit_test(new_memory_is_there_before_it_is_touched),
		cmocka_unit_test(memory_that_was_lent_and_given_back_counts_for_nothing),
		cmocka_unit_test(copies_that_were_lent_end_with_their_context),
		cmocka_unit_test(each_end_of_a_ring_can_write_only_what_is_its_own),
	};

	return cmocka_run_group_tests_name("local memory", tests, NULL, NULL);
}
