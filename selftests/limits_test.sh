#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Many ranks under a small limit of open files: they meet and work, or all say what is
# too small and how much it must be.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
perf=$MUSTER_BUILD/tools/muster_perf
[ -x "$run" ] || skip_all "there is no $run (make all)"
FILES=$(little_or 512 1024)
RANKS=$(little_or 110 220)

barriers() {
	ulimit -n $FILES
	MUSTER_DEADLINE=800 "$@" "$run" -n $RANKS "$perf" barrier -i 3 -x 1 -D 0.1 -p nic >out 2>&1 ||
		{ head -5 out; false; }
	grep -q "nic path taken" out
}

# Descriptors under way are limited as well, all that a user's processes have sent, but for root: who is
# root has this done by a user of its own.
if others_run "$run"; then
	as="setpriv --reuid $((10000 + $$ % 50000)) --clear-groups"
else
	as=env
fi
# shellcheck disable=SC2086 # words
check "$RANKS ranks meet with $FILES open files each" barriers $as

too_few() {
	ulimit -n 64
	fails env MUSTER_DEADLINE=800 "$run" -n 20 "$perf" barrier >out 2>&1
	cat out
	grep -q "rank 0: Too many open files: the limit is 64 (ulimit -n)" out
}
check "where the limit is too small, it is named" too_few

finish
