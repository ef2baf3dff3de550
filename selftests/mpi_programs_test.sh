#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs in other languages than C, and Debian's own, on Muster.
# MUSTER_MPI_FULL: longer ones (make check-mpi).
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

# usage: offloaded PERCENT: is what the last figures say at least that?
offloaded() {
	sed -n 's/^muster-mpi: offloaded .*(\([0-9]*\)[.0-9]* %)$/\1/p' err >share
	[ "$(cat share)" -ge "$1" ]
}

fortran() {
	"mpif90.$1" -w -o fortran "$tap_home/mpi/fortran.f90"
	MUSTER_OFFLOAD=force MUSTER_MPI_STATS=1 start "$1" 3 "$launch" ./fortran >out 2>err
	cat out err
	same right "$(cat out)"
	grep -q '^muster-mpi: MPI_Allreduce  *3 ' err
	offloaded 100
}

# What Python loads cannot be seen: whose mpirun it is tells.
python() {
	MUSTER_OFFLOAD=force MUSTER_MPI_STATS=1 start openmpi 3 "$launch" /usr/bin/python3 \
		"$tap_home/mpi/program.py" >out 2>err
	cat out err
	same right "$(cat out)"
	offloaded 100
}

# Its own checks pass; it has operations of its own besides.
hpcc_passes() {
	sed 's/^1000 *Ns/200 Ns/; s/^80 *NBs/20 NBs/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
	MUSTER_MPI_STATS=1 start openmpi 4 "$launch" /usr/bin/hpcc >out 2>err
	cat out err
	tail -n 5 hpccoutf.txt
	grep -q '^Success=1$' hpccoutf.txt
	fails grep FAILED hpccoutf.txt
	offloaded 90
}

for mpi in openmpi mpich; do
	has $mpi || continue
	if command -v "mpif90.$mpi" >/dev/null && command -v gfortran >/dev/null; then
		check "$mpi: a Fortran program" fortran $mpi
	else
		skip "$mpi: a Fortran program" "there is no gfortran (make check-mpi installs it)"
	fi
done
if [ -f "$MUSTER_BUILD/libmuster-mpi-openmpi.so.0" ]; then
	if /usr/bin/python3 -c 'import mpi4py' 2>/dev/null; then
		check "openmpi: a Python program" python
	else
		skip "openmpi: a Python program" "there is no python3-mpi4py (make check-mpi installs it)"
	fi
fi
# has_program PROGRAM: else it is skipped.
has_program() {
	[ -x "/usr/bin/$1" ] && return
	skip "openmpi: $1" "it is not installed (make check-mpi does)"
	return 1
}

if [ -n "${MUSTER_MPI_FULL:-}" ] && [ -f "$MUSTER_BUILD/libmuster-mpi-openmpi.so.0" ]; then
	! has_program hpcc || check "openmpi: hpcc" hpcc_passes
fi
finish
