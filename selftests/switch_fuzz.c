// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of trees that are wrong, at an aggregation node between operations and in the middle of them: well formed ones with
 * one lie about who sends them or for whom (key, job, tree, handle, life, port), ones that make
 * no sense, ones of a member in no place of an operation or without a lock, and ones of which any bytes
 * are other ones. Each is dropped and counted once,
 * under what it is dropped for; nothing is sent, locked or kept; and the operations have their
 * results, as if there were none. It is a low-latency group and the streaming one that it locks.
 *
 * usage: switch_fuzz [MESSAGES [SEED]]
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "switch.h"

enum {
	RADIX = 16, HOSTS = 8, ELSEWHERE = 9, SELF = MUSTER_NODE_AGGREGATION + 4, LIFE = 11,
	PARENT = MUSTER_NODE_AGGREGATION + 9, PARENT_PORT = 12, PARENT_LIFE = 12, JOB = 2, LLT = 4, GROUP = 77,
	SOME = 3,		/* hosts that have contributed when an operation is in its middle */
	EACH = 5000,		/* messages between operations */
};

#define KEY 0x1122334455667788ull

static struct muster_switch *sw;
static uint64_t state, sent, last_sum;
static struct muster_switch_child children[HOSTS];

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

/* ---- the switch's world ------------------------------------------------------------------- */

static int take(void *world, uint32_t port, const struct muster_packet *packet, const void *payload)
{
	(void)world;
	(void)port;
	if (packet->type == MUSTER_PACKET_ROOM)
		return 0;	/* of the link: it was taken, whatever became of it */
	sent++;
	if (packet->length)
		memcpy(&last_sum, payload, sizeof(last_sum));
	return 0;
}

static void take_once(void *world, uint32_t port, const struct muster_packet *packet,
		      const void *payload)
{
	take(world, port, packet, payload);
}

static void *get(void *world, size_t bytes)
{
	(void)world;
	return calloc(1, bytes);
}

static void put(void *world, void *p, size_t bytes)
{
	(void)world;
	(void)bytes;
	free(p);
}

static void group_open(uint16_t tree, uint8_t type)
{
	const struct muster_switch_group group = {
		.tree = tree, .type = type, .locks = type == MUSTER_SWITCH_SAT, .group = GROUP,
		.job = JOB, .owner = 1, .key = KEY, .parent_port = PARENT_PORT, .parent_node = PARENT,
		.parent_incarnation = PARENT_LIFE, .nr_children = HOSTS, .children = children,
	};

	if (muster_switch_group_add(sw, &group))
		errx(1, "no group");
}

static void open_all(void)
{
	static const struct muster_switch_world world = {
		.send = take, .send_once = take_once, .alloc = get, .free = put,
	};
	struct muster_switch_route routes[HOSTS + 2];
	bool trunks[MUSTER_SWITCH_RADIX_MAX] = { [PARENT_PORT] = true };
	struct muster_switch_config config = {
		.node = SELF, .incarnation = LIFE, .radix = RADIX, .nr_routes = HOSTS + 2,
		.routes = routes, .trunks = trunks,
	};

	for (uint32_t i = 0; i <= HOSTS; i++)	/* one host more than the group has */
		routes[i] = (struct muster_switch_route){ i, (uint8_t)i };
	routes[HOSTS + 1] = (struct muster_switch_route){ PARENT, PARENT_PORT };
	for (uint32_t i = 0; i < HOSTS; i++)
		children[i] = (struct muster_switch_child){
			.node = i, .incarnation = 100 + i, .port = (uint8_t)i, .vp = (uint16_t)(30 + i),
			.context = 40 + i, .life = 50 + i, .member = i,
		};
	if (muster_switch_create(&config, &world, NULL, &sw))
		errx(1, "no switch");
	group_open(LLT, MUSTER_SWITCH_LLT);
	group_open(LLT + 1, MUSTER_SWITCH_SAT);
}

/* ---- what is right -------------------------------------------------------------------------- */

static struct muster_packet right(uint32_t from, uint16_t tree, uint32_t number)
{
	bool up = from < HOSTS;

	return (struct muster_packet){
		.version = MUSTER_PACKET_VERSION,
		.type = up ? MUSTER_PACKET_TREE_UP : MUSTER_PACKET_TREE_DOWN,
		.flags = up ? MUSTER_PACKET_LAST : 0, .job = JOB, .src_node = up ? from : PARENT,
		.dst_node = SELF, .src_vp = up ? children[from].vp : 0,
		.context = up ? children[from].context : 0, .life = up ? children[from].life : 0,
		.src_member = up ? from : 0, .number = number, .total = 8, .length = 8,
		.signature = { .coll = 4, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_SUM },
		.incarnation = up ? children[from].incarnation : PARENT_LIFE, .tree = tree,
		.group = GROUP, .job_key = KEY,
	};
}

