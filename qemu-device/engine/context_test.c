// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts by the thousand: what an idle one costs in memory and steps, all of them
 * busy at once, and many senders to one receiver.
 */
#include "test_world.h"

#include "internal.h"

enum { NR = 4000, MEMBERS = 64, RESULT = 4096 };

static uint32_t open_many(struct world *w, uint32_t node, uint32_t first, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		assert_int_equal(world_context_open(w, node, first + i), 0);
	return nr;
}

enum { MET = 6 };	/* by an allreduce of so many members, by doubling */

/* What each of many costs that is open and has run one; its members are all the same, or its own. */
static size_t idle_bytes(bool own)
{
	static struct muster_member members[MEMBERS];
	struct muster_context_config config = {
		.job = WORLD_JOB, .life = WORLD_LIFE, .vp = WORLD_VP, .job_key = WORLD_JOB_KEY,
		.nr_members = MEMBERS, .members = members,
	};
	struct world *w = world_create(1, 1);
	size_t before, bytes;
	uint32_t i, k;

	for (i = 0; i < MEMBERS; i++)
		members[i] = (struct muster_member){
			.node = i, .vp = WORLD_VP, .incarnation = 100 + i,
		};
	world_start(w);
	before = w->allocated;
	for (i = 0; i < NR; i++) {
		struct context *ctx;

		config.context = 1000 + i;
		if (own)
			members[MEMBERS - 1].incarnation++;
		assert_int_equal(muster_engine_context_open(w->nodes[0].engine, &config), 0);
		ctx = muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB, config.context);
		for (k = 0; k < MET; k++)
			assert_non_null(muster_member_meet(ctx, 1u << k));
	}
	bytes = (w->allocated - before - w->nodes[0].engine->pool.kept) / NR;
	world_destroy(w);
	return bytes;
}

static void an_idle_context_costs_a_kibibyte_and_its_members(void **state)
{
	(void)state;
	assert_in_range(idle_bytes(true), MEMBERS * 12, 1024 + 16 * MEMBERS);
}

/* With what it knows of those that it has met. */
static void an_idle_context_among_the_same_members_costs_little_more_than_itself(void **state)
{
	(void)state;
	assert_in_range(idle_bytes(false), 1, 304 + 2 * MEMBERS + MET * sizeof(struct peer));
}

static void post_exchange(struct world *w, uint32_t node, uint32_t context)
{
	double value = 1 + node + context;
	struct muster_desc descs[2] = {
		desc_mp(MUSTER_DESC_CH, 0, &value),
		desc_mp(MUSTER_DESC_CT | MUSTER_DESC_REDUCE | MUSTER_DESC_SWAP_LOCAL_DATA |
			MUSTER_DESC_COLL_END, 1, NULL),
	};

	descs[0].context = context;
	descs[1].context = context;
	desc_to(&descs[0], !node, 0);
	desc_store(&descs[1], RESULT + context % 1024 * 8);
	world_post(w, node, descs, 2);
}

/* But for what is kept for the next. */
static size_t in_use(const struct world *w)
{
	size_t bytes = w->allocated;
	uint32_t i;

	for (i = 0; i < w->nr; i++)
		bytes -= w->nodes[i].engine->pool.kept;
	return bytes;
}

/* Each has one operation outstanding, started in another order on each rank. */
static void all_of_them_can_be_busy_at_once_and_rest_again(void **state)
{
	struct world *w = world_create(2, 5);
	size_t rested = 0;
	uint32_t round, node, i;

	(void)state;
	world_start(w);
	for (node = 0; node < 2; node++)
		open_many(w, node, 1000, 500);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 500; i++) {
			post_exchange(w, 0, 1000 + i);
			post_exchange(w, 1, 1000 + (i * 7 + 3) % 500);
		}
		world_run(w);
		for (node = 0; node < 2; node++) {
			assert_int_equal(w->nodes[node].nr_cqes, 500);
			for (i = 0; i < 500; i++)
				assert_int_equal(w->nodes[node].cqes[i].status, MUSTER_STATUS_OK);
			w->nodes[node].nr_cqes = 0;
		}
		if (round)
			assert_int_equal(in_use(w), rested);
		rested = in_use(w);
	}
	world_destroy(w);
}

