#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver under calls that make no sense, in a guest: SEED and CALLS say which and how many,
# REPLAY names a file of programs to run instead. Looking for leaks takes a kernel half of its time: it
# does in the first twentieth.
. "$(dirname "$0")/guest.sh"

# How far it is is for who waits, not for the log of a case.
exec 3>&2
fuzzed() {
	chmod 666 /dev/infiniband/uverbs0
	"$MUSTER_BUILD/selftests/guest/fuzz_driver" "$@" >out 2>&3 || {
		sed -n '/^the kernel says/,$p' out | sed '1d' >"$tap_dir/programs"
		grep '^the kernel says' out
		dmesg | tail -n 35
		return 1
	}
	# Calls that the device has not heard of are no test of it; what is run again are a few.
	commands=$(cat /sys/class/infiniband/muster0/ports/1/hw_counters/admin_commands)
	echo "# of the calls came $commands admin commands" >>out
	[ "$1" = --replay ] || test "$commands" -gt 100
	cat out >>"$tap_dir/figures"
}

# What ends with a word of the kernel's, which is no complaint here.
leaks_off() {
	kernel_quiet
	echo off >$LEAKS
	dmesg -C
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
	calls=${CALLS:-1000000} seed=${SEED:-1}
	if [ -f $LEAKS ]; then
		check "$((calls / 20)) calls of seed $seed harm nobody" fuzzed "$seed" $((calls / 20))
		check "they leak nothing" leaks_off
		LEAKS=/dev/null
		calls=$((calls - calls / 20)) seed=$((seed + calls))
	fi
	check "$calls calls of seed $seed harm nobody" fuzzed "$seed" "$calls"
fi
[ ! -f figures ] || cat figures
[ ! -f programs ] || sed 's/^/#replay /' programs
check "the device works as before" still_works
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
