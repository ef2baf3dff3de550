#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The direct verbs' own test programs, in a guest.
. "$(dirname "$0")/guest.sh"

# Of commands, events and lives.
events_are_traced() {
	device=$(bdf)
	traced "muster_admin_command: $device tag=[0-9]+ vp_create object=[0-9]+$"
	traced "muster_admin_reply: $device tag=[0-9]+ vp_create ok detail=0$"
	traced "muster_admin_reply: $device tag=[0-9]+ context_open busy detail="
	traced "muster_event: $device vp_error object=[0-9]+$"
	traced "muster_event: $device cq_overrun object=[0-9]+$"
	echo 1 >"/sys/bus/pci/devices/$device/reset"
	traced "muster_fence: $device incarnation=[0-9]+: as asked$"
	traced "muster_down: $device node=0 incarnation=[0-9]+$"
	traced "muster_up: $device node=0 incarnation=[0-9]+$"
}

# Each reply has its command; the buffer may have lost the oldest of them.
replies_follow_commands() {
	awk '/muster_admin_command:/ { asked[$7] = $8 }
	/muster_admin_reply:/ && asked[$7] && asked[$7] != $8 { print "of another: " $0; bad = 1 }
	/muster_admin_reply:/ { replies++ }
	END { exit bad || !replies }' $TRACING/trace
}

refusals_are_debugged() {
	dmesg | grep -q "muster .*: admin command 7 refused: status 4, byte "
}

check "the driver loads" load
check "its tracepoints are there" trace_start
echo 'module muster +p' >/proc/dynamic_debug/control
check "the direct verbs do what they say" "$MUSTER_BUILD/selftests/guest/dv_test"
check "so do the largest receive rings" "$MUSTER_BUILD/selftests/guest/ring_test"
check "queue pairs do what verbs say" "$MUSTER_BUILD/selftests/guest/qp_test"
check "so do completion queues" "$MUSTER_BUILD/selftests/guest/cq_test"
check "and so do connections" "$MUSTER_BUILD/selftests/guest/rc_test"
check "so do requests put together call by call" "$MUSTER_BUILD/selftests/guest/qpex_test"
check "and so do receives that they share" "$MUSTER_BUILD/selftests/guest/srq_test"
modprobe vgem || :
check "memory may be large, or another driver's" "$MUSTER_BUILD/selftests/guest/mr_test"
check "who keeps memory registered knows when it goes" "$MUSTER_BUILD/selftests/guest/watch_test"
check "who leaves is lost, whoever closes its file" "$MUSTER_BUILD/selftests/guest/leave_test"
check "what is refused is told by dynamic debug" refusals_are_debugged
check "commands, events and lives are traced" events_are_traced
check "replies are traced with their commands" replies_follow_commands
check "nothing is held" nothing_held
check "the kernel has nothing to complain of" kernel_quiet
finish
