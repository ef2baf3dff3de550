// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine runs the examples of Documentation/sequence.md: on several engines,
 * with packets in any order, a wire and a completion queue that refuse at random.
 */
#include "test_world.h"

#include "arith.h"

enum { SEEDS = 60, RESULT = 4096, IN = 0, OUT = WORLD_MEMORY / 2 };

/* Refusals, mapping and sharing vary with the seed. */
static struct world *vary(uint32_t nr, uint64_t seed)
{
	struct world *w = world_create(nr, seed);

	w->refuse_percent = seed % 3 * 20;
	w->map = seed & 1;
	w->share = seed & 2;
	w->copy = seed & 4;
	w->peers_hidden = seed % 8 == 7;
	return w;
}

static void post_doubling(struct world *w, uint32_t rank, double value, uint64_t cookie)
{
	struct muster_desc descs[3] = {
		desc_mp(MUSTER_DESC_CH, 0, &value),
		desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE, 1, NULL),
		desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT |
			MUSTER_DESC_COLL_END, 1, NULL),
	};

	desc_to(&descs[0], rank ^ 1, 0);
	desc_to(&descs[1], rank ^ 2, 1);
	desc_store(&descs[2], RESULT);
	descs[2].cookie = cookie;
	world_post(w, rank, descs, 3);
}

static void recursive_doubling_adds_up_on_four_ranks(void **state)
{
	uint64_t seed;
	uint32_t r;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		world_start(w);
		for (r = 0; r < 4; r++)
			post_doubling(w, r, 1 << r, 1000 + r);
		world_run(w);
		for (r = 0; r < 4; r++) {
			assert_true(*world_double(w, r, RESULT) == 15);
			assert_int_equal(w->nodes[r].nr_cqes, 1);
			assert_int_equal(w->nodes[r].cqes[0].cookie, 1000 + r);
			assert_int_equal(w->nodes[r].cqes[0].status, MUSTER_STATUS_OK);
			assert_int_equal(w->nodes[r].cqes[0].kind, MUSTER_CQE_SEQUENCE);
		}
		world_destroy(w);
	}
}

static void successive_allreduces_do_not_mix(void **state)
{
	enum { OPS = 40 };
	uint64_t seed;
	uint32_t r, i;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		world_start(w);
		for (i = 0; i < OPS; i++) {
			for (r = 0; r < 4; r++) {
				post_doubling(w, r, (1 << r) * (i + 1), i);
				/* A fast rank: it runs as far as it can. */
				muster_engine_step(w->nodes[0].engine, 100);
			}
			if (i % 8 == 7)
				world_run(w);
		}
		world_run(w);
		for (r = 0; r < 4; r++) {
			assert_true(*world_double(w, r, RESULT) == 15 * OPS);
			assert_int_equal(w->nodes[r].nr_cqes, OPS);
			for (i = 0; i < OPS; i++) {
				assert_int_equal(w->nodes[r].cqes[i].cookie, i);
				assert_int_equal(w->nodes[r].cqes[i].number, i);
			}
			assert_int_equal(world_counters(w, r).credits, 0);
		}
		world_destroy(w);
	}
}

static void a_tree_node_combines_its_children_in_slot_order(void **state)
{
	static const double values[4] = { 1, 0x1p53, 1, -0x1p53 };
	/* ((own + slot 0) + slot 1) + slot 2: any other order gives other bits. */
	double expected = ((values[0] + values[1]) + values[2]) + values[3];
	uint64_t seed;
	uint32_t r;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);
		struct muster_desc root = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT |
						  MUSTER_DESC_REDUCE | MUSTER_DESC_COLL_END, 3,
						  &values[0]);

		desc_store(&root, RESULT);
		world_start(w);
		world_post(w, 0, &root, 1);
		for (r = 1; r < 4; r++) {
			struct muster_desc leaf = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT, 0,
							  &values[r]);

			desc_to(&leaf, 0, r - 1);
			world_post(w, r, &leaf, 1);
		}
		world_run(w);
		assert_memory_equal(world_double(w, 0, RESULT), &expected, sizeof(expected));
		assert_int_equal(w->nodes[1].nr_cqes, 0);
		world_destroy(w);
	}
}

/*
 * Everybody tells rank 2, whose own number comes third: the others vanish beside the first,
 * unless it takes that away before. In any other order the sum is not 3.
 */
