// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is still there. A rank has no connection to most others, and awaits something of
 * any of them. So rank 0, which all connect to, puts what tells of each end, its socket
 * and its process, into one epoll, and everybody holds that: it is the kernel that tells,
 * whatever rank 0 is doing. A board, of which each rank writes some pages, says who has left
 * in good order, and how far it was in its contexts. When rank 0 has ended there is no such
 * epoll any more: then who waits connects to all others, a few at a time.
 */
#include "mesh_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "clock.h"
#include "regions.h"

enum {
	PAGE = 4096,
	BASES = 4096,		/* contexts are found by their last bits */
	LOOK_SHARE = 20,	/* looks take at most one part in so many of our time */
	LOOK_LATEST_US = 50000,
};

/* How many sequences of a context a rank had ended when it left. */
struct base {
	uint32_t context;
	uint32_t life;
	uint32_t base;
	uint32_t set;
};

/* A rank's part of the board; what nobody writes takes no memory. */
struct muster_mesh_board {
	struct base bases[BASES];
	uint32_t left;
	uint8_t pad[PAGE - 4];
};

_Static_assert(sizeof(struct muster_mesh_board) % PAGE == 0, "whole pages");

static size_t board_bytes(const struct muster_mesh *mesh)
{
	return mesh->size * sizeof(*mesh->board);
}

/* Only the own part can be written, where pages are that small. */
int muster_mesh_board_map(struct muster_mesh *mesh, int fd)
{
	bool small = sysconf(_SC_PAGESIZE) <= PAGE;
	void *board;

	if (!muster_memory_sound(fd, board_bytes(mesh)))
		return -EPROTO;
	board = mmap(NULL, board_bytes(mesh), small ? PROT_READ : PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		return -errno;
	mesh->board = board;
	if (small && mprotect(&mesh->board[mesh->rank], sizeof(*mesh->board),
			      PROT_READ | PROT_WRITE))
		return -errno;
	return 0;
}

int muster_mesh_lives_open(struct muster_mesh *mesh, int *board_fd)
{
	int err = muster_memory_file("muster-board", board_bytes(mesh), board_fd);

	if (err)
		return err;
	mesh->lives_fd = epoll_create1(EPOLL_CLOEXEC);
	return mesh->lives_fd < 0 ? -errno : muster_mesh_board_map(mesh, *board_fd);
}

/* Both: a process may leave and live on, and a child of it may hold its socket. */
int muster_mesh_lives_add(struct muster_mesh *mesh, uint32_t rank)
{
	struct epoll_event socket = { .events = EPOLLRDHUP, .data.u64 = rank };
	struct epoll_event process = { .events = EPOLLIN, .data.u64 = rank };
	struct peer *peer = &mesh->peers[rank];

	if (epoll_ctl(mesh->lives_fd, EPOLL_CTL_ADD, peer->fd, &socket) ||
	    (peer->pidfd >= 0 && epoll_ctl(mesh->lives_fd, EPOLL_CTL_ADD, peer->pidfd, &process)))
		return -errno;
	return 0;
}

void muster_mesh_lives_close(struct muster_mesh *mesh)
{
	fd_close(&mesh->lives_fd);
	if (mesh->board)
		munmap(mesh->board, board_bytes(mesh));
	free(mesh->ends);
}

/* It tells of all ends each time, so the more there are the seldomer it is asked. */
void muster_mesh_lives_take(struct muster_mesh *mesh)
{
	uint64_t now = muster_clock_us(), pause_us;
	int nr;

	if (mesh->lives_fd < 0 || now < mesh->look_us)
		return;
	nr = epoll_wait(mesh->lives_fd, mesh->ends, 2 * mesh->size, 0);
	for (int i = 0; i < nr; i++) {
		uint64_t rank = mesh->ends[i].data.u64;

		if (rank != mesh->rank)
			muster_mesh_dead(mesh, rank);
	}
	pause_us = LOOK_SHARE * (muster_clock_us() - now);
	mesh->look_us = now + (pause_us < LOOK_LATEST_US ? pause_us : LOOK_LATEST_US);
}

void muster_mesh_sign_off(struct muster_mesh *mesh)
{
	if (mesh->board)
		__atomic_store_n(&mesh->board[mesh->rank].left, 1, __ATOMIC_RELEASE);
}

bool muster_mesh_signed_off(const struct muster_mesh *mesh, uint32_t rank)
{
	return __atomic_load_n(&mesh->board[rank].left, __ATOMIC_ACQUIRE) == 1;
}

bool muster_mesh_base_leave(struct muster_mesh *mesh, uint32_t context, uint32_t life,
			    uint32_t base)
{
	struct base *own = mesh->board ? &mesh->board[mesh->rank].bases[context % BASES] : NULL;

	if (!own || own->set)
		return false;
	own->context = context;
	own->life = life;
	own->base = base;
	__atomic_store_n(&own->set, 1, __ATOMIC_RELEASE);
	return true;
}

bool muster_mesh_base_left(const struct muster_mesh *mesh, uint32_t rank, uint32_t context,
			   uint32_t life, uint32_t *base)
{
	const struct base *its = mesh->board ? &mesh->board[rank].bases[context % BASES] : NULL;

	if (!its || !__atomic_load_n(&its->set, __ATOMIC_ACQUIRE) || its->context != context || its->life != life)
		return false;
	*base = its->base;
	return true;
}
