#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Many communicators of real processes: open at once, all at work, in another order on
# each rank, and nothing of them left; none that is not read holds up another. The
# numbers are for every day; MUSTER_COMMS and MUSTER_RANKS set others (make check-scale).

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
comms=$MUSTER_BUILD/selftests/comms
checked=$MUSTER_BUILD/san/selftests/comms
for program in "$run" "$comms" "$checked"; do
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
	MUSTER_OFFLOAD=$1 ranks "$ranks" "$comms" many "$many"
}

along() {
	MUSTER_OFFLOAD=$1 ranks "$2" "$checked" neighbours "$3"
}

check "$many communicators of $ranks ranks at once leave nothing (NIC path)" on_path try
check "$many communicators of $ranks ranks at once leave nothing (host path)" on_path off
check "communicators made and freed again and again leave nothing" ranks 4 "$comms" churn 2000
for n in 5 12; do
	check "$n ranks split three ways" ranks "$n" "$checked" split 3
done
check "a hundred communicators that are not read hold up no other" ranks 4 "$checked" unread 100
for n in 1 2 3 7; do
	check "$n ranks exchange with neighbours (NIC path)" along force "$n" 3000
	check "$n ranks exchange with neighbours (host path)" along off "$n" 40000
done

finish
