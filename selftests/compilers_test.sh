#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each compiler that this machine has or that set-up fetched, at each level of optimization:
# not a warning, and the bits of arithmetic that its reference has.
. "$(dirname "$0")/tap.sh"

PATH=$MUSTER_BUILD/compilers:$PATH
ccache=$(command -v ccache || :)

# What is for this CPU is compiled each time: a cache may come from another.
cc() {
	case "$*" in
	*=native*) echo "$1" ;;
	*) echo "$ccache $1" ;;
	esac
}

# usage: no_warning COMPILER FLAG...
no_warning() {
	compiler=$1 cc=$(cc "$@")
	shift
	make -s -j"$tap_cpus" -C "$tap_home/.." BUILD="$tap_dir/$compiler$1" CC="$cc" CFLAGS="$*" WERROR=1 compile
}

# usage: same_bits COMPILER FLAG...: the unit tests of the arithmetic, without a sanitizer
same_bits() {
	compiler=$1 cc=$(cc "$@")
	shift
	units=$tap_dir/$compiler$1/san/qemu-device/engine
	make -s -j"$tap_cpus" -C "$tap_home/.." BUILD="$tap_dir/$compiler$1" CC="$cc" CFLAGS="$*" \
		"$units/arith_test" "$units/arith_plain_test" "$units/exact_test"
	"$units/arith_test" && "$units/arith_plain_test" && "$units/exact_test"
}

[ -n "$(command -v gcc-14)" ] || skip "gcc-14" "it is not there; make check-compilers fetches it"
for compiler in gcc-12 gcc-13 gcc-14 gcc-15 clang clang-16 clang-19; do
	command -v $compiler >/dev/null || continue
	for level in 0 1 2; do
		check "$compiler -O$level" no_warning $compiler -O$level
		check "$compiler -O$level: the arithmetic's bits" same_bits $compiler -O$level
	done
	check "$compiler -O3 for this CPU" no_warning $compiler -O3 -march=native
	check "$compiler -O3 for this CPU: the arithmetic's bits" same_bits $compiler -O3 -march=native
done
finish
