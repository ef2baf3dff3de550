// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ten jobs with eight communicators each contend for the streaming trees of two layouts over four leaf
 * switches and a spine: every result is right, all finish, and it is measured who has waited how
 * long for whom. A member here is no engine: it says what a library has an engine say. Time is counted in
 * rounds; in each about half of the packets on links arrive, in any order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric.h"
#include "switch.h"
#include "test_handover.h"

enum {
	LEAVES = 4, JOBS = 10, COMMS = 8, LAYOUTS = 2, HOSTS = LEAVES * JOBS, SWITCHES = LEAVES + 1,
	GROUPS = JOBS * COMMS, FLIGHT_MAX = 1 << 16, TURNS_MAX = 1 << 15, LIFE = 9,
	ROUNDS = 12000, ROUNDS_MAX = 100 * ROUNDS, HURRY_ROUNDS = 500, REPLACE_ROUNDS = 151, PULSES_LIVE = MUSTER_PULSES_LIVE,
};

struct flying {
	struct muster_fabric_end to;
	struct muster_packet packet;
	uint8_t payload[sizeof(struct muster_lock)];
};

enum phase { IDLE, ASKED, WAITS, OPERATES };

struct member {
	enum phase phase;
	uint32_t number;	/* of its next request or operation */
	uint32_t sent, got;	/* pulses */
	uint32_t left;		/* operations of the lock */
	uint64_t seen;		/* pulses that have come */
};

struct comm {
	uint32_t job, layout, handle, nr;
	uint32_t hosts[LEAVES], nodes[LEAVES];	/* by member */
	struct member members[LEAVES];
	uint32_t leases;	/* so far */
	uint32_t in_phase;	/* members that have asked, or that have gone on */
	uint32_t ended;		/* members that are through with the lease */
	uint64_t asked_at;
};

/* When a job had a layout's streaming tree: from when it was there for it. */
struct turn {
	uint32_t job;
	uint64_t from, to;	/* to 0: it has it still */
};

struct wait {
	uint32_t job, layout;
	uint64_t from, to;
	uint64_t had;		/* when all members had it */
};

static struct muster_fabric *fabric;
static struct muster_switch *switches[SWITCHES];
static struct flying *flight[FLIGHT_MAX];
static uint32_t nr_flight, nr_turns[LAYOUTS], nr_waits, holders[LAYOUTS][JOBS];
static struct turn turns[LAYOUTS][TURNS_MAX];
static struct wait waits[TURNS_MAX];
static struct comm comms[GROUPS];
static uint64_t now, seed, done[JOBS];
static bool one_by_one;		/* of a job's communicators */
static bool replaces;		/* switches, now and then */

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % below);
}

/* ---- the network ------------------------------------------------------------------------- */

static int push(const struct muster_fabric_end *to, const struct muster_packet *packet,
		const void *payload)
{
	struct flying *flying = malloc(sizeof(*flying));

	assert_in_range(nr_flight, 0, FLIGHT_MAX - 1);
	flying->to = *to;
	flying->packet = *packet;
	assert_in_range(packet->length, 0, sizeof(flying->payload));
	if (packet->length)
		memcpy(flying->payload, payload, packet->length);
	flight[nr_flight++] = flying;
	return 0;
}

static int switch_send(void *opaque, uint32_t port, const struct muster_packet *packet,
		       const void *payload)
{
	struct muster_fabric_end to;

	assert_true(muster_fabric_end(fabric, (uint32_t)(uintptr_t)opaque, port, &to));
	return push(&to, packet, payload);
}

/* Half of them are lost. */
static void switch_send_once(void *opaque, uint32_t port, const struct muster_packet *packet,
			     const void *payload)
{
	if (draw(2))
		switch_send(opaque, port, packet, payload);
}

static void *take_memory(void *opaque, size_t bytes)
{
	(void)opaque;
	return calloc(1, bytes);
}

static void give_memory(void *opaque, void *p, size_t bytes)
{
	(void)opaque;
	(void)bytes;
	free(p);
}

static const struct muster_switch_world world = {
	.send = switch_send, .send_once = switch_send_once, .alloc = take_memory, .free = give_memory,
};

