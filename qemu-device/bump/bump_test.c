// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The bump as its hosts see it, packet by packet (Documentation/bump.md). Whole runs
 * with faults are in selftests/bump_sim.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "test_net.h"

enum { ANSWERS_MAX = 256 };

struct answer {
	uint32_t host, len;
	uint8_t data[NET_FRAME_MAX];
};

static struct answer answers[ANSWERS_MAX];
static uint32_t nr_answers;

static void keep_answer(struct net *net, uint32_t host, const uint8_t *data, uint32_t len)
{
	(void)net;
	if (nr_answers == ANSWERS_MAX || len > NET_FRAME_MAX)
		return;
	answers[nr_answers].host = host;
	answers[nr_answers].len = len;
	memcpy(answers[nr_answers++].data, data, len);
}

static struct net *new_net(const char *topology, uint32_t nr)
{
	struct net *net = net_new(topology, nr, 1);

	net->to_host = keep_answer;
	nr_answers = 0;
	return net;
}

/* Until nothing happens, or a second has gone: a bump that waits asks for ever. */
static void settle(struct net *net)
{
	uint64_t end = net->now + 1000000;

	while (net->now < end && net_step(net))
		;
}

static struct muster_bump_header allreduce(uint32_t hosts, uint32_t count)
{
	struct muster_bump_header header = net_header();

	header.operation = MUSTER_BUMP_ALLREDUCE;
	header.algorithm = MUSTER_BUMP_TREE;
	header.type = MUSTER_DTYPE_I32;
	header.redop = MUSTER_REDOP_SUM;
	header.count = htole16((uint16_t)count);
	header.hosts = header.ranks = htole16((uint16_t)hosts);
	return header;
}

static void ask_rank(struct net *net, uint32_t host, struct muster_bump_header header,
		     uint32_t rank, int32_t value)
{
	header.rank = htole16((uint16_t)rank);
	net_ask(net, host, &header, &value, header.message == MUSTER_BUMP_ABORT ? 0 : 4);
}

static struct muster_bump_header answer_header(uint32_t i)
{
	struct muster_bump_header header;

	assert_true(i < nr_answers);
	memcpy(&header, answers[i].data + 42, sizeof(header));
	return header;
}

static void expect_answer(uint32_t i, int32_t value)
{
	assert_int_equal(answer_header(i).message, MUSTER_BUMP_RESPONSE);
	assert_int_equal(answers[i].len, NET_DATA_AT + 4);
	assert_memory_equal(answers[i].data + NET_DATA_AT, &value, 4);
}

static void expect_errors(uint32_t nr, uint8_t status)
{
	assert_int_equal(nr_answers, nr);
	for (uint32_t i = 0; i < nr; i++) {
		assert_int_equal(answer_header(i).message, MUSTER_BUMP_ERROR);
		assert_int_equal(answer_header(i).status, status);
		assert_int_equal(answers[i].len, NET_DATA_AT);
	}
	nr_answers = 0;
}

static const struct muster_bump_counters *counters(const struct net *net, uint32_t i)
{
	return muster_bump_counters(net->nodes[i].bump);
}

/* ---- answers ---- */

static void an_answer_goes_back_where_the_request_came_from(void **state)
{
	struct net *net = new_net("ring", 1);
	struct muster_bump_header header = allreduce(1, 1);
	uint8_t asked[NET_FRAME_MAX], *got = answers[0].data;
	int32_t value = 7;
	uint32_t sum = 17 + 8 + 64 + 4;

	(void)state;
	net_frame(asked, 0, &header, &value, 4);
	ask_rank(net, 0, header, 0, value);
	settle(net);
	assert_int_equal(nr_answers, 1);
	expect_answer(0, 7);
	assert_memory_equal(got, asked + 6, 6);
	assert_memory_equal(got + 6, asked, 6);
	assert_memory_equal(got + 26, asked + 30, 4);
	assert_memory_equal(got + 30, asked + 26, 4);
	assert_memory_equal(got + 34, asked + 36, 2);
	assert_memory_equal(got + 36, asked + 34, 2);
	assert_int_equal(net_sum(got + 14, 20), 0);
	for (uint32_t i = 26; i < answers[0].len; i += 2)
		sum += (uint32_t)got[i] << 8 | got[i + 1];
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	net_free(net);
}

