// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Each thing that a sequence may not say is refused, with the index of the
 * descriptor that says it; and what is refused has changed nothing.
 */
#include "test_world.h"

static struct world *w;

static int open_world(void **state)
{
	(void)state;
	w = world_create(3, 1);
	world_start(w);
	return 0;
}

static int close_world(void **state)
{
	(void)state;
	world_destroy(w);
	return 0;
}

static void expect(int ret, const struct muster_desc *descs, uint32_t nr, uint32_t bad)
{
	struct muster_context_state before, after;
	uint32_t index = 99;

	muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT,
				    &before);
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP, descs, nr, &index), ret);
	muster_engine_context_query(w->nodes[0].engine, WORLD_VP, WORLD_JOB, WORLD_CONTEXT, &after);
	if (ret) {
		assert_int_equal(index, bad);
		assert_int_equal(after.queued, before.queued);
	}
}

/* A valid program of three inline descriptors, with one thing changed. */
#define REFUSE_MP(i, ...)                                                                        \
	do {                                                                                     \
		double one = 1;                                                                  \
		struct muster_desc d[3] = {                                                      \
			desc_mp(MUSTER_DESC_CH, 0, &one),                                        \
			desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE, 1, NULL),      \
			desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE |               \
				MUSTER_DESC_CT, 1, NULL),                                        \
		};                                                                               \
		desc_to(&d[0], 1, 0);                                                            \
		desc_to(&d[1], 2, 1);                                                            \
		desc_store(&d[2], 0);                                                            \
		__VA_ARGS__;                                                                     \
		expect(-EINVAL, d, 3, i);                                                        \
	} while (0)

static void inline_programs_are_checked(void **state)
{
	(void)state;
	REFUSE_MP(0, d[0].kind = 0);
	REFUSE_MP(1, d[1].kind = 4);
	REFUSE_MP(0, d[0].kind = MUSTER_DESC_START);
	REFUSE_MP(0, d[0].flags |= MUSTER_DESC_KEEP);	/* with data[] */
	REFUSE_MP(1, d[1].flags |= MUSTER_DESC_FORWARD);	/* for later */
	REFUSE_MP(1, d[1].flags |= 0x8000);
	REFUSE_MP(1, d[1].flags |= MUSTER_DESC_SWAP_REMOTE_ADDR);
	REFUSE_MP(0, d[0].dest |= 0x20000000);
	REFUSE_MP(2, d[2].signature.reserved = 1);
	REFUSE_MP(1, d[1].src_vp++);
	REFUSE_MP(1, d[1].job++);
	REFUSE_MP(1, d[1].context++);
	REFUSE_MP(1, d[1].stage++);
	REFUSE_MP(2, d[2].signature.digest++);
	REFUSE_MP(2, d[2].signature.coll++);
	REFUSE_MP(2, d[2].signature.root++);
	REFUSE_MP(0, d[0].signature.type = MUSTER_DTYPE_LAST + 1);
	REFUSE_MP(0, d[0].signature.op = MUSTER_REDOP_LAST + 1);
	REFUSE_MP(1, d[0].signature.op = d[1].signature.op = 0);
	REFUSE_MP(1, d[0].signature.op = d[1].signature.op = MUSTER_REDOP_BAND);	/* of doubles */
	REFUSE_MP(0, d[0].flags &= ~MUSTER_DESC_CH);
	REFUSE_MP(1, d[1].flags |= MUSTER_DESC_CH);
	REFUSE_MP(1, d[1].flags |= MUSTER_DESC_CT);
	REFUSE_MP(2, d[2].flags &= ~MUSTER_DESC_CT);
	REFUSE_MP(1, d[1].flags &= ~MUSTER_DESC_C);
	REFUSE_MP(1, d[1].cp_count = MUSTER_SOURCES_MAX + 1);
	REFUSE_MP(0, d[0].inline_len = 7);
	REFUSE_MP(0, d[0].inline_len = 0; memset(d[0].data, 0, sizeof(d[0].data)));
	REFUSE_MP(0, d[0].inline_len = d[0].length = MUSTER_INLINE_MAX + 1);
	REFUSE_MP(0, d[0].length = 1ull << 32 | 8);
	REFUSE_MP(0, memset(d[0].data, 0, sizeof(d[0].data)); desc_load(&d[0], 0);
		  d[0].inline_len = 0; d[0].length = MUSTER_MP_MAX + 8);
	REFUSE_MP(1, d[1].length = 16);
	REFUSE_MP(1, d[1].inline_len = 8);
	REFUSE_MP(0, d[0].flags |= MUSTER_DESC_SWAP_LOCAL_DATA; d[0].inline_len = 0);
	REFUSE_MP(1, desc_load(&d[1], 0));
	REFUSE_MP(1, d[1].cp_count = 0; d[1].inline_len = 7);	/* its own operand, but not all of it */
	REFUSE_MP(1, d[1].cp_count = 0; d[1].inline_len = 8; d[1].flags &= ~MUSTER_DESC_REDUCE);
	REFUSE_MP(1, d[1].range.numbers = 1);
	REFUSE_MP(2, d[2].store_addr = UINT64_MAX - 3);
	REFUSE_MP(0, desc_to(&d[0], 0, 0));		/* itself */
	REFUSE_MP(0, desc_to(&d[0], 3, 0));		/* no member */
	REFUSE_MP(0, d[0].dst_vp++);
	REFUSE_MP(0, d[0].flags |= MUSTER_DESC_SWAP_LOCAL_VP);	/* no packet yet */
}

