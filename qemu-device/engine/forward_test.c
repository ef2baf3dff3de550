// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * FORWARD (Documentation/sequence.md, section 2): a message is sent on as it comes, fragment by
 * fragment, and is the same in the end.
 */
#include "test_world.h"

enum { SEEDS = 60, BYTES = 90000, PULSE = 7 * MUSTER_MTU, IN = 0, OUT = 0x20000, OTHER = 0x40000 };

static uint32_t pulse_len = PULSE;
static const uint32_t BUFFERS[] = { MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, 0 };

static struct world *vary(uint32_t nr, uint64_t seed)
{
	struct world *w = world_create(nr, seed);

	w->map = seed & 1;
	w->share = seed & 2;
	w->refuse_percent = seed % 5 * 10;
	w->model.buffer = BUFFERS[seed % 3];
	return w;
}

static struct muster_desc step(uint32_t flags, uint8_t cp_count, uint32_t bytes)
{
	struct muster_desc desc = desc_rdma(flags, cp_count, bytes, pulse_len);

	if (cp_count)
		desc_store(&desc, OUT);
	return desc;
}

static struct muster_desc send_to(uint32_t flags, uint64_t from, uint32_t to, uint32_t slot,
				  uint32_t bytes)
{
	struct muster_desc desc = step(flags, 0, bytes);

	desc_load(&desc, from);
	desc_to(&desc, to, slot);
	return desc;
}

static void post_root(struct world *w, uint32_t at, uint32_t to, uint32_t slot, uint32_t bytes)
{
	struct muster_desc desc = send_to(MUSTER_DESC_CH | MUSTER_DESC_CT, IN, to, slot, bytes);

	for (uint32_t i = 0; i < bytes / 8; i++)
		world_double(w, at, IN)[i] = 1000 * at + i;
	world_post(w, at, &desc, 1);
}

static void post_leaf(struct world *w, uint32_t at, uint32_t bytes)
{
	struct muster_desc desc = step(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 1,
				       bytes);

	world_post(w, at, &desc, 1);
}

/* What it receives goes to two others. */
static void post_inner(struct world *w, uint32_t at, uint32_t one, uint32_t other, uint32_t bytes)
{
	struct muster_desc descs[2] = {
		step(MUSTER_DESC_CH | MUSTER_DESC_FORWARD, 1, bytes),
		send_to(MUSTER_DESC_CT | MUSTER_DESC_COLL_END | MUSTER_DESC_FORWARD, OUT, other, 0, bytes),
	};

	desc_to(&descs[0], one, 0);
	world_post(w, at, descs, 2);
}

/* From node 0 to 1, and from there to 2 and 3. */
static void post_fork(struct world *w, uint32_t bytes)
{
	post_root(w, 0, 1, 0, bytes);
	post_inner(w, 1, 2, 3, bytes);
	post_leaf(w, 2, bytes);
	post_leaf(w, 3, bytes);
}

static void assert_came(struct world *w, uint32_t at, uint32_t bytes)
{
	assert_int_equal(w->nodes[at].nr_cqes, 1);
	assert_int_equal(w->nodes[at].cqes[0].status, MUSTER_STATUS_OK);
	for (uint32_t i = 0; i < bytes / 8; i++)
		assert_true(world_double(w, at, OUT)[i] == i);
}

static void a_broadcast_down_a_tree_is_the_same(void **state)
{
	static const uint32_t lengths[] = { BYTES, 2 * MUSTER_MTU, MUSTER_MTU, 8 };

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(6, seed);
		uint32_t bytes = lengths[seed % 4];

		world_start(w);
		post_root(w, 0, 1, 0, bytes);
		post_inner(w, 1, 2, 3, bytes);
		post_inner(w, 2, 4, 5, bytes);
		post_leaf(w, 3, bytes);
		post_leaf(w, 4, bytes);
		post_leaf(w, 5, bytes);
		world_run(w);
		for (uint32_t r = 1; r < 6; r++)
			assert_came(w, r, bytes);
		world_destroy(w);
	}
}

