#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Hosts (network namespaces) with bumps in their wires, and what becomes of them.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
hosts=$MUSTER_BUILD/selftests/bump_hosts

"$run" --bump -n 1 true >/dev/null 2>why || skip_all "no network namespaces here: $(head -n 1 why)"

for case in 2:ring 3:tree 5:cube 8:torus 16:tree; do
	n=${case%:*}
	check "$n hosts, joined as ${case#*:}: every algorithm, operation and type is right" \
		"$run" --bump="${case#*:}" -n "$n" "$hosts" check
done
check "3 ranks a host" "$run" --bump=torus -n 12 --per-host 3 "$hosts" check

digest() {
	"$run" --bump=torus -n 8 --per-host 2 "$hosts" check >out
	sed -n 's/.*digest //p' out
}

same_bits() {
	first=$(digest)
	test -n "$first"
	same "$first" "$(digest)"
	export MUSTER_BUMPD_OPTIONS="--faults=10,10,10"
	same "$first" "$(digest)"
}
check "the same bits again, and where links lose, repeat and reorder 1 %" same_bits

window() {
	MUSTER_BUMPD_OPTIONS="--faults=10,10,10" "$run" --bump -n 4 "$hosts" window
}
check "many operations at once, with faults" window

check "malformed packets change nothing" "$run" --bump -n 3 "$hosts" hostile 3000

clients() {
	"$run" --bump -n 3 "$MUSTER_BUILD/tools/bump_client" >out
	same 3 "$(grep -c 'the sum is 6$' out)"
	"$run" --bump -n 3 python3 "$tap_home/../tools/bump_client.py" >out
	same 3 "$(grep -c 'the sum is 6$' out)"
}
check "clients of plain sockets, in C and in Python" clients

file() {
	printf '# a star\n0 1\n0 2\n0 3\n' >star
	"$run" --bump=./star -n 4 "$hosts" check
	printf '0 1\n2 3\n' >apart
	same 125 "$(status_of "$run" --bump=./apart -n 4 "$hosts" check)"
	grep -q 'muster-run: ./apart: not all of 4 elements are joined' err
}
check "joined as a file says" file

# Ranks that compute while rank 0 and rank 1 also talk to each other.
traffic() {
	cat >both.sh <<-'END'
		"$1" sum 3 &
		python3 "$2" 64 1000 || exit 1
		wait $!
	END
	"$run" --bump=tree -n 4 sh both.sh "$hosts" "$tap_home/bump_traffic.py" >out
	cat out
	grep -q 'checksums agree' out
	grep -q ' 0 of 1000 pings lost' out
	grep -q ' 0 of 1000 echoes lost' out
	grep -q 'operations right' out
}
check "other traffic passes while allreduces run" traffic

flooded() {
	printf '0 1\n0 2\n' >between
	"$run" --bump=./between -n 3 python3 "$tap_home/bump_flood.py" "$PWD/through"
}
check "a host that floods its bump does not keep it from others" flooded

counters() {
	MUSTER_BUMPD_OPTIONS="-j -c $PWD/counters" "$run" --bump -n 3 "$hosts" check >out
	python3 -c 'import json
bumps = sorted(map(json.loads, open("counters")), key=lambda b: b["element"])
assert [b["element"] for b in bumps] == [0, 1, 2], bumps
assert all(b["operations"] == 760 and not b["dropped_bad"] for b in bumps), bumps'
}
check "bumps leave their counters" counters

check "a VLAN tag passes" "$run" --bump -n 3 python3 "$tap_home/bump_vlan.py"