static void a_request_counts_once_however_often_it_is_repeated(void **state)
{
	struct net *net = new_net("ring", 2);

	(void)state;
	for (int i = 0; i < 3; i++)
		ask_rank(net, 0, allreduce(2, 1), 0, 5);
	settle(net);
	assert_int_equal(nr_answers, 0);
	ask_rank(net, 1, allreduce(2, 1), 1, 6);
	settle(net);
	assert_int_equal(nr_answers, 2);
	ask_rank(net, 0, allreduce(2, 1), 0, 5);
	settle(net);
	assert_int_equal(nr_answers, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_answer(i, 11);
	assert_int_equal(counters(net, 0)->operations, 1);
	assert_int_equal(counters(net, 0)->repeated, 3);
	net_free(net);
}

static void an_operation_starts_when_all_local_ranks_have_asked(void **state)
{
	struct net *net = new_net("ring", 2);
	struct muster_bump_header header = allreduce(2, 1);

	(void)state;
	header.operation = MUSTER_BUMP_SCAN;
	header.ranks = htole16(3);
	ask_rank(net, 1, header, 2, 100);
	header.local_ranks = 2;
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	assert_int_equal(counters(net, 0)->data_out, 0);
	header.local_rank = 1;
	ask_rank(net, 0, header, 1, 10);
	settle(net);
	assert_int_equal(nr_answers, 3);
	for (uint32_t i = 0; i < 3; i++) {
		uint16_t rank = le16toh(answer_header(i).rank);

		expect_answer(i, rank == 0 ? 1 : rank == 1 ? 11 : 111);
		assert_int_equal(answers[i].data[37], (20000 + (rank == 1)) & 0xff);
	}
	net_free(net);
}

/* ---- refusals ---- */

#define REFUSE(why, ...)                                                                         \
	do {                                                                                     \
		struct muster_bump_header h = allreduce(2, 1);                                   \
		__VA_ARGS__;                                                                     \
		net_ask(net, 0, &h, "\1\0\0", 4);                                                \
		settle(net);                                                                     \
		expect_errors(1, why);                                                           \
	} while (0)

static void what_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
	struct net *net = new_net("ring", 2);

	(void)state;
	REFUSE(MUSTER_BUMP_EVERSION, h.version = 2);
	REFUSE(MUSTER_BUMP_EFIELD, h.operation = 0);
	REFUSE(MUSTER_BUMP_EFIELD, h.operation = 5);
	REFUSE(MUSTER_BUMP_EFIELD, h.algorithm = 0);
	REFUSE(MUSTER_BUMP_EFIELD, h.algorithm = 5);
	REFUSE(MUSTER_BUMP_EFIELD, h.type = MUSTER_DTYPE_F32);
	REFUSE(MUSTER_BUMP_EFIELD, h.type = MUSTER_DTYPE_F64; h.redop = MUSTER_REDOP_BXOR);
	REFUSE(MUSTER_BUMP_EFIELD, h.redop = MUSTER_REDOP_PROD);
	REFUSE(MUSTER_BUMP_EFIELD, h.redop = MUSTER_REDOP_REPLACE);
	REFUSE(MUSTER_BUMP_EFIELD, h.root = htole16(1));
	REFUSE(MUSTER_BUMP_EFIELD, h.operation = MUSTER_BUMP_REDUCE; h.root = htole16(2));
	REFUSE(MUSTER_BUMP_EFIELD, h.operation = MUSTER_BUMP_BARRIER);
	REFUSE(MUSTER_BUMP_EFIELD, h.reserved[15] = 1);
	REFUSE(MUSTER_BUMP_EFIELD, h.step = 1);
	REFUSE(MUSTER_BUMP_ESIZE, h.count = 0);
	REFUSE(MUSTER_BUMP_ESIZE, h.count = htole16(2));
	REFUSE(MUSTER_BUMP_ESIZE, h.count = htole16(353));
	REFUSE(MUSTER_BUMP_EMEMBER, h.hosts = 0);
	REFUSE(MUSTER_BUMP_EMEMBER, h.hosts = htole16(3); h.ranks = htole16(3));
	REFUSE(MUSTER_BUMP_EMEMBER, h.stride = 0);
	REFUSE(MUSTER_BUMP_EMEMBER, h.stride = htole16(65535); h.hosts = htole16(65535);
	       h.ranks = h.hosts);
	REFUSE(MUSTER_BUMP_EMEMBER, h.first = htole16(1); h.hosts = htole16(1));
	REFUSE(MUSTER_BUMP_EMEMBER, h.ranks = htole16(1));
	REFUSE(MUSTER_BUMP_EMEMBER, h.rank = htole16(2));
	REFUSE(MUSTER_BUMP_EMEMBER, h.local_ranks = 0);
	REFUSE(MUSTER_BUMP_EMEMBER, h.local_rank = 1);
	REFUSE(MUSTER_BUMP_EMEMBER, h.local_ranks = 17; h.ranks = htole16(99));
	assert_int_equal(counters(net, 0)->groups, 0);
	net_free(net);
}

