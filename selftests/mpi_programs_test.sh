#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs in other languages than C, and Debian's own, on Muster.
# MUSTER_MPI_FULL: longer ones (make check-mpi); MUSTER_MPI_ALL: the longest (make check-mpi-all).
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

# usage: on_muster MPI RANKS PROGRAM...: with all of its collectives offloaded
on_muster() {
	muster_mpi=$1 muster_ranks=$2
	shift 2
	MUSTER_OFFLOAD=force MUSTER_MPI_STATS=1 start "$muster_mpi" "$muster_ranks" "$launch" "$@" >out 2>err || {
		tail -n 30 out err
		return 1
	}
	echo "$1: $(grep '^muster-mpi: offloaded ' err)"
	offloaded 90
}

# usage: agree FILE FILE: the same rows of numbers, but for the order of sums
agree() {
	paste "$1" "$2" | awk '{
		for (i = 1; i <= NF / 2; i++) {
			apart = ($i - $(i + NF / 2)) / (1 + $i * $i) ^ 0.5
			wrong = wrong || apart > 1e-4 || apart < -1e-4
		}
	} END { exit NR < 2 || NF < 4 || NF % 2 || wrong }'
}

# Its own checks pass.
hpcc_passes() {
	sed 's/^1000 *Ns/200 Ns/; s/^80 *NBs/20 NBs/' /usr/share/doc/hpcc/examples/_hpccinf.txt >hpccinf.txt
	on_muster openmpi 4 /usr/bin/hpcc
	tail -n 5 hpccoutf.txt
	grep -q '^Success=1$' hpccoutf.txt
	fails grep FAILED hpccoutf.txt
}

lammps_numbers() {
	awk '/^ *Step / { on = 1; next } /^Loop / { on = 0 } on' "$1"
}

# It says the same as without Muster.
lammps_agrees() {
	melt=/usr/share/lammps/examples/melt/in.melt
	start openmpi 4 /usr/bin/lmp -log none -in $melt >plain 2>&1
	on_muster openmpi 4 /usr/bin/lmp -log none -in $melt
	lammps_numbers plain >expected
	lammps_numbers out >found
	agree expected found
}

# Argon, 1,000 atoms on a grid that is about to melt.
argon() {
	awk 'BEGIN {
		print "argon\n1000"
		for (i = 0; i < 1000; i++)
			printf "%5d%-5s%5s%5d%8.3f%8.3f%8.3f\n", i + 1, "AR", "AR", i + 1,
				0.4 * int(i / 100), 0.4 * (int(i / 10) % 10), 0.4 * (i % 10)
		print 4.0, 4.0, 4.0
	}' >argon.gro
	printf '%s\n' '[ defaults ]' '1 1 no 1.0 1.0' '[ atomtypes ]' 'AR 39.948 0 A 6.2095e-3 9.6775e-6' \
		'[ moleculetype ]' 'AR 1' '[ atoms ]' '1 AR 1 AR AR 1 0 39.948' '[ system ]' argon \
		'[ molecules ]' 'AR 1000' >argon.top
	printf '%s\n' 'dt = 0.002' 'nsteps = 200' 'nstlog = 50' 'nstenergy = 50' 'nstcalcenergy = 10' \
		'rcoulomb = 0.85' 'rvdw = 0.85' 'gen-vel = yes' 'gen-temp = 100' 'gen-seed = 1' >argon.mdp
	gmx -quiet grompp -f argon.mdp -c argon.gro -p argon.top -o argon.tpr >grompp 2>&1
}

gromacs_numbers() {
	awk '/^   Energies / { on = 5 } on > 0 && --on && /[0-9]e[-+]/' "$1"
}

gromacs_agrees() {
	argon
	mdrun="/usr/bin/gmx_mpi -quiet mdrun -s argon.tpr -ntomp 1 -pin off -dlb no -reprod"
	grep -qw rdtscp /proc/cpuinfo || mdrun="qemu-x86_64 -cpu max $mdrun"	# Debian's wants that instruction
	# shellcheck disable=SC2086 # words
	start openmpi 4 $mdrun -g plain.log >plain 2>&1
	# shellcheck disable=SC2086
	on_muster openmpi 4 $mdrun -g muster.log
	gromacs_numbers plain.log >expected
	gromacs_numbers muster.log >found
	agree expected found
}

