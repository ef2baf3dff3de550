#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Built for aarch64 without a warning, two ranks under QEMU's user emulation give the bits
# of this machine's. Emulation orders memory no less than this machine does: that order is
# asked for is seen in the code, where a ring's shared words are stored and loaded.
. "$(dirname "$0")/tap.sh"

cc=aarch64-linux-gnu-gcc
for tool in $cc aarch64-linux-gnu-objdump qemu-aarch64; do
	command -v $tool >/dev/null || skip_all "$tool is missing; make check-aarch64 installs it"
done
build=${MUSTER_AARCH64:-$tap_dir/build}

it_compiles() {
	make -s -C "$tap_home/.." BUILD="$build" CC=$cc LINKER= CFLAGS="-O2 -g -static" WERROR=1 \
		"$build/selftests/ranks"
}

digest() {
	"$MUSTER_BUILD/tools/muster-run" -n 2 --no-bind "$@" bits >said
	cat said >&2
	sed -n 's/.*digest //p' said
}

same_bits() {
	here=$(digest "$MUSTER_BUILD/selftests/ranks")
	test -n "$here"
	same "$here" "$(digest qemu-aarch64 "$build/selftests/ranks")"
}

# usage: orders OBJECT: it stores with release and loads with acquire
orders() {
	aarch64-linux-gnu-objdump -d "$build/$1" >code
	grep -qwE 'stlrb?' code
	grep -qwE 'ldap?rb?|ldarb?' code
}

check "everything below the ranks compiles for aarch64" it_compiles
check "two ranks have the bits of this machine" same_bits
check "rings are published and read in order" orders userlib/local/rings.o
finish
