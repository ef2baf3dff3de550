// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sums one number of every rank through the bump in the wire: plain sockets, nothing of Muster's. */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct datagram {	/* Documentation/bump.md */
	uint32_t magic;
	uint8_t version, message, status, step;
	uint32_t group, id;
	uint16_t from, to;
	uint8_t operation, algorithm, type, redop;
	uint16_t count, root, hosts, first, stride, ranks, rank;
	uint8_t local_rank, local_ranks;
	uint64_t key;
	uint8_t reserved[16];
	double value;
};

static uint64_t number(const char *name, int base)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, base) : 0;
}

int main(void)
{
	struct sockaddr_in bump = { .sin_family = AF_INET, .sin_port = htons(19778) };
	struct timeval patience = { .tv_usec = 20000 };
	int s = socket(AF_INET, SOCK_DGRAM, 0), tries = 500;
	struct datagram answer, ask = {
		.magic = htole32(0x504d424d), .version = 1, .message = 1, .operation = 1, .algorithm = 3,
		.type = 2, .redop = 1, .count = htole16(1), .stride = htole16(1),
		.group = htole32((uint32_t)number("MUSTER_BUMP_GROUP", 10)),
		.hosts = htole16((uint16_t)number("MUSTER_BUMP_HOSTS", 10)),
		.rank = htole16((uint16_t)number("MUSTER_RANK", 10)),
		.ranks = htole16((uint16_t)number("MUSTER_SIZE", 10)),
		.local_rank = (uint8_t)number("MUSTER_BUMP_LOCAL_RANK", 10),
		.local_ranks = (uint8_t)number("MUSTER_BUMP_LOCAL_RANKS", 10),
		.key = htole64(number("MUSTER_BUMP_KEY", 16)), .value = number("MUSTER_RANK", 10) + 1.0,
	};

	inet_pton(AF_INET, "10.77.255.254", &bump.sin_addr);
	if (connect(s, (struct sockaddr *)&bump, sizeof(bump)) ||
	    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err(1, "no way to the bump");
	while (tries--) {
		if (write(s, &ask, sizeof(ask)) < 0 || read(s, &answer, sizeof(answer)) < 64 || answer.id != ask.id)
			continue;
		if (answer.message != 2)
			errx(1, "the bump says: error %u", answer.status);
		printf("the sum is %g\n", answer.value);
		return 0;
	}
	errx(1, "the bump does not answer");
}
