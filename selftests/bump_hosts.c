// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank at a host with a bump in its wire, under muster-run --bump. It knows the
 * protocol from Documentation/bump.md and uses plain sockets.
 *
 * usage: bump_hosts check          every algorithm, operation, type and some counts,
 *                                  against plain formulas; rank 0 prints a digest
 *        bump_hosts sum [SECONDS]  allreduces for so long, each checked (5)
 *        bump_hosts window         many operations unanswered at once
 *        bump_hosts hostile NR     allreduces, each checked, while every rank sends its bump
 *                                  NR malformed packets; as root of the namespace
 * BUMP_DEADLINE: seconds after which a rank gives an operation up (60).
 * BUMP_ENOUGH: a file; sum ends when it is there.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arith.h"
#include "bump_reference.h"
#include "clock.h"
#include "test_net.h"

enum { ASK_AGAIN_US = 20000, WINDOW_OPERATIONS = 500, MALFORMED_AT_ONCE = 256 };

struct datagram {
	struct muster_bump_header header;
	uint8_t data[MUSTER_BUMP_DATA_MAX];
};

static int sock;
static uint32_t rank, size, hosts, local_ranks, next_id;
static struct muster_bump_header base;
static uint64_t digest;
static pid_t hostile_child;

static uint64_t number(const char *name, int radix)
{
	const char *text = getenv(name);

	if (!text)
		errx(1, "%s is not set: run this by muster-run --bump", name);
	return strtoull(text, NULL, radix);
}

