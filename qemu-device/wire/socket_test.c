// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The socket transport between ports of one process, on UNIX and UDP sockets. The
 * test has its own sendmsg(), which loses, repeats and refuses what it is told to.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "crc32c.h"
#include "reliable.h"

enum { PACKETS = 2000, DEADLINE_US = 300000, PORTS = 3, PATIENCE_US = 20000000 };

struct owner {
	struct muster_wire *wire;
	uint32_t node;
	uint32_t incarnation;
	uint8_t came[PORTS][PACKETS];	/* by source */
	uint32_t nr_came;
	uint32_t nr_expected;
	uint32_t lost[PORTS];
	uint32_t nr_lost;
};

static struct {
	char dir[64], unix_spec[80], udp_spec[40];
	struct owner owners[PORTS];
	uint32_t drop, repeat, refuse;	/* per thousand */
	uint32_t drawn;
} t;

static bool chance(uint32_t permille)
{
	t.drawn = t.drawn * 1664525 + 1013904223;
	return (t.drawn >> 8) % 1000 < permille;
}

/* Stands in for the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = 1;

	if (chance(t.refuse)) {
		errno = chance(500) ? EAGAIN : ENOBUFS;
		return -1;
	}
	for (int copies = 1 + chance(t.repeat); copies; copies--)
		if (!chance(t.drop))
			sent = syscall(SYS_sendmsg, fd, message, flags);
	return sent;
}

static uint32_t length_of(uint32_t n)
{
	return n % 5 ? n % 100 : MUSTER_MTU - n % 3;
}

static void receive(void *opaque, const struct muster_packet *packet, const void *payload,
		    uint32_t len)
{
	struct owner *owner = opaque;
	const uint8_t *bytes = payload;

	assert_true(packet->src_node < PORTS && packet->number < PACKETS);
	assert_int_equal(packet->dst_node, owner->node);
	assert_int_equal(len, length_of(packet->number));
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)(packet->number + i * 3));
	owner->came[packet->src_node][packet->number]++;
	owner->nr_came++;
}

/* Several at once, of those that come then. */
static void expect(void *opaque, const struct muster_packet *const *packets, uint32_t nr)
{
	struct owner *owner = opaque;

	assert_true(nr <= MUSTER_WIRE_EXPECT_MAX);
	for (uint32_t i = 0; i < nr; i++) {
		assert_true(packets[i]->src_node < PORTS && packets[i]->number < PACKETS);
		assert_int_equal(packets[i]->dst_node, owner->node);
	}
	owner->nr_expected += nr;
}

static void met(void *opaque, uint32_t node, uint32_t present)
{
	(void)opaque;
	assert_true(node < PORTS);
	assert_true(present);
}

static void lost(void *opaque, uint32_t node, uint32_t present)
{
	struct owner *owner = opaque;

	(void)present;
	owner->nr_lost++;
	if (node < PORTS)
		owner->lost[node]++;
}

static int open_port(const char *spec, uint32_t node, uint32_t incarnation, char *why)
{
	static const struct muster_wire_events events = {
		.receive = receive, .lost = lost, .met = met, .expect = expect,
	};
	struct owner *owner = &t.owners[node % PORTS];

	memset(owner, 0, sizeof(*owner));
	owner->node = node;
	owner->incarnation = incarnation;
	return muster_wire_socket_open(spec, node, incarnation, DEADLINE_US, &events, owner,
				       &owner->wire, why, 256);
}

static void must_open(const char *spec, uint32_t node, uint32_t incarnation)
{
	char why[256] = "";

	if (open_port(spec, node, incarnation, why))
		fail_msg("%s", why);
}

static void close_port(uint32_t node)
{
	if (t.owners[node].wire)
		t.owners[node].wire->ops->close(t.owners[node].wire);
	t.owners[node].wire = NULL;
}

