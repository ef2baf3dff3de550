// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables of members: addresses that were chosen to collide, tables that are shared, a context
 * that is opened in pieces, and one that closes with thousands to tell.
 */
#include "test_world.h"

#include "internal.h"

enum { CHOSEN = MUSTER_MEMBERS_MAX, CLUSTER_MAX = 600, ID = 5 };

/*
 * Addresses that a plain multiplicative hash of 32 bits puts into one place of 2^17:
 * node * A + vp * B, of which A can be undone.
 */
static uint32_t choose_colliding(struct muster_member *members)
{
	const uint32_t a = 0x9e3779b1u, b = 0x85ebca77u;
	uint32_t inverse = a, nr = 0, vp, hash, node;

	while (inverse * a != 1)
		inverse *= 2 - a * inverse;
	for (vp = 0; vp < MUSTER_VPS_MAX; vp++)
		for (hash = 0; hash < 1 << 15; hash++) {
			node = (hash - vp * b) * inverse;
			if (node >= MUSTER_NODE_AGGREGATION || (!node && vp == WORLD_VP))
				continue;
			members[nr++] = (struct muster_member){ .node = node, .vp = vp };
			if (nr == CHOSEN - 1)
				return nr;
		}
	return nr;
}

static struct muster_context_config config_of(uint32_t nr, struct muster_member *members)
{
	members[nr - 1] = (struct muster_member){ .node = 0, .vp = WORLD_VP, .incarnation = 100 };
	return (struct muster_context_config){
		.job = WORLD_JOB, .context = ID, .vp = WORLD_VP, .job_key = WORLD_JOB_KEY,
		.self = nr - 1, .nr_members = nr, .members = members,
	};
}

/* The longest run of places that a search may have to walk. */
static uint32_t longest_cluster(const struct member_table *table)
{
	uint32_t at, run = 0, longest = 0;

	for (at = 0; at < table->nr_places; at++) {
		run = muster_member_places(table)[at] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void nobody_can_choose_members_that_collide(void **state)
{
	static struct muster_member members[CHOSEN];
	uint64_t seed;

	(void)state;
	assert_int_equal(choose_colliding(members), CHOSEN - 1);
	for (seed = 0; seed < 3; seed++) {
		struct muster_context_config config = config_of(CHOSEN, members);
		struct world *w = world_create(1, seed);
		const struct context *ctx;

		w->hash_key = seed * 0x123456789abcdefull;
		world_start(w);
		assert_int_equal(muster_engine_context_open(w->nodes[0].engine, &config), 0);
		ctx = muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID);
		assert_in_range(longest_cluster(ctx->table), 1, CLUSTER_MAX);
		assert_int_equal(muster_member_find(ctx, members[77].node, members[77].vp), 77);
		assert_int_equal(muster_member_find(ctx, 1, WORLD_VP + 1), CHOSEN);
		world_destroy(w);
	}
}

static struct context *opened(struct world *w, uint32_t id, uint32_t nr,
			      struct muster_member *members)
{
	struct muster_context_config config = config_of(nr, members);

	config.context = id;
	assert_int_equal(muster_engine_context_open(w->nodes[0].engine, &config), 0);
	return muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB, id);
}

/* The longest chain of who is known. */
static uint32_t longest_chain(const struct book *book)
{
	uint32_t i, number, len, longest = 0;

	for (i = 0; i < book->max; i++) {
		len = 0;
		for (number = book->buckets[i]; number; number = book->known[number - 1].next)
			len++;
		longest = len > longest ? len : longest;
	}
	return longest;
}

