// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lowered programs mean what the schedule means.
 *
 * The schedule is interpreted step by step on whole messages. Beside it a machine
 * (test_machine.h) executes the programs of all ranks. Both must end with the same
 * bits, and the machine must end, even where there is almost no room for messages.
 */
#include "test_machine.h"
#include "test_meaning.h"
#include "test_vectors.h"

static const char *const names[] = {
	"binomial", "recursive-doubling", "rabenseifner", "ring", "bruck", "linear", "pairwise",
	"hillis-steele", "blelloch", "4-nomial", "8-nomial", "double-ring", "dissemination",
	"direct", "double-tree", "halving-doubling",
};

/* Floats whose sum depends on the order; other types: any bits. */
static void fill(uint8_t type, uint8_t *to, size_t bytes)
{
	size_t size = type == MUSTER_DTYPE_F32 || type == MUSTER_DTYPE_F64 ? muster_dtype_size(type) : 1;

	for (size_t i = 0; i < bytes; i += size) {
		double d;
		float f;

		if (size == 1) {
			to[i] = random_below(256);
			continue;
		}
		d = (double)random_below(1u << 30) / (1 + random_below(1u << 20));
		f = d;
		memcpy(to + i, size == 8 ? (void *)&d : (void *)&f, size);
	}
}

/* ---- what a schedule means ------------------------------------------------------- */

static void chunk_bytes(const struct trial *trial, uint32_t chunk, size_t *first, size_t *nr)
{
	uint64_t at, bytes;

	muster_range_bytes(trial->schedule, trial->count, trial->type, NULL, chunk, 1, &at, &bytes);
	*first = at;
	*nr = bytes;
}

static void interpret(struct trial *trial)
{
	uint8_t *vectors[RANKS_MAX];

	for (uint32_t r = 0; r < trial->schedule->ranks; r++)
		vectors[r] = memcpy(trial->ranks[r].expected, trial->ranks[r].in, trial->bytes);
	if (trial->bytes)
		assert_int_equal(meaning_execute(trial->schedule, trial->type, trial->op, trial->count, vectors), 0);
}

/* ---- what the engine demands of a program ---------------------------------------- */

/* What it loads comes with it, if that is not too long. */
static void assert_inline_valid(const struct muster_desc *d, const struct muster_desc *before)
{
	bool is_own = d->flags & MUSTER_DESC_REDUCE && !d->cp_count;
	uint64_t brings = d->range.load_key && d->length <= MUSTER_INLINE_MAX ? d->length : 0;

	if (d->flags & MUSTER_DESC_SWAP_LOCAL_DATA)
		assert_true(before && before->length == d->length && !d->range.load_key == !(is_own && d->length));
	else
		assert_true(d->range.load_key || !d->length || d->cp_count);
	assert_int_equal(d->inline_len, brings);
	assert_true(d->length <= MUSTER_MP_MAX);
}

static void assert_rdma_valid(const struct muster_desc *d, const struct muster_desc *head)
{
	assert_int_equal(d->range.pulse_len, head->range.pulse_len);
	assert_int_equal(d->range.pulse_len % 64, 0);
	assert_in_range(d->range.pulse_len, 64, MUSTER_PULSE_MAX);
	assert_int_equal(!d->range.pulse_count, d != head);
	assert_true(d->length <= (uint64_t)head->range.pulse_len * head->range.pulse_count);
	assert_false(d->inline_len || d->flags & MUSTER_DESC_SWAP_LOCAL_DATA);
	if (d->cp_count)
		assert_int_not_equal(d->store_key, 0);
	else if (d->flags & MUSTER_DESC_CP || d->store_key)
		assert_int_not_equal(d->range.load_key, 0);
}

static void assert_sequence_valid(const struct trial *trial, uint32_t rank, uint32_t stage)
{
	const struct muster_program *program = trial->ranks[rank].program;
	uint32_t first = program->stage_first[stage], end = program->stage_first[stage + 1];
	const struct muster_desc *head = &program->descs[first];
	uint32_t slots = 0;

	assert_in_range(end - first, 1, MUSTER_SEQ_DESCS_MAX);
	for (uint32_t i = first; i < end; i++) {
		const struct muster_desc *d = &program->descs[i];

		assert_int_equal(d->kind, program->is_inline ? MUSTER_DESC_MP : MUSTER_DESC_RDMA);
		assert_true(d->flags & MUSTER_DESC_C);
		assert_int_equal(!(d->flags & MUSTER_DESC_CH), i != first);
		assert_int_equal(!(d->flags & MUSTER_DESC_CT), i != end - 1);
		assert_int_equal(!(d->flags & MUSTER_DESC_COLL_END),
				 i != end - 1 || stage != program->nr_stages - 1);
		assert_int_equal(d->stage, stage);
		assert_true(muster_signatures_agree(&d->signature,
						    &trial->ranks[0].program->descs[0].signature));
		assert_true(d->job == JOB && d->context == CONTEXT &&
			    d->src_vp == members[rank].vp);
		assert_true(d->cp_count <= MUSTER_SOURCES_MAX);
		assert_int_not_equal(d->store_key, MUSTER_SPACE_IN);
		slots += d->cp_count;
		if (program->is_inline)
			assert_inline_valid(d, i > first ? d - 1 : NULL);
		else
			assert_rdma_valid(d, head);
	}
	assert_true(slots <= MUSTER_SLOTS_MAX);
}

