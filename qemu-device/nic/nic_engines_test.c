// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A NIC of several engines, stepped by threads: the same bits as of one, whatever their
 * number; what they share (rings, loopback) is right; and what is not there is refused.
 * Under ThreadSanitizer: make check-threads.
 */
#include <pthread.h>

#include "test_guest.h"

enum {
	NR = 8,			/* ports of one context, each with its operations */
	ROUNDS = 16,
	STORE = 0x7000000,	/* of region 1; a double for each port */
};

/* ---- threads as a world has them --------------------------------------------- */

struct part {
	void (*run)(void *arg, uint32_t i);
	void *arg;
	uint32_t i;
};

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static uint32_t nr_parallel;

static void *part_run(void *arg)
{
	const struct part *part = arg;

	part->run(part->arg, part->i);
	return NULL;
}

static void parallel(void *opaque, void (*run)(void *arg, uint32_t i), void *arg, uint32_t nr)
{
	struct part parts[MUSTER_UNITS_MAX];
	pthread_t threads[MUSTER_UNITS_MAX];

	(void)opaque;
	nr_parallel++;
	for (uint32_t i = 0; i < nr; i++) {
		parts[i] = (struct part){ run, arg, i };
		assert_int_equal(pthread_create(&threads[i], NULL, part_run, &parts[i]), 0);
	}
	for (uint32_t i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

static void lock(void *opaque)
{
	(void)opaque;
	pthread_mutex_lock(&shared);
}

static void unlock(void *opaque)
{
	(void)opaque;
	pthread_mutex_unlock(&shared);
}

static const struct muster_nic_world with_threads = {
	.dma_read = dma_read, .dma_write = dma_write, .interrupt = interrupt,
	.now_us = now_us, .kick = kick,
	.parallel = parallel, .lock = lock, .unlock = unlock,
};

/* ---- a NIC of so many -------------------------------------------------------- */

static struct guest *guest_of(uint32_t threads)
{
	const struct muster_nic_config config = {
		.incarnation = 100, .wire = wire_spec, .deadline_us = 2000000,
		.model = { .units = NR, .threads = threads },
	};
	struct guest *guest = guest_make(&config, &with_threads);
	struct place places[NR];

	for (uint32_t vp = 0; vp < NR; vp++) {
		places[vp] = (struct place){ guest, 0, vp };
		port_open(guest, vp);
	}
	context_open(places, NR);
	assert_int_equal(command(guest, mr_command(guest, 1, STORE, NR * sizeof(double), MUSTER_MR_WRITE)).status,
			 MUSTER_ADMIN_OK);
	nr_parallel = 0;
	return guest;
}

/* Each port adds its number to its neighbour's, two and two, other neighbours in each round. */
static uint32_t other_of(uint32_t vp, uint32_t round)
{
	return vp ^ (1 + round % (NR - 1));
}

static void operation_post(struct guest *guest, uint32_t vp, uint32_t round)
{
	struct muster_desc *last = (struct muster_desc *)
		(guest->memory + port(vp, PORT_DQ) + (2 * round + 1) % DQ * sizeof(*last));

	allreduce_of(guest, vp, 2 * round, 0, other_of(vp, round), 1.0 / (1 + vp + NR * round));
	last->store_addr = htole64(STORE + vp * sizeof(double));
}

/* 1 page of DATA has them, see mr_command(). */
static double result(const struct guest *guest, uint32_t vp)
{
	double value;

	memcpy(&value, guest->memory + DATA + 0x10000 + vp * sizeof(value), sizeof(value));
	return value;
}

static void operations_run(struct guest *guest, double found[ROUNDS][NR])
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t vp = 0; vp < NR; vp++)
			operation_post(guest, vp, round);
		settle(guest);
		for (uint32_t vp = 0; vp < NR; vp++) {
			assert_int_equal(cqe(guest, vp, round)->status, MUSTER_STATUS_OK);
			assert_int_equal(le32toh(cqe(guest, vp, round)->valid), !(round / CQ & 1));
			found[round][vp] = result(guest, vp);
			doorbell(guest, vp, MUSTER_DOORBELL_CQ_HEAD, round + 1);
		}
	}
}

static void the_bits_are_those_of_one_engine(void **state)
{
	static const uint32_t threads[] = { 0, 1, 3, 8 };
	double first[ROUNDS][NR], found[ROUNDS][NR];

	(void)state;
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		struct guest *guest = guest_of(threads[i]);

		operations_run(guest, i ? found : first);
		if (i)
			assert_memory_equal(found, first, sizeof(first));
		assert_int_equal(nr_parallel > 0, threads[i] > 1);
		guest_free(guest);
	}
	assert_true(first[0][0] == 1.0 / 1 + 1.0 / 2);
}

static void counted_is_what_all_have_done(void **state)
{
	struct guest *guest = guest_of(8);
	struct muster_device_counters counters;
	double found[ROUNDS][NR];

	(void)state;
	operations_run(guest, found);
	assert_int_equal(command(guest, (struct muster_admin_command){
		.opcode = MUSTER_ADMIN_COUNTERS,
		.counters = { .base = htole64(LIST), .bytes = htole32(sizeof(counters)) },
	}).status, MUSTER_ADMIN_OK);
	memcpy(&counters, guest->memory + LIST, sizeof(counters));
	assert_int_equal(le64toh(counters.sequences_ended), NR * ROUNDS);
	assert_int_equal(le64toh(counters.contexts_failed), 0);
	guest_free(guest);
}

/* Each engine hears that a port goes which another one has. */
static void a_port_that_goes_is_known_in_all_engines(void **state)
{
	struct guest *guest = guest_of(8);

	(void)state;
	assert_int_equal(command(guest, id_command(MUSTER_ADMIN_VP_DESTROY, 0)).status, MUSTER_ADMIN_OK);
	for (uint32_t vp = 1; vp < NR; vp++) {
		allreduce_of(guest, vp, 0, 0, 0, 1.0);
		settle(guest);
		assert_int_equal(cqe(guest, vp, 0)->status, MUSTER_STATUS_PEER_LOST);
	}
	guest_free(guest);
}

static void more_threads_than_units_are_refused(void **state)
{
	const struct muster_nic_config config = { .wire = wire_spec, .model = { .units = 2, .threads = 3 } };
	struct muster_nic *nic;
	char why[256] = "";

	(void)state;
	assert_int_equal(muster_nic_create(&config, &world, NULL, &nic, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "engine-threads=as many as units"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bits_are_those_of_one_engine),
		cmocka_unit_test(counted_is_what_all_have_done),
		cmocka_unit_test(a_port_that_goes_is_known_in_all_engines),
		cmocka_unit_test(more_threads_than_units_are_refused),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
