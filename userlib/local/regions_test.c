// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory tables of the local device: what a key gives access to, and what not. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "dev.h"
#include "regions.h"

enum { RW = MUSTER_ACCESS_READ | MUSTER_ACCESS_WRITE, PAGE = 4096 };

static struct muster_regions_own own;

static int setup(void **state)
{
	(void)state;
	return muster_regions_open(&own, 2);
}

static int teardown(void **state)
{
	(void)state;
	muster_regions_close(&own);
	return 0;
}

static void *at(const void *base, size_t offset)
{
	return (uint8_t *)(uintptr_t)base + offset;
}

static void a_key_reaches_its_range_and_no_further(void **state)
{
	uint8_t memory[100];
	uint64_t addr = (uintptr_t)memory;
	uint32_t key;

	(void)state;
	assert_int_equal(muster_region_register(&own, memory, 100, RW, &key), 0);
	assert_ptr_equal(muster_region_range(&own, key, addr, 100, RW), memory);
	assert_ptr_equal(muster_region_range(&own, key, addr + 99, 1, RW), memory + 99);
	assert_ptr_equal(muster_region_range(&own, key, addr + 100, 0, RW), memory + 100);
	assert_null(muster_region_range(&own, key, addr, 101, RW));
	assert_null(muster_region_range(&own, key, addr - 1, 2, RW));
	assert_null(muster_region_range(&own, key, addr + 100, 1, RW));
	assert_null(muster_region_range(&own, key, addr + 50, UINT64_MAX - 10, RW));
	assert_null(muster_region_range(&own, key, 0, UINT64_MAX, RW));
}

static void a_key_gives_only_the_access_it_was_made_for(void **state)
{
	static const uint8_t memory[16] = { 1 };
	uint64_t addr = (uintptr_t)memory;
	uint32_t key;

	(void)state;
	assert_int_equal(muster_region_register(&own, at(memory, 0), 16, MUSTER_ACCESS_READ, &key),
			 0);
	assert_non_null(muster_region_range(&own, key, addr, 16, MUSTER_ACCESS_READ));
	assert_null(muster_region_range(&own, key, addr, 16, MUSTER_ACCESS_WRITE));
}

static void an_old_key_finds_nothing(void **state)
{
	uint8_t memory[16];
	uint32_t key, next;

	(void)state;
	assert_int_equal(muster_region_register(&own, memory, 16, RW, &key), 0);
	muster_region_deregister(&own, key);
	assert_null(muster_region_range(&own, key, (uintptr_t)memory, 1, RW));
	assert_int_equal(muster_region_register(&own, memory, 16, RW, &next), 0);
	assert_int_not_equal(key, next);
	assert_null(muster_region_range(&own, key, (uintptr_t)memory, 1, RW));
	assert_null(muster_region_range(&own, 0, (uintptr_t)memory, 1, RW));
	assert_null(muster_region_range(&own, ~0u, (uintptr_t)memory, 1, RW));
}

static void memory_that_is_not_there_is_refused(void **state)
{
	uint8_t *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint32_t key;

	(void)state;
	two[PAGE - 1] = 7;
	assert_int_equal(munmap(two + PAGE, PAGE), 0);
	assert_int_equal(muster_region_register(&own, two, PAGE + 1, MUSTER_ACCESS_READ, &key),
			 -EFAULT);
	assert_int_equal(muster_region_register(&own, two, PAGE + 1, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, two + PAGE, 8, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, NULL, 8, MUSTER_ACCESS_READ, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, two, SIZE_MAX, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, two, 0, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, two, PAGE, RW, &key), 0);
	assert_int_equal(two[PAGE - 1], 7);
	munmap(two, PAGE);
}

