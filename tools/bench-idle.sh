#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-idle: what others that are open and idle cost an 8-byte allreduce, in instructions
# by callgrind: of two local ranks, whose engines have 4,000 contexts open beside, and of two
# ports of a NIC on which all others are open. At most 5 % are allowed.
set -eu

build=${MUSTER_BUILD:?}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
operations=1000
failed=0

# count FUNCTION PROGRAM ARGUMENTS: instructions of one of both in an operation
count() {
	function=$1
	shift
	valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" \
		--toggle-collect="$function" "$@" >"$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
	awk -v nr=$((2 * operations)) '/Collected/ { printf "%.1f\n", $NF / nr }' "$out/log"
}

# compare WHAT ALONE AMONG
compare() {
	echo "$2 $3" | awk -v what="$1" '{
		more = 100 * ($2 / $1 - 1)
		printf "%s: %s instructions, alone %s (%+.1f %%, at most 5)\n", what, $2, $1, more
		exit more > 5
	}' || failed=1
}

alone=$(count look_bench_counted "$build/selftests/look_bench" $operations)
among=$(count look_bench_counted "$build/selftests/look_bench" $operations 4000)
compare "a rank beside 4,000 open contexts" "$alone" "$among"
alone=$(count bench_counted "$build/selftests/nic_bench" 0 $operations)
among=$(count bench_counted "$build/selftests/nic_bench" 2046 $operations)
compare "a port of a NIC beside 2,046 open ones, each with a context" "$alone" "$among"
exit $failed
