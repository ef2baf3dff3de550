#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# usage: run.sh SECONDS [NAME]...
#
# Each fuzzer for so long, one after the other, from the inputs that earlier runs found worth
# keeping ($MUSTER_BUILD/fuzz/corpus). Says how many inputs it has tried, and how many a second.
# An input that breaks something stays beside them, and running the fuzzer with it shows it again.
seconds=$1
shift
fuzz=${MUSTER_BUILD:?}/fuzz
here=$(cd "$(dirname "$0")" && pwd)
failed=0
for name in ${*:-engine frame ring schedule}; do
	mkdir -p "$fuzz/corpus/$name"
	seeds=$here/$name
	[ -d "$seeds" ] || seeds=
	if "$fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=2048 -timeout=60 -rss_limit_mb=4096 \
		-print_final_stats=1 -artifact_prefix="$fuzz/corpus/$name-" "$fuzz/corpus/$name" \
		${seeds:+"$seeds"} >"$fuzz/$name.log" 2>&1; then
		awk -v name="$name" '/number_of_executed_units/ { tried = $2 } /average_exec_per_sec/ { rate = $2 }
			END { printf "%-10s %10d inputs, %7d a second: nothing broke\n", name, tried, rate }' "$fuzz/$name.log"
	else
		failed=1
		echo "$name: broken; the end of $fuzz/$name.log:"
		tail -n 30 "$fuzz/$name.log"
	fi
done
exit $failed