static struct muster_switch *switch_open(uint32_t number)
{
	struct muster_switch_route routes[HOSTS + SWITCHES];
	bool trunks[MUSTER_SWITCH_RADIX_MAX];
	struct muster_switch_config config = {
		.node = muster_fabric_node(fabric, number), .incarnation = LIFE,
		.radix = muster_fabric_radix(fabric), .routes = routes, .trunks = trunks,
		.nr_routes = (uint32_t)muster_fabric_routes(fabric, number, routes),
	};
	struct muster_switch *sw;

	muster_fabric_trunks(fabric, number, trunks);
	assert_int_equal(muster_switch_create(&config, &world, (void *)(uintptr_t)number, &sw), 0);
	return sw;
}

static void switch_replace(uint32_t number)
{
	struct muster_switch *old = switches[number];

	switches[number] = switch_open(number);
	handover(old, switches[number]);
}

static void network_open(void)
{
	static const bool is_switch[HOSTS + SWITCHES] = { [HOSTS] = true, true, true, true, true };
	struct muster_fabric_link links[HOSTS + LEAVES];
	struct muster_fabric_config config = {
		.nodes = HOSTS + SWITCHES, .is_switch = is_switch, .nr_links = HOSTS + LEAVES,
		.links = links,
	};
	char why[200] = "";
	uint32_t bad;

	for (uint32_t i = 0; i < HOSTS; i++)
		links[i] = (struct muster_fabric_link){ i, HOSTS + i / JOBS };
	for (uint32_t i = 0; i < LEAVES; i++)
		links[HOSTS + i] = (struct muster_fabric_link){ HOSTS + i, HOSTS + LEAVES };
	assert_int_equal(muster_fabric_create(&config, &fabric, &bad, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < SWITCHES; i++)
		switches[i] = switch_open(i);
}

/* ---- communicators --------------------------------------------------------------------------- */

static void branch_add(const struct comm *comm, const struct muster_fabric_branch *branch, uint8_t type)
{
	struct muster_switch_group group = branch->group;
	struct muster_switch_child *children = (struct muster_switch_child *)group.children;

	group.tree = (uint16_t)(2 * comm->layout + type);
	group.type = type;
	group.locks = type == MUSTER_SWITCH_SAT;
	group.group = comm->handle;
	group.owner = group.key = comm->job + 1;
	group.parent_incarnation = LIFE;
	for (uint32_t i = 0; i < group.nr_children; i++) {
		children[i].incarnation = LIFE;
		children[i].context = children[i].node < MUSTER_NODE_AGGREGATION ? comm->handle : 0;
	}
	assert_int_equal(muster_switch_group_add(switches[branch->number], &group), 0);
}

/* Of all four members of the job, of two, of three, of the other two. */
static void comm_open(struct comm *comm, uint32_t job, uint32_t which)
{
	static const uint32_t members[4] = { 0xf, 0x3, 0xd, 0xc };
	struct muster_fabric_group laid;
	char why[200] = "";

	*comm = (struct comm){ .job = job, .layout = job % LAYOUTS, .handle = 1 + job * COMMS + which };
	for (uint32_t leaf = 0; leaf < LEAVES; leaf++)
		if (members[which % 4] >> leaf & 1)
			comm->hosts[comm->nr++] = leaf * JOBS + job;
	assert_int_equal(muster_fabric_group(fabric, comm->layout, comm->hosts, comm->nr, &laid, why,
					     sizeof(why)), 0);
	memcpy(comm->nodes, laid.nodes, comm->nr * sizeof(*laid.nodes));
	for (uint32_t i = 0; i < laid.nr_branches; i++) {
		branch_add(comm, &laid.branches[i], MUSTER_SWITCH_LLT);
		branch_add(comm, &laid.branches[i], MUSTER_SWITCH_SAT);
	}
	muster_fabric_group_free(&laid);
}

/* ---- members ---------------------------------------------------------------------------------- */

static uint32_t operations(const struct comm *comm)
{
	return 1 + (comm->leases + comm->handle) % 3;
}

static uint32_t pulses(const struct comm *comm)
{
	return 4 + (comm->leases * 7 + comm->handle * 5) % 29;
}

static void say(struct comm *comm, uint32_t i, uint8_t type, uint32_t pulse,
		const struct muster_signature *signature, bool last, const void *data, uint32_t bytes)
{
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_TREE_UP,
		.flags = last ? MUSTER_PACKET_LAST : 0, .src_node = comm->hosts[i],
		.dst_node = comm->nodes[i], .context = comm->handle, .src_member = i,
		.number = comm->members[i].number, .pulse = pulse, .total = bytes,
		.length = (uint16_t)bytes, .signature = *signature, .incarnation = LIFE,
		.tree = (uint16_t)(2 * comm->layout + type), .group = comm->handle,
		.job_key = comm->job + 1,
	};
	struct muster_fabric_end to;

	muster_fabric_uplink(fabric, comm->hosts[i], &to);
	push(&to, &packet, data);
}

