#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-programs: the examples on Muster, on Debian's MPIs, and the MPIs' programs on Muster
# (muster-mpi): in turn, several times over. Of each the median is printed: all of its
# time, that in collectives, and both beside Muster's. Takes some three minutes.
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

# usage: take PROGRAM LIBRARY ARGUMENT...
take() {
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
	esac | sed -n "s/^took \(.*\) s, \(.*\) s of it.*/$program $library \1 \2/p" >>"$work/samples"
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

echo "# seconds, $ranks ranks on $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg); medians of $turns runs in turn"
echo "# collectives: of the rank that was in them for the least time, as it waited the least for others' work"
echo "# gained: the line's time over that of Muster's own program, of all and of collectives"
echo "# openmpi+, mpich+: the MPI's program on Muster, as it is"
sort -s -k1,2 "$work/samples" | awk "$median"'
{
	key = $1 " " $2
	if (!(key in all))
		keys[++nr] = key
	all[key] = all[key] " " $3
	inside[key] = inside[key] " " $4
}
END {
	printf "%-10s  %-9s %9s %12s %8s %8s\n", "program", "library", "all", "collectives", "gained", "gained"
	for (i = 1; i <= nr; i++) {
		split(keys[i], k, " ")
		own = k[1] " muster"
		printf "%-10s  %-9s %9.3f %12.3f %8.2f %8.2f\n", k[1], k[2], median(all[keys[i]]),
			median(inside[keys[i]]), median(all[keys[i]]) / median(all[own]),
			median(inside[keys[i]]) / median(inside[own])
	}
}'