static void a_rank_combines_its_own_operand_in_its_place(void **state)
{
	static const double value[4] = { 1e300, -1e300, 2, 1 };
	enum { LENGTH = 5000, ACROSS = 2048 };	/* of doubles: several packets, and two pulses */

	(void)state;
	for (uint64_t seed = 0; seed < 2 * SEEDS; seed++) {
		bool large = seed & 1;
		uint32_t nr = large ? LENGTH : 1;
		struct world *w = vary(4, seed / 2);
		struct muster_desc own[3], other;

		world_start(w);
		for (uint32_t r = 0; r < 4; r++)
			for (uint32_t i = 0; i < nr; i++)
				world_double(w, r, IN)[i] = value[r];
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t flags = (i ? MUSTER_DESC_REDUCE : MUSTER_DESC_CH) |
					 (i == 2 ? MUSTER_DESC_CT | MUSTER_DESC_COLL_END : 0) |
					 (i && !large ? MUSTER_DESC_SWAP_LOCAL_DATA : 0);

			own[i] = large ? desc_rdma(flags, i ? 0 : 1, 8 * nr, 8 * ACROSS) : desc_mp(flags, 0, NULL);
			if (large || i == 2)
				desc_store(&own[i], OUT);
		}
		own[0].cp_count = 2;
		own[0].flags |= MUSTER_DESC_REDUCE;
		own[1].cp_count = 0;
		own[2].cp_count = 1;
		desc_load(&own[1], IN);
		if (large)
			desc_load(&own[2], OUT);
		world_post(w, 2, own, 3);
		for (uint32_t r = 0; r < 4; r++) {
			uint32_t flags = MUSTER_DESC_CH | MUSTER_DESC_CT | (r ? 0 : MUSTER_DESC_SWAP_REMOTE_DATA);

			if (r == 2)
				continue;
			other = large ? desc_rdma(flags, 0, 8 * nr, 8 * ACROSS) : desc_mp(flags, 0, NULL);
			desc_load(&other, IN);
			desc_to(&other, 2, r < 2 ? r : r - 1);
			world_post(w, r, &other, 1);
		}
		world_run(w);
		for (uint32_t i = 0; i < nr; i++)
			assert_true(world_double(w, 2, OUT)[i] == 3);
		assert_int_equal(w->nodes[2].nr_cqes, 1);
		world_destroy(w);
	}
}

/* Rank 0 answers whoever filled its last slot, with data that replaces. */
static void a_low_latency_tree_answers_where_the_packet_came_from(void **state)
{
	double own = 2, other = 5;
	struct world *w = world_create(2, 1);
	struct muster_desc up[2] = {
		desc_mp(MUSTER_DESC_CH, 0, &other),
		desc_mp(MUSTER_DESC_SWAP_LOCAL_DATA | MUSTER_DESC_REDUCE | MUSTER_DESC_CT, 1,
			NULL),
	};
	struct muster_desc root = desc_mp(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE |
					  MUSTER_DESC_COLL_END | MUSTER_DESC_SWAP_LOCAL_VP |
					  MUSTER_DESC_SWAP_REMOTE_DATA, 1, &own);

	(void)state;
	desc_to(&root, 99, 0);
	desc_to(&up[0], 0, 0);
	desc_store(&up[1], RESULT);
	world_start(w);
	world_post(w, 0, &root, 1);
	world_post(w, 1, up, 2);
	world_run(w);
	assert_true(*world_double(w, 1, RESULT) == 7);
	/* COLL_END came with the packet, so rank 1 completes as well. */
	assert_int_equal(w->nodes[1].nr_cqes, 1);
	world_destroy(w);
}

/* ---- large data ---- */

enum { CHUNKS = 4 };

struct rabenseifner {
	uint64_t chunk;			/* bytes */
	uint32_t pulse_len;
	uint32_t rank;
	uint32_t nr;
	struct muster_desc descs[MUSTER_SEQ_DESCS_MAX];
};

static void add_send(struct rabenseifner *p, uint64_t from, uint32_t chunk, uint32_t to,
		     uint32_t slot)
{
	struct muster_desc *desc = &p->descs[p->nr++];

	*desc = desc_rdma(0, 0, p->chunk, p->pulse_len);
	desc_load(desc, from + chunk * p->chunk);
	desc_to(desc, to, slot);
}

