#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks at the hosts of a network of switches: muster-switchd, and muster-run --topology; and
# the library's operations on reduction trees.
# MUSTER_SWEEP: bytes of the longest of these (default 4104).
. "$(dirname "$0")/tap.sh"
. "$tap_home/apart.sh"
. "$tap_home/outlive.sh"
. "$tap_home/replace.sh"
. "$tap_home/drain.sh"

run=$MUSTER_BUILD/tools/muster-run
switchd=$MUSTER_BUILD/tools/muster-switchd
am=$MUSTER_BUILD/tools/muster-am
ranks=$MUSTER_BUILD/selftests/ranks
switched=$MUSTER_BUILD/selftests/switched
checked=$MUSTER_BUILD/san/selftests	# the same programs under sanitizers
perf=$MUSTER_BUILD/tools/muster_perf
some=$(little_or some bits)	# lengths

digest() {
	"$run" --no-prefix "$@" "$ranks" "$some" | sed -n 's/^digest //p'
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
	same "$first" "$(MUSTER_SWITCH=off MUSTER_SWITCHD_OPTIONS="-j -c counters" \
		digest --topology "$2" -n "$1")"
	test "$(count forwarded)" -gt 1000
	same 0 $(($(count drop_malformed) + $(count drop_stranger)))
}
check "4 ranks at one switch have the bits of other wires" forwards 4 switch:5
check "5 ranks at a torus of switches" forwards 5 switch-torus:1x3x2
check "8 ranks at a fat tree of two levels" forwards 8 fat-tree:4x2x2

written() {
	printf 'muster-topology 1\nname own\nnodes 5\nlink 0 -- 3 1\nlink 1 -- 4 1\nlink 2 -- 4 1\nlink 3 -- 4 1\nswitch 3 4\nend\n' >network
	MUSTER_SWITCH=off "$run" --topology ./network -n 3 "$perf" -c -m 64K:64K -i 3 all >out
	fails grep -q wrong out
	same 22 "$(grep -c '^\[0\] # .* times in us' out)"
}
check "a network from a file, and every collective is right on both paths" written

# sweep RANKS LEAVES EACH PROGRAM [OPTIONS]: every operation has the bits of the tree's own order
sweep() {
	rm -f counters
	MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c counters ${5-}" "$run" --no-prefix -n "$1" \
		--topology "fat-tree:$3x$2x1" "$4" sweep "$3" "${MUSTER_SWEEP:-4104}" >out
	cat out
	test "$(sed -n 's/ operations by the switches//p' out)" -gt 1000
	test "$(count contributions)" -gt 5000
	same 0 $(($(count drop_malformed) + $(count drop_stranger) + $(count drop_window)))
	same "0 0 0" "$(count failed) $(count groups) $(count bytes)"
}
check "16 ranks, both trees over four leaves: types, operations, lengths, roots and groups" \
	sweep 16 4 4 "$switched"
check "6 ranks over two leaves, the program under sanitizers" sweep 6 2 3 "$checked/switched"
check "4 ranks at two leaves that have 2 segments of a streaming group each" sweep 4 2 2 "$switched" "-S 2"

# Two leaves of six hosts, whose switches have two half rings of four ports each.
ordered() {
	# shellcheck disable=SC2016 # by that shell
	MUSTER_SWITCHD_OPTIONS="-r 8" "$run" --no-prefix -n 12 --topology fat-tree:6x2x1 \
		sh -c '[ "$MUSTER_RANK" != 0 ] || export MUSTER_SWITCH_ORDER=try; exec "$@"' rank "$1" order >out
	same "21 operations" "$(cat out)"
}
check "by both trees, NIC and host path sums have the same bits, if these are to have the trees' order" \
	ordered "$switched"

orderless() {
	same "sum 3" "$(MUSTER_SWITCH_ORDER=try "$run" --no-prefix -n 3 "$switched" order_without | sort -u)"
	same "the trees' order is forced, but this allreduce would not have it: there is no tree" \
		"$(MUSTER_SWITCH_ORDER=force "$run" --no-prefix -n 3 "$switched" order_without | sort -u)"
	fails env MUSTER_SWITCH_ORDER=yes "$run" -n 2 "$switched" order_without 2>err
	grep -q 'MUSTER_SWITCH_ORDER=yes: allowed is off, try or force' err
}
check "without a tree an operation says that it has not its order, or fails if it must" orderless

