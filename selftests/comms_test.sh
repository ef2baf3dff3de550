#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Many communicators of real processes: open at once, all at work, in another order on
# each rank, and nothing of them left; none that is not read holds up another. The
# numbers are for every day; MUSTER_COMMS, MUSTER_RANKS and MUSTER_OPERATIONS set others (make check-scale),
# MUSTER_SIMULATED those of communicators in the simulated world, each of MUSTER_SIMULATED_RANKS with a NIC each, and
# MUSTER_SIMULATED_SEED the world (2: memory rings, on which many take four minutes instead of an hour).

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
comms=$MUSTER_BUILD/selftests/comms
checked=$MUSTER_BUILD/san/selftests/comms
incast=$MUSTER_BUILD/selftests/incast
simulated=$MUSTER_BUILD/selftests/dst/many
for program in "$run" "$comms" "$checked" "$incast" "$MUSTER_BUILD/san/selftests/incast" "$simulated"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

many=${MUSTER_COMMS:-250}
ranks=${MUSTER_RANKS:-8}

ranks() {
	n=$1
	shift
	"$run" -n "$n" --no-prefix "$@"
}

on_path() {
	MUSTER_OFFLOAD=$1 ranks "$ranks" "$comms" many "$many" >out
	sed 's/^/# /' out >&3
}

along() {
	MUSTER_OFFLOAD=$1 ranks "$2" "$checked" neighbours "$3"
}

check "$many communicators of $ranks ranks at once leave nothing (NIC path)" on_path try 3>&1
check "$many communicators of $ranks ranks at once leave nothing (host path)" on_path off 3>&1

in_simulated_world() {
	"$simulated" "$many_simulated" "$ranks_simulated" "${MUSTER_SIMULATED_SEED:-1}" >out || { cat out && return 1; }
	sed 's/^/# /' out >&3
}
many_simulated=${MUSTER_SIMULATED:-24}
ranks_simulated=${MUSTER_SIMULATED_RANKS:-12}
check "$many_simulated communicators of $ranks_simulated simulated ranks at once leave nothing" \
	in_simulated_world 3>&1

check "groups that have their members for themselves cost little at rest" ranks 8 "$comms" groups 1000

check "communicators made and freed again and again leave nothing" ranks 4 "$comms" churn 2000
for n in 5 12; do
	check "$n ranks split three ways" ranks "$n" "$checked" split 3
done
check "a hundred communicators that are not read hold up no other" ranks 4 "$checked" unread 100

# All at once, each message as soon as its sender likes, to one who is elsewhere.
many_to_one() {
	rm -f through
	MUSTER_OFFLOAD=force MUSTER_SCHEDULE=gather=linear ranks 16 "$1" "$2"
}
check "15 send to one on 64 communicators, and go on among themselves" many_to_one "$incast" 64
check "the same on 8, under sanitizers" many_to_one "$MUSTER_BUILD/san/selftests/incast" 8

for n in 1 2 3 7; do
	check "$n ranks exchange with neighbours (NIC path)" along force "$n" 3000
	check "$n ranks exchange with neighbours (host path)" along off "$n" 40000
done


mixed() {
	ranks 4 "$1" mixed "$2" >out
	cat out
	[ -z "${MUSTER_OPERATIONS:-}" ] || sed 's/^/# /' out >&3
}
check "${MUSTER_OPERATIONS:-20000} operations over 64 communicators made and freed at random" \
	mixed "$comms" "${MUSTER_OPERATIONS:-20000}" 3>&1
check "1000 of them under sanitizers" mixed "$checked" 1000 3>&1

# Only rank 0 is told what to use.
rank_0_chooses() {
	cat >choose.sh <<-'EOF'
		[ "$MUSTER_RANK" != 0 ] || export MUSTER_SCHEDULE=allreduce=ring MUSTER_OFFLOAD=off
		exec "$@"
	EOF
	ranks 3 sh choose.sh "$comms" chosen 64 >out
	cat out
	same 3 "$(grep -c 'path 1 by ring' out)"
}
check "what all must use alike is rank 0's choice" rank_0_chooses

finish
