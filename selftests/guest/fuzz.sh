#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver under calls that make no sense, in a guest: SEED and CALLS say which and how many,
# REPLAY names a file of programs to run instead.
. "$(dirname "$0")/guest.sh"

fuzzed() {
	chmod 666 /dev/infiniband/uverbs0
	"$MUSTER_BUILD/selftests/guest/fuzz_driver" "$@" >out || {
		sed -n '/^the kernel says/,$p' out | sed '1d' >"$tap_dir/programs"
		grep '^the kernel says' out
		dmesg | tail -n 35
		return 1
	}
	# Calls that the device has not heard of are no test of it.
	commands=$(cat /sys/class/infiniband/muster0/ports/1/hw_counters/admin_commands)
	echo "# of the calls came $commands admin commands" >>out
	test "$commands" -gt 100
	cat out >>"$tap_dir/figures"
}

still_works() {
	before=$("$HOLD" --incarnation)
	hold_start
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
	within 10 nothing_held
	echo "$before"
}

check "the driver loads" load
if [ -n "${REPLAY:-}" ]; then
	check "the programs of $REPLAY harm nobody" fuzzed --replay "$REPLAY"
else
	check "${CALLS:-1000000} calls of seed ${SEED:-1} harm nobody" fuzzed "${SEED:-1}" "${CALLS:-1000000}"
fi
[ ! -f figures ] || cat figures
[ ! -f programs ] || sed 's/^/#replay /' programs
check "the device works as before" still_works
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
