#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Fetch a newer kernel for guests, the one whose headers kernel-headers.sh has fetched, and
# unpack it into the cache; nothing is installed. Afterwards build/vm-6.12 is what build/vm
# is for the ordinary kernel.
# usage: newer-kernel.sh SERIES      (6.12)
set -eu
SETUP_VM_DIR=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)/build/vm-${1:-}
export SETUP_VM_DIR
. "$(dirname -- "$0")/common.sh"

[ $# -eq 1 ] || die "usage: newer-kernel.sh SERIES"
SERIES=$1
"$MUSTER_ROOT/tools/setup/kernel-headers.sh" "$SERIES"
DIR=$MUSTER_CACHE/kernel-headers
release=$(cat "$DIR/$SERIES")
kernel=$DIR/$release-guest

fetch() {
	need dpkg-deb depmod flock xz zstd
	cache_lock kernel-headers
	[ ! -d "$kernel" ] || return 0
	private_apt "$(codename)-backports"
	rm -rf "$DIR/download" && mkdir -p "$DIR/download"
	(cd "$DIR/download" &&
		with_log "$DIR/fetch.log" "fetching linux-image-$release (about 100 MB)" \
			apt-get -q download "linux-image-$release")
	new=$kernel.new
	unpack_packages "$DIR/download" "$new"
	[ -d "$new/lib" ] || ln -s usr/lib "$new/lib"
	extract_vmlinux "$new" "$release"
	depmod -b "$new" "$release"
	echo "$release" >"$new/release"
	mv "$new" "$kernel"
	rm -rf "$DIR/download"
}

[ -d "$kernel" ] || fetch
mkdir -p "$MUSTER_VM_DIR"
ln -sfn "$kernel" "$MUSTER_VM_DIR/kernel"
ln -sfn kernel/vmlinux "$MUSTER_VM_DIR/vmlinux"
ln -sfn kernel/release "$MUSTER_VM_DIR/release"
"$MUSTER_ROOT/tools/setup/initramfs.sh"
"$MUSTER_ROOT/tools/setup/qemu.sh"
say "the guests' kernel $SERIES is ready: $release"