program() {
	"$run" --topology switch:5 -n 4 --no-prefix "$ranks" "$some" >out
	test "$(sed -n 's/^bump \([0-9]*\) .*/\1/p' out)" -gt 100
}
check "an unchanged program takes trees, and they differ from other paths only where they say so" program

behaviours() {
	# All are through with the communicator when creates ends: a mismatch fails what a slow rank still waits for.
	for behaviour in bad,started,overtakes,creates,mismatch=operation "late 2" \
		"mismatch length" "mismatch type" "mismatch op" leaves; do
		echo "$behaviour"
		# shellcheck disable=SC2086 # words
		"$run" --topology switch:4 -n 3 "$checked/ranks" $behaviour
	done
	MUSTER_LATE_TIMEOUT=1 "$run" --topology switch:4 -n 3 "$checked/away" toolate late
}
check "late, leaving and mismatched ranks are told as on the other paths" behaviours

# late COMMAND: rank 4 takes nothing until ranks 3 and 5, at the same two leaf switches, are through
late() {
	rm -f go counters
	MUSTER_SWITCH=off MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --no-prefix -n 8 \
		--topology fat-tree:4x2x1 "$1" late "$PWD/go" >out
	same "the others are through" "$(cat out)"
	same "0 0" "$(count held) $(count flows)"
}
check "a late receiver does not stop those whose packets go by the same links" late "$switched"

# with VALUE COMMAND...: another MUSTER_MANAGER than muster-run's
cat >with.sh <<'END'
	[ "$1" = none ] && unset MUSTER_MANAGER || export MUSTER_MANAGER="$1"
	shift
	exec "$@"
END

without() {
	"$run" --topology switch:4 -n 3 sh with.sh none "$ranks" late 0
	"$run" --topology switch:4 -n 3 sh with.sh @nobody-$$ "$ranks" late 0
	export MUSTER_SWITCH=force
	fails "$run" --topology switch:4 -n 3 sh with.sh none "$ranks" late 0 2>err
	grep -q 'the switches are forced, but no network of switches is there' err
	fails "$run" --topology switch:4 -n 3 sh with.sh @nobody-$$ "$ranks" late 0 2>err
	grep -q "the switches are forced, but the manager at @nobody-$$: Connection refused" err
	fails env MUSTER_AM_OPTIONS="-g 5" "$run" --topology switch:4 -n 3 "$switched" leases 2>err
	grep -q 'no group was made: ' err
	MUSTER_SWITCH=try MUSTER_AM_OPTIONS="-g 5" "$run" --topology switch:4 -n 3 \
		"$switched" leases
}
check "without a manager or a group another path does it, or nothing if switches must" without

pids_known() {
	same 3 "$(grep -cs 'pid [0-9][0-9]*$' out)"
}

leases_end() {
	rm -f out counters
	MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --topology "$tap_dir/network" --grace 800 -n 3 \
		"$switched" leases keep >out 2>err &
	runner=$!
	within 60 pids_known
	kill -USR1 "$(switches)"
	within 60 test -s counters
	test "$(count groups)" -ge 9
	# shellcheck disable=SC2046 # some
	kill -9 $(sed -n 's/.*pid //p' out)
	status=0
	wait $runner || status=$?
	same 137 $status
	tail -n "$(($(wc -l <counters) / 2))" counters >last
	mv last counters
	same "0 0" "$(count groups) $(count bytes)"
}

strangers() {
	MUSTER_SWITCH=force "$run" --topology switch:6 -n 3 "$checked/strangers"
}
check "who is no member of a group, or nobody, leaves none; what makes no sense is not heard" strangers

check "100,000 wrong messages at a switch are counted and change nothing, under sanitizers" \
	"$checked/switch_fuzz" 100000

