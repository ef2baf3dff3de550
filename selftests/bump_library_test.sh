#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The library's path by the bump in the wire: unchanged programs on hosts with bumps, what
# it says of it, and what becomes of it when the bump is not there or goes.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
ranks=$MUSTER_BUILD/selftests/ranks
checked=$MUSTER_BUILD/san/selftests/ranks	# the same program under sanitizers
some=$(little_or some bits)	# lengths

"$run" --bump -n 1 true >/dev/null 2>why || skip_all "no network namespaces here: $(head -n 1 why)"

# bits N OPTION...: the operations that the bump did, and the digest
bits() {
	n=$1
	shift
	"$run" --bump "$@" --no-prefix -n "$n" "$ranks" "$some" >out
	test "$(sed -n 's/^bump \([0-9]*\) .*/\1/p' out)" -gt "$(little_or 50 100)"
	sed -n 's/^digest //p' out
}

same_bits() {
	first=$("$run" --no-prefix -n "$1" "$ranks" "$some" | sed -n 's/^digest //p')
	test -n "$first"
	same "$first" "$(bits "$1")"
	export MUSTER_BUMPD_OPTIONS="--faults=10,10,10"
	same "$first" "$(bits "$1")"
}
for n in 3 4; do
	check "$n ranks: the bits of the other paths, also where links lose, repeat and reorder 1 %" \
		same_bits $n
done
check "two ranks a host" bits 4 --per-host 2

program() {
	"$run" --bump=cube -n 4 "$MUSTER_BUILD/userlib/examples/pagerank" >out
	grep -q 'norm allreduce .* bump: offloaded$' out
	grep -q 'Both gave the same bits' out
}
check "an unchanged program" program

behaviours() {
	for behaviour in bad started creates overtakes crosses "late 2" "mismatch operation" \
		"mismatch length" "mismatch type" "mismatch op" leaves; do
		echo "$behaviour"
		# shellcheck disable=SC2086 # words
		"$run" --bump -n 3 "$checked" $behaviour
	done
	MUSTER_LATE_TIMEOUT=1 "$run" --bump -n 3 "$MUSTER_BUILD/san/selftests/away" toolate late
}
check "late, leaving and mismatched ranks are told as on the other paths" behaviours

# with VALUE COMMAND...: another MUSTER_BUMP than muster-run's
cat >with.sh <<'END'
	[ "$1" = none ] && unset MUSTER_BUMP || export MUSTER_BUMP="$1"
	shift
	exec "$@"
END

wire() {
	MUSTER_WIRE=$1 "$run" --bump --no-prefix -n 3 sh with.sh none "$ranks" "$some" >out
	grep -q '^digest' out
	fails grep '^bump' out
}
for wire in ring unix udp; do
	check "ranks meet across hosts: $wire" wire $wire
done

# Nobody answers there: the host has no such neighbour.
without() {
	"$run" --bump -n 3 sh with.sh 10.77.9.9:19779 "$MUSTER_BUILD/userlib/examples/pagerank" >out
	grep -q 'norm allreduce .* NIC: offloaded; not the bump: the bump at 10.77.9.9:19779' out
	export MUSTER_OFFLOAD=force
	fails "$run" --bump -n 3 sh with.sh 10.77.9.9:19779 "$ranks" bits >out 2>err
	grep 'offload is forced, but the bump at 10.77.9.9:19779' err
}
check "no bump at that address: another path that says so, or an error" without

one_without() {
	cat >one.sh <<-'END'
		[ "$MUSTER_RANK" != 1 ] || export MUSTER_BUMP_KEY=1
		exec "$@"
	END
	"$run" --bump -n 3 sh one.sh "$MUSTER_BUILD/userlib/examples/pagerank" >out
	grep -q 'norm allreduce .* NIC: offloaded; not the bump: ' out
}
check "one rank that its bump does not know: none uses it" one_without