/* Of each address and incarnation what differs would be the same when both are one word. */
static void nobody_can_choose_lives_that_collide(void **state)
{
	enum { CLASSES = 16, EACH = 256, NR = CLASSES * EACH + 1, CHAIN_MAX = 12 };
	static struct muster_member members[NR];
	struct world *w = world_create(1, 1);
	uint32_t i;

	(void)state;
	for (i = 0; i < NR - 1; i++)
		members[i] = (struct muster_member){
			.node = (1 + i / EACH) | i % EACH << 8, .vp = WORLD_VP,
			.incarnation = 1 + (i % EACH << 24),
		};
	world_start(w);
	opened(w, ID, NR, members);
	assert_in_range(longest_chain(&w->nodes[0].engine->book), 1, CHAIN_MAX);
	world_destroy(w);
}

static void another_key_puts_members_elsewhere(void **state)
{
	struct muster_member members[8] = { { 0 } };
	const struct member_table *table[2];
	struct world *w[2];
	uint32_t i;

	(void)state;
	for (i = 1; i < 8; i++)
		members[i - 1] = (struct muster_member){ .node = i, .vp = WORLD_VP };
	for (i = 0; i < 2; i++) {
		w[i] = world_create(1, 1);
		w[i]->hash_key = i;
		world_start(w[i]);
		table[i] = opened(w[i], ID, 8, members)->table;
	}
	assert_memory_not_equal(muster_member_places(table[0]), muster_member_places(table[1]),
				table[0]->nr_places * sizeof(uint16_t));
	for (i = 0; i < 2; i++)
		world_destroy(w[i]);
}

/* ---- tables ---- */

static void members_in_any_order_are_found(void **state)
{
	enum { NR = 257 };
	static const uint32_t strides[] = { 1, NR - 1, 3, 100 };	/* up, down, and across */
	struct muster_member members[NR] = { { 0 } };
	uint32_t k, i;

	(void)state;
	for (k = 0; k < 4; k++) {
		struct world *w = world_create(1, k);
		const struct context *ctx;

		for (i = 0; i < NR - 1; i++)
			members[i] = (struct muster_member){
				.node = 1 + (uint64_t)i * strides[k] % NR / 2,
				.vp = (uint64_t)i * strides[k] % NR % 2,
			};
		world_start(w);
		ctx = opened(w, ID, NR, members);
		for (i = 0; i < NR; i++)
			assert_int_equal(muster_member_find(ctx, members[i].node, members[i].vp), i);
		assert_int_equal(muster_member_find(ctx, NR, 0), NR);
		assert_int_equal(muster_member_find(ctx, 0, WORLD_VP + 1), NR);
		world_destroy(w);
	}
}

/* Node 0 comes first: they are in order. */
static void members_in_order_need_no_places(void **state)
{
	struct world *w = world_create(4, 1);

	(void)state;
	world_start(w);
	assert_int_equal(w->nodes[0].engine->vps[WORLD_VP]->contexts->table->nr_places, 0);
	world_destroy(w);
}

static void contexts_with_the_same_members_share_their_table(void **state)
{
	struct muster_member members[5] = { { 0 } }, others[5];
	struct world *w = world_create(10, 1);
	const struct context *first, *second, *third;
	size_t before, one;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		members[i] = others[i] = (struct muster_member){
			.node = 9 - i, .vp = WORLD_VP, .incarnation = 109 - i,
		};
	others[2].vp++;
	world_start(w);
	before = w->allocated;
	first = opened(w, 1, 5, members);
	one = w->allocated - before;
	second = opened(w, 2, 5, members);
	third = opened(w, 3, 5, others);
	assert_ptr_equal(first->table, second->table);
	assert_ptr_not_equal(first->table, third->table);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, 1);
	world_run(w);
	assert_int_equal(muster_member_find(second, 7, WORLD_VP), 2);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, 2);
	world_run(w);
	assert_int_equal(w->allocated, before + one);	/* of the third */
	world_destroy(w);
}

/* ---- opened in pieces ---- */

static int add(struct world *w, const struct muster_member *members, uint32_t nr)
{
	return muster_engine_context_add(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID, members, nr);
}

