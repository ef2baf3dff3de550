// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Virtual ports that want more than the NIC can do have equal shares of it, and who wants
 * little is not kept waiting by those who want all: seven pairs of ports, of which each keeps
 * its queue full of operations.
 */
#include "test_guest.h"

enum {
	PAIRS = 7,
	PORTS_NR = 2 * PAIRS,	/* port p's partner is p ^ 1 */
	STEPS = 2000,
	AT_ONCE = DQ / 2,	/* operations of two descriptors */
	STORE = 0x7000000,	/* of region 1 */
	BULK = 16384,		/* bytes of a bulk operation, in so many */
	PULSES = 2,
};

struct load {
	uint32_t posted, ended;
	uint32_t at_once;	/* operations that it keeps in its queue */
	uint32_t since;		/* the step in which the oldest was posted */
	uint32_t longest;	/* steps that one has taken, with those before it in its queue */
};

static struct load loads[PORTS_NR];

static void ports_open(struct guest *guest)
{
	memset(loads, 0, sizeof(loads));
	for (uint32_t p = 0; p < PORTS_NR; p++) {
		struct place places[] = { { guest, 0, p - p % 2 }, { guest, 0, p | 1 } };

		port_open(guest, p);
		if (p % 2)
			context_open(places, 2);
	}
	assert_int_equal(command(guest, mr_command(guest, 1, STORE, 2 * BULK,
						   MUSTER_MR_READ | MUSTER_MR_WRITE)).status, MUSTER_ADMIN_OK);
}

static struct muster_desc *entry(struct guest *guest, uint32_t p, uint32_t at)
{
	return (struct muster_desc *)(guest->memory + port(p, PORT_DQ)) + at % DQ;
}

/* The same allreduce, of as much memory: both load their own. */
static void make_bulk(struct guest *guest, uint32_t p, uint32_t at)
{
	struct muster_desc *first = entry(guest, p, at), *last = entry(guest, p, at + 1);

	first->kind = MUSTER_DESC_RDMA;
	first->inline_len = 0;
	memset(first->data, 0, sizeof(first->data));
	first->length = htole64(BULK);
	first->range = (struct muster_desc_range){
		.load_addr = htole64(STORE), .load_key = htole32(1),
		.pulse_len = htole32(BULK / PULSES), .pulse_count = htole32(PULSES),
	};
	last->kind = MUSTER_DESC_RDMA;
	last->flags = htole16(le16toh(last->flags) & ~MUSTER_DESC_SWAP_LOCAL_DATA);
	last->length = first->length;
	last->range = first->range;
	last->store_addr = htole64(STORE + BULK);
}

static void fill(struct guest *guest, uint32_t p, bool bulk, uint32_t now)
{
	struct load *load = &loads[p];

	while (load->posted - load->ended < load->at_once) {
		if (load->posted == load->ended)
			load->since = now;
		allreduce_of(guest, p, 2 * load->posted, 0, p ^ 1, 1.0);
		if (bulk)
			make_bulk(guest, p, 2 * load->posted);
		load->posted++;
		doorbell(guest, p, MUSTER_DOORBELL_DQ_TAIL, 2 * load->posted);
	}
}

static void reap(struct guest *guest, uint32_t p, uint32_t now)
{
	struct load *load = &loads[p];

	while (load->ended != load->posted &&
	       le32toh(cqe(guest, p, load->ended)->valid) == !(load->ended / CQ & 1)) {
		assert_int_equal(cqe(guest, p, load->ended)->status, MUSTER_STATUS_OK);
		if (now - load->since > load->longest)
			load->longest = now - load->since;
		load->since = now;
		doorbell(guest, p, MUSTER_DOORBELL_CQ_HEAD, ++load->ended);
	}
}

/* Jain's index of what pairs [from, to) have got: 1 if all have the same, 1 / n if one has all. */
static double jain(uint32_t from, uint32_t to)
{
	double sum = 0, squares = 0;

	for (uint32_t p = 2 * from; p < 2 * to; p += 2) {
		sum += loads[p].ended;
		squares += (double)loads[p].ended * loads[p].ended;
	}
	return sum * sum / ((to - from) * squares);
}

/* nr_bulk pairs have bulk operations. */
static void contend(struct guest *guest, uint32_t nr_bulk)
{
	for (uint32_t now = 0; now < STEPS; now++) {
		for (uint32_t p = 0; p < PORTS_NR; p++) {
			reap(guest, p, now);
			fill(guest, p, p < 2 * nr_bulk, now);
		}
		muster_nic_step(guest->nic);
	}
}

/* Pairs [from, to), which want the same. */
static void have_the_same(const char *what, uint32_t from, uint32_t to)
{
	if (from == to)
		return;
	printf("# %u of %u pairs, with all the %s operations that fit: %u each, Jain's index %.4f\n",
	       to - from, PAIRS, what, loads[2 * from].ended, jain(from, to));
	assert_true(loads[2 * from].ended > 100);
	assert_true(jain(from, to) >= 0.9);
}

static void shares_are_fair(struct guest *guest, uint32_t nr_bulk)
{
	ports_open(guest);
	for (uint32_t p = 0; p < PORTS_NR; p++)
		loads[p].at_once = AT_ONCE;
	contend(guest, nr_bulk);
	have_the_same("bulk", 0, nr_bulk);
	have_the_same("small", nr_bulk, PAIRS);
}

static void who_want_the_same_get_the_same_small(void **state)
{
	shares_are_fair(*state, 0);
}

static void who_want_the_same_get_the_same_bulk(void **state)
{
	shares_are_fair(*state, PAIRS);
}

static void who_want_the_same_get_the_same_beside_others(void **state)
{
	shares_are_fair(*state, PAIRS / 2);
}

/* One pair has an operation at a time, the others all that fit, in bulk. */
static void who_wants_little_does_not_wait_for_those_who_want_all(void **state)
{
	struct guest *guest = *state;
	struct load *little = &loads[PORTS_NR - 1];

	ports_open(guest);
	for (uint32_t p = 0; p < PORTS_NR; p++)
		loads[p].at_once = p < PORTS_NR - 2 ? AT_ONCE : 1;
	contend(guest, PAIRS - 1);
	printf("# one at a time beside %u pairs that want all: %u operations of %u, the slowest took %u steps (theirs %u)\n",
	       PAIRS - 1, little->ended, loads[0].ended, little->longest, loads[0].longest);
	assert_true(little->ended >= loads[0].ended / AT_ONCE);
	assert_true(little->longest <= 2 * PAIRS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(who_want_the_same_get_the_same_small),
		WITH_GUEST(who_want_the_same_get_the_same_bulk),
		WITH_GUEST(who_want_the_same_get_the_same_beside_others),
		WITH_GUEST(who_wants_little_does_not_wait_for_those_who_want_all),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
