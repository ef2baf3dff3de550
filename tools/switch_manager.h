/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The switches of a process as their manager has them (muster-am; uapi/muster_manager.h): each has a
 * connection to it, is put into groups and out of them, and keeps these while there is no manager.
 */
#ifndef MUSTER_SWITCH_MANAGER_H
#define MUSTER_SWITCH_MANAGER_H

#include "switch_box.h"

struct switch_manager;

/** switch_manager_open() - of these; the manager may come later. Return: 0; -errno. */
int switch_manager_open(const char *address, const struct muster_fabric *fabric, struct switch_box *boxes,
			uint32_t nr, struct switch_manager **manager);
void switch_manager_close(struct switch_manager *manager);

/**
 * switch_manager_save() - write down what the manager has said, for another program that this process
 * becomes: the connections stay. Return: 0; -EAGAIN: something is to be said yet; -EIO.
 */
int switch_manager_save(const struct switch_manager *manager, FILE *to);
/** switch_manager_resume() - go on with it, in one that was just opened. Return: 0; -errno. */
int switch_manager_resume(struct switch_manager *manager, FILE *from);

/** switch_manager_fd() - readable when step() has something to do. */
int switch_manager_fd(const struct switch_manager *manager);
/** switch_manager_due_us() - when it has, whatever comes. */
uint64_t switch_manager_due_us(const struct switch_manager *manager);
/** switch_manager_step() - connect, and hear each once. Return: whether there was something to hear. */
bool switch_manager_step(struct switch_manager *manager, uint64_t now_us);

/** switch_manager_welcome() - 1: all are; 0: not yet; -errno: one was refused, and it has been said why. */
int switch_manager_welcome(const struct switch_manager *manager);

/** switch_manager_tell_losses() - which hosts of that switch have gone; before it knows itself. */
void switch_manager_tell_losses(const struct switch_manager *manager, const struct switch_box *box);

#endif /* MUSTER_SWITCH_MANAGER_H */
