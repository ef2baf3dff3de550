# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2034
# For tests with MPI programs, sourced behind tap.sh: each MPI's own mpirun, and what is there.

launch=$MUSTER_BUILD/tools/muster-mpi
tests=$MUSTER_BUILD/selftests/mpi
[ -x "$launch" ] || skip_all "there is no $launch (make all)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset LD_PRELOAD MUSTER_OFFLOAD MUSTER_MPI_STATS

# usage: start MPI RANKS COMMAND...: ranks that give way to each other, as processors are few;
# $openmpi_options and $mpich_options besides.
# shellcheck disable=SC2086 # options are lists
start() {
	start_mpi=$1 start_ranks=$2
	shift 2
	if [ "$start_mpi" = openmpi ]; then
		mpirun.openmpi --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
			${openmpi_options:-} -n "$start_ranks" "$@"
	else
		mpirun.mpich ${mpich_options:-} -n "$start_ranks" "$@"
	fi
}

# has MPI: can its programs be run on Muster here? Else that is skipped, in words.
has() {
	[ -f "$MUSTER_BUILD/libmuster-mpi-$1.so.0" ] && command -v "mpirun.$1" >/dev/null && return
	skip "$1" "it is not installed, or its library not built (make mpi)"
	return 1
}

# usage: hears MPI CASE PROGRAM...: of three ranks one is killed; another's handler hears who. Neither
# mpirun is to end the others for it.
hears() {
	hears_mpi=$1 hears_case=$2
	shift 2
	# shellcheck disable=SC2097,SC2098 # for start
	openmpi_options=--enable-recovery mpich_options=-disable-auto-cleanup \
		status_of start "$hears_mpi" 3 "$@" "$hears_case" "$PWD/said"
	cat out err
	grep '^MPI_Allreduce: .*rank 1 has died' said
}
