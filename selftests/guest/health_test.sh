#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What devlink shows of the device, and how it is brought back from there, in a guest.
. "$(dirname "$0")/guest.sh"

# usage: says WORDS COMMAND...: what devlink prints, on one line, has the words.
says() {
	words=$1
	shift
	devlink "$@" >out 2>&1 || { cat out; return 1; }
	tr -s '\n\t ' ' ' <out >flat
	cat flat
	grep -q -- "$words" flat
}

health() {
	command=$1
	shift
	devlink health "$command" "$device" reporter device "$@"
}

info_shows_it() {
	device=pci/$(bdf)
	fw=$(cat /sys/class/infiniband/*/fw_ver)
	abi=$(cat /sys/class/infiniband_verbs/uverbs0/abi_version)
	says "driver muster serial_number node-0 versions: running: fw $fw driver.abi $abi" dev info "$device"
}

# usage: is STATE ERRORS RECOVERS
is() {
	says "reporter device state $1 error $2 recover $3 " health show "$device" reporter device
}

failure() {
	health test
	wait "$hold_pid"
}

comes_back() {
	device=pci/$(bdf)
	is healthy 0 0
	says "state: up incarnation: [0-9]* lives: 1 " health diagnose "$device" reporter device
	before=$("$HOLD" --incarnation)
	hold_start
	failure || { cat hold.err; return 1; }
	within 10 is healthy 1 1
	says "state: up incarnation: [0-9]* lives: 2 " health diagnose "$device" reporter device
	fails same "$before" "$("$HOLD" --incarnation)"
	says "why: a test of the health reporter incarnation: $before status: 1 commands: [1-9]" \
		health dump show "$device" reporter device
	grep -q "last_answered: true events: 0 vps: 2 cqs: 2 contexts: 2 " flat
	devlink health dump clear "$device" reporter device
}

# Whoever has it open learns of it all the same.
administrator_brings_it_back() {
	device=pci/$(bdf)
	health set auto_recover false
	hold_start
	failure || { cat hold.err; return 1; }
	within 10 is error 2 1
	test ! -e /sys/class/infiniband/muster0
	says "state: down incarnation: 0 lives: 2 " health diagnose "$device" reporter device
	health recover
	is healthy 2 2
	"$HOLD" --incarnation
	health set auto_recover true
}

# Also while nobody has brought it back.
goes_while_it_is_down() {
	device=pci/$(bdf)
	health set auto_recover false
	health test
	within 10 is error 3 2
	unload
	fails devlink dev show "$device"
	load
	within 5 test -c /dev/infiniband/uverbs0
	is healthy 0 0
}

check "the driver loads" load
check "devlink tells what it is" info_shows_it
check "a device that failed comes back, and what was known of it is kept" comes_back
check "an administrator may keep that to himself" administrator_brings_it_back
check "the driver goes while the device is down" goes_while_it_is_down
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
