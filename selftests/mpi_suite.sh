#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# MPICH's own tests of MPI on Muster, with both MPIs: what passes without Muster must pass with it. Left
# out is what fails or hangs without (after three minutes), be it now and then only, what chooses algorithms
# of MPICH, is judged by more than its words, takes gigabytes, or needs more ranks than MUSTER_SUITE_RANKS (4).
# MUSTER_SUITE_ONLY: those that it matches. Not part of make check: make check-mpi-suite.
# It takes hours on a busy machine: what has passed, or was left out, is kept in the build folder's
# mpi-suite/MPI.passed, and a run that was stopped goes on behind it, as long as it is of the same libraries;
# at the end that becomes MPI.last.
. "$(dirname "$0")/tap.sh"
. "$tap_home/mpi.sh"

suite=$MUSTER_BUILD/mpi-suite
most=${MUSTER_SUITE_RANKS:-4}
only=${MUSTER_SUITE_ONLY:-.}

# usage: passes SECONDS MPI RANKS COMMAND...: its own words
passes() {
	passes_seconds=$1 passes_mpi=$2 passes_ranks=$3
	shift 3
	start "$passes_mpi" "$passes_ranks" timeout "$passes_seconds" "$@" >out 2>&1 </dev/null || return
	grep -q '^ *No Errors' out
}

# usage: without MPI RANKS PROGRAM, with $words
# shellcheck disable=SC2086 # words
without() {
	passes 180 "$@" $words
}

# usage: now_and_then MPI RANKS PROGRAM: of several times without Muster one does not pass
now_and_then() {
	for _ in 1 2 3 4 5; do
		without "$@" || return 0
	done
	return 1
}

told() {
	cat told
	return 1
}

# The lists of all folders: FOLDER PROGRAM RANKS ARGUMENTS
listed() {
	(cd "$suite/$1" && for list in */testlist */*/testlist ../source/*/testlist ../source/*/*/testlist; do
		folder=$(dirname "${list#../source/}")
		[ ! -f "$list" ] || sed "s|^[[:space:]]*|$folder |" "$list"
	done) | awk -v most="$most" '$2 !~ /^[#!]/ && $3 ~ /^[0-9]+$/ && $3 > 1 && $3 <= most &&
		!/ (xfail|env|resultTest|mem)=/ {
			words = ""
			for (i = 4; i <= NF; i++)
				if (sub(/^arg=/, "", $i))
					words = words " " $i
			print $1, $2, $3, words
		}' | sort -u
}

# usage: keep ok|left-out NAME: it need not be run again
keep() {
	[ "$1" = ok ] || left_out=$((left_out + 1))
	echo "$1 $2" >>"$kept"
}

leave_out() {
	keep left-out "$1"
	echo "# $1: left out"
}

pass() {
	keep ok "$1"
	check "$1" true
}

# usage: was_kept NAME: by a run before, which says so
was_kept() {
	! grep -qxF "ok $1" "$kept" || { check "$1" true; return; }
	grep -qxF "left-out $1" "$kept" || return
	left_out=$((left_out + 1))
	echo "# $1: left out"
}

# usage: go_on MPI: behind what was kept, if that is of the same libraries
go_on() {
	kept=$suite/$1.passed
	libraries=$(cksum "$MUSTER_BUILD/libmuster-mpi-$1.so.0" "$MUSTER_BUILD/libmuster.so.0" | cksum)
	[ "$(head -n 1 "$kept" 2>/dev/null)" = "$libraries" ] || echo "$libraries" >"$kept"
}

for mpi in openmpi mpich; do
	has $mpi || continue
	[ -d "$suite/$mpi" ] || { skip "$mpi" "its tests are not built (make check-mpi-suite does)"; continue; }
	listed $mpi >tests
	go_on $mpi
	left_out=0
	while read -r folder program ranks words; do
		[ -x "$suite/$mpi/$folder/$program" ] || continue
		echo "$folder/$program" | grep -q "$only" || continue
		name="$mpi: $folder/$program $words, $ranks ranks"
		set -- $mpi "$ranks" "$suite/$mpi/$folder/$program"
		! was_kept "$name" || continue
		# shellcheck disable=SC2086 # words
		if ! without "$@"; then
			leave_out "$name"
		elif passes 900 $mpi "$ranks" "$launch" "$3" $words; then
			pass "$name"
		else
			mv out told
			if now_and_then "$@"; then leave_out "$name"; else check "$name" told; fi
		fi
	done <tests
	[ "$only" != . ] || mv "$kept" "$suite/$mpi.last"
	echo "# $mpi: $left_out left out, as they do not pass without Muster"
done
finish
