// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The local device between real processes, by its table of operations: every wire
 * carries messages, sleepers wake, shared memory is read in place, deaths are told
 * with a name, and nothing stays behind.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "internal.h"
#include "test_ranks.h"

enum { JOB = 3, CONTEXT = 5 };

static const char *const wires[] = { "ring", "unix", "udp" };

static struct muster_dev *dev_open(struct muster_oob *oob, const char *wire)
{
	const struct muster_local_config config = { .wire = wire, .deadline_us = TEST_EVER_US };
	struct muster_dev *dev = NULL;
	char why[256] = "";

	if (muster_local_open(oob, &config, &dev, why, sizeof(why)))
		fprintf(stderr, "%s\n", why);
	EXPECT(dev);
	return dev;
}

/* One context of all ranks, open everywhere on return. */
static void context_open(struct muster_oob *oob, struct muster_dev *dev)
{
	struct muster_address members[TEST_RANKS_MAX];
	struct muster_dev_context context = {
		.context = CONTEXT, .job = JOB, .job_key = 42, .self = oob->rank,
		.nr_members = oob->size, .members = members,
	};

	EXPECT(!oob->allgather(oob->opaque, &dev->address, members, sizeof(members[0])));
	EXPECT(!dev->ops->context_open(dev, &context));
	test_barrier(oob);
}

static void message_post(struct muster_dev *dev, uint32_t to, uint64_t value)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_MP, .dest = to, .job = JOB, .context = CONTEXT,
		.inline_len = sizeof(value), .length = sizeof(value), .cookie = value,
	};
	int err;

	memcpy(desc.data, &value, sizeof(value));
	while ((err = dev->ops->post(dev, &desc, 1)) == -EAGAIN)
		dev->ops->poll(dev, &(struct muster_cqe){ 0 });
	EXPECT(!err);
}

/* The next completion. */
static struct muster_cqe completion(struct muster_dev *dev)
{
	struct muster_cqe cqe;

	while (!dev->ops->poll(dev, &cqe))
		dev->ops->wait(dev, TEST_EVER_US);
	test_moved();
	return cqe;
}

static bool message_take(struct muster_dev *dev, struct muster_packet *packet, uint64_t *value)
{
	uint8_t payload[MUSTER_MTU];

	dev->ops->poll(dev, &(struct muster_cqe){ 0 });
	if (!dev->ops->recv(dev, packet, payload))
		return false;
	EXPECT(packet->length == sizeof(*value));
	memcpy(value, payload, sizeof(*value));
	return true;
}

/* ---- messages ------------------------------------------------------------------ */

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

/* ---- memory ---------------------------------------------------------------------- */

static struct muster_desc transfer(const void *memory, uint32_t key, uint64_t bytes, bool sends)
{
	struct muster_desc desc = {
		.kind = MUSTER_DESC_RDMA,
		.flags = MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
		.job = JOB, .context = CONTEXT,
		.signature = { .type = MUSTER_DTYPE_I8, .digest = 77 }, .length = bytes,
		.range = { .pulse_len = MUSTER_PULSE_MAX,
			   .pulse_count = (bytes + MUSTER_PULSE_MAX - 1) / MUSTER_PULSE_MAX },
	};

	if (sends) {
		desc.flags |= MUSTER_DESC_CP;
		desc.dest = 1;
		desc.range.load_addr = (uintptr_t)memory;
		desc.range.load_key = key;
	} else {
		desc.cp_count = 1;
		desc.store_addr = (uintptr_t)memory;
		desc.store_key = key;
	}
	return desc;
}

static uint64_t bytes_referenced(struct muster_dev *dev)
{
	struct muster_engine_counters counters;

	muster_engine_counters_get(((struct local *)dev)->engine, &counters);
	return counters.bytes_referenced;
}

struct transfer_case {
	const char *wire;
	bool shared;		/* allocated by the device, else registered */
	bool in_place;		/* what is to be expected */
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
			EXPECT(!dev->ops->mem_register(dev, memory, BYTES, 3, &key));
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
	EXPECT(bytes_referenced(dev) == (it->in_place && oob->rank == 1 ? ROUNDS * BYTES : 0));
	dev->ops->settle(dev);
	test_barrier(oob);
	dev->ops->close(dev);
}

