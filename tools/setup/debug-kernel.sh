#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build a kernel for guests that watches the driver: KASAN, lockdep, kmemleak, DMA
# debugging (debug.config). Its source is the distribution's; the result is kept
# in the cache under the source's version and a checksum of the configuration, without the
# source. Afterwards build/vm-debug is what build/vm is for the ordinary kernel.
# usage: debug-kernel.sh     (about an hour of one CPU, once)
set -eu
SETUP_VM_DIR=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)/build/vm-debug
export SETUP_VM_DIR
. "$(dirname -- "$0")/common.sh"

SERIES=6.1
DIR=$MUSTER_CACHE/debug-kernel
CONFIG=$MUSTER_ROOT/tools/setup/debug.config
MEMORY_MIB=2048
# What KASAN does not watch. The entry that QEMU takes (pvh/enlighten.c, with memcmp) runs before it
# has its shadow. The others watch as well, at every allocation and lock: watched themselves
# they take half of this kernel's time.
UNWATCHED="enlighten string unwind_frame stacktrace lockdep kmemleak debugobjects"

fetch_source() {
	# shellcheck disable=SC2119 # the machine's own sources
	private_apt
	version=$(apt-cache show "linux-source-$SERIES" | sed -n 's/^Version: //p' | head -n 1)
	[ -n "$version" ] ||
		die "no linux-source-$SERIES among the package sources; this needs Debian 12"
	[ ! -d "$DIR/source-$version" ] || return 0
	rm -rf "$DIR/download" && mkdir -p "$DIR/download"
	(cd "$DIR/download" && with_log "$DIR/fetch.log" \
		"fetching the source of Linux $version (about 135 MB)" \
		apt-get -q download "linux-source-$SERIES=$version")
	unpack_packages "$DIR/download" "$DIR/download/root"
	mkdir "$DIR/download/source"
	with_log "$DIR/unpack.log" "unpacking Linux $version" \
		tar -xf "$DIR/download/root/usr/src/linux-source-$SERIES.tar.xz" \
		-C "$DIR/download/source" --strip-components=1
	mv "$DIR/download/source" "$DIR/source-$version"
	rm -rf "$DIR/download"
}

# Leave out what is already as it shall be: an interrupted build goes on where it was.
configure() {
	KCONFIG_CONFIG=.config.new
	export KCONFIG_CONFIG
	make -s CC=gcc-12 tinyconfig
	cat "$CONFIG" >>.config.new
	make -s CC=gcc-12 olddefconfig
	unset KCONFIG_CONFIG
	cmp -s .config.new .config || mv .config.new .config
}

# What modules are built with: as much of the tree as a package of headers has.
keep_headers() {
	find . \( -name 'Makefile*' -o -name 'Kbuild*' -o -name 'Kconfig*' \) -type f >"$1.files"
	find include scripts arch/x86/include ! -type d ! -name '*.o' >>"$1.files"
	printf '%s\n' .config Module.symvers tools/objtool/objtool >>"$1.files"
	mkdir -p "$1"
	sort -u "$1.files" | tar -cf - -T - | tar -xf - -C "$1"
	rm "$1.files"
}

# usage: keep_result FOLDER, in the tree that was built
keep_result() {
	new=$1.new
	release=$(make -s kernelrelease)
	modules=$new/lib/modules/$release
	rm -rf "$new" && mkdir -p "$modules"
	strip -S -o "$new/vmlinux" vmlinux
	cp modules.builtin modules.builtin.modinfo modules.order "$modules/"
	depmod -b "$new" "$release"
	keep_headers "$new/headers"
	ln -s "$1/headers" "$modules/build"
	echo "$release" >"$new/release"
	rm -rf "$1" && mv "$new" "$1"
}

build() {
	"$MUSTER_ROOT/tools/setup/setup.sh" --quiet guest debug
	need dpkg-deb gcc-12 ccache make flex bison bc depmod flock strip
	cache_lock debug-kernel
	[ ! -f "$DIR/$key" ] || return 0
	mkdir -p "$DIR"
	fetch_source
	cd "$DIR/source-$version"
	with_log "$DIR/configure.log" "configuring the kernel that watches" configure
	export CCACHE_DIR="$MUSTER_CACHE/ccache"
	# shellcheck disable=SC2046 # an argument for each
	with_log "$DIR/build.log" "building the kernel that watches" \
		make -j "$(nproc)" CC="ccache gcc-12" $(printf 'KASAN_SANITIZE_%s.o=n ' $UNWATCHED) \
		vmlinux modules
	keep_result "$DIR/$version-$key"
	cd "$DIR"
	rm -rf "$DIR/source-$version"
	echo "$version-$key" >"$DIR/$key"
}

# The checksum is that of settings, not of the words about them.
key=$({ grep '^CONFIG' "$CONFIG" | LC_ALL=C sort; echo "$UNWATCHED"; } | sha256sum | cut -c1-16)
[ -f "$DIR/$key" ] || build
kernel=$DIR/$(cat "$DIR/$key")
mkdir -p "$MUSTER_VM_DIR"
ln -sfn "$kernel" "$MUSTER_VM_DIR/kernel"
ln -sfn kernel/vmlinux "$MUSTER_VM_DIR/vmlinux"
ln -sfn kernel/release "$MUSTER_VM_DIR/release"
echo "$MEMORY_MIB" >"$MUSTER_VM_DIR/memory"
# It boots long, and is taken for hung when it says nothing; the making of 512 terminals that
# nobody wants is a good part of that. What it finds it tells each time.
echo "loglevel=7 kasan_multi_shot pty.legacy_count=0" >"$MUSTER_VM_DIR/cmdline"
# An instruction is a nanosecond: else its 250 ticks a second are all that it has time for.
echo "-icount shift=0" >"$MUSTER_VM_DIR/options"
"$MUSTER_ROOT/tools/setup/initramfs.sh"
"$MUSTER_ROOT/tools/setup/qemu.sh"
say "the kernel that watches is ready: $(cat "$kernel/release")"
