// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What bumps as logic would take: an allreduce of doubles over N hosts in modelled
 * time, which is nanoseconds here. A hop is the frame on its wire (with preamble, check
 * sequence and gap), a constant for MAC and PHY, and the cycles of CFE and CIPE; a host
 * takes no time. It shows how time grows with hosts, and nothing of any host's software.
 *
 * usage: bump_model [BYTES]      prints: hosts, then 4 algorithms on the paper's 1 GbE
 *                                with 64 bits, then 4 on 10 GbE with 256 bits, in us
 */
#include <err.h>
#include <stdio.h>

#include "cycles.h"
#include "test_net.h"

enum { MAC_PHY_NS = 400, WIRE_EXTRA = 8 + 4 + 12 };

static uint32_t rate_gbit, width, answers;
static uint64_t last_ns;

static uint32_t delay(struct net *net, uint32_t port, uint32_t len)
{
	uint32_t wire = (len < 60 ? 60 : len) + WIRE_EXTRA;
	struct cycles cycles;

	(void)net;
	cycles_count(width, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2, &cycles);
	return wire * 8 / rate_gbit + MAC_PHY_NS +
	       (port == NET_TO_HOST ? 0 : cycles.total * 1000 / CYCLES_CLOCK_MHZ);
}

static void on_answer(struct net *net, uint32_t host, const uint8_t *data, uint32_t len)
{
	(void)host;
	(void)len;
	if (data[47] != MUSTER_BUMP_RESPONSE)
		errx(1, "no response, but message %u", data[47]);
	answers++;
	last_ns = net->now;
}

/* All hosts ask at once. Return: when the last one has its answer. */
static uint64_t allreduce_ns(uint8_t algorithm, uint32_t hosts, uint32_t bytes)
{
	static const char *const topologies[] = { "", "ring", "tree", "cube", "torus" };
	struct net *net = net_new(topologies[algorithm], hosts, 1);
	struct muster_bump_header header = net_header();
	uint8_t data[MUSTER_BUMP_DATA_MAX] = { 0 };

	net->delay = delay;
	net->to_host = on_answer;
	header.operation = MUSTER_BUMP_ALLREDUCE;
	header.algorithm = algorithm;
	header.type = MUSTER_DTYPE_F64;
	header.redop = MUSTER_REDOP_SUM;
	header.count = htole16((uint16_t)(bytes / 8));
	header.hosts = header.ranks = htole16((uint16_t)hosts);
	answers = 0;
	for (uint32_t host = 0; host < hosts; host++) {
		header.rank = htole16((uint16_t)host);
		net_ask(net, host, &header, data, bytes);
	}
	while (answers < hosts && net_step(net))
		;
	if (answers != hosts)
		errx(1, "%u of %u hosts have an answer", answers, hosts);
	net_free(net);
	return last_ns;
}

int main(int argc, char **argv)
{
	uint32_t bytes = argc > 1 ? (uint32_t)atoi(argv[1]) : 8;

	if (bytes < 8 || bytes > MUSTER_BUMP_DATA_MAX)
		errx(2, "usage: bump_model [8 to 1408]");
	printf("# allreduce of %u bytes, us: hosts, 1 GbE and 64 bits: ring tree doubling torus, 10 GbE and 256 bits: the same\n",
	       bytes);
	for (uint32_t hosts = 2; hosts <= MUSTER_BUMP_HOSTS_MAX; hosts *= 2) {
		printf("%u", hosts);
		for (int net = 0; net < 2; net++)
			for (uint8_t algorithm = 1; algorithm <= MUSTER_BUMP_TORUS; algorithm++) {
				rate_gbit = net ? 10 : 1;
				width = net ? 256 : 64;
				printf(" %.2f", (double)allreduce_ns(algorithm, hosts, bytes) / 1e3);
			}
		puts("");
	}
	return 0;
}
