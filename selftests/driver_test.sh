#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together: what they do, show and refuse.
. "$(dirname "$0")/driver.sh"

# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

check "what needs the clone runs in a guest" selftests_run 780 -- "$tap_home/run_kselftest.sh" clone
check "the ordinary tools show the device" selftest_passed clone/tools_test

# What they print as JSON is validated here, where that is quick.
diagnostics() {
	selftest_passed clone/diag_test
	can_validate || return 0
	for tool in $(sed -n 's/^# #json \([^ ]*\) .*/\1/p' kselftest | sort -u); do
		sed -n "s/^# #json $tool //p" kselftest >json
		cat json
		valid "$tool" json
	done
	test -s json
}
check "so do our diagnostics" diagnostics

if grep -qF .kunit_test_suites "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}"; then
	check "the driver's own parts do what they say (KUnit)" selftest_passed clone/kunit_test
else
	skip "the driver's own parts do what they say (KUnit)" "this kernel has no KUnit; KERNEL=debug has it"
fi

# By one thread: guests_test.sh.
check "several ranks on one NIC that four threads step have the bits of others" \
	in_guest 120 --engine=units=8,engine-threads=4 -- "$GUEST/engines_test.sh"
check "ordinary verbs work between two guests" in_guest 300 -n 2 --lines=14 -- "$GUEST/verbs_test.sh"
if [ -x "$MUSTER_BUILD/userlib/examples/keysort.openmpi" ]; then
	rest "so does an MPI on UCX on them" in_guest 300 -n 2 --net -- "$GUEST/mpi_test.sh"
else
	skip "so does an MPI on UCX on them" "there is no Open MPI; make mpi installs it"
fi
check "errors of the bus end a life, and the next begins" in_guest 180 --hotplug -- "$GUEST/bus_test.sh"
check "so does sleep" in_guest 120 -- "$GUEST/suspend_test.sh"
check "what does not fit together is refused" in_guest 120 --nics=2 -- "$GUEST/refuse_test.sh"
check "without a device the driver waits" in_guest 60 --nics=0 -- "$GUEST/no_device_test.sh"
finish
