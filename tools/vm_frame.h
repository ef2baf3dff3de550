/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the virtual machine runner (vm.c) and the agent in each guest
 * (guest_agent.c) say to each other over the control port: frames of a header
 * and length bytes. Both run on one machine from one build, so the layout
 * needs no version; but neither trusts a length from the other.
 */
#ifndef MUSTER_VM_FRAME_H
#define MUSTER_VM_FRAME_H

#include <stdint.h>

#define VM_PORT_CONTROL		"org.muster.control"
#define VM_PORT_RENDEZVOUS	"org.muster.rendezvous"	/* then .0, .1, ... */
#define VM_PORT_MONITOR		"org.muster.monitor"	/* QMP of the guest's own QEMU */

enum {
	VM_FRAME_MAX = 64 << 10,	/* bytes after the header */
	VM_PROGRAMS_MAX = 64,		/* that run at once in one guest */
	VM_CONNECTIONS_MAX = 32,	/* that these have to the host's server at once */
};

enum vm_frame_type {
	VM_FRAME_HELLO = 1,	/* guest: up and listening */
	VM_FRAME_RUN = 2,	/* host: start a program; see below */
	VM_FRAME_INPUT = 3,	/* host: bytes for its standard input; none: end of file */
	VM_FRAME_SIGNAL = 4,	/* host: status is the signal for its process group */
	VM_FRAME_OUTPUT = 5,	/* guest: bytes it wrote; status is 1 or 2 */
	VM_FRAME_EXIT = 6,	/* guest: it ended; status as from waitpid() */
	VM_FRAME_REFUSED = 7,	/* guest: it could not be started; status is the errno */
	VM_FRAME_POWEROFF = 8,	/* host */
	VM_FRAME_LISTEN = 9,	/* host: programs may connect to its server at that address */
	VM_FRAME_DIAL = 10,	/* guest: one does; id is the guest's number for that, in these: */
	VM_FRAME_MESSAGE = 11,	/* either */
	VM_FRAME_HANGUP = 12,	/* either: it has ended, or could not begin */
};

/*
 * RUN carries strings, each with its terminating 0: working directory, number
 * of arguments in decimal, the arguments, then the environment. status is
 * VM_RUN_* flags.
 */
enum vm_run_flag {
	VM_RUN_TERMINAL = 1,	/* on a pseudo terminal: an interactive program */
};

struct vm_frame {
	uint32_t length;
	uint16_t type;
	uint16_t id;		/* the host's number for a program, the guest's for a connection */
	int32_t status;
};

#endif /* MUSTER_VM_FRAME_H */