# 39 hosts that say HELLO; when ./go is there each goes as it has been welcomed
cat >crowd.py <<'END'
import os, socket, struct, sys, time
version = int(sys.argv[2])
leases = []
for host in range(39):
    lease = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lease.connect("\0" + sys.argv[1])
    lease.send(struct.pack("<HHIQQQIIIIHBBIII", version, 1, 0, 0, 0, 7, host, 0, 1, 0, 0, 0, 0, 0, 0, 0))
    leases.append(lease)
while not os.path.exists("go"):
    time.sleep(0.05)
for lease in leases:
    welcome = lease.recv(4096)
    assert struct.unpack_from("<HHI", welcome) == (version, 2, 0), welcome
    lease.close()
END

sleeps() {
	grep -q '^State:[[:space:]]*S' "/proc/$1/status"
}

# They meet a daemon with 24 file descriptors at most, and 16 until it asks for more.
crowded() {
	rm -f ready go err
	name=muster-crowd-$$ crowd=
	# shellcheck disable=SC3045 # dash has it
	(ulimit -S -n 16 && ulimit -H -n 24 && exec "$am" -t switch:40 -m @$name-m) >ready 2>err &
	daemon=$!
	trap 'kill $daemon $crowd 2>/dev/null || true' EXIT
	within 300 grep -q ready ready
	python3 crowd.py $name-m "$(sed -n 's/^#define MUSTER_MANAGER_VERSION[[:space:]]*//p' "$tap_home/../uapi/muster_manager.h")" &
	crowd=$!
	within 300 grep -q 'no file descriptor is left for more hosts' err
	within 300 sleeps $daemon
	same 24 "$(awk '/^Max open files/ { print $4 }' /proc/$daemon/limits)"
	touch go
	wait $crowd
	kill $daemon
	wait $daemon
	same 1 "$(wc -l <err)"
}
check "more hosts than the manager has file descriptors for wait until others go, and it sleeps" crowded

# kill -9 leaves the socket's file behind; that of one that lives is not taken away.
ready_or_gone() {
	grep -q ready ready || gone $daemon
}

killed() {
	for turn in 1 2; do
		: >ready
		"$am" -t switch:4 -m ./left >ready 2>err &
		daemon=$!
		trap 'kill $daemon 2>/dev/null || true' EXIT
		within 300 ready_or_gone
		grep -q ready ready || { cat err; false; }
		fails "$am" -t switch:4 -m ./left >out 2>&1
		cat out
		grep -q 'in use' out
		[ -S left ]
		kill -9 $daemon
		wait $daemon || :
	done
	trap - EXIT
}
check "the manager's socket is taken over from one that was killed, and from nobody else" killed

no_socket() {
	echo kept >kept
	fails timeout 60 "$am" -t switch:4 -m ./kept >out 2>&1
	cat out
	grep -q 'in use' out
	same kept "$(cat kept)"
}
check "a file that is no socket is not taken away for it" no_socket

# everything that --topology started
daemons() {
	{ here muster-switchd; here muster-am; } | grep .
}

