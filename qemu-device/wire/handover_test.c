// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Socket ports that another program goes on with, while packets go both ways and frames are lost: each comes
 * once, and nobody is lost. The other program is this one: it keeps the socket, and forgets all else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "wire.h"

enum { PACKETS = 600, DEADLINE_US = 20000000, PATIENCE_US = 60000000 };

struct owner {
	struct muster_wire *wire;
	uint32_t node, sent, nr_came, nr_lost;
	bool shut;			/* it takes nothing */
	uint8_t came[PACKETS];
};

static struct {
	struct owner owners[2];
	char spec[80];
	uint32_t drop;			/* per thousand */
	uint32_t drawn;
} t;

static uint32_t draw(uint32_t below)
{
	t.drawn = t.drawn * 1664525 + 1013904223;
	return (t.drawn >> 8) % below;
}

/* Stands in for the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return draw(1000) < t.drop ? 1 : syscall(SYS_sendmsg, fd, message, flags);
}

static uint32_t length_of(uint32_t n)
{
	return n % 5 ? n % 100 : MUSTER_MTU - n % 3;
}

static bool take(void *opaque, uint32_t neighbour, const struct muster_packet *packet, const void *payload,
		 uint32_t len)
{
	struct owner *owner = opaque;
	const uint8_t *bytes = payload;

	assert_int_equal(neighbour, !owner->node);
	if (owner->shut)
		return false;
	assert_true(packet->number < PACKETS);
	assert_int_equal(len, length_of(packet->number));
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)(packet->number + i * 3));
	owner->came[packet->number]++;
	owner->nr_came++;
	return true;
}

static void met(void *opaque, uint32_t node, uint32_t present)
{
	(void)opaque;
	(void)node;
	assert_true(present);
}

static void lost(void *opaque, uint32_t node, uint32_t present)
{
	(void)node;
	(void)present;
	((struct owner *)opaque)->nr_lost++;
}

static const struct muster_wire_events events = { .take = take, .lost = lost, .met = met };

static void open_both(void)
{
	char why[256] = "";

	for (uint32_t i = 0; i < 2; i++) {
		t.owners[i] = (struct owner){ .node = i };
		if (muster_wire_socket_open(t.spec, i, 5 + i, DEADLINE_US, &events, &t.owners[i],
					    &t.owners[i].wire, why, sizeof(why)))
			fail_msg("%s", why);
	}
}

/* Its memory is lost and its socket stays, at the same descriptor. */
static FILE *leave(struct owner *owner)
{
	int fd = owner->wire->ops->fd(owner->wire), kept;
	FILE *state = tmpfile();

	assert_int_equal(muster_wire_socket_save(owner->wire, state), 0);
	kept = dup(fd);
	owner->wire->ops->close(owner->wire);
	assert_int_equal(dup2(kept, fd), fd);
	close(kept);
	rewind(state);
	return state;
}

