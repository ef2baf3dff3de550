#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver in a guest without a Muster NIC.
. "$(dirname "$0")/guest.sh"

no_device_opens() {
	fails "$HOLD" 2>err
	same "hold: open: No such device" "$(cat err)"
}

check "the driver loads" load
check "there is no device to open" no_device_opens
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
