// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that is not as most is, in a guest: more small pages than one list of them has room
 * for, and memory of another driver (a dma-buf, of vgem's). Bytes go through a connection.
 */
#include "qp_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE = 2 << 20, PIECES = 1100, LENGTH = 3000 };	/* 2.1 GiB */

static void passes(struct end *end, const struct ibv_mr *mr, uint64_t from, uint64_t to)
{
	struct ibv_sge sge = { from, LENGTH, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = to, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = to, .rkey = mr->rkey },
	}, *bad;

	assert_int_equal(ibv_post_send(end->qps[0], &wr, &bad), 0);
	completes(end, to, IBV_WC_SUCCESS);
}

/* The same pages over and over: they are counted each time, and there are not so many. */
static char *pieces_map(void)
{
	const size_t bytes = (size_t)PIECE * PIECES;
	int fd = memfd_create("piece", 0);
	char *all = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(fd >= 0 && all != MAP_FAILED);
	assert_int_equal(ftruncate(fd, PIECE), 0);
	for (int i = 0; i < PIECES; i++)
		assert_ptr_equal(mmap(all + (size_t)i * PIECE, PIECE, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, fd, 0), all + (size_t)i * PIECE);
	close(fd);
	return all;
}

static void more_than_two_gigabytes_in_small_pages_are_one_region(void **state)
{
	const size_t bytes = (size_t)PIECE * PIECES;
	struct end *end = *state;
	char *all = pieces_map(), *last = all + bytes - LENGTH;
	struct ibv_mr *mr = ibv_reg_mr(end->pd, all, bytes, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	memset(all, 7, LENGTH);
	passes(end, mr, (uintptr_t)all, (uintptr_t)last);
	assert_memory_equal(all, last, LENGTH);
	assert_memory_equal(all, all + PIECE - LENGTH, LENGTH);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(all, bytes), 0);
}

/* Two calls of a graphics driver; Debian has its headers with libdrm alone. */
struct dumb_buffer {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch;			/* it answers with these */
	uint64_t size;
};

struct shared_buffer {
	uint32_t handle, flags;
	int32_t fd;
};

#define CREATE_DUMB	_IOWR('d', 0xb2, struct dumb_buffer)
#define HANDLE_TO_FD	_IOWR('d', 0x2d, struct shared_buffer)

/* -1: there is no such driver. */
static int dmabuf_open(uint32_t width, uint64_t *bytes)
{
	struct dumb_buffer dumb = { .width = width, .height = 16, .bpp = 32 };
	struct shared_buffer prime = { .flags = O_CLOEXEC | O_RDWR };
	int card = open("/dev/dri/card0", O_RDWR);

	if (card < 0)
		return -1;
	assert_int_equal(ioctl(card, CREATE_DUMB, &dumb), 0);
	prime.handle = dumb.handle;
	assert_int_equal(ioctl(card, HANDLE_TO_FD, &prime), 0);
	close(card);
	*bytes = dumb.size;
	return prime.fd;
}

static void memory_of_another_driver_is_as_any_other(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const uint64_t iova = 0x700000000000;
	struct end *end = *state;
	struct ibv_mr *mr;
	uint64_t bytes = 0;
	char *here;
	int fd = dmabuf_open(1024, &bytes);

	if (fd < 0)
		skip();
	assert_int_equal(bytes, 65536);
	mr = ibv_reg_dmabuf_mr(end->pd, 4096, bytes, iova, fd, access);
	assert_null(mr);			/* it ends before that */
	mr = ibv_reg_dmabuf_mr(end->pd, 4096, bytes - 4096, iova, fd, access);
	assert_non_null(mr);
	here = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(here, MAP_FAILED);
	close(fd);
	memset(here + 4096, 9, LENGTH);
	passes(end, mr, iova, iova + 20000);
	assert_memory_equal(here + 4096, here + 4096 + 20000, LENGTH);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(munmap(here, bytes), 0);
}

static void locking_is_limited(bool limited)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];
	struct rlimit limit;

	assert_int_equal(syscall(SYS_capget, &head, caps), 0);
	caps[0].effective = caps[0].permitted & ~(limited ? 1u << CAP_IPC_LOCK : 0);
	assert_int_equal(syscall(SYS_capset, &head, caps), 0);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = limited ? 0 : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

/* Else the lists of all regions, of which the device has few, were one process's. */
static void and_counts_for_the_same_limit(void **state)
{
	struct end *end = *state;
	uint64_t bytes = 0;
	struct ibv_mr *mr;
	int fd = dmabuf_open(1024, &bytes);

	if (fd < 0)
		skip();
	locking_is_limited(true);
	mr = ibv_reg_dmabuf_mr(end->pd, 0, bytes, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	locking_is_limited(false);
	assert_null(mr);
	assert_int_equal(errno, ENOMEM);
	mr = ibv_reg_dmabuf_mr(end->pd, 0, bytes, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CONNECTION(more_than_two_gigabytes_in_small_pages_are_one_region),
		WITH_CONNECTION(memory_of_another_driver_is_as_any_other),
		WITH_CONNECTION(and_counts_for_the_same_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