static int try_send(uint32_t from, uint32_t to, uint32_t n)
{
	struct muster_packet packet = {
		.src_node = from, .dst_node = to, .number = n, .length = length_of(n),
	};
	uint8_t payload[MUSTER_MTU];

	for (uint32_t i = 0; i < packet.length; i++)
		payload[i] = n + i * 3;
	return t.owners[from].wire->ops->send(t.owners[from].wire,
					      to < PORTS ? t.owners[to].incarnation : 1,
					      &packet, payload);
}

static void poll_all(void)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (t.owners[i].wire)
			t.owners[i].wire->ops->poll(t.owners[i].wire, muster_clock_us(), 64);
}

/* On a slow machine it takes long, but something comes all the time. */
static void exchange(uint32_t a, uint32_t b, uint32_t count)
{
	uint32_t sent_a = 0, sent_b = 0, came = 0;
	uint64_t end_us = muster_clock_us() + PATIENCE_US;

	while (t.owners[a].nr_came < count || t.owners[b].nr_came < count) {
		while (sent_a < count && !try_send(a, b, sent_a))
			sent_a++;
		while (sent_b < count && !try_send(b, a, sent_b))
			sent_b++;
		poll_all();
		if (t.owners[a].nr_came + t.owners[b].nr_came > came)
			end_us = muster_clock_us() + PATIENCE_US;
		came = t.owners[a].nr_came + t.owners[b].nr_came;
		assert_true(muster_clock_us() < end_us);
	}
	for (uint32_t n = 0; n < count; n++) {
		assert_int_equal(t.owners[a].came[b][n], 1);
		assert_int_equal(t.owners[b].came[a][n], 1);
	}
	assert_int_equal(t.owners[a].lost[b] + t.owners[b].lost[a], 0);
	assert_true(t.owners[a].nr_expected + t.owners[b].nr_expected);
}

/* Counted by polls, not by the clock: however long we stand still between them. */
static void poll_until_lost(uint32_t at, uint32_t node)
{
	for (int i = 0; i < PATIENCE_US / 1000 && !t.owners[at].lost[node]; i++) {
		poll_all();
		usleep(1000);
	}
	assert_int_equal(t.owners[at].lost[node], 1);
}

static void packets_come_once_over_unix(void **state)
{
	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 2, 6);
	exchange(0, 2, PACKETS);
}

static void packets_come_once_over_udp(void **state)
{
	(void)state;
	must_open(t.udp_spec, 0, 5);
	must_open(t.udp_spec, 1, 6);
	exchange(0, 1, PACKETS);
}

static void packets_come_once_over_ipv6(void **state)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int err = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&any, sizeof(any));
	char spec[40];

	(void)state;
	close(fd);
	if (err)
		skip();		/* this machine has no IPv6 loopback */
	snprintf(spec, sizeof(spec), "udp:[::1]:%s", strrchr(t.udp_spec, ':') + 1);
	must_open(spec, 0, 5);
	must_open(spec, 1, 6);
	exchange(0, 1, 100);
}

static void packets_come_once_though_frames_are_lost_and_repeated(void **state)
{
	struct muster_wire_counters counters;

	(void)state;
	t.drop = 200;
	t.repeat = 200;
	t.refuse = 200;
	must_open(t.udp_spec, 0, 5);
	must_open(t.udp_spec, 1, 6);
	exchange(0, 1, PACKETS / 4);
	muster_wire_socket_counters(t.owners[0].wire, &counters);
	assert_true(counters.retransmitted > 10 && counters.duplicates > 10);
}

static void a_peer_that_has_gone_is_lost(void **state)
{
	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	exchange(0, 1, 10);
	close_port(1);
	assert_int_equal(try_send(0, 1, 10), 0);
	poll_until_lost(0, 1);
	assert_int_equal(try_send(0, 1, 11), -EHOSTUNREACH);
	assert_int_equal(t.owners[0].wire->ops->watch(t.owners[0].wire, 1, 6), -EHOSTUNREACH);
}

