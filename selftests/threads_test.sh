#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Ranks of several threads that use the library at once, with and without one of the library's
# own. MUSTER_THREADS: the program, if it is another build's (make check-threads).
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
threads=${MUSTER_THREADS:-$MUSTER_BUILD/selftests/threads}
for program in "$run" "$threads"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

# threads PROGRESS WIRE RANKS THREADS ROUNDS
threads() {
	MUSTER_PROGRESS=$1 MUSTER_WIRE=$2 "$run" -n "$3" "$threads" "$4" "$5"
}
for wire in ring unix; do
	check "threads of each rank work on communicators of their own ($wire)" \
		threads calls $wire 3 4 8
	check "the same beside a thread that makes progress ($wire)" threads thread $wire 3 4 8
done
check "one caller beside a thread that makes progress" threads thread ring 2 1 30

finish
