#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build QEMU with the Muster device in it and link it as build/vm/qemu-system-x86_64;
# beside it libmuster-count.so, the plugin that counts a guest's instructions.
# usage: qemu.sh
# The distribution's QEMU source is fetched once, checked by apt against its signed index, and
# unpacked into the cache; the device is laid over it as hw/muster. Each machine
# (overlay/muster.mak) is built in a folder of its own, so that checkouts with different ones do
# not undo each other's work. A build is kept under the checksum of all its inputs, so that an
# unchanged tree needs no build and a changed device only its own files.
set -eu
. "$(dirname -- "$0")/common.sh"

SERIES=7.2
DIR=$MUSTER_CACHE/qemu
SRC=$DIR/source
MACHINE=muster-$(sha256sum "$MUSTER_ROOT/qemu-device/overlay/muster.mak" | cut -c1-8)
BUILD=$DIR/build-$MACHINE
OVERLAY=$SRC/hw/muster
KEEP_BUILDS=16
RESULTS="qemu-system-x86_64 hw/muster/libmuster-count.so"

# Every file that goes into the overlay, as paths from the top of the checkout.
overlay_files() {
	cd "$MUSTER_ROOT"
	find qemu-device uapi -type f \( -name '*.[ch]' -o -path 'qemu-device/overlay/*' \) \
		! -path 'qemu-device/switch/*' ! -name '.*' | LC_ALL=C sort
}

overlay_key() {
	cd "$MUSTER_ROOT"
	overlay_files | xargs sha256sum tools/setup/qemu.sh | sha256sum | cut -c1-16
}

# One version after another, newest first: a mirror may lack single files.
fetch_source() {
	mkdir -p "$DIR/download"
	# shellcheck disable=SC2119 # the machine's own sources
	private_apt
	for version in $(apt-cache showsrc qemu | sed -n "s/^Version: \(.*:$SERIES.*\)/\1/p" |
		sort -rVu); do
		say "fetching the source of QEMU $version (about 24 MB)"
		(cd "$DIR/download" &&
			apt-get -q source --download-only "qemu=$version" >fetch.log 2>&1) && return
	done
	tail -n 5 "$DIR/download/fetch.log" >&2 || :
	die "no QEMU $SERIES source could be fetched; this needs Debian 12's package sources"
}

# The source with our device's two lines in it; in place only when complete.
unpack_source() {
	[ ! -d "$SRC" ] || return 0
	fetch_source
	rm -rf "$SRC.new" "$BUILD"
	set -- "$DIR"/download/qemu_*.dsc
	with_log "$DIR/unpack.log" "unpacking QEMU" dpkg-source --no-check -x "$1" "$SRC.new"
	echo "source muster/Kconfig" >>"$SRC.new/hw/Kconfig"
	echo "subdir('muster')" >>"$SRC.new/hw/meson.build"
	mv "$SRC.new" "$SRC"
	rm -rf "$DIR/download"
}

copy_changed() {
	cmp -s "$1" "$2" && return
	mkdir -p "$(dirname "$2")"
	cp "$1" "$2"
}

# Where an overlay file goes: the folders of the checkout are kept, so that the
# includes between them hold; what QEMU wants by name goes to its place.
overlay_place() {
	case $1 in
	qemu-device/overlay/muster.mak) echo "$SRC/configs/devices/x86_64-softmmu/$MACHINE.mak" ;;
	qemu-device/overlay/*) echo "$OVERLAY/${1##*/}" ;;
	*) echo "$OVERLAY/$1" ;;
	esac
}

# The NIC's, the engine's and the wire's files; a test is never part of the device.
library_sources() {
	overlay_files | grep -E '^qemu-device/(nic|engine|wire)/.*\.c$' | grep -v '_test\.c$' || :
}

lay_overlay() {
	cd "$MUSTER_ROOT"
	for file in $(overlay_files); do
		copy_changed "$file" "$(overlay_place "$file")"
	done
	library_sources >"$DIR/sources.txt"
	copy_changed "$DIR/sources.txt" "$OVERLAY/sources.txt"
}

# Once, and again when the options here have changed.
configure_once() {
	set -- --cc="ccache gcc" \
		--target-list=x86_64-softmmu "--with-devices-x86_64=$MACHINE" \
		--without-default-features --without-default-devices \
		--disable-user --enable-system --enable-tcg --enable-kvm --enable-plugins \
		--enable-attr --enable-cap-ng --enable-virtfs --enable-fdt=system \
		--disable-docs --disable-tools --disable-werror --with-git-submodules=ignore
	[ "$(cat "$BUILD/options" 2>/dev/null)" != "$*" ] || return 0
	rm -rf "$BUILD" && mkdir -p "$BUILD" && cd "$BUILD"
	with_log "$DIR/configure.log" "configuring QEMU" "$SRC/configure" "$@"
	echo "$*" >options
}

# Programs are kept by key; the few newest stay, so that going back costs nothing.
keep_result() {
	mkdir -p "$DIR/bin-$key.new"
	for file in $RESULTS; do
		strip -S -o "$DIR/bin-$key.new/${file##*/}" "$BUILD/$file"
	done
	mv "$DIR/bin-$key.new" "$DIR/bin-$key"
	# shellcheck disable=SC2012 # names are ours
	ls -td "$DIR"/bin-* | tail -n +$((KEEP_BUILDS + 1)) | xargs -r rm -rf
}

# shellcheck disable=SC2086 # $RESULTS is a list
build() {
	need dpkg-source meson ninja ccache gcc pkg-config flock strip
	cache_lock qemu
	unpack_source
	lay_overlay
	configure_once
	export CCACHE_DIR="$MUSTER_CACHE/ccache"
	with_log "$DIR/build.log" "building QEMU with the Muster device" \
		ninja -C "$BUILD" -j "$(nproc)" $RESULTS
	keep_result
}

key=$(overlay_key)
[ -x "$DIR/bin-$key/qemu-system-x86_64" ] || build
mkdir -p "$MUSTER_VM_DIR"
for file in $RESULTS; do
	ln -sfn "$DIR/bin-$key/${file##*/}" "$MUSTER_VM_DIR/${file##*/}"
done
say "QEMU is ready: $MUSTER_VM_DIR/qemu-system-x86_64"
