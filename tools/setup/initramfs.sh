#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build build/vm/initrd, the first root of every guest: a few modules, what a driver of an RDMA
# device wants among them, and an init (guest_init.c) that mounts the host's own root (read-only
# by 9p, writable through an overlay in memory) and hands over to the guest agent there. Small and
# quick, so always rebuilt.
# usage: initramfs.sh    (after guest-kernel.sh)
set -eu
. "$(dirname -- "$0")/common.sh"

MODULES="virtio_pci virtio_console virtio_rng 9pnet_virtio 9p overlay ib_uverbs"

need cpio gcc modprobe strip
[ -f "$MUSTER_VM_DIR/vmlinux" ] || die "no guest kernel yet; run tools/setup/guest-kernel.sh first"
release=$(cat "$MUSTER_VM_DIR/release")
kernel=$(readlink -f "$MUSTER_VM_DIR/kernel")
new=$(mktemp -d "$MUSTER_VM_DIR/initrd.XXXXXX")
trap 'rm -rf "$new"' EXIT

mkdir "$new/modules"
gcc -std=gnu11 -Wall -Wextra -D_GNU_SOURCE -O2 -static -s -o "$new/init" "$MUSTER_ROOT/tools/setup/guest_init.c"

# In the order in which they must be loaded, each once, and without the signature, which the
# guest would spend time on.
count=100
# shellcheck disable=SC2086 # a list of names
modprobe -d "$kernel" -S "$release" --show-depends -a $MODULES |
	awk '$1 == "insmod" && !seen[$2]++ { print $2 }' |
	while read -r module; do
		name=$count-${module##*/}
		case $name in
		*.xz) xz -dc "$module" >"$new/modules/${name%.xz}" ;;
		*) cp "$module" "$new/modules/$name" ;;
		esac
		strip --strip-debug "$new/modules/${name%.xz}"
		count=$((count + 1))
	done

(cd "$new" && find . | cpio -o -H newc --quiet) >"$new.cpio"
mv "$new.cpio" "$MUSTER_VM_DIR/initrd"
