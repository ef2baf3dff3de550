#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ranks that outnumber the processors: each gives its own to the next before it sleeps.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
ranks=$MUSTER_BUILD/selftests/ranks
for program in "$run" "$ranks"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

# Other work on the machine makes ranks sleep; so it is enough that they once did not.
waits_without_sleep() {
	cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')	# of those that are ours
	for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		"$run" -n 4 --no-prefix taskset -c "$cpu" "$ranks" crowd >out
		sleeps=$(sort -n out | tail -n 1)
		[ "$sleeps" -ge 50 ] || return 0
	done
	echo "try $try: $sleeps sleeps in 100 barriers"
	return 1
}
check "four ranks on one processor seldom sleep in a barrier" waits_without_sleep

finish
