#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs test programs that print TAP, three at a time, and adds up what they said.
# One line a program, with its seconds by the clock and of the processor; the log of a program that fails is
# shown whole, and of one that runs alone its figures ("# ..."). Closes with "N passed, N failed, N skipped" and exits 1 if anything failed.
#
# usage: run.sh PROGRAM...     (in that order: the longest are best first)
# MUSTER_JOBS: how many at a time instead.
# MUSTER_TEST_TIMEOUT: for how many seconds one may say nothing (900).
# When this ends, however, so does everything that it started (tools/keep.c).
set -u

keep=${MUSTER_BUILD:-build}/tools/keep
[ -n "${MUSTER_KEPT:-}" ] || MUSTER_KEPT=yes exec "$keep" "$0" "$@"
unset MUSTER_KEPT
# A make that a test runs is no part of the one that runs this.
unset MAKEFLAGS MFLAGS MAKELEVEL

logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
trap 'kill $(jobs -p); wait; exit 143' HUP INT TERM
export CMOCKA_MESSAGE_OUTPUT=TAP
# Freed memory is kept from use for a while: not so much that each page must be had anew. What says
# of memory that it may be used is written, not mapped anew, page by page; nor is memory given back to be had
# anew.
export ASAN_OPTIONS="quarantine_size_mb=16:clear_shadow_mmap_threshold=16777216:allocator_release_to_os_interval_ms=-1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
jobs=${MUSTER_JOBS:-3}

# A program's verdict is its TAP lines; an exit status that they do not explain is a failure too. One awk does it all:
# to start a program takes longer than to read a log.
# shellcheck disable=SC2016 # awk's
verdict='
function seconds(t) { split(t, part, /[ms]/); return part[1] * 60 + part[2] }
FILENAME ~ /[.]times$/ { cpu += seconds($1) + seconds($2); next }
{ line[++lines] = $0 }
/^(not )?ok[ \t].*# SKIP/ { skipped++; next }
/^ok([ \t]|$)/ { passed++ }
/^not ok([ \t]|$)/ { failed++ }
END {
	if (status == 4 && !(passed + failed + skipped)) {
		skipped = 1
	} else if (status != 0 && status != 4 && !failed) {
		failed = 1
		line[++lines] = "# exit status " status
	} else if (!(passed + failed + skipped)) {
		failed = 1
		line[++lines] = "# it ran no test"
	}
	print passed + 0, failed + 0, skipped + 0 >sum
	sub(/.*\/san\//, "", program)
	printf "%-7s %6.1f s %6.1f cpu  %4d ok%s%s  %s\n", failed ? "FAILED" : "passed", end - start, cpu, passed,
		failed ? ", " failed " failed" : "", skipped ? ", " skipped " skipped" : "", program
	for (i = 1; i <= lines; i++)
		if (failed || (alone == "yes" && line[i] ~ /^# /))
			print "    " line[i]
	for (i = 1; i <= lines; i++)
		if (!failed && line[i] ~ /# SKIP/)
			print "        " line[i]
}'

run_one() {
	local program=$1 log=$2 start=$EPOCHREALTIME status
	"$keep" -t "${MUSTER_TEST_TIMEOUT:-900}" "$program" >"$log" 2>&1 </dev/null
	status=$?
	# Those of whom this shell waited for: keep waits for all that a program started.
	times >"$log.times"
	awk -v program="$program" -v status="$status" -v start="$start" -v end="$EPOCHREALTIME" -v alone="$alone" \
		-v sum="$log.sum" "$verdict" "$log.times" "$log"
}

alone=$([ $# -ne 1 ] || echo yes)
programs=0
for program in "$@"; do
	programs=$((programs + 1))
	[ "$programs" -le "$jobs" ] || wait -n
	case $program in
	/*) ;;
	*) program=$PWD/$program ;;
	esac
	run_one "$program" "$logs/$programs" &
done
wait

cat "$logs"/*.sum 2>/dev/null | awk -v programs="$programs" '{ p += $1; f += $2; s += $3 }
	END { if (NR != programs) f += programs - NR
	printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }'
