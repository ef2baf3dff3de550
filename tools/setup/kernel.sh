#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Build muster.ko in a mirror of kernel/ made of links, so that nothing is written beside
# the sources: for the guests' kernel into build/kernel/, for another into build/kernel-KERNEL/.
# Without debug information, which mirror/kernel/muster.ko has where it is compiled.
# usage: kernel.sh [ARGUMENT OF MAKE]...     (W=1, or C=2 CF=-D__CHECK_ENDIAN__)
# KERNEL: 6.1 (what guests run), 6.12, or debug (6.1 that watches the driver).
# OVERLAY: a folder whose files are taken instead of those in kernel/; it is built there.
set -eu
. "$(dirname -- "$0")/common.sh"

need make gcc-12 strip
KERNEL=${KERNEL:-6.1}
OUT=$MUSTER_ROOT/build/kernel-$KERNEL
case $KERNEL in
6.1)
	OUT=$MUSTER_ROOT/build/kernel
	[ -f "$MUSTER_VM_DIR/release" ] ||
		die "no guest kernel yet; run tools/setup/guest-kernel.sh first"
	headers=$(readlink -f "$MUSTER_VM_DIR/kernel/lib/modules/$(cat "$MUSTER_VM_DIR/release")/build")
	;;
6.12)
	"$MUSTER_ROOT/tools/setup/kernel-headers.sh" "$KERNEL"
	headers=$(readlink -f "$MUSTER_ROOT/build/headers-$KERNEL")
	;;
debug)
	"$MUSTER_ROOT/tools/setup/debug-kernel.sh"
	headers=$(readlink -f "$MUSTER_ROOT/build/vm-debug/kernel/headers")
	;;
*) die "KERNEL=$KERNEL: there are 6.1, 6.12 and debug" ;;
esac

OUT=${OVERLAY:-$OUT}
mkdir -p "$OUT/mirror/kernel"
ln -sfn "$MUSTER_ROOT/uapi" "$OUT/mirror/uapi"
find "$OUT/mirror/kernel" -type l ! -exec test -e {} \; -delete
for file in Kbuild $(cd "$MUSTER_ROOT/kernel" && ls -- *.c *.h); do
	from=$MUSTER_ROOT/kernel
	[ ! -f "${OVERLAY:-}/$file" ] || from=$OVERLAY
	ln -sfn "$from/$file" "$OUT/mirror/kernel/$file"
done

# What was built of the same is kept: the newest few.
KEEP=16
key=$(cd "$OUT/mirror" && {
	echo "$headers"
	find -L . '(' -name '*.[ch]' -o -name Kbuild ')' ! -name '*.mod.c' | LC_ALL=C sort | xargs tail -n +1
	cat "$headers/include/config/auto.conf" "$MUSTER_ROOT/tools/setup/kernel.sh"
} | sha256sum | cut -c1-16)
kept=$MUSTER_CACHE/module/$key.ko

# The uapi headers are reached through a link that kbuild sees; it follows their changes.
# usage: built [ARGUMENT OF MAKE]...
built() {
	make -s -C "$headers" M="$OUT/mirror/kernel" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
	mkdir -p "$MUSTER_CACHE/module"
	# As it is installed; each guest would read what debuggers want, ten times the rest.
	strip --strip-debug -o "$kept.$$" "$OUT/mirror/kernel/muster.ko" && mv "$kept.$$" "$kept"
	# shellcheck disable=SC2012 # names are ours
	ls -t "$MUSTER_CACHE/module"/*.ko | tail -n +$((KEEP + 1)) | xargs -r rm -f
}
if [ $# -ne 0 ] || [ ! -f "$kept" ]; then built "$@"; fi
cmp -s "$kept" "$OUT/muster.ko" || cp "$kept" "$OUT/muster.ko"
