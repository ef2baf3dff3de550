#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-look: what trace records cost in an 8-byte allreduce of two ranks on the NIC
# path: a rank's instructions in an operation by callgrind, with recording off and on.
# MUSTER_BASE: the build folder of other sources (one whose calls are taken out), to show
# what recording costs that is off.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${MUSTER_BUILD:-$here/../build}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
operations=1000

# count BUILD TRACE: instructions
count() {
	MUSTER_TRACE=$2 valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" \
		--toggle-collect=look_bench_counted "$1/selftests/look_bench" $operations \
		>"$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
	awk -v nr=$((2 * operations)) '/Collected/ { printf "%.1f\n", $NF / nr }' "$out/log"
}

off=$(count "$build" 0)
on=$(count "$build" 1)
echo "$off $on" | awk '{ printf "recording off: %s instructions\nrecording on:  %s, %.2f %% more\n",
	$1, $2, 100 * ($2 / $1 - 1) }'
[ -z "${MUSTER_BASE:-}" ] || count "$MUSTER_BASE" 0 |
	awk -v off="$off" '{ printf "other build:   %s; off here is %.2f %% more\n", $1, 100 * (off / $1 - 1) }'
