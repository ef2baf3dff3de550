#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Fetch the distribution's 6.1 kernel for the guests, with its headers, and unpack both
# into the cache; nothing is installed and /boot is never touched. Afterwards
#   build/vm/vmlinux   the uncompressed kernel (boots fastest)
#   build/vm/kernel    the unpacked packages: lib/modules, and headers for building muster.ko
#   build/vm/release   the kernel's release name
#   build/vm/initrd    what it boots into (initramfs.sh)
# usage: guest-kernel.sh
set -eu
. "$(dirname -- "$0")/common.sh"

DIR=$MUSTER_CACHE/kernel

fetch_packages() {
	# shellcheck disable=SC2119 # the machine's own sources
	private_apt
	image=$(dependency linux-image-amd64 linux-image-6.1)
	[ -n "$image" ] || die "no linux-image-6.1 among the package sources; this needs Debian 12"
	headers=linux-headers-${image#linux-image-}
	common=$(dependency "$headers" linux-headers-)
	mkdir -p "$DIR/download"
	# Elsewhere for this alone: the folder goes away before the script ends.
	(cd "$DIR/download" &&
		with_log "$DIR/fetch.log" "fetching $image and its headers (about 85 MB)" \
			apt-get -q download "$image" "$headers" "$common" linux-kbuild-6.1)
}

lay_out_kernel() {
	new=$DIR/root.new
	unpack_packages "$DIR/download" "$new"
	release=$(basename "$new"/lib/modules/*)
	relocate_headers "$new" "$DIR/$release"
	ln -sfn "$DIR/$release/usr/src/linux-headers-$release" "$new/lib/modules/$release/build"
	rm -f "$new/lib/modules/$release/source"
	extract_vmlinux "$new" "$release"
	depmod -b "$new" "$release"
	echo "$release" >"$new/release"
	rm -rf "${DIR:?}/$release" && mv "$new" "$DIR/$release"
	echo "$release" >"$DIR/current"
	rm -rf "$DIR/download"
}

fetch() {
	need dpkg-deb depmod flock
	cache_lock kernel
	fetch_packages
	lay_out_kernel
}

[ -f "$DIR/current" ] || fetch
kernel=$DIR/$(cat "$DIR/current")
mkdir -p "$MUSTER_VM_DIR"
ln -sfn "$kernel" "$MUSTER_VM_DIR/kernel"
ln -sfn kernel/vmlinux "$MUSTER_VM_DIR/vmlinux"
ln -sfn kernel/release "$MUSTER_VM_DIR/release"
# Who writes to what is constant is found by the kernel that watches; here it would cost each boot
# the look at every page of the kernel. Nor is memory cleared that nobody asked to be.
echo "rodata=off init_on_alloc=0" >"$MUSTER_VM_DIR/cmdline"
"$MUSTER_ROOT/tools/setup/initramfs.sh"
say "the guests' kernel is ready: $(cat "$kernel/release")"
