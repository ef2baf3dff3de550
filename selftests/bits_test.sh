#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# NIC path and host path give the same bits; so do repeated runs and every wire.
. "$(dirname "$0")/tap.sh"

ranks=$MUSTER_BUILD/selftests/ranks
checked=$MUSTER_BUILD/san/selftests/ranks	# the same program under sanitizers

run() {
	"$MUSTER_BUILD/tools/muster-run" -n "$@"
}

some=$(little_or some bits)	# lengths

# digest N PROGRAM MEMORY [LENGTHS]: what the ranks found, as a number
digest() {
	run "$1" "$2" "${4:-bits}" "$3" >"out.$1.$3" || return
	sed -n 's/.*digest //p' "out.$1.$3"
}

repeatable() {
	first=$(digest "$1" "$ranks" registered)
	test -n "$first"
	same "$first" "$(digest "$1" "$ranks" registered)"
}

for n in 1 2 3 4 5 6 7 8 17; do
	check "$n ranks: NIC path and host path have the same bits" digest $n "$ranks" registered
done
for n in 9 10 11 12 13 14 15 16 32; do
	check "$n ranks: the same, of some lengths" digest $n "$ranks" registered "$some"
done
check "the same bits when it is run again" repeatable 4

memory_alike() {
	same "$(digest 4 "$ranks" registered)" "$(digest 4 "$ranks" plain)"
}
check "the same bits on plain and on registered memory" memory_alike

wire_alike() {
	ring=$(digest 3 "$ranks" registered)
	test -n "$ring"
	same "$ring" "$(MUSTER_WIRE=$1 digest 3 "$ranks" registered)"
}
check "the same bits over UNIX sockets as over memory rings" wire_alike unix
check "the same bits over UDP as over memory rings" wire_alike udp

# An engine of the least there is: what an architect may ask for.
small_alike() {
	large=$(digest 4 "$ranks" plain "$some")
	test -n "$large"
	same "$large" "$(MUSTER_ENGINE=units=1,buffer=0,window=1,pulses=1 MUSTER_WIRE=$1 digest 4 "$ranks" plain "$some")"
}
check "the same bits by one unit without buffer, a window and pulses of one" small_alike ring
check "the same over UNIX sockets" small_alike unix

check "clean under sanitizers, registered memory" digest 3 "$checked" registered "$some"
check "clean under sanitizers, plain memory" digest 5 "$checked" plain "$some"

check "several operations in flight, and groups" run 5 "$checked" started

apart_over() {
	MUSTER_WIRE=$1 run 4 "$checked" creates,overtakes
}
for wire in ring unix udp; do
	check "no call stops what was started before it, one communicator waits for no other's queue ($wire)" apart_over $wire
done
finish