# usage: scalapack_passes MPI TEST...: by its own residuals, of fewer problems than it comes with
scalapack_passes() {
	scalapack_mpi=$1
	shift
	folder=$(echo /usr/lib/*/scalapack/"$scalapack_mpi"-tests)
	for file in LU QR; do
		sed 's/^[0-9]*\([[:space:]]*number of problems\)/2\1/; s/^[0-9]*\([[:space:]]*number of \(NB\|blocking\)\)/1\1/
			s/^[0-9]*\([[:space:]]*[Nn]umber of \(NRHS\|NBRHS\)\)/1\1/' "$folder/$file.dat" >$file.dat
	done
	for test in "$@"; do
		on_muster "$scalapack_mpi" 4 "$folder/$test"
		grep -q ' [1-9][0-9]* tests completed and passed residual checks' out
		grep -q ' 0 tests completed and failed residual checks' out
	done
}

# usage: petsc_passes RANKS EXAMPLE EXPECTED OPTION...: it says what its authors expect
petsc_passes() {
	petsc_ranks=$1 petsc_example=$2 petsc_expected=$3
	shift 3
	on_muster openmpi "$petsc_ranks" "$petsc_example" "$@"
	cmp out "$petsc/output/$petsc_expected.out"
}

# In C and in Fortran; and HYPRE's multigrid, which is as near as its tolerance asks.
petsc_examples() {
	# shellcheck disable=SC2046 # options
	mpicc.openmpi -o ex2 "$petsc/ex2.c" $(pkg-config --cflags --libs PETSc)
	# shellcheck disable=SC2046
	mpif90.openmpi -ffree-line-length-none -o ex2f "$petsc/ex2f.F90" $(pkg-config --cflags --libs PETSc)
	refine="-ksp_monitor_short -ksp_gmres_cgs_refinement_type refine_always"
	# shellcheck disable=SC2086 # words
	petsc_passes 2 ./ex2 ex2_2 $refine -m 5 -n 5
	petsc_passes 4 ./ex2 ex2_bjacobi -pc_type bjacobi -pc_bjacobi_blocks 1 -ksp_monitor_short \
		-sub_pc_type jacobi -sub_ksp_type gmres
	# shellcheck disable=SC2086
	petsc_passes 2 ./ex2f ex2f_1 -pc_type jacobi $refine
	on_muster openmpi 4 ./ex2 -pc_type hypre -pc_hypre_type boomeramg -m 40 -n 40
	awk '/^Norm of error / { right = $4 < 1e-4 } END { exit !right }' out
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
# there FILE NAME: else NAME is skipped.
# shellcheck disable=SC2086 # FILE may be a pattern
there() {
	ls $1 >/dev/null 2>&1 && return
	skip "$2" "there is no $1 (make check-mpi-all installs it)"
	return 1
}

if [ -n "${MUSTER_MPI_FULL:-}" ] && [ -f "$MUSTER_BUILD/libmuster-mpi-openmpi.so.0" ]; then
	! there /usr/bin/hpcc "openmpi: hpcc" || check "openmpi: hpcc" hpcc_passes
fi
if [ -n "${MUSTER_MPI_ALL:-}" ]; then
	petsc=/usr/share/petsc/3.18/share/petsc/examples/src/ksp/ksp/tutorials
	if has openmpi; then
		! there /usr/bin/lmp "openmpi: LAMMPS" || check "openmpi: LAMMPS" lammps_agrees
		! there /usr/bin/gmx_mpi "openmpi: GROMACS" || check "openmpi: GROMACS" gromacs_agrees
		! there $petsc/ex2.c "openmpi: PETSc and HYPRE" || check "openmpi: PETSc and HYPRE" petsc_examples
	fi
	for mpi in openmpi mpich; do
		has $mpi || continue
		! there "/usr/lib/*/scalapack/$mpi-tests/xdlu" "$mpi: ScaLAPACK" ||
			check "$mpi: ScaLAPACK" scalapack_passes $mpi xdlu xdqr
	done
fi
finish
