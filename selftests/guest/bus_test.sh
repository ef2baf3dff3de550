#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the bus does to the device and its driver, in a guest of `muster-vm --hotplug`: errors
# that it reports (AER), injected by the kernel as if the device had sent them. And its cable.
. "$(dirname "$0")/guest.sh"

# A completion that did not come may be lived with; a packet that makes no sense not.
NON_FATAL='\000\100\000\000'
FATAL='\000\000\004\000'
NOTHING='\000\000\000\000'

# usage: inject UNCORRECTABLE     (struct aer_error_inj: place, errors, header, domain)
inject() {
	bus=$(printf '%o' "0x$(bdf | cut -d: -f2)")
	printf "\\$bus\\000\\000\\000$1$NOTHING$NOTHING$NOTHING$NOTHING$NOTHING$NOTHING" \
		>/dev/aer_inject
}

# It dies cleanly, and comes back by itself.
error_ends_a_life() {
	before=$("$HOLD" --incarnation)
	held inject "$1"
	within 30 test -c /dev/infiniband/uverbs0
	fails test "$before" = "$("$HOLD" --incarnation)"
}

mended() {
	dmesg | grep -q "$1"
	held unbind
	echo "$(bdf)" >$DRIVER/bind
	within 5 test -c /dev/infiniband/uverbs0
}

unbind() {
	echo "$(bdf)" >$DRIVER/unbind
}

check "the driver loads" load
if modprobe aer_inject 2>/dev/null || [ -c /dev/aer_inject ]; then
	check "an error that the bus can live with ends a life" error_ends_a_life "$NON_FATAL"
	check "and so does one that resets the bus" error_ends_a_life "$FATAL"
	check "the kernel says that it recovered, and the device works" mended "device recovery successful"
else
	skip "errors of the bus" "this kernel injects none (aer_inject)"
fi
if [ -e /dev/virtio-ports/org.muster.monitor ]; then
	check "a cable that is pulled out, or put back, is told" "$MUSTER_BUILD/selftests/guest/link"
else
	skip "a cable that is pulled out" "nobody here can pull it (muster-vm --hotplug)"
fi
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