static void a_step_costs_nothing_for_those_that_are_idle(void **state)
{
	struct world *w = world_create(2, 5);
	uint32_t node, bucket = 0, others = 0;
	struct context *ctx = NULL;

	(void)state;
	world_start(w);
	for (node = 0; node < 2; node++)
		open_many(w, node, 1000, NR);
	post_exchange(w, 0, WORLD_CONTEXT);
	/* Only what is on the ready list is looked at by a step. */
	while ((ctx = muster_context_next(w->nodes[0].engine, &bucket, ctx)))
		others += ctx->listed && ctx->id != WORLD_CONTEXT;
	assert_int_equal(others, 0);
	assert_ptr_equal(w->nodes[0].engine->ready_first, w->nodes[0].engine->ready_last);
	post_exchange(w, 1, WORLD_CONTEXT);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	assert_int_equal(w->nodes[1].nr_cqes, 1);
	assert_false(muster_engine_step(w->nodes[0].engine, 1000));
	world_destroy(w);
}

static void there_is_a_limit_to_open_ones(void **state)
{
	struct world *w = world_create(1, 1);

	(void)state;
	world_start(w);
	assert_int_equal(world_context_open(w, 0, WORLD_CONTEXT), -EEXIST);
	open_many(w, 0, 1000, MUSTER_CONTEXTS_MAX - 1);
	assert_int_equal(world_context_open(w, 0, 1), -ENOSPC);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, 1003);
	assert_int_equal(world_context_open(w, 0, 1), 0);
	muster_engine_vp_close(w->nodes[0].engine, WORLD_VP);
	assert_int_equal(w->nodes[0].engine->nr_contexts, 0);
	assert_int_equal(w->nodes[0].engine->nr_members, 0);
	world_destroy(w);
}

/* All send as far ahead as they may to one that has posted nothing yet. */
static void an_incast_loses_nothing(void **state)
{
	enum { CONTEXTS = 64, SENDERS = 7 };
	struct world *w = world_create(1 + SENDERS, 9);
	struct muster_desc desc;
	uint32_t node, c, n;
	double value = 1, zero = 0;

	(void)state;
	world_start(w);
	for (node = 0; node <= SENDERS; node++)
		open_many(w, node, 1000, CONTEXTS);
	for (n = 0; n < MUSTER_WINDOW; n++)
		for (c = 0; c < CONTEXTS; c++)
			for (node = 1; node <= SENDERS; node++) {
				desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, &value);
				desc.context = 1000 + c;
				desc_to(&desc, 0, node - 1);
				world_post(w, node, &desc, 1);
			}
	world_run(w);
	assert_int_equal(world_counters(w, 0).buffer_entries_used,
			 MUSTER_WINDOW * CONTEXTS * SENDERS);
	for (n = 0; n < MUSTER_WINDOW; n++)
		for (c = 0; c < CONTEXTS; c++) {
			desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
				       MUSTER_DESC_COLL_END, SENDERS, &zero);
			desc.context = 1000 + c;
			desc_store(&desc, RESULT + (n * CONTEXTS + c) * 8);
			world_post(w, 0, &desc, 1);
		}
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, MUSTER_WINDOW * CONTEXTS);
	for (c = 0; c < MUSTER_WINDOW * CONTEXTS; c++)
		assert_true(*world_double(w, 0, RESULT + c * 8) == SENDERS);
	assert_int_equal(world_counters(w, 0).drop_window, 0);
	assert_int_equal(world_counters(w, 0).buffer_entries_used, 0);
	world_destroy(w);
}

