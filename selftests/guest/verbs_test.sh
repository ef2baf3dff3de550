#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ordinary programs of ordinary verbs, unmodified, between two guests: in guest 0 their server,
# in guest 1 the client. What they tell each other by TCP beforehand goes over a line of
# muster-vm, one a program.
. "$(dirname "$0")/guest.sh"

PORT=18515
line=0

listening() {
	grep -q "$(printf ':%04X 0*:0000 0A' $PORT)" /proc/net/tcp /proc/net/tcp6
}

# usage: between PROGRAM...: the same in both guests
between() {
	status=0
	exec 3<>/dev/virtio-ports/org.muster.rendezvous.$line
	if [ "$MUSTER_GUEST" = 0 ]; then
		"$@" >out 2>&1 &
		server=$!
		within 60 listening
		busybox nc 127.0.0.1 $PORT <&3 >&3 || :
		wait $server || status=$?
	else
		busybox nc -l -p $PORT <&3 >&3 &
		within 60 listening
		"$@" 127.0.0.1 >out 2>&1 || status=$?
	fi
	cat out
	return $status
}

# usage: pingpong PROGRAM [OPTION]...
pingpong() {
	between "$@"
	grep -q "iters in" out
}

# usage: perftest PROGRAM [OPTION]...: whoever has figures shows a line of them
perftest() {
	between "$@" -F
	[ "$MUSTER_GUEST" = 0 ] || grep -qE "^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+" out
}

# usage: ucx OPTION...: as above, by datagrams; by connections it is an MPI's, in mpi_test.sh
ucx() {
	export UCX_NET_DEVICES=muster0:1 UCX_TLS=ud_v,self
	PORT=13337
	between ucx_perftest -n 100 "$@"
	[ "$MUSTER_GUEST" = 0 ] || grep "^Final: *100 " out
}

# Each has a line of its own, in both guests the same.
try() {
	check "$@"
	line=$((line + 1))
}

ip link set lo up
check "the driver loads" load
try "ibv_ud_pingpong, found by LID" pingpong ibv_ud_pingpong -n 100
try "ibv_ud_pingpong, found by GID, asleep between packets" pingpong ibv_ud_pingpong -g 0 -e -n 100
try "ibv_ud_pingpong, with all that a packet holds" pingpong ibv_ud_pingpong -s 4096 -n 100
try "ibv_rc_pingpong, found by LID" pingpong ibv_rc_pingpong -n 100
try "ibv_rc_pingpong, found by GID, asleep between messages" pingpong ibv_rc_pingpong -g 0 -e -n 100
try "ibv_rc_pingpong, with messages of many packets" pingpong ibv_rc_pingpong -s 300000 -m 2048 -n 10
try "ibv_srq_pingpong, 16 connections that share their receives" pingpong ibv_srq_pingpong -n 300
if command -v ib_send_lat >/dev/null; then
	try "perftest: ib_send_lat" perftest ib_send_lat -n 100
	try "perftest: ib_send_lat, asleep between messages" perftest ib_send_lat -e -n 100
	try "perftest: ib_send_bw, four connections that share their receives" \
		perftest ib_send_bw -q 4 --use-srq -n 50
	try "perftest: ib_write_bw" perftest ib_write_bw -n 50
	try "perftest: ib_read_bw" perftest ib_read_bw -n 50
	try "perftest: ib_atomic_lat" perftest ib_atomic_lat -n 100
else
	skip "perftest: ib_send_lat, ib_send_bw, ib_write_bw, ib_read_bw, ib_atomic_lat" "it is not installed"
fi
if command -v ucx_perftest >/dev/null; then
	try "UCX: messages by datagrams" ucx -t tag_lat
else
	skip "UCX: messages by datagrams" "ucx-utils is not installed"
fi
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
