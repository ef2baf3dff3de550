// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory rings: order and content over many laps, a full ring, what a hostile
 * neighbour may write, two processes that exchange packets, and the sleep
 * protocol. Payloads are drawn from a fixed generator, so that the reader can
 * tell what must come next.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ring_packet.h"

enum { RING_BYTES = 32 << 10, SOURCES = 3 };

struct fixture {
	void *mem;
	size_t bytes;
	struct muster_ring_region owner, peer;
	struct muster_ring_producer out;
	struct muster_ring_consumer in;
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.bytes = muster_ring_region_size(SOURCES, RING_BYTES);
	f.mem = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f.mem, MAP_FAILED);
	assert_int_equal(muster_ring_region_init(&f.owner, f.mem, f.bytes, SOURCES, RING_BYTES), 0);
	assert_int_equal(muster_ring_region_init(&f.peer, f.mem, f.bytes, SOURCES, RING_BYTES), 0);
	assert_int_equal(muster_ring_producer_init(&f.out, &f.peer, 1), 0);
	assert_int_equal(muster_ring_consumer_init(&f.in, &f.owner, 1), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	return munmap(f->mem, f->bytes);
}

/* What the n-th packet of a stream is. */
static uint32_t mixed(uint32_t n)
{
	n *= 0x9e3779b1u;
	n ^= n >> 15;
	n *= 0x85ebca77u;
	return n ^ n >> 13;
}

static uint16_t length_of(uint32_t n)
{
	uint32_t m = mixed(n);

	return m & 1 ? m >> 8 & 63 : (m >> 8) % (MUSTER_MTU + 1);
}

static void fill(uint32_t n, struct muster_packet *packet, uint8_t *payload)
{
	memset(packet, 0, sizeof(*packet));
	packet->number = n;
	packet->length = length_of(n);
	memset(payload, 0xff, packet->length);	/* would look like words and lengths */
	if (packet->length > 4)
		memcpy(payload + packet->length - 4, &n, 4);
}

static int send_nth(struct muster_ring_producer *out, uint32_t n)
{
	static uint8_t payload[MUSTER_MTU];
	struct muster_packet packet;

	fill(n, &packet, payload);
	return muster_ring_send(out, &packet, payload);
}

/* Whether poll() gives the n-th packet; 0: nothing, 1: yes, else wrong. */
static int take_nth(struct muster_ring_consumer *in, uint32_t n)
{
	static uint8_t want[MUSTER_MTU];
	struct muster_packet packet, expect;
	const void *payload;
	int got = muster_ring_poll(in, &packet, &payload);

	if (got != 1)
		return got;
	fill(n, &expect, want);
	if (memcmp(&packet, &expect, sizeof(packet)) || memcmp(payload, want, packet.length))
		return -EBADMSG;
	muster_ring_release(in);
	return 1;
}

static void packets_come_in_order_over_many_laps(void **state)
{
	struct fixture *f = *state;
	uint32_t sent = 0, taken = 0;

	for (uint32_t turn = 0; turn < 4000; turn++) {
		for (uint32_t burst = mixed(turn) % 20; burst && !send_nth(&f->out, sent); burst--)
			sent++;
		if (mixed(turn) & 1)
			muster_ring_clear_ahead(&f->out);
		for (uint32_t burst = mixed(~turn) % 20; burst && taken < sent; burst--)
			assert_int_equal(take_nth(&f->in, taken++), 1);
	}
	while (taken < sent)
		assert_int_equal(take_nth(&f->in, taken++), 1);
	assert_int_equal(take_nth(&f->in, taken), 0);
	assert_true(f->out.pos / f->out.nr_lines > 500);
}

static void a_full_ring_refuses_and_loses_nothing(void **state)
{
	struct fixture *f = *state;
	uint32_t sent = 0, taken = 0;

	for (int round = 0; round < 200; round++) {
		while (!send_nth(&f->out, sent))
			sent++;
		muster_ring_clear_ahead(&f->out);
		assert_int_equal(send_nth(&f->out, sent), -EAGAIN);
		for (int i = 0; i < 3; i++)
			assert_int_equal(take_nth(&f->in, taken++), 1);
	}
	while (taken < sent)
		assert_int_equal(take_nth(&f->in, taken++), 1);
	assert_int_equal(take_nth(&f->in, taken), 0);
}