/* Three ranks, many contexts in a ring, each begun elsewhere first: no block, or one for all. */
static void rings_over_many_contexts_need_no_room(void **state)
{
	enum { CONTEXTS = 48, BYTES = 8000, AT = 65536 };
	static const uint32_t buffers[] = { MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, 2 * MUSTER_MTU };
	uint32_t seed, r, i, c;

	(void)state;
	for (seed = 0; seed < 12; seed++) {
		struct world *w = world_create(3, seed);

		w->share = seed / 3 % 2;
		w->map = seed / 6;
		w->model.buffer = buffers[seed % 3];
		world_start(w);
		for (r = 0; r < 3; r++) {
			open_many(w, r, 1000, CONTEXTS);
			for (i = 0; i < BYTES / 8; i++)
				world_double(w, r, 0)[i] = r + i;
		}
		for (i = 0; i < CONTEXTS; i++)
			for (r = 0; r < 3; r++) {
				struct muster_desc descs[2] = {
					desc_rdma(MUSTER_DESC_CH, 0, BYTES, BYTES),
					desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
						  MUSTER_DESC_COLL_END, 1, BYTES, BYTES),
				};

				c = (i * (6 * r + 1) + r) % CONTEXTS;
				desc_load(&descs[0], 0);
				desc_to(&descs[0], (r + 1) % 3, 0);
				desc_load(&descs[1], 0);
				desc_store(&descs[1], AT + c * 8192);
				descs[0].context = descs[1].context = 1000 + c;
				world_post(w, r, descs, 2);
			}
		world_run(w);
		for (r = 0; r < 3; r++) {
			assert_int_equal(w->nodes[r].nr_cqes, CONTEXTS);
			for (c = 0; c < CONTEXTS; c++)
				for (i = 0; i < BYTES / 8; i++)
					assert_true(world_double(w, r, AT + c * 8192)[i] ==
						    r + (r + 2) % 3 + 2 * i);
		}
		world_destroy(w);
	}
}

/* Whatever allocation fails, the context ends or goes on, and nothing is left behind. */
static void without_memory_a_context_ends_or_goes_on(void **state)
{
	uint32_t allowed, node, ended = 0;

	(void)state;
	for (allowed = 0; allowed < 24; allowed++) {
		struct world *w = world_create(2, allowed);
		struct muster_desc desc;
		int ret = 0;

		world_start(w);
		w->allocs_left = allowed;
		w->allocs_limited = true;
		for (node = 0; node < 2 && !ret; node++) {
			desc = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, node,
					 20000, 8192);
			if (node) {
				desc_store(&desc, 65536);
			} else {
				desc_load(&desc, 0);
				desc_to(&desc, 1, 0);
			}
			ret = muster_engine_post(w->nodes[node].engine, WORLD_VP, &desc, 1, NULL);
			assert_true(!ret || ret == -ENOMEM);
		}
		for (node = 0; node < 100 && !ret; node++) {
			muster_engine_step(w->nodes[node % 2].engine, 100);
			while (w->nr_flight)
				world_deliver_one(w, 0);
		}
		w->allocs_limited = false;
		if (!ret) {
			world_run(w);
			assert_int_equal(w->nodes[0].nr_cqes, w->nodes[1].nr_cqes);
			ended += w->nodes[1].cqes[0].status == MUSTER_STATUS_OK;
		}
		world_destroy(w);
	}
	assert_true(ended);
}

/* They wait for a receiver that takes nothing: a step does not try all of them again. */
static void a_step_tries_some_of_those_that_wait(void **state)
{
	struct world *w = world_create(3, 3);
	uint64_t before;
	uint32_t i, most = 0;

	(void)state;
	world_start(w);
	for (i = 0; i < 2; i++)
		open_many(w, i, 1000, 1000);
	w->nodes[1].full = true;
	for (i = 0; i < 1000; i++)
		post_exchange(w, 0, 1000 + i);
	for (i = 0; i < 100; i++) {
		before = w->nr_tried;
		assert_true(muster_engine_step(w->nodes[0].engine, 100000));
		if (i >= 50 && w->nr_tried - before > most)
			most = w->nr_tried - before;
	}
	assert_in_range(most, 1, REFUSED_MAX);
	w->nodes[1].full = false;
	for (i = 0; i < 1000; i++)
		post_exchange(w, 1, 1000 + i);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1000);
	assert_int_equal(w->nodes[1].nr_cqes, 1000);
	world_destroy(w);
}

/* From node 0 to node 1: whom the wire has refused hears nothing that would wake it. */
static void post_one_way(struct world *w, uint32_t node, uint32_t context)
{
	double value = context;
	struct muster_desc desc = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					  node, node ? NULL : &value);

	desc.context = context;
	if (node)
		desc_store(&desc, RESULT + context % 1024 * 8);
	else
		desc_to(&desc, 1, 0);
	world_post(w, node, &desc, 1);
}

