/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What whoever runs a network has its manager do (muster-am --cut, --clean, --drain).
 */
#ifndef MUSTER_AM_ORDER_H
#define MUSTER_AM_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * am_order_cut() - the link between two switches, by number, is down, as if it were unplugged: both see it as
 * lost, and what they still send each other is dropped. So it stays until the network is started anew.
 * Return: 0; -errno, and why.
 */
int am_order_cut(const char *manager, uint32_t first, uint32_t second, char *why, size_t why_len);

/** am_order_clean() - all groups fail, and go; when none of them is left: 0; -errno, and why. */
int am_order_clean(const char *manager, char *why, size_t why_len);

/**
 * am_order_drain() - ways and groups move away from a switch; when nothing goes over it any more: 0. It can
 * be stopped then. back: it may be used again. Return: 0; -errno, and why.
 */
int am_order_drain(const char *manager, uint32_t number, bool back, char *why, size_t why_len);

#endif /* MUSTER_AM_ORDER_H */
