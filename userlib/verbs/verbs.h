/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The verbs device: a real NIC, through libibverbs and the direct verbs. It is
 * a library of its own, libmuster-verbs.so, that libmuster loads when
 * MUSTER_DEVICE=verbs asks for it, so that programs without a NIC need none of
 * this.
 */
#ifndef MUSTER_VERBS_H
#define MUSTER_VERBS_H

#include <stddef.h>

struct muster_dev;

/**
 * muster_verbs_open() - open a NIC and a virtual port on it.
 *
 * MUSTER_NIC names the ibverbs device; without it the first Muster NIC is taken.
 * @why: on failure gets what was wrong and what to do.
 * Return: 0; -ENODEV: no NIC, no driver or no provider; or what the verbs said.
 */
int muster_verbs_open(struct muster_dev **dev, char *why, size_t why_len);

/* none.c: why no NIC opens (of that name; NULL: of any), and what to do. Returns -ENODEV. */
int muster_verbs_say_none(const char *name, char *why, size_t why_len);

#endif /* MUSTER_VERBS_H */
