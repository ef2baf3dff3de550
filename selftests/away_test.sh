#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks that stay outside of the library: the others need no further call of theirs for what has
# ended, nor for what was started, if a thread makes progress. A hang runs into the run's end.
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
away=$MUSTER_BUILD/selftests/away
for program in "$run" "$away"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

# stays_away BEHAVIOUR RANKS WIRE OFFLOAD
stays_away() {
	rm -f ended.*
	MUSTER_WIRE=$3 MUSTER_OFFLOAD=$4 "$run" -n "$2" "$away" "$1" ended
}

for wire in unix ring; do
	check "what a root sent last leaves although it computes (NIC path, $wire)" \
		stays_away ends 4 $wire force
	check "the same (host path, $wire)" stays_away ends 4 $wire off
done
check "the same of what is said last in the making of a communicator" stays_away makes 40 unix try

overlaps() {
	MUSTER_PROGRESS=thread stays_away overlaps "$@"
}
for wire in ring unix; do
	check "with MUSTER_PROGRESS=thread what was started goes on without calls (NIC path, $wire)" \
		overlaps 3 $wire force
	check "the same (host path, $wire)" overlaps 3 $wire off
done

finish
