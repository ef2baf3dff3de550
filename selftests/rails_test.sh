#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks with several rails, each at a network of switches of its own: what is long goes over all of them, each part in the
# order of its rail's tree; and a rail is lost in the middle.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
railed=$MUSTER_BUILD/selftests/railed
checked=$MUSTER_BUILD/san/selftests	# the same programs under sanitizers
export MUSTER_RAIL_BYTES=500

# count NAME: that counter of all switches, summed
count() {
	python3 -c 'import json, sys; print(sum(json.loads(line)[sys.argv[1]] for line in open("counters")))' "$1"
}

# sweep HOSTS-OF-LEAVES OPTION...: bits, for rails of such networks
sweep() {
	hosts=$1
	shift
	rm -f counters
	# shellcheck disable=SC2086 # words
	MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --no-prefix -n 6 "$@" "$checked/railed" \
		sweep $hosts >out
	cat out
	same "500 operations" "$(cat out)"
	same 0 $(($(count drop_malformed) + $(count drop_stranger) + $(count drop_window)))
	same "0 0 0" "$(count failed) $(count groups) $(count bytes)"
}
check "6 ranks with two rails: types, operations, lengths, roots, groups; started at once, persistent" \
	sweep "3 3" --rails 2 --topology fat-tree:3x2x1
check "three rails of unlike networks: each part in the order of its own" \
	sweep "6 2 3" --topology switch:7 --topology fat-tree:2x3x1 --topology fat-tree:3x2x1
check "one rail is as none" sweep "3" --rails 1 --topology fat-tree:3x2x1

order() {
	MUSTER_SWITCH_ORDER=force "$run" --no-prefix -n 6 --topology fat-tree:3x2x1 --topology fat-tree:2x3x1 \
		"$checked/railed" order 3 2 >out
	same "3 paths" "$(cat out)"
}
check "with the trees' order NIC and host path have it part by part" order

# What is short is the first one's, and little beside 512 KiB.
halves() {
	rm -f counters
	MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --no-prefix -n 4 --rails 2 --topology switch:5 \
		"$MUSTER_BUILD/tools/muster_perf" -m 1M:1M -i 20 -x 1 -D 600 -p nic allreduce >out
	cat out counters
	python3 -c '
import json
rails = [json.loads(line)["contributions"] for line in open("counters")]
assert len(rails) == 2 and min(rails) > 10000 and max(rails) < 1.1 * min(rails), rails'
}

check "both trees carry about half" halves

runs() {
	same 4 "$(grep -cs 'runs$' out)"
}

# lose RAIL HOW: its switch is killed in the middle
networks() {
	for rail in 0 1; do
		printf 'muster-topology 1\nname one\nnodes 5\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 4 1\nlink 3 -- 4 1\nswitch 4\nend\n' >network-$rail
	done
}

# usage: over_two COMMAND...: of four ranks
over_two() {
	MUSTER_DEADLINE=800 "$run" --grace 800 -n 4 --topology "$tap_dir/network-0" --topology "$tap_dir/network-1" \
		"$@" >out 2>err
}

# usage: lose RAIL: its switch is killed in the middle
lose() {
	rm -f out err
	networks
	over_two "$checked/railed" lose &
	runner=$!
	within 300 runs
	kill -9 "$(pgrep -f -- "muster-switchd -t $tap_dir/network-$1 ")"
	wait $runner || :
	cat out err
	fails grep -e 'line [0-9]*:' err
}

error() {
	lose "$1"
	same 4 "$(grep -c 'error .*the network has lost a switch or a link' out)"
}
check "the second rail is lost: all have an error" error 1
check "the first is: so they do" error 0

not_cut() {
	networks
	MUSTER_RESTART=agreed over_two "$checked/railed" lose
	same 4 "$(grep -c 'went on: switch: streaming tree' out)"
}
check "where operations are begun anew after a loss, none is cut" not_cut

# A rank is: the others have no wrong result, or go on without it
dies() {
	MUSTER_DEADLINE=800 timeout 800 "$run" --grace 800 --rails 2 --topology fat-tree:2x3x1 -n 6 \
		"$MUSTER_BUILD/selftests/restarts" agreed 1 switch >out 2>err || :
	cat out err
	same 5 "$(grep -c 'rank .* heard' out)"
	fails grep -e 'line [0-9]*:' err
	same 1 "$(sed -n 's/.*: \(round .* heard [0-9a-f]*\).*/\1/p' out | sort -u | wc -l)"
}
check "a rank dies: who is left begins anew" dies

refused() {
	fails "$run" --rails 2 -n 2 true 2>err
	grep -q 'rails go with --topology only' err
	fails "$run" --rails 1 --topology switch:3 --topology switch:3 -n 2 true 2>err
	grep -q 'there are fewer --rails than networks' err
	fails env MUSTER_RAILS=2 "$run" -n 2 "$railed" order 1 2>err
	grep -q 'MUSTER_RAILS=2: allowed is 1, and up to 8 with MUSTER_WIRE=switch' err
	fails env MUSTER_RAIL_BYTES=many "$run" -n 2 "$railed" order 1 2>err
	grep -q 'MUSTER_RAIL_BYTES=many: allowed is a number of bytes' err
}
check "what makes no sense is refused" refused

finish