static void add_receive(struct rabenseifner *p, bool reduce, uint64_t operand, uint32_t chunk)
{
	struct muster_desc *desc = &p->descs[p->nr++];

	*desc = desc_rdma(reduce ? MUSTER_DESC_REDUCE : 0, 1, p->chunk, p->pulse_len);
	if (reduce)
		desc_load(desc, operand + chunk * p->chunk);
	desc_store(desc, OUT + chunk * p->chunk);
}

static void post_rabenseifner(struct world *w, uint32_t rank, uint64_t chunk, uint32_t pulse_len)
{
	static struct rabenseifner p;
	uint32_t mine = rank & 2, other = mine ^ 2, far = rank ^ 2, near = rank ^ 1;

	p = (struct rabenseifner){ .chunk = chunk, .pulse_len = pulse_len, .rank = rank };
	add_send(&p, IN, other, far, 0);
	add_send(&p, IN, other + 1, far, 1);
	add_receive(&p, true, IN, mine);
	add_receive(&p, true, IN, mine + 1);
	add_send(&p, OUT, near, near, 2);
	add_receive(&p, true, OUT, rank);
	add_send(&p, OUT, rank, near, 3);
	add_receive(&p, false, OUT, near);	/* over what the first send to near reads */
	add_send(&p, OUT, mine, far, 4);
	add_send(&p, OUT, mine + 1, far, 5);
	add_receive(&p, false, OUT, other);
	add_receive(&p, false, OUT, other + 1);
	p.descs[0].flags |= MUSTER_DESC_CH;
	p.descs[p.nr - 1].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	world_post(w, rank, p.descs, p.nr);
}

static void fill(struct world *w, uint32_t rank, uint64_t bytes, uint32_t op)
{
	double *in = world_double(w, rank, IN);
	uint64_t i;

	for (i = 0; i < bytes / sizeof(*in); i++)
		in[i] = (rank + 1) * 1.1 + i * 0.7 + op;
}

static void check_rabenseifner(struct world *w, uint64_t bytes, uint32_t op)
{
	uint64_t i;
	uint32_t r;

	for (i = 0; i < bytes / 8; i++) {
		double v[4], expected;

		for (r = 0; r < 4; r++)
			v[r] = (r + 1) * 1.1 + i * 0.7 + op;
		expected = (v[0] + v[2]) + (v[1] + v[3]);
		for (r = 0; r < 4; r++)
			assert_memory_equal(world_double(w, r, OUT) + i, &expected, 8);
	}
}

static void rabenseifner(struct world *w, uint64_t chunk, uint32_t pulse_len)
{
	uint32_t op, r;

	world_start(w);
	for (op = 0; op < 2; op++) {
		for (r = 0; r < 4; r++) {
			fill(w, r, CHUNKS * chunk, op);
			post_rabenseifner(w, r, chunk, pulse_len);
		}
		world_run(w);
		for (r = 0; r < 4; r++) {
			assert_int_equal(w->nodes[r].nr_cqes, op + 1);
			assert_int_equal(w->nodes[r].cqes[op].status, MUSTER_STATUS_OK);
		}
		check_rabenseifner(w, CHUNKS * chunk, op);
	}
}

/* From ample room down to none. */
static const uint32_t BUFFERS[] = { 0, MUSTER_ENGINE_NO_BUFFER, MUSTER_MTU, MUSTER_PULSE_MAX };

static void rabenseifner_runs_in_pulses_with_packets(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		w->share = false;
		w->model.buffer = BUFFERS[seed % 4];
		rabenseifner(w, 40000 + seed % 5 * 8, seed % 2 ? 4096 : 12000);
		assert_int_equal(world_counters(w, 0).bytes_referenced, 0);
		assert_true(world_counters(w, 0).grants);
		if (w->model.buffer == MUSTER_ENGINE_NO_BUFFER)
			assert_true(world_counters(w, 0).grants_streamed ==
				    world_counters(w, 0).grants);
		world_destroy(w);
	}
}

static void rabenseifner_runs_in_pulses_by_reference(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		w->share = true;
		w->copy = w->peers_hidden = false;
		w->model.buffer = BUFFERS[seed % 4];
		rabenseifner(w, 40000 + seed % 5 * 8, seed % 2 ? 4096 : 12000);
		assert_int_equal(w->nr_sent[MUSTER_PACKET_DATA], 0);
		assert_int_equal(world_counters(w, 0).bytes_referenced,
				 2 * 6 * (40000 + seed % 5 * 8));
		world_destroy(w);
	}
}

