/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections that programs in a guest have to a server of the host, by messages (SOCK_SEQPACKET): each is
 * one between program and agent, frames of the control port (vm_frame.h), and one between the runner and
 * the server. This is the table that agent and runner have of them, by the number that both know.
 */
#ifndef MUSTER_VM_CONNECTIONS_H
#define MUSTER_VM_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "vm_frame.h"

struct vm_connections {
	unsigned int nr;
	struct vm_connection {
		int fd;
		uint16_t id;
	} list[VM_CONNECTIONS_MAX];
};

/* Takes the descriptor: 0; -EEXIST; -ENOSPC, and it is closed. */
int vm_connections_add(struct vm_connections *all, uint16_t id, int fd);
/* Its descriptor; -1: there is no such connection. */
int vm_connections_fd(const struct vm_connections *all, uint16_t id);
void vm_connections_close(struct vm_connections *all, uint16_t id);
void vm_connections_close_all(struct vm_connections *all);

/* A message, of VM_FRAME_MAX bytes at most: its length; 0: none is there; -1: the connection is at its end. */
int vm_connection_read(int fd, void *message);
/* 0; -1: the connection is at its end, as it is if the other end does not read. */
int vm_connection_write(int fd, const void *message, size_t bytes);

#endif /* MUSTER_VM_CONNECTIONS_H */