static void strangers_get_no_answer(void **state)
{
	struct net *net = new_net("ring", 1);
	struct muster_bump_header header = allreduce(1, 1);

	(void)state;
	header.key = htole64(NET_KEY + 1);
	ask_rank(net, 0, header, 0, 1);
	header = allreduce(1, 1);
	header.message = MUSTER_BUMP_DATA;	/* not from a host */
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	assert_int_equal(nr_answers, 0);
	assert_int_equal(counters(net, 0)->dropped_key, 1);
	assert_int_equal(counters(net, 0)->dropped_bad, 1);
	net_free(net);
}

static void ranks_that_ask_for_different_things_all_hear_of_it(void **state)
{
	struct net *net = new_net("torus", 4);
	struct muster_bump_header other = allreduce(4, 1);

	(void)state;
	other.redop = MUSTER_REDOP_MAX;
	for (uint32_t i = 0; i < 4; i++)
		ask_rank(net, i, i == 2 ? other : allreduce(4, 1), i, 1);
	settle(net);
	expect_errors(4, MUSTER_BUMP_EMISMATCH);
	net_free(net);
}

/* Also where they do not agree on the group, whichever of them is heard of first. */
static void ranks_that_describe_the_group_differently_all_hear_of_it(void **state)
{
	struct muster_bump_header other = allreduce(3, 1);

	(void)state;
	other.ranks = htole16(4);
	for (uint32_t differs = 0; differs < 3; differs++)
		for (uint32_t first = 0; first < 3; first++) {
			struct net *net = new_net("ring", 3);

			for (uint32_t i = first; i < first + 3; i++) {
				ask_rank(net, i % 3, i % 3 == differs ? other : allreduce(3, 1),
					 i % 3, 1);
				settle(net);
			}
			expect_errors(3, MUSTER_BUMP_EMISMATCH);
			net_free(net);
		}
}

static void a_rank_that_gives_up_ends_the_operation_for_all(void **state)
{
	struct net *net = new_net("ring", 5);
	struct muster_bump_header header = allreduce(5, 1);

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		ask_rank(net, i, header, i, 1);
	settle(net);
	header.message = MUSTER_BUMP_ABORT;
	ask_rank(net, 1, header, 1, 1);
	settle(net);
	expect_errors(4, MUSTER_BUMP_EABORTED);
	ask_rank(net, 4, allreduce(5, 1), 4, 1);
	settle(net);
	expect_errors(1, MUSTER_BUMP_EABORTED);
	net_free(net);
}

static void ids_far_from_those_that_run_are_refused(void **state)
{
	struct net *net = new_net("ring", 2);
	struct muster_bump_header header = allreduce(2, 1);

	(void)state;
	header.id = htole32(100);
	ask_rank(net, 0, header, 0, 1);
	header.id = htole32(100 + MUSTER_BUMP_KEPT);
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	expect_errors(1, MUSTER_BUMP_EWINDOW);
	header.id = htole32(100 - MUSTER_BUMP_KEPT);
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	expect_errors(1, MUSTER_BUMP_EWINDOW);
	net_free(net);
}

static void a_group_that_is_idle_makes_room_and_one_that_is_not_does_not(void **state)
{
	struct net *net = new_net("ring", 2);
	struct muster_bump_header header = allreduce(2, 1);

	(void)state;
	for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX; i++) {
		header.group = htole32(i);
		ask_rank(net, 0, header, 0, 1);
	}
	header.group = htole32(99);
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	expect_errors(1, MUSTER_BUMP_EROOM);
	header.group = htole32(3);
	ask_rank(net, 1, header, 1, 1);		/* group 3 is through */
	settle(net);
	nr_answers = 0;
	header.group = htole32(99);
	ask_rank(net, 0, header, 0, 1);
	ask_rank(net, 1, header, 1, 1);
	settle(net);
	assert_int_equal(nr_answers, 2);
	expect_answer(0, 2);
	net_free(net);
}

