// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exact sums as calls: each reduction, on both paths and over several schedules, has the bits of a
 * long integer that was rounded once; started, persistent with other numbers each time, and in
 * place. What is wrong is refused, and ranks that disagree are told.
 */
#include "test_exact.h"
#include "testing.h"

enum { RANKS = 5, ROOM = 4096 };	/* numbers */

enum what { ALLREDUCE, REDUCE, BLOCK, SCAN, EXSCAN, WHATS };

/* Alike; of all magnitudes, with what cancels; beyond the largest; some no numbers. */
enum family { SIMILAR, SPREAD, LARGE, SPECIAL, FAMILIES };

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
	return x ^ x >> 29;
}

static double number(enum family family, enum muster_type type, uint32_t rank, uint64_t i,
		     uint32_t seed)
{
	uint64_t r = mix(mix(i + seed * 65537) + rank), pair = mix(i + seed);
	int most = type == MUSTER_F64 ? 1023 : 127, least = type == MUSTER_F64 ? -1074 : -149;
	double unit = (double)(int64_t)r * 0x1p-63;

	switch (family) {
	case SIMILAR:
		return unit;
	case SPREAD:
		if (rank < 2 && pair % 2)	/* the first two leave nothing, the others what is small */
			return ldexp(rank ? -0.75 : 0.75, (int)(pair >> 8) % most);
		return ldexp(unit, least + (int)(r % (uint64_t)(most - least)));
	case LARGE:
		return ldexp(unit, most);
	default:
		return r % 9 == 0 ? (double)INFINITY : r % 9 == 1 ? -(double)INFINITY :
		       r % 9 == 2 ? (double)NAN : r % 9 == 3 ? -0.0 : unit;
	}
}

static void put(enum muster_type type, uint8_t *data, uint64_t i, double value)
{
	float single = (float)value;

	if (type == MUSTER_F64)
		memcpy(data + i * 8, &value, 8);
	else
		memcpy(data + i * 4, &single, 4);
}

static double get(enum muster_type type, const uint8_t *data, uint64_t i)
{
	double value;
	float single;

	memcpy(&value, data + i * 8, 8);
	memcpy(&single, data + i * 4, 4);
	return type == MUSTER_F64 ? value : (double)single;
}

static void given(enum family family, enum muster_type type, uint8_t *data, uint32_t rank, uint32_t seed)
{
	for (uint64_t i = 0; i < ROOM; i++) {
		double v = number(family, type, rank, i, seed);

		put(type, data, i, type == MUSTER_F32 && isfinite(v) && isinf((float)v) ? 0x1p127 : v);
	}
}

static double canonical(enum muster_type type)
{
	uint64_t wide = 0x7ff8000000000000;
	uint32_t narrow = 0x7fc00000;
	double d;
	float f;

	memcpy(&d, &wide, 8);
	memcpy(&f, &narrow, 4);
	return type == MUSTER_F64 ? d : (double)f;
}

/* What nr numbers sum to, infinities and NaN included. */
static double plain(enum muster_type type, const double *numbers, uint32_t nr)
{
	bool up = false, down = false;
	double finite[RANKS] = { 0 };

	for (uint32_t r = 0; r < nr; r++) {
		if (isnan(numbers[r]))
			return canonical(type);
		up |= numbers[r] == INFINITY;
		down |= numbers[r] == -INFINITY;
		finite[r] = isinf(numbers[r]) ? 0 : numbers[r];
	}
	if (up || down)
		return up && down ? canonical(type) : up ? INFINITY : -INFINITY;
	return test_exact_sum((uint8_t)type, finite, nr) + 0.0;
}

