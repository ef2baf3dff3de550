#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Several jobs at one network of switches, with one manager: they lock its streaming trees.
# MUSTER_CONTEND: turns of each of the jobs that contend (default 8).
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
switchd=$MUSTER_BUILD/tools/muster-switchd
am=$MUSTER_BUILD/tools/muster-am
switched=$MUSTER_BUILD/selftests/switched

cat >at.sh <<'END'
	leaf=$((16711680 + (first + MUSTER_RANK) / each))
	MUSTER_WIRE=switch MUSTER_FABRIC=$net MUSTER_UPLINK=$leaf,1 MUSTER_FIRST_HOST=$first MUSTER_MANAGER=$manager
	export MUSTER_WIRE MUSTER_FABRIC MUSTER_UPLINK MUSTER_FIRST_HOST MUSTER_MANAGER
	exec "$@"
END

manage() {
	"$am" -t "$topology" -m "$manager" "$@" >report 2>>errors &
	manages=$!
}

# network NAME TOPOLOGY HOSTS-OF-A-LEAF OPTION...: the options are the manager's
network() {
	export net="unix:@muster-locks-$$-$1" manager="@muster-locks-$$-$1-m" each="$3"
	topology=$2
	shift 3
	: >ready
	rm -f counters
	: >errors
	manage "$@"
	"$switchd" -t "$topology" -w "$net" -m "$manager" -j -c counters >ready 2>>errors &
	daemon=$!
	trap 'kill $daemon $manages $jobs 2>/dev/null || :' EXIT
	jobs=
	within 300 grep -q ready ready
}

# job NUMBER RANKS COMMAND...: in the background, its ranks at the hosts that follow those of the one before
job() {
	export first=$(($1 * $2))
	number=$1 ranks=$2
	shift 2
	"$run" --no-prefix -n "$ranks" sh at.sh "$@" >"out.$number" 2>"err.$number" &
	jobs="$jobs $!"
}

jobs_end() {
	for pid in $jobs; do
		wait "$pid" || { cat err.*; return 1; }
	done
	jobs=
}

# number NAME: that counter of all switches, summed
number() {
	python3 -c 'import json, sys; print(sum(json.loads(line)[sys.argv[1]] for line in open("counters")))' "$1"
}

# network_ends [failed]: where a job ends with an error a rank may go before another, and their groups fail
network_ends() {
	kill $manages
	wait $manages
	kill $daemon
	wait $daemon
	cat counters
	same "0 0 0" "$(number locked) $(number groups) $(number bytes)"
	same "0 0" "$(number drop_unlocked) $(number drop_stranger)"
	[ "${1-}" = failed ] || same 0 "$(number failed)"
}

# contend JOBS RANKS TOPOLOGY HOSTS-OF-A-LEAF
contend() {
	network contend "$3" "$4" -S
	# Nobody gives up here, however busy the machine is.
	export MUSTER_SWITCH=force MUSTER_STATS=1 MUSTER_LOCK_WAIT=800
	for i in $(seq 0 $(($1 - 1))); do
		job "$i" "$2" "$switched" contend "${MUSTER_CONTEND:-8}"
	done
	jobs_end
	network_ends
	same "$1" "$(grep -h 'operations, 0 elsewhere' out.* | wc -l)"
	same "$1" "$(grep -h 'locks of streaming trees' err.* | tee /dev/stderr | wc -l)"
	test "$(number locks)" -gt 0
}
check "4 jobs of 3 ranks and 8 communicators, over six leaf switches, lock two trees in turns" \
	contend 4 3 fat-tree:2x6x1 2

# locked NUMBER: so many groups have locks
locked() {
	rm -f counters
	kill -USR1 $daemon
	within 300 test -s counters
	same "$1" "$(number locked)"
}

# Both trees are locked by others, whose ranks wait for a file; so this one's operations go elsewhere.
elsewhere() {
	rm -f go
	network "$1" switch:8 8 -S
	job 0 2 "$switched" hold "$PWD/go"
	job 1 2 "$switched" hold "$PWD/go"
	within 300 locked 2
	others=$jobs jobs=
	job 2 2 env "$2" "$switched" contend 8
	jobs_end
	same "15 operations, 15 elsewhere" "$(cat out.2)"
	jobs=$others
	touch go
	jobs_end
	rm -f counters
	network_ends
}
check "with MUSTER_LOCK=fail another path is taken where another job has the lock" elsewhere fail MUSTER_LOCK=fail
check "who has waited long enough gives up, and takes another path" elsewhere wait MUSTER_LOCK_WAIT=0.05

# Where no other path may be taken it is an error, with the reason.
refused() {
	rm -f go
	network refused switch:8 8 -S
	job 0 2 "$switched" hold "$PWD/go"
	job 1 2 "$switched" hold "$PWD/go"
	within 300 locked 2
	others=$jobs jobs=
	job 2 2 env MUSTER_SWITCH=force MUSTER_LOCK=fail "$switched" contend 8
	! jobs_end >/dev/null
	grep -q "another job had the streaming tree locked" err.2
	jobs=$others
	touch go
	jobs_end
	rm -f counters
	network_ends failed
}
check "if that must not be, the operation fails, and says why" refused

asked() {
	same "$2" "$(grep -c asked "out.$1")"
}

# Jobs 1 and 2 have the same tree and one leaf switch of three in common; job 3 has the other tree.
tardy() {
	rm -f go
	network tardy fat-tree:4x3x1 4 -S
	export MUSTER_SWITCH=force
	job 1 3 "$switched" tardy "$PWD/go"
	within 300 asked 1 2
	job 3 3 "$switched" hold "$PWD/go"
	within 300 locked 1
	others=$jobs jobs=
	job 2 3 env MUSTER_LOCK=fail "$switched" contend 8
	jobs_end
	same "15 operations, 0 elsewhere" "$(cat out.2)"
	jobs=$others
	asked 1 2
	touch go
	jobs_end
	asked 1 3
	rm -f counters
	network_ends
}
check "a member that calls late holds up nobody but its own job" tardy

# groups NUMBER: so many are there
groups() {
	rm -f counters
	kill -USR1 $daemon
	within 300 test -s counters
	same "$1" "$(number groups)"
}

# Without --shared each of two jobs has a streaming tree of its own, and a third has none.
own() {
	rm -f go
	network own switch:8 8
	job 0 2 "$switched" hold "$PWD/go"
	job 1 2 "$switched" hold "$PWD/go"
	within 300 groups 4
	others=$jobs jobs=
	export MUSTER_STATS=1
	job 2 2 "$switched" contend 2
	jobs_end
	grep -q 'not the switches: .*there is no streaming tree' err.2
	jobs=$others
	touch go
	jobs_end
	rm -f counters
	network_ends
	same "0 0" "$(number locks) $(number locks_refused)"
}
check "where streaming trees are not shared each of two jobs has its own, without locks" own

# A manager is killed, and then one of two jobs: the next one takes back what that had.
orphans() {
	rm -f go
	network orphans fat-tree:2x2x1 2
	job 0 2 "$switched" hold "$PWD/go"
	job 1 2 "$switched" hold "$PWD/go"
	within 300 groups 4
	kill -9 $manages
	wait $manages || :
	kill -9 "${jobs##* }"
	wait "${jobs##* }" || :
	jobs=${jobs% *}
	groups 4
	manage
	within 300 groups 2
	touch go
	jobs_end
	# Who leaves as its switch comes to the new manager is gone before that has taken its groups back.
	within 300 groups 0
	rm -f counters
	network_ends failed
}
check "what a job has that ends without a manager the next one takes back, and nothing else" orphans

finish