static void a_group_whose_ranks_say_no_more_makes_room(void **state)
{
	struct net *net = new_net("ring", 2);
	struct muster_bump_header header = allreduce(2, 1);

	(void)state;
	for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX; i++) {
		header.group = htole32(i);
		ask_rank(net, 0, header, 0, 1);
	}
	for (uint32_t second = 0; second < 12; second++) {
		header.group = htole32(3);	/* it waits, and repeats what it has said */
		ask_rank(net, 0, header, 0, 1);
		settle(net);
	}
	assert_int_equal(nr_answers, 0);
	for (uint32_t i = 0; i < MUSTER_BUMP_GROUPS_MAX - 1; i++) {
		header.group = htole32(99 + i);
		ask_rank(net, 0, header, 0, 1);
	}
	settle(net);
	assert_int_equal(nr_answers, 0);
	header.group = htole32(99 + MUSTER_BUMP_GROUPS_MAX);
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	expect_errors(1, MUSTER_BUMP_EROOM);
	header.group = htole32(3);
	ask_rank(net, 1, header, 1, 1);
	settle(net);
	assert_int_equal(nr_answers, 2);
	expect_answer(0, 2);
	net_free(net);
}

/* ---- damaged packets ---- */

static void ten_thousand_damaged_packets_change_nothing(void **state)
{
	struct net *net = new_net("ring", 3);
	uint32_t nr = getenv("MUSTER_PACKETS") ? (uint32_t)atoi(getenv("MUSTER_PACKETS")) : 10000;
	uint8_t frame[NET_FRAME_MAX];
	struct muster_bump_header header = allreduce(3, 1);
	int32_t value = 1;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		ask_rank(net, i, allreduce(3, 1), i, 1);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t len;

		header.message = (uint8_t)(net_random(net) % 8);
		header.to = htole16(MUSTER_BUMP_TO_NEIGHBOUR);
		header.from = htole16((uint16_t)(net_random(net) % 4));
		header.group = htole32(500);	/* whatever it does is not done to ours */
		len = net_frame(frame, 0, &header, &value, 4);
		for (uint32_t flips = 1 + net_random(net) % 4; flips--;)
			frame[net_random(net) % len] ^= (uint8_t)(1 << net_random(net) % 8);
		memcpy(frame + 50, "\xf4\1\0", 4);
		if (net_random(net) % 4 == 0)
			len = net_random(net) % (len + 1);
		net_deliver(net, net->now + 1, 2, (uint32_t)(net_random(net) % 3), frame, len);
		while (net->nr_heap > 64 && net_step(net))
			;
		nr_answers = 0;
	}
	settle(net);
	nr_answers = 0;
	ask_rank(net, 2, allreduce(3, 1), 2, 1);
	settle(net);
	assert_int_equal(nr_answers, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_answer(i, 3);
	net_free(net);
}

/* ---- other traffic ---- */

static void other_traffic_passes_untouched(void **state)
{
	struct net *net = new_net("ring", 2);
	struct muster_bump_header header = allreduce(2, 1);
	uint8_t frame[NET_FRAME_MAX];
	uint32_t len = net_frame(frame, 9, &header, "abcd", 4);

	(void)state;
	frame[42] ^= 1;			/* our port, but not our magic */
	net_deliver(net, 1, 0, MUSTER_BUMP_HOST_PORT, frame, len);
	frame[12] = 0x86;		/* IPv6 */
	frame[13] = 0xdd;
	net_deliver(net, 2, 0, MUSTER_BUMP_HOST_PORT, frame, 15);
	settle(net);
	assert_int_equal(nr_answers, 2);
	assert_int_equal(answers[0].host, 1);
	assert_int_equal(answers[0].len, len);
	assert_memory_equal(answers[0].data + 14, frame + 14, len - 14);
	assert_int_equal(answers[1].len, 15);
	assert_memory_equal(answers[1].data, frame, 15);
	net_free(net);
}

static void other_traffic_goes_round_no_ring(void **state)
{
	struct net *net = new_net("ring", 6);
	uint8_t frame[64] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 0x08, 0x06 };

	(void)state;
	net_deliver(net, 1, 3, MUSTER_BUMP_HOST_PORT, frame, sizeof(frame));
	settle(net);
	assert_int_equal(nr_answers, 5);
	memcpy(frame, frame + 6, 6);	/* to the one who was heard at host 3 */
	frame[11] = 8;
	net_deliver(net, net->now, 5, MUSTER_BUMP_HOST_PORT, frame, sizeof(frame));
	settle(net);
	assert_int_equal(nr_answers, 6);
	assert_int_equal(answers[5].host, 3);
	net_free(net);
}

