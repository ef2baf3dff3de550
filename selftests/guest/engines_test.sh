#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Several ranks on one NIC, whose engines are stepped by threads (muster-vm
# --engine=engine-threads=N).
. "$(dirname "$0")/guest.sh"

# Each size is compared with what the host path gives.
perf() {
	MUSTER_DEVICE=verbs "$MUSTER_BUILD/tools/muster-run" --no-prefix -n 3 \
		"$MUSTER_BUILD/tools/muster_perf" -c -i 5 -x 0 -D 0.02 -m 8:8K allreduce >out
	cat out
	same 11 "$(grep -c 'equal *pass' out)"
}

ended_there() {
	test "$(cat /sys/class/infiniband/muster0/ports/1/hw_counters/sequences_ended)" -gt 100
}

check "the driver loads" load
check "three ranks on one NIC have the bits of the host path" perf
check "the NIC has done it" ended_there
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