static void a_unix_peer_that_has_gone_is_lost_at_once(void **state)
{
	uint64_t now_us;

	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	exchange(0, 1, 10);
	close_port(1);
	now_us = muster_clock_us();
	assert_int_equal(try_send(0, 1, 10), 0);
	for (int i = 0; i < 20; i++)
		t.owners[0].wire->ops->poll(t.owners[0].wire, now_us += 1000, 64);
	assert_int_equal(t.owners[0].lost[1], 1);
}

/* The kernel refuses our acknowledgements while packets lie in our socket still. */
static void what_a_peer_sent_before_it_went_is_taken_first(void **state)
{
	uint64_t later_us;

	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	exchange(0, 1, 10);
	for (uint32_t n = 10; n < 18; n++)
		assert_int_equal(try_send(1, 0, n), 0);
	close_port(1);
	later_us = muster_clock_us();
	for (int i = 0; i < 20; i++) {
		later_us += 1000;
		t.owners[0].wire->ops->poll(t.owners[0].wire, later_us, 1);
	}
	for (uint32_t n = 10; n < 18; n++)
		assert_int_equal(t.owners[0].came[1][n], 1);
	assert_int_equal(t.owners[0].lost[1], 1);
}

static void a_watched_peer_that_never_comes_is_lost(void **state)
{
	(void)state;
	must_open(t.unix_spec, 0, 5);
	assert_int_equal(t.owners[0].wire->ops->watch(t.owners[0].wire, 1, 6), 0);
	poll_until_lost(0, 1);
}

/* Nodes that somebody named once, and that were never there. */
static void absent_nodes_are_forgotten(void **state)
{
	enum { ABSENT = 500 };
	struct muster_wire_counters counters;
	uint64_t end_us = muster_clock_us() + PATIENCE_US;
	struct muster_wire *wire;

	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	exchange(0, 1, 10);
	wire = t.owners[0].wire;
	for (uint32_t node = 0; node < ABSENT; node++)
		assert_int_equal(wire->ops->watch(wire, PORTS + node, 7), 0);
	muster_wire_socket_counters(wire, &counters);
	assert_int_equal(counters.links, ABSENT + 1);
	assert_in_range(counters.slots, ABSENT, ABSENT + 10);	/* a question each */
	while (t.owners[0].nr_lost < ABSENT || counters.slots) {
		poll_all();
		muster_wire_socket_counters(wire, &counters);
		assert_true(muster_clock_us() < end_us);
	}
	assert_int_equal(counters.links, 1);
	assert_int_equal(t.owners[0].lost[1], 0);
	assert_int_equal(wire->ops->watch(wire, PORTS, 7), -EHOSTUNREACH);
	muster_wire_socket_counters(wire, &counters);
	assert_int_equal(counters.links, 1);
}

/* Memory follows the packets that are on their way, not the pairs of nodes. */
static void absent_nodes_take_room_from_no_peer(void **state)
{
	enum { ABSENT = 100 };
	struct muster_wire_counters counters;

	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	for (uint32_t node = 0; node < ABSENT; node++)
		while (!try_send(0, PORTS + node, 0))
			;
	muster_wire_socket_counters(t.owners[0].wire, &counters);
	assert_in_range(counters.slots, 500, 1024 + ABSENT);
	exchange(0, 1, PACKETS / 4);
}

/* Who polls has others to serve between, however many links are due at once. */
static void a_poll_does_what_is_due_for_some_links_and_says_that_there_are_more(void **state)
{
	enum { ABSENT = 500, SOME = 64 };
	struct muster_wire_counters before, after;
	uint32_t polls = 0, sent;
	struct muster_wire *wire;

	(void)state;
	must_open(t.unix_spec, 0, 5);
	wire = t.owners[0].wire;
	for (uint32_t node = 0; node < ABSENT; node++)
		assert_int_equal(wire->ops->watch(wire, PORTS + node, 7), 0);
	usleep(MUSTER_PACE_RTO_FIRST_US);
	for (sent = 0; sent < ABSENT; sent += after.frames_out - before.frames_out) {
		assert_true(wire->ops->deadline_us(wire) <= muster_clock_us());
		muster_wire_socket_counters(wire, &before);
		wire->ops->poll(wire, muster_clock_us(), 64);
		muster_wire_socket_counters(wire, &after);
		assert_in_range(after.frames_out - before.frames_out, 1, SOME);
		polls++;
	}
	assert_true(polls >= ABSENT / SOME);
}