usage() {
	bumpd=$MUSTER_BUILD/tools/muster-bumpd
	same 2 "$(status_of "$run" -n 2 --per-host 2 true)"
	same 2 "$(status_of "$run" -n 3 --bump --per-host 2 true)"
	same 2 "$(status_of "$run" -n 2 --bump --vm true)"
	same 125 "$(status_of "$run" -n 2 --bump=star true)"
	for wrong in "" "-e0" "-e2 -n2 -k1 -Hx" "-e0 -n2 -Hx" "-e0 -n2 -kx -Hx" "-e0 -n2 -k1 -Hx -p9" \
		"-e0 -n2 -k1 -Hx -tstar" "-e0 -n2 -k1 -Hx -t./none" "-e0 -n2 -k1 -Hx --faults=1" \
		"-e0 -n2 -k-1 -Hx" "-e0 -n2 -k11112222333344445 -Hx" "-e0 -n2 -k1 -Hx -u0" \
		"-e0 -n2 -k1 -Hx --faults=2000,0,0" "-e0 -n2 -k1 -Hx --seed=abc" "-e0 -n1 -k1 -Hudp:127.0.0.1"; do
		# shellcheck disable=SC2086 # a list of options
		same 2 "$(status_of "$bumpd" $wrong)"
		grep -q muster-bumpd: err
	done
	same 1 "$(status_of "$bumpd" -e0 -n1 -k1 -Hnone)"
	grep -q "port 'none'" err
	same 1 "$(status_of "$bumpd" -e0 -n1 -k1 -Hnone -cnone/counters)"
	same "muster-bumpd: none/counters: No such file or directory" "$(cat err)"
}
check "wrong usage is refused" usage

cat >gone.sh <<'END'
	ip link add ours type veth peer name theirs
	ip link set ours up
	ip link set theirs up
	"$1" -e 0 -n 1 -k 77 -H ours >bump.gone 2>err &
	bump=$!
	until grep -q ready bump.gone; do
		sleep 0.01
	done
	ip link del ours
	until grep -q "port 'ours': its device is down or gone" err || ! kill -0 $bump; do
		sleep 0.01
	done
	kill $bump
	wait $bump
END
check "a device that goes away is named" unshare -n sh -e gone.sh "$MUSTER_BUILD/tools/muster-bumpd"

