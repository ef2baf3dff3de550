#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-programs: the examples on Muster, on Debian's MPIs, and the MPIs' programs on Muster
# (muster-mpi): in turn, several times over. Of each the median is printed, in a table for a
# Markdown page: all of its time, and that in collectives. Takes some three minutes.
# usage: bench-programs.sh [PROGRAM]...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/median.sh"
build=${MUSTER_BUILD:-$here/../build}
turns=${TURNS:-5}
ranks=${RANKS:-2}
examples=$build/userlib/examples
work=$(mktemp -d "${TMPDIR:-/tmp}/muster-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A plate of 300 x 300 points, each beside four others.
plate() {
	awk 'BEGIN {
		n = 300
		print "%%MatrixMarket matrix coordinate real symmetric"
		print n * n, n * n, n * n + 2 * n * (n - 1)
		for (i = 1; i <= n * n; i++) {
			print i, i, 4
			if (i % n)
				print i + 1, i, -1
			if (i + n <= n * n)
				print i + n, i, -1
		}
	}'
}

# usage: run PROGRAM LIBRARY ARGUMENT...
run() {
	program=$1 library=$2
	shift 2
	case $library in
	muster) "$build/tools/muster-run" -n "$ranks" --no-prefix "$examples/$program" "$@" ;;
	openmpi) mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$ranks" \
		"$examples/$program.openmpi" "$@" ;;
	openmpi+) mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$ranks" \
		"$build/tools/muster-mpi" "$examples/$program.openmpi" "$@" ;;
	mpich) mpirun.mpich -n "$ranks" "$examples/$program.mpich" "$@" ;;
	mpich+) mpirun.mpich -n "$ranks" "$build/tools/muster-mpi" "$examples/$program.mpich" "$@" ;;
	esac
}

# usage: take PROGRAM LIBRARY ARGUMENT...: a line of samples
take() {
	run "$@" >"$work/said" || { echo "$1 on $2 fails" >&2 && exit 1; }
	sed -n "s/^took \(.*\) s, \(.*\) s of it.*/$1 $2 \1 \2/p" "$work/said" >>"$work/samples"
}

# usage: in_turn PROGRAM ARGUMENT...
in_turn() {
	program=$1
	shift
	turn=0
	while [ $turn -lt "$turns" ]; do
		turn=$((turn + 1))
		for library in muster openmpi openmpi+ mpich mpich+; do
			take "$program" $library "$@"
		done
	done
}

plate >"$work/plate.mtx"
apt-cache dumpavail >"$work/packages" 2>/dev/null || :
[ -s "$work/packages" ] || cp /var/lib/dpkg/status "$work/packages"
[ $# -gt 0 ] || set -- cg keysort train particles pagerank
for program; do
	case $program in
	cg) in_turn cg "$work/plate.mtx" ;;
	keysort) in_turn keysort 1000000 5 ;;
	train) in_turn train 100 32 ;;
	particles) in_turn particles 50 ;;
	pagerank) in_turn pagerank "$work/packages" ;;
	esac
done

echo "Seconds, in brackets those in collectives: medians of $turns runs in turn, $ranks ranks on $(nproc) processors."
echo "In collectives is the rank that was in them for the least time, as it waited the least for others' work."
echo
sort -s -k1,2 "$work/samples" | awk "$median"'
{
	key = $1 " " $2
	if (!($1 in programs))
		order[++nr] = $1
	programs[$1] = 1
	all[key] = all[key] " " $3
	inside[key] = inside[key] " " $4
	if (!(key in least) || $3 < least[key])
		least[key] = $3
	if ($3 > most[key])
		most[key] = $3
}
function cell(key) {
	return sprintf(" %.3f (%.3f) |", median(all[key]), median(inside[key]))
}
END {
	nr_libraries = split("muster openmpi mpich openmpi+ mpich+", libraries, " ")
	print "| program | Muster | Open MPI | MPICH | the one for Open MPI on Muster | that for MPICH |"
	print "| --- | --- | --- | --- | --- | --- |"
	for (i = 1; i <= nr; i++) {
		row = "| `" order[i] "` |"
		for (l = 1; l <= nr_libraries; l++) {
			key = order[i] " " libraries[l]
			row = row cell(key)
			if (most[key] / least[key] > spread)
				spread = most[key] / least[key]
		}
		print row
	}
	printf "\nThe slowest run of a cell took at most %.2f times as long as its quickest.\n", spread
}'
echo "The load at the end is $(cut -d' ' -f1 /proc/loadavg); of a quiet machine it is $ranks and less."