static void a_restarted_peer_is_lost_and_can_be_talked_to(void **state)
{
	(void)state;
	must_open(t.unix_spec, 0, 5);
	must_open(t.unix_spec, 1, 6);
	exchange(0, 1, 10);
	close_port(1);
	must_open(t.unix_spec, 1, 7);
	assert_int_equal(try_send(1, 0, 20), 0);
	poll_until_lost(0, 1);
	t.owners[0].nr_came = t.owners[1].nr_came = 0;
	memset(t.owners[0].came, 0, sizeof(t.owners[0].came));
	memset(t.owners[0].lost, 0, sizeof(t.owners[0].lost));
	exchange(0, 1, 10);
}

static void unknown_nodes_are_unreachable(void **state)
{
	(void)state;
	must_open(t.udp_spec, 0, 5);
	assert_int_equal(try_send(0, MUSTER_NODES_MAX, 1), -EHOSTUNREACH);
	assert_int_equal(try_send(0, 0, 1), -EHOSTUNREACH);
}

/* A frame that names node 1, sent from elsewhere. */
static void frames_from_a_wrong_address_are_refused(void **state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX }, from = { .sun_family = AF_UNIX };
	struct muster_frame frame = {
		.version = MUSTER_FRAME_VERSION, .type = MUSTER_FRAME_HELLO,
		.src_node = 1, .dst_node = 0, .src_incarnation = 6,
	};
	struct muster_wire_counters counters;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	must_open(t.unix_spec, 0, 5);
	snprintf(from.sun_path, sizeof(from.sun_path), "%s/stranger", t.dir);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/node-0.sock", t.dir);
	frame.crc = muster_crc32c(0, &frame, sizeof(frame));
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(fd, &frame, sizeof(frame)), sizeof(frame));
	assert_int_equal(write(fd, &frame, 7), 7);
	frame.crc++;
	assert_int_equal(write(fd, &frame, sizeof(frame)), sizeof(frame));
	close(fd);
	unlink(from.sun_path);
	poll_all();
	muster_wire_socket_counters(t.owners[0].wire, &counters);
	assert_int_equal(counters.refused, 1);
	assert_int_equal(counters.corrupt, 2);
	assert_int_equal(counters.frames_out, 0);
}

/* Says hello to node 0 as node 1, from that node's very address, as another user. */
static void pretend_as_nobody(const char *name, struct muster_frame frame)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	int path = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "%s/node-1.sock", name);
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + path + 1;

	if (setresuid(65534, 65534, 65534) || bind(fd, (struct sockaddr *)&addr, len))
		_exit(1);
	addr.sun_path[1 + path - strlen("1.sock")] = '0';
	_exit(sendto(fd, &frame, sizeof(frame), 0, (struct sockaddr *)&addr, len) !=
	      sizeof(frame));
}

static void frames_of_another_user_are_refused(void **state)
{
	struct muster_frame frame = {
		.version = MUSTER_FRAME_VERSION, .type = MUSTER_FRAME_HELLO,
		.src_node = 1, .dst_node = 0, .src_incarnation = 6,
	};
	struct muster_wire_counters counters;
	char name[32], spec[40];
	int status;

	(void)state;
	if (geteuid())
		skip();		/* only root can become another */
	snprintf(name, sizeof(name), "muster-test-%d", getpid());
	snprintf(spec, sizeof(spec), "unix:@%s", name);
	must_open(spec, 0, 5);
	frame.crc = muster_crc32c(0, &frame, sizeof(frame));
	if (fork() == 0)
		pretend_as_nobody(name, frame);
	assert_true(wait(&status) > 0 && status == 0);
	poll_all();
	muster_wire_socket_counters(t.owners[0].wire, &counters);
	assert_int_equal(counters.refused, 1);
	assert_int_equal(counters.frames_out, 0);
}