static void a_record_is_given_again_until_it_is_released(void **state)
{
	struct fixture *f = *state;
	struct muster_packet packet;
	const void *payload;

	muster_ring_release(&f->in);
	assert_int_equal(send_nth(&f->out, 0), 0);
	assert_int_equal(muster_ring_poll(&f->in, &packet, &payload), 1);
	assert_int_equal(muster_ring_poll(&f->in, &packet, &payload), 1);
	assert_int_equal(packet.number, 0);
	muster_ring_release(&f->in);
	muster_ring_release(&f->in);
	assert_int_equal(send_nth(&f->out, 1), 0);
	assert_int_equal(take_nth(&f->in, 1), 1);
}

static void too_long_a_payload_is_refused(void **state)
{
	struct fixture *f = *state;
	struct muster_packet packet = { .length = MUSTER_MTU + 1 };
	static uint8_t payload[MUSTER_MTU + 1];

	assert_int_equal(muster_ring_send(&f->out, &packet, payload), -EMSGSIZE);
	assert_int_equal(take_nth(&f->in, 0), 0);
}

static void a_hostile_producer_gets_the_ring_refused(void **state)
{
	struct fixture *f = *state;
	struct muster_ring_record *record = (void *)f->in.lines;
	const uint64_t words[] = {
		1,					/* not valid */
		MUSTER_RING_WORD_VALID | (MUSTER_MTU + 1),
		MUSTER_RING_WORD_VALID | MUSTER_RING_WORD_LENGTH,
		MUSTER_RING_WORD_VALID | 1ull << 32,	/* another record's count */
		MUSTER_RING_WORD_VALID | 100,		/* the header says 8 */
		UINT64_MAX,
	};
	struct muster_packet packet;
	const void *payload;

	*f->out.used |= f->out.used_bit;
	record->packet.length = 8;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		record->word = words[i];
		assert_int_equal(muster_ring_poll(&f->in, &packet, &payload), -EPROTO);
	}
	record->word = MUSTER_RING_WORD_VALID | 8;
	assert_int_equal(muster_ring_poll(&f->in, &packet, &payload), 1);
}

static void a_hostile_consumer_gets_the_ring_refused(void **state)
{
	struct fixture *f = *state;
	uint32_t sent = 0;

	while (!send_nth(&f->out, sent))
		sent++;
	f->out.control->consumed = f->out.pos + 1;
	assert_int_equal(send_nth(&f->out, sent), -EPROTO);
	f->out.control->consumed = UINT64_MAX;
	assert_int_equal(send_nth(&f->out, sent), -EPROTO);
	f->out.control->consumed = f->out.pos;
	assert_int_equal(send_nth(&f->out, sent), 0);
	while (!send_nth(&f->out, ++sent))
		;
	f->out.control->consumed = 0;			/* has gone back */
	assert_int_equal(send_nth(&f->out, sent), -EPROTO);
}

static void a_region_must_fit_its_memory(void **state)
{
	struct fixture *f = *state;
	struct muster_ring_region r;

	assert_int_equal(muster_ring_region_size(0, RING_BYTES), 0);
	assert_int_equal(muster_ring_region_size(1, RING_BYTES + 64), 0);
	assert_int_equal(muster_ring_region_size(MUSTER_RING_SOURCES_MAX + 1, RING_BYTES), 0);
	assert_int_equal(muster_ring_region_init(&r, f->mem, f->bytes - 1, SOURCES, RING_BYTES),
			 -EINVAL);
	assert_int_equal(muster_ring_producer_init(&f->out, &f->peer, SOURCES), -EINVAL);
	assert_int_equal(muster_ring_consumer_init(&f->in, &f->owner, SOURCES), -EINVAL);
}