/* Without the pipe nothing can be asked. */
static void memory_that_was_there_is_not_asked_for_again(void **state)
{
	uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
	int probe[2] = { own.probe[0], own.probe[1] };
	uint32_t key;

	(void)state;
	assert_int_equal(muster_region_register(&own, pages, PAGE + 8, RW, &key), 0);
	muster_region_deregister(&own, key);
	assert_int_equal(muster_region_register(&own, pages + 2 * PAGE, 8, MUSTER_ACCESS_READ, &key),
			 0);
	own.probe[0] = own.probe[1] = -1;
	assert_int_equal(muster_region_register(&own, pages + 8, PAGE + 8, RW, &key), 0);
	assert_int_equal(muster_region_register(&own, pages + PAGE, 8, MUSTER_ACCESS_READ, &key), 0);
	assert_int_equal(muster_region_register(&own, pages + 2 * PAGE, 8, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, pages + PAGE, 2 * PAGE + 8, MUSTER_ACCESS_READ,
						&key), -EFAULT);
	memcpy(own.probe, probe, sizeof(probe));
	munmap(pages, 4 * PAGE);
}

static void read_only_memory_is_refused_for_writing(void **state)
{
	uint8_t *page = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t key;

	(void)state;
	assert_int_equal(muster_region_register(&own, page, 2 * PAGE, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, page, 2 * PAGE, MUSTER_ACCESS_READ, &key), 0);
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(muster_region_register(&own, page, 2 * PAGE, RW, &key), -EFAULT);
	assert_int_equal(muster_region_register(&own, page, PAGE, RW, &key), 0);
	munmap(page, 2 * PAGE);
}

static void probing_changes_nothing(void **state)
{
	uint8_t memory[3 * PAGE], copy[3 * PAGE];
	uint32_t key;

	(void)state;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = i * 31 + i / 256;
	memcpy(copy, memory, sizeof(copy));
	for (size_t bytes = 1; bytes < sizeof(memory); bytes = bytes * 3 + 1) {
		assert_int_equal(muster_region_register(&own, memory, bytes, RW, &key), 0);
		muster_region_deregister(&own, key);
	}
	assert_memory_equal(memory, copy, sizeof(copy));
}

static void many_keys_stay_apart(void **state)
{
	enum { NR = 3000 };
	static uint32_t keys[NR];
	static uint8_t memory[NR];

	(void)state;
	for (int i = 0; i < NR; i++)
		assert_int_equal(muster_region_register(&own, &memory[i], 1, RW, &keys[i]), 0);
	for (int i = 0; i < NR; i += 2)
		muster_region_deregister(&own, keys[i]);
	for (int i = 0; i < NR; i++)
		assert_ptr_equal(muster_region_range(&own, keys[i], (uintptr_t)&memory[i], 1, RW),
				 i % 2 ? &memory[i] : NULL);
}

static void allocated_memory_is_zero_and_others_can_only_read_it(void **state)
{
	static const size_t sizes[] = { PAGE + 1, 2 * PAGE, 5 << 20 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct muster_region_own *region;
		void *memory;
		uint32_t key;
		int fd;

		assert_int_equal(muster_region_alloc(&own, sizes[i], &memory, &key), 0);
		assert_int_equal((uintptr_t)memory % PAGE, 0);
		for (size_t b = 0; b < sizes[i]; b++)
			assert_int_equal(((uint8_t *)memory)[b], 0);
		memset(memory, 0x5a, sizes[i]);
		region = muster_region_find(&own, key);
		fd = region->fd;
		assert_ptr_equal(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
				 MAP_FAILED);
		assert_int_equal(ftruncate(fd, 0), -1);
		muster_region_withdraw(&own, key);
		assert_null(muster_region_range(&own, key, (uintptr_t)memory, 1, RW));
		muster_region_forget(region);
	}
	assert_int_equal(muster_region_alloc(&own, SIZE_MAX, &(void *){ NULL }, &(uint32_t){ 0 }),
			 -ENOMEM);
}

static void memory_up_to_a_page_takes_no_file(void **state)
{
	static const size_t sizes[] = { 1, PAGE };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t *memory;
		uint32_t key;

		assert_int_equal(muster_region_alloc(&own, sizes[i], (void **)&memory, &key), 0);
		assert_int_equal(muster_region_find(&own, key)->fd, -1);
		memset(memory, 0x5a, sizes[i]);
		assert_ptr_equal(muster_region_range(&own, key, (uintptr_t)memory, 1, RW), memory);
		muster_region_withdraw(&own, key);
		muster_region_forget(muster_region_find(&own, key));
	}
}

