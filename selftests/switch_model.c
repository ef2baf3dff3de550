// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The SHARP paper's measurements (its section 4) in modelled time: allreduces of doubles by
 * low-latency and streaming trees, from NIC to NIC and on hosts. Bytes of a host by way; time and
 * bandwidth by size of 64 hosts below four leaf switches, beside a ping-pong; what a lock takes
 * beside a barrier; how many hosts there are, at how many ports, how far apart they start; how many credits
 * they have. Every result is compared. --quick: a size of each.
 */
#include <stdio.h>
#include <string.h>

#include "engine_world.h"
#include "switch_world.h"

enum { LEAVES = 4, EACH = 16, KIB = 1024, MIB = 1 << 20 };

static bool good = true, quick;

static struct net_result run(const struct net_case *what)
{
	struct net_result result = { 0 };

	if (net_run(what, &result) || !result.right) {
		fprintf(stderr, "wrong: way %d, %u hosts at each of %u leaves, %llu bytes\n", what->how,
			what->each, what->leaves, (unsigned long long)what->bytes);
		good = false;
	}
	return result;
}

static struct net_case allreduce(uint32_t leaves, uint32_t each, enum net_how how, uint64_t bytes)
{
	return (struct net_case){
		.leaves = leaves, .each = each, .how = how, .coll = MUSTER_COLL_ALLREDUCE, .bytes = bytes,
	};
}

static double us(uint32_t leaves, uint32_t each, enum net_how how, uint64_t bytes)
{
	struct net_case what = allreduce(leaves, each, how, bytes);

	return run(&what).us;
}