/* ---- trials -------------------------------------------------------------------------- */

static void lower_all(struct trial *trial)
{
	char why[200] = "";

	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		struct rank *rank = &trial->ranks[r];
		struct muster_lower_params params = {
			.rank = r, .count = trial->count, .type = trial->type, .op = trial->op,
			.job = JOB, .context = CONTEXT, .addresses = members,
			.in_place = rank->in == rank->out, .parts = rank->part != NULL,
		};

		if (muster_schedule_lower(trial->lowered, &params, &rank->program, why,
					  sizeof(why)))
			fail_msg("%s of %u ranks: %s", trial->schedule->name,
				 trial->schedule->ranks, why);
		assert_true(rank->program->bytes == trial->bytes);
		assert_true(rank->program->scratch_bytes <= trial->bytes);
		rank->scratch = vector_new(rank->program->scratch_bytes + 1);
		assert_int_equal(rank->program->nr_stages, trial->ranks[0].program->nr_stages);
		for (uint32_t stage = 0; stage < rank->program->nr_stages; stage++)
			assert_sequence_valid(trial, r, stage);
	}
}

static void trial_begin(struct trial *trial)
{
	bool is_owned = muster_coll_row(trial->schedule->coll)->needs == MUSTER_WHO_OWNER;

	trial->bytes = trial->count * muster_dtype_size(trial->type);
	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		struct rank *rank = &trial->ranks[r];

		rank->in = vector_new(trial->bytes);
		fill(trial->type, rank->in, trial->bytes);
		rank->out = random_below(3) ? vector_new(trial->bytes) : rank->in;
		if (rank->out != rank->in)
			memset(rank->out, 0xa5, trial->bytes);
		rank->part = rank->out != rank->in && is_owned ? vector_new(trial->bytes + 1) : NULL;
		rank->expected = vector_new(trial->bytes);
	}
}

/* Whether the schedule leaves something to be compared in this rank's chunk. */
static bool has_result(const struct muster_schedule *schedule, uint32_t rank, uint32_t chunk)
{
	if (schedule->coll != MUSTER_COLL_ALLREDUCE)
		return muster_coll_needs(schedule, chunk, rank);
	if (schedule->ranks == 1)
		return true;
	for (uint32_t i = 0; i < schedule->nr_transfers; i++)
		if (schedule->transfers[i].to == rank && schedule->transfers[i].chunk == chunk)
			return true;
	return false;
}

static void assert_results(const struct trial *trial, uint32_t r)
{
	const struct muster_schedule *schedule = trial->schedule;
	const struct rank *rank = &trial->ranks[r];

	for (uint32_t chunk = 0; chunk < schedule->chunks; chunk++) {
		size_t first, len;

		chunk_bytes(trial, chunk, &first, &len);
		if (has_result(schedule, r, chunk) &&
		    memcmp((rank->part ? rank->part : rank->out) + first, rank->expected + first,
			   len))
			fail_msg("%s %s of %u ranks, %lu elements of type %u: rank %u has other "
				 "bits "
				 "in chunk %u",
				 schedule->name, muster_coll_name(schedule->coll), schedule->ranks,
				 (unsigned long)trial->count, trial->type, r, chunk);
	}
}

static void trial_end(struct trial *trial)
{
	for (uint32_t r = 0; r < trial->schedule->ranks; r++) {
		assert_results(trial, r);
		muster_program_free(trial->ranks[r].program);
	}
	vectors_free();
}

static void try_schedule(const struct muster_schedule *schedule,
			 const struct muster_schedule *lowered, uint8_t type, uint64_t count)
{
	bool barrier = schedule->coll == MUSTER_COLL_BARRIER;
	struct trial trial = {
		.schedule = schedule, .lowered = lowered, .count = barrier ? 0 : count,
		.type = barrier ? MUSTER_DTYPE_NONE : type,
		.op = !barrier && muster_coll_row(schedule->coll)->combines ? MUSTER_REDOP_SUM :
									       MUSTER_REDOP_NONE,
	};

	trial_begin(&trial);
	interpret(&trial);
	lower_all(&trial);
	run(&trial, random_below(2));
	trial_end(&trial);
}

