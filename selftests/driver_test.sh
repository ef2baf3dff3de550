#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together: each test of selftests/guest in a guest of
# its own. TIMES says how often what is repeated there is repeated (5; 20 for a release).
# Another kernel: MUSTER_VM_DIR and MUSTER_MODULE name it and its driver, MUSTER_PATIENCE how many
# times as long it takes.
. "$(dirname "$0")/tap.sh"

VM=$MUSTER_BUILD/tools/muster-vm
GUEST=$tap_home/guest
VM_DIR=${MUSTER_VM_DIR:-$MUSTER_BUILD/vm}
TIMES=${TIMES:-5}
export TIMES

[ -x "$VM_DIR/qemu-system-x86_64" ] && [ -f "$VM_DIR/vmlinux" ] && [ -x "$VM" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"
[ -f "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}" ] && [ -x "$MUSTER_BUILD/selftests/guest/hold" ] ||
	skip_all "driver or provider is not built; make check-guest builds them"

# usage: in_guest SECONDS [OPTION OF MUSTER-VM]... -- COMMAND...
in_guest() {
	seconds=$(($1 * ${MUSTER_PATIENCE:-1}))
	shift
	timeout --foreground "$seconds" "$VM" "$@"
}

check "the ordinary tools show the device" in_guest 120 -- "$GUEST/tools_test.sh"
check "the direct verbs do what they say" in_guest 120 -- "$GUEST/dv_test.sh"
check "what does not fit together is refused" in_guest 120 --nics=2 -- "$GUEST/refuse_test.sh"
check "one user does not get everything" in_guest 300 -- "$GUEST/quota_test.sh"
check "without a device the driver waits" in_guest 60 --nics=0 -- "$GUEST/no_device_test.sh"
check "births and deaths leave nothing behind" in_guest 900 -- "$GUEST/life_test.sh"
finish