/* As it lay when it was sent: the copy is what counts, in packets too, and is given back. */
static void what_is_lent_as_a_copy_is_given_back(void **state)
{
	uint64_t seed, bytes;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		w->share = w->copy = true;
		w->model.buffer = BUFFERS[seed % 4];
		rabenseifner(w, 40000 + seed % 5 * 8, seed % 2 ? 4096 : 12000);
		bytes = world_counters(w, 0).bytes_referenced;
		assert_true(w->peers_hidden ? !bytes : bytes > 0);
		for (uint32_t r = 0; r < 4; r++)
			assert_int_equal(w->nodes[r].copied, 0);
		world_destroy(w);
	}
}

/* Twice to nodes 1 and 2: what is there, and then, where that was, with what node 3 has. */
static void post_to_two(struct world *w, uint64_t bytes, uint32_t pulse_len)
{
	struct muster_desc descs[4], part;
	uint32_t i, r;

	for (i = 0; i < 4; i++) {
		descs[i] = desc_rdma(i == 2 ? MUSTER_DESC_REDUCE : 0, i == 2, bytes, pulse_len);
		desc_load(&descs[i], IN);
		desc_to(&descs[i], 1 + i % 2, i / 2);
	}
	desc_store(&descs[2], IN);
	descs[0].flags |= MUSTER_DESC_CH;
	descs[3].flags |= MUSTER_DESC_CT | MUSTER_DESC_COLL_END;
	world_post(w, 0, descs, 4);
	for (r = 1; r < 3; r++) {
		for (i = 0; i < 2; i++) {
			descs[i] = desc_rdma(i ? MUSTER_DESC_CT | MUSTER_DESC_COLL_END : MUSTER_DESC_CH, 1, bytes,
					     pulse_len);
			desc_store(&descs[i], OUT + i * bytes);
		}
		world_post(w, r, descs, 2);
	}
	part = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, bytes, pulse_len);
	desc_load(&part, IN);
	desc_to(&part, 0, 0);
	world_post(w, 3, &part, 1);
}

static void members_read_one_copy_until_its_range_changes(void **state)
{
	enum { PULSES = 3, PULSE = 8192, BYTES = PULSES * PULSE };

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		w->share = w->copy = true;
		w->peers_hidden = false;
		w->refuse_percent = 0;
		world_start(w);
		for (uint32_t r = 0; r < 4; r++)
			fill(w, r, BYTES, 0);
		post_to_two(w, BYTES, PULSE);
		world_run(w);
		for (uint32_t i = 0; i < BYTES / 8; i++) {
			double before = 1.1 + i * 0.7, after = before + (4.4 + i * 0.7);

			for (uint32_t r = 1; r < 3; r++) {
				assert_memory_equal(world_double(w, r, OUT) + i, &before, 8);
				assert_memory_equal(world_double(w, r, OUT + BYTES) + i, &after, 8);
			}
		}
		/* one more where the first was read before the second one could be sent */
		assert_in_range(w->nodes[0].copies_made, 2 * PULSES, 2 * PULSES + 1);
		assert_int_equal(w->nodes[0].copied, 0);
		world_destroy(w);
	}
}

static void what_a_peer_cannot_map_is_sent(void **state)
{
	struct world *w = vary(4, 3);

	(void)state;
	w->peers_hidden = true;
	rabenseifner(w, 40000, 4096);
	assert_int_equal(world_counters(w, 0).bytes_referenced, 0);
	assert_true(w->nr_sent[MUSTER_PACKET_DATA] > 0);
	world_destroy(w);
}

static void post_exchange(struct world *w, uint32_t r, uint64_t from, uint64_t to, uint64_t bytes)
{
	enum { PULSE = 32768 };
	struct muster_desc descs[2] = {
		desc_rdma(MUSTER_DESC_CH, 0, bytes, PULSE),
		desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_COLL_END | MUSTER_DESC_REDUCE, 1, bytes, PULSE),
	};
	uint32_t i;

	for (i = 0; i < bytes / 8; i++)
		world_double(w, r, from)[i] = r * 1000 + i;
	desc_load(&descs[0], from);
	desc_to(&descs[0], !r, 0);
	desc_load(&descs[1], from);
	desc_store(&descs[1], to);
	world_post(w, r, descs, 2);
}

