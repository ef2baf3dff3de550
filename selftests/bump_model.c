// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What bumps as logic would take: an allreduce of doubles over N hosts in modelled
 * time, which is nanoseconds here. A hop is the frame on its wire (with preamble, check
 * sequence and gap), a constant for MAC and PHY, and the cycles of CFE and CIPE; a host
 * takes no time. It shows how time grows with hosts, and nothing of any host's software.
 *
 * With --spread hosts take time, and now and then more: each packet that goes through a
 * host's software, in or out, takes so long, and of 1,000 some are interrupted for five
 * times as long. 10 of 1,000 give software about what the paper has measured of it, 10 to
 * 25 % between mean and minimum on 2 to 8 hosts; the bumps' follows. Allreduces follow
 * each other by bumps, whose packets go through a host twice, and by recursive doubling
 * in software, with the same hosts and wires, where they do so twice in every round.
 *
 * usage: bump_model [BYTES]      prints: hosts, then 4 algorithms on the paper's 1 GbE
 *                                with 64 bits, then 4 on 10 GbE with 256 bits, in us
 *        bump_model --spread [BYTES [COUNT [INTERRUPTED]]]
 *                                prints: hosts, then mean, minimum and spread in % by bumps
 *                                and in software, on 1 GbE and on 10 GbE
 */
#include <err.h>
#include <stdio.h>

#include "cycles.h"
#include "test_net.h"

enum {
	MAC_PHY_NS = 400,
	WIRE_EXTRA = 8 + 4 + 12,
	HOST_ARM_NS = 10000,	/* a packet through the software of the paper's 1 GbE hosts, */
	HOST_XEON_NS = 3000,	/* and of its 10 GbE ones */
	WARM_UP = 100,
	SPREAD_HOSTS_MAX = 1024,
};

static uint32_t rate_gbit, width, answers;
static uint64_t last_ns;

/* ---- hosts that take time ---- */

enum { INTERRUPTION = 5 };	/* times a packet's way */

static uint32_t host_ns, interrupted;	/* 0: they take none; of 1,000 packets */
static struct {
	uint64_t began, sum, least;
	uint32_t count;
} latency[SPREAD_HOSTS_MAX];

static uint32_t through_host(struct net *net)
{
	return host_ns + (net_chance(net, interrupted) ? INTERRUPTION * host_ns : 0);
}

static uint32_t wire_ns(uint32_t len)
{
	return ((len < 60 ? 60 : len) + WIRE_EXTRA) * 8 / rate_gbit + MAC_PHY_NS;
}

/* ---- bumps ---- */

