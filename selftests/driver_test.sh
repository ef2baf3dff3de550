#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together: what they do, show and refuse.
. "$(dirname "$0")/driver.sh"

# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

check "the ordinary tools show the device" in_guest 120 -- "$GUEST/tools_test.sh"

check "jobs and contexts are shown, to whom they may be" in_guest 120 -- "$GUEST/family_test.sh"
check "queue pairs have counters of their own" in_guest 120 -- "$GUEST/counter_test.sh"

# What they print as JSON is validated here, where that is quick.
diagnostics() {
	in_guest 600 -- "$GUEST/diag_test.sh" >log || {
		cat log
		return 1
	}
	can_validate || return 0
	for tool in $(sed -n 's/^#json \([^ ]*\) .*/\1/p' log | sort -u); do
		sed -n "s/^#json $tool //p" log >json
		cat json
		valid "$tool" json
	done
}
check "so do our diagnostics" diagnostics

engines() {
	for threads in 1 4; do
		in_guest 120 --engine=units=8,engine-threads=$threads -- "$GUEST/engines_test.sh"
	done
}
check "several ranks on one NIC have the bits of others, by one thread and by four" engines
check "the direct verbs do what they say" in_guest 120 -- "$GUEST/dv_test.sh"
check "ordinary verbs work between two guests" in_guest 300 -n 2 --lines=14 -- "$GUEST/verbs_test.sh"
if [ -x "$MUSTER_BUILD/userlib/examples/keysort.openmpi" ]; then
	check "so does an MPI on UCX on them" in_guest 300 -n 2 --net -- "$GUEST/mpi_test.sh"
else
	skip "so does an MPI on UCX on them" "there is no Open MPI; make mpi installs it"
fi
check "errors of the bus end a life, and the next begins" in_guest 180 --hotplug -- "$GUEST/bus_test.sh"
check "so does sleep" in_guest 120 -- "$GUEST/suspend_test.sh"
# Where nothing tells that it is a guest of ours, and there is no clone.
installed() {
	make -s -C "$tap_home" install INSTALL_PATH="$tap_dir/elsewhere" BUILD="$MUSTER_BUILD"
	MUSTER_MODULE=${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}
	export MUSTER_MODULE
	in_guest 180 -- unshare --pid --fork --mount-proc env -u MUSTER_BUILD \
		"$tap_dir/elsewhere/selftests/run_kselftest.sh" fault >log
	grep -x 'ok 1 selftests: muster: fault/health_test.sh' log
}
check "they run as the kernel's selftests do, installed" installed
check "devlink shows its health, and mends it" in_guest 120 -- "$GUEST/health_test.sh"
check "what does not fit together is refused" in_guest 120 --nics=2 -- "$GUEST/refuse_test.sh"
if grep -qF .kunit_test_suites "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}"; then
	check "the driver's own parts do what they say (KUnit)" in_guest 60 -- "$GUEST/kunit_test.sh"
else
	skip "the driver's own parts do what they say (KUnit)" "this kernel has no KUnit; KERNEL=debug has it"
fi
check "without a device the driver waits" in_guest 60 --nics=0 -- "$GUEST/no_device_test.sh"
finish
