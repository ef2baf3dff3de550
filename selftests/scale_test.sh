#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Many local ranks start, add up and end; how long that takes and how much memory. On a
# machine that has other work time says nothing, so it is only printed here.
# MUSTER_SCALE: how many ranks (96; make check-scale: 1,024, within MUSTER_SCALE_S seconds).
# MUSTER_PROVED: of how many ranks all schedules are proved (300; make check-scale: 4,096).

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
ranks=$MUSTER_BUILD/selftests/ranks
for program in "$run" "$ranks"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done
nr=${MUSTER_SCALE:-96}
MIB_A_RANK=8

start_and_end() {
	began=$(date +%s%N)
	MUSTER_DEADLINE=800 "$run" --grace 800 --no-prefix -n "$nr" "$ranks" scale >out 2>err || {
		head -5 err
		false
	}
	took=$((($(date +%s%N) - began) / 1000000))
	echo "# $nr ranks: $took ms from start to end, $(cat out) MiB" >figures
	[ "$(cat out)" -le $((MIB_A_RANK * nr)) ]
	[ $took -le $((1000 * ${MUSTER_SCALE_S:-100000})) ]
}
check "$nr ranks start, add up and end, with at most $MIB_A_RANK MiB each" start_and_end
cat figures 2>/dev/null

limited() {
	ulimit -Sn 256
	"$run" -n 140 true
	ulimit -Hn 256
	fails "$run" -n 140 true >out 2>&1
	cat out
	grep -q "where the limit is 256; raise it with ulimit -n" out
}
check "the limit of files that muster-run meets is named" limited

all_proved() {
	"$MUSTER_BUILD/selftests/proved" "$proved" >out 2>&1 || { grep -v 'right$' out && return 1; }
	tail -n 1 out | sed 's/^/# /' >&3
}
proved=${MUSTER_PROVED:-300}
check "the checker proves every generator's schedules of $proved ranks" all_proved 3>&1

finish
