#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Births and deaths of the device and its processes, in a guest: loading, unloading,
# unbinding, resets and kills while everything is open and messages are going.
. "$(dirname "$0")/guest.sh"

TIMES=${TIMES:-20}

repeat() {
	for _ in $(seq "$TIMES"); do
		"$@"
	done
}

load_and_unload() {
	load
	test -c /dev/infiniband/uverbs0
	unload
	fails test -e /dev/infiniband/uverbs0
}

bind() {
	echo "$(bdf)" >$DRIVER/bind
	within 5 test -c /dev/infiniband/uverbs0
}

unbind() {
	echo "$(bdf)" >$DRIVER/unbind
}

unbind_and_bind() {
	held unbind
	bind
}

reset() {
	echo 1 >"/sys/bus/pci/devices/$(bdf)/reset"
}

held_reset() {
	held reset
}

unload_and_load() {
	held unload
	load
}

kill_holder() {
	hold_start
	test "$(resources)" = "1 2 1 1"
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
	nothing_held
}

# Unreclaimable slabs, and all memory that is not free, in KiB; but for what files use. What is
# free may also lie in a list of a CPU, of which newer kernels let some MiB lie there.
memory() {
	echo 3 >/proc/sys/vm/drop_caches
	awk '$1 == "count:" { free += 4 * $2; next }
	{ kib[$1] = $2 }
	END {
		used = kib["MemTotal:"] - kib["MemFree:"] - free - kib["Cached:"] - kib["Buffers:"]
		print kib["SUnreclaim:"], used
	}' /proc/meminfo /proc/zoneinfo
}

# A kernel that watches keeps what was freed out of use for a while: a 32nd of its memory. What
# is not freed at all it names itself (kernel_quiet).
kept_freed() {
	[ -f "$LEAKS" ] || return 0
	awk '/^MemTotal:/ { print int($2 / 32) }' /proc/meminfo
}

# One holder's slabs are about 60 KiB, its rings 200 KiB: less than a tenth of that is noise.
memory_settles() {
	repeat "$@"
	before=$(memory)
	repeat "$@"
	repeat "$@"
	after=$(memory)
	echo "$* x $((2 * TIMES)): slabs and memory $before KiB before, $after KiB after"
	kept=$(kept_freed)
	test $((${after% *} - ${before% *})) -lt $((16 * TIMES + ${kept:-0}))
	test $((${after#* } - ${before#* })) -lt $((32 * TIMES + ${kept:-0}))
}

second_module() {
	fails load 2>err
	grep -q "File exists" err
}

incarnation_changes() {
	before=$("$MUSTER_BUILD/selftests/guest/hold" --incarnation)
	reset
	fails test "$before" = "$("$MUSTER_BUILD/selftests/guest/hold" --incarnation)"
}

check "the driver is loaded and unloaded $TIMES times" repeat load_and_unload
check "the driver loads" load
check "a second driver beside it is refused" second_module
check "a process that is killed leaves nothing when it has ended, $TIMES times" repeat kill_holder
check "the device is unbound under traffic, $TIMES times" repeat unbind_and_bind
check "the device is reset under traffic, $TIMES times" repeat held_reset
check "a reset begins a new incarnation" incarnation_changes
check "the driver is unloaded under traffic, $TIMES times" repeat unload_and_load
check "resets leave no memory behind" memory_settles held_reset
check "kills leave no memory behind" memory_settles kill_holder
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
