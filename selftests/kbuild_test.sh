#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The top of the checkout is an out-of-tree module as any other, for the oldest and the newest
# kernel that it is for, and neither sparse, checkpatch nor the kernel's additional warnings (among
# them kernel-doc's) have anything to say.
. "$(dirname "$0")/tap.sh"

guests=$MUSTER_BUILD/vm/kernel/lib/modules/$(cat "$MUSTER_BUILD/vm/release" 2>/dev/null)/build
command -v sparse >/dev/null || skip_all "sparse is not installed (make setup-guest)"
[ -d "$guests" ] || skip_all "there are no headers of the guests' kernel; make setup-guest fetches them"

# Always at one place, in turn with others: what is compiled again as it was ccache has, and what sparse
# was quiet about, whole, it need not look at again.
cache=${MUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster}
export CCACHE_DIR="$cache/ccache"
cc=$(command -v ccache || :)
mkdir -p "$cache/kbuild"
exec 9>"$cache/kbuild.lock"
flock 9

# usage: quiet_name HEADERS: of the file that is there if sparse has been quiet about all of this before
quiet_name() {
	{
		sparse --version
		cat "$1/include/config/kernel.release" "$1/.config" "$tap_home/../Kbuild" \
			"$tap_home/kbuild_test.sh"
		find "$tap_home/../kernel" "$tap_home/../uapi" -type f -name '*.[ch]' | sort | xargs cat
	} | sha256sum | sed 's/ .*//; s/^/quiet./'
}

# usage: module_is_built HEADERS
module_is_built() {
	cd "$cache/kbuild"
	quiet=$cache/kbuild/$(quiet_name "$1")
	looks=1
	[ ! -f "$quiet" ] || looks=0
	rm -rf top && mkdir top && cd top
	cp -r "$tap_home/../Kbuild" "$tap_home/../kernel" "$tap_home/../uapi" .
	make -s -j2 -C "$1" M="$PWD" CC="${cc:+$cc }gcc-12" CONFIG_DEBUG_INFO_BTF_MODULES= W=1 C=$looks \
		CF=-D__CHECK_ENDIAN__ >../said 2>&1
	cat ../said
	test ! -s ../said
	touch "$quiet"
	modinfo -F name kernel/muster.ko | grep -qx muster
}

says="make -C /lib/modules/.../build M=\$PWD builds the driver, sparse and W=1 are quiet"
check "6.1: $says" module_is_built "$guests"
if [ -d "$MUSTER_BUILD/headers-6.12" ]; then
	check "6.12: $says" module_is_built "$MUSTER_BUILD/headers-6.12"
else
	skip "6.12: $says" "there are no headers of it; make kernel KERNEL=6.12 fetches them"
fi

# What make planted-kernel builds.
plantable() {
	grep '^[^#]' "$tap_home/guest/planted.txt" | while read -r name file _ expression; do
		echo "$name"
		sed "$expression" "$tap_home/../kernel/$file" >planted.c
		same 1 "$(diff "$tap_home/../kernel/$file" planted.c | grep -c '^>')"
	done
}
check "each bug of guest/planted.txt changes one line of its file" plantable

# One header is there for versions; strings with the names of functions are words that these have, too.
style=LINUX_VERSION_CODE,CONSTANT_COMPARISON,EMBEDDED_FUNCTION_NAME
in_style() {
	perl "$1" --no-tree --terse --show-types --ignore "$style" \
		-f "$tap_home"/../kernel/*.[ch] "$tap_home"/../uapi/rdma/*.h
}

checkpatch=$MUSTER_BUILD/vm-debug/kernel/headers/scripts/checkpatch.pl
if [ -f "$checkpatch" ]; then
	check "checkpatch is quiet" in_style "$checkpatch"
else
	skip "checkpatch is quiet" "it comes with the kernel that watches; make kernel KERNEL=debug"
fi
finish