switches() {
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

check "groups go with their communicators, and with processes that are killed" leases_end

switches_die() {
	export VICTIM=1
	start_ranks
	kill -9 "$(switches)"
	status=0
	wait $runner || status=$?
	cat out err
	same 1 $status
	grep -q "^\[[0-2]\] .*the network has lost a switch or a link" err
	grep -q 'muster-run: the switches were killed by signal 9' err
}
check "when the switches are killed all ranks end, and say that the network has lost one" switches_die

started() {
	same 4 "$(grep -cs 'pid [0-9][0-9]*$' out)"
}

# lost RANKS WORDS: both of these say that
lost() {
	same 2 "$(grep -c "^\[[$1]\] lost: .*$2" out)"
}

# The seconds tell a hang from what any machine takes.
ends() {
	within 120 gone $runner || { kill $runner; }
	cat out err
}

# Who comes to such a network later is told, too.
spine_dies() {
	apart_open spine
	apart_start
	within 300 started
	kill -9 "$spine"
	ends
	lost 01 'rank [23] has died or left the job, or the network has lost a switch'
	lost 23 'rank [01] has died or left the job, or the network has lost a switch'
	apart_start
	ends
	fails started
	grep -q 'the network has lost a switch' err
}
check "when a spine is killed all ranks say whom they have lost, and who comes later does" spine_dies

leaf_dies() {
	apart_open leaf
	apart_start
	within 300 started
	kill -9 "$leaf_1"
	ends
	lost 01 'rank [23] has died or left the job, or the network has lost a switch'
	lost 23 'the network has lost a switch or a link'
}
check "when a leaf is killed its ranks have lost the network, and all others say whom they have lost" leaf_dies

check "when the manager is killed operations go on, and another one takes over" outlive 100
check "the same with each switch in a process of its own" outlive 300 --apart

MUSTER_AM_OPTIONS=--shared check "each switch is replaced as operations go on, and none sees it" replace_all 1

# replaced_times NUMBER: the program of $pid has taken the place of so many
replaced_times() {
	kill -USR1 $pid
	sleep 0.05
	test -s counters && same "$1" "$(python3 -c 'import json; print([json.loads(line) for line in open("counters") if line.endswith("}\n")][-1]["replaced"])')"
}

# A link leads to the program, so that there may be another one.
drained() {
	drain_open "$@"
	drain_start
	drain_order --drain=2
	drain_report
	fails grep '^group .* switches [^h]* 2 ' report
	same 6 "$(grep -c '^group .* switches [^h]* 3 ' report)"
	grep -q '^switch 2 .* drained' report
	drain_stop 2
	sleep 0.5
	drain_end
	same 4 "$(sed -n 's/ rounds//p' out | awk '$1 > 1' | wc -l)"
	[ -z "${MUSTER_SWITCH_ORDER:-}" ] ||
		same 4 "$(grep -c '^past the trees: NIC: offloaded; in the order .* as it was before it moved' out)"
}
MUSTER_SWITCH_ORDER=try \
	check "a spine is drained while ranks go on, idle communicators as well, and stopped: no operation fails" drained
check "the same where streaming trees are locked" drained --shared

# Each spine in turn; what is made anew goes over those that have come back.
drained_by_turns() {
	drain_open "$@"
	drain_start
	for round in 1 2; do
		drain_replace 2 $((10 * round))
		drain_replace 3 $((10 * round + 1))
	done
	drain_order --drain=2
	drain_report
	same 6 "$(grep -c '^group .* switches [^h]* 3 ' report)"
	drain_end
	kill -USR1 "$switch_3"
	within 300 grep -q '"contributions": [1-9].*"groups": 0, "bytes": 0, "held": 0' counters.3
	grep -q '"forwarded": [1-9].*"drop_route": 0,' counters.3
}
check "spines are drained, stopped and begun anew in turn, 2 rounds: no operation fails" drained_by_turns
check "the same where streaming trees are locked" drained_by_turns --shared

# refuses_to_drain WORDS OPTION
refuses_to_drain() {
	fails "$am" -m "$drain_manager" "$2" 2>said
	grep -q "$1" said || { cat said; return 1; }
}

undrainable() {
	drain_open
	refuses_to_drain 'host 0 hangs on it, by the only link that it has' --drain=0
	refuses_to_drain 'the network has no such switch' --drain=4
	refuses_to_drain 'that switch is not drained' --undrain=2
	"$am" -m "$drain_manager" --drain=2
	refuses_to_drain 'without it no way leads from host 0 to host 2' --drain=3
	kill "$switch_3"
	within 300 gone "$switch_3"
	refuses_to_drain 'switch 3 is not connected to the manager' --undrain=2
}
check "a switch that nothing leads around is not drained, and it is said why" undrainable