/* Of more fragments than a word of 32 bits has; in whatever way it comes. */
static void a_long_pulse_goes_on_whole(void **state)
{
	(void)state;
	pulse_len = 33 * MUSTER_MTU;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		world_start(w);
		post_fork(w, pulse_len);
		world_run(w);
		for (uint32_t r = 1; r < 4; r++)
			assert_came(w, r, pulse_len);
		world_destroy(w);
	}
	pulse_len = PULSE;
}

/* Which of the packets under way is the first of this type to a node; nr_flight: none is. */
static uint32_t find(const struct world *w, uint8_t type, uint32_t to)
{
	uint32_t i = 0;

	while (i < w->nr_flight && (w->flight[i]->packet.type != type || w->flight[i]->packet.dst_node != to))
		i++;
	return i;
}

static void deliver(struct world *w, uint8_t type, uint32_t to)
{
	uint32_t which = find(w, type, to);

	assert_true(which < w->nr_flight);
	world_deliver_one(w, which);
	while (muster_engine_step(w->nodes[to].engine, 100))
		;
}

static void step_all(struct world *w)
{
	for (uint32_t i = 0; i < w->nr; i++)
		while (muster_engine_step(w->nodes[i].engine, 100))
			;
}

static void a_fragment_leaves_before_the_next_one_has_come(void **state)
{
	struct world *w = world_create(4, 1);
	uint32_t offset, which;

	(void)state;
	w->map = true;
	world_start(w);
	post_fork(w, PULSE);
	step_all(w);
	deliver(w, MUSTER_PACKET_RTS, 1);
	deliver(w, MUSTER_PACKET_RTS, 2);	/* it has asked before anything has come */
	deliver(w, MUSTER_PACKET_GRANT, 1);
	deliver(w, MUSTER_PACKET_GRANT, 0);
	which = find(w, MUSTER_PACKET_DATA, 1) + 3;	/* and none needs to be the first */
	offset = w->flight[which]->packet.offset;
	assert_int_equal(find(w, MUSTER_PACKET_DATA, 2), w->nr_flight);
	world_deliver_one(w, which);
	step_all(w);
	which = find(w, MUSTER_PACKET_DATA, 2);
	assert_int_equal(w->flight[which]->packet.offset, offset);
	assert_int_equal(w->flight[which]->packet.total, PULSE);
	world_run(w);
	assert_came(w, 2, PULSE);
	assert_came(w, 3, PULSE);
	assert_int_equal(w->nr_sent[MUSTER_PACKET_DATA], 3 * PULSE / MUSTER_MTU);
	world_destroy(w);
}

/* Two children are added up, in slot order, and the sum goes on with the second one's fragments. */
static void a_sum_goes_on_as_it_is_made(void **state)
{
	const uint32_t reduce = MUSTER_DESC_CH | MUSTER_DESC_REDUCE;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);
		struct muster_desc inner[2] = {
			step(reduce | MUSTER_DESC_FORWARD, 2, BYTES),
			/* What was sent is overwritten only when it has gone. */
			step(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, BYTES),
		};

		world_start(w);
		post_root(w, 0, 1, 0, BYTES);
		post_root(w, 2, 1, 1, BYTES);
		desc_load(&inner[0], IN);
		desc_to(&inner[0], 3, 0);
		desc_load(&inner[1], OTHER);
		desc_store(&inner[1], OUT);
		for (uint32_t i = 0; i < BYTES / 8; i++) {
			world_double(w, 1, IN)[i] = 0.5;
			world_double(w, 1, OTHER)[i] = -1;
		}
		world_post(w, 1, inner, 2);
		if (seed & 4)
			world_run(w);
		post_leaf(w, 3, BYTES);
		world_run(w);
		for (uint32_t i = 0; i < BYTES / 8; i++) {
			assert_true(world_double(w, 3, OUT)[i] == 2000.5 + 2 * i);
			assert_true(world_double(w, 1, OUT)[i] == -1);
		}
		world_destroy(w);
	}
}

