#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks are killed, or trees lost, in the middle of operations that are begun anew among who is left: on all paths, all that
# are left hear the same, and no result is of two rounds or lacks who is left. MUSTER_KILLS: how often in each case (default 3).
. "$(dirname "$0")/tap.sh"

restarts=$MUSTER_BUILD/selftests/restarts
kills=${MUSTER_KILLS:-3}

# ended LEFT: the dead are reported by the launcher, all others came to their end
ended() {
	cat out err
	same "$1" "$(grep -c 'rank .* heard' out)"
	fails grep -e 'line [0-9]*:' err
}

# all_alike: in the same round, with the same results
all_alike() {
	same 1 "$(sed -n 's/.*: \(round .* heard [0-9a-f]*\).*/\1/p' out | sort -u | wc -l)"
}

# run RANKS HOW VICTIMS PATH [OPTION]...
run() {
	ranks=$1 how=$2 victims=$3 path=$4
	shift 4
	for _ in $(seq "$kills"); do
		MUSTER_DEADLINE=800 timeout 800 "$MUSTER_BUILD/tools/muster-run" --grace 800 "$@" -n "$ranks" "$restarts" "$how" "$victims" \
			"$path" >out 2>err || :
		ended $((ranks - victims))
		[ "$how" = try ] || all_alike
	done
}

trees() {
	MUSTER_SWITCH=force run "$@" --topology fat-tree:2x3x1
}

MUSTER_OFFLOAD=force check "on NICs, agreed: one of 4 ranks dies, the others go on with the same results" run 4 agreed 1 nic
MUSTER_OFFLOAD=off check "on the host path, agreed" run 4 agreed 1 host
MUSTER_OFFLOAD=force check "two of 6 die" run 6 agreed 2 nic
MUSTER_OFFLOAD=force check "where nobody has agreed, some may have an error, and nobody a wrong result" run 4 try 1 nic
check "on reduction trees" trees 6 agreed 1 switch
check "on reduction trees, two die" trees 6 agreed 2 switch
check "on reduction trees, not agreed" trees 6 try 1 switch

printf 'muster-topology 1\nname x\nnodes 7\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 5 1\nlink 3 -- 5 1\nlink 4 -- 6 1\nlink 5 -- 6 1\nswitch 4 5 6\nend\n' >network

started() {
	same 4 "$(grep -cs 'pid [0-9][0-9]*$' out)"
}

# The address of the manager at the network.
manager() {
	pgrep -f -- "muster-(switchd|am) -t $tap_dir/network " | while read -r pid; do
		tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^-m$/{n;p;}'
	done | head -n 1
}

# tree_lost HOW: all members live, and all of them need what has blocks for each
tree_lost() {
	: >out	# what was there before is not what has started
	"$MUSTER_BUILD/tools/muster-run" --topology "$tap_dir/network" --grace 800 -n 4 "$restarts" "$1" tree any >out 2>err &
	runner=$!
	within 300 started
	"$MUSTER_BUILD/tools/muster-am" -m "$(manager)" --clean
	wait $runner
	ended 4
	fails grep ' after 0 losses' out
	[ "$1" = try ] || { all_alike; fails grep ', [1-9][0-9]* errors' out; }
}

cut_off() {
	: >out	# what was there before is not what has started
	MUSTER_SWITCH=force "$MUSTER_BUILD/tools/muster-run" --topology "$tap_dir/network" --grace 800 -n 4 "$restarts" agreed 0 switch >out 2>err &
	runner=$!
	within 300 started
	"$MUSTER_BUILD/tools/muster-am" -m "$(manager)" -x 0-2
	wait $runner
	cat out err
	same 4 "$(grep -c 'cut: of 4 ranks' out)"
}
check "trees are lost and all ranks live: every operation goes on, and none fails" tree_lost agreed
check "trees are lost, not agreed" tree_lost try
check "of a network that is cut in halves neither goes on alone" cut_off
finish