static void it_answers_for_its_address(void **state)
{
	static const uint8_t question[42] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 77, 0, 1,
		0, 0, 0, 0, 0, 0, 10, 77, 0xff, 0xfe,
	};
	struct net *net = new_net("ring", 2);

	(void)state;
	net_deliver(net, 1, 0, MUSTER_BUMP_HOST_PORT, question, sizeof(question));
	settle(net);
	assert_int_equal(nr_answers, 1);
	assert_int_equal(answers[0].host, 0);
	assert_int_equal(answers[0].data[21], 2);
	assert_memory_equal(answers[0].data, question + 6, 6);
	assert_memory_equal(answers[0].data + 28, question + 38, 4);
	assert_memory_equal(answers[0].data + 32, question + 22, 10);
	net_free(net);
}

/* ---- within ---- */

static void one_packet_is_copied_for_several_neighbours(void **state)
{
	struct net *net = new_net("tree", 8);

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		ask_rank(net, i, allreduce(8, 1), i, 1 << i);
	settle(net);
	assert_int_equal(nr_answers, 8);
	for (uint32_t i = 0; i < 8; i++)
		expect_answer(i, 255);
	assert_int_equal(counters(net, 0)->data_in, 3);
	assert_int_equal(counters(net, 0)->data_out, 1);
	net_free(net);
}

static void what_is_lost_is_asked_for(void **state)
{
	struct net *net = new_net("ring", 2);

	(void)state;
	ask_rank(net, 1, allreduce(2, 1), 1, 1);
	settle(net);
	net->loss = 1000;
	net->nodes[1].net = net;
	for (uint32_t i = 0; i < 2; i++) {
		ask_rank(net, 0, allreduce(2, 1), 0, 2);
		net->loss = i ? 0 : 1000;
	}
	settle(net);
	net->loss = 0;
	ask_rank(net, 0, allreduce(2, 1), 0, 2);
	settle(net);
	assert_true(counters(net, 1)->wants_out + counters(net, 0)->wants_out > 0);
	assert_true(nr_answers >= 2);
	expect_answer(0, 3);
	net_free(net);
}

/* Its receiver may be asleep for long by then: it is not to miss it for a single loss. */
static void what_was_asked_for_too_early_is_sent_twice(void **state)
{
	struct net *net = new_net("ring", 3);
	struct muster_bump_header header = allreduce(3, 1);

	(void)state;
	header.algorithm = MUSTER_BUMP_RING;
	for (uint32_t i = 1; i < 3; i++)
		ask_rank(net, i, header, i, 1);
	settle(net);
	assert_int_equal(counters(net, 1)->repaired, 0);
	ask_rank(net, 0, header, 0, 1);
	settle(net);
	assert_int_equal(nr_answers, 3);
	assert_int_equal(counters(net, 1)->repaired, 1);
	assert_int_equal(counters(net, 2)->duplicates, 1);
	net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_goes_back_where_the_request_came_from),
		cmocka_unit_test(a_request_counts_once_however_often_it_is_repeated),
		cmocka_unit_test(an_operation_starts_when_all_local_ranks_have_asked),
		cmocka_unit_test(what_makes_no_sense_is_refused_and_changes_nothing),
		cmocka_unit_test(strangers_get_no_answer),
		cmocka_unit_test(ranks_that_ask_for_different_things_all_hear_of_it),
		cmocka_unit_test(ranks_that_describe_the_group_differently_all_hear_of_it),
		cmocka_unit_test(a_rank_that_gives_up_ends_the_operation_for_all),
		cmocka_unit_test(ids_far_from_those_that_run_are_refused),
		cmocka_unit_test(a_group_that_is_idle_makes_room_and_one_that_is_not_does_not),
		cmocka_unit_test(a_group_whose_ranks_say_no_more_makes_room),
		cmocka_unit_test(ten_thousand_damaged_packets_change_nothing),
		cmocka_unit_test(other_traffic_passes_untouched),
		cmocka_unit_test(other_traffic_goes_round_no_ring),
		cmocka_unit_test(it_answers_for_its_address),
		cmocka_unit_test(one_packet_is_copied_for_several_neighbours),
		cmocka_unit_test(what_is_lost_is_asked_for),
		cmocka_unit_test(what_was_asked_for_too_early_is_sent_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
