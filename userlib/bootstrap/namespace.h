/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The network namespace in which ranks meet. Usually it is the one they are in. Where
 * each is in one of its own, a host in all but memory (muster-run --bump), the
 * environment names one that they share, and the sockets between ranks are made there.
 */
#ifndef MUSTER_NAMESPACE_H
#define MUSTER_NAMESPACE_H

#include <stddef.h>

struct sockaddr_un;

/**
 * muster_namespace_enter() - this thread goes to MUSTER_NAMESPACE, if that is set.
 * @home: what muster_namespace_leave() is to be given.
 * Return: 0; -errno: it is where it was.
 */
int muster_namespace_enter(int *home);
void muster_namespace_leave(int home);

/** muster_namespace_socket() - an AF_UNIX socket for ranks to meet. Return: it, or -errno. */
int muster_namespace_socket(int type);

/**
 * muster_namespace_address() - where to meet, as users write it: a path, or a name behind an @.
 * Return: how long the address is; -ENAMETOOLONG of more than it takes, and of nothing.
 */
int muster_namespace_address(const char *text, size_t len, struct sockaddr_un *un);

#endif /* MUSTER_NAMESPACE_H */
