#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The top of the checkout is an out-of-tree module as any other, and neither sparse nor the
# kernel's additional warnings have anything to say. MUSTER_KERNEL_BUILD: another kernel's headers.
. "$(dirname "$0")/tap.sh"

headers=$MUSTER_BUILD/vm/kernel/lib/modules/$(cat "$MUSTER_BUILD/vm/release" 2>/dev/null)/build
headers=${MUSTER_KERNEL_BUILD:-$headers}
command -v sparse >/dev/null || skip_all "sparse is not installed (make setup-guest)"
[ -d "$headers" ] || skip_all "there are no headers of the guests' kernel; make setup-guest fetches them"

module_is_built() {
	cp -r "$tap_home/../Kbuild" "$tap_home/../kernel" "$tap_home/../uapi" .
	make -s -C "$headers" M="$PWD" CONFIG_DEBUG_INFO_BTF_MODULES= W=1 C=1 \
		CF=-D__CHECK_ENDIAN__ >said 2>&1
	cat said
	test ! -s said
	modinfo -F name kernel/muster.ko | grep -qx muster
}
check "make -C /lib/modules/.../build M=\$PWD builds the driver, sparse and W=1 are quiet" module_is_built
finish
