#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A rank that dies is named by all others; a rank that is late is not dead.
# MUSTER_KILLS: how often a rank is killed in mid-operation (default 10).
. "$(dirname "$0")/tap.sh"

ranks=$MUSTER_BUILD/selftests/ranks

# No deadline ends a wait here: who hears of a death heard it. A hang runs into the run's end.
run() {
	OWNER=$tap_dir MUSTER_DEADLINE=${MUSTER_DEADLINE:-800} "$MUSTER_BUILD/tools/muster-run" \
		--grace 800 "$@"
}

pid_known() {
	grep -qs 'pid [0-9][0-9]*$' out
}

# kill_one VICTIM MIB MILLISECONDS: kill -9 in mid-operation; the three others say so
kill_one() {
	rm -f out
	VICTIM=$1 run -n 4 "$ranks" victim "$2" >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 pid_known
	victim=$(sed -n 's/.*pid //p' out)
	sleep "0.$3"
	kill -9 "$victim"
	ended=$(date +%s%N)
	status=0
	wait $launcher || status=$?
	trap - EXIT
	took=$((($(date +%s%N) - ended) / 1000000))
	cat out err
	echo "after $took ms"
	echo "$took" >>took
	same 137 $status
	same 3 "$(grep -c "rank $1" out)"
	nothing_left
}

# No process of ours, other runs may have theirs; and no file of shared memory, of whomever.
nothing_left() {
	same "" "$(grep -lsz "^OWNER=$tap_dir$" /proc/[0-9]*/environ || :)"
	fails ls /dev/shm/muster*
}

kills=${MUSTER_KILLS:-10}
i=0
while [ $i -lt "$kills" ]; do
	check "kill -9 of rank $((i % 4)) in a 64 MiB allreduce: the others name it" \
		kill_one $((i % 4)) 64 $(((i * 37 + 13) % 300 + 100))
	i=$((i + 1))
done
echo "# slowest: $(sort -n took | tail -n 1) ms from the kill to the end of all ranks"
check "kill -9 of a rank in 8-byte allreduces: the others name it" kill_one 1 0 200

# Where ranks did not even meet by the deadline (status 3), a longer one helps.
late() {
	export MUSTER_WIRE="$1"
	for deadline in 1 4 16 64; do
		code=0
		MUSTER_STATS=1 MUSTER_DEADLINE=$deadline run -n 3 "$ranks" late $((3 * deadline)) 2>err || code=$?
		cat err
		[ $code -eq 3 ] || break
	done
	same 0 $code
	grep -q ' last: rank 1, which waited for ' err
}
check "a rank that comes after the deadline is late, not dead, and MUSTER_STATS names it" late ring
check "the same over UDP" late udp

too_late() {
	MUSTER_LATE_TIMEOUT=1 run -n 3 "$MUSTER_BUILD/selftests/away" toolate late >out
	cat out
	grep -q -e 'rank 1' -e ', 1' out
}
check "with MUSTER_LATE_TIMEOUT the wait ends and names who is late" too_late

leaves() {
	run -n 3 "$ranks" leaves >out
	cat out
	same 2 "$(grep -c 'rank 2' out)"
}
check "a rank that finalizes early is named by those that need it" leaves
finish
