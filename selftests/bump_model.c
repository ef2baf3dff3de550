// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What bumps as logic would take: an allreduce of doubles over N hosts in modelled
 * time, which is nanoseconds here. A hop is the frame on its wire (with preamble, check
 * sequence and gap), a constant for MAC and PHY, and the cycles of CFE and CIPE; a host
 * takes no time. It shows how time grows with hosts, and nothing of any host's software.
 *
 * With --spread hosts take time, and not always the same: a packet that goes through a
 * host's software, in or out, takes so long, and more for one of three reasons: "rare", an
 * interruption that a few packets meet (clock ticks, daemons); "each", what every packet
 * meets of waiting and of cold caches, exponentially distributed; "once", an interruption
 * that a host meets in a few operations, however many packets it has in them. How much of
 * it there is is set at one point: software on 2 hosts has the paper's smallest spread,
 * 10 % between mean and minimum. All else follows: allreduces come after each other by
 * bumps, whose packets go through a host twice, and by recursive doubling in software,
 * with the same hosts and wires, where they do so twice in every round. Then bumps once
 * more, with as much noise of their own as gives their smallest spread on 2 hosts, 3 %.
 *
 * usage: bump_model [BYTES]      prints: hosts, then 4 algorithms on the paper's 1 GbE
 *                                with 64 bits, then 4 on 10 GbE with 256 bits, in us
 *        bump_model --spread [BYTES [COUNT]]
 *                                prints, of each reason, network and host: hosts, then
 *                                mean, minimum and spread in % by bumps, in software, and
 *                                by bumps with noise of their own (nan: none gives 3 %)
 *        bump_model --cycles     prints the stages of CFE and CIPE, of each operation
 */
#include <err.h>
#include <math.h>
#include <stdio.h>

#include "cycles.h"
#include "test_net.h"

enum {
	MAC_PHY_NS = 400,
	WIRE_EXTRA = 8 + 4 + 12,
	WARM_UP = 100,
	SPREAD_HOSTS_MAX = 1024,
	SPREAD_DOUBLINGS = 4,		/* of hosts */
	SOFTWARE_PERCENT = 10,
	BUMPS_PERCENT = 3,
};

/* Networks of the paper, and what a packet takes through a host's software, which it does not say. */
static const struct setting {
	uint32_t rate_gbit, width, host_ns;
} settings[] = { { 1, 64, 10000 }, { 10, 256, 3000 }, { 1, 64, 100000 }, { 10, 256, 30000 } };

static uint32_t rate_gbit, width, answers;
static uint64_t last_ns;

/* ---- hosts that take time ---- */

enum { INTERRUPTION = 5 };	/* times a packet's way */
enum noise { RARE, EACH, ONCE, NR_NOISES };
static const char *const noise_names[] = { "rare", "each", "once" };

static uint32_t host_ns;	/* 0: they take none */
static enum noise noise;
static double amount;	/* RARE: the part of packets; ONCE: of operations; EACH: of a packet's way, in the mean */
static struct {
	uint64_t began, sum, least;
	uint32_t count;
} latency[SPREAD_HOSTS_MAX];

static uint32_t through_host(struct net *net, bool begins)
{
	double drawn = (double)(net_random(net) % (1 << 30) + 1) / (1 << 30), more = 0;

	if (noise == EACH)
		more = -log(drawn) * amount;
	else if (drawn < amount && (begins || noise == RARE))
		more = INTERRUPTION;
	return host_ns + (uint32_t)(more * host_ns);
}

static uint32_t wire_ns(uint32_t len)
{
	return ((len < 60 ? 60 : len) + WIRE_EXTRA) * 8 / rate_gbit + MAC_PHY_NS;
}

/* ---- bumps ---- */

static uint32_t delay(struct net *net, uint32_t port, uint32_t len)
{
	bool begins = port == MUSTER_BUMP_HOST_PORT, host = begins || port == NET_TO_HOST;
	struct cycles cycles;

	cycles_count(width, MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2, &cycles);
	return wire_ns(len) + (host && host_ns ? through_host(net, begins) : 0) +
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
				sent[h] = at[h] + through_host(&chance, bit == 1);
			for (uint32_t h = 0; h < hosts; h++) {
				uint64_t come = sent[h ^ bit] + wire_ns(NET_DATA_AT + bytes);

				at[h] = (come > sent[h] ? come : sent[h]) +
					through_host(&chance, false);
			}
		}
		for (uint32_t h = 0; h < hosts; h++)
			note(h, at[h]);
	}
}

struct spread {
	double mean, least, percent;
};

typedef void (*system_fn)(uint32_t hosts, uint32_t bytes, uint32_t count);

/* Mean and minimum of host 0, as the paper's benchmark has them of a rank. */
static struct spread measure(system_fn run, uint32_t hosts, uint32_t bytes, uint32_t count)
{
	struct spread spread;

	memset(latency, 0, sizeof(latency));
	run(hosts, bytes, count + WARM_UP);
	spread.mean = (double)latency[0].sum / count / 1e3;
	spread.least = (double)latency[0].least / 1e3;
	spread.percent = 100 - 100 * spread.least / spread.mean;
	return spread;
}