static uint32_t port_of(uint32_t from)
{
	return from < HOSTS ? from : PARENT_PORT;
}

/* The parent has taken what went up. */
static void room(void)
{
	const struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_ROOM, .job = JOB,
		.src_node = SELF, .arg = 16,
	};

	muster_switch_receive(sw, PARENT_PORT, &packet, NULL, 0);
	while (muster_switch_step(sw))
		;
}

static void say(uint16_t tree, uint32_t number, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		struct muster_packet packet = right(i, tree, number);
		uint64_t value = i < HOSTS ? number + i : last_sum;

		muster_switch_receive(sw, port_of(i), &packet, &value, sizeof(value));
	}
}

/* From some host on; those before it have contributed. */
static void operate(uint16_t tree, uint32_t number, uint32_t first)
{
	uint64_t before = sent;

	say(tree, number, first, HOSTS + 1);
	if (last_sum != (uint64_t)HOSTS * number + HOSTS * (HOSTS - 1) / 2)
		errx(1, "operation %" PRIu32 ": the sum is %" PRIu64, number, last_sum);
	if (tree == LLT && sent - before < 1 + HOSTS)
		errx(1, "operation %" PRIu32 ": only %" PRIu64 " packets", number, sent - before);
}

/* For one operation of the streaming group. */
static void lock(uint32_t number)
{
	struct muster_lock wish = { 1, 1, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX };

	for (uint32_t i = 0; i <= HOSTS + 1; i++) {
		struct muster_packet packet = right(i, LLT, number);

		wish.how = i == HOSTS ? MUSTER_LOCK_TAKE : MUSTER_LOCK_TRY;
		packet.total = packet.length = sizeof(wish);
		packet.signature = (struct muster_signature){
			.coll = MUSTER_COLL_LOCK, .type = MUSTER_DTYPE_U64, .op = MUSTER_REDOP_MIN,
		};
		muster_switch_receive(sw, port_of(i), &packet, &wish, sizeof(wish));
	}
}

/* ---- what is wrong ---------------------------------------------------------------------------- */

/* One lie about who it is, of all that an aggregation node knows of a neighbour. */
static void lie(struct muster_packet *packet, uint32_t *port)
{
	bool up = packet->type == MUSTER_PACKET_TREE_UP;

	switch (draw(up ? 12 : 7)) {
	case 0:
		packet->job_key ^= 1ull << draw(64);
		break;
	case 1:
		packet->group ^= 1u << draw(32);
		break;
	case 2:
		packet->tree ^= (uint16_t)(2u << draw(15));	/* not the other of the two */
		break;
	case 3:
		packet->job ^= (uint8_t)(1u << draw(8));
		break;
	case 4:
		packet->incarnation ^= 1u << draw(32);
		break;
	case 5:
		*port = (*port + 1 + (uint32_t)draw(RADIX - 1)) % RADIX;
		break;
	case 6:
		packet->src_node ^= 1u << draw(24);
		break;
	case 7:
		packet->src_member ^= 1u << draw(32);
		break;
	case 8:
		packet->context ^= 1u << draw(32);
		break;
	case 9:
		packet->life ^= 1u << draw(32);
		break;
	case 10:
		packet->src_vp ^= (uint16_t)(1u << draw(16));
		break;
	default:
		packet->type = MUSTER_PACKET_TREE_DOWN;		/* as if it were the parent */
		packet->flags = 0;
	}
}

static void nonsense(struct muster_packet *packet)
{
	switch (draw(9)) {
	case 0:
		packet->version ^= (uint8_t)(1u << draw(8));
		break;
	case 1:
		packet->flags |= (uint16_t)(0x200u << draw(7));
		break;
	case 2:
		packet->reserved = (uint32_t)draw(1u << 30) + 1;
		break;
	case 3:
		packet->seq_id = (uint8_t)(MUSTER_SLOTS_MAX + draw(256 - MUSTER_SLOTS_MAX));
		break;
	case 4:
		packet->offset = (uint32_t)draw(1u << 30) + 1;
		break;
	case 5:
		packet->total ^= 1u << draw(32);
		break;
	case 6:
		packet->arg = MUSTER_TREE_PULSES_LIVE + 1 + (uint32_t)draw(1u << 30);
		break;
	case 7:
		packet->signature.coll = MUSTER_COLL_LOCK;	/* of another length */
		break;
	default:
		packet->signature.type = (uint8_t)(MUSTER_DTYPE_END + draw(64));
	}
}

