#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each compiler that this machine has or that set-up fetched, at each level of optimization:
# not a warning.
. "$(dirname "$0")/tap.sh"

PATH=$MUSTER_BUILD/compilers:$PATH

# usage: no_warning COMPILER FLAG...
no_warning() {
	compiler=$1
	shift
	make -s -j"$tap_cpus" -C "$tap_home/.." BUILD="$tap_dir/$compiler$1" CC="$compiler" CFLAGS="$*" WERROR=1 \
		compile
}

[ -n "$(command -v gcc-14)" ] || skip "gcc-14" "it is not there; make check-compilers fetches it"
for compiler in gcc-12 gcc-13 gcc-14 gcc-15 clang clang-16 clang-19; do
	command -v $compiler >/dev/null || continue
	for level in 0 1 2; do
		check "$compiler -O$level" no_warning $compiler -O$level -g
	done
	check "$compiler -O3 for this CPU" no_warning $compiler -O3 -march=native
done
finish