/* Each sends its whole vector and stores beside it: with any room, or none. */
static void two_ranks_exchange_whole_vectors(void **state)
{
	enum { BYTES = 100000 };
	uint64_t seed;
	uint32_t r, i;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(2, seed);

		w->model.buffer = BUFFERS[seed / 4 % 4];
		world_start(w);
		for (r = 0; r < 2; r++)
			post_exchange(w, r, IN, OUT, BYTES);
		world_run(w);
		for (r = 0; r < 2; r++) {
			assert_int_equal(w->nodes[r].nr_cqes, 1);
			for (i = 0; i < BYTES / 8; i++)
				assert_true(world_double(w, r, OUT)[i] == 1000 + 2 * i);
		}
		world_destroy(w);
	}
}

/* A program that stores over what it sends waits for its own send, writes nothing, and says so. */
static void an_exchange_in_place_without_room_waits_and_tells_why(void **state)
{
	enum { BYTES = 8000 };
	struct muster_context_state query;
	uint32_t share, r, i;

	(void)state;
	for (share = 0; share < 2; share++) {
		struct world *w = world_create(2, share);

		w->share = share;
		w->map = share;
		w->model.buffer = MUSTER_ENGINE_NO_BUFFER;
		world_start(w);
		for (r = 0; r < 2; r++)
			post_exchange(w, r, OUT, OUT, BYTES);
		world_run(w);
		for (r = 0; r < 2; r++) {
			assert_int_equal(muster_engine_context_query(w->nodes[r].engine, WORLD_VP,
								     WORLD_JOB, WORLD_CONTEXT,
								     &query), 0);
			assert_int_equal(query.running, 1);
			assert_int_equal(query.cursor, 0);
			assert_int_equal(query.waiting, 0);	/* for its own send */
			assert_int_equal(w->nodes[r].nr_cqes, 0);
			for (i = 0; i < BYTES / 8; i++)
				assert_true(world_double(w, r, OUT)[i] == r * 1000 + i);
		}
		world_destroy(w);
	}
}

/* ((own + slot 0) + slot 1) + slot 2: any other order gives other bits. */
static const double large_values[4] = { 1, 0x1p53, 1, -0x1p53 };
enum { LARGE = 50000 };

static void large_tree_fill(struct world *w)
{
	for (uint32_t r = 0; r < 4; r++)
		for (uint32_t i = 0; i < LARGE / 8; i++)
			world_double(w, r, IN)[i] = large_values[r];
}

static void large_tree_post_root(struct world *w)
{
	struct muster_desc root = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_REDUCE, 3,
					    LARGE, 16384);

	desc_load(&root, IN);
	desc_store(&root, OUT);
	world_post(w, 0, &root, 1);
}

static void large_tree_post_leaves(struct world *w)
{
	for (uint32_t r = 1; r < 4; r++) {
		struct muster_desc leaf = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT, 0, LARGE, 16384);

		desc_load(&leaf, IN);
		desc_to(&leaf, 0, r - 1);
		world_post(w, r, &leaf, 1);
	}
}

static void large_tree_check(struct world *w)
{
	const double *value = large_values;
	double expected = ((value[0] + value[1]) + value[2]) + value[3];

	for (uint32_t i = 0; i < LARGE / 8; i++) {
		assert_memory_equal(world_double(w, 0, OUT) + i, &expected, 8);
		assert_true(world_double(w, 0, IN)[i] == value[0]);
	}
}

/* Their order is the slots', and neither the root's input nor theirs is written. */
static void a_large_tree_node_combines_its_children_in_slot_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct world *w = vary(4, seed);

		w->model.buffer = BUFFERS[seed / 4 % 4];
		world_start(w);
		large_tree_fill(w);
		large_tree_post_root(w);
		large_tree_post_leaves(w);
		world_run(w);
		large_tree_check(w);
		world_destroy(w);
	}
}