/* The program needs descriptors, too. */
static void only_so_many_regions_have_a_file(void **state)
{
	enum { NR = MUSTER_REGION_FILES_MAX + 10 };
	static uint32_t keys[NR];
	void *memory;

	(void)state;
	for (int i = 0; i < NR; i++)
		assert_int_equal(muster_region_alloc(&own, 2 * PAGE, &memory, &keys[i]), 0);
	for (int i = 0; i < NR; i++)
		assert_int_equal(muster_region_find(&own, keys[i])->fd >= 0, i >= 10);
}

static void a_peers_region_is_readable_until_it_is_swept(void **state)
{
	struct muster_regions_peer peer = { 0 };
	struct muster_region_own *region;
	const uint8_t *seen;
	uint8_t *memory;
	uint64_t addr;
	uint32_t key;

	(void)state;
	assert_int_equal(muster_region_alloc(&own, 2 * PAGE, (void **)&memory, &key), 0);
	memory[PAGE + 3] = 99;
	addr = (uintptr_t)memory;
	region = muster_region_find(&own, key);
	assert_int_equal(muster_region_peer_map(&peer, key, addr, 2 * PAGE, dup(region->fd)), 0);
	seen = muster_region_peer_range(&peer, key, addr + PAGE, PAGE);
	assert_non_null(seen);
	assert_ptr_not_equal(seen, memory + PAGE);
	assert_int_equal(seen[3], 99);
	memory[PAGE + 3] = 98;
	assert_int_equal(seen[3], 98);
	assert_null(muster_region_peer_range(&peer, key, addr, 2 * PAGE + 1));
	assert_null(muster_region_peer_range(&peer, key, addr - 1, 1));
	assert_null(muster_region_peer_range(&peer, key + 65536, addr, 1));

	muster_region_peer_withdraw(&peer, key);
	assert_int_equal(seen[3], 98);	/* somebody may be reading it still */
	muster_regions_peer_sweep(&peer);
	assert_null(muster_region_peer_range(&peer, key, addr, 1));
	muster_regions_peer_close(&peer);
}

static void a_peers_trap_is_refused(void **state)
{
	struct muster_regions_peer peer = { 0 };
	int loose = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int pipes[2];

	(void)state;
	assert_int_equal(ftruncate(loose, PAGE), 0);
	/* It could shrink under our reads. */
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, PAGE, PAGE, dup(loose)), -EPROTO);
	assert_int_equal(fcntl(loose, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, PAGE, PAGE + 1, dup(loose)),
			 -EPROTO);
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, PAGE, 0, dup(loose)), -EPROTO);
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, UINT64_MAX - 5, PAGE, dup(loose)),
			 -EPROTO);
	assert_int_equal(muster_region_peer_map(&peer, 0x10000, PAGE, PAGE, dup(loose)), -EPROTO);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, PAGE, PAGE, pipes[0]), -EPROTO);
	close(pipes[1]);
	assert_int_equal(muster_region_peer_map(&peer, 0x10001, PAGE, PAGE, dup(loose)), 0);
	/* A second region at the same place, and the first was not withdrawn. */
	assert_int_equal(muster_region_peer_map(&peer, 0x20001, PAGE, PAGE, loose), -EPROTO);
	muster_region_peer_withdraw(&peer, 0x77777);
	muster_regions_peer_sweep(&peer);
	assert_non_null(muster_region_peer_range(&peer, 0x10001, PAGE, PAGE));
	muster_regions_peer_close(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_key_reaches_its_range_and_no_further),
		TEST(a_key_gives_only_the_access_it_was_made_for),
		TEST(an_old_key_finds_nothing),
		TEST(memory_that_is_not_there_is_refused),
		TEST(read_only_memory_is_refused_for_writing),
		TEST(memory_that_was_there_is_not_asked_for_again),
		TEST(probing_changes_nothing),
		TEST(many_keys_stay_apart),
		TEST(allocated_memory_is_zero_and_others_can_only_read_it),
		TEST(memory_up_to_a_page_takes_no_file),
		TEST(only_so_many_regions_have_a_file),
		TEST(a_peers_region_is_readable_until_it_is_swept),
		TEST(a_peers_trap_is_refused),
	};

	return cmocka_run_group_tests_name("regions", tests, NULL, NULL);
}
