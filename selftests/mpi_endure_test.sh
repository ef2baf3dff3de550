#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Communicators without number, many operations under way, two threads (mpi/endure.c): with all of it
# offloaded it is right and nothing grows: neither memory, mappings nor descriptors, as the
# program sees them, nor what its ranks have of the device, as muster_stat does.
# MUSTER_MPI_ALL: as many as must hold (make check-mpi-all).
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

exec 3>&1

# Their own program, so that they can be told from other tests' ranks.
pids() {
	ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n "s|.* /proc/\([0-9]*\)/exe -> $tap_dir/endure\$|\1|p"
}

# What this test's ranks have of the device now: "3 VPs, 7 communicators".
held() {
	"$MUSTER_BUILD/tools/muster_stat" -c >looked
	pids | awk 'FNR == NR { ours[$1] = 1; next }
		/^JOB  *RANK/ { table = $3; next }
		!NF { table = "" }
		table == "PID" && $3 in ours { vps++; jobs[$1] = 1 }
		table == "COMM" && $1 in jobs { communicators++ }
		END { printf "%d VPs, %d communicators\n", vps, communicators }' - looked
}

# Each line as it comes, with what is held by then, for which the program waits; also to who waits
# for this test.
told() {
	while read -r line; do
		if [ "$line" != right ]; then
			line="# $1: $line, $(held)"
			echo 1<>looked_at
		fi
		echo "$line"
		echo "# $line" | sed 's/^# #/#/' >&3
	done
}

# More communicators than are made and not yet left at a time would be those that nobody leaves.
no_more_than() {
	awk -F ', ' -v vps="$1" -v communicators="$2" '/ VPs, / {
		seen = seen || $(NF - 1) + 0 == vps
		more = more || $(NF - 1) + 0 > vps || $NF + 0 > communicators
	} END { exit !seen || more }' out
}

# usage: endures MPI CASE COUNT
endures() {
	cp "$tests/endure.$1" endure
	rm -f looked_at
	mkfifo looked_at
	export MUSTER_OFFLOAD=force
	start "$1" 3 "$launch" "$tap_dir/endure" "$2" "$3" "$tap_dir/looked_at" \
		2>err 3>&- | told "$1" >out
	cat out err
	same right "$(grep -v '^#' out)"
	same "" "$(cat err)"
	no_more_than 3 64
}

communicators=400 operations=200 milliseconds=500
[ -z "${MUSTER_MPI_FULL:-}" ] || communicators=8000 operations=2000 milliseconds=5000
[ -z "${MUSTER_MPI_ALL:-}" ] || communicators=100000 operations=10000 milliseconds=60000
for mpi in openmpi mpich; do
	has $mpi || continue
	check "$mpi: $communicators communicators come and go, with something under way" \
		endures $mpi communicators $communicators
	check "$mpi: $operations under way, waited for in any order, 10 times" \
		endures $mpi requests $operations
	check "$mpi: two threads for $milliseconds ms, each with communicators of its own" \
		endures $mpi threads $milliseconds
done
finish