static void ask(struct comm *comm, uint32_t i, uint64_t how)
{
	static const struct muster_signature signature = {
		.coll = MUSTER_COLL_LOCK, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_MIN,
	};
	const struct muster_lock lock = {
		operations(comm), 1, how, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	};

	say(comm, i, MUSTER_SWITCH_LLT, 0, &signature, true, &lock, sizeof(lock));
	comm->members[i].phase = how == MUSTER_LOCK_WAIT ? WAITS : ASKED;
}

static void contribute(struct comm *comm, uint32_t i)
{
	static const struct muster_signature signature = {
		.coll = 4, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_SUM,
	};
	struct member *member = &comm->members[i];

	while (member->sent < pulses(comm) && member->sent < member->got + PULSES_LIVE) {
		uint64_t value = (i + 1) * 1000 + member->sent;

		say(comm, i, MUSTER_SWITCH_SAT, member->sent, &signature,
		    member->sent + 1 == pulses(comm), &value, sizeof(value));
		member->sent++;
	}
}

/* ---- who has what, and since when ------------------------------------------------------------- */

static void wait_begin(struct comm *comm)
{
	if (++comm->in_phase < comm->nr)
		return;
	comm->in_phase = 0;
	comm->asked_at = now;
}

/* The job before has given it back, and this one had asked. */
static uint64_t free_since(const struct comm *comm)
{
	uint64_t since = comm->asked_at;

	for (uint32_t i = 0; i < nr_turns[comm->layout]; i++)
		if (turns[comm->layout][i].to > since)
			since = turns[comm->layout][i].to;
	return since;
}

/*
 * Whoever asks while its job has the tree waits for others when the job has not; and until its job's
 * turn: how long taking the lock takes then is told apart.
 */
static void wait_note(const struct comm *comm)
{
	const struct turn *turns_here = turns[comm->layout];
	struct wait wait = { comm->job, comm->layout, comm->asked_at, comm->asked_at, now };

	for (uint32_t i = 0; i < nr_turns[comm->layout]; i++) {
		if (turns_here[i].job != comm->job)
			continue;
		if (turns_here[i].to > wait.from)
			wait.from = turns_here[i].to;
		wait.to = turns_here[i].from;
	}
	if (wait.to < wait.from)
		wait.to = wait.from;
	assert_in_range(nr_waits, 0, TURNS_MAX - 1);
	waits[nr_waits++] = wait;
}

static void turn_begin(struct comm *comm)
{
	uint32_t layout = comm->layout;

	if (!comm->in_phase++ && !holders[layout][comm->job]++) {
		assert_in_range(nr_turns[layout], 0, TURNS_MAX - 1);
		turns[layout][nr_turns[layout]] = (struct turn){ comm->job, free_since(comm), 0 };
		nr_turns[layout]++;
	}
	if (comm->in_phase < comm->nr)
		return;
	comm->in_phase = 0;
	wait_note(comm);
}

static void lease_end(struct comm *comm)
{
	uint32_t layout = comm->layout, i = nr_turns[layout];

	if (++comm->ended < comm->nr)
		return;
	comm->ended = 0;
	if (now < ROUNDS)
		done[comm->job] += (uint64_t)operations(comm) * pulses(comm);
	comm->leases++;
	for (uint32_t m = 0; m < comm->nr; m++)
		comm->members[m].phase = IDLE;
	if (--holders[layout][comm->job])
		return;
	while (turns[layout][--i].job != comm->job)
		;
	turns[layout][i].to = now;
}

