#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Random MPI programs (mpi/differ.c), each with Muster and without: the same lines. Seeds from 1 on,
# MUSTER_MPI_ALL=yes: 60 of them, of 2 to 5 ranks. What does not end without Muster is left out.
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

# usage: lines MPI RANKS SEED [LAUNCHER]
lines() {
	lines_mpi=$1 lines_ranks=$2 lines_seed=$3
	shift 3
	start "$lines_mpi" "$lines_ranks" "$@" "$tests/differ.$lines_mpi" "$lines_seed" 100
}

# usage: same_lines MPI RANKS SEED: as in plain; most of its calls were offloaded
same_lines() {
	MUSTER_MPI_STATS=1 lines "$@" "$launch" >muster 2>err || {
		cat muster err
		return 1
	}
	diff plain muster
	grep '^muster-mpi: offloaded [1-9]' err
}

seeds=$(little_or "1 3" "1 2 3")
[ "${MUSTER_MPI_ALL:-}" != yes ] || seeds=$(seq 60)
for mpi in openmpi mpich; do
	has $mpi || continue
	for seed in $seeds; do
		ranks=$((2 + seed % 4))
		if lines $mpi $ranks "$seed" >plain 2>err; then
			check "$mpi: a random program, seed $seed, $ranks ranks" same_lines $mpi $ranks "$seed"
		else
			skip "$mpi: a random program, seed $seed, $ranks ranks" "it does not end without Muster"
		fi
	done
done
finish
