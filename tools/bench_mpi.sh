#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-mpi: Muster beside Debian's Open MPI and MPICH, and their programs on Muster
# (muster-mpi): the same loops (bench_mpi.c) in turn, several times over; of all runs the median
# is printed. Takes about four minutes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/median.sh"
build=${MUSTER_BUILD:-$here/../build}
turns=${TURNS:-5}
seconds=${SECONDS_EACH:-0.5}
samples=$(mktemp "${TMPDIR:-/tmp}/muster-bench.XXXXXX")
trap 'rm -f "$samples"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

for mpi in openmpi mpich; do
	"mpicc.$mpi" -DBENCH_MPI -D_GNU_SOURCE -O2 -o "$build/tools/bench_mpi.$mpi" "$here/bench_mpi.c"
done

# usage: muster RANKS MEASURE..., and so on
muster() {
	ranks=$1
	shift
	"$build/tools/muster-run" -n "$ranks" --no-prefix "$build/tools/bench_mpi" "$seconds" "$@"
}

# shellcheck disable=SC2086 # $launch is a program or nothing
openmpi() {
	ranks=$1
	shift
	mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$ranks" \
		$launch "$build/tools/bench_mpi.openmpi" "$seconds" "$@"
}

# shellcheck disable=SC2086
mpich() {
	ranks=$1
	shift
	mpirun.mpich -n "$ranks" $launch "$build/tools/bench_mpi.mpich" "$seconds" "$@"
}

# usage: take RANKS MEASURE...
take() {
	for library in muster openmpi openmpi+ mpich mpich+; do
		# It spins without yielding, for tens of milliseconds an operation.
		if [ $library = mpich ] && [ "$1" -gt "$(nproc)" ]; then
			continue
		fi
		launch=
		[ "${library%+}" = $library ] || launch=$build/tools/muster-mpi
		"${library%+}" "$@" | sed "s/^/$1 $library /" >>"$samples"
	done
}

turn=0
while [ $turn -lt "$turns" ]; do
	turn=$((turn + 1))
	take 2 allreduce-8 barrier allreduce-1M
	take 2 allreduce-128-malloc allreduce-1K-malloc allreduce-4K-malloc allreduce-64K-malloc \
		allreduce-1M-malloc allreduce-8M-malloc
	take 4 allreduce-8 barrier allreduce-1K-malloc allreduce-64K-malloc allreduce-1M-malloc allreduce-1M
done

echo "# microseconds an operation, of the slowest rank, on $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg);"
echo "# of $turns runs in turn the median of their best tenths, medians and means"
echo "# ratio: Muster's median over that of the line's library"
echo "# openmpi+, mpich+: the MPI's program on Muster; its ratio is to the same program without"
echo "# openmpi: mpi_yield_when_idle; mpich: only where each rank has a processor"
sort -k1,1n -k3,3 -k2,2r "$samples" | awk "$median"'
function flush() {
	if (key == "")
		return
	split(key, k, " ")
	p50 = median(medians)
	table[++rows] = key " " median(tenths) " " p50 " " median(means)
	p50s[k[2] " " k[1] " " k[3]] = p50
}
{
	if ($1 " " $2 " " $3 != key) {
		flush()
		key = $1 " " $2 " " $3
		tenths = medians = means = ""
	}
	tenths = tenths " " $4
	medians = medians " " $5
	means = means " " $6
}
END {
	flush()
	printf "%5s  %-20s  %-8s %10s %10s %10s %8s\n", "ranks", "operation", "library", "p10", "p50", "mean", "ratio"
	for (i = 1; i <= rows; i++) {
		split(table[i], r, " ")
		printf "%5d  %-20s  %-8s %10.2f %10.2f %10.2f", r[1], r[3], r[2], r[4], r[5], r[6]
		what = r[1] " " r[3]
		plain = r[2]
		if (!sub(/\+$/, "", plain))
			printf " %8.2f\n", p50s["muster " what] / r[5]
		else if (plain " " what in p50s)
			printf " %8.2f\n", r[5] / p50s[plain " " what]
		else
			print ""
	}
}'