/* Its own memory is read and written once, however many they are. */
static void what_children_have_lent_is_combined_in_one_pass(void **state)
{
	struct muster_engine_counters before, after;
	struct world *w = world_create(4, 1);

	(void)state;
	w->map = true;
	w->share = true;
	world_start(w);
	large_tree_fill(w);
	large_tree_post_leaves(w);
	world_run(w);
	before = world_counters(w, 0);
	large_tree_post_root(w);
	world_run(w);
	large_tree_check(w);
	after = world_counters(w, 0);
	assert_int_equal(after.bytes_referenced - before.bytes_referenced, 3 * LARGE);
	assert_int_equal(after.dma_read_bytes - before.dma_read_bytes, LARGE);
	assert_int_equal(after.dma_write_bytes - before.dma_write_bytes, LARGE);
	assert_int_equal(after.pulses, (LARGE + 16383) / 16384);
	assert_int_equal(after.triggers, 3 * after.pulses);
	assert_int_equal(after.triggers_waited, after.triggers);
	world_destroy(w);
}

static void a_message_of_no_bytes_in_memory_is_sent_all_the_same(void **state)
{
	struct world *w = world_create(2, 5);
	struct muster_desc send = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT | MUSTER_DESC_COLL_END,
					    0, 0, 4096);
	struct muster_desc receive = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
					       MUSTER_DESC_COLL_END, 1, 0, 4096);

	(void)state;
	desc_to(&send, 1, 0);
	world_start(w);
	world_post(w, 0, &send, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	world_post(w, 1, &receive, 1);
	world_run(w);
	assert_int_equal(w->nodes[1].nr_cqes, 1);

	send.range.pulse_count = receive.range.pulse_count = 2;	/* these ask */
	world_post(w, 0, &send, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 1);
	world_post(w, 1, &receive, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].nr_cqes, 2);
	assert_int_equal(w->nodes[1].nr_cqes, 2);
	world_destroy(w);
}

/* A step without packets copies; a store over an open send waits for it. */
static void a_local_copy_waits_for_the_send_that_it_would_overwrite(void **state)
{
	struct world *w = world_create(2, 5);
	struct muster_desc descs[2] = {
		desc_rdma(MUSTER_DESC_CH, 0, 8000, 8000),
		desc_rdma(MUSTER_DESC_CT | MUSTER_DESC_COLL_END, 0, 8000, 8000),
	};
	struct muster_desc receive = desc_rdma(MUSTER_DESC_CH | MUSTER_DESC_CT |
					       MUSTER_DESC_COLL_END, 1, 8000, 8000);

	(void)state;
	memset(w->nodes[0].memory, 1, 8000);
	memset(w->nodes[0].memory + 8000, 2, 8000);
	desc_load(&descs[0], 0);
	desc_to(&descs[0], 1, 0);
	desc_load(&descs[1], 8000);
	desc_store(&descs[1], 0);
	desc_store(&receive, 0);
	world_start(w);
	world_post(w, 0, descs, 2);
	world_run(w);
	assert_int_equal(w->nodes[0].memory[0], 1);
	world_post(w, 1, &receive, 1);
	world_run(w);
	assert_int_equal(w->nodes[0].memory[7999], 2);
	assert_int_equal(w->nodes[1].memory[7999], 1);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursive_doubling_adds_up_on_four_ranks),
		cmocka_unit_test(successive_allreduces_do_not_mix),
		cmocka_unit_test(a_tree_node_combines_its_children_in_slot_order),
		cmocka_unit_test(a_rank_combines_its_own_operand_in_its_place),
		cmocka_unit_test(a_low_latency_tree_answers_where_the_packet_came_from),
		cmocka_unit_test(rabenseifner_runs_in_pulses_with_packets),
		cmocka_unit_test(rabenseifner_runs_in_pulses_by_reference),
		cmocka_unit_test(what_is_lent_as_a_copy_is_given_back),
		cmocka_unit_test(members_read_one_copy_until_its_range_changes),
		cmocka_unit_test(what_a_peer_cannot_map_is_sent),
		cmocka_unit_test(two_ranks_exchange_whole_vectors),
		cmocka_unit_test(an_exchange_in_place_without_room_waits_and_tells_why),
		cmocka_unit_test(a_large_tree_node_combines_its_children_in_slot_order),
		cmocka_unit_test(what_children_have_lent_is_combined_in_one_pass),
		cmocka_unit_test(a_message_of_no_bytes_in_memory_is_sent_all_the_same),
		cmocka_unit_test(a_local_copy_waits_for_the_send_that_it_would_overwrite),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