/* Of who may, but not now. */
static void out_of_place(struct muster_packet *packet, bool amid)
{
	packet->signature.op = MUSTER_REDOP_SUM;
	if (packet->type == MUSTER_PACKET_TREE_DOWN || (packet->tree != LLT && !amid))
		return;		/* nobody awaits it, or there is no lock */
	if (draw(2) && packet->number > 3)
		packet->number -= 3 + (uint32_t)draw(packet->number - 3);
	else
		packet->pulse = MUSTER_TREE_PULSES_LIVE + (uint32_t)draw(1u << 30);
}

/* Any bytes of it, and then the key is wrong in any case; or the whole is so long, or for nobody. */
static void anything(struct muster_packet *packet)
{
	for (uint64_t nr = 1 + draw(24); nr; nr--)
		((uint8_t *)packet)[draw(sizeof(*packet))] ^= (uint8_t)(1 + draw(255));
	packet->dst_node = SELF;
	packet->job_key = KEY ^ 1ull << draw(64);
	if (packet->type == MUSTER_PACKET_ROOM || packet->type == MUSTER_PACKET_GONE)
		packet->type = MUSTER_PACKET_ABORT;	/* these are no tree's */
}

static uint64_t drops(const struct muster_switch_counters *counters)
{
	return counters->drop_malformed + counters->drop_stranger + counters->drop_duplicate +
	       counters->drop_window + counters->drop_failed + counters->drop_unlocked +
	       counters->drop_route;
}

static void wrong(uint32_t number, bool amid)
{
	static uint8_t payload[UINT16_MAX];
	uint32_t from = (uint32_t)draw(HOSTS + 1), port = port_of(from);
	struct muster_packet packet = right(from, (uint16_t)(LLT + draw(2)), number);

	if (draw(4) == 0 && from < HOSTS) {
		packet.type = MUSTER_PACKET_ABORT;
		packet.flags = 0;
		packet.total = packet.length = 0;
		packet.number = MUSTER_STATUS_PEER_LOST;
	}
	switch (draw(packet.type == MUSTER_PACKET_ABORT ? 3 : 4)) {
	case 0:
		lie(&packet, &port);
		break;
	case 1:
		nonsense(&packet);
		if (packet.type == MUSTER_PACKET_ABORT)
			packet.version = 0;
		break;
	case 2:
		anything(&packet);
		break;
	default:
		out_of_place(&packet, amid);
	}
	muster_switch_receive(sw, port, &packet, payload, packet.length);
}

static void check(uint64_t wrongs, const struct muster_switch_counters *before)
{
	struct muster_switch_counters now;

	muster_switch_counters_get(sw, &now);
	if (drops(&now) - drops(before) != wrongs)
		errx(1, "%" PRIu64 " of %" PRIu64 " were dropped", drops(&now) - drops(before), wrongs);
	if (now.contributions != before->contributions || now.results != before->results ||
	    now.failed || now.groups != before->groups || now.bytes != before->bytes || now.held ||
	    now.locks != before->locks || now.locked != before->locked || now.forwarded || now.flows)
		errx(1, "something has changed");
}

/* The tree is locked, and some have contributed to an operation on each. */
static void begin(uint32_t number)
{
	lock(number++);
	room();
	say(LLT, number, 0, SOME);
	say(LLT + 1, number, 0, SOME);
}

/* amid: in the middle of these; else before the tree is locked. */
static void bother(uint32_t number, uint64_t nr, bool amid)
{
	struct muster_switch_counters before;
	uint64_t sent_before = sent;

	muster_switch_counters_get(sw, &before);
	for (uint64_t i = 0; i < nr; i++)
		wrong(number + amid, amid);
	while (muster_switch_step(sw))
		;
	check(nr, &before);
	if (sent != sent_before)
		errx(1, "something was sent");
}

int main(int argc, char **argv)
{
	uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000, done = 0;
	struct muster_switch_counters after;
	uint32_t number = 1;

	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	open_all();
	for (bool amid = false; done < messages; amid = !amid) {
		uint64_t nr = messages - done < EACH ? messages - done : EACH;

		if (amid)
			begin(number);
		bother(number, nr, amid);
		done += nr;
		if (!amid)
			begin(number);
		operate(LLT, ++number, SOME);
		operate(LLT + 1, number++, SOME);
		room();
	}
	muster_switch_counters_get(sw, &after);
	printf("%" PRIu64 " wrong messages, none of which changed anything: %" PRIu64 " malformed, %" PRIu64 " of strangers, %" PRIu64 " in no place; %" PRIu32 " operations among them were right\n",
	       messages, after.drop_malformed, after.drop_stranger,
	       drops(&after) - after.drop_malformed - after.drop_stranger, (number - 1) / 2 * 3);
	muster_switch_destroy(sw);
	return 0;
}
