// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs through a port's ring: one that is kept and started by a descriptor and a doorbell, one
 * that lies in memory and is fetched; and what becomes of both when their memory is given back.
 * Two ports of one NIC add up two numbers each time.
 */
#include "test_guest.h"

enum {
	ADDR = 0x7000000, BYTES = 0x10000, KEY_OF = 1,	/* one region, for both ports */
	OPERAND = 0x1000, RESULT = 0x2000, PROGRAM = 0x3000,	/* in it; */
	OF_PORT = 0x100, PROGRAM_OF_PORT = 0x6000,		/* of the second one so much further */
	STAGES = 70, KEPT = 9, LAST = 1000,			/* cookies */
	OTHER_CONTEXT = CONTEXT + 1,
};

struct scene {
	struct guest *guest;
	uint32_t posted[2];
	uint32_t seen[2];	/* completions */
};

static uint8_t *at(const struct scene *s, uint32_t offset)
{
	uint32_t page = BYTES / 4096 - 1 - offset / 4096;	/* as mr_command() has turned them */

	return s->guest->memory + DATA + KEY_OF * 0x10000 + page * 4096 + offset % 4096;
}

static void memory_register(struct scene *s)
{
	struct muster_admin_command cmd = mr_command(s->guest, KEY_OF, ADDR, BYTES,
						     MUSTER_MR_READ | MUSTER_MR_WRITE);

	assert_int_equal(command(s->guest, cmd).status, MUSTER_ADMIN_OK);
}

static void memory_deregister(struct scene *s)
{
	assert_int_equal(command(s->guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, KEY_OF)).status,
			 MUSTER_ADMIN_OK);
}

static void scene_open(struct scene *s, struct guest *guest)
{
	*s = (struct scene){ .guest = guest };
	pair_open(guest);
	memory_register(s);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static void sum_of(uint32_t vp, uint32_t context, uint64_t cookie, struct muster_desc descs[2])
{
	descs[0] = message(0, vp, !vp, "");
	descs[0].flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CP);
	descs[0].context = htole32(context);
	descs[0].signature.type = MUSTER_DTYPE_F64;
	descs[0].signature.op = MUSTER_REDOP_SUM;
	descs[0].length = htole64(8);
	descs[0].cookie = htole64(cookie);
	descs[1] = descs[0];
	descs[1].flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CT | MUSTER_DESC_SWAP_LOCAL_DATA |
				 MUSTER_DESC_REDUCE | MUSTER_DESC_COLL_END);
	descs[1].cp_count = 1;
	descs[1].store_addr = htole64(ADDR + RESULT + vp * OF_PORT);
	descs[1].store_key = htole32(KEY_OF);
	descs[0].range.load_addr = htole64(ADDR + OPERAND + vp * OF_PORT);
	descs[0].range.load_key = htole32(KEY_OF);
}

static struct muster_desc short_one(uint32_t vp, uint8_t kind, uint64_t cookie)
{
	return (struct muster_desc){
		.kind = kind, .flags = htole16(MUSTER_DESC_C | MUSTER_DESC_CH | MUSTER_DESC_CT),
		.src_vp = htole16(vp), .job = JOB, .context = htole32(CONTEXT),
		.cookie = htole64(cookie),
	};
}

static void put(struct scene *s, uint32_t vp, const struct muster_desc *descs, uint32_t nr)
{
	while (nr--)
		post(s->guest, vp, s->posted[vp]++, *descs++);
	doorbell(s->guest, vp, MUSTER_DOORBELL_DQ_TAIL, s->posted[vp]);
	settle(s->guest);
}

/* The next completion of a port, which is there. */
static struct muster_cqe taken(struct scene *s, uint32_t vp)
{
	uint32_t i = s->seen[vp]++;
	struct muster_cqe entry = *cqe(s->guest, vp, i);

	assert_int_equal(le32toh(entry.valid), !(i / CQ & 1));
	doorbell(s->guest, vp, MUSTER_DOORBELL_CQ_HEAD, s->seen[vp]);
	settle(s->guest);
	return entry;
}

static bool none_is_there(struct scene *s, uint32_t vp)
{
	return le32toh(cqe(s->guest, vp, s->seen[vp])->valid) == (s->seen[vp] / CQ & 1);
}

