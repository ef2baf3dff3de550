// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of the local device between real processes: deaths are told with a name, who
 * leaves fails nothing by itself, and nothing stays behind.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "test_local.h"

static void dies(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_cqe cqe;

	context_open(oob, dev);
	if (oob->rank == 2)
		kill(getpid(), SIGKILL);
	cqe = completion(dev);		/* no deadline ends this wait */
	EXPECT(cqe.kind == MUSTER_CQE_CONTEXT && cqe.status == MUSTER_STATUS_PEER_LOST);
	EXPECT(cqe.culprit == 2);
	dev->ops->close(dev);
}

static void all_name_the_dead_without_a_deadline(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		for (int turn = 0; turn < 5; turn++)
			assert_int_equal(test_ranks(4, dies, wires[i]), 0);
}

/* A caller that only polls, slowly, hears of it, too. */
static void dies_to_a_poller(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_cqe cqe = { 0 };

	context_open(oob, dev);
	if (oob->rank == 1)
		kill(getpid(), SIGKILL);
	while (!dev->ops->poll(dev, &cqe))
		usleep(1000);
	EXPECT(cqe.status == MUSTER_STATUS_PEER_LOST && cqe.culprit == 1);
	dev->ops->close(dev);
}

static void who_only_polls_hears_of_a_death(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, dies_to_a_poller, "ring"), 0);
}

/* Leaving is no failure for those who need nothing more from the one who left. */
static void leaves(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_cqe cqe;

	context_open(oob, dev);
	if (oob->rank == 0) {
		dev->ops->context_close(dev, JOB, CONTEXT);
		dev->ops->close(dev);
		return;
	}
	for (int i = 0; i < 10; i++) {
		dev->ops->wait(dev, 20000);
		EXPECT(!dev->ops->poll(dev, &cqe));
	}
	message_post(dev, 3 - oob->rank, 1);
	dev->ops->close(dev);
}

static void a_rank_that_leaves_fails_nothing_by_itself(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(3, leaves, wires[i]), 0);
}

/* All leave; nothing was sent, and nobody says farewell to anybody. */
static void leaves_silently(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	const struct muster_rings *rings = &((struct local *)dev)->rings;
	struct muster_desc desc;
	uint32_t key;
	void *memory;

	context_open(oob, dev);
	EXPECT(!dev->ops->mem_alloc(dev, 100, &memory, &key));
	desc = transfer(memory, key, 100, false);
	if (oob->rank == 0)
		EXPECT(!dev->ops->post(dev, &desc, 1));
	dev->ops->leave(dev);
	if (oob->rank) {
		dev->ops->context_close(dev, JOB, CONTEXT);
		for (uint32_t rank = 0; rank < oob->size; rank++)
			EXPECT(!rings->peers[rank].to.lines);
	} else {
		EXPECT(completion(dev).status == MUSTER_STATUS_PEER_LOST);
	}
	dev->ops->close(dev);
}

static void who_leaves_needs_no_ring_to_say_so(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(5, leaves_silently, "ring"), 0);
}

/* The wire refuses what is for the one who left; others are still heard. */
static void is_left(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_packet packet;
	uint64_t value = 0;

	context_open(oob, dev);
	if (oob->rank == 0) {
		message_post(dev, 1, 7);
	} else if (oob->rank == 1) {
		while (!message_take(dev, &packet, &value))
			;
		message_post(dev, 0, 8);
	}
	dev->ops->settle(dev);
	test_barrier(oob);
	if (oob->rank == 0)
		dev->ops->close(dev);
	test_barrier(oob);
	if (oob->rank == 1)
		message_post(dev, 0, 9);
	test_barrier(oob);
	if (oob->rank == 2)
		message_post(dev, 1, 10);
	while (oob->rank == 1 && value != 10)
		message_take(dev, &packet, &value);
	if (oob->rank)
		dev->ops->close(dev);
}

static void who_sends_to_one_that_left_still_hears_the_others(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(3, is_left, wires[i]), 0);
}

/* More than a socket takes at once, for one who does not look for a while. */
static void is_late(struct muster_oob *oob, const void *argument)
{
	enum { MESSAGES = 60, LATE_US = 1500000 };
	struct muster_dev *dev = dev_open(oob, argument);
	struct muster_packet packet;
	uint64_t value;

	context_open(oob, dev);
	for (uint64_t i = 0; oob->rank == 0 && i < MESSAGES; i++)
		message_post(dev, 1, i);
	if (oob->rank == 1)
		usleep(LATE_US);
	for (int left = MESSAGES; oob->rank == 1 && left;)
		left -= message_take(dev, &packet, &value);
	dev->ops->close(dev);
}

