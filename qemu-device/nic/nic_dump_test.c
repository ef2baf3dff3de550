// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The NIC's file of packets: what its engine sent is in it, from before a reset as well, and not
 * the job's key.
 */
#include "test_guest.h"

#include <fcntl.h>

#include "pcapng.h"

static char folder[64], path[96];
static uint8_t bytes[1 << 16];
static size_t nr_bytes;

static void file_read(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t len;

	assert_true(fd >= 0);
	len = read(fd, bytes, sizeof(bytes));
	assert_true(len > 0 && len < (ssize_t)sizeof(bytes));
	nr_bytes = (size_t)len;
	close(fd);
}

static bool has(const void *what, size_t len)
{
	return memmem(bytes, nr_bytes, what, len);
}

/* Blocks of that type; all are whole. */
static uint32_t nr_blocks(uint32_t type)
{
	struct muster_pcapng_block block;
	uint32_t nr = 0;
	size_t at;

	for (at = 0; at < nr_bytes; at += block.length) {
		memcpy(&block, bytes + at, sizeof(block));
		assert_true(block.length >= sizeof(block) && at + block.length <= nr_bytes);
		nr += block.type == type;
	}
	return nr;
}

static int folder_make(void **state)
{
	strcpy(folder, "/tmp/muster-dump-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/node-0.pcapng", folder);
	dump_folder = folder;
	return one_guest(state);
}

static int folder_remove(void **state)
{
	no_guest(state);
	dump_folder = NULL;
	unlink(path);
	return rmdir(folder);
}

static void message_send(struct guest *guest, const char *text)
{
	pair_open(guest);
	post(guest, 0, 0, message(0, 0, 1, text));
	doorbell(guest, 0, MUSTER_DOORBELL_DQ_TAIL, 1);
	settle(guest);
}

static void what_was_sent_is_in_the_file_without_the_key(void **state)
{
	const uint64_t key = htole64(KEY);
	struct guest *guest = *state;

	message_send(guest, "a grain of salt");
	file_read();
	assert_int_equal(nr_blocks(MUSTER_PCAPNG_SECTION), 1);
	assert_int_equal(nr_blocks(MUSTER_PCAPNG_INTERFACE), 1);
	assert_int_equal(nr_blocks(MUSTER_PCAPNG_PACKET), 1);
	assert_true(has("node 0", 6) && has("a grain of salt", 15));
	assert_false(has(&key, sizeof(key)));
	reg_write(guest, MUSTER_REG_CONTROL, MUSTER_CONTROL_RESET);
	enable(guest);
	memset(guest->memory, 0, MEMORY);
	message_send(guest, "and pepper");
	file_read();
	assert_true(nr_blocks(MUSTER_PCAPNG_PACKET) >= 2);
	assert_true(has("a grain of salt", 15) && has("and pepper", 10));
}

static void where_no_file_can_be_it_is_said_why(void **state)
{
	struct muster_nic_config config = { .wire = wire_spec, .dump = "/nowhere" };
	struct muster_nic *nic;
	char why[256] = "";

	(void)state;
	assert_int_equal(muster_nic_create(&config, &world, NULL, &nic, why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "dump=/nowhere: no file could be written there: No such file or directory");
}

static void an_engine_that_cannot_be_is_refused_with_the_most_there_is(void **state)
{
	const struct muster_nic_config config = { .wire = wire_spec, .model.units = MUSTER_UNITS_MAX + 1 };
	struct muster_nic *nic;
	char why[256] = "";

	(void)state;
	assert_int_equal(muster_nic_create(&config, &world, NULL, &nic, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "an engine has at most units=64, engine-threads=as many as units, buffer=128M in steps of 4096 bytes, window=8 and pulses=4");
}

static void a_node_that_no_nic_can_be_is_refused_as_such(void **state)
{
	const struct muster_nic_config config = { .wire = wire_spec, .node = MUSTER_NODE_AGGREGATION };
	struct muster_nic *nic;
	char why[256] = "";

	(void)state;
	assert_int_equal(muster_nic_create(&config, &world, NULL, &nic, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "from 16711680 on nodes are aggregation nodes, and no NICs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_sent_is_in_the_file_without_the_key,
						folder_make, folder_remove),
		cmocka_unit_test(where_no_file_can_be_it_is_said_why),
		cmocka_unit_test(an_engine_that_cannot_be_is_refused_with_the_most_there_is),
		cmocka_unit_test(a_node_that_no_nic_can_be_is_refused_as_such),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
