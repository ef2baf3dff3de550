#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks at the hosts of a network of switches: muster-switchd, and muster-run --topology.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
switchd=$MUSTER_BUILD/tools/muster-switchd
ranks=$MUSTER_BUILD/selftests/ranks
perf=$MUSTER_BUILD/tools/muster_perf

digest() {
	"$run" --no-prefix "$@" "$ranks" bits | sed -n 's/^digest //p'
}

# count NAME: that counter of all switches, summed
count() {
	python3 -c 'import json, sys; print(sum(json.loads(line)[sys.argv[1]] for line in open("counters")))' "$1"
}

# forwards RANKS TOPOLOGY: the bits that there are without switches, and all went by them
forwards() {
	first=$(digest -n "$1")
	test -n "$first"
	rm -f counters
	same "$first" "$(MUSTER_SWITCHD_OPTIONS="-j -c counters" digest --topology "$2" -n "$1")"
	test "$(count forwarded)" -gt 1000
	same 0 $(($(count drop_malformed) + $(count drop_stranger)))
}
check "4 ranks at one switch have the bits of other wires" forwards 4 switch:5
check "5 ranks at a torus of switches" forwards 5 switch-torus:1x3x2
check "16 ranks at a fat tree of two levels" forwards 16 fat-tree:4x4x2

written() {
	printf 'muster-topology 1\nname own\nnodes 5\nlink 0 -- 3 1\nlink 1 -- 4 1\nlink 2 -- 4 1\nlink 3 -- 4 1\nswitch 3 4\nend\n' >network
	"$run" --topology ./network -n 3 "$perf" -c -m 64K:64K -i 3 all >out
	fails grep -q wrong out
	same 13 "$(grep -c '^\[0\] # .* times in us' out)"
}
check "a network from a file, and every collective is right on both paths" written

# everything that --topology started, by the topology's name
daemons() {
	pgrep -f -- "muster-switchd -t $tap_dir/network "
}

start_ranks() {
	rm -f out
	"$run" --topology "$tap_dir/network" --grace 800 -n 3 "$ranks" victim 1 >out 2>err &
	runner=$!
	within 60 grep -qs 'pid [0-9][0-9]*$' out
	victim=$(sed -n 's/.*pid //p' out)
}

rank_dies() {
	export VICTIM=1
	start_ranks
	kill -9 "$victim"
	status=0
	wait $runner || status=$?
	same 137 $status
	same 2 "$(grep -c "rank 1" out)"
	fails daemons
}
check "a rank that dies is named by the others" rank_dies

all_gone() {
	for pid in $1; do
		gone "$pid" || return 1
	done
}

runner_dies() {
	export VICTIM=1
	start_ranks
	pids="$victim $(daemons)"
	same 2 "$(echo $pids | wc -w)"
	name=$(tr '\0' '\n' <"/proc/${pids##* }/cmdline" | sed -n 's/^unix:@//p')
	grep -q "@$name" /proc/net/unix
	kill -9 $runner
	wait $runner || true
	within 60 all_gone "$pids"
	fails grep -q "@$name" /proc/net/unix
}
check "when the runner is killed no process and no socket is left" runner_dies

refused() {
	same 125 "$(status_of "$run" --topology switch:3 -n 3 true)"
	grep -q 'it has 2 hosts, fewer than the 3 ranks' err
	printf 'muster-topology 1\nname x\nnodes 2\nlink 0 -- 0 1\nend\n' >wrong
	same 125 "$(status_of "$run" --topology ./wrong -n 1 true)"
	grep -q 'wrong: line 4: ' err
	same 2 "$(MUSTER_WIRE=ring status_of "$run" --topology switch:3 -n 2 true)"
	same 2 "$(status_of "$run" --topology switch:3 --bump -n 2 true)"
	same 2 "$(status_of "$switchd" -t switch:3)"
	same 2 "$(status_of "$switchd" -t switch:3 -w unix:@muster-x-$$ -s 1)"
	same 1 "$(status_of "$switchd" -t switch:3 -w nothing:)"
	fails env MUSTER_WIRE=switch "$run" -n 1 "$ranks" started >out 2>err
	grep -q 'MUSTER_WIRE=switch needs MUSTER_FABRIC' out err
}
check "what cannot be is refused with the reason" refused
finish
