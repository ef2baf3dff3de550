#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The device goes away under the traffic of 16 processes, many times and in each way that there
# is, in a guest of `muster-vm --hotplug --count-time`: stress.c says what must hold each time.
# UNBINDS, RELOADS, UNPLUGS, RESETS: how often.
. "$(dirname "$0")/guest.sh"

# What the kernel says meanwhile is more than it keeps.
dmesg --follow >kernel.log 2>&1 &
log_pid=$!

# usage: struck HOW TIMES
struck() {
	"$MUSTER_BUILD/selftests/guest/stress" "$@" >out 2>&1 || {
		cat out
		tail -n 30 kernel.log
		return 1
	}
	cat out >>"$tap_dir/figures"
}

never_complained() {
	kill $log_pid
	quiet_in <kernel.log
}

check "the driver loads" load
check "the device is unbound and bound ${UNBINDS:-1000} times" struck unbind "${UNBINDS:-1000}"
check "the driver is unloaded and loaded ${RELOADS:-100} times" struck reload "${RELOADS:-100}"
check "the device is unplugged and plugged ${UNPLUGS:-200} times" struck unplug "${UNPLUGS:-200}"
check "the device is reset ${RESETS:-200} times" struck reset "${RESETS:-200}"
[ ! -f figures ] || cat figures
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has never complained" never_complained
check "the kernel has nothing to complain of" kernel_quiet
finish
