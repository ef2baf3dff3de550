#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build muster.ko for the guests' kernel into build/kernel/, in a mirror of kernel/ made
# of links, so that nothing is written beside the sources.
# usage: kernel.sh [ARGUMENT OF MAKE]...     (W=1, or C=2 CF=-D__CHECK_ENDIAN__)
# MUSTER_KERNEL_BUILD names another kernel's headers (/lib/modules/RELEASE/build).
set -eu
. "$(dirname -- "$0")/common.sh"

need make gcc-12
OUT=$MUSTER_ROOT/build/kernel
headers=${MUSTER_KERNEL_BUILD:-}
if [ -z "$headers" ]; then
	[ -f "$MUSTER_VM_DIR/release" ] ||
		die "no guest kernel yet; run tools/setup/guest-kernel.sh first"
	headers=$MUSTER_VM_DIR/kernel/lib/modules/$(cat "$MUSTER_VM_DIR/release")/build
fi

mkdir -p "$OUT/mirror/kernel"
ln -sfn "$MUSTER_ROOT/uapi" "$OUT/mirror/uapi"
find "$OUT/mirror/kernel" -type l ! -exec test -e {} \; -delete
for file in Kbuild $(cd "$MUSTER_ROOT/kernel" && ls -- *.c *.h); do
	ln -sfn "$MUSTER_ROOT/kernel/$file" "$OUT/mirror/kernel/$file"
done
# The uapi headers are reached through a link that kbuild sees; it follows their changes.
make -s -C "$headers" M="$OUT/mirror/kernel" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
cmp -s "$OUT/mirror/kernel/muster.ko" "$OUT/muster.ko" ||
	cp "$OUT/mirror/kernel/muster.ko" "$OUT/muster.ko"
