#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# MPICH's own tests of MPI on Muster, with both MPIs: what passes without Muster must pass with it. Left
# out is what fails or hangs without (after three minutes), be it now and then only, what chooses algorithms
# of MPICH, is judged by more than its words, takes gigabytes, or needs more ranks than MUSTER_SUITE_RANKS (4).
# MUSTER_SUITE_ONLY: those that it matches. Not part of make check: make check-mpi-suite.
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

leave_out() {
	left_out=$((left_out + 1))
	echo "# $1: left out"
}

for mpi in openmpi mpich; do
	has $mpi || continue
	[ -d "$suite/$mpi" ] || { skip "$mpi" "its tests are not built (make check-mpi-suite does)"; continue; }
	listed $mpi >tests
	left_out=0
	while read -r folder program ranks words; do
		[ -x "$suite/$mpi/$folder/$program" ] || continue
		echo "$folder/$program" | grep -q "$only" || continue
		name="$mpi: $folder/$program $words, $ranks ranks"
		set -- $mpi "$ranks" "$suite/$mpi/$folder/$program"
		# shellcheck disable=SC2086 # words
		if ! without "$@"; then
			leave_out "$name"
		elif passes 900 $mpi "$ranks" "$launch" "$3" $words; then
			check "$name" true
		else
			mv out told
			if now_and_then "$@"; then leave_out "$name"; else check "$name" told; fi
		fi
	done <tests
	echo "# $mpi: $left_out left out, as they do not pass without Muster"
done
finish