/* Half of the time as suits. */
static struct muster_variant random_variant(void)
{
	struct muster_variant variant = { 0 };

	if (random_below(2))
		return variant;
	variant.memory = random_below(2);
	variant.barrier = random_below(2);
	if (random_below(2))
		variant.pulse_bytes = 64 * (1 + random_below(random_below(2) ? 8 : 512));
	return variant;
}

/* By rank, now and then from the list. count: of each chunk, or of the message. */
static void try_generator(const char *name, enum muster_coll coll, uint32_t ranks, uint8_t type,
			  uint64_t count, bool of_each)
{
	uint32_t root = muster_coll_rooted(coll) ? random_below(ranks) : 0;
	struct muster_schedule *listed, *by_rank;
	char why[200];

	if (muster_schedule_generate(name, coll, ranks, root, count, &listed, why, sizeof(why)))
		return;
	assert_int_equal(muster_schedule_by_rank(name, coll, ranks, root, count, &by_rank, why,
						 sizeof(why)), 0);
	listed->variant = by_rank->variant = random_variant();
	if (listed->variant.barrier)
		by_rank->variant.barrier = false;	/* stages are cut where transfers are listed */
	/* An alltoall by rank has other chunks: ranks have n of them, not n * n. */
	try_schedule(listed, random_below(4) && by_rank->chunks == listed->chunks ? by_rank : listed, type,
		     of_each ? count * listed->chunks - 1 : count);
	muster_schedule_free(by_rank);
	muster_schedule_free(listed);
}

static void try_all_generators(uint32_t ranks, uint8_t type, uint64_t count, bool of_each)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (enum muster_coll coll = MUSTER_COLL_BARRIER; coll < MUSTER_COLL_END; coll++)
			try_generator(names[i], coll, ranks, type, count, of_each);
}

static const uint8_t types[] = { MUSTER_DTYPE_F64, MUSTER_DTYPE_F32, MUSTER_DTYPE_I64,
				 MUSTER_DTYPE_I8 };

static void generated_schedules_keep_their_bits(void **state)
{
	static const uint64_t counts[] = { 0, 1, 2, 7, 8, 9, 64, 1000, 16000 };

	(void)state;
	for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks = ranks == 17 ? 32 : ranks + 1) {
		bool longest = ranks < 10 || ranks > 15 || getenv("MUSTER_REST");

		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) - !longest; i++) {
			seed = ranks * 1000 + counts[i];
			try_all_generators(ranks, types[(ranks + i) % sizeof(types)], counts[i],
					   false);
		}
	}
}

static void messages_of_several_pulses_keep_their_bits(void **state)
{
	(void)state;
	for (uint32_t ranks = 1; ranks <= 9; ranks++) {
		seed = ranks;
		try_all_generators(ranks, MUSTER_DTYPE_F64, 4097, true);
		if (ranks < 6)
			try_all_generators(ranks, MUSTER_DTYPE_F32, 50000, true);
	}
}

/* Any transfers at all, far from any algorithm: what they mean is still defined. */
static struct muster_schedule *generate_noise(void)
{
	uint32_t ranks = 2 + random_below(7), chunks = 1 + random_below(6), step, n;
	struct muster_schedule *schedule = NULL;
	struct muster_builder builder;

	muster_builder_init(&builder, "noise", MUSTER_COLL_ALLREDUCE, ranks, chunks, 0);
	for (step = 1 + random_below(25); step; step--, muster_builder_step(&builder)) {
		for (n = 1 + random_below(step % 8 ? 2 : 12); n; n--) {
			uint32_t from = random_below(ranks), chunk = random_below(chunks);
			uint32_t to = (from + 1 + random_below(ranks - 1)) % ranks;

			muster_builder_add(&builder, chunk, from, to, random_below(4));
			if (!random_below(4))	/* its own behind what has come */
				muster_builder_add(&builder, chunk, to, to, true);
		}
	}
	assert_int_equal(muster_builder_end(&builder, &schedule), 0);
	return schedule;
}

static void any_transfers_keep_their_bits(void **state)
{
	(void)state;
	for (uint64_t s = 0; s < 1000; s++) {
		struct muster_schedule *schedule;

		seed = s;
		schedule = generate_noise();
		schedule->variant = random_variant();
		try_schedule(schedule, schedule, MUSTER_DTYPE_F64, s % 16 ? random_below(40) : 9000);
		muster_schedule_free(schedule);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_schedules_keep_their_bits),
		cmocka_unit_test(messages_of_several_pulses_keep_their_bits),
		cmocka_unit_test(any_transfers_keep_their_bits),
	};

	members_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
