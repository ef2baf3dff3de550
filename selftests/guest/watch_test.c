// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that is watched, in a guest: whatever puts other pages in the place of those that were
 * registered is told, without a call; what leaves them there is not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port.h"

enum { PAGE = 4096, PAGES = 8, BYTES = PAGES * PAGE, WATCHED_MAX = 4096 };

struct watched {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char *memory;		/* PAGES, of which those from 2 on to 5 are registered */
	struct ibv_mr *mr;
	const uint8_t *changed;
};

static void *map_at(void *at, size_t bytes)
{
	void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void *middle(const struct watched *w)
{
	return w->memory + 2 * PAGE;
}

static void watch(struct watched *w)
{
	assert_int_equal(musterdv_mr_register(w->pd, middle(w), 4 * PAGE, IBV_ACCESS_LOCAL_WRITE,
					      &w->mr, &w->changed), 0);
	assert_false(musterdv_mr_changed(w->changed));
	assert_ptr_equal(w->mr->pd, w->pd);
	assert_ptr_equal(w->mr->addr, middle(w));
	assert_int_equal(w->mr->length, 4 * PAGE);
}

static int set_up(void **state)
{
	static struct watched w;

	w.ctx = device_open();
	assert_non_null(w.ctx);
	w.pd = ibv_alloc_pd(w.ctx);
	assert_non_null(w.pd);
	w.memory = map_at(NULL, BYTES);
	memset(w.memory, 1, BYTES);
	watch(&w);
	*state = &w;
	return 0;
}

static int tear_down(void **state)
{
	struct watched *w = *state;

	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	munmap(w->memory, BYTES);
	assert_int_equal(ibv_dealloc_pd(w->pd), 0);
	return ibv_close_device(w->ctx);
}

static void unmapping_is_told(void **state)
{
	struct watched *w = *state;

	assert_int_equal(munmap(w->memory + 3 * PAGE, PAGE), 0);
	assert_true(musterdv_mr_changed(w->changed));
}

static void mapping_over_it_is_told(void **state)
{
	struct watched *w = *state;

	map_at(w->memory + 5 * PAGE, PAGE);
	assert_true(musterdv_mr_changed(w->changed));
}

static void moving_it_is_told(void **state)
{
	struct watched *w = *state;
	void *elsewhere = map_at(NULL, PAGE);

	assert_ptr_equal(mremap(middle(w), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere),
			 elsewhere);
	assert_true(musterdv_mr_changed(w->changed));
	munmap(elsewhere, PAGE);
}

static void moving_something_over_it_is_told(void **state)
{
	struct watched *w = *state;
	void *elsewhere = map_at(NULL, PAGE);

	memset(elsewhere, 2, PAGE);
	assert_ptr_equal(mremap(elsewhere, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, middle(w)),
			 middle(w));
	assert_true(musterdv_mr_changed(w->changed));
}

static void giving_pages_back_is_told(void **state)
{
	struct watched *w = *state;

	assert_int_equal(madvise(w->memory + 5 * PAGE, PAGE, MADV_DONTNEED), 0);
	assert_true(musterdv_mr_changed(w->changed));
}

static void other_access_is_told(void **state)
{
	struct watched *w = *state;

	assert_int_equal(mprotect(middle(w), PAGE, PROT_READ), 0);
	assert_true(musterdv_mr_changed(w->changed));
}

static void what_happens_beside_it_is_not(void **state)
{
	struct watched *w = *state;

	assert_int_equal(munmap(w->memory, 2 * PAGE), 0);
	map_at(w->memory + 6 * PAGE, 2 * PAGE);
	assert_int_equal(madvise(w->memory + 6 * PAGE, PAGE, MADV_DONTNEED), 0);
	memset(middle(w), 3, 4 * PAGE);
	assert_false(musterdv_mr_changed(w->changed));
}

/* The device's pages stay the parent's, and what the child does is not the parent's doing. */
static void a_fork_changes_nothing(void **state)
{
	struct watched *w = *state;
	int status;
	pid_t child = fork();

	if (!child) {
		memset(middle(w), 4, PAGE);
		_exit(munmap(middle(w), 4 * PAGE));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	memset(middle(w), 5, 4 * PAGE);
	assert_false(musterdv_mr_changed(w->changed));
}

static void each_region_has_its_own(void **state)
{
	struct watched *w = *state;
	const uint8_t *changed;
	struct ibv_mr *mr;

	assert_int_equal(musterdv_mr_register(w->pd, w->memory, 3 * PAGE, 0, &mr, &changed), 0);
	assert_ptr_not_equal(changed, w->changed);
	assert_int_equal(munmap(w->memory, PAGE), 0);
	assert_true(musterdv_mr_changed(changed));
	assert_false(musterdv_mr_changed(w->changed));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(middle(w), PAGE), 0);
	assert_true(musterdv_mr_changed(w->changed));
}

static void a_place_is_new_for_who_comes_next(void **state)
{
	struct watched *w = *state;
	const uint8_t *before = w->changed;

	map_at(middle(w), 4 * PAGE);
	assert_true(musterdv_mr_changed(w->changed));
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	watch(w);
	assert_ptr_equal(w->changed, before);
}

static void no_process_writes_there(void **state)
{
	struct watched *w = *state;
	void *page = (void *)((uintptr_t)w->changed & ~(uintptr_t)(PAGE - 1));

	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
}

static void what_cannot_be_registered_is_not_watched(void **state)
{
	struct watched *w = *state;
	const uint8_t *changed;
	struct ibv_mr *mr;

	assert_int_equal(musterdv_mr_register(w->pd, w->memory, 0, 0, &mr, &changed), -EINVAL);
	assert_int_equal(munmap(w->memory, PAGE), 0);
	assert_int_equal(musterdv_mr_register(w->pd, w->memory, PAGE, 0, &mr, &changed), -EFAULT);
	assert_int_equal(musterdv_mr_register(w->pd, w->memory + PAGE, PAGE, IBV_ACCESS_MW_BIND,
					      &mr, &changed), -EOPNOTSUPP);
}

/* And others can be had when one of them has gone. */
static void so_many_and_no_more(void **state)
{
	static struct ibv_mr *mrs[WATCHED_MAX];
	struct watched *w = *state;
	const uint8_t *changed;
	struct ibv_mr *mr;

	for (int i = 1; i < WATCHED_MAX; i++)
		assert_int_equal(musterdv_mr_register(w->pd, w->memory, 1, 0, &mrs[i], &changed), 0);
	assert_int_equal(musterdv_mr_register(w->pd, w->memory, 1, 0, &mr, &changed), -ENOSPC);
	mr = ibv_reg_mr(w->pd, w->memory, 1, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(mrs[1]), 0);
	assert_int_equal(musterdv_mr_register(w->pd, w->memory, 1, 0, &mrs[1], &changed), 0);
	for (int i = 1; i < WATCHED_MAX; i++)
		assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
	assert_false(musterdv_mr_changed(w->changed));
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCHED(unmapping_is_told),
		WATCHED(mapping_over_it_is_told),
		WATCHED(moving_it_is_told),
		WATCHED(moving_something_over_it_is_told),
		WATCHED(giving_pages_back_is_told),
		WATCHED(other_access_is_told),
		WATCHED(what_happens_beside_it_is_not),
		WATCHED(a_fork_changes_nothing),
		WATCHED(each_region_has_its_own),
		WATCHED(a_place_is_new_for_who_comes_next),
		WATCHED(no_process_writes_there),
		WATCHED(what_cannot_be_registered_is_not_watched),
		WATCHED(so_many_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
