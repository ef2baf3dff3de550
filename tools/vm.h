/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A virtual cluster: guests that share the host's root read-only, each with
 * Muster NICs joined by a wire, and programs started in them from the host.
 * Guests are child processes of the caller and die with it.
 *
 * One thread at a time. Nothing blocks but muster_vm_start() and
 * muster_vm_call(); everything else is driven by one descriptor to poll,
 * muster_vm_fd(), and muster_vm_step() when it is readable. Errors are
 * explained on stderr, with a guest's last console lines where it died.
 */
#ifndef MUSTER_VM_H
#define MUSTER_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm_frame.h"

struct muster_vm;

enum {
	MUSTER_VM_GUESTS_MAX = 64,
	MUSTER_VM_NICS_MAX = 8,		/* of one guest */
	/*
	 * Rendezvous ports of one guest, one less with hotplug. For n ports, the agent's among them, QEMU
	 * has 2n + 1 things to say before the guest's kernel has taken the first; it has room for 32.
	 */
	MUSTER_VM_PORTS_MAX = 14,
};

struct muster_vm_config {
	unsigned int nr_guests;
	unsigned int nr_nics;		/* of each guest; 0 is allowed */
	unsigned int nr_ports;		/* rendezvous ports of each guest, one per rank in it */
	unsigned int memory_mib;	/* of each guest; 0: what dir/memory says, or 768 */
	unsigned int boot_timeout_ms;	/* of silence while QEMU has a CPU; 0: 60 s; 15 s if not tcg */
	const char *accel;		/* NULL: "tcg"; "kvm" may be there and not run a guest */
	const char *dir;		/* build/vm: QEMU, kernel, initrd */
	const char *agent;		/* path of the guest_agent program */
	const char *driver;		/* path of a module, loaded before a guest answers; NULL: none */
	const char *wire;		/* of all NICs; NULL: UNIX sockets of this cluster's own */
	const uint32_t *uplinks;	/* of each NIC, by node: the switch that it is at; NULL: there are none */
	uint32_t uplink_life;		/* of these */
	const char *server;		/* its address on this host (SOCK_SEQPACKET), and in guests; NULL: none */
	bool network;			/* an Ethernet between guests 0 and 1, by virtio */
	bool count_instructions;	/* a little slower; for muster_vm_instructions() */
	int cancel_fd;			/* readable while guests boot: give up; 0: none */
	const char *nic_options;	/* added to each -device muster; NULL: none */
	bool hotplug;			/* NIC i is nic<i> in slot<i>, and the guest has QEMU's monitor */
	bool count_time;		/* by instructions: an hour of waiting is no time there */
};

/*
 * Fill in dir and agent, for a program in build/tools: beside it, or where
 * MUSTER_VM_DIR says. 0, or -errno after saying why. The strings are static.
 */
int muster_vm_find(struct muster_vm_config *config);

/* Told from muster_vm_step() and muster_vm_call(). Each may be NULL. */
struct muster_vm_events {
	void (*output)(void *arg, unsigned int guest, uint16_t id, int fd, const char *data,
		       size_t len);
	/* status as from waitpid(); a program of a guest that died ends by SIGKILL */
	void (*exited)(void *arg, unsigned int guest, uint16_t id, int status);
	void (*refused)(void *arg, unsigned int guest, uint16_t id, int error);
	void (*died)(void *arg, unsigned int guest);
};

struct muster_vm_program {
	uint16_t id;			/* the caller's number, unique in the guest while it runs */
	int flags;			/* VM_RUN_* */
	const char *cwd;		/* NULL: / */
	char *const *argv;		/* argv[0] is looked up in PATH */
	char *const *envp;		/* the whole environment */
};

/*
 * Boot all guests side by side and wait until each answers.
 * Returns 0 and the cluster, or -errno with nothing left running: -ENOENT if
 * something is not built, -ETIMEDOUT, -EINTR for cancel_fd, -EIO if a guest died
 * while it booted.
 */
int muster_vm_start(const struct muster_vm_config *config, const struct muster_vm_events *events,
		    void *arg, struct muster_vm **vm);

/* Kill the guests and forget them; NULL is allowed. */
void muster_vm_stop(struct muster_vm *vm);

int muster_vm_fd(const struct muster_vm *vm);

/* Take in what the guests said, at most timeout_ms from now (-1: when they say it). */
void muster_vm_step(struct muster_vm *vm, int timeout_ms);

/* 0; -EPIPE if the guest is dead; -E2BIG if the strings do not fit in VM_FRAME_MAX. */
int muster_vm_run(struct muster_vm *vm, unsigned int guest, const struct muster_vm_program *program);
int muster_vm_signal(struct muster_vm *vm, unsigned int guest, uint16_t id, int signal);
/* len 0: end of input. At most VM_FRAME_MAX bytes at once. */
int muster_vm_input(struct muster_vm *vm, unsigned int guest, uint16_t id, const void *data,
		    size_t len);

/*
 * Run one program to its end, stepping the cluster meanwhile: its exit status
 * as a shell would give it (128 + signal), or -errno.
 */
int muster_vm_call(struct muster_vm *vm, unsigned int guest,
		   const struct muster_vm_program *program);

/*
 * Host's end of a guest's rendezvous port, a stream. It belongs to the cluster.
 * The guest opens /dev/virtio-ports/org.muster.rendezvous.PORT.
 */
int muster_vm_port_fd(const struct muster_vm *vm, unsigned int guest, unsigned int port);

bool muster_vm_alive(const struct muster_vm *vm, unsigned int guest);
/* QEMU's process, for tests that kill a whole guest. */
int muster_vm_pid(const struct muster_vm *vm, unsigned int guest);
/* A clock that stands while any of their QEMUs waits for a CPU: for limits on a busy host. */
int64_t muster_vm_clock_ms(const struct muster_vm *vm);
/* Instructions that the guest has executed since power-on, idle ones too; 0: not counted. */
uint64_t muster_vm_instructions(const struct muster_vm *vm, unsigned int guest);

#endif /* MUSTER_VM_H */
