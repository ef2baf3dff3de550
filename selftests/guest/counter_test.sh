#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Counters of single queue pairs, by `rdma statistic qp`, in a guest.
. "$(dirname "$0")/guest.sh"

PORT=muster0/1

# talk(1) on a connection of its own, whose ends are $a and $b; it ends with its input.
talk_start() {
	rm -f talk.in && mkfifo talk.in
	"$MUSTER_BUILD/selftests/guest/talk" <talk.in >talk.out 2>talk.err &
	talk_pid=$!
	exec 4>talk.in
	within 10 grep -q ready talk.out || { cat talk.err; return 1; }
	read -r _ a b <talk.out
}

talk_end() {
	exec 4>&-
	wait "$talk_pid" || { cat talk.err; return 1; }
}

# usage: lines WORD N: so many of them has talk said
lines() {
	test "$(grep -c "^$1$" talk.out)" = "$2"
}

# usage: say WORD...
say() {
	for word; do echo "$word" >&4; done
}

# Each counter of queue pairs in a line of its own.
counters() {
	rdma statistic qp show link $PORT | tr -d '\n\t' | sed 's/link /\nlink /g; s/ \+/ /g' | grep . || :
}

# usage: counter_of QP: its number
counter_of() {
	counters | sed -n "s|^link $PORT cntn \([0-9]*\) .*LQPN.*\<$1\>.*|\1|p"
}

# usage: value_of COUNTER NAME
value_of() {
	counters | sed -n "s|^link $PORT cntn $1 .*\<$2 \([0-9]*\).*|\1|p"
}

# usage: total NAME, of all queue pairs that there have been
total() {
	rdma statistic show link $PORT | sed -n "s/.* $1 \([0-9]*\).*/\1/p"
}

bind_qp() {
	rdma statistic qp bind link $PORT "$@"
}

unbind_qp() {
	rdma statistic qp unbind link $PORT "$@"
}

# usage: bound QP: the number of its new counter
bound() {
	bind_qp lqpn "$1"
	counter_of "$1"
}

# usage: values COUNTER NAME...
values() {
	counter=$1
	shift
	for name; do
		value_of "$counter" "qp_$name"
	done | xargs
}

bound_queue_pairs_count() {
	talk_start
	at_a=$(bound "$a")
	at_b=$(bound "$b")
	say receive receive send send
	within 10 lines sent 2
	within 10 lines received 2
	counters
	same "2 0 200 0" "$(values "$at_a" requests receives bytes_out errors)"
	same "0 2 200 0" "$(values "$at_b" requests receives bytes_in errors)"
	same "$(value_of "$at_a" qp_packets_out)" "$(value_of "$at_b" qp_packets_in)"
	talk_end
	same "" "$(counters)"
}

# What single queue pairs count is a part of what the port counts, also when that has ended.
the_port_counts_them_too() {
	before=$(total qp_requests)
	talk_start
	at_a=$(bound "$a")
	say receive send
	within 10 lines sent 1
	same $((before + 1)) "$(total qp_requests)"
	unbind_qp cntn "$at_a" lqpn "$a"
	same "" "$(counters)"
	same $((before + 1)) "$(total qp_requests)"
	say receive send
	within 10 lines sent 2
	same $((before + 2)) "$(total qp_requests)"
	same $((before + 2)) "$(cat /sys/class/infiniband/muster0/ports/1/hw_counters/qp_requests)"
	at_a=$(bound "$a")
	same 0 "$(value_of "$at_a" qp_requests)"
	talk_end
	same $((before + 2)) "$(total qp_requests)"
}

# usage: some COUNTER NAME
some() {
	test "$(value_of "$1" "$2")" != 0
}

a_missing_receive_is_counted() {
	talk_start
	at_a=$(bound "$a")
	at_b=$(bound "$b")
	say send
	within 10 some "$at_a" qp_rnr_in
	some "$at_b" qp_rnr_out
	say receive
	within 10 lines sent 1
	same 1 "$(value_of "$at_a" qp_requests)"
	talk_end
}

one_counter_for_two() {
	talk_start
	both=$(bound "$a")
	bind_qp lqpn "$b" cntn "$both"
	same "$both" "$(counter_of "$b")"
	say receive send
	within 10 lines sent 1
	within 10 lines received 1
	same "1 1" "$(values "$both" requests receives)"
	talk_end
	same "" "$(counters)"
}

ports_are_refused() {
	hold_start
	vp=$("$MUSTER_BUILD/selftests/guest/nldev" "$(rdma dev show muster0 | sed 's/:.*//')" |
		sed -n 's/^lqpn \([0-9]*\) .*/\1/p' | head -n 1)
	test -n "$vp"
	fails bind_qp lqpn "$vp"
	fails setpriv --reuid 65534 --clear-groups rdma statistic qp bind link $PORT lqpn "$vp"
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
}

# Those that come from now on, one counter for each type and process.
new_ones_are_bound_by_themselves() {
	rdma statistic qp set link $PORT auto type on
	talk_start
	same "$(counter_of "$a")" "$(counter_of "$b")"
	say receive send
	within 10 lines sent 1
	same 1 "$(value_of "$(counter_of "$a")" qp_requests)"
	talk_end
	rdma statistic qp set link $PORT auto off
}

counters_go_with_the_device() {
	talk_start
	bind_qp lqpn "$a"
	echo 1 >"/sys/bus/pci/devices/$(bdf)/reset"
	within 10 rdma dev show muster0
	same "" "$(counters)"
	exec 4>&-
	kill -9 "$talk_pid"
	wait "$talk_pid" || :
}

check "the driver loads" load
check "queue pairs that are bound have counters of their own" bound_queue_pairs_count
check "the port counts them too" the_port_counts_them_too
check "a missing receive is counted at both ends" a_missing_receive_is_counted
check "two may have one counter, which goes with them" one_counter_for_two
check "new ones are bound by themselves, if that is wanted" new_ones_are_bound_by_themselves
# Only then: some kernels take a counter that was refused for one that is there, and
# bind no more by themselves in that life of the device (Documentation/driver.md).
check "virtual ports have none, and who has no rights binds nothing" ports_are_refused
check "counters go with the device's life" counters_go_with_the_device
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
