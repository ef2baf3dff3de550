// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits over a network: links have windows as those of reliable.c, in which a packet that is
 * refused keeps its place, so that few of them stop a link for all. Hosts send packets of jobs
 * to each other; some are late and take nothing. Everything follows from a seed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"

enum {
	WINDOW = 64, HOSTS_MAX = 12, SWITCHES_MAX = 9, LINKS_MAX = 64, PIPES_MAX = 2 * LINKS_MAX,
	TURNS_MAX = 20000000, PACKETS_MAX = 4096,
};

/* One direction of a link. */
struct pipe {
	struct muster_fabric_end to;
	struct muster_packet packets[WINDOW];
	bool open[WINDOW];
	uint32_t oldest, next;
};

/* What a host sends: packets numbered from 0. */
struct stream {
	uint8_t job;
	uint32_t from, to;
	uint32_t nr, sent, came;
	bool seen[PACKETS_MAX];
};

static struct {
	struct muster_fabric *fabric;
	uint32_t nr_hosts, nr_switches;
	struct muster_switch *switches[SWITCHES_MAX];
	bool plugged_out[SWITCHES_MAX][MUSTER_SWITCH_RADIX];
	struct pipe *up[HOSTS_MAX], *down[SWITCHES_MAX][MUSTER_SWITCH_RADIX];
	bool late[HOSTS_MAX];
	uint32_t told[HOSTS_MAX];	/* who is gone */
	struct stream streams[32];
	uint32_t nr_streams;
	uint64_t most_held;		/* at one switch */
	uint64_t refused;		/* on links between switches */
	uint64_t random;
	size_t allocated;
} t;

static uint32_t below(uint32_t n)
{
	t.random = t.random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(t.random >> 33) % n;
}

/* ---- links ---- */

static struct pipe *pipe_to(const struct muster_fabric_end *to)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));

	pipe->to = *to;
	return pipe;
}

static int pipe_put(struct pipe *pipe, const struct muster_packet *packet)
{
	uint32_t place = pipe->next % WINDOW;

	if (pipe->next - pipe->oldest == WINDOW)
		return -EAGAIN;
	pipe->packets[place] = *packet;
	pipe->open[place] = true;
	pipe->next++;
	return 0;
}

static void host_takes(uint32_t host, const struct muster_packet *packet)
{
	struct stream *stream = &t.streams[packet->context];

	if (packet->type == MUSTER_PACKET_GONE) {
		t.told[host]++;
		return;
	}
	assert_int_equal(host, stream->to);
	assert_false(stream->seen[packet->number]);
	stream->seen[packet->number] = true;
	stream->came++;
}

static bool end_takes(const struct muster_fabric_end *to, const struct muster_packet *packet)
{
	uint8_t payload[8] = { 0 };

	if (to->is_host) {
		if (t.late[to->number])
			return false;
		host_takes(to->number, packet);
		return true;
	}
	return !muster_switch_receive(t.switches[to->number], to->port, packet, payload,
				      packet->length);
}

/* One of those that are on their way, any. */
static void pipe_deliver(struct pipe *pipe, bool trunk)
{
	uint32_t place = (pipe->oldest + below(WINDOW)) % WINDOW;

	if (!pipe->open[place])
		return;
	if (!end_takes(&pipe->to, &pipe->packets[place])) {
		t.refused += trunk && !pipe->to.is_host;
		return;
	}
	pipe->open[place] = false;
	while (pipe->oldest != pipe->next && !pipe->open[pipe->oldest % WINDOW])
		pipe->oldest++;
}

/* ---- the network ---- */

static int switch_send(void *opaque, uint32_t port, const struct muster_packet *packet,
		       const void *payload)
{
	uint32_t number = (uint32_t)((struct muster_switch **)opaque - t.switches);

	(void)payload;
	if (t.plugged_out[number][port])
		return -EHOSTUNREACH;
	return pipe_put(t.down[number][port], packet);
}

static void switch_send_once(void *opaque, uint32_t port, const struct muster_packet *packet,
			     const void *payload)
{
	switch_send(opaque, port, packet, payload);
}

static void *switch_alloc(void *opaque, size_t bytes)
{
	(void)opaque;
	t.allocated += bytes;
	return calloc(1, bytes);
}

static void switch_free(void *opaque, void *p, size_t bytes)
{
	(void)opaque;
	t.allocated -= bytes;
	free(p);
}

