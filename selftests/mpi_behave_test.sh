#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Offloaded collectives among all else that an MPI program does (mpi/behave.c).
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

# usage: all_right MPI RANKS PROGRAM [ARGUMENT]...: it says so, and nothing else
all_right() {
	right_mpi=$1 ranks=$2 program=$tests/$3.$1
	shift 3
	same 0 "$(status_of start "$right_mpi" "$ranks" "$launch" "$program" "$@")" || {
		cat out err
		return 1
	}
	cat out err
	same right "$(cat out err)"
}

# usage: behaves MPI RANKS CASE
behaves() {
	behaves_mpi=$1 behaves_ranks=$2
	shift 2
	all_right "$behaves_mpi" "$behaves_ranks" behave "$@"
}

forced() {
	MUSTER_OFFLOAD=force
	export MUSTER_OFFLOAD
	behaves "$@"
}

# With all of it offloaded, what is made after the death, too.
survivors_go_on() {
	export MUSTER_OFFLOAD=force
	hears "$1" killed-survivors "$launch" "$tests/behave.$1"
}

# usage: all_forced MPI RANKS PROGRAM: it says so with all of it offloaded
all_forced() {
	export MUSTER_OFFLOAD=force
	all_right "$@"
}

# usage: forced_as_rank_0 MPI RANK_0 OTHERS: MUSTER_OFFLOAD of rank 0 and of the others, as launchers leave them
forced_as_rank_0() {
	cat >by_rank <<-'EOF'
		#!/bin/sh
		[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && MUSTER_OFFLOAD=$1 || MUSTER_OFFLOAD=$2
		shift 2
		export MUSTER_OFFLOAD
		exec "$@"
	EOF
	chmod +x by_rank
	start "$1" 3 ./by_rank "$2" "$3" "$launch" "$tests/behave.$1" between-groups >out 2>&1 || {
		cat out
		return 1
	}
	same right "$(cat out)"
}

# usage: refused MPI CASE: libmuster-mpi is refused something at rank 1
refused() {
	all_right "$1" 3 refused "$2"
}

# usage: alike MPI: what it says is what it says without Muster
alike() {
	start "$1" 3 "$tests/alike.$1" >plain 2>&1 || {
		cat plain
		return 1
	}
	start "$1" 3 "$launch" "$tests/alike.$1" >out 2>&1
	diff plain out
}

# Open MPI's mpirun loses what ranks that abort tell it, often, without Muster too; it says so.
lost_by_launcher() {
	grep -q "ORTE_ERROR_LOG: .*show_help.c" "$1"
}

# All find out who it is and why, and go on without a job.
refused_join() {
	no_room='rank 1: MPI has no room for what libmuster-mpi keeps in it; '
	MUSTER_MPI_STATS=1 start "$1" 3 "$launch" "$tests/refused.$1" join >out 2>err
	cat out err
	same right "$(cat out)"
	grep -q "^muster-mpi: no Muster job: $no_room" err
	export MUSTER_OFFLOAD=force
	for _ in $(seq 20); do
		fails start "$1" 3 "$launch" "$tests/refused.$1" join >out 2>&1
		cat out
		lost_by_launcher out || break
	done
	grep -q "MPI_Init: $no_room" out
}


for mpi in openmpi mpich; do
	has $mpi || continue
	check "$mpi: a message that its receiver waits for, while its sender is in a barrier" \
		behaves $mpi 2 message-in-barrier
	check "$mpi: the same in a communicator's first collective" behaves $mpi 2 message-in-first
	check "$mpi: messages that their sender waits for, while their receiver waits for a collective" \
		behaves $mpi 2 messages-in-wait
	check "$mpi: a collective that others wait for, while one waits for a message" \
		behaves $mpi 3 collective-in-message
	check "$mpi: a communicator's first collective, nonblocking, waits for nobody" \
		behaves $mpi 2 first-is-nonblocking
	check "$mpi: requests of both kinds in each Wait and Test" behaves $mpi 3 mixed-requests
	check "$mpi: types that differ between ranks, and are freed before data comes" \
		forced $mpi 4 types-differ
	check "$mpi: data of every shape, on communicators of every kind" all_forced $mpi 3 shapes
	check "$mpi: persistent collectives, in each Wait and Test" all_forced $mpi 2 persistent
	check "$mpi: neighbours on topologies of every kind" all_forced $mpi 4 neighbours
	check "$mpi: threads make communicators in orders that differ between ranks" \
		all_forced $mpi 3 threads order
	check "$mpi: operations and types of the user's, freed while they are needed" \
		forced $mpi 3 users-operation
	check "$mpi: inter-communicators are MPI's" behaves $mpi 3 between-groups
	check "$mpi: with offload forced they are an MPI error" forced $mpi 3 between-groups
	check "$mpi: rank 0 alone forces offload, for all" forced_as_rank_0 $mpi force try
	check "$mpi: what other ranks force is not heard" forced_as_rank_0 $mpi try force
	check "$mpi: wrong arguments have MPI's own errors" behaves $mpi 2 wrong-arguments
	check "$mpi: ranks that call different things are told, and who" behaves $mpi 3 ranks-differ
	check "$mpi: what MPI refuses, and what it leaves as it is, is as without Muster" alike $mpi
	check "$mpi: an exclusive scan's rank 0 has no place for what it does not get" \
		forced $mpi 3 exscan-of-rank-0
	check "$mpi: types that Fortran's kinds name" forced $mpi 2 types-of-fortran
	check "$mpi: a communicator's attributes may call collectives as it ends" \
		forced $mpi 3 collective-at-end
	check "$mpi: the same where ranks set them before and behind ours" \
		forced $mpi 3 collective-at-end-differs
	check "$mpi: so may those of MPI_COMM_SELF, and tell others, as MPI_Finalize begins" \
		forced $mpi 3 attributes-of-self
	for how in blocking first second nonblocking status waitall persistent; do
		check "$mpi: a rank that is killed is named to the others' error handler: $how" \
			hears $mpi killed-$how "$launch" "$tests/behave.$mpi"
	done
	check "$mpi: those that live make communicators and go on in them" \
		survivors_go_on $mpi
	check "$mpi: what one rank cannot join none does" refused_join $mpi
	check "$mpi: without a request an operation ends in its call" refused $mpi request
	check "$mpi: what a rank alone has met says who, what and what to do" refused $mpi unpack
	check "$mpi: a thread tells MPI of what another waits for" refused $mpi slow
done
finish
