#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Everything that processes do with the driver, once, and an unbind under a process that has all of
# it open: with the right driver, of which the kernel has nothing to say, then with each of those
# that have a bug, of which it must say what it is.
# usage: planted.sh [NAME REGEX]...    drivers of $PLANTED/NAME.ko
. "$(dirname "$0")/guest.sh"

unbind() {
	echo "$(bdf)" >$DRIVER/unbind
}

used() {
	load
	"$MUSTER_BUILD/selftests/guest/faults" --once
	held unbind
	unload
}

used_quietly() {
	used
	kernel_quiet
}

# What a bug does to those that use it is its own affair.
said() {
	{ dmesg | without_its_own | grep -E "$complaints" || true; no_leaks || true; } >kernel.log
	cat kernel.log
	grep -qE "$1" kernel.log
}

# usage: caught NAME REGEX
caught() {
	dmesg -C
	echo 64 >/sys/kernel/debug/dma-api/num_errors	# of which what is not the driver's doing takes some
	echo clear >$LEAKS
	MUSTER_MODULE=$PLANTED/$1.ko
	used || true
	said "$2"
}

check "nothing is said without a bug" used_quietly
while [ $# -gt 0 ]; do
	check "$1 is caught" caught "$1" "$2"
	shift 2
done
finish