/* The second of three, while the third is refused: as when blocks that it wants come back. */
static void wake_second(struct world *w)
{
	if (w->nr_tried == 3)
		muster_context_ready(muster_context_find(w->nodes[0].engine, WORLD_VP, WORLD_JOB,
							 1001));
}

static void who_was_refused_and_is_woken_in_the_same_step_takes_no_others_place(void **state)
{
	struct world *w = world_create(2, 3);
	uint32_t i;

	(void)state;
	world_start(w);
	for (i = 0; i < 2; i++)
		open_many(w, i, 1000, 3);
	w->nodes[1].full = true;
	w->on_refusal = wake_second;
	for (i = 0; i < 3; i++)
		post_one_way(w, 0, 1000 + i);
	assert_true(muster_engine_step(w->nodes[0].engine, 100));
	w->nodes[1].full = false;
	for (i = 0; i < 3; i++)
		post_one_way(w, 1, 1000 + i);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 3);
	assert_int_equal(w->nodes[1].nr_cqes, 3);
	world_destroy(w);
}

/* Of a node whose number collides in the small table of nodes it may be said, too. */
static void a_node_is_needed_while_a_context_has_a_member_there(void **state)
{
	struct world *w = world_create(2, 1);

	(void)state;
	world_start(w);
	assert_true(muster_engine_needs(w->nodes[0].engine, 1));
	assert_false(muster_engine_needs(w->nodes[0].engine, 2));
	assert_int_equal(world_context_open(w, 0, 1000), 0);
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT);
	world_run(w);
	assert_true(muster_engine_needs(w->nodes[0].engine, 1));
	muster_engine_context_close(w->nodes[0].engine, WORLD_VP, WORLD_JOB, 1000);
	world_run(w);
	assert_false(muster_engine_needs(w->nodes[0].engine, 1));
	world_destroy(w);
}

/* All jobs begin with the same ids, each at a VP of its own. */
static void contexts_of_many_vps_with_one_id_are_found_at_once(void **state)
{
	struct muster_member self = { .incarnation = 100 };
	struct muster_context_config config = {
		.job = WORLD_JOB, .context = 1000, .life = WORLD_LIFE, .job_key = WORLD_JOB_KEY,
		.nr_members = 1, .members = &self,
	};
	struct world *w = world_create(1, 1);
	struct muster_engine *engine;
	uint32_t longest = 0, i, nr;

	(void)state;
	world_start(w);
	engine = w->nodes[0].engine;
	for (i = WORLD_VP + 1; i < MUSTER_VPS_MAX; i++) {
		self.vp = config.vp = i;
		assert_int_equal(muster_engine_vp_open(engine, i), 0);
		assert_int_equal(muster_engine_context_open(engine, &config), 0);
	}
	for (i = 0; i < CONTEXT_BUCKETS; i++) {
		const struct context *ctx = engine->contexts[i];

		for (nr = 0; ctx; ctx = ctx->next_hashed)
			nr++;
		longest = nr > longest ? nr : longest;
	}
	assert_in_range(longest, 1, 16);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_context_costs_a_kibibyte_and_its_members),
		cmocka_unit_test(an_idle_context_among_the_same_members_costs_little_more_than_itself),
		cmocka_unit_test(all_of_them_can_be_busy_at_once_and_rest_again),
		cmocka_unit_test(a_step_costs_nothing_for_those_that_are_idle),
		cmocka_unit_test(a_step_tries_some_of_those_that_wait),
		cmocka_unit_test(who_was_refused_and_is_woken_in_the_same_step_takes_no_others_place),
		cmocka_unit_test(there_is_a_limit_to_open_ones),
		cmocka_unit_test(an_incast_loses_nothing),
		cmocka_unit_test(rings_over_many_contexts_need_no_room),
		cmocka_unit_test(without_memory_a_context_ends_or_goes_on),
		cmocka_unit_test(a_node_is_needed_while_a_context_has_a_member_there),
		cmocka_unit_test(contexts_of_many_vps_with_one_id_are_found_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
