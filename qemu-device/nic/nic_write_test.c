// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided writes through a port's ring: to regions of the other port's protection domain that are
 * for others to write, and to nothing else, whatever key is guessed.
 */
#include "test_guest.h"

#include "nic_internal.h"

enum { FROM = 1, OPEN, OWN_ONLY, OTHERS, REGIONS = OTHERS, BYTES = 0x2000, LENGTH = 5000, FILL = 0x5a };

static uint64_t iova(uint32_t key)
{
	return 0x7000000 + key * 0x100000;
}

static uint8_t *memory_of(struct guest *guest, uint32_t key)
{
	return guest->memory + DATA + key * 0x10000;
}

static void regions_open(struct guest *guest)
{
	static const uint8_t access[] = {
		[FROM] = MUSTER_MR_READ,
		[OPEN] = MUSTER_MR_READ | MUSTER_MR_WRITE | MUSTER_MR_REMOTE_WRITE,
		[OWN_ONLY] = MUSTER_MR_READ | MUSTER_MR_WRITE,
		[OTHERS] = MUSTER_MR_ACCESS,
	};

	for (uint32_t key = FROM; key <= REGIONS; key++) {
		struct muster_admin_command cmd = mr_command(guest, key, iova(key), BYTES, access[key]);

		if (key == OTHERS)
			cmd.mr.pd = htole32(PD + 1);
		assert_int_equal(command(guest, cmd).status, MUSTER_ADMIN_OK);
	}
	memset(memory_of(guest, FROM), FILL, BYTES);
}

/* From port 0 to port 1, and what it hears of it. */
static uint8_t written(struct guest *guest, uint32_t nr, uint32_t key, uint64_t addr, uint32_t length)
{
	struct muster_desc desc = message(0, 0, 1, "");

	desc.kind = MUSTER_DESC_RDMA;
	desc.length = htole64(length);
	desc.range.load_key = htole32(FROM);
	desc.range.load_addr = htole64(iova(FROM));
	desc.range.remote_key = htole32(key);
	desc.range.remote_addr = htole64(addr);
	post(guest, 0, nr, desc);
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, nr + 1);
	settle(guest);
	assert_int_equal(le32toh(cqe(guest, 0, nr)->valid), !(nr / CQ & 1));
	doorbell(guest, 0, MUSTER_DOORBELL_CQ_HEAD, nr + 1);
	return cqe(guest, 0, nr)->status;
}

static uint32_t filled(struct guest *guest, uint32_t key)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < BYTES; i++)
		nr += memory_of(guest, key)[i] == FILL;
	return nr;
}

static void assert_untouched(struct guest *guest)
{
	for (uint32_t key = OPEN; key <= REGIONS; key++)
		assert_int_equal(filled(guest, key), 0);
}

static void a_write_goes_to_what_is_open_for_it_and_to_nothing_else(void **state)
{
	struct guest *guest = *state;
	uint32_t nr = 0;

	pair_open(guest);
	regions_open(guest);
	for (uint32_t key = 0; key <= MUSTER_MRS_MAX + 2; key += key < 10 ? 1 : 997)
		if (key != OPEN && key)
			assert_int_equal(written(guest, nr++, key, iova(key), LENGTH), MUSTER_STATUS_MEMORY);
	assert_int_equal(written(guest, nr++, OPEN, iova(OPEN) - 1, LENGTH), MUSTER_STATUS_MEMORY);
	assert_int_equal(written(guest, nr++, OPEN, iova(OPEN) + BYTES - LENGTH + 1, LENGTH),
			 MUSTER_STATUS_MEMORY);
	assert_untouched(guest);
	assert_int_equal(written(guest, nr++, OPEN, iova(OPEN) + BYTES - LENGTH, LENGTH), MUSTER_STATUS_OK);
	assert_int_equal(filled(guest, OPEN), LENGTH);
	memset(memory_of(guest, OPEN), 0, BYTES);
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_MR_DEREGISTER, OPEN)).status,
			 MUSTER_ADMIN_OK);
	assert_int_equal(written(guest, nr++, OPEN, iova(OPEN), LENGTH), MUSTER_STATUS_MEMORY);
	assert_untouched(guest);
}

/* Packets of a member that knows all but the key, which is any number but the right one. */
static void of_many_forged_keys_none_is_accepted(void **state)
{
	const char *settable = getenv("MUSTER_TRIES");
	uint32_t tries = settable ? (uint32_t)strtoul(settable, NULL, 0) : 20000;
	struct guest *guest = *state;
	struct muster_engine_counters counters;
	struct muster_packet packet = {
		.version = MUSTER_PACKET_VERSION, .type = MUSTER_PACKET_WRITE, .job = JOB,
		.dst_vp = htole16(1), .context = htole32(CONTEXT), .total = htole32(8),
		.incarnation = htole32(100), .job_key = htole64(KEY), .length = htole16(8),
	};
	uint64_t payload = 0x5a5a5a5a5a5a5a5a;

	pair_open(guest);
	regions_open(guest);
	for (uint32_t i = 0; i < tries; i++) {
		uint32_t key = i % 2 ? i : i * 2654435761u;

		key += key == OPEN;
		packet.number = htole32(i);
		packet.seq_id = i % MUSTER_WRITES_OPEN;
		packet.arg = htole32(key);
		packet.signature.digest = htole64(iova(key <= REGIONS ? key : OPEN));
		muster_engine_receive(nic_engine_of(guest->nic, 0), &packet, &payload, sizeof(payload));
		if (i % 16 == 15)
			settle(guest);
	}
	nic_engines_count(guest->nic, &counters);
	assert_int_equal(counters.writes, 0);
	assert_int_equal(counters.writes_refused, tries);
	assert_untouched(guest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_GUEST(a_write_goes_to_what_is_open_for_it_and_to_nothing_else),
		WITH_GUEST(of_many_forged_keys_none_is_accepted),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
