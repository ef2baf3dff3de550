#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-look: what it costs to be looked at, in an 8-byte allreduce of two ranks on the NIC
# path: a rank's instructions in an operation by callgrind, with recording off and on, beside
# copies of these sources that cannot record, and that do not show what they are in, either.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build=${MUSTER_BUILD:-$top/build}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
operations=1000

# count BUILD TRACE: instructions
count() {
	MUSTER_TRACE=$2 valgrind --tool=callgrind --callgrind-out-file="$out/callgrind" \
		--toggle-collect=look_bench_counted "$1/selftests/look_bench" $operations \
		>"$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
	awk -v nr=$((2 * operations)) '/Collected/ { printf "%.1f\n", $NF / nr }' "$out/log"
}

# without NAME FILES SED: a copy in which that is other, and built; the FILES must have it
without() {
	mkdir -p "$out/$1"
	tar -C "$top" --exclude=./build --exclude=./.git -c . | tar -x -C "$out/$1"
	for file in $2; do
		sed -i -e "$3" "$out/$1/$file"
		! cmp -s "$top/$file" "$out/$1/$file" || {
			echo "bench-look: $file has not what was to be taken out" >&2
			exit 1
		}
	done
	# What is left of a line may be worth a warning.
	make -s -C "$out/$1" WERROR= BUILD=build build/selftests/look_bench >"$out/log" 2>&1 || {
		cat "$out/log" >&2
		exit 1
	}
}

tests='s/__builtin_expect(\([^()]*trace[^()]*\), 0)/(0 \&\& (\1))/'
page='s/comm->look->[a-z]* = .*;/(void)0;/; s/muster_look_first(comm);/(void)0;/'
without silent "userlib/look.h qemu-device/engine/trace.h" "$tests"
top=$out/silent
without hidden "userlib/request.c userlib/again.c userlib/again.h" "$page"

hidden=$(count "$out/hidden/build" 0)
silent=$(count "$out/silent/build" 0)
off=$(count "$build" 0)
on=$(count "$build" 1)
echo "$hidden $silent $off $on" | awk '
	function more(to, from) { return sprintf("%+.1f, %.2f %%", to - from, 100 * (to / from - 1)) }
	{
		printf "nothing to be seen from outside: %s instructions\n", $1
		printf "and the looking page:            %s (%s)\n", $2, more($2, $1)
		printf "and recording, which is off:     %s (%s)\n", $3, more($3, $2)
		printf "recording on:                    %s (%s more than off, %s more than without)\n",
			$4, more($4, $3), more($4, $2)
	}'