#define REFUSE_RDMA(i, ...)                                                                      \
	do {                                                                                     \
		struct muster_desc d[2] = {                                                      \
			desc_rdma(MUSTER_DESC_CH, 0, 40000, 16384),                              \
			desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_REDUCE, 1, 40000, 16384),         \
		};                                                                               \
		desc_load(&d[0], 0);                                                             \
		desc_to(&d[0], 1, 0);                                                            \
		desc_load(&d[1], 0);                                                             \
		desc_store(&d[1], 40000);                                                        \
		__VA_ARGS__;                                                                     \
		expect(-EINVAL, d, 2, i);                                                        \
	} while (0)

static void programs_on_memory_are_checked(void **state)
{
	(void)state;
	REFUSE_RDMA(0, d[0].range.pulse_len = MUSTER_PULSE_MAX + 8);
	REFUSE_RDMA(0, d[0].range.pulse_count = 0);
	REFUSE_RDMA(0, d[0].range.pulse_count = 2);		/* too few for the length */
	REFUSE_RDMA(0, d[0].range.pulse_count = 0xffffffff);
	REFUSE_RDMA(1, d[1].range.pulse_count = 4);
	REFUSE_RDMA(1, d[1].range.pulse_len = 16384 - 8);
	REFUSE_RDMA(0, d[0].range.reserved[23] = 1);
	REFUSE_RDMA(0, d[0].range.remote_addr = 1);
	REFUSE_RDMA(0, d[0].range.remote_key = 1);
	REFUSE_RDMA(0, d[0].range.pulses_live = MUSTER_PULSES_LIVE + 1);
	REFUSE_RDMA(1, d[1].range.pulses_live = 2);		/* the first says it for all */
	REFUSE_RDMA(0, d[0].range.numbers = 2);
	REFUSE_RDMA(0, d[0].inline_len = 1);
	REFUSE_RDMA(1, d[1].flags |= MUSTER_DESC_SWAP_LOCAL_DATA);
	REFUSE_RDMA(1, d[1].length = 39999);			/* not whole elements */
	REFUSE_RDMA(1, d[0].range.pulse_len = d[1].range.pulse_len = 16388);
	REFUSE_RDMA(0, d[0].range.load_key = 0);			/* nothing to send */
	REFUSE_RDMA(1, d[1].store_key = 0);			/* nowhere to combine */
	REFUSE_RDMA(0, d[0].range.load_addr = UINT64_MAX - 100);
	REFUSE_RDMA(1, d[1].store_addr = 39999);		/* ranges that overlap in part */
	REFUSE_RDMA(1, d[1].length = UINT64_MAX - 7);
}

/* The operand of one that awaits nothing is combined into what is there. */
static void an_operand_may_have_its_own_place(void **state)
{
	double one = 1;
	struct muster_desc mp[2] = {
		desc_mp(MUSTER_DESC_CH, 0, &one),
		desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT, 0, &one),
	};
	struct muster_desc nothing[2] = {
		desc_mp(MUSTER_DESC_CH, 0, NULL),
		desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT, 0, NULL),
	};
	struct muster_desc rdma = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE, 0, 8, 8);

	(void)state;
	desc_load(&rdma, 0);
	desc_store(&rdma, 64);
	expect(0, mp, 2, 0);
	expect(0, &rdma, 1, 0);
	mp[1].inline_len = 0;
	memset(mp[1].data, 0, sizeof(mp[1].data));
	expect(-EINVAL, mp, 2, 1);		/* no operand */
	nothing[0].length = nothing[1].length = 0;
	expect(0, nothing, 2, 0);		/* nor anything to combine */
	desc_load(&mp[1], 0);
	expect(0, mp, 2, 0);
	mp[0] = mp[1];
	mp[0].flags = MUSTER_DESC_C | MUSTER_DESC_CH;
	mp[0].length = mp[1].length = MUSTER_MP_MAX;
	expect(0, mp, 2, 0);
	desc_store(&rdma, 0);
	expect(-EINVAL, &rdma, 1, 0);		/* what lies there is no operand of its own */
}

