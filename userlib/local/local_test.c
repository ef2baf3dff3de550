// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The local device between real processes, by its table of operations: every wire
 * carries messages, and sleepers wake.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test_local.h"

/* Every rank sends to every other; as many as the receive ring holds for sure. */
static void talks(struct muster_oob *oob, const void *argument)
{
	enum { EACH = 100 };
	struct muster_dev *dev = dev_open(oob, argument);
	uint64_t value, sums[TEST_RANKS_MAX] = { 0 };
	uint32_t left = EACH * (oob->size - 1);
	struct muster_packet packet;

	EXPECT(dev->limits.ring_slots >= left);
	context_open(oob, dev);
	for (uint64_t i = 1; i <= EACH; i++)
		for (uint32_t to = 0; to < oob->size; to++)
			if (to != oob->rank)
				message_post(dev, to, i);
	while (left) {
		if (message_take(dev, &packet, &value)) {
			sums[packet.src_node] += value;
			left--;
		} else {
			dev->ops->wait(dev, TEST_EVER_US);
		}
	}
	for (uint32_t rank = 0; rank < oob->size; rank++)
		EXPECT(sums[rank] == (rank == oob->rank ? 0 : EACH * (EACH + 1) / 2));
	dev->ops->close(dev);	/* the others may still wait for what we sent last */
}

static void every_wire_carries_messages(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(test_ranks(2, talks, wires[i]), 0);
		assert_int_equal(test_ranks(5, talks, wires[i]), 0);
	}
	assert_int_equal(test_ranks(1, talks, wires[0]), 0);
}

/* Who has sent computes: nothing of it may wait for another call of the sender. */
static void computes(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_packet packet;
	uint64_t value = 0;

	context_open(oob, dev);
	if (oob->rank == 0)
		message_post(dev, 1, 7);
	while (oob->rank == 1 && !message_take(dev, &packet, &value))
		;
	EXPECT(value == (oob->rank == 1 ? 7 : 0));
	test_barrier(oob);
	dev->ops->close(dev);
}

static void a_first_message_needs_its_sender_no_more(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(2, computes, wires[i]), 0);
}

static void sleeps(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_packet packet;
	uint64_t value;

	context_open(oob, dev);
	for (uint64_t round = 0; round < 20; round++) {
		if (oob->rank == 0) {
			usleep(5000);
			message_post(dev, 1, round);
		} else {
			while (!message_take(dev, &packet, &value))
				dev->ops->wait(dev, TEST_EVER_US);
			EXPECT(value == round);
		}
	}
	if (oob->rank == 1)
		dev->ops->wait(dev, 30000);	/* ends without any packet */
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
}

static void a_sleeper_wakes_when_a_packet_comes(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(2, sleeps, wires[i]), 0);
}

/* Rank 0 is a little late each time until rank 1 has taken note, and then says nothing more. */
static void is_a_little_late(struct muster_oob *oob, const void *argument)
{
	enum { ROUNDS = 20000 };	/* one that is short of processors is woken late, but not each time */
	atomic_bool *noted = *(atomic_bool *const *)argument;
	struct muster_dev *dev = dev_open(oob, "ring");
	const bool *patient = &((struct local *)dev)->patient;
	struct muster_packet packet;
	uint64_t value;

	context_open(oob, dev);
	EXPECT(!*patient);
	for (uint64_t round = 0; round < ROUNDS && !*noted && !dev->crowded; round++) {
		if (oob->rank == 0) {
			usleep(300);
			message_post(dev, 1, round);
			continue;
		}
		while (!message_take(dev, &packet, &value))
			dev->ops->wait(dev, TEST_EVER_US);
		*noted = *patient;
		test_moved();
	}
	test_barrier(oob);
	EXPECT(*noted || dev->crowded);
	while (message_take(dev, &packet, &value))
		;
	dev->ops->wait(dev, 5000);
	EXPECT(oob->rank == 0 || !*patient);
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
}

/* One that was woken soon spins for longer the next time, but not once that was in vain. */
static void who_is_late_by_little_finds_others_awake(void **state)
{
	atomic_bool *noted = mmap(NULL, sizeof(*noted), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(noted, MAP_FAILED);
	assert_int_equal(test_ranks(2, is_a_little_late, &noted), 0);
	munmap(noted, sizeof(*noted));
}

static void another_wire_is_refused_with_those_that_there_are(void **state)
{
	const struct muster_local_config config = { .wire = "string", .deadline_us = 1 };
	const struct muster_oob oob = { .rank = 0, .size = 2 };
	struct muster_dev *dev;
	char why[256];

	(void)state;
	assert_int_equal(muster_local_open(&oob, &config, &dev, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "MUSTER_WIRE=string: the local device has ring, unix, udp and switch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wire_carries_messages),
		cmocka_unit_test(a_first_message_needs_its_sender_no_more),
		cmocka_unit_test(a_sleeper_wakes_when_a_packet_comes),
		cmocka_unit_test(who_is_late_by_little_finds_others_awake),
		cmocka_unit_test(another_wire_is_refused_with_those_that_there_are),
	};

	return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