/* Members 1 and 2 at nodes of the world, the last is node 0 itself. */
static struct world *half_open(struct muster_member *members)
{
	struct world *w = world_create(3, 1);
	struct muster_context_config config;
	uint32_t i;

	for (i = 0; i < 2; i++)
		members[i] = (struct muster_member){ .node = i + 1, .vp = WORLD_VP,
						     .incarnation = 101 + i };
	config = config_of(3, members);
	world_start(w);
	assert_int_equal(muster_engine_context_begin(w->nodes[0].engine, &config), 0);
	assert_int_equal(add(w, members, 1), 0);
	return w;
}

static void a_context_is_open_with_its_last_member(void **state)
{
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 1, NULL);
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_DATA, .job = WORLD_JOB,
		.src_node = 1, .src_vp = WORLD_VP, .dst_vp = WORLD_VP, .context = ID,
		.length = 8, .total = 8, .signature = SIGNATURE, .incarnation = 101,
		.job_key = WORLD_JOB_KEY,
	};
	struct muster_member members[3];
	struct world *w = half_open(members);
	struct muster_engine *engine = w->nodes[0].engine;
	struct muster_context_config config = config_of(3, members);
	uint64_t value = 1;

	(void)state;
	desc.context = ID;
	assert_int_equal(muster_engine_context_begin(engine, &config), -EEXIST);
	assert_int_equal(muster_engine_post(engine, WORLD_VP, &desc, 1, NULL), -ENOENT);
	muster_engine_receive(engine, &packet, &value, sizeof(value));
	assert_int_equal(world_counters(w, 0).drop_stranger, 1);
	assert_int_equal(add(w, &members[1], 3), -EINVAL);
	assert_int_equal(add(w, &members[1], 2), 0);
	assert_int_equal(muster_engine_post(engine, WORLD_VP, &desc, 1, NULL), 0);
	muster_engine_receive(engine, &packet, &value, sizeof(value));
	world_run(w);
	assert_int_equal(world_counters(w, 0).drop_stranger, 1);
	assert_int_equal(world_counters(w, 0).sequences_ended, 1);
	world_destroy(w);
}

static void without_memory_for_who_was_not_known_the_opening_ends(void **state)
{
	enum { NR = 64 };
	struct muster_member members[NR], known;
	struct muster_context_config config;
	struct world *w = world_create(1, 1);
	uint32_t nr = 0;

	(void)state;
	for (uint32_t i = 0; i < NR; i++)
		members[i] = (struct muster_member){ .node = NR - i, .vp = WORLD_VP };
	config = config_of(NR, members);
	known = members[NR - 1];
	config.members = NULL;
	world_start(w);
	assert_int_equal(muster_engine_context_begin(w->nodes[0].engine, &config), 0);
	w->allocs_limited = true;
	w->allocs_left = 0;
	while (!add(w, &members[nr], 1))
		nr++;
	assert_in_range(nr, 1, NR - 2);
	w->allocs_limited = false;
	assert_int_equal(add(w, &members[nr], 1), -ENOENT);
	config.members = members;
	members[NR - 1] = known;
	assert_int_equal(muster_engine_context_open(w->nodes[0].engine, &config), 0);
	world_destroy(w);
}

/* A number is free again with the last table that has it, and all that numbers need with the last of them. */
static void who_is_in_no_context_is_forgotten(void **state)
{
	struct muster_member members[3] = { { .node = 7, .incarnation = 107 },
					    { .node = 8, .incarnation = 108 } };
	struct world *w = world_create(1, 1);
	uint32_t i, nr = 0;

	(void)state;
	world_start(w);
	for (i = 0; i < 300; i++) {
		members[0].vp = i;
		assert_int_equal(muster_member(opened(w, ID, 3, members), 0)->vp, i);
		if (i == 0)
			opened(w, ID + 1, 2, &members[1]);
		if (i == 1)
			nr = w->nodes[0].engine->book.nr;
		muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID);
		world_run(w);
	}
	assert_int_equal(w->nodes[0].engine->book.nr, nr);
	assert_int_not_equal(w->nodes[0].engine->book.max, 0);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID + 1);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	assert_int_equal(w->nodes[0].engine->book.max, 0);
	assert_null(w->nodes[0].engine->book.known);
	world_destroy(w);
}

