/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ways in which a device is taken from those who use it, and brought back: by the
 * administrator, with the driver, out of its slot, or by a reset. For root in a guest of
 * `muster-vm --hotplug`. Functions return 0 or -errno.
 */
#ifndef GUEST_STRIKE_H
#define GUEST_STRIKE_H

enum strike { STRIKE_UNBIND, STRIKE_RELOAD, STRIKE_UNPLUG, STRIKE_RESET, STRIKES };

/* As they are called on command lines. */
extern const char *const strike_names[STRIKES];

/* Find the device, with the driver loaded, and what brings it back. */
int strike_open(enum strike how);
/* Returns when it is gone; after a reset it is there again. */
int strike_down(enum strike how);
/* Returns before it can be opened again. */
int strike_up(enum strike how);

#endif /* GUEST_STRIKE_H */