static int make(struct muster_comm *comm, enum what what, enum muster_type type, uint64_t count,
		void *in, void *out, bool persistent, struct muster_request **request)
{
#define CALL(name, ...) (persistent ? muster_##name##_init : muster_##name##_start) \
	(comm, in, out, count, type, MUSTER_SUM_EXACT, ##__VA_ARGS__, request)
	switch (what) {
	case ALLREDUCE:
		return CALL(allreduce);
	case REDUCE:
		return CALL(reduce, 1);
	case BLOCK:
		return CALL(reduce_scatter_block);
	case SCAN:
		return CALL(scan);
	default:
		return CALL(exscan);
	}
#undef CALL
}

static uint8_t in[RANKS][ROOM * 8], kept[RANKS][ROOM * 8], out[RANKS][ROOM * 8];

/* A rank's result, at `got`, beside a plain loop over what was given. */
static void compare(enum what what, enum muster_type type, uint32_t rank, uint64_t count,
		    const uint8_t *got)
{
	uint32_t nr = what == SCAN ? rank + 1 : what == EXSCAN ? rank : RANKS;
	uint64_t first = what == BLOCK ? rank * count : 0;
	size_t size = type == MUSTER_F64 ? 8 : 4;

	if (!nr || (what == REDUCE && rank != 1))
		return;
	for (uint64_t i = 0; i < count; i++) {
		double numbers[RANKS];
		uint8_t expected[8];

		for (uint32_t r = 0; r < RANKS; r++)
			numbers[r] = get(type, kept[r], first + i);
		put(type, expected, 0, plain(type, numbers, nr));
		if (memcmp(got + i * size, expected, size))
			fail_msg("what %d, type %d, rank %u, %llu of %llu: %a, not %a", what, type, rank,
				 (unsigned long long)i, (unsigned long long)count, get(type, got, i),
				 get(type, expected, 0));
	}
}

struct scene {
	enum what what;
	enum family family;
	enum muster_type type;
	uint64_t count;
	bool in_place;
	bool persistent;
};

static void try(struct test_world *world, const struct scene *scene)
{
	struct muster_request *all[RANKS], *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	for (uint32_t i = 0; i < RANKS; i++) {
		given(scene->family, scene->type, in[i], i, 0);
		memcpy(kept[i], in[i], sizeof(in[i]));
		memset(out[i], 0xee, sizeof(out[i]));
	}
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(make(world->comms[i], scene->what, scene->type, scene->count, in[i],
				      scene->in_place ? in[i] : out[i], scene->persistent, &all[i]), 0);
	for (uint32_t seed = 0; seed < (scene->persistent ? 3 : 1); seed++) {
		/* Numbers of another kind span something else. */
		for (uint32_t i = 0; i < RANKS && scene->persistent; i++) {
			given((scene->family + seed) % FAMILIES, scene->type, in[i], i, seed);
			memcpy(kept[i], in[i], sizeof(in[i]));
		}
		for (uint32_t i = 0; i < RANKS; i++) {
			requests[i] = all[i];
			if (scene->persistent)
				assert_int_equal(muster_start(all[i]), 0);
		}
		test_finish(world, requests, results);
		for (uint32_t i = 0; i < RANKS; i++) {
			assert_int_equal(results[i], 0);
			compare(scene->what, scene->type, i, scene->count,
				scene->in_place ? in[i] : out[i]);
		}
	}
	for (uint32_t i = 0; i < RANKS && scene->persistent; i++)
		assert_int_equal(muster_request_free(all[i]), 0);
}

static void test_a_sum_is_the_exact_one_rounded_once_however_it_is_made(void **state)
{
	static const uint64_t counts[] = { 0, 1, 7, 700 };
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct scene scene;

	(void)state;
	for (enum muster_offload offload = MUSTER_OFFLOAD_OFF; offload <= MUSTER_OFFLOAD_FORCE; offload += 2) {
		offload_all(world, offload);
		for (scene.what = 0; scene.what < WHATS; scene.what++)
			for (scene.type = MUSTER_F32; scene.type <= MUSTER_F64; scene.type++)
				for (int c = 0; c < 4; c++)
					for (int form = 0; form < 3; form++) {
						scene.family = (enum family)((c + form + scene.what) % FAMILIES);
						scene.count = counts[c];
						scene.in_place = form == 1;
						scene.persistent = form == 2;
						try(world, &scene);
					}
	}
	test_world_free(world);
}

static void test_no_schedule_changes_a_bit(void **state)
{
	static const char *const schedules[] = { "ring", "recursive-doubling", "binomial", "linear" };
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct scene scene = { .what = ALLREDUCE, .type = MUSTER_F64, .count = 500 };
	int chosen = 0;

	(void)state;
	for (int s = 0; s < 4; s++) {
		for (uint32_t i = 0; i < RANKS; i++)
			chosen += !muster_comm_schedule(world->comms[i], schedules[s]);
		for (scene.family = 0; scene.family < FAMILIES; scene.family++)
			try(world, &scene);
	}
	assert_true(chosen >= 2 * RANKS);
	test_world_free(world);
}

/* Several at once have limbs of their own, and end in order. */
static void test_several_run_at_once(void **state)
{
	enum { NR = 4, COUNT = 300 };
	struct test_world *world = test_joined(RANKS, TEST_RING_MAX);
	struct muster_request *all[NR][RANKS], *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	(void)state;
	for (uint32_t i = 0; i < RANKS; i++) {
		given(SIMILAR, MUSTER_F64, in[i], i, 1);
		memcpy(kept[i], in[i], sizeof(in[i]));
	}
	for (uint32_t k = 0; k < NR; k++)
		for (uint32_t i = 0; i < RANKS; i++)
			assert_int_equal(make(world->comms[i], ALLREDUCE, MUSTER_F64, COUNT, in[i],
					      out[i] + k * COUNT * 8, false, &all[k][i]), 0);
	for (uint32_t k = 0; k < NR; k++) {
		memcpy(requests, all[k], sizeof(all[k]));
		test_finish(world, requests, results);
		for (uint32_t i = 0; i < RANKS; i++) {
			assert_int_equal(results[i], 0);
			compare(ALLREDUCE, MUSTER_F64, i, COUNT, out[i] + k * COUNT * 8);
		}
	}
	test_world_free(world);
}

static void test_what_has_no_exact_sum_is_refused(void **state)
{
	struct test_world *world = test_joined(1, TEST_RING_MAX);
	struct muster_comm *comm = world->comms[0];
	const uint64_t counts[] = { 2 };
	double one[2] = { 1, -0.0 }, other[2];

	(void)state;
	assert_int_equal(muster_allreduce(comm, one, other, 2, MUSTER_I64, MUSTER_SUM_EXACT), -EINVAL);
	assert_int_equal(muster_allreduce(comm, one, other, 2, MUSTER_F16, MUSTER_SUM_EXACT), -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[0]), "f32 and f64, not of f16"));
	assert_int_equal(muster_reduce_scatter(comm, one, other, counts, MUSTER_F64, MUSTER_SUM_EXACT),
			 -EINVAL);
	assert_non_null(strstr(muster_error(world->jobs[0]), "equal blocks"));
	assert_int_equal(muster_allreduce(comm, one, NULL, 2, MUSTER_F64, MUSTER_SUM_EXACT), -EFAULT);
	assert_int_equal(muster_allreduce(comm, one, one + 1, 2, MUSTER_F64, MUSTER_SUM_EXACT), -EINVAL);
	assert_int_equal(muster_reduce(comm, one, other, 2, MUSTER_F64, MUSTER_SUM_EXACT, 3), -EINVAL);
	/* One rank's result is its own element, as with every operation. */
	assert_int_equal(muster_allreduce(comm, one, other, 2, MUSTER_F64, MUSTER_SUM_EXACT), 0);
	assert_memory_equal(one, other, sizeof(one));
	test_world_free(world);
}