/* ---- what comes --------------------------------------------------------------------------------- */

static void hear_lock(struct comm *comm, uint32_t i, const struct muster_lock *lock)
{
	struct member *member = &comm->members[i];

	member->number++;
	if (member->phase == WAITS || !lock->free) {
		ask(comm, i, member->phase == WAITS ? MUSTER_LOCK_KEEP : MUSTER_LOCK_WAIT);
		return;
	}
	assert_int_equal(lock->operations, operations(comm));
	member->phase = OPERATES;
	member->left = operations(comm);
	turn_begin(comm);
	contribute(comm, i);
}

static void hear_result(struct comm *comm, uint32_t i, uint32_t pulse, uint64_t value)
{
	struct member *member = &comm->members[i];

	assert_int_equal(value, comm->nr * (comm->nr + 1) / 2 * 1000 + comm->nr * pulse);
	assert_false(member->seen >> pulse & 1);
	member->seen |= 1ull << pulse;
	while (member->seen >> member->got & 1)
		member->got++;
	if (member->got == pulses(comm)) {
		member->number++;
		member->sent = member->got = 0;
		member->seen = 0;
		if (!--member->left) {
			member->phase = IDLE;
			member->left = UINT32_MAX;	/* until the last is through */
			lease_end(comm);
			return;
		}
	}
	contribute(comm, i);
}

static void to_host(const struct flying *flying)
{
	const struct muster_packet *packet = &flying->packet;
	struct comm *comm = &comms[packet->group - 1];
	struct muster_lock lock;
	uint64_t value;
	uint32_t i = 0;

	assert_int_equal(packet->type, MUSTER_PACKET_TREE_DOWN);
	while (comm->hosts[i] != flying->to.number)
		i++;
	if (packet->number != comm->members[i].number)
		return;		/* the second copy */
	if (packet->tree % 2) {
		memcpy(&value, flying->payload, sizeof(value));
		hear_result(comm, i, packet->pulse, value);
	} else {
		memcpy(&lock, flying->payload, sizeof(lock));
		hear_lock(comm, i, &lock);
	}
}

static void deliver(uint32_t which)
{
	struct flying *flying = flight[which];

	flight[which] = flight[--nr_flight];
	if (flying->to.is_host)
		to_host(flying);
	else
		assert_int_equal(muster_switch_receive(switches[flying->to.number], flying->to.port,
						       &flying->packet, flying->payload,
						       flying->packet.length), 0);
	free(flying);
}

/* All members of a communicator come to it within some rounds. */
static bool is_its_turn(const struct comm *comm)
{
	const struct comm *first = &comms[comm->job * COMMS];
	uint32_t turn = 0;

	for (uint32_t i = 0; i < COMMS; i++)
		turn += first[i].leases;
	return !one_by_one || turn % COMMS == (uint32_t)(comm - first);
}

static bool begin_some(void)
{
	bool some = false;

	for (uint32_t g = 0; g < GROUPS; g++)
		for (uint32_t i = 0; i < comms[g].nr; i++) {
			struct member *member = &comms[g].members[i];
			bool through = member->left == UINT32_MAX && comms[g].ended;

			some |= member->phase != IDLE || through;
			/* Whoever has begun before the end is not left waiting for others. */
			if (member->phase != IDLE || through || draw(4) ||
			    (now >= ROUNDS && !comms[g].in_phase) || !is_its_turn(&comms[g]))
				continue;
			ask(&comms[g], i, MUSTER_LOCK_KEEP);
			wait_begin(&comms[g]);
		}
	return some;
}

static void run(void)
{
	for (now = 1; begin_some() || now < ROUNDS; now++) {
		assert_true(now < ROUNDS_MAX);
		for (uint32_t nr = (nr_flight + 1) / 2; nr; nr--)
			deliver(draw(nr_flight));
		for (uint32_t i = 0; i < SWITCHES; i++) {
			muster_switch_step(switches[i]);
			if (now % HURRY_ROUNDS == 0)
				muster_switch_hurry(switches[i]);
		}
		if (replaces && now % REPLACE_ROUNDS == 0)
			switch_replace(now / REPLACE_ROUNDS % SWITCHES);
	}
}

