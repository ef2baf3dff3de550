#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-verbs: what a message of a connection (RC) costs two guests together, on muster0 and
# on the kernel's software RDMA (rdma_rxe) over virtio-net between the same two guests, counted
# and not timed: instructions by the emulated CPU, writes to the device's registers (each leaves
# the guest), interrupts, DMA. Each program runs with few messages and with many, and the
# difference is what messages cost. Only ibv_rc_pingpong sleeps between them (-e); the instructions
# of the others are mostly waiting, so they depend on how busy the machine is.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
MUSTER_BUILD=${MUSTER_BUILD:-$here/../build}
export MUSTER_BUILD
"$MUSTER_BUILD/tools/muster-vm" -n 2 --lines=1 --net --count -- "$here/bench-verbs-guest.sh" |
	awk '
	$2 != "cost" { print | "cat 1>&2"; next }
	{
		# device, program, bytes; messages; then the counts, of each run and guest
		key = $3 " " $4 " " $5
		if (!(key in runs))
			keys[++nr] = key
		more = runs[key]++ < 2 ? -1 : 1		# two guests: few messages first
		if ($1 == "[0]")
			messages[key] += more * $6
		for (i = 7; i <= NF; i++)
			count[key, i] += more * $i
	}
	END {
		printf "%-16s %8s  %-7s %12s %10s %10s %12s %12s\n", "program", "bytes", "device",
			"instructions", "rings", "interrupts", "DMA read B", "DMA write B"
		for (k = 1; k <= nr; k++) {
			key = keys[k]
			split(key, word, " ")
			printf "%-16s %8s  %-7s", word[2], word[3], word[1]
			for (i = 7; i <= 11; i++)
				printf i == 7 ? " %12.0f" : i < 10 ? " %10.2f" : " %12.0f",
					count[key, i] / messages[key]
			printf "\n"
		}
	}'