/* ---- programs that are kept ---------------------------------------------------------------- */

static void operands_put(struct scene *s, double value)
{
	double own[2] = { value, 2 * value };

	for (uint32_t vp = 0; vp < 2; vp++)
		memcpy(at(s, OPERAND + vp * OF_PORT), &own[vp], 8);
}

static void assert_sum(struct scene *s, uint64_t cookie, double sum)
{
	for (uint32_t vp = 0; vp < 2; vp++) {
		struct muster_cqe entry = taken(s, vp);
		double result;

		assert_int_equal(entry.status, MUSTER_STATUS_OK);
		assert_int_equal(le64toh(entry.cookie), cookie);
		memcpy(&result, at(s, RESULT + vp * OF_PORT), 8);
		assert_true(result == sum);
	}
}

static void keep(struct scene *s)
{
	struct muster_desc descs[2];

	operands_put(s, 1);
	for (uint32_t vp = 0; vp < 2; vp++) {
		sum_of(vp, CONTEXT, KEPT, descs);
		descs[0].flags |= htole16(MUSTER_DESC_KEEP);
		put(s, vp, descs, 2);
	}
	assert_sum(s, KEPT, 3);
}

static void start(struct scene *s)
{
	for (uint32_t vp = 0; vp < 2; vp++) {
		struct muster_desc desc = short_one(vp, MUSTER_DESC_START, KEPT);

		put(s, vp, &desc, 1);
	}
}

static uint64_t dma_read_bytes(struct guest *guest)
{
	struct muster_admin_command cmd = {
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(1000) },
	};

	assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	return le64toh(((struct muster_device_counters *)(guest->memory + LIST))->dma_read_bytes);
}

/* One descriptor and the operand is all that the NIC reads. */
static void a_kept_program_is_started_again_and_again(void **state)
{
	uint64_t before, asking;
	struct scene s;

	scene_open(&s, *state);
	keep(&s);
	before = dma_read_bytes(s.guest);
	asking = dma_read_bytes(s.guest) - before;
	for (int i = 2; i < 30; i++) {
		operands_put(&s, i);
		start(&s);
		assert_sum(&s, KEPT, 3.0 * i);
	}
	before = dma_read_bytes(s.guest);
	start(&s);
	assert_int_equal(dma_read_bytes(s.guest) - before - asking,
			 2 * (sizeof(struct muster_desc) + 8));
	assert_sum(&s, KEPT, 3.0 * 29);
}

static void assert_memory_gone(struct scene *s, uint64_t cookie)
{
	struct muster_cqe first = taken(s, 0), second = taken(s, 0);
	struct muster_cqe *context = first.kind == MUSTER_CQE_CONTEXT ? &first : &second;
	struct muster_cqe *sequence = context == &first ? &second : &first;

	assert_int_equal(context->kind, MUSTER_CQE_CONTEXT);
	assert_int_equal(context->status, MUSTER_STATUS_MEMORY);
	assert_int_equal(sequence->kind, MUSTER_CQE_SEQUENCE);
	assert_int_equal(sequence->status, MUSTER_STATUS_MEMORY);
	assert_int_equal(le64toh(sequence->cookie), cookie);
	assert_true(none_is_there(s, 0));
}

/* The same number is another region's then. */
static void a_kept_program_ends_with_its_memory(void **state)
{
	struct scene s;

	scene_open(&s, *state);
	keep(&s);
	start(&s);
	assert_sum(&s, KEPT, 3);
	memory_deregister(&s);
	memory_register(&s);
	start(&s);
	assert_memory_gone(&s, KEPT);
}

static void what_is_not_kept_is_refused(void **state)
{
	struct muster_desc desc = short_one(0, MUSTER_DESC_START, KEPT + 1);
	struct scene s;

	scene_open(&s, *state);
	keep(&s);
	put(&s, 0, &desc, 1);
	assert_int_equal(taken(&s, 0).status, MUSTER_STATUS_DESCRIPTOR);
	start(&s);
	assert_sum(&s, KEPT, 3);
}

