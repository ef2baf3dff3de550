#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What runs in both guests of bench-verbs.sh: programs that know nothing of Muster, between them.
# Guest 0 has their servers. Prints a line "cost DEVICE PROGRAM BYTES MESSAGES COUNT..." a run:
# instructions, rings, interrupts, bytes read and written by DMA, all since the guest has booted.
set -eu

# shellcheck source=selftests/guest/ethernet.sh
. "$(dirname "$0")/../selftests/guest/ethernet.sh"

FEW=300
MANY=2300
PORT=18515
IBV_DRIVERS=$MUSTER_BUILD/provider/libmuster
export IBV_DRIVERS
HW=/sys/class/infiniband/muster0/ports/1/hw_counters

modprobe rdma_rxe
insmod "$MUSTER_BUILD/kernel/muster.ko"
ethernet_up
rdma link add rxe0 type rxe netdev "$ETHERNET"
exec 3<>/dev/virtio-ports/org.muster.rendezvous.0 4<>/dev/virtio-ports/org.muster.rendezvous.1

listening() {
	grep -q "$(printf ':%04X 0*:0000 0A' $PORT)" /proc/net/tcp /proc/net/tcp6
}

instructions() {
	printf '?' >&4
	head -c 8 <&4 | od -An -tu8 | tr -d ' '
}

# usage: interrupts REGEX
interrupts() {
	awk -v name="$1" '$NF ~ name { n += $2 } END { print n + 0 }' /proc/interrupts
}

# The core asks the device again for counters that are older than 10 ms.
counts_muster0() {
	sleep 0.03
	cat $HW/doorbells >rings
	echo "$(cat rings) $(interrupts '^muster-cq') $(cat $HW/dma_read_bytes) $(cat $HW/dma_write_bytes)"
}

# A packet's DMA is at least the frame with virtio's header of 12 bytes, and in the rings an
# index of 2, a descriptor of 16 and an entry of 8 that says what was used.
counts_rxe0() {
	ethtool -S "$ETHERNET" | awk -v interrupts="$(interrupts '^virtio[0-9]*-(input|output)')" '
		$1 ~ /queue_0_kicks/ { rings += $2 }
		$1 == "tx_queue_0_packets:" { read += 30 * $2; written += 8 * $2 }
		$1 == "rx_queue_0_packets:" { read += 18 * $2; written += 20 * $2 }
		$1 == "tx_queue_0_bytes:" { read += $2 }
		$1 == "rx_queue_0_bytes:" { written += $2 }
		END { print rings, interrupts, read, written }'
}

# Each tells the other that it is there; instructions are read next to what is counted.
together() {
	echo >&3
	read -r _ <&3
}

# usage: serve COMMAND...; call COMMAND...
serve() {
	"$@" >out 2>&1 &
	until listening; do
		sleep 0.05
	done
	together
	wait $!
}

call() {
	together
	"$@" "$(ethernet_of 0)" >out 2>&1
}

# usage: count DEVICE BYTES MESSAGES COMMAND...
count() {
	device=$1 bytes=$2 messages=$3
	shift 3
	together
	before="$(counts_"$device") $(instructions)"
	if [ "$MUSTER_GUEST" = 0 ]; then
		serve "$@" || { cat out; exit 1; }
	else
		call "$@" || { cat out; exit 1; }
	fi
	after="$(instructions) $(counts_"$device")"
	echo "$before $after" | awk -v what="$device $1 $bytes $messages" \
		'{ print "cost", what, $6 - $5, $7 - $1, $8 - $2, $9 - $3, $10 - $4 }'
}

# usage: measure DEVICE GID: a round trip of ping-pong is two messages
measure() {
	for n in $FEW $MANY; do
		count "$1" 64 $((2 * n)) ibv_rc_pingpong -d "$1" -g "$2" -s 64 -n "$n" -e
	done
	for bytes in 64 4096; do
		for n in $FEW $MANY; do
			count "$1" "$bytes" $((2 * n)) ib_send_lat -F -d "$1" -x "$2" -s "$bytes" -n "$n"
		done
	done
	for n in $FEW $MANY; do
		count "$1" 65536 "$n" ib_write_bw -F -d "$1" -x "$2" -s 65536 -n "$n"
	done
}

measure muster0 0
measure rxe0 1