static void a_spec_that_cannot_be_read_says_why(void **state)
{
	const char *const specs[] = {
		"", "tcp:127.0.0.1:7000", "unix:", "udp:127.0.0.1", "udp:localhost:7000",
		"udp:127.0.0.1:http", "udp::7000", "udp:[]:7000", "udp:127.0.0.1:65535",
		"udp:127.0.0.1:65536", "udp:127.0.0.1:0",
		("unix:/a/directory/whose/name/is/so/long/that/no/socket/can/be/put/into/it/"
		 "because/the/kernel/has/108/bytes/for/it"),
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		why[0] = '\0';
		assert_true(open_port(specs[i], 1, 5, why) < 0);
		assert_true(strlen(why) > 10);
	}
	assert_int_equal(open_port(t.unix_spec, 1, 0, why), -EINVAL);
	assert_int_equal(open_port(t.unix_spec, MUSTER_NODES_MAX, 1, why), -EINVAL);
}

static void a_node_that_runs_already_is_not_disturbed(void **state)
{
	struct owner first;
	char why[256];

	(void)state;
	must_open(t.unix_spec, 0, 5);
	first = t.owners[0];
	assert_int_equal(open_port(t.unix_spec, 0, 6, why), -EADDRINUSE);
	assert_non_null(strstr(why, "does this node run already?"));
	t.owners[0] = first;
	must_open(t.unix_spec, 1, 6);
	assert_int_equal(try_send(1, 0, 1), 0);
	for (int i = 0; i < DEADLINE_US / 1000; i++) {
		poll_all();
		usleep(1000);
	}
	assert_int_equal(t.owners[0].nr_came, 1);
}

static void the_file_of_a_crashed_node_is_replaced(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	(void)state;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/node-0.sock", t.dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	must_open(t.unix_spec, 0, 5);
	close_port(0);
	assert_int_equal(access(un.sun_path, F_OK), -1);
}

static void a_file_that_is_no_socket_stays(void **state)
{
	char name[128], why[256];
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "%s/node-0.sock", t.dir);
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_port(t.unix_spec, 0, 5, why), -EADDRINUSE);
	assert_int_equal(unlink(name), 0);
}

static int setup(void **state)
{
	(void)state;
	t.drop = t.repeat = t.refuse = 0;
	t.drawn = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PORTS; i++)
		close_port(i);
	return 0;
}

static int make_dir(void **state)
{
	(void)state;
	strcpy(t.dir, "/tmp/muster-wire-XXXXXX");
	if (!mkdtemp(t.dir))
		return -1;
	snprintf(t.unix_spec, sizeof(t.unix_spec), "unix:%s", t.dir);
	snprintf(t.udp_spec, sizeof(t.udp_spec), "udp:127.0.0.1:%d", 20000 + getpid() % 3000 * 4);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(t.dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(packets_come_once_over_unix),
		TEST(packets_come_once_over_udp),
		TEST(packets_come_once_over_ipv6),
		TEST(packets_come_once_though_frames_are_lost_and_repeated),
		TEST(a_peer_that_has_gone_is_lost),
		TEST(a_unix_peer_that_has_gone_is_lost_at_once),
		TEST(what_a_peer_sent_before_it_went_is_taken_first),
		TEST(a_watched_peer_that_never_comes_is_lost),
		TEST(absent_nodes_are_forgotten),
		TEST(absent_nodes_take_room_from_no_peer),
		TEST(a_poll_does_what_is_due_for_some_links_and_says_that_there_are_more),
		TEST(a_restarted_peer_is_lost_and_can_be_talked_to),
		TEST(unknown_nodes_are_unreachable),
		TEST(frames_from_a_wrong_address_are_refused),
		TEST(frames_of_another_user_are_refused),
		TEST(a_spec_that_cannot_be_read_says_why),
		TEST(a_node_that_runs_already_is_not_disturbed),
		TEST(the_file_of_a_crashed_node_is_replaced),
		TEST(a_file_that_is_no_socket_stays),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