/* As much noise as gives the system on 2 hosts that spread. Return: whether there is so much. */
static bool calibrate(system_fn run, uint32_t bytes, uint32_t count, int percent)
{
	double low = 0, high = 1;

	for (int i = 0; i < 20; i++) {
		amount = (low + high) / 2;
		if (measure(run, 2, bytes, count).percent < percent)
			low = amount;
		else
			high = amount;
	}
	return fabs(measure(run, 2, bytes, count).percent - percent) < 0.5;
}

/* Of 2, 4, 8 ... hosts. */
static void series_measure(system_fn run, uint32_t bytes, uint32_t count, struct spread *spreads)
{
	for (uint32_t i = 1; i <= SPREAD_DOUBLINGS; i++)
		spreads[i] = measure(run, 1u << i, bytes, count);
}

static void spread_of_setting(uint32_t bytes, uint32_t count)
{
	struct spread bumps[16], software[16], own[16];
	double noise_of_software;
	bool calm;

	calibrate(in_software, bytes, count, SOFTWARE_PERCENT);
	noise_of_software = amount;
	series_measure(by_bumps, bytes, count, bumps);
	series_measure(in_software, bytes, count, software);
	calm = calibrate(by_bumps, bytes, count, BUMPS_PERCENT);
	series_measure(by_bumps, bytes, count, own);
	printf("# %s, %u GbE: a packet through a host %g us; %s %.3g %%\n", noise_names[noise],
	       rate_gbit, host_ns / 1e3, noise == EACH ? "more, in the mean," :
	       "interrupted, five times as long again,", 100 * noise_of_software);
	if (calm)
		printf("# bumps' own: %.3g %%, %.2f times that\n", 100 * amount,
		       amount / noise_of_software);
	puts("# hosts; bumps: mean, minimum, spread in %; software: the same; bumps, noise of their own: the same");
	for (uint32_t i = 1; i <= SPREAD_DOUBLINGS; i++) {
		if (!calm)
			own[i] = (struct spread){ NAN, NAN, NAN };
		printf("%u %.2f %.2f %.1f %.2f %.2f %.1f %.2f %.2f %.1f\n", 1u << i, bumps[i].mean,
		       bumps[i].least, bumps[i].percent, software[i].mean, software[i].least,
		       software[i].percent, own[i].mean, own[i].least, own[i].percent);
	}
	printf("# 8 hosts beside 2: mean times %.2f by bumps, %.2f in software; minimum %.2f, %.2f; mean less minimum %.1f us, %.1f us\n\n\n",
	       bumps[3].mean / bumps[1].mean, software[3].mean / software[1].mean,
	       bumps[3].least / bumps[1].least, software[3].least / software[1].least,
	       bumps[3].mean - bumps[3].least, software[3].mean - software[3].least);
}

static int spread(uint32_t bytes, uint32_t count)
{
	printf("# allreduce of %u bytes, %u each; software on 2 hosts is set to a spread of %u %%, bumps' own noise to %u %%\n",
	       bytes, count, SOFTWARE_PERCENT, BUMPS_PERCENT);
	for (noise = RARE; noise < NR_NOISES; noise++)
		for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
			rate_gbit = settings[i].rate_gbit;
			width = settings[i].width;
			host_ns = settings[i].host_ns;
			spread_of_setting(bytes, count);
		}
	return 0;
}

/* ---- cycles ---- */

static void cycles_print(const char *what, uint8_t type, uint8_t redop, uint32_t operands)
{
	struct cycles c;

	printf("%-34s", what);
	for (uint32_t bits = 64; bits <= 256; bits *= 4) {
		cycles_count(bits, type, redop, operands, &c);
		printf("  %5u %7u %6u %8u %6u %6u %5u %5u", c.parse, c.look_up, c.decide,
		       c.instruct, c.decode, c.adders, c.leave, c.total);
	}
	puts("");
}

/* Operands of a packet: itself and what was combined before; a scan's goes to two adders at once. */
static int print_cycles(void)
{
	printf("%-34s  %-56s  256 bits: the same\n", "", "64 bits:");
	printf("%-34s  parse look up decide instruct decode adders leave total\n", "");
	cycles_print("barrier; what only passes", 0, 0, 1);
	cycles_print("allreduce, reduce, scan: i32, u32", MUSTER_DTYPE_I32, MUSTER_REDOP_SUM, 2);
	cycles_print("the same: f64 min, max", MUSTER_DTYPE_F64, MUSTER_REDOP_MIN, 2);
	cycles_print("the same: f64 sum", MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 2);
	cycles_print("three operands: i32, u32", MUSTER_DTYPE_I32, MUSTER_REDOP_SUM, 3);
	cycles_print("three operands: f64 sum", MUSTER_DTYPE_F64, MUSTER_REDOP_SUM, 3);
	return 0;
}

/* ---- growth ---- */

int main(int argc, char **argv)
{
	bool spreads = argc > 1 && !strcmp(argv[1], "--spread");
	uint32_t bytes;

	if (argc > 1 && !strcmp(argv[1], "--cycles"))
		return print_cycles();
	argv += spreads;
	argc -= spreads;
	bytes = argc > 1 ? (uint32_t)atoi(argv[1]) : 8;
	if (bytes < 8 || bytes > MUSTER_BUMP_DATA_MAX)
		errx(2, "usage: bump_model [--spread] [8 to 1408]");
	if (spreads)
		return spread(bytes, argc > 2 ? (uint32_t)atoi(argv[2]) : 3000);
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