static void empty_long_and_unknown_posts_are_refused(void **state)
{
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX + 1];
	uint32_t i;

	(void)state;
	for (i = 0; i <= MUSTER_SEQ_DESCS_MAX; i++)
		descs[i] = desc_mp(0, 0, &(double){ 1 });
	descs[0].flags |= MUSTER_DESC_CH;
	descs[MUSTER_SEQ_DESCS_MAX].flags |= MUSTER_DESC_CT;
	expect(-EINVAL, descs, 0, 0);
	expect(-EINVAL, descs, MUSTER_SEQ_DESCS_MAX + 1, 0);
	descs[0].job++;
	expect(-ENOENT, descs, 2, 0);
	assert_int_equal(muster_engine_post(w->nodes[0].engine, WORLD_VP + 1, descs, 2, NULL),
			 -ENOENT);
	assert_int_equal(muster_engine_post(w->nodes[0].engine, 0xffff, descs, 2, NULL), -ENOENT);
}

/* 16 + 16 slots are all; one more is too many. */
static void a_sequence_has_at_most_so_many_slots(void **state)
{
	struct muster_desc descs[3] = {
		desc_mp(MUSTER_DESC_CH, MUSTER_SOURCES_MAX, NULL),
		desc_mp(0, MUSTER_SOURCES_MAX, NULL),
		desc_mp(MUSTER_DESC_CT, 1, NULL),
	};

	(void)state;
	expect(-EINVAL, descs, 3, 2);
	descs[1].flags |= MUSTER_DESC_CT;
	expect(0, descs, 2, 0);
}

static void a_rank_with_nothing_to_do_posts_one_descriptor(void **state)
{
	struct muster_desc rdma = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, 0, 0);
	struct muster_desc mp = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, NULL);

	(void)state;
	mp.length = 0;
	expect(0, &rdma, 1, 0);
	expect(0, &mp, 1, 0);
}

static void engines_and_contexts_outside_of_the_limits_are_refused(void **state)
{
	static const struct muster_engine_config bad[] = {
		{ .node = MUSTER_NODES_MAX },
		{ .node = MUSTER_NODE_AGGREGATION },
		{ .model.units = MUSTER_UNITS_MAX + 1 },
		{ .model.buffer = MUSTER_MTU - 1 },
		{ .model.buffer = MUSTER_ENGINE_BUFFER_MAX + MUSTER_MTU },
		{ .model.window = MUSTER_WINDOW + 1 },
		{ .model.pulses = MUSTER_PULSES_LIVE + 1 },
	};
	struct muster_member members[2] = { { .node = 0, .vp = WORLD_VP }, { .node = 1 } };
	struct muster_context_config config = {
		.job = WORLD_JOB, .context = 1, .vp = WORLD_VP, .nr_members = 2,
		.members = members,
	};
	struct muster_engine *engine;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(muster_engine_create(&bad[i], &world_table, &w->nodes[0],
						      &engine), -EINVAL);
	engine = w->nodes[0].engine;
	assert_int_equal(muster_engine_vp_open(engine, MUSTER_VPS_MAX), -EINVAL);
	assert_int_equal(muster_engine_vp_open(engine, WORLD_VP), -EBUSY);
	config.self = 1;	/* not where this engine is */
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	config.self = 2;
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	config.self = 0;
	config.vp++;		/* not open */
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	config.vp--;
	members[1] = members[0];
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	members[1].node = MUSTER_NODES_MAX;
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	members[1].node = MUSTER_NODE_AGGREGATION;
	assert_int_equal(muster_engine_context_open(engine, &config), -EINVAL);
	members[1].node = 5;
	assert_int_equal(muster_engine_context_open(engine, &config), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(inline_programs_are_checked),
		TEST(programs_on_memory_are_checked),
		TEST(an_operand_may_have_its_own_place),
		TEST(empty_long_and_unknown_posts_are_refused),
		TEST(a_sequence_has_at_most_so_many_slots),
		TEST(a_rank_with_nothing_to_do_posts_one_descriptor),
		TEST(engines_and_contexts_outside_of_the_limits_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
