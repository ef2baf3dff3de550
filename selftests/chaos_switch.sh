#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A member, and the switches with their manager, killed in the middle of a 16 MiB allreduce on the
# streaming tree, at a time that differs in each turn: no result is wrong, all others hear of it,
# and nothing is left. Ends with how long that took. Not part of make check: make chaos-switch N=20.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
switched=$MUSTER_BUILD/selftests/switched
turns=${MUSTER_CHAOS:-20}
printf 'muster-topology 1\nname x\nnodes 7\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 5 1\nlink 3 -- 5 1\nlink 4 -- 6 1\nlink 5 -- 6 1\nswitch 4 5 6\nend\n' >network

started() {
	same 4 "$(grep -cs 'pid [0-9][0-9]*$' out)"
}

daemons() {
	pgrep -f -- "muster-switchd -t $tap_dir/network "
}

milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}

# The seconds are no bound for how fast: whoever hangs is told by the time that no busy machine takes.
ended() {
	within 120 gone $runner
}

# killed SURVIVORS PID TURN
killed() {
	sleep "0.$(printf %03d $(($3 * 37 % 700)))"
	began=$(milliseconds)
	kill -9 "$2"
	ended || { cat out err; kill $runner; return 1; }
	echo $(($(milliseconds) - began)) >>took
	wait $runner || true
	grep -h 'element\|wrong\|error ' out err && return 1
	same "$1" "$(grep -c 'lost: ' out)"
	fails daemons
}

start() {
	rm -f out err
	MUSTER_SWITCH=force "$run" --topology "$tap_dir/network" --grace 800 -n 4 "$switched" chaos >out 2>err &
	runner=$!
	within 300 started
}

report() {
	sort -n took | awk -v what="$1" '{ all[NR] = $1 } END {
		printf "# %s killed: %d turns, all had heard of it and ended after %d ms (median), %d ms (longest)\n",
			what, NR, all[int((NR + 1) / 2)], all[NR] }' >>figures
}

members() {
	rm -f took
	for turn in $(seq "$turns"); do
		start
		killed 3 "$(sed -n "$((turn % 4 + 1))s/.*pid //p" out)" "$turn"
	done
	report "a member"
}
check "a member is killed $turns times" members

switches() {
	rm -f took
	for turn in $(seq "$turns"); do
		start
		killed 4 "$(daemons)" "$turn"
	done
	report "the switches"
}
check "the switches and their manager are killed $turns times" switches
cat figures
finish