# Rank 1 asks, but hears nothing: what it sends goes on to the bump, what comes back does not.
# The others' bumps answer them.
one_unheard() {
	cat >relay.py <<-'END'
		import socket
		rank, bump = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
		rank.bind(("10.77.255.254", 19778))
		open("relayed", "w")
		while True:
		    bump.sendto(rank.recv(2048), ("10.77.0.1", 19778))
	END
	cat >one.sh <<-'END'
		if [ "$MUSTER_RANK" = 1 ]; then
			ip addr add 10.77.255.254/32 dev lo
			python3 relay.py >relay.log 2>&1 &
		fi
		until [ -e relayed ]; do sleep 0.05; done
		exec "$@"
	END
	export MUSTER_DEADLINE=40	# half of it is what rank 1 waits
	"$run" --bump -n 3 sh one.sh "$MUSTER_BUILD/userlib/examples/pagerank" >out
	cat out
	grep -q 'norm allreduce .* NIC: offloaded; not the bump: that of rank 1, at ' out
}
check "one rank that does not hear its bump: none uses it" one_unheard

settings() {
	for wrong in 10.77.255.254 10.77.255.254: bump:19778 10.77.255.254:0 10.77.255.254:99999 ""; do
		fails "$run" --bump -n 2 sh with.sh "$wrong" "$ranks" bits >out 2>err
		grep "MUSTER_BUMP=$wrong: expected is an IPv4 address and a port" err
	done
	fails "$run" --bump -n 2 env MUSTER_BUMP_KEY=x "$ranks" bits 2>err
	grep 'needs MUSTER_BUMP_KEY' err
	cat >differ.sh <<-'END'
		[ "$MUSTER_RANK" != 1 ] || export MUSTER_BUMP=10.77.255.253:19778
		exec "$@"
	END
	fails "$run" --bump -n 2 sh differ.sh "$ranks" bits 2>err
	grep 'MUSTER_BUMP differs: rank 0 has 10.77.255.254:19778, rank 1 has 10.77.255.253' err
}
check "settings that are wrong or differ are refused" settings

# Three ranks at a host are added up there first: the bits are others, as is said, and no fault.
perf() {
	"$run" --bump=torus -n 6 --per-host 3 --no-prefix "$MUSTER_BUILD/tools/muster_perf" -m 8:64 -D 0.01 -c >out
	cat out
	same 4 "$(grep -c ' \(equal\|order\)  *pass' out)"
	grep -q 'rounded in its own order' out
}
check "muster_perf knows an order of the bumps' own from wrong results" perf

# ---- deaths -----------------------------------------------------------------------

started() {
	[ "$(grep -c 'pid' out)" = 4 ]
}

# Ranks that add up for ever; $key finds their bumps.
start() {
	: >out	# what was there before is not what has started
	VICTIM=1 "$run" --bump -n 3 sh -c 'echo "key $MUSTER_BUMP_KEY pid"; exec "$0" victim 0' \
		"$ranks" >out 2>err &
	runner=$!
	within 60 started
	key=-k$(sed -n 's/.*key \([0-9a-f]*\) .*/\1/p' out | head -n 1)
}

rank_dies() {
	start
	kill -9 "$(sed -n 's/.* pid \([0-9][0-9]*\)/\1/p' out)"
	fails wait $runner
	cat out err
	same 2 "$(grep -c 'rank 1 has died' out)"
}
check "a rank that dies is named" rank_dies

bump_dies() {
	export MUSTER_DEADLINE=20
	start
	kill -9 "$(pgrep -f -- "^[^ ]*muster-bumpd .*-e1 .*$key ")"
	fails wait $runner
	cat out err
	grep -q 'the bump at 10.77.255.254:19778 has said nothing for 20 s' err
	same 2 "$(grep -c 'rank 1 gave up' err)"
}
check "a bump that dies: its rank says so, and the others name that rank" bump_dies

finish