static void switch_open(uint32_t number)
{
	static const struct muster_switch_world world = {
		.send = switch_send, .send_once = switch_send_once, .alloc = switch_alloc,
		.free = switch_free,
	};
	struct muster_switch_route routes[HOSTS_MAX + SWITCHES_MAX];
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	struct muster_switch_config config = {
		.node = muster_fabric_node(t.fabric, number), .incarnation = 9,
		.radix = muster_fabric_radix(t.fabric), .routes = routes, .trunks = trunks,
	};
	struct muster_fabric_end end;

	config.nr_routes = (uint32_t)muster_fabric_routes(t.fabric, number, routes);
	muster_fabric_trunks(t.fabric, number, trunks);
	assert_int_equal(muster_switch_create(&config, &world, &t.switches[number],
					      &t.switches[number]), 0);
	for (uint32_t port = 0; muster_fabric_end(t.fabric, number, port, &end); port++)
		t.down[number][port] = pipe_to(&end);
}

static void net_open(uint32_t hosts, uint32_t switches, const struct muster_fabric_link *links,
		     uint32_t nr_links, uint64_t seed)
{
	bool is_switch[HOSTS_MAX + SWITCHES_MAX] = { 0 };
	struct muster_fabric_config config = {
		.nodes = hosts + switches, .is_switch = is_switch, .nr_links = nr_links, .links = links,
	};
	struct muster_fabric_end end;
	char why[256];
	uint32_t bad;

	memset(&t, 0, sizeof(t));
	t.random = seed;
	t.nr_hosts = hosts;
	t.nr_switches = switches;
	for (uint32_t i = 0; i < switches; i++)
		is_switch[hosts + i] = true;
	assert_int_equal(muster_fabric_create(&config, &t.fabric, &bad, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < switches; i++)
		switch_open(i);
	for (uint32_t i = 0; i < hosts; i++) {
		muster_fabric_uplink(t.fabric, i, &end);
		t.up[i] = pipe_to(&end);
	}
}

static void net_close(void)
{
	for (uint32_t i = 0; i < t.nr_switches; i++) {
		muster_switch_destroy(t.switches[i]);
		for (uint32_t port = 0; port < MUSTER_SWITCH_RADIX; port++)
			free(t.down[i][port]);
	}
	for (uint32_t i = 0; i < t.nr_hosts; i++)
		free(t.up[i]);
	assert_int_equal(t.allocated, 0);
	muster_fabric_free(t.fabric);
}

/* Two leaves of four hosts, 0 to 3 and 4 to 7, below one spine. */
static void open_two_leaves(uint64_t seed)
{
	struct muster_fabric_link links[10];

	for (uint32_t i = 0; i < 8; i++)
		links[i] = (struct muster_fabric_link){ i, 8 + i / 4 };
	links[8] = (struct muster_fabric_link){ 8, 10 };
	links[9] = (struct muster_fabric_link){ 9, 10 };
	net_open(8, 3, links, 10, seed);
}

/* Three by three switches, each joined to its four neighbours, and the last of them with a host each. */
static void open_torus(uint32_t hosts, uint64_t seed)
{
	struct muster_fabric_link links[LINKS_MAX];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < hosts; i++)
		links[nr++] = (struct muster_fabric_link){ i, 9 + i };
	for (uint32_t i = 0; i < 9; i++) {
		links[nr++] = (struct muster_fabric_link){ hosts + i, hosts + i / 3 * 3 + (i + 1) % 3 };
		links[nr++] = (struct muster_fabric_link){ hosts + i, hosts + (i + 3) % 9 };
	}
	net_open(hosts, 9, links, nr, seed);
}

/* ---- time ---- */

static struct stream *stream_add(uint8_t job, uint32_t from, uint32_t to, uint32_t nr)
{
	struct stream *stream = &t.streams[t.nr_streams++];

	*stream = (struct stream){ .job = job, .from = from, .to = to, .nr = nr };
	return stream;
}

static void stream_send(uint32_t which)
{
	struct stream *stream = &t.streams[which];
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .job = stream->job,
		.src_node = stream->from, .dst_node = stream->to, .context = which,
		.number = stream->sent, .length = 8,
	};

	if (stream->sent < stream->nr && !pipe_put(t.up[stream->from], &packet))
		stream->sent++;
}