static void replace(struct owner *owner)
{
	struct muster_wire_counters before, after;
	char why[256] = "";
	FILE *state;

	muster_wire_socket_counters(owner->wire, &before);
	state = leave(owner);
	if (muster_wire_socket_resume(t.spec, owner->node, state, &events, owner, &owner->wire, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(fgetc(state), EOF);
	fclose(state);
	muster_wire_socket_counters(owner->wire, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static bool send_next(struct owner *owner)
{
	struct muster_packet packet = {
		.src_node = owner->node, .dst_node = !owner->node, .number = owner->sent,
		.length = length_of(owner->sent),
	};
	uint8_t payload[MUSTER_MTU];

	for (uint32_t i = 0; i < packet.length; i++)
		payload[i] = packet.number + i * 3;
	if (owner->sent == PACKETS || owner->wire->ops->send(owner->wire, 6 - owner->node, &packet, payload))
		return false;
	owner->sent++;
	return true;
}

static bool all_came(void)
{
	return t.owners[0].nr_came >= PACKETS && t.owners[1].nr_came >= PACKETS;
}

/* How long it takes does not count, as long as something comes. */
static uint32_t exchange(void)
{
	uint64_t end_us = muster_clock_us() + PATIENCE_US;
	uint32_t nr = 0, came = 0;

	while (!all_came()) {
		struct owner *owner = &t.owners[draw(2)];

		while (draw(8) && send_next(owner))
			;
		owner->shut = !draw(10);
		owner->wire->ops->poll(owner->wire, muster_clock_us(), 1 + (int)draw(40));
		if (!draw(4)) {
			replace(&t.owners[draw(2)]);
			nr++;
		}
		if (came != t.owners[0].nr_came + t.owners[1].nr_came)
			end_us = muster_clock_us() + PATIENCE_US;
		came = t.owners[0].nr_came + t.owners[1].nr_came;
		assert_true(muster_clock_us() < end_us);
	}
	for (uint32_t i = 0; i < 2; i++) {
		for (uint32_t n = 0; n < PACKETS; n++)
			assert_int_equal(t.owners[i].came[n], 1);
		assert_int_equal(t.owners[i].nr_lost, 0);
		t.owners[i].wire->ops->close(t.owners[i].wire);
	}
	return nr;
}

/* ---- tests --------------------------------------------------------------- */

static void packets_come_once_over_unix(void **state)
{
	(void)state;
	snprintf(t.spec, sizeof(t.spec), "unix:@muster-handover-%d", getpid());
	for (t.drop = 0; t.drop <= 200; t.drop += 100) {
		open_both();
		assert_true(exchange() > 5);
	}
	t.drop = 0;
}

static void packets_come_once_over_udp(void **state)
{
	(void)state;
	snprintf(t.spec, sizeof(t.spec), "udp:127.0.0.1:%d", 20000 + getpid() % 3000 * 4);
	open_both();
	assert_true(exchange() > 5);
}

static void poll_both(uint64_t ahead_us)
{
	for (uint32_t i = 0; i < 2; i++)
		if (t.owners[i].wire)
			t.owners[i].wire->ops->poll(t.owners[i].wire, muster_clock_us() + ahead_us, 64);
}

/* A life that was lost stays so, though there is no link to it any more. */
static void who_was_lost_stays_lost(void **state)
{
	struct muster_packet packet = { .src_node = 0, .dst_node = 1 };
	uint64_t ahead_us = 0;	/* a millisecond goes by with each look */

	(void)state;
	snprintf(t.spec, sizeof(t.spec), "unix:@muster-handover-%d", getpid());
	open_both();
	while (!t.owners[1].nr_came) {
		send_next(&t.owners[0]);
		poll_both(0);
	}
	t.owners[1].wire->ops->close(t.owners[1].wire);
	t.owners[1].wire = NULL;
	while (!t.owners[0].nr_lost) {
		send_next(&t.owners[0]);
		poll_both(ahead_us += 1000);
	}
	replace(&t.owners[0]);
	assert_int_equal(t.owners[0].wire->ops->send(t.owners[0].wire, 6, &packet, NULL), -EHOSTUNREACH);
	t.owners[0].wire->ops->close(t.owners[0].wire);
}

static int resume_at(FILE *state, uint32_t node, char *why, size_t why_len)
{
	struct muster_wire *wire;

	rewind(state);
	return muster_wire_socket_resume(t.spec, node, state, &events, &t.owners[0], &wire, why, why_len);
}

static void what_is_not_its_own_is_refused(void **state)
{
	char why[256] = "";
	FILE *saved;
	long len;
	int fd;

	(void)state;
	snprintf(t.spec, sizeof(t.spec), "unix:@muster-handover-%d", getpid());
	open_both();
	while (send_next(&t.owners[0]))
		;
	fd = t.owners[0].wire->ops->fd(t.owners[0].wire);
	saved = leave(&t.owners[0]);
	assert_int_equal(resume_at(saved, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "another program"));
	/* Its socket is another node's. */
	assert_int_equal(dup2(t.owners[1].wire->ops->fd(t.owners[1].wire), fd), fd);
	assert_int_equal(resume_at(saved, 0, why, sizeof(why)), -EBADF);
	assert_non_null(strstr(why, "does not go on"));
	fseek(saved, 0, SEEK_END);
	for (len = ftell(saved) - 1; len > 0; len -= 1 + len / 20) {
		assert_int_equal(ftruncate(fileno(saved), len), 0);
		assert_int_equal(resume_at(saved, 0, why, sizeof(why)), -EIO);
	}
	fclose(saved);
	close(fd);
	t.owners[1].wire->ops->close(t.owners[1].wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_come_once_over_unix),
		cmocka_unit_test(packets_come_once_over_udp),
		cmocka_unit_test(who_was_lost_stays_lost),
		cmocka_unit_test(what_is_not_its_own_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