static uint64_t mix(uint64_t z)
{
	z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int open_socket(void)
{
	struct timeval patience = { .tv_usec = ASK_AGAIN_US };
	struct sockaddr_in bump = { .sin_family = AF_INET, .sin_port = htons(MUSTER_BUMP_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, "10.77.255.254", &bump.sin_addr);
	if (fd < 0 || connect(fd, (struct sockaddr *)&bump, sizeof(bump)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err(1, "no way to the bump");
	return fd;
}

static void begin(void)
{
	rank = (uint32_t)number("MUSTER_RANK", 10);
	size = (uint32_t)number("MUSTER_SIZE", 10);
	hosts = (uint32_t)number("MUSTER_BUMP_HOSTS", 10);
	local_ranks = (uint32_t)number("MUSTER_BUMP_LOCAL_RANKS", 10);
	base = (struct muster_bump_header){
		.magic = htole32(MUSTER_BUMP_MAGIC), .version = MUSTER_BUMP_VERSION,
		.message = MUSTER_BUMP_REQUEST, .stride = htole16(1),
		.group = htole32((uint32_t)number("MUSTER_BUMP_GROUP", 10)),
		.hosts = htole16((uint16_t)hosts), .ranks = htole16((uint16_t)size),
		.rank = htole16((uint16_t)rank),
		.local_rank = (uint8_t)number("MUSTER_BUMP_LOCAL_RANK", 10),
		.local_ranks = (uint8_t)local_ranks, .key = htole64(number("MUSTER_BUMP_KEY", 16)),
	};
	sock = open_socket();
}

/* The deadline has come: say so to the others, and end. */
static void give_up(struct datagram *ask)
{
	ask->header.message = MUSTER_BUMP_ABORT;
	for (int i = 0; i < 3; i++)
		send(sock, ask, sizeof(ask->header), 0);
	errx(3, "rank %u: no answer to operation %u within the deadline", rank,
	     le32toh(ask->header.id));
}

static void call(struct datagram *ask, uint32_t bytes, struct datagram *answer)
{
	const char *seconds = getenv("BUMP_DEADLINE");
	uint64_t deadline = muster_clock_us() + 1000000 * (seconds ? strtoull(seconds, NULL, 10) : 60);
	ssize_t len;

	for (;;) {
		if (muster_clock_us() > deadline)
			give_up(ask);
		if (send(sock, ask, sizeof(ask->header) + bytes, 0) < 0 && errno != ECONNREFUSED &&
		    errno != EHOSTUNREACH)
			err(1, "cannot send");
		do
			len = recv(sock, answer, sizeof(*answer), 0);
		while (len >= (ssize_t)sizeof(answer->header) && answer->header.id != ask->header.id);
		if (len < (ssize_t)sizeof(answer->header))
			continue;
		if (answer->header.message == MUSTER_BUMP_ERROR)
			errx(4, "rank %u: operation %u: the bump says error %u of member %u", rank,
			     le32toh(ask->header.id), answer->header.status,
			     le16toh(answer->header.from));
		if (answer->header.message != MUSTER_BUMP_RESPONSE ||
		    len != (ssize_t)(sizeof(ask->header) + bytes) ||
		    answer->header.rank != ask->header.rank)
			errx(1, "rank %u: operation %u: a wrong answer", rank,
			     le32toh(ask->header.id));
		return;
	}
}

/* ---- inputs that every rank can compute for every other ---- */

static uint64_t element(uint8_t type, uint32_t id, uint32_t of_rank, uint32_t i)
{
	uint64_t bits = mix(id ^ mix(of_rank + 1 + ((uint64_t)i << 32)));
	double real = ((double)(int64_t)bits + 0.5) / (double)(1ull << (bits & 31));

	if (type == MUSTER_DTYPE_F64) {
		memcpy(&bits, &real, 8);
		return bits;
	}
	return bits & 1 << 20 ? (uint32_t)bits : 0;
}

static uint64_t expected(const struct muster_bump_header *h, uint32_t i)
{
	uint64_t own[MUSTER_BUMP_HOSTS_MAX], before[MUSTER_BUMP_HOSTS_MAX], all;
	uint32_t id = le32toh(h->id), host = rank / local_ranks, first = host * local_ranks;

	for (uint32_t r = 0; r < size; r++) {
		uint64_t one = element(h->type, id, r, i);

		own[r / local_ranks] = r % local_ranks ?
			bump_combine(h->type, h->redop, own[r / local_ranks], one) : one;
	}
	all = bump_reference(h->algorithm, h->type, h->redop, hosts, own, before);
	if (h->operation != MUSTER_BUMP_SCAN)
		return all;
	for (uint32_t r = first; r <= rank; r++) {
		uint64_t one = element(h->type, id, r, i);

		all = r == first && !host ? one :
		      bump_combine(h->type, h->redop, r == first ? before[host] : all, one);
	}
	return all;
}

static void compare(const struct datagram *answer, size_t each, uint32_t count)
{
	const struct muster_bump_header *h = &answer->header;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t wanted = expected(h, i), found = 0;

		memcpy(&found, answer->data + i * each, each);
		if (wanted != found)
			errx(1, "rank %u: operation %u, algorithm %u, type %u, op %u: element %u of %u is %" PRIx64 ", not %" PRIx64,
			     rank, h->operation, h->algorithm, h->type, h->redop, i, count, found,
			     wanted);
		digest = mix(digest ^ found);
	}
}

/* ---- behaviours ---- */

static void fill(struct datagram *ask, size_t each, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = element(ask->header.type, le32toh(ask->header.id), rank, i);

		memcpy(ask->data + i * each, &bits, each);
	}
}

static void try_one(uint8_t operation, uint8_t algorithm, uint8_t type, uint8_t redop, uint32_t count)
{
	size_t each = muster_dtype_size(type);
	struct datagram ask = { .header = base }, answer;

	ask.header.operation = operation;
	ask.header.algorithm = algorithm;
	ask.header.type = type;
	ask.header.redop = redop;
	ask.header.count = htole16((uint16_t)count);
	ask.header.id = htole32(next_id++);
	if (operation == MUSTER_BUMP_REDUCE)
		ask.header.root = htole16((uint16_t)(next_id % size));
	fill(&ask, each, count);
	call(&ask, (uint32_t)(count * each), &answer);
	compare(&answer, each, count);
}

static void try_elements(uint8_t operation, uint8_t algorithm)
{
	static const uint8_t types[] = { MUSTER_DTYPE_I32, MUSTER_DTYPE_U32, MUSTER_DTYPE_F64 };

	for (int t = 0; t < 3; t++)
		for (uint8_t redop = MUSTER_REDOP_SUM; redop <= MUSTER_REDOP_LXOR; redop++) {
			if (!muster_arith_supported(types[t], redop))
				continue;
			try_one(operation, algorithm, types[t], redop, 1);
			try_one(operation, algorithm, types[t], redop, 8);
			try_one(operation, algorithm, types[t], redop,
				redop == MUSTER_REDOP_SUM ?
				MUSTER_BUMP_DATA_MAX / (uint32_t)muster_dtype_size(types[t]) : 13);
		}
}

static void check(void)
{
	for (uint8_t algorithm = MUSTER_BUMP_RING; algorithm <= MUSTER_BUMP_TORUS; algorithm++) {
		try_one(MUSTER_BUMP_BARRIER, algorithm, 0, 0, 0);
		try_elements(MUSTER_BUMP_ALLREDUCE, algorithm);
		try_elements(MUSTER_BUMP_REDUCE, algorithm);
		try_elements(MUSTER_BUMP_SCAN, algorithm);
	}
	if (!rank)
		printf("%u operations right, digest %016" PRIx64 "\n", next_id, digest);
}

/* The ranks agree on the last one: all see the maximum of who has had enough. */
static bool all_have_enough(bool enough)
{
	struct datagram ask = { .header = base }, answer;
	uint32_t value = htole32(enough);

	ask.header.operation = MUSTER_BUMP_ALLREDUCE;
	ask.header.algorithm = MUSTER_BUMP_DOUBLING;
	ask.header.type = MUSTER_DTYPE_U32;
	ask.header.redop = hostile_child ? MUSTER_REDOP_MIN : MUSTER_REDOP_MAX;
	ask.header.count = htole16(1);
	ask.header.id = htole32(next_id++);
	memcpy(ask.data, &value, 4);
	call(&ask, 4, &answer);
	return answer.data[0];
}

static void sum_once(void)
{
	try_one(MUSTER_BUMP_ALLREDUCE, (uint8_t)(1 + next_id % 4), MUSTER_DTYPE_F64,
		MUSTER_REDOP_SUM, 1 + next_id % 9);
}

static void sum(const char *seconds)
{
	uint64_t end = muster_clock_us() + 1000000 * strtoull(seconds ? seconds : "5", NULL, 10);
	const char *enough_file = getenv("BUMP_ENOUGH");

	do
		sum_once();
	while (!all_have_enough((enough_file && !access(enough_file, F_OK)) || muster_clock_us() > end));
	if (!rank)
		printf("%u operations right\n", next_id);
}

/* ---- malformed packets ---- */

/* What the bump always answers: when it does, it has taken all that was sent before. */
static void fence(int fd)
{
	struct muster_bump_header answer, ask = base;

	ask.version = 0;
	do
		send(fd, &ask, sizeof(ask), 0);
	while (recv(fd, &answer, sizeof(answer), 0) < 0);
	while (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) >= 0)
		;
}

/* A request, an abort or a packet between bumps, with some bits wrong, or cut off. */
static uint32_t malform(uint8_t *frame, struct net *chance, uint32_t id)
{
	struct muster_bump_header header = base;
	uint32_t len, begin = 42, end = NET_DATA_AT;

	header.message = (uint8_t)(net_random(chance) % 4 ? MUSTER_BUMP_REQUEST : net_random(chance) % 8);
	header.operation = (uint8_t)(1 + net_random(chance) % 4);
	header.algorithm = (uint8_t)(1 + net_random(chance) % 4);
	header.type = MUSTER_DTYPE_F64;
	header.redop = MUSTER_REDOP_SUM;
	header.count = htole16(1);
	header.id = htole32(id);
	if (net_random(chance) % 2) {	/* it would be through at once, were it right */
		header.hosts = header.ranks = htole16(1);
		header.first = htole16((uint16_t)(rank / local_ranks));
		header.rank = header.local_rank = 0;
		header.local_ranks = 1;
	}
	len = net_frame(frame, rank + 1, &header, "malformed", 8);
	if (net_random(chance) % 8 == 0) {
		begin = 0;
		end = len;
	}
	for (uint32_t flips = 1 + net_random(chance) % 3; flips--;)
		frame[begin + net_random(chance) % (end - begin)] ^= (uint8_t)(1 << net_random(chance) % 8);
	/* Neither to our own group nor to so many that ours is forgotten: who knows the key may. */
	memcpy(frame + 50, &(uint32_t){ htole32(le32toh(base.group) + 1 + id % 8) }, 4);
	return net_random(chance) % 8 ? len : (uint32_t)(net_random(chance) % len) + 1;
}

static void send_malformed(uint32_t nr)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("eth0") };
	struct net chance = { .rng = mix(rank + 1) };
	int raw = socket(AF_PACKET, SOCK_RAW, 0), fd = open_socket();
	uint8_t frame[NET_FRAME_MAX];

	if (raw < 0)
		err(1, "no raw packets");
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t len = malform(frame, &chance, i);

		/* The system itself takes none that has no header. */
		if (sendto(raw, frame, len < 14 ? 14 : len, 0, (struct sockaddr *)&to,
			   sizeof(to)) < 0 && errno != ENOBUFS)
			err(1, "cannot send a malformed packet");
		if (i % MALFORMED_AT_ONCE == MALFORMED_AT_ONCE - 1 || i + 1 == nr)
			fence(fd);
	}
	_exit(0);
}