/* What was started before it runs to its end. */
static void what_is_forgotten_is_refused(void **state)
{
	struct muster_desc forget = short_one(0, MUSTER_DESC_FORGET, KEPT);
	struct muster_desc again = short_one(0, MUSTER_DESC_START, KEPT);
	struct scene s;

	scene_open(&s, *state);
	keep(&s);
	start(&s);
	put(&s, 0, &forget, 1);
	assert_sum(&s, KEPT, 3);
	assert_true(none_is_there(&s, 0));
	put(&s, 0, &again, 1);
	assert_int_equal(taken(&s, 0).status, MUSTER_STATUS_DESCRIPTOR);
}

/* ---- programs in memory --------------------------------------------------------------------- */

static void lay_down(struct scene *s, uint32_t vp)
{
	const uint32_t from = PROGRAM + vp * PROGRAM_OF_PORT;
	struct muster_desc descs[2];

	operands_put(s, 7);
	for (uint32_t i = 0; i < STAGES; i++) {
		sum_of(vp, CONTEXT, LAST, descs);
		if (i + 1 < STAGES)
			descs[1].flags &= htole16(~MUSTER_DESC_COLL_END);
		for (uint32_t k = 0; k < 2; k++)
			memcpy(at(s, from + (2 * i + k) * sizeof(*descs)), &descs[k], sizeof(*descs));
	}
}

static void run(struct scene *s, uint32_t vp)
{
	struct muster_desc desc = short_one(vp, MUSTER_DESC_PROGRAM, LAST);

	lay_down(s, vp);
	desc.length = htole64(2 * STAGES * sizeof(desc));
	desc.range.load_addr = htole64(ADDR + PROGRAM + vp * PROGRAM_OF_PORT);
	desc.range.load_key = htole32(KEY_OF);
	put(s, vp, &desc, 1);
}

static void a_program_in_memory_runs_by_one_descriptor(void **state)
{
	struct scene s;

	scene_open(&s, *state);
	run(&s, 0);
	assert_true(none_is_there(&s, 0));
	run(&s, 1);
	assert_sum(&s, LAST, 21);
	assert_true(none_is_there(&s, 0) && none_is_there(&s, 1));
}

static void context_open_second(struct scene *s)
{
	for (uint32_t vp = 0; vp < 2; vp++) {
		struct muster_admin_command cmd = context_command(MUSTER_ADMIN_CONTEXT_OPEN, vp);

		cmd.context.context = htole32(OTHER_CONTEXT);
		cmd.context.job_key = htole64(KEY);
		cmd.context.members = htole64(LIST);
		cmd.context.nr_members = htole32(2);
		cmd.context.self = htole32(vp);
		for (uint32_t i = 0; i < 2; i++) {
			struct muster_admin_member member = {
				.vp = htole16(i),
				.incarnation = htole32(reg_read(s->guest, MUSTER_REG_INCARNATION)),
			};

			memcpy(s->guest->memory + LIST + i * sizeof(member), &member, sizeof(member));
		}
		assert_int_equal(command(s->guest, cmd).status, MUSTER_ADMIN_OK);
	}
}

/* Its peer has not come: it waits, and the port's queue goes on. */
static void a_program_in_memory_holds_up_no_other_context(void **state)
{
	struct muster_desc descs[2];
	struct scene s;

	scene_open(&s, *state);
	context_open_second(&s);
	run(&s, 0);
	for (uint32_t vp = 0; vp < 2; vp++) {
		sum_of(vp, OTHER_CONTEXT, 5, descs);
		put(&s, vp, descs, 2);
	}
	assert_sum(&s, 5, 21);
	run(&s, 1);
	assert_sum(&s, LAST, 21);
}

static void a_program_in_memory_ends_with_its_memory(void **state)
{
	struct scene s;

	scene_open(&s, *state);
	run(&s, 0);
	memory_deregister(&s);
	memory_register(&s);
	run(&s, 1);
	assert_memory_gone(&s, LAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_kept_program_is_started_again_and_again),
		WITH_GUEST(a_kept_program_ends_with_its_memory),
		WITH_GUEST(what_is_not_kept_is_refused),
		WITH_GUEST(what_is_forgotten_is_refused),
		WITH_GUEST(a_program_in_memory_runs_by_one_descriptor),
		WITH_GUEST(a_program_in_memory_holds_up_no_other_context),
		WITH_GUEST(a_program_in_memory_ends_with_its_memory),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
