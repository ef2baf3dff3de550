#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# usage: run.sh SECONDS [NAME]...
#
# Each fuzzer for so long, one after the other, from the inputs that are kept (NAME.hex, one a
# line) and those that earlier runs found ($MUSTER_BUILD/fuzz/corpus). Says how many inputs it
# has tried, how many a second, and how many a second of the CPU. An input that breaks something
# stays beside them, and running the fuzzer with it shows it again. KEEP=1: what reaches
# something that nothing else does becomes what is kept.
seconds=$1
shift
fuzz=${MUSTER_BUILD:?}/fuzz
here=$(cd "$(dirname "$0")" && pwd)
failed=0
# Freed memory is kept from use for a while: as much as is soon in a cache again.
export ASAN_OPTIONS="quarantine_size_mb=4:$ASAN_OPTIONS"

# usage: unpack NAME, into its folder
unpack() {
	mkdir -p "$fuzz/corpus/$1"
	[ ! -f "$here/$1.hex" ] || TO=$fuzz/corpus/$1 perl -ne 'chomp;
		open my $to, ">", sprintf("%s/kept-%04d", $ENV{TO}, $.) or die $!;
		print $to pack "H*", $_' "$here/$1.hex"
}

# Of the programs that have ended, in seconds.
cpu() {
	times >"$fuzz/times"
	awk 'NR == 2 { gsub("s", ""); for (i = 1; i <= 2; i++) { split($i, t, "m"); sum += 60 * t[1] + t[2] }; print sum }' "$fuzz/times"
}

# usage: keep NAME
keep() {
	rm -rf "$fuzz/least"
	mkdir -p "$fuzz/least"
	"$fuzz/fuzz_$1" -merge=1 -max_len=512 "$fuzz/least" "$fuzz/corpus/$1" >"$fuzz/$1.merge" 2>&1 &&
		for input in "$fuzz/least"/*; do
			od -An -v -tx1 "$input" | tr -d ' \n'
			echo
		done | sort >"$here/$1.hex"
}

for name in ${*:-engine frame nic ring schedule}; do
	unpack "$name"
	cpu >"$fuzz/before"
	if "$fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=512 -timeout=60 -rss_limit_mb=4096 \
		-print_final_stats=1 -artifact_prefix="$fuzz/corpus/$name-" "$fuzz/corpus/$name" \
		>"$fuzz/$name.log" 2>&1; then
		cpu >"$fuzz/after"
		awk -v name="$name" -v cpu="$(paste "$fuzz/before" "$fuzz/after" | awk '{ print $2 - $1 }')" '/number_of_executed_units/ { tried = $2 } /average_exec_per_sec/ { rate = $2 }
			END { printf "%-10s %10d inputs, %6d a second, %6d a second of the CPU: nothing broke\n", name, tried, rate, tried / cpu }' "$fuzz/$name.log"
		[ -z "$KEEP" ] || keep "$name"
	else
		failed=1
		echo "$name: broken; the end of $fuzz/$name.log:"
		tail -n 30 "$fuzz/$name.log"
	fi
done
exit $failed