/* Of f32 here and of f64 there, exact here and plain there: both are told, with what was called. */
static void disagree(enum muster_type type, enum muster_op op, const char *said)
{
	struct test_world *world = test_joined(2, TEST_RING_MAX);
	struct muster_request *requests[TEST_RANKS_MAX];
	int results[TEST_RANKS_MAX];

	assert_int_equal(muster_allreduce_start(world->comms[0], in[0], out[0], 100, MUSTER_F64,
						MUSTER_SUM_EXACT, &requests[0]), 0);
	assert_int_equal(muster_allreduce_start(world->comms[1], in[1], out[1], 100, type, op,
						&requests[1]), 0);
	test_finish(world, requests, results);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(results[i], -EPROTO);
		assert_non_null(strstr(muster_error(world->jobs[i]), said));
	}
	test_world_free(world);
}

static void test_ranks_that_disagree_are_told(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		given(SIMILAR, MUSTER_F64, in[i], i, 2);
	disagree(MUSTER_F32, MUSTER_SUM_EXACT, "exact sum");
	disagree(MUSTER_F64, MUSTER_SUM, "exact sum");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sum_is_the_exact_one_rounded_once_however_it_is_made),
		cmocka_unit_test(test_no_schedule_changes_a_bit),
		cmocka_unit_test(test_several_run_at_once),
		cmocka_unit_test(test_what_has_no_exact_sum_is_refused),
		cmocka_unit_test(test_ranks_that_disagree_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
