#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What does not fit together, and a device that fails: clear errors, and nothing
# else disturbed. In a guest with two NICs.
. "$(dirname "$0")/guest.sh"

another_abi() {
	IBV_DRIVERS=$MUSTER_BUILD/selftests/guest/abi/libmuster ibv_devices >out 2>&1
	cat out
	numbers=$(sed -n 's/.*does not support the kernel ABI of \([0-9]*\) (supports \([0-9]*\) to \([0-9]*\)).*/\1 \2 \3/p' out)
	read -r driver least most <<-EOF
		$numbers
	EOF
	same "$((driver + 1)) $((driver + 1))" "$least $most"
	fails grep -q "^ *muster0" out
}

two_devices() {
	same 2 "$(ibv_devices | grep -c muster)"
}

# Without bus mastering the device can neither read commands nor answer them.
master_off() {
	setpci_byte "$(bdf)" 4 2
}

# usage: setpci_byte BDF OFFSET VALUE
setpci_byte() {
	printf "\\$(printf %o "$3")" |
		dd of="/sys/bus/pci/devices/$1/config" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

device_fails() {
	held master_off_and_call
	within 5 "$HOLD" --incarnation
	dmesg | grep -q "device does not answer an admin command: resetting the device"
	dmesg | grep -q "device is up again"
	traced "muster_fence: $(bdf) incarnation=[0-9]+: device does not answer an admin command$"
}

master_off_and_call() {
	master_off
	timeout 30 cat "/sys/class/infiniband/$(ls "/sys/bus/pci/devices/$(bdf)/infiniband")/ports/1/hw_counters/doorbells" ||
		:
}

# Registers that read as all ones: what it takes for a life not to begin.
memory_off_and_on() {
	bdf=$(bdf)
	setpci_byte "$bdf" 4 0
	echo 1 >"/sys/bus/pci/devices/$bdf/reset"
	test ! -e "/sys/bus/pci/devices/$bdf/infiniband"
	dmesg | grep -q "device stays down"
	traced "muster_stays_down: $bdf err=-[0-9]+ delay_ms=[0-9]+$"
	setpci_byte "$bdf" 4 2
	within 60 test -e "/sys/bus/pci/devices/$bdf/infiniband"
	"$HOLD" --incarnation
}

check "the driver loads" load
check "its tracepoints are there" trace_start
check "two NICs are two devices" two_devices
check "a provider of another ABI version says both numbers" another_abi
check "a device that does not answer is reset and comes back" device_fails
check "two NICs are two devices again" two_devices
check "a device that does not come back at once is tried again" memory_off_and_on
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