/* The same schedule on hosts: its time; and what a host sends of it, the most of any. */
static double on_hosts(uint32_t ranks, uint64_t bytes, uint64_t *out)
{
	const struct world_case what = { .bytes = bytes, .tasks = 1 };
	uint64_t sent[NET_HOSTS_MAX] = { 0 }, first, len;
	struct muster_schedule *schedule;
	char why[256] = "";
	double took;

	if (muster_schedule_generate(NULL, MUSTER_COLL_ALLREDUCE, ranks, 0, bytes, &schedule, why,
				     sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		good = false;
		return 0;
	}
	*out = 0;
	for (uint32_t i = 0; i < schedule->nr_transfers; i++) {
		const struct muster_transfer *t = &schedule->transfers[i];

		muster_range_bytes(schedule, bytes / 8, MUSTER_DTYPE_F64, NULL, t->chunk, 1, &first, &len);
		sent[t->from] += len;
		*out = sent[t->from] > *out ? sent[t->from] : *out;
	}
	took = world_host_us(schedule, &what);
	muster_schedule_free(schedule);
	return took;
}

/* ---- bytes ------------------------------------------------------------------------------- */

static void bytes_line(uint64_t bytes)
{
	static const enum net_how ways[] = { NET_NIC, NET_LLT, NET_SAT };
	uint64_t hosts_out;

	on_hosts(8, bytes, &hosts_out);
	printf("bytes %9llu %11llu", (unsigned long long)bytes, (unsigned long long)hosts_out);
	for (int i = 0; i < 3; i++) {
		struct net_case what = allreduce(1, 8, ways[i], bytes);
		struct net_result result = run(&what);

		printf(" %11llu %11llu", (unsigned long long)result.out, (unsigned long long)result.in);
	}
	printf("\n");
	fflush(stdout);
}

static void bytes_all(void)
{
	static const uint64_t sizes[] = {
		8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 64 * MIB,
	};

	printf("# what a host of 8 at one switch sends and receives, without headers; a low-latency tree sends its result twice\n");
	printf("#         bytes    host: out    NIC: out          in    LLT: out          in    SAT: out          in\n");
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (!quick || sizes[i] == 32 * KIB)
			bytes_line(sizes[i]);
}

static uint64_t held(uint32_t hosts, enum net_how how, uint64_t bytes)
{
	struct net_case what = allreduce(1, hosts, how, bytes);

	return run(&what).held;
}

/* Both trees' groups are there whichever is used. */
static void memory(void)
{
	const uint64_t most = quick ? 32 * KIB : 4 * MIB;

	printf("# bytes of memory that a switch has at a time, by hosts: LLT of 8 and of %llu bytes, SAT of 8 and of %llu\n",
	       (unsigned long long)most, (unsigned long long)most);
	for (uint32_t hosts = 2; hosts <= 32; hosts *= 2)
		printf("held %4u %11llu %11llu %11llu %11llu\n", hosts,
		       (unsigned long long)held(hosts, NET_LLT, 8), (unsigned long long)held(hosts, NET_LLT, most),
		       (unsigned long long)held(hosts, NET_SAT, 8), (unsigned long long)held(hosts, NET_SAT, most));
}

/* ---- time by size -------------------------------------------------------------------------- */

static double ping(uint64_t bytes)
{
	const struct net_case what = {
		.leaves = LEAVES, .each = EACH, .how = NET_NIC, .coll = MUSTER_COLL_BROADCAST,
		.two_alone = true, .bytes = bytes,
	};

	return run(&what).us;
}

/* Where streaming becomes the faster one, with a lock for each operation or without. */
static void crossing(uint64_t bytes, double llt, double sat, double lock)
{
	static bool crossed[2];

	for (int locked = 0; locked < 2; locked++)
		if (!crossed[locked] && sat + locked * lock < llt) {
			crossed[locked] = true;
			printf("# streaming is the faster from %llu bytes on%s (the paper: 4 to 8 KB, 16 KB with a lock)\n",
			       (unsigned long long)bytes, locked ? " with a lock each time" : "");
		}
}

static void times(void)
{
	const double lock = us(LEAVES, EACH, NET_LOCK, 0);
	uint64_t bytes = quick ? 32 * KIB : 8, unused;

	printf("# %u hosts at %u leaves: us; of streaming bytes/ns, %% of a ping-pong's (the paper: 80 at 64 KiB, 96 at 2 MiB)\n"
	       "# and how many times faster it is than hosts (the paper: 2 at 4 KiB, close to 5 from 128 KiB on)\n",
	       LEAVES * EACH, LEAVES);
	printf("#        bytes       hosts         NIC         LLT         SAT   ping-pong  SAT B/ns      %%  times\n");
	for (; bytes <= (quick ? 32 * KIB : 8ull * MIB); bytes *= 2) {
		double hosts = on_hosts(LEAVES * EACH, bytes, &unused);
		double nic = us(LEAVES, EACH, NET_NIC, bytes), there = ping(bytes);
		double sat = us(LEAVES, EACH, NET_SAT, bytes), llt = us(LEAVES, EACH, NET_LLT, bytes);

		printf("time %9llu %11.2f %11.2f %11.2f %11.2f %11.2f %9.2f %6.1f %6.2f\n",
		       (unsigned long long)bytes, hosts, nic, llt, sat, there, (double)bytes / sat / 1e3,
		       100 * there / sat, hosts / sat);
		crossing(bytes, llt, sat, lock);
		fflush(stdout);
	}
}

/* ---- what else the paper varies ------------------------------------------------------------- */

static void locks(void)
{
	printf("# a barrier and a lock, us (the paper: alike)\n#    hosts     barrier        lock\n");
	for (uint32_t hosts = 2; hosts <= (quick ? 2 : 32); hosts *= 2)
		printf("lock %4u %11.2f %11.2f\n", hosts, us(1, hosts, NET_LLT, 0), us(1, hosts, NET_LOCK, 0));
	printf("lock %4u %11.2f %11.2f\n", LEAVES * EACH, us(LEAVES, EACH, NET_LLT, 0),
	       us(LEAVES, EACH, NET_LOCK, 0));
}

static void bandwidth(const char *what, uint32_t nr, const struct net_case *of)
{
	double took = run(of).us;

	printf("%s %4u %11.2f %9.2f\n", what, nr, took, (double)of->bytes / took / 1e3);
	fflush(stdout);
}

static void shapes(void)
{
	const uint64_t bytes = quick ? 32 * KIB : 4 * MIB;
	struct net_case what = allreduce(1, EACH, NET_SAT, bytes);

	printf("# streaming, %llu bytes: us, bytes/ns\n", (unsigned long long)bytes);
	printf("# so many hosts at one switch (the paper: hardly any difference)\n");
	for (what.each = 2; what.each <= 32; what.each *= 2)
		bandwidth("hosts", what.each, &what);
	printf("# so many at each of %u leaves (the paper: 7 %% less at 16)\n", LEAVES);
	what.leaves = LEAVES;
	for (what.each = 1; what.each <= EACH; what.each *= 2)
		bandwidth("each", what.each, &what);
	printf("# 16 at one switch: all in one half ring, and half of them in each (the paper: no difference)\n");
	what = allreduce(1, EACH, NET_SAT, bytes);
	bandwidth("halves", 1, &what);
	what.halves = true;
	bandwidth("halves", 2, &what);
	printf("# 8 at a switch of so many ports\n");
	what = allreduce(1, 8, NET_SAT, bytes);
	for (what.radix = 8; what.radix <= 40; what.radix += 32)
		bandwidth("radix", what.radix, &what);
}

/* Segments of a group at each switch; one is the limited packet's. */
static void credits(void)
{
	static const uint32_t numbers[] = { 1, 2, 4, 8, 16, MUSTER_SWITCH_SEGMENTS - 1 };
	struct net_case what = allreduce(LEAVES, EACH, NET_SAT, quick ? 256 * KIB : 4 * MIB);

	printf("# 64 hosts, streaming, %llu bytes, with so many credits: us, bytes/ns\n",
	       (unsigned long long)what.bytes);
	for (uint32_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		what.segments = numbers[i] + 1;
		bandwidth("credits", numbers[i], &what);
	}
}

static void skews(void)
{
	printf("# 64 hosts, so many us from the first start to the last one: us from then on; 8 bytes by LLT, 64 KiB by SAT\n");
	for (uint32_t skew = 0; skew <= (quick ? 0 : 64); skew += skew ? skew : 1) {
		struct net_case llt = allreduce(LEAVES, EACH, NET_LLT, 8);
		struct net_case sat = allreduce(LEAVES, EACH, NET_SAT, 64 * KIB);

		llt.skew_ns = sat.skew_ns = 1000.0 * skew;
		printf("skew %4u %11.2f %11.2f\n", skew, run(&llt).us, run(&sat).us);
	}
}

int main(int argc, char **argv)
{
	quick = argc > 1 && !strcmp(argv[1], "--quick");
	printf("# links %.1f bytes/ns, %.0f ns with what is behind them; NIC %.0f ns a packet and %.1f bytes/ns; bus %.1f bytes/ns and %.0f ns\n",
	       world_costs.link_bytes_ns, net_costs.hop_ns, world_costs.packet_ns, world_costs.sum_bytes_ns,
	       world_costs.bus_bytes_ns, world_costs.bus_ns);
	printf("# aggregation nodes: %.0f ns for each packet of a low-latency tree, %.0f ns until one of a streaming tree is through\n",
	       net_costs.llt_ns, net_costs.sat_ns);
	bytes_all();
	memory();
	times();
	locks();
	shapes();
	credits();
	skews();
	return !good;
}