/* Owner and peer over one memory; whoever writes what is not its own dies of it. */
static void each_end_writes_what_is_its_own(void **state)
{
	struct fixture *f = *state;
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *owner, *peer, *lines;
	size_t ring, all;

	assert_int_equal(ftruncate(fd, (off_t)f->bytes), 0);
	owner = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	peer = mmap(NULL, f->bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(owner != MAP_FAILED && peer != MAP_FAILED);
	assert_int_equal(muster_ring_region_init(&f->owner, owner, f->bytes, SOURCES, RING_BYTES), 0);
	assert_int_equal(muster_ring_region_init(&f->peer, peer, f->bytes, SOURCES, RING_BYTES), 0);
	assert_int_equal(muster_ring_producer_init(&f->out, &f->peer, 1), 0);
	assert_int_equal(muster_ring_consumer_init(&f->in, &f->owner, 1), 0);

	lines = muster_ring_lines(&f->owner, 0, &ring);
	all = SOURCES * ring;
	assert_ptr_equal(lines + all, owner + f->bytes);
	assert_int_equal(mprotect(lines, all, PROT_NONE), 0);
	assert_int_equal(take_nth(&f->in, 0), 0);	/* no ring is looked into before it is used */
	assert_int_equal(mprotect(lines, all, PROT_READ), 0);
	assert_int_equal(mprotect(peer, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(muster_ring_lines(&f->peer, 1, &ring), ring,
				  PROT_READ | PROT_WRITE), 0);
	for (uint32_t n = 0; n < 1000; n++) {
		muster_ring_sleep_begin(&f->owner);
		assert_int_equal(send_nth(&f->out, n), 0);
		assert_true(muster_ring_wants_wake(&f->peer));
		assert_int_equal(take_nth(&f->in, n), 1);
	}
	muster_ring_sign(&f->owner, 77, true);
	assert_true(muster_ring_signed(&f->peer, 77) && !muster_ring_signed(&f->peer, 78));
	munmap(owner, f->bytes);
	munmap(peer, f->bytes);
	close(fd);
}

static void rings_of_a_region_do_not_touch_each_other(void **state)
{
	struct fixture *f = *state;
	struct muster_ring_producer out[SOURCES];
	struct muster_ring_consumer in[SOURCES];
	uint32_t sent[SOURCES] = { 0 };

	for (uint32_t s = 0; s < SOURCES; s++) {
		assert_int_equal(muster_ring_producer_init(&out[s], &f->peer, s), 0);
		assert_int_equal(muster_ring_consumer_init(&in[s], &f->owner, s), 0);
		while (!send_nth(&out[s], 1000 * s + sent[s]))
			sent[s]++;
	}
	for (uint32_t s = 0; s < SOURCES; s++) {
		for (uint32_t n = 0; n < sent[s]; n++)
			assert_int_equal(take_nth(&in[s], 1000 * s + n), 1);
		assert_int_equal(take_nth(&in[s], 0), 0);
	}
}

static void child(struct fixture *f, uint32_t count)
{
	for (uint32_t n = 0; n < count;) {
		int err = send_nth(&f->out, n);

		if (!err)
			n++;
		else if (err != -EAGAIN)
			_exit(1);
		else
			usleep(50);
	}
	_exit(0);
}

static void two_processes_exchange_every_packet(void **state)
{
	struct fixture *f = *state;
	uint32_t taken = 0, count = 20000, idle = 0;
	int status, got = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		child(f, count);
	while (taken < count && idle < 100000) {
		got = take_nth(&f->in, taken);
		if (got < 0)
			break;
		taken += got;
		idle = got ? 0 : idle + 1;
		if (!got)
			usleep(50);
	}
	if (taken < count)		/* it would try for ever */
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(got >= 0);
	assert_int_equal(taken, count);
	assert_int_equal(status, 0);
}

static void only_a_sleeper_is_woken_and_only_once(void **state)
{
	struct fixture *f = *state;

	assert_false(muster_ring_wants_wake(&f->peer));
	muster_ring_sleep_begin(&f->owner);
	assert_true(muster_ring_wants_wake(&f->peer));
	assert_false(muster_ring_wants_wake(&f->peer));
	muster_ring_sleep_begin(&f->owner);
	muster_ring_sleep_end(&f->owner);
	assert_false(muster_ring_wants_wake(&f->peer));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_come_in_order_over_many_laps),
		TEST(a_full_ring_refuses_and_loses_nothing),
		TEST(a_record_is_given_again_until_it_is_released),
		TEST(too_long_a_payload_is_refused),
		TEST(a_hostile_producer_gets_the_ring_refused),
		TEST(a_hostile_consumer_gets_the_ring_refused),
		TEST(a_region_must_fit_its_memory),
		TEST(rings_of_a_region_do_not_touch_each_other),
		TEST(each_end_writes_what_is_its_own),
		TEST(two_processes_exchange_every_packet),
		TEST(only_a_sleeper_is_woken_and_only_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
