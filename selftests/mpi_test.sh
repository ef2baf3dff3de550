#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# MPI programs as they are, with their collectives on Muster: Debian's Open MPI and MPICH.
# MUSTER_MPI_FULL: every case (make check-mpi), else a sample.
. "$(dirname "$0")/tap.sh"

. "$tap_home/mpi.sh"

other_of() {
	if [ "$1" = openmpi ]; then echo mpich; else echo openmpi; fi
}

chooses() {
	"$launch" --check "$tests/conform.$1" >out
	cat out
	grep -q "^library: .*/libmuster-mpi-$1.so.0$" out
	grep '^offloaded: ' out | tr -d ' ' | tr ',:' '\n\n' | grep -c MPI_ >nr
	same 34 "$(cat nr)"
	fails grep '^by MPI itself' out
}

refuses() {
	wrong=$(realpath "$MUSTER_BUILD/libmuster-mpi-$(other_of "$1").so.0")
	same 126 "$(LD_PRELOAD=$wrong status_of "$tests/conform.$1")"
	cat err
	grep -q "libmuster-mpi: this is the one for .*, but the program uses lib.*: start it by muster-mpi" err
}

# All of it offloaded, or it would fail; and not a word of ours.
# usage: conforms MPI RANKS [quick]
conforms() {
	MUSTER_OFFLOAD=force start "$1" "$2" "$launch" "$tests/conform.$1" ${3:+$3} >out 2>err
	cat out err
	grep -q '^[1-9][0-9]* right, 0 wrong$' out
	same 1 "$(cat out err | grep -c .)"
}

figures() {
	MUSTER_MPI_STATS=1 start "$1" 2 "$launch" "$tests/conform.$1" Barrier >out 2>err
	cat err
	same 1 "$(grep -c '^muster-mpi: MPI_Barrier  *[1-9][0-9]* ' err)"
	grep -q '^muster-mpi: offloaded \([0-9]*\) of \1 calls with several ranks (100.0 %)$' err
	grep -q '^muster-mpi: MPI: [0-9]*: one rank: nothing to do$' err
}

# Left is what Muster's library does on the CPU.
off() {
	MUSTER_OFFLOAD=off MUSTER_MPI_STATS=1 start "$1" 2 "$launch" "$tests/conform.$1" Bcast >out 2>err
	cat out err
	grep -q '^muster-mpi: offloaded 0 of [1-9]' err
	grep -q '^muster-mpi: host path: [1-9][0-9]*: host: offload is off$' err
}

for mpi in openmpi mpich; do
	has $mpi || continue
	check "$mpi: muster-mpi finds the library from the program's needs" chooses $mpi
	[ ! -f "$MUSTER_BUILD/libmuster-mpi-$(other_of $mpi).so.0" ] ||
		check "$mpi: the other MPI's library refuses with a sentence" refuses $mpi
	if [ -z "${MUSTER_MPI_FULL:-}" ]; then
		check "$mpi: a sample of every collective, as MPI's own" conforms $mpi 3 quick
	else
		check "$mpi: every collective, as MPI's own" conforms $mpi 4
	fi
	check "$mpi: figures at the end, by rank 0" figures $mpi
	check "$mpi: MUSTER_OFFLOAD=off takes the host path" off $mpi
done

usage() {
	same 2 "$(status_of "$launch")"
	same 127 "$(status_of "$launch" ./nothing)"
	echo text >file
	chmod +x file
	same 126 "$(status_of "$launch" ./file)"
	same 126 "$(status_of env -u OMPI_COMM_WORLD_SIZE -u PMI_RANK "$launch" /bin/true)"
	grep -q 'does not say which MPI it needs: start this by mpirun' err
	same 2 "$(status_of "$launch" --mpi=lam /bin/true)"
	grep -q -e '--mpi=lam: there are openmpi and mpich' err
}
check "wrong usage is refused" usage
finish
