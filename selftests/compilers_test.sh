#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each compiler that this machine has or that set-up fetched, at each level of optimization:
# not a warning, and the bits of arithmetic that its reference has.
. "$(dirname "$0")/tap.sh"

PATH=$MUSTER_BUILD/compilers:$PATH
ccache=$(command -v ccache || :)

# usage: compiled COMPILER FLAGS TARGET...: what is for this CPU each time anew, as a cache may come from another
compiled() {
	compiler=$1 flags=$2 cc="$ccache $1"
	shift 2
	case $flags in
	*=native*) cc=$compiler ;;
	esac
	make -s -j"$tap_cpus" -C "$tap_home/.." BUILD="$tap_dir/$compiler${flags%% *}" CC="$cc" CFLAGS="$flags" "$@"
}

# usage: no_warning COMPILER FLAGS
no_warning() {
	compiled "$1" "$2" WERROR=1 compile
}

# usage: same_bits COMPILER FLAGS: the unit tests of the arithmetic, without a sanitizer
same_bits() {
	units=$tap_dir/$1${2%% *}/san/qemu-device/engine
	compiled "$1" "$2" "$units/arith_test" "$units/arith_plain_test" "$units/exact_test"
	"$units/arith_test" && "$units/arith_plain_test" && "$units/exact_test"
}

[ -n "$(command -v gcc-14)" ] || skip "gcc-14" "it is not there; make check-compilers fetches it"
for compiler in gcc-12 gcc-13 gcc-14 gcc-15 clang clang-16 clang-19; do
	command -v $compiler >/dev/null || continue
	for level in 0 1 2; do
		check "$compiler -O$level" no_warning $compiler -O$level
		check "$compiler -O$level: the arithmetic's bits" same_bits $compiler -O$level
	done
	check "$compiler -O3 for this CPU" no_warning $compiler "-O3 -march=native"
	check "$compiler -O3 for this CPU: the arithmetic's bits" same_bits $compiler "-O3 -march=native"
done
finish