static uint32_t delay(struct net *net, uint32_t port, uint32_t len)
{
	bool host = port == NET_TO_HOST || port == MUSTER_BUMP_HOST_PORT;
	struct cycles cycles;

	cycles_count(width, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2, &cycles);
	return wire_ns(len) + (host && host_ns ? through_host(net) : 0) +
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

static struct muster_bump_header sum_header(uint8_t algorithm, uint32_t hosts, uint32_t bytes)
{
	struct muster_bump_header header = net_header();

	header.operation = MUSTER_BUMP_ALLREDUCE;
	header.algorithm = algorithm;
	header.type = MUSTER_DTYPE_F64;
	header.redop = MUSTER_REDOP_SUM;
	header.count = htole16((uint16_t)(bytes / 8));
	header.hosts = header.ranks = htole16((uint16_t)hosts);
	return header;
}

/* All hosts ask at once. Return: when the last one has its answer. */
static uint64_t allreduce_ns(uint8_t algorithm, uint32_t hosts, uint32_t bytes)
{
	static const char *const topologies[] = { "", "ring", "tree", "cube", "torus" };
	struct net *net = net_new(topologies[algorithm], hosts, 1);
	struct muster_bump_header header = sum_header(algorithm, hosts, bytes);
	uint8_t data[MUSTER_BUMP_DATA_MAX] = { 0 };

	net->delay = delay;
	net->to_host = on_answer;
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

/* ---- spread ---- */

static void note(uint32_t host, uint64_t now)
{
	uint64_t took = now - latency[host].began;

	if (latency[host].count++ >= WARM_UP) {
		latency[host].sum += took;
		if (!latency[host].least || took < latency[host].least)
			latency[host].least = took;
	}
	latency[host].began = now;
}

struct series {
	struct muster_bump_header header;
	uint32_t bytes, count;
};

static void ask_next(struct net *net, uint32_t host)
{
	static const uint8_t data[MUSTER_BUMP_DATA_MAX];
	struct series *series = net->opaque;
	struct muster_bump_header header = series->header;

	header.rank = htole16((uint16_t)host);
	header.id = htole32(latency[host].count);
	if (latency[host].count < series->count)
		net_ask(net, host, &header, data, series->bytes);
}

static void on_next(struct net *net, uint32_t host, const uint8_t *data, uint32_t len)
{
	on_answer(net, host, data, len);
	note(host, net->now);
	ask_next(net, host);
}

static void by_bumps(uint32_t hosts, uint32_t bytes, uint32_t count)
{
	struct net *net = net_new("cube", hosts, 7);
	struct series series = { sum_header(MUSTER_BUMP_DOUBLING, hosts, bytes), bytes, count };

	net->delay = delay;
	net->to_host = on_next;
	net->opaque = &series;
	answers = 0;
	for (uint32_t host = 0; host < hosts; host++)
		ask_next(net, host);
	while (answers < hosts * count && net_step(net))
		;
	net_free(net);
}

/* Powers of two only. */
static void in_software(uint32_t hosts, uint32_t bytes, uint32_t count)
{
	static uint64_t at[SPREAD_HOSTS_MAX], sent[SPREAD_HOSTS_MAX];
	struct net chance = { .rng = 7 };

	memset(at, 0, sizeof(at));
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t bit = 1; bit < hosts; bit <<= 1) {
			for (uint32_t h = 0; h < hosts; h++)
				sent[h] = at[h] + through_host(&chance);
			for (uint32_t h = 0; h < hosts; h++) {
				uint64_t come = sent[h ^ bit] + wire_ns(NET_DATA_AT + bytes);

				at[h] = (come > sent[h] ? come : sent[h]) + through_host(&chance);
			}
		}
		for (uint32_t h = 0; h < hosts; h++)
			note(h, at[h]);
	}
}

/* Mean and minimum of host 0, as the paper's benchmark has them of a rank. */
static void spread_print(void (*run)(uint32_t, uint32_t, uint32_t), uint32_t hosts, uint32_t bytes,
			 uint32_t count)
{
	double mean;

	memset(latency, 0, sizeof(latency));
	run(hosts, bytes, count + WARM_UP);
	mean = (double)latency[0].sum / count;
	printf(" %.2f %.2f %.1f", mean / 1e3, (double)latency[0].least / 1e3,
	       100 - 100 * (double)latency[0].least / mean);
}

static int spread(uint32_t bytes, uint32_t count, uint32_t of_1000)
{
	printf("# allreduce of %u bytes, %u each; a packet through a host %g us on 1 GbE, %g us on 10 GbE, %u of 1,000 interrupted\n",
	       bytes, count, HOST_ARM_NS / 1e3, HOST_XEON_NS / 1e3, of_1000);
	interrupted = of_1000;
	printf("# hosts; 1 GbE, bumps: mean, minimum, spread in %%; software: the same; 10 GbE: the same\n");
	for (uint32_t hosts = 2; hosts <= 16; hosts *= 2) {
		printf("%u", hosts);
		for (int net = 0; net < 2; net++) {
			rate_gbit = net ? 10 : 1;
			width = net ? 256 : 64;
			host_ns = net ? HOST_XEON_NS : HOST_ARM_NS;
			spread_print(by_bumps, hosts, bytes, count);
			spread_print(in_software, hosts, bytes, count);
		}
		puts("");
	}
	return 0;
}

/* ---- growth ---- */

int main(int argc, char **argv)
{
	bool spreads = argc > 1 && !strcmp(argv[1], "--spread");
	uint32_t bytes;

	argv += spreads;
	argc -= spreads;
	bytes = argc > 1 ? (uint32_t)atoi(argv[1]) : 8;
	if (bytes < 8 || bytes > MUSTER_BUMP_DATA_MAX)
		errx(2, "usage: bump_model [--spread] [8 to 1408]");
	if (spreads)
		return spread(bytes, argc > 2 ? (uint32_t)atoi(argv[2]) : 10000,
			      argc > 3 ? (uint32_t)atoi(argv[3]) : 10);
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
