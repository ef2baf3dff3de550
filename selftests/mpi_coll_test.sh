#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# coll/muster, a component of Open MPI's own (userlib/mpi/coll): it is chosen, and right; nothing is preloaded.
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

has openmpi || finish
component=$MUSTER_BUILD/openmpi/mca_coll_muster.so
[ -f "$component" ] || skip_all "there is no $component (make mpi)"
command -v ompi_info >/dev/null || skip_all "there is no ompi_info (make mpi)"
OMPI_MCA_mca_base_component_path=$(ompi_info --parsable --path pkglibdir | cut -d: -f3):$MUSTER_BUILD/openmpi
export OMPI_MCA_mca_base_component_path

is_known() {
	ompi_info | grep '^ *MCA coll: muster '
	ompi_info --param coll muster --level 9 | grep '"coll_muster_priority"'
}

# usage: runs RANKS PROGRAM [ARGUMENT]...: it says that it is right
runs() {
	runs_ranks=$1 program=$2
	shift 2
	MUSTER_MPI_STATS=1 start openmpi "$runs_ranks" "$program" "$@" >out 2>err || {
		cat out err
		return 1
	}
	cat out err
	same right "$(cat out)"
}

# Without a priority it is not asked.
is_chosen() {
	runs 3 "$tests/shapes.openmpi"
	grep -q '^muster-mpi: offloaded .* (100.0 %)$' err
	openmpi_options="--mca coll_muster_priority 0"
	runs 3 "$tests/shapes.openmpi"
	same "" "$(cat err)"
}

offloads() {
	runs "$@"
	grep -q '^muster-mpi: offloaded [1-9].* (100.0 %)$' err
}

# Open MPI calls its components where its Fortran calls it.
fortran() {
	mpif90.openmpi -w -o fortran "$tap_home/mpi/fortran.f90"
	offloads 3 ./fortran
}


check "Open MPI knows it, and its priority" is_known
check "it is chosen, and has data of every shape right" is_chosen
check "operations and types of the user's" offloads 3 "$tests/behave.openmpi" users-operation
check "a message that its receiver waits for, while its sender is in a barrier" \
	offloads 2 "$tests/behave.openmpi" message-in-barrier
check "a communicator's attributes may call collectives as it ends" \
	offloads 3 "$tests/behave.openmpi" collective-at-end
check "wrong arguments have MPI's own errors" runs 2 "$tests/behave.openmpi" wrong-arguments
check "ranks that call different things are told, and who" runs 3 "$tests/behave.openmpi" ranks-differ
check "a rank that is killed is named to the others' error handler" \
	hears openmpi killed-blocking "$tests/behave.openmpi"
check "those that live make communicators and go on in them" \
	hears openmpi killed-survivors "$tests/behave.openmpi"
if command -v mpif90.openmpi >/dev/null && command -v gfortran >/dev/null; then
	check "a Fortran program" fortran
else
	skip "a Fortran program" "there is no gfortran (make check-mpi installs it)"
fi
finish