# Two hosts whose bumps are joined by UDP, as they would be on two machines.
cat >tunnel.sh <<'END'
	ip link set lo up
	pids=
	for h in 0 1; do
		unshare -n sleep 100 &
		host=$!
		pids="$pids $host"
		until [ "$(readlink /proc/$host/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do
			sleep 0.01
		done
		ip link add v$h type veth peer name eth0 netns $host
		ip link set v$h up
		nsenter --net=/proc/$host/ns/net sh -c "ip addr add 10.77.0.$((h + 1))/16 dev eth0
			ip link set eth0 up"
		"$1" -e $h -n 2 -k 77 -H v$h -j \
			-p $((1 - h))=udp:127.0.0.1:700$h,127.0.0.1:700$((1 - h)) >bump.$h &
		pids="$pids $!"
		until grep -q ready bump.$h; do
			sleep 0.01
		done
	done
	set -- "$2" "$3" $pids
	export MUSTER_SIZE=2 MUSTER_BUMP_KEY=77 MUSTER_BUMP_GROUP=1 MUSTER_BUMP_HOSTS=2 \
		MUSTER_BUMP_LOCAL_RANK=0 MUSTER_BUMP_LOCAL_RANKS=1
	for program in "$1 check" "$2 16 100"; do
		MUSTER_RANK=0 nsenter --net=/proc/$3/ns/net $program &
		other=$!
		MUSTER_RANK=1 nsenter --net=/proc/$5/ns/net $program || exit
		wait $other || exit
	done
	kill $4 $6
	wait $4 $6
	kill $3 $5
END

tunnel() {
	unshare -n sh tunnel.sh "$MUSTER_BUILD/tools/muster-bumpd" "$hosts" \
		"$tap_home/bump_traffic.py" >out
	cat out
	grep -q 'operations right' out
	grep -q 'checksums agree' out
	for h in 0 1; do
		tail -n 1 bump.$h | python3 -c 'import json, sys
counters = json.load(sys.stdin)
assert counters["schema"] == "muster/1", counters
assert 0 <= counters["responses"] - counters["operations"] <= counters["repeated"], counters
assert counters["operations"] > 700 and counters["passed_bytes"] > 16 << 20, counters'
	done
}
if [ "$(id -u)" -eq 0 ]; then
	check "bumps joined by UDP; counters as JSON" tunnel
else
	skip "bumps joined by UDP" "it takes root"
fi

without_root() {
	chmod 755 .
	cp "$run" "$MUSTER_BUILD/tools/muster-bumpd" "$hosts" .
	setpriv --reuid=65534 --regid=65534 --clear-groups ./muster-run --bump -n 3 ./bump_hosts check
}
if [ "$(id -u)" -ne 0 ]; then
	skip "without root" "all of it was"
elif setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Un true 2>/dev/null; then
	check "without root" without_root
else
	skip "without root" "nobody may make user namespaces here"
fi

# ---- deaths ---------------------------------------------------------------------

# Every rank of "$@" says what ended it; nobody says a wrong sum, nobody hangs.
named() {
	cat out err
	fails grep -q 'is [0-9a-f]*, not' err
	grep -qE 'no answer|error [89]' err
}

host_dies() {
	cat >victim.sh <<-'END'
		[ "$MUSTER_RANK" != 2 ] || { "$1" sum 3600 & sleep 0.5; kill -9 $! $$; }
		exec "$1" sum 3600
	END
	export BUMP_DEADLINE=2
	fails "$run" --bump -n 4 sh victim.sh "$hosts" >out 2>err
	named
}
check "a host that dies: the others are told" host_dies

# bump ELEMENT KEY: the process id of that bump
bump() {
	pgrep -f -- "^[^ ]*muster-bumpd .*-e$1 .*$2 "
}

started() {
	[ "$(grep -c key out)" = 3 ]
}

start_ranks() {
	: >out	# what was there before is not what has started
	OWNER=$PWD "$run" --bump -n 3 sh -c 'echo "key $MUSTER_BUMP_KEY pid $$"; exec "$0" sum "$1"' \
		"$hosts" "$1" >out 2>err &
	runner=$!
	within 60 started
	key=-k$(sed -n 's/.*key \([0-9a-f]*\) .*/\1/p' out | head -n 1)
}

# Where the ranks had no answer in time before, a longer deadline helps.
bump_dies() {
	for deadline in 2 8 32 128; do
		export BUMP_DEADLINE=$deadline
		start_ranks 3600
		kill -9 "$(bump 1 "$key")" || :
		fails wait $runner
		named
		! grep -q 'the bump of host 1 was killed by signal 9' err || return 0
	done
	return 1
}
check "a bump that dies: all ranks are told" bump_dies

# The runner may have lost patience before, and taken the hosts away.
again_or_over() {
	grep -q ready log || gone $again || gone $runner
}

bump_restarts() {
	export BUMP_DEADLINE=30 BUMP_ENOUGH="$PWD/enough"
	start_ranks 3600
	victim=$(bump 1 "$key")
	other=$(bump 0 "$key")
	tr '\0' '\n' <"/proc/$victim/cmdline" >command
	kill -9 "$victim"
	xargs -d '\n' nsenter --net="/proc/$other/ns/net" <command >log 2>&1 &
	again=$!
	within 60 again_or_over
	touch enough
	status=0
	wait $runner || status=$?
	echo "status $status"
	cat out err log
	left=$(bump 1 "$key")	# the runner may have ended it, with all that is in its hosts
	[ -z "$left" ] || kill "$left" || gone "$left"
	[ $status -eq 0 ] || named
}
check "a bump that is restarted: right, or a named error" bump_restarts

all_gone() {
	for pid in $1; do
		gone "$pid" || return 1
	done
}

# Who held a namespace still would be of this run; the numbers of those that are gone others get at once.
nobody_is_left() {
	same "" "$(grep -lsz "^OWNER=$PWD$" /proc/[0-9]*/environ || :)"
}

nothing_left() {
	devices=$(ls /sys/class/net)
	start_ranks 3600
	pids=$(sed -n 's/.*pid //p' out)
	bumps=$(for e in 0 1 2; do bump $e "$key"; done)
	same 6 "$(echo $pids $bumps | wc -w)"
	kill -9 $runner
	wait $runner || true
	within 60 all_gone "$pids $bumps"
	within 60 nobody_is_left
	fails sh -c 'ls /sys/class/net | grep -E "^(h|d|b[0-9]+p)[0-9]+$" | grep -vxF "$0"' "$devices"
}
check "when the runner is killed no process, namespace or device is left" nothing_left
finish
