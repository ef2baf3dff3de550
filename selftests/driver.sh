# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What the tests of driver, provider and device together share: each script of
# selftests/guest in a guest of its own. To be sourced: . "$(dirname "$0")/driver.sh"
# TIMES says how often what is repeated there is repeated (5; 20 for a release).
# Another kernel: MUSTER_VM_DIR and MUSTER_MODULE name it and its driver, MUSTER_PATIENCE how many
# times as long it takes.
#
#   in_guest SECONDS [OPTION OF MUSTER-VM]... -- COMMAND...
#
# The seconds are the guest's own: those in which its QEMU waits for a CPU do not count.

# shellcheck source=selftests/tap.sh
. "$(dirname "$0")/tap.sh"

VM=$MUSTER_BUILD/tools/muster-vm
GUEST=$tap_home/guest
VM_DIR=${MUSTER_VM_DIR:-$MUSTER_BUILD/vm}
TIMES=${TIMES:-5}
export GUEST TIMES

[ -x "$VM_DIR/qemu-system-x86_64" ] && [ -f "$VM_DIR/vmlinux" ] && [ -x "$VM" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"
[ -f "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}" ] && [ -x "$MUSTER_BUILD/selftests/guest/hold" ] ||
	skip_all "driver or provider is not built; make check-guest builds them"

in_guest() {
	seconds=$(($1 * ${MUSTER_PATIENCE:-1}))
	shift
	"$VM" --seconds="$seconds" "$@"
}
