#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build build/vm/initrd, the first root of every guest: busybox, a few modules, and an
# init that mounts the host's own root (read-only by 9p, writable through an overlay in
# memory) and hands over to the guest agent there. Small and quick, so always rebuilt.
# usage: initramfs.sh    (after guest-kernel.sh)
set -eu
. "$(dirname -- "$0")/common.sh"

MODULES="virtio_pci virtio_console virtio_rng 9pnet_virtio 9p overlay"

need busybox cpio modprobe
[ -f "$MUSTER_VM_DIR/vmlinux" ] || die "no guest kernel yet; run tools/setup/guest-kernel.sh first"
release=$(cat "$MUSTER_VM_DIR/release")
kernel=$(readlink -f "$MUSTER_VM_DIR/kernel")
new=$(mktemp -d "$MUSTER_VM_DIR/initrd.XXXXXX")
trap 'rm -rf "$new"' EXIT

mkdir "$new/bin" "$new/proc" "$new/sys" "$new/dev" "$new/host" "$new/upper" "$new/root" "$new/modules"
cp /bin/busybox "$new/bin/busybox"
cp "$MUSTER_ROOT/tools/setup/guest-init.sh" "$new/init"

# In the order in which they must be loaded, each once.
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
		count=$((count + 1))
	done

(cd "$new" && find . | cpio -o -H newc --quiet) >"$new.cpio"
mv "$new.cpio" "$MUSTER_VM_DIR/initrd"