/* ---- what must hold --------------------------------------------------------------------------------- */

/* The longest turn of another job that this one had to wait for. */
static uint64_t longest_ahead(const struct wait *wait)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < nr_turns[wait->layout]; i++) {
		const struct turn *turn = &turns[wait->layout][i];

		if (turn->job != wait->job && turn->from < wait->to && turn->to > wait->from &&
		    turn->to - turn->from > longest)
			longest = turn->to - turn->from;
	}
	return longest;
}

static double jain(void)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		sum += (double)done[i];
		squares += (double)done[i] * (double)done[i];
	}
	return sum * sum / (JOBS * squares);
}

static void report(const char *what)
{
	uint64_t longest = 0, of = 0, all = 0, taking = 0;
	double worst = 0;

	for (uint32_t i = 0; i < nr_waits; i++) {
		uint64_t length = waits[i].to - waits[i].from, ahead = longest_ahead(&waits[i]);

		all += length;
		taking += waits[i].had - waits[i].to;
		longest = length > longest ? length : longest;
		if (ahead && (double)length / (double)ahead > worst)
			worst = (double)length / (double)ahead;
	}
	for (uint32_t l = 0; l < LAYOUTS; l++)
		for (uint32_t i = 0; i < nr_turns[l]; i++)
			if (turns[l][i].to - turns[l][i].from > of)
				of = turns[l][i].to - turns[l][i].from;
	printf("# %s: %u locks, %u turns of jobs; longest turn %u rounds; wait for a lock: mean %u, longest %u rounds, at most %.2f times the longest turn ahead of it; then it takes %u to have it; Jain's index of ten jobs %.4f\n",
	       what, nr_waits, nr_turns[0] + nr_turns[1], (uint32_t)of, (uint32_t)(all / nr_waits),
	       (uint32_t)longest, worst, (uint32_t)(taking / nr_waits), jain());
	assert_true(worst <= 4);
	assert_true(jain() >= 0.95);
}

static void close_all(void)
{
	struct muster_switch_counters counters;

	for (uint32_t i = 0; i < SWITCHES; i++) {
		muster_switch_counters_get(switches[i], &counters);
		assert_int_equal(counters.locked, 0);
		assert_int_equal(counters.drop_unlocked, 0);
		assert_int_equal(counters.drop_stranger, 0);
		assert_int_equal(counters.drop_malformed, 0);
		assert_int_equal(counters.failed, 0);
		muster_switch_destroy(switches[i]);
	}
	while (nr_flight)
		free(flight[--nr_flight]);
	muster_fabric_free(fabric);
}

static void contend(const char *what, bool alone, uint64_t of_seed)
{
	seed = of_seed;
	one_by_one = alone;
	nr_waits = nr_turns[0] = nr_turns[1] = 0;
	memset(done, 0, sizeof(done));
	network_open();
	for (uint32_t i = 0; i < GROUPS; i++)
		comm_open(&comms[i], i / COMMS, i % COMMS);
	run();
	report(what);
	close_all();
}

static void jobs_that_go_from_communicator_to_communicator(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 2; i++)
		contend("one communicator of a job at a time", true, i);
}

/* In seed 6 groups of one job had several places, so it had turns before others that waited longer. */
static void jobs_all_of_whose_communicators_want_it(void **state)
{
	static const uint64_t seeds[] = { 1, 2, 6 };

	(void)state;
	for (uint32_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
		contend("all communicators of a job at once", false, seeds[i]);
}

/* Whoever waits keeps its place, and who has a lock has it for as many operations. */
static void switches_are_replaced_meanwhile(void **state)
{
	(void)state;
	replaces = true;
	contend("the same, and each 151 rounds a switch is replaced", false, 1);
	replaces = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_go_from_communicator_to_communicator),
		cmocka_unit_test(jobs_all_of_whose_communicators_want_it),
		cmocka_unit_test(switches_are_replaced_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
