/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bootstrap: how a rank finds its job from the environment, and the allgather
 * over which the job then agrees on everything else. Stands on the hub (hub.h).
 */
#ifndef MUSTER_BOOTSTRAP_H
#define MUSTER_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "muster.h"

/**
 * muster_bootstrap_env() - join the job that the environment names.
 * @oob: gets rank, size and allgather; end it with muster_bootstrap_close().
 * @why: gets what was wrong and what to do, when the call fails.
 *
 * MUSTER_RANK, MUSTER_SIZE, or what a launcher says (launcher.h); MUSTER_RENDEZVOUS: "unix:NAME",
 * an abstract UNIX socket on which rank 0 listens; "tcp:ADDRESS:PORT", where it does so by TCP, for
 * those who have MUSTER_KEY; "file:/PATH", where it says at which address, with a key (door.h);
 * "fd:N", an open stream to a hub; "/PATH", a character device that leads to one. Blocks until all ranks are there, at most
 * the deadline.
 *
 * Return: 0; -EINVAL: a variable, or what another rank says, is wrong;
 * -ETIMEDOUT: ranks are missing; -ECONNRESET: one has died; or what the system said.
 */
int muster_bootstrap_env(struct muster_oob *oob, char *why, size_t why_len);

/** muster_bootstrap_close() - leave; ranks that still gather are told. */
void muster_bootstrap_close(struct muster_oob *oob);

/** muster_bootstrap_error() - what the allgather that failed said; "" if none did. */
const char *muster_bootstrap_error(const struct muster_oob *oob);

/**
 * muster_bootstrap_deadline() - MUSTER_DEADLINE, in seconds there, 10 if it is not set.
 * Return: 0; -EINVAL and *why when it is not a number above 0.
 */
int muster_bootstrap_deadline(uint64_t *deadline_us, char *why, size_t why_len);

#endif /* MUSTER_BOOTSTRAP_H */
