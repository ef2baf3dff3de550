#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# In every collective, on both paths, one rank calls something else, dies, leaves or stops:
# all others are told who (sweep/faults.c). Ranks that go are tried every day in some
# collectives; with MUSTER_FAULTS_ALL in all, each rank in turn (make check-faults-coll).
# Nothing here is timed: a hang runs into the run's end. MUSTER_FAULTS_LATE: seconds of patience (1).
. "$(dirname "$0")/tap.sh"

faults=$MUSTER_BUILD/selftests/sweep/faults
[ -x "$faults" ] || skip_all "there is no $faults (make selftests)"

colls='barrier broadcast reduce allreduce allgather reduce_scatter_block alltoall gather scatter scan
	exscan allgatherv reduce_scatter gatherv scatterv alltoallv alltoallw neighbour_allgather
	neighbour_alltoall neighbour_allgatherv neighbour_alltoallv neighbour_alltoallw'

run() {
	MUSTER_DEADLINE=800 "$MUSTER_BUILD/tools/muster-run" --no-prefix --grace 800 -n 4 "$faults" "$@"
}

for what in operation type length counts root; do
	for path in nic host; do
		check "another $what: in every collective the others name the rank ($path)" run $what $path
	done
done

# usage: goes WHAT PATH COLLECTIVE RANK: three are told; who stops is told as well when it goes on.
# Of those at least the one whose patience ended first names it; on a busy machine it needs more of that.
goes() {
	case $1 in
	dies) status=137 told=3 named=3 ;;
	leaves) status=0 told=3 named=3 ;;
	*) status=0 told=4 named=2 ;;
	esac
	for times in 1 4 16 64; do
		code=0
		[ "$1" != stops ] || export MUSTER_LATE_TIMEOUT=$((${MUSTER_FAULTS_LATE:-1} * times))
		run "$@" >out 2>err || code=$?
		grep -q "too early" out || break
	done
	cat err
	same "$status" "$code"
	same "$told" "$(grep -c -e named -e told out)"
	[ "$(grep -c named out)" -ge "$named" ]
}

all_go() {
	rank=0
	for coll in $colls; do
		goes "$1" "$2" "$coll" $((rank % 4))
		rank=$((rank + $3))
	done
}

[ -n "${MUSTER_FAULTS_ALL:-}" ] || colls='broadcast allreduce gatherv alltoallw'
for path in nic host; do
	check "a rank dies: the others name it ($path)" all_go dies $path 1
	check "a rank leaves the job: the others name it ($path)" all_go leaves $path 3
	check "a rank stops: the others name it ($path)" all_go stops $path 1
done
finish
