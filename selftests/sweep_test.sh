#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Every collective in all three forms, with all types, operations, algorithms and lengths, on
# both paths, against a plain reference (sweep/sweep.h). Every day a sample of that;
# with MUSTER_SWEEP_ALL all of it (make check-sweep).
. "$(dirname "$0")/tap.sh"

sweep=selftests/sweep/sweep
simulated=selftests/sweep/simulated
for program in "$MUSTER_BUILD/$sweep" "$MUSTER_BUILD/san/$simulated"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

# usage: played BUILD RANKS EVERY [RANKS-AT-MOST]
played() {
	build=$1
	ranks=$2
	shift 2
	"$MUSTER_BUILD/tools/muster-run" --no-prefix --grace 800 -n "$ranks" "$build/$sweep" "$@" >out 2>err ||
		{ cat err && return 1; }
	cat out >>"$figures"
	grep -q '^[0-9]* ranks: [1-9]' out
}

simulated() {
	"$1/$simulated" "$2" "$3" "$4" >out 2>err || { cat out err && return 1; }
	cat out >>"$figures"
	grep -q '^[0-9]* simulated ranks: [1-9]' out
}

# Of these worlds two have links and two memory rings; where a link refuses most of what 64 ranks have at once it
# takes ten times as long to simulate.
worlds="1 2 3 6 1 2 3 6"

# in_eighths BUILD RANKS: all, each eighth in one of the worlds, as many at once as there are processors
in_eighths() {
	part=0
	for world in $worlds; do
		echo $world $part
		part=$((part + 1))
	done | xargs -P "$tap_cpus" -L 1 sh -c '"$0" "$1" 8 "$2" "$3" >"out.$3" 2>&1' "$1/$simulated" "$2" ||
		{ cat out.[0-7] && return 1; }
	cat out.[0-7] >>"$figures"
	same 8 "$(cat out.[0-7] | grep -c '^[0-9]* simulated ranks: [1-9]')"
}

figures=$tap_dir/figures
if [ -n "${MUSTER_SWEEP_ALL:-}" ]; then
	for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
		check "$n ranks: all short ones" played "$MUSTER_BUILD" $n 1
	done
	for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
		check "$n ranks: long ones, each two choices together" played "$MUSTER_BUILD" $n 1 17
	done
	check "32 ranks, simulated: all short ones" in_eighths "$MUSTER_BUILD" 32
	check "64 ranks, simulated: all short ones" in_eighths "$MUSTER_BUILD" 64
	sed 's/^/# /' "$figures"
	finish
fi

check "1 rank: one short case of 400" played "$MUSTER_BUILD" 1 400
check "2 ranks: one of 300" played "$MUSTER_BUILD" 2 300
check "3 ranks, sanitized: one of 1,000" played "$MUSTER_BUILD/san" 3 1000
check "5 ranks: one of 600" played "$MUSTER_BUILD" 5 600
check "8 ranks: one of 1,000" played "$MUSTER_BUILD" 8 1000
check "17 ranks: one of 3,000" played "$MUSTER_BUILD" 17 3000
check "2 ranks: one long case of 3" played "$MUSTER_BUILD" 2 3 17
check "32 ranks, simulated: one of 8,000" simulated "$MUSTER_BUILD/san" 32 8000 1
finish