refuses() {
	rm -f counters errors
	ln -sf "$switchd" mine
	: >ready
	./mine -t switch:2 -w "unix:@muster-refuses-$$" -j -c counters >ready 2>errors &
	pid=$!
	trap 'kill $pid 2>/dev/null || :' EXIT
	within 300 grep -q ready ready
	ln -sf /bin/false mine
	kill -USR2 $pid
	within 300 grep -q 'the program at ./mine does not go on with what this one has' errors
	within 300 replaced_times 0
	ln -sf "$switchd" mine
	kill -USR2 $pid
	within 300 replaced_times 1
	kill -USR2 $pid
	within 300 replaced_times 2
	same 1 "$(grep -c ready ready)"
	same 1 "$(grep -c . errors)"
	kill $pid
	wait $pid
	trap - EXIT
}
check "a program that cannot take a switch's place does not get it" refuses

resumes_nothing() {
	"$switchd" -t switch:2 -w "unix:@muster-refuses-$$" --resume=99 2>errors && return 1
	grep -q 'there is nothing to go on with' errors
}
check "nobody goes on with what nobody has written" resumes_nothing

# Ranks that are in operations by trees, and a manager that is told to give everything back.
cleaned() {
	rm -f out counters
	MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --topology "$tap_dir/network" --grace 800 \
		-n 4 "$switched" chaos >out 2>err &
	runner=$!
	trap 'kill $runner 2>/dev/null || :' EXIT
	within 300 started
	"$am" -m "$(manager)" --clean
	ends
	same 4 "$(grep -c 'lost: ' out)"
	same "0 0 0" "$(count groups) $(count bytes) $(count held)"
	test "$(count failed)" -gt 0
	same 1 "$(status_of "$am" -m @nobody-$$ --clean)"
}

manager() {
	tr '\0' '\n' <"/proc/$(switches)/cmdline" | sed -n '/^-m$/{n;p;}'
}

# Ranks 0 and 1 are at one leaf, 2 and 3 at the other; switch 2 is the spine.
link_cut() {
	printf 'muster-topology 1\nname x\nnodes 7\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 5 1\nlink 3 -- 5 1\nlink 4 -- 6 1\nlink 5 -- 6 1\nswitch 4 5 6\nend\n' >network
	rm -f out counters
	MUSTER_SWITCHD_OPTIONS="-j -c counters" "$run" --topology "$tap_dir/network" --grace 800 -n 4 \
		"$switched" chaos >out 2>err &
	runner=$!
	within 300 started
	"$am" -m "$(manager)" -x 2-0
	ends
	same 4 "$(grep -c 'lost: ' out)"
	same "0 0 0" "$(count groups) $(count bytes) $(count held)"
	test "$(count gone)" -gt 0
}
check "when a link is taken down the ranks on both sides of it hear of it" link_cut

check "muster-am --clean fails the groups that are there, and ends when they are gone" cleaned

# managed NAME TOPOLOGY: a manager, then all its switches
managed() {
	: >ready
	"$am" -t "$2" -m "@$1-m" >report &
	manager=$!
	"$switchd" -t "$2" -w "unix:@$1" -m "@$1-m" >ready &
	daemon=$!
	trap 'kill $daemon $manager 2>/dev/null || true' EXIT
	within 300 grep -q ready ready
}

cut_refused() {
	name=muster-cut-$$
	managed $name fat-tree:2x2x1
	same 1 "$(status_of "$am" -m @$name-m -x 0-3)"
	grep -q 'the network has no such switch' err
	same 1 "$(status_of "$am" -m @$name-m -x 0-1)"
	grep -q 'these switches have no link' err
	same 0 "$(status_of "$am" -m @$name-m -x 0-2)"
	kill $daemon
	wait $daemon
	within 300 cut_by_nobody
	kill $manager
	wait $manager
	same 1 "$(status_of "$am" -m @$name-m -x 0-2)"
	same 2 "$(status_of "$am" -x 0-2)"
	same 2 "$(status_of "$am" -m @$name-m -r 8)"
	grep -q -- '-r is for the network of -t' err
	same 2 "$(status_of "$am" -m @$name-m -x 0)"
	same 2 "$(status_of "$am" -m @$name-m -x 4294967296-2)"
}

cut_by_nobody() {
	same 1 "$(status_of "$am" -m @$name-m -x 0-2)"
	grep -q 'neither switch is connected' err
}
check "a link that is not there cannot be taken down" cut_refused

