/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Another program in the place of muster-switchd's, in the same process, with the state that this one has
 * written down.
 */
#ifndef MUSTER_SWITCH_REPLACE_H
#define MUSTER_SWITCH_REPLACE_H

#include <stdio.h>
#include <sys/types.h>

/** switch_replace_state() - a file in memory to write to. NULL: there is none, and errno says why. */
FILE *switch_replace_state(void);

/**
 * switch_replace_try() - whether the program that is now where this one was started from knows what to do with a
 * state: a child of ours, which gets the same options, and --resume with the state's descriptor and --trial.
 * Return: its process; -errno.
 */
pid_t switch_replace_try(char **argv, FILE *state);
/** switch_replace_tried() - Return: 0: it does; -EAGAIN: that is not known yet; -errno. */
int switch_replace_tried(pid_t child);

/** switch_replace() - become that program, with a state. Return: -errno, if at all: this one goes on. */
int switch_replace(char **argv, FILE *state);

#endif /* MUSTER_SWITCH_REPLACE_H */
