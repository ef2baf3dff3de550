#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The example programs that know no library: each finds what one rank finds alone, on Muster, with
# the same bits on NIC and host path, and on the MPIs that are there.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
examples=$MUSTER_BUILD/userlib/examples
programs="cg keysort train particles"
for program in $programs; do
	[ -x "$examples/$program" ] || skip_all "there is no $program (make all)"
done

# A plate, 15 x 15 points, each beside four others.
awk 'BEGIN {
	n = 15
	for (i = 1; i <= n * n; i++) {
		line[++nr] = i " " i " 4"
		if (i % n)
			line[++nr] = i + 1 " " i " -1"
		if (i + n <= n * n)
			line[++nr] = i + n " " i " -1"
	}
	print "%%MatrixMarket matrix coordinate real symmetric\n% a plate\n" n * n, n * n, nr
	for (i = 1; i <= nr; i++)
		print line[i]
}' >plate.mtx

# Of a program: small work for a test.
work() {
	case $1 in
	cg) echo plate.mtx ;;
	keysort) echo 30000 2 ;;
	train) echo 3 7 ;;
	particles) echo 3 700 ;;
	esac
}

# shellcheck disable=SC2046 # work is a list
right() {
	for ranks in 1 2 3 5; do
		"$run" -n $ranks --no-prefix "$examples/$1" $(work "$1") check >out
		cat out
		grep -q " $ranks ranks, Muster$" out
		grep -Eq 'by one rank|one rank finds' out
	done
}

# shellcheck disable=SC2046
same_bits() {
	for offload in force off; do
		MUSTER_OFFLOAD=$offload "$run" -n 3 --no-prefix "$examples/$1" $(work "$1") >$offload
		sed -i '/^took /d' $offload
	done
	cat force
	grep -q '^digest [0-9a-f]\{16\}$' force
	cmp force off
}

for program in $programs; do
	check "$program finds what one rank finds, on 1 to 5 ranks" right $program
	check "$program has the same bits on NIC and host path" same_bits $program
done

# refused MESSAGE FILE
refused() {
	same 1 "$(status_of "$run" -n 2 "$examples/cg" "$2")"
	same "[0] cg: $1" "$(grep '^.0. ' err)"
}

no_matrix() {
	head="%%MatrixMarket matrix coordinate real"
	refused "cannot read ./none: No such file or directory" ./none
	echo "1 1 1" >file
	refused "file: line 1: expected \"$head symmetric\" (or integer, general)" file
	printf '%s general\n2 3 1\n' "$head" >file
	refused 'file: line 2: expected "ROWS COLUMNS ENTRIES" of a square matrix' file
	printf '%s general\n2 2 2\n1 1 1\n3 1 1\n' "$head" >file
	refused 'file: line 4: expected "ROW COLUMN VALUE", rows and columns from 1 to 2' file
	printf '%s general\n2 2 1\n4294967297 1 1\n' "$head" >file
	refused 'file: line 3: expected "ROW COLUMN VALUE", rows and columns from 1 to 2' file
	printf '%s general\n2 2 2\n1 1 1\n' "$head" >file
	refused 'file: line 3: expected "ROW COLUMN VALUE", rows and columns from 1 to 2' file
}
check "a file that is no matrix is refused, with line and reason" no_matrix

no_solution() {
	printf '%%%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 -1\n' >file
	refused "no solution after 2 iterations: is the matrix symmetric and positive definite?" file
}
check "a matrix for which there is no way to the solution is said to be none" no_solution

# ---- the same source on an MPI ---------------------------------------------------------

. "$tap_home/mpi.sh"

# shellcheck disable=SC2046,SC2086
as_plain_mpi() {
	for program in $programs; do
		start "$1" 2 "$examples/$program.$1" $(work $program) check >out
		cat out
		grep -q ' 2 ranks, MPI$' out
		grep -Eq 'by one rank|one rank finds' out
	done
	printf 'Package: a\nDepends: b\n\nPackage: b\n\nPackage: c\nDepends: a, b\n' >packages
	for program in "keysort 30000 2" "pagerank packages"; do
		"$run" -n 2 --no-prefix "$examples/${program%% *}" ${program#* } >own
		start "$1" 2 "$examples/${program%% *}.$1" ${program#* } >out
		same "$(grep ^digest own)" "$(grep ^digest out)"
	done
}

for mpi in openmpi mpich; do
	! has $mpi || check "$mpi: the same programs find the same" as_plain_mpi $mpi
done

finish