static void a_member_that_is_not_valid_ends_the_opening(void **state)
{
	struct muster_member members[3];
	struct world *w = half_open(members);

	(void)state;
	assert_int_equal(add(w, &members[0], 1), -EINVAL);
	assert_int_equal(add(w, &members[1], 1), -ENOENT);
	world_destroy(w);
	w = half_open(members);
	assert_int_equal(add(w, &(struct muster_member){ .node = 0, .vp = WORLD_VP }, 1), 0);
	assert_int_equal(add(w, &members[1], 1), -EINVAL);	/* where self must be */
	assert_int_equal(add(w, &members[1], 1), -ENOENT);
	world_destroy(w);
	w = half_open(members);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID);
	assert_int_equal(add(w, &members[1], 1), -ENOENT);
	world_run(w);
	assert_int_equal(world_counters(w, 0).packets_out, 0);
	world_destroy(w);
}

static void a_member_lost_meanwhile_fails_the_context_once_it_is_open(void **state)
{
	struct muster_member members[3];
	struct world *w = half_open(members);
	struct muster_context_state query;

	(void)state;
	muster_engine_peer_lost(w->nodes[0].engine, 2);		/* not a member yet */
	muster_engine_peer_lost(w->nodes[0].engine, 1);
	world_run(w);
	w->nodes[0].nr_cqes = 0;	/* of the other context */
	assert_int_equal(add(w, &members[1], 2), 0);
	world_run(w);
	assert_int_equal(muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB, ID,
						     &query), 0);
	assert_int_equal(query.failed, MUSTER_STATUS_PEER_LOST);
	assert_int_equal(query.culprit, 0);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[0].cqes[0].kind, MUSTER_CQE_CONTEXT);
	world_destroy(w);
}

/* ---- closed ---- */

static void a_close_tells_a_few_at_once_and_the_rest_by_and_by(void **state)
{
	enum { NR = 2000 };
	static struct muster_member members[NR];
	struct muster_context_config config;
	struct world *w = world_create(2, 1);
	struct muster_engine *engine;
	uint32_t i;

	(void)state;
	for (i = 0; i < NR - 1; i++)
		members[i] = (struct muster_member){ .node = 1, .vp = i, .incarnation = 101 };
	config = config_of(NR, members);
	world_start(w);
	engine = w->nodes[0].engine;
	assert_int_equal(muster_engine_context_open(engine, &config), 0);
	muster_engine_context_close(engine, WORLD_VP, WORLD_JOB, ID);
	assert_in_range(world_counters(w, 0).packets_out, 1, CLOSE_BUDGET);
	while (muster_engine_step(engine, 16))
		;
	assert_int_equal(world_counters(w, 0).packets_out, NR - 1);
	world_destroy(w);
}

/* Who opens and closes while the wire is full keeps nobody's farewell from being said. */
static void closed_contexts_wait_to_be_told_and_none_is_forgotten(void **state)
{
	struct world *w = world_create(2, 1);
	uint32_t opened;

	(void)state;
	world_start(w);
	w->refuse_percent = 100;
	for (opened = 0; opened < 2 * CLOSED_MAX; opened++) {
		if (world_context_open(w, 0, opened % 8))
			break;
		muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, opened % 8);
	}
	assert_int_equal(opened, CLOSED_MAX);
	assert_int_equal(world_context_open(w, 0, 0), -ENOSPC);
	w->refuse_percent = 0;
	world_run(w);
	assert_int_equal(world_counters(w, 0).packets_out, opened);
	assert_int_equal(world_context_open(w, 0, 0), 0);
	world_destroy(w);
}

