#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-mpi: Muster beside Debian's Open MPI and MPICH, and their programs on Muster
# (muster-mpi), and the bare machine (bench_bare.h): the same loops (bench_mpi.c) in turn, TURNS times over:
# medians, and how they compare turn by turn. A table, and a picture of it, in build/bench/. Takes a quarter of an hour.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/median.sh"
build=${MUSTER_BUILD:-$here/../build}
out=$build/bench table=$out/bench-mpi.txt
turns=${TURNS:-21}
seconds=${SECONDS_EACH:-0.2}
moves="broadcast-1M-malloc allgather-1M-malloc alltoall-1M-malloc"
samples=$(mktemp "${TMPDIR:-/tmp}/muster-bench.XXXXXX")
trap 'rm -f "$samples"' EXIT
mkdir -p "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

for mpi in openmpi mpich; do
	"mpicc.$mpi" -DBENCH_MPI -D_GNU_SOURCE -O2 -o "$build/tools/bench_mpi.$mpi" "$here/bench_mpi.c"
done
for bare in BARE_RING BARE_CMA; do
	gcc -DBENCH_BARE -D$bare -D_GNU_SOURCE -O2 -o "$build/tools/bench_mpi.$bare" "$here/bench_mpi.c" "$here/limits.c"
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

# Two processes, which it starts itself.
# shellcheck disable=SC2086 # $moves are several
ring() {
	"$build/tools/bench_mpi.BARE_RING" "$seconds" barrier allreduce-8 allreduce-1M allreduce-8M $moves
}

# shellcheck disable=SC2086
cma() {
	"$build/tools/bench_mpi.BARE_CMA" "$seconds" $moves
}

# usage: take RANKS MEASURE...
take() {
	for library in muster openmpi openmpi+ mpich mpich+ ring cma; do
		case $library in
		ring | cma) [ "$1" -eq 2 ] || continue ;;
		esac
		launch=
		[ "${library%+}" = $library ] || launch=$build/tools/muster-mpi
		"${library%+}" "$@" | sed "s/^/$turn $1 $library /" >>"$samples"
	done
}

turn=0
while [ $turn -lt "$turns" ]; do
	turn=$((turn + 1))
	printf '\r# turn %d of %d' $turn "$turns" >&2
	for ranks in 2 4; do
		# shellcheck disable=SC2086
		take $ranks barrier allreduce-8 allreduce-1M allreduce-8M allreduce-128-malloc allreduce-1K-malloc \
			allreduce-4K-malloc allreduce-64K-malloc allreduce-1M-malloc allreduce-8M-malloc $moves
	done
done
printf '\r' >&2

{
	cat <<-END
	# microseconds an operation, of the slowest rank, on $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg);
	# of $turns runs in turn the median of their best tenths, medians and means
	# ratio of two medians of the same turn, the median of all turns and their quartiles:
	# muster: to the better MPI; openmpi+, mpich+: the MPI's program on Muster, to the same without
	# ring, cma: two processes and the machine alone, by shared memory and by process_vm_readv; to the better MPI
	# openmpi: mpi_yield_when_idle; mpich spins without, so it takes milliseconds where ranks have no processor
	END
	awk "$median"'
	# The median ratio of what two libraries take, and its quartiles.
	function ratio(what, library, other,    turn, list) {
		for (turn = 1; turn <= turns; turn++)
			list = list " " p50[what, library, turn] / p50[what, other, turn]
		return sprintf("%8.2f %8.2f %8.2f", median(list), quantile(list, 0.25), quantile(list, 0.75))
	}
	function better(what) {
		if (!((what, "mpich") in medians))
			return "openmpi"
		return median(medians[what, "mpich"]) < median(medians[what, "openmpi"]) ? "mpich" : "openmpi"
	}
	{
		what = $2 " " $4
		if (!(what in seen))
			order[++rows] = what
		seen[what]
		turns = $1
		p50[what, $3, $1] = $6
		tenths[what, $3] = tenths[what, $3] " " $5
		medians[what, $3] = medians[what, $3] " " $6
		means[what, $3] = means[what, $3] " " $7
	}
	END {
		printf "# %3s  %-20s  %-8s %10s %10s %10s %8s %8s %8s\n", "n", "operation", "library", "p10", "p50", "mean",
			"ratio", "from", "to"
		nr = split("muster openmpi openmpi+ mpich mpich+ ring cma", libraries, " ")
		for (row = 1; row <= rows; row++) {
			what = order[row]
			split(what, is, " ")
			for (i = 1; i <= nr; i++) {
				of = libraries[i]
				plain = of ~ /[+]$/ ? substr(of, 1, length(of) - 1) : better(what)
				if (!((what, of) in medians))
					continue
				printf "%5d  %-20s  %-8s %10.2f %10.2f %10.2f%s\n", is[1], is[2], of, median(tenths[what, of]),
					median(medians[what, of]), median(means[what, of]),
					(what, plain) in medians && plain != of ? " " ratio(what, of, plain) : ""
			}
		}
	}' "$samples"
} >"$table"
cat "$table"
if command -v gnuplot >/dev/null; then
	gnuplot -e "table='$table'; folder='$out'" "$here/bench-mpi.gp" && echo "Picture: $out/bench-mpi.png"
else
	echo "No picture: gnuplot is not installed (make setup)" >&2
fi