static void hostile(const char *packets)
{
	uint32_t nr = packets ? (uint32_t)strtoul(packets, NULL, 10) : 10000;
	bool through = false;
	int status = 0;

	fflush(NULL);
	hostile_child = fork();
	if (!hostile_child)
		send_malformed(nr);
	do {
		sum_once();
		through = through || waitpid(hostile_child, &status, WNOHANG) != 0;
	} while (!all_have_enough(through));
	if (status)
		errx(1, "the malformed packets were not sent");
	if (!rank)
		printf("%u operations right while the bumps took %u malformed packets\n", next_id,
		       nr * size);
}

/* As many unanswered as there may be; answers come in any order. */
static void window(void)
{
	static struct datagram asks[WINDOW_OPERATIONS];
	static bool answered[WINDOW_OPERATIONS];
	uint32_t first = 0, next = 0;
	struct datagram answer;

	while (first < WINDOW_OPERATIONS) {
		for (; next < WINDOW_OPERATIONS && next < first + MUSTER_BUMP_WINDOW; next++) {
			asks[next].header = base;
			asks[next].header.operation = MUSTER_BUMP_ALLREDUCE;
			asks[next].header.algorithm = (uint8_t)(1 + next % 4);
			asks[next].header.type = MUSTER_DTYPE_F64;
			asks[next].header.redop = MUSTER_REDOP_SUM;
			asks[next].header.count = htole16(20);
			asks[next].header.id = htole32(next);
			fill(&asks[next], 8, 20);
			send(sock, &asks[next], 64 + 160, 0);
		}
		if (recv(sock, &answer, sizeof(answer), 0) == 64 + 160 &&
		    answer.header.message == MUSTER_BUMP_RESPONSE) {
			compare(&answer, 8, 20);
			answered[le32toh(answer.header.id)] = true;
		} else {
			for (uint32_t i = first; i < next; i++)
				if (!answered[i])
					send(sock, &asks[i], 64 + 160, 0);
		}
		while (first < WINDOW_OPERATIONS && answered[first])
			first++;
	}
	if (!rank)
		printf("%u operations right\n", first);
}

int main(int argc, char **argv)
{
	begin();
	if (argc > 1 && !strcmp(argv[1], "check"))
		check();
	else if (argc > 1 && !strcmp(argv[1], "sum"))
		sum(argv[2]);
	else if (argc > 1 && !strcmp(argv[1], "window"))
		window();
	else if (argc > 1 && !strcmp(argv[1], "hostile"))
		hostile(argv[2]);
	else
		errx(2, "usage: bump_hosts check | sum [SECONDS] | window | hostile [NR]");
	return 0;
}