all_gone() {
	for pid in $1; do
		gone "$pid" || return 1
	done
}

no_socket() {
	fails grep -q "@$1" /proc/net/unix
}

runner_dies() {
	export VICTIM=1
	start_ranks
	pids="$victim $(daemons)"
	same 3 "$(echo "$pids" | wc -w)"
	name=$(tr '\0' '\n' <"/proc/$(switches)/cmdline" | sed -n 's/^unix:@//p')
	grep -q "@$name" /proc/net/unix
	kill -9 $runner
	wait $runner || true
	within 60 all_gone "$pids"
	within 60 no_socket "$name"
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
	same 2 "$(status_of "$run" --apart -n 2 true)"
	same 125 "$(MUSTER_AM_OPTIONS="-t fat-tree:2x2x2" status_of "$run" --topology fat-tree:3x2x2 -n 3 true)"
	grep -q 'refuses switch 0: at port 2 of switch 0 is host 2, but in the network switch 2' err
	same 2 "$(status_of "$switchd" -t switch:3)"
	same 2 "$(status_of "$switchd" -t switch:3 -w unix:@muster-x-$$ -s 1)"
	same 2 "$(status_of "$switchd" -t switch:3 -w unix:@muster-x-$$ -S 1)"
	same 1 "$(status_of "$switchd" -t switch:3 -w nothing:)"
	fails env MUSTER_WIRE=switch "$run" -n 1 "$ranks" started >out 2>err
	grep -q 'MUSTER_WIRE=switch needs MUSTER_FABRIC' out err
}
check "what cannot be is refused with the reason" refused

# A switch that the manager has already, or of another network; and one that it does not have.
manager_refuses() {
	name=muster-refuses-$$
	managed $name fat-tree:2x2x1
	same 1 "$(status_of "$switchd" -t fat-tree:2x2x1 -w unix:@$name-2 -m @$name-m -s 1)"
	grep -q 'refuses switch 1: the switch is connected already' err
	same 1 "$(status_of "$switchd" -t fat-tree:2x3x1 -w unix:@$name-2 -m @$name-m -s 3)"
	grep -q 'refuses switch 3: the network has no switch 3' err
	kill $daemon
	wait $daemon
	same 1 "$(status_of "$switchd" -t fat-tree:1x2x1 -w unix:@$name-2 -m @$name-m -s 0)"
	grep -q 'refuses switch 0: at port 1 of switch 0 is switch 2, but in the network host 1' err
	same 1 "$(status_of "$switchd" -t fat-tree:2x2x1 -w unix:@$name-2 -m @$name-m -s 0 -r 8)"
	grep -q 'refuses switch 0: switch 0 has 8 ports, but in the network 40' err
	apart_open unmanaged	# these have no manager
	trap 'apart_close; kill $manager 2>/dev/null || true' EXIT
	MUSTER_SWITCH=force MUSTER_MANAGER=@$name-m
	export MUSTER_SWITCH MUSTER_MANAGER
	fails "$run" -n 4 sh at.sh "$apart_wire" "$switched" leases 2>err
	grep -q 'no group was made: switch [0-2] is not connected to the manager' err
}
check "the manager refuses switches, and groups without them, and says why" manager_refuses

counters_lost() {
	same 1 "$(status_of "$switchd" -t switch:3 -w unix:@muster-x-$$ -c none/counters)"
	same "muster-switchd: none/counters: No such file or directory" "$(cat err)"
	test ! -s out
	rm -f out
	"$switchd" -t switch:3 -w unix:@muster-lost-$$ -c /dev/full >out 2>err &
	daemon=$!
	trap 'kill -9 $daemon 2>/dev/null || true' EXIT
	within 300 grep -q ready out
	kill -USR1 $daemon
	within 300 test -s err
	kill $daemon
	status=0
	wait $daemon || status=$?
	same 1 $status
	same 2 "$(grep -c 'muster-switchd: /dev/full: No space left on device' err)"
}
check "counters that cannot be written are an error, which is found at the start if it is there" counters_lost
finish