static void turn(void)
{
	struct muster_switch_counters now;
	uint32_t number = below(t.nr_switches), port;

	stream_send(below(t.nr_streams));
	pipe_deliver(t.up[below(t.nr_hosts)], false);
	for (port = 0; port < MUSTER_SWITCH_RADIX && t.down[number][port]; port++)
		pipe_deliver(t.down[number][port], true);
	number = below(t.nr_switches);
	muster_switch_step(t.switches[number]);
	muster_switch_counters_get(t.switches[number], &now);
	if (now.held > t.most_held)
		t.most_held = now.held;
}

/* Until all of a stream has come. */
static void run_for(const struct stream *stream)
{
	for (uint32_t i = 0; i < TURNS_MAX && stream->came < stream->nr; i++)
		turn();
	assert_int_equal(stream->came, stream->nr);
}

static void run_all(void)
{
	for (uint32_t i = 0; i < t.nr_streams; i++)
		run_for(&t.streams[i]);
}

/* Nobody waits, and nobody is to be told. */
static void expect_rest(void)
{
	struct muster_switch_counters now;

	for (uint32_t i = 0; i < 20000; i++)
		turn();
	for (uint32_t i = 0; i < t.nr_switches; i++) {
		muster_switch_counters_get(t.switches[i], &now);
		assert_int_equal(now.held, 0);
		assert_int_equal(now.flows, 0);
	}
}

/* ---- tests ---- */

/*
 * Hosts 0 to 2 send to 4, which takes nothing: more than links and switches have places for.
 * What job 2 sends over the same links comes all the same, and what another source sends in job 1.
 */
static void a_late_receiver_blocks_no_link(void **state)
{
	struct stream *late[3], *other, *same_job;

	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++) {
		open_two_leaves(seed);
		t.late[4] = true;
		for (uint32_t i = 0; i < 3; i++)
			late[i] = stream_add(1, i, 4, 600);
		other = stream_add(2, 3, 5, 3000);
		same_job = stream_add(1, 6, 0, 1000);
		run_for(other);
		run_for(same_job);
		for (uint32_t i = 0; i < 3; i++)
			assert_in_range(late[i]->sent, 3 * MUSTER_SWITCH_CREDITS, 599);
		assert_int_equal(late[0]->came, 0);
		assert_int_equal(t.refused, 0);
		t.late[4] = false;
		run_all();
		expect_rest();
		net_close();
	}
}

/* However much is sent: as many as there are jobs and sources, and no more. */
static void what_waits_is_bounded_by_sources(void **state)
{
	(void)state;
	open_two_leaves(7);
	t.late[4] = true;
	for (uint32_t i = 0; i < 3; i++)
		stream_add(1, i, 4, 2000);
	stream_add(2, 3, 5, 4000);
	run_for(&t.streams[3]);
	assert_in_range(t.most_held, 3 * MUSTER_SWITCH_CREDITS, 4 * MUSTER_SWITCH_CREDITS);
	t.late[4] = false;
	run_all();
	expect_rest();
	net_close();
}

/* Each host sends to all others, some are late for a while: the ways cross, and all comes. */
static void crossing_ways_come_to_an_end(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		open_torus(9, seed);
		for (uint32_t i = 0; i < 27; i++)
			stream_add(1 + below(2), i % 9, (i % 9 + 1 + below(8)) % 9, 200);
		for (uint32_t i = 0; i < 100000; i++) {
			if (!(i % 1000))
				t.late[below(9)] = below(2);
			turn();
		}
		memset(t.late, 0, sizeof(t.late));
		run_all();
		assert_int_equal(t.refused, 0);
		expect_rest();
		net_close();
	}
}

/* One after the other, as they hear of it. */
static void tell_all(int (*tell)(uint32_t number, uint32_t way), uint32_t way)
{
	for (uint32_t i = 0, first = below(9); i < 9; i++) {
		assert_int_equal(tell((first + 5 * i) % 9, way), 0);
		for (uint32_t turns = below(400); turns; turns--)
			turn();
	}
}

static const struct muster_fabric *laid;

static int lay(uint32_t number, uint32_t way)
{
	struct muster_switch_route routes[HOSTS_MAX + SWITCHES_MAX];
	int64_t nr = muster_fabric_routes(laid, number, routes);

	return muster_switch_ways_lay(t.switches[number], way, routes, (uint32_t)nr);
}

static int take(uint32_t number, uint32_t way)
{
	return muster_switch_ways_take(t.switches[number], way);
}