static void who_closes_waits_for_one_who_is_late(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(2, is_late, wires[i]), 0);
}

static int count_lines(const char *path, const char *what)
{
	FILE *file = fopen(path, "r");
	char line[512];
	int nr = 0;

	while (fgets(line, sizeof(line), file))
		nr += strstr(line, what) != NULL;
	fclose(file);
	return nr;
}

/* Rank 0 closes its context when its ring to rank 1 has no room, and then does nothing else. */
static void leaves_a_full_ring(struct muster_oob *oob, const void *argument)
{
	struct muster_dev *dev = dev_open(oob, argument);
	const struct muster_ring_producer *to = &((struct local *)dev)->rings.peers[1].to;
	struct muster_desc desc;
	struct muster_cqe cqe;
	char memory[8];
	uint32_t key;

	context_open(oob, dev);
	if (oob->rank == 0) {
		while (to->pos + 3 <= to->nr_lines)	/* a packet takes two, and one behind it */
			message_post(dev, 1, 1);
		EXPECT(!((struct local *)dev)->busy);
		dev->ops->context_close(dev, JOB, CONTEXT);
	}
	test_barrier(oob);
	if (oob->rank == 0) {
		while (!((struct local *)dev)->peers[1].ended)
			dev->ops->wait(dev, 100000);
	} else {
		EXPECT(!dev->ops->mem_register(dev, memory, sizeof(memory), 3, &key));
		desc = transfer(memory, key, sizeof(memory), false);
		EXPECT(!dev->ops->post(dev, &desc, 1));
		cqe = completion(dev);
		EXPECT(cqe.status == MUSTER_STATUS_PEER_LOST && cqe.culprit == 0);
	}
	dev->ops->close(dev);
}

static void a_good_bye_waits_for_room_and_for_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(2, leaves_a_full_ring, "ring"), 0);
}

/* As /proc/net/unix shows it, where other jobs' are as well; "no socket" if it has none. */
static void socket_name(struct muster_dev *dev, char name[128])
{
	const struct local *local = (struct local *)dev;
	struct sockaddr_un address = { 0 };
	socklen_t len = sizeof(address);

	strcpy(name, "no socket");
	if (!local->wire)
		return;
	EXPECT(!getsockname(local->wire->ops->fd(local->wire), (void *)&address, &len));
	if (address.sun_family == AF_UNIX)
		snprintf(name, 128, "@%s", address.sun_path + 1);
}

static void opens_and_closes(struct muster_oob *oob, const void *argument)
{
	int fds = count_fds();
	struct muster_dev *dev;
	char name[128];
	void *memory;
	uint32_t key;

	for (int round = 0; round < 3; round++) {
		dev = dev_open(oob, argument);
		context_open(oob, dev);
		socket_name(dev, name);
		EXPECT(count_lines("/proc/net/unix", name) == !strcmp(argument, "unix"));
		EXPECT(!dev->ops->mem_alloc(dev, 3 << 20, &memory, &key));
		test_barrier(oob);
		dev->ops->poll(dev, &(struct muster_cqe){ 0 });
		dev->ops->close(dev);
		test_barrier(oob);
		EXPECT(count_fds() == fds);
		EXPECT(!count_lines("/proc/self/maps", "memfd:muster"));
		EXPECT(!count_lines("/proc/net/unix", name));
	}
}

static void closing_gives_everything_back(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_ranks(3, opens_and_closes, wires[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_name_the_dead_without_a_deadline),
		cmocka_unit_test(who_only_polls_hears_of_a_death),
		cmocka_unit_test(a_rank_that_leaves_fails_nothing_by_itself),
		cmocka_unit_test(who_leaves_needs_no_ring_to_say_so),
		cmocka_unit_test(who_sends_to_one_that_left_still_hears_the_others),
		cmocka_unit_test(who_closes_waits_for_one_who_is_late),
		cmocka_unit_test(a_good_bye_waits_for_room_and_for_nothing_else),
		cmocka_unit_test(closing_gives_everything_back),
	};

	return cmocka_run_group_tests_name("local end", tests, NULL, NULL);
}