static void shared_memory_is_read_in_place_and_other_memory_is_sent(void **state)
{
	static const struct transfer_case cases[] = {
		{ "ring", true, true, false }, { "ring", false, false, false },
		{ "unix", true, false, false }, { "udp", false, false, false },
		{ "ring", true, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(test_ranks(2, transfers, &cases[i]), 0);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static bool known(struct muster_dev *dev, uint32_t key, uint32_t rank)
{
	return muster_region_find(&((struct local *)dev)->memory, key)->known[rank];
}

/* Regions that somebody has to be told of still. */
static uint32_t keys_in_use(struct muster_dev *dev)
{
	const struct muster_regions_own *memory = &((struct local *)dev)->memory;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < memory->nr; i++)
		nr += memory->table[i].key != 0;
	return nr;
}

/*
 * Rank 1 computes while rank 0 allocates and frees more than the mesh has room for;
 * then rank 2 reads rank 0's memory, and rank 1 comes back.
 */
static void announces_past_one_that_computes(struct muster_oob *oob, const void *argument)
{
	enum { REGIONS = 600, BYTES = 300000 };
	struct muster_dev *dev = dev_open(oob, argument);
	uint32_t key, keys[REGIONS];
	void *memory[REGIONS];
	struct muster_desc desc;
	int fds = count_fds();

	context_open(oob, dev);
	for (int i = 0; i < REGIONS && oob->rank == 0; i++)
		EXPECT(!dev->ops->mem_alloc(dev, 1, &memory[i], &keys[i]));
	for (int i = 0; i < REGIONS && oob->rank == 0; i++)
		dev->ops->mem_free(dev, memory[i], 1, keys[i]);
	EXPECT(count_fds() <= fds + 2);	/* eventfds of the others */
	if (oob->rank != 1) {
		EXPECT(!dev->ops->mem_alloc(dev, BYTES, &memory[0], &key));
		while (oob->rank == 0 && !known(dev, key, 2))	/* it is only slow */
			dev->ops->wait(dev, 10000);
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
	EXPECT(oob->rank || count_fds() <= fds + 2);
	dev->ops->close(dev);
}

static void one_that_computes_keeps_no_other_from_memory(void **state)
{
	(void)state;
	assert_int_equal(test_ranks(3, announces_past_one_that_computes, "ring"), 0);
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

	for (uint32_t rank = 0; rank < oob->size; rank++) {
		const struct muster_rings_peer *peer = &rings->peers[rank];

		if (rank == oob->rank)
			continue;
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

/* ---- the end ------------------------------------------------------------------------ */

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

static void another_wire_is_refused_with_those_that_there_are(void **state)
{
	const struct muster_local_config config = { .wire = "string", .deadline_us = 1 };
	const struct muster_oob oob = { .rank = 0, .size = 2 };
	struct muster_dev *dev;
	char why[256];

	(void)state;
	assert_int_equal(muster_local_open(&oob, &config, &dev, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "MUSTER_WIRE=string: the local device has ring, unix and udp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wire_carries_messages),
		cmocka_unit_test(a_first_message_needs_its_sender_no_more),
		cmocka_unit_test(a_sleeper_wakes_when_a_packet_comes),
		cmocka_unit_test(shared_memory_is_read_in_place_and_other_memory_is_sent),
		cmocka_unit_test(one_that_computes_keeps_no_other_from_memory),
		cmocka_unit_test(memory_that_was_lent_and_given_back_counts_for_nothing),
		cmocka_unit_test(each_end_of_a_ring_can_write_only_what_is_its_own),
		cmocka_unit_test(all_name_the_dead_without_a_deadline),
		cmocka_unit_test(who_only_polls_hears_of_a_death),
		cmocka_unit_test(a_rank_that_leaves_fails_nothing_by_itself),
		cmocka_unit_test(who_sends_to_one_that_left_still_hears_the_others),
		cmocka_unit_test(who_closes_waits_for_one_who_is_late),
		cmocka_unit_test(a_good_bye_waits_for_room_and_for_nothing_else),
		cmocka_unit_test(closing_gives_everything_back),
		cmocka_unit_test(another_wire_is_refused_with_those_that_there_are),
	};

	return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