/* IN and OTHER of the root, one behind the other; each waits for its own fragments. */
static void two_messages_of_a_sequence_go_on_each_by_itself(void **state)
{
	const uint32_t end = MUSTER_DESC_CT | MUSTER_DESC_COLL_END;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(3, seed);
		struct muster_desc root[2] = {
			send_to(MUSTER_DESC_CH, IN, 1, 0, BYTES), send_to(end, OTHER, 1, 1, BYTES),
		};
		struct muster_desc inner[2] = {
			step(MUSTER_DESC_CH | MUSTER_DESC_FORWARD, 1, BYTES),
			step(end | MUSTER_DESC_FORWARD, 1, BYTES),
		};
		struct muster_desc leaf[2] = { step(MUSTER_DESC_CH, 1, BYTES), step(end, 1, BYTES) };

		world_start(w);
		for (uint32_t i = 0; i < BYTES / 8; i++) {
			world_double(w, 0, IN)[i] = i;
			world_double(w, 0, OTHER)[i] = -1.0 * i;
		}
		for (uint32_t i = 0; i < 2; i++)
			desc_to(&inner[i], 2, i);
		desc_store(&inner[1], OTHER);
		desc_store(&leaf[1], OTHER);
		world_post(w, 0, root, 2);
		world_post(w, 1, inner, 2);
		world_post(w, 2, leaf, 2);
		world_run(w);
		assert_came(w, 2, BYTES);
		for (uint32_t i = 0; i < BYTES / 8; i++)
			assert_true(world_double(w, 2, OTHER)[i] == -1.0 * i);
		world_destroy(w);
	}
}

static void assert_refused(struct world *w, const struct muster_desc *descs, uint32_t nr, uint32_t wrong)
{
	uint32_t bad = 99;

	assert_int_equal(muster_engine_post(w->nodes[1].engine, WORLD_VP, descs, nr, &bad), -EINVAL);
	assert_int_equal(bad, wrong);
}

static void what_cannot_be_forwarded_is_refused(void **state)
{
	const uint32_t whole = MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_FORWARD;
	struct world *w = world_create(3, 1);
	struct muster_desc descs[2] = { step(whole, 1, BYTES) };
	double value = 1;

	(void)state;
	world_start(w);
	assert_refused(w, descs, 1, 0);			/* it sends nothing */
	descs[0] = desc_mp(whole, 1, &value);
	desc_to(&descs[0], 2, 0);
	assert_refused(w, descs, 1, 0);			/* inline */
	descs[0] = step(whole | MUSTER_DESC_CP | MUSTER_DESC_SWAP_LOCAL_VP, 1, BYTES);
	assert_refused(w, descs, 1, 0);			/* back to where it comes from */
	descs[0] = send_to(whole, IN, 2, 0, BYTES);
	assert_refused(w, descs, 1, 0);			/* nothing comes */
	descs[0] = step(MUSTER_DESC_CH | MUSTER_DESC_FORWARD, 1, BYTES);
	desc_to(&descs[0], 2, 0);
	descs[1] = send_to(MUSTER_DESC_CT | MUSTER_DESC_FORWARD, OTHER, 0, 0, BYTES);
	assert_refused(w, descs, 2, 1);			/* not what the one before it has received */
	descs[1] = send_to(MUSTER_DESC_CT | MUSTER_DESC_FORWARD, OUT, 0, 0, BYTES - 8);
	assert_refused(w, descs, 2, 1);
	descs[1] = send_to(MUSTER_DESC_CT | MUSTER_DESC_FORWARD, OUT, 0, 0, BYTES);
	world_post(w, 1, descs, 2);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broadcast_down_a_tree_is_the_same),
		cmocka_unit_test(a_long_pulse_goes_on_whole),
		cmocka_unit_test(a_fragment_leaves_before_the_next_one_has_come),
		cmocka_unit_test(a_sum_goes_on_as_it_is_made),
		cmocka_unit_test(two_messages_of_a_sequence_go_on_each_by_itself),
		cmocka_unit_test(what_cannot_be_forwarded_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
