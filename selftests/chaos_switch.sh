#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A member, all switches, a link, and a leaf and a spine in processes of their own, lost in the middle
# of a 16 MiB allreduce (the first three on the streaming tree), at a time that differs in each turn: no
# result is wrong, all others hear of it, and nothing is left. Ends with how long that took. If the manager
# is lost, a switch's program replaced by another, or a spine drained and begun anew, no operation is. Not part of
# make check: make chaos-switch N=20.
. "$(dirname "$0")/tap.sh"
. "$tap_home/apart.sh"
. "$tap_home/outlive.sh"
. "$tap_home/replace.sh"
. "$tap_home/drain.sh"

run=$MUSTER_BUILD/tools/muster-run
switched=$MUSTER_BUILD/selftests/switched
am=$MUSTER_BUILD/tools/muster-am
turns=${MUSTER_CHAOS:-20}
printf 'muster-topology 1\nname x\nnodes 7\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 5 1\nlink 3 -- 5 1\nlink 4 -- 6 1\nlink 5 -- 6 1\nswitch 4 5 6\nend\n' >network

started() {
	same 4 "$(grep -cs 'pid [0-9][0-9]*$' out)"
}

daemons() {
	{ here muster-switchd; here muster-am; } | grep .
}

switches() {
	pgrep -f -- "muster-switchd -t $tap_dir/network "
}

milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}

# The seconds are no bound for how fast: whoever hangs is told by the time that no busy machine takes.
ended() {
	within 120 gone $runner
}

# lose SURVIVORS TURN COMMAND...: what takes it away
lose() {
	survivors=$1
	sleep "0.$(printf %03d $(($2 * 37 % 700)))"
	shift 2
	began=$(milliseconds)
	"$@"
	ended || { cat out err; kill $runner; return 1; }
	echo $(($(milliseconds) - began)) >>took
	wait $runner || true
	grep -h 'element\|wrong\|error ' out err && return 1
	same "$survivors" "$(grep -c 'lost: ' out)"
}

# Of switches that have ended in good order.
nothing_left() {
	python3 -c 'import json; print(sum(line[name] for line in map(json.loads, open("counters")) for name in ("groups", "bytes", "locked", "held")))' >left
	same 0 "$(cat left)"
}

start() {
	rm -f out err counters
	MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --topology "$tap_dir/network" --grace 800 -n 4 "$switched" chaos >out 2>err &
	runner=$!
	within 300 started
}

report() {
	sort -n took | awk -v what="$1" '{ all[NR] = $1 } END {
		printf "# %s lost: %d turns, all had heard of it and ended after %d ms (median), %d ms (longest)\n",
			what, NR, all[int((NR + 1) / 2)], all[NR] }' >>figures
}

members() {
	rm -f took
	for turn in $(seq "$turns"); do
		start
		lose 3 "$turn" kill -9 "$(sed -n "$((turn % 4 + 1))s/.*pid //p" out)"
		fails daemons
		nothing_left
	done
	report "a member"
}
check "a member is killed $turns times" members

all_switches() {
	rm -f took
	for turn in $(seq "$turns"); do
		start
		lose 4 "$turn" kill -9 "$(switches)"
		fails daemons
	done
	report "the switches"
}
check "all switches are killed $turns times" all_switches

manager() {
	tr '\0' '\n' <"/proc/$(switches)/cmdline" | sed -n '/^-m$/{n;p;}'
}

links() {
	rm -f took
	for turn in $(seq "$turns"); do
		start
		lose 4 "$turn" "$am" -m "$(manager)" -x "$((turn % 2))-2"
		fails daemons
		nothing_left
	done
	report "a link"
}
check "a link between a leaf and the spine is taken down $turns times" links

managers() {
	for turn in $(seq "$turns"); do
		outlive $((turn * 37 % 700)) --apart
		fails daemons
	done
	echo "# the manager lost: $turns turns, every operation ended right, and another manager took over" >>figures
}
check "the manager alone is killed $turns times, and replaced" managers

replacements() {
	replace_all "$turns"
	fails daemons
	echo "# a switch's program replaced: $turns rounds of 3 switches, $(sed -n 's/ rounds//p' out | head -n 1) rounds of 42 operations, and none failed" >>figures
}
check "each of the switches is replaced in turn, $turns rounds" replacements
MUSTER_AM_OPTIONS=--shared check "the same where streaming trees are locked" replacements

drains() {
	drain_open "$@"
	drain_start
	for turn in $(seq "$turns"); do
		drain_replace 2 $((10 * turn))
		drain_replace 3 $((10 * turn + 1))
	done
	drain_end
	echo "# a spine drained, stopped and begun anew: $turns rounds of 2 spines, $(sed -n 's/ rounds//p' out | head -n 1) rounds of 42 operations, and none failed" >>figures
}
check "each spine is drained, stopped and begun anew in turn, $turns rounds" drains
check "the same where streaming trees are locked" drains --shared

# apart NAME SWITCH: one of a network of three processes is killed
apart() {
	rm -f took
	for turn in $(seq "$turns"); do
		apart_open "$2-$turn"
		apart_start
		within 300 started
		eval "pid=\$$2"
		lose 4 "$turn" kill -9 "$pid"
		apart_close
		within 300 gone "$leaf_0"
		within 300 gone "$leaf_1"
		within 300 gone "$spine"
	done
	report "$1"
}
check "a spine in a process of its own is killed $turns times" apart "the spine" spine
check "a leaf in a process of its own is killed $turns times" apart "a leaf" leaf_1
cat figures
finish
