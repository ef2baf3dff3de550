// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables of addresses: what a file says, what is refused and how it is named, and ports
 * of two hosts that find one another by it.
 */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "crc32c.h"
#include "reliable.h"

enum { HIGHEST = MUSTER_NODES_MAX - 1, PACKETS = 200, PATIENCE_US = 20000000 };

struct end {
	struct muster_wire *wire;
	uint32_t node;
	uint8_t came[PACKETS];
	uint32_t nr_came;
};

static struct {
	char file[64], spec[80], why[256];
	char host[2][32];		/* of 127/8, of this process alone */
	struct muster_addresses addresses;
	struct end ends[2];
} t;

static void write_bytes(const char *text, size_t len)
{
	FILE *file = fopen(t.file, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static int read_bytes(const char *text, size_t len)
{
	write_bytes(text, len);
	muster_addresses_free(&t.addresses);
	memset(&t.addresses, 0, sizeof(t.addresses));
	t.why[0] = '\0';
	return muster_addresses_read(&t.addresses, t.spec, t.why, sizeof(t.why));
}

static int read_table(const char *text)
{
	return read_bytes(text, strlen(text));
}

/* HOST:PORT of a node as the table has it, or "". */
static const char *address_of(uint32_t node)
{
	static char text[80];
	struct muster_address a;
	char host[64];

	if (muster_addresses_find(&t.addresses, node, &a))
		return "";
	inet_ntop(a.any.sa_family, a.any.sa_family == AF_INET ? (void *)&a.in.sin_addr :
		  (void *)&a.in6.sin6_addr, host, sizeof(host));
	snprintf(text, sizeof(text), "%s:%u", host, ntohs(*muster_address_port(&a.any)));
	return text;
}

static void a_table_says_where_each_node_is(void **state)
{
	(void)state;
	assert_int_equal(read_table("# two hosts and one far away\n"
				    "\n"
				    "16777215 10.0.0.9:65535   # the highest\n"
				    "\t100-103   10.0.0.2:7000\r\n"
				    "7 10.0.0.1:7000\n"
				    "8 10.0.0.1:6999"), 0);
	assert_string_equal(address_of(7), "10.0.0.1:7000");
	assert_string_equal(address_of(8), "10.0.0.1:6999");
	assert_string_equal(address_of(100), "10.0.0.2:7000");
	assert_string_equal(address_of(103), "10.0.0.2:7003");
	assert_string_equal(address_of(HIGHEST), "10.0.0.9:65535");
	assert_string_equal(address_of(0), "");
	assert_string_equal(address_of(9), "");
	assert_string_equal(address_of(99), "");
	assert_string_equal(address_of(104), "");
	assert_string_equal(address_of(HIGHEST - 1), "");
}

static void a_table_may_be_of_ipv6(void **state)
{
	(void)state;
	assert_int_equal(read_table("0-9 [fd00::1]:7000\n10-19 [fd00::2]:7000\n"), 0);
	assert_string_equal(address_of(9), "fd00::1:7009");
	assert_string_equal(address_of(19), "fd00::2:7009");
}

static void a_table_holds_every_node_number(void **state)
{
	enum { A_HOST = 1 << 15, HOSTS = MUSTER_NODES_MAX / A_HOST };
	static char text[HOSTS * 48];
	size_t len = 0;

	(void)state;
	for (uint32_t i = HOSTS; i--;)
		len += sprintf(text + len, "%u-%u 10.1.%u.%u:1024\n", i * A_HOST,
			       (i + 1) * A_HOST - 1, i / 256, i % 256);
	assert_int_equal(read_table(text), 0);
	assert_string_equal(address_of(0), "10.1.0.0:1024");
	assert_string_equal(address_of(300 * A_HOST + 5), "10.1.1.44:1029");
	assert_string_equal(address_of(HIGHEST), "10.1.1.255:33791");
}

static void a_line_that_cannot_be_read_is_named_with_its_reason(void **state)
{
	static const struct { const char *text, *says; } cases[] = {
		{ "0 10.0.0.1:7000\n\n1\n", ":3: must be NODE HOST:PORT" },
		{ "0 10.0.0.1:7000 1\n", ":1: must be NODE HOST:PORT" },
		{ "x 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "-1 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "1- 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "2-1 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "1-2-3 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "16777216 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "4294967296 10.0.0.1:7000\n", ":1: nodes must be" },
		{ "0 10.0.0.1\n", ":1: must be HOST:PORT" },
		{ "0 somewhere:7000\n", ":1: host and port must be numbers" },
		{ "0 10.0.0.1:0\n", ":1: host and port must be numbers" },
		{ "0 10.0.0.1:65536\n", ":1: host and port must be numbers" },
		{ "0 0.0.0.0:7000\n", ":1: the host must be an address" },
		{ "0 [::]:7000\n", ":1: the host must be an address" },
		{ "0-1 10.0.0.1:65535\n", ":1: the last node's port" },
		{ "0 10.0.0.1:7000\n1 [fd00::1]:7000\n", ":2: IPv4 and IPv6 in one table" },
		{ "5 10.0.0.1:7000\n0-9 10.0.0.2:7000\n",
		  ":2: a node has an address in line 1 already" },
		{ "0-9 10.0.0.1:7000\n\n20 10.0.0.1:7009\n",
		  ":3: an address is given to a node of line 1 already" },
		{ "20 [fd00::1]:7009\n0-9 [fd00::1]:7000\n",
		  ":2: an address is given to a node of line 1 already" },
		{ "# nobody\n", "names no node" },
		{ "", "names no node" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_table(cases[i].text), -EINVAL);
		if (!strstr(t.why, cases[i].says) || !strstr(t.why, t.file))
			fail_msg("\"%s\" says \"%s\", not \"%s\"", cases[i].text, t.why,
				 cases[i].says);
	}
	assert_int_equal(read_bytes("0 10.0.0.1:7000\0\n", 17), -EINVAL);
	assert_non_null(strstr(t.why, ":1: is no text"));
	unlink(t.file);
	assert_int_equal(muster_addresses_read(&t.addresses, t.spec, t.why, sizeof(t.why)), -EINVAL);
	assert_non_null(strstr(t.why, "No such file"));
	assert_int_equal(muster_addresses_read(&t.addresses, "udp:@/", t.why, sizeof(t.why)),
			 -EINVAL);
	assert_non_null(strstr(t.why, "/:1: cannot be read"));
}

/* ---- ports ---------------------------------------------------------------- */

static void receive(void *owner, const struct muster_packet *packet, const void *payload,
		    uint32_t len)
{
	struct end *end = owner;

	assert_int_equal(packet->dst_node, end->node);
	assert_true(packet->number < PACKETS && len == sizeof(uint32_t));
	assert_memory_equal(payload, &packet->number, len);
	end->came[packet->number]++;
	end->nr_came++;
}

static void met(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	assert_true(node == t.ends[0].node || node == t.ends[1].node);
	assert_true(present);
}

static void lost(void *owner, uint32_t node, uint32_t present)
{
	(void)owner;
	fail_msg("node %u is lost, %u there", node, present);
}

static int open_end(struct end *end, uint32_t node)
{
	static const struct muster_wire_events events = {
		.receive = receive, .lost = lost, .met = met,
	};

	memset(end, 0, sizeof(*end));
	end->node = node;
	return muster_wire_socket_open(t.spec, node, 1 + node, 10000000, &events, end, &end->wire,
				       t.why, sizeof(t.why));
}

static void must_open(struct end *end, uint32_t node)
{
	if (open_end(end, node))
		fail_msg("%s", t.why);
}

static int send_number(struct end *from, struct end *to, uint32_t n)
{
	struct muster_packet packet = { .src_node = from->node, .dst_node = to->node,
					.number = n, .length = sizeof(n) };

	return from->wire->ops->send(from->wire, 1 + to->node, &packet, &n);
}

static void poll_both(void)
{
	for (int i = 0; i < 2; i++)
		t.ends[i].wire->ops->poll(t.ends[i].wire, muster_clock_us(), 64);
}

static void write_hosts(const char *more)
{
	char text[256];

	snprintf(text, sizeof(text), "7 %s:7000\n%u %s:7131\n%s", t.host[0], HIGHEST, t.host[1], more);
	write_bytes(text, strlen(text));
}

static void nodes_of_two_hosts_find_one_another_by_their_table(void **state)
{
	uint32_t sent[2] = { 0 };
	uint64_t end_us = muster_clock_us() + PATIENCE_US;

	(void)state;
	write_hosts("");
	must_open(&t.ends[0], 7);
	must_open(&t.ends[1], HIGHEST);
	while (t.ends[0].nr_came < PACKETS || t.ends[1].nr_came < PACKETS) {
		for (int i = 0; i < 2; i++)
			while (sent[i] < PACKETS &&
			       !send_number(&t.ends[i], &t.ends[!i], sent[i]))
				sent[i]++;
		poll_both();
		assert_true(muster_clock_us() < end_us);
	}
	for (uint32_t n = 0; n < PACKETS; n++)
		assert_true(t.ends[0].came[n] == 1 && t.ends[1].came[n] == 1);
}

static void a_node_that_the_table_does_not_have_is_neither_opened_nor_reached(void **state)
{
	struct end nobody = { .node = 8 };

	(void)state;
	write_hosts("");
	must_open(&t.ends[0], 7);
	assert_int_equal(send_number(&t.ends[0], &nobody, 0), -EHOSTUNREACH);
	assert_true(open_end(&nobody, 8) < 0);
	assert_non_null(strstr(t.why, "node 8 is not in the table"));
}

/* Node 8 says that it is node HIGHEST; a good HELLO from where it should be is answered. */
static void a_frame_from_the_address_of_another_node_is_refused(void **state)
{
	struct muster_frame frame = {
		.version = MUSTER_FRAME_VERSION, .type = MUSTER_FRAME_HELLO,
		.src_node = HIGHEST, .dst_node = 7, .src_incarnation = 6,
	};
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct muster_wire_counters counters;
	int fd;
	char more[64];

	(void)state;
	snprintf(more, sizeof(more), "8 %s:7132\n", t.host[1]);
	write_hosts(more);
	must_open(&t.ends[0], 7);
	frame.crc = muster_crc32c(0, &frame, sizeof(frame));
	for (uint32_t honest = 0; honest < 2; honest++) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		inet_pton(AF_INET, t.host[1], &at.sin_addr);
		at.sin_port = htons(honest ? 7131 : 7132);
		assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
		inet_pton(AF_INET, t.host[0], &at.sin_addr);
		at.sin_port = htons(7000);
		assert_int_equal(sendto(fd, &frame, sizeof(frame), 0, (struct sockaddr *)&at,
					sizeof(at)), sizeof(frame));
		close(fd);
		t.ends[0].wire->ops->poll(t.ends[0].wire, muster_clock_us(), 64);
		muster_wire_socket_counters(t.ends[0].wire, &counters);
		assert_int_equal(counters.refused, 1);
		assert_int_equal(counters.frames_out, honest);
	}
}

static int close_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		if (t.ends[i].wire)
			t.ends[i].wire->ops->close(t.ends[i].wire);
	memset(t.ends, 0, sizeof(t.ends));
	return 0;
}

static int begin(void **state)
{
	uint32_t id = getpid();
	int fd;

	(void)state;
	strcpy(t.file, "/tmp/muster-addresses-XXXXXX");
	fd = mkstemp(t.file);
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(t.spec, sizeof(t.spec), "udp:@%s", t.file);
	for (int i = 0; i < 2; i++)
		snprintf(t.host[i], sizeof(t.host[i]), "127.%u.%u.%u", 64 + (id >> 16) % 128,
			 id >> 8 & 255, 2 * (id & 127) + i);
	return 0;
}

static int end(void **state)
{
	(void)state;
	muster_addresses_free(&t.addresses);
	return unlink(t.file);
}

#define PORTS_TEST(name) cmocka_unit_test_teardown(name, close_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_says_where_each_node_is),
		cmocka_unit_test(a_table_may_be_of_ipv6),
		cmocka_unit_test(a_table_holds_every_node_number),
		cmocka_unit_test(a_line_that_cannot_be_read_is_named_with_its_reason),
		PORTS_TEST(nodes_of_two_hosts_find_one_another_by_their_table),
		PORTS_TEST(a_node_that_the_table_does_not_have_is_neither_opened_nor_reached),
		PORTS_TEST(a_frame_from_the_address_of_another_node_is_refused),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