/* What is left on a way, and a sum that grows with all that goes by it. */
static uint32_t left_on(uint32_t way, uint64_t *sum)
{
	uint32_t left = 0;
	uint64_t passed;

	*sum = 0;
	for (uint32_t i = 0; i < 9; i++) {
		left += muster_switch_ways_left(t.switches[i], way, &passed);
		*sum += passed;
		turn();
	}
	return left;
}

/* Twice the same, and nothing between. */
static void await_nothing_on(uint32_t way)
{
	uint64_t sum, before = 0;
	uint32_t i = 0;

	while (left_on(way, &sum) || sum != before) {
		before = sum;
		turn();
		assert_in_range(i++, 0, TURNS_MAX);
	}
}

/* All go around a switch, or by the shortest ways again. */
static void ways_change(const bool *without, uint32_t way)
{
	struct muster_fabric *fabric;
	char why[256] = "";

	if (muster_fabric_without(t.fabric, without, &fabric, why, sizeof(why)))
		fail_msg("%s", why);
	laid = fabric;
	tell_all(lay, way);
	tell_all(take, way);
	await_nothing_on(!way);
	muster_fabric_free(fabric);
}

static uint64_t passed(uint32_t number)
{
	struct muster_switch_counters now;

	muster_switch_counters_get(t.switches[number], &now);
	assert_int_equal(now.drop_route, 0);
	return now.forwarded;
}

/* Switch 0 has no host. Nothing is lost as the ways change, and then nothing goes over it any more. */
static void ways_lead_around_a_switch_while_packets_are_on_them(void **state)
{
	bool without[9] = { false };
	uint64_t before;

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		open_torus(8, seed);
		for (uint32_t i = 0; i < 32; i++)
			stream_add(1 + below(2), i % 8, (i % 8 + 1 + below(7)) % 8, 2000);
		for (uint32_t change = 1; change <= 5; change++) {
			without[0] = change % 2;
			ways_change(without, change % 2);
			assert_true(t.streams[0].came < 2000);
		}
		before = passed(0);
		assert_true(before > 0);
		run_all();
		for (uint32_t i = 0; i < 9; i++)
			passed(i);
		assert_true(passed(0) == before);
		assert_int_equal(t.refused, 0);
		expect_rest();
		net_close();
	}
}

/* What is for it is dropped then, and nothing waits for what it would have told. */
static void a_lost_link_gives_its_credits_back(void **state)
{
	struct muster_switch_counters now;

	(void)state;
	open_two_leaves(3);
	t.late[4] = true;
	stream_add(1, 0, 4, 500);
	for (uint32_t i = 0; i < 50000; i++)
		turn();
	assert_true(t.streams[0].sent < 500);
	t.plugged_out[0][4] = true;
	muster_switch_port_lost(t.switches[0], 4);
	for (uint32_t i = 0; i < 200000; i++)
		turn();
	assert_int_equal(t.streams[0].sent, 500);
	muster_switch_counters_get(t.switches[0], &now);
	assert_int_equal(now.held, 0);
	assert_int_equal(now.flows, 0);
	assert_true(now.drop_route > 0);
	for (uint32_t host = 0; host < 4; host++)
		assert_int_equal(t.told[host], now.gone);
	net_close();
}

/* Its own source is at its port, and only switches tell of room. */
static void a_host_speaks_for_itself(void **state)
{
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .job = 1, .src_node = 1,
		.dst_node = 5,
	};
	struct muster_switch_counters now;

	(void)state;
	open_two_leaves(1);
	assert_int_equal(muster_switch_receive(t.switches[0], 0, &packet, NULL, 0), 0);
	packet.src_node = 77;
	assert_int_equal(muster_switch_receive(t.switches[0], 0, &packet, NULL, 0), 0);
	packet = (struct muster_packet){
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_ROOM, .job = 1, .arg = 3,
	};
	assert_int_equal(muster_switch_receive(t.switches[0], 0, &packet, NULL, 0), 0);
	muster_switch_counters_get(t.switches[0], &now);
	assert_int_equal(now.drop_stranger, 2);
	assert_int_equal(now.drop_malformed, 1);
	assert_int_equal(now.forwarded, 0);
	assert_int_equal(now.flows, 0);
	net_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_receiver_blocks_no_link),
		cmocka_unit_test(what_waits_is_bounded_by_sources),
		cmocka_unit_test(crossing_ways_come_to_an_end),
		cmocka_unit_test(ways_lead_around_a_switch_while_packets_are_on_them),
		cmocka_unit_test(a_lost_link_gives_its_credits_back),
		cmocka_unit_test(a_host_speaks_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