/* ---- news of nodes ---- */

enum { CROWDS = 4, ABSENT_FIRST = 1000, ABSENT = 3000 };

/* As many members as there can be, at nodes that are not there. */
static void crowd_open(struct world *w, uint32_t id)
{
	static struct muster_member members[MUSTER_MEMBERS_MAX];
	struct muster_context_config config;
	uint32_t i;

	for (i = 0; i < MUSTER_MEMBERS_MAX - 1; i++) {
		uint32_t node = ABSENT_FIRST + i % ABSENT;

		members[i] = (struct muster_member){
			.node = node, .vp = i / ABSENT, .incarnation = 100 + node,
		};
	}
	config = config_of(MUSTER_MEMBERS_MAX, members);
	config.context = id;
	assert_int_equal(muster_engine_context_open(w->nodes[0].engine, &config), 0);
}

/* What it costs to hear that these nodes are gone, in contexts and members that are looked at. */
static uint64_t cost_of_news(struct world *w, uint32_t first, uint32_t nr)
{
	uint64_t before = world_counters(w, 0).looked_at;
	uint32_t node;

	for (node = first; node < first + nr; node++)
		muster_engine_peer_lost(w->nodes[0].engine, node);
	return world_counters(w, 0).looked_at - before;
}

/* Open they fail at the first news; closed they wait for a wire that takes nothing. */
static void news_of_nodes_is_cheap(bool closed)
{
	enum { CONTEXTS = CROWDS + 1 + 2 };	/* and both members of the small one */
	struct world *w = world_create(2, 1);
	uint32_t id;

	world_start(w);
	w->refuse_percent = 100;
	for (id = 0; id < CROWDS; id++) {
		crowd_open(w, id);
		if (closed)
			muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, id);
	}
	assert_int_equal(world_counters(w, 0).contexts_closing, closed ? CROWDS : 0);
	assert_in_range(cost_of_news(w, ABSENT_FIRST + ABSENT, ABSENT), 1, ABSENT * CONTEXTS);
	assert_in_range(cost_of_news(w, ABSENT_FIRST, ABSENT), 1,
			ABSENT * CONTEXTS + CROWDS * MUSTER_MEMBERS_MAX);
	assert_int_equal(world_counters(w, 0).contexts_failed, closed ? 0 : CROWDS);
	world_destroy(w);
}

static void news_of_nodes_looks_once_at_the_members_of_open_contexts(void **state)
{
	(void)state;
	news_of_nodes_is_cheap(false);
}

static void news_of_nodes_looks_at_no_member_of_closed_contexts(void **state)
{
	(void)state;
	news_of_nodes_is_cheap(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_can_choose_members_that_collide),
		cmocka_unit_test(nobody_can_choose_lives_that_collide),
		cmocka_unit_test(another_key_puts_members_elsewhere),
		cmocka_unit_test(members_in_any_order_are_found),
		cmocka_unit_test(members_in_order_need_no_places),
		cmocka_unit_test(contexts_with_the_same_members_share_their_table),
		cmocka_unit_test(a_context_is_open_with_its_last_member),
		cmocka_unit_test(without_memory_for_who_was_not_known_the_opening_ends),
		cmocka_unit_test(who_is_in_no_context_is_forgotten),
		cmocka_unit_test(a_member_that_is_not_valid_ends_the_opening),
		cmocka_unit_test(a_member_lost_meanwhile_fails_the_context_once_it_is_open),
		cmocka_unit_test(a_close_tells_a_few_at_once_and_the_rest_by_and_by),
		cmocka_unit_test(closed_contexts_wait_to_be_told_and_none_is_forgotten),
		cmocka_unit_test(news_of_nodes_looks_once_at_the_members_of_open_contexts),
		cmocka_unit_test(news_of_nodes_looks_at_no_member_of_closed_contexts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
