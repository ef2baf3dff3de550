#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Fetch rdma-core's source, check it, and lay out the private headers that a provider is
# built with, in the cache; build/rdma-core/include links there. The private interface is
# the same (34) from rdma-core 44, Debian 12's, to 56.1, whose source is taken.
# usage: rdma-core.sh
set -eu
. "$(dirname -- "$0")/common.sh"

VERSION=56.1
SHA256=63ce7f2baa7242c2dbc76375dac957c420187dd27f8c5e148efc07971ee522a8
DIR=$MUSTER_CACHE/rdma-core-$VERSION
TARBALL=pool/main/r/rdma-core/rdma-core_$VERSION.orig.tar.gz

# From the mirrors that the machine's own package sources name, whichever has it.
fetch() {
	for site in $(apt-get indextargets --format '$(SITE)' | sort -u); do
		say "fetching the source of rdma-core $VERSION (2 MB) from $site"
		/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file \
			"$site/$TARBALL" "$1" "SHA256:$SHA256" >"$MUSTER_CACHE/rdma-core.log" 2>&1 &&
			return
	done
	tail -n 5 "$MUSTER_CACHE/rdma-core.log" >&2
	die "no package source of this machine has $TARBALL"
}

config() {
	cat <<-CONFIG
		#define HAVE_STATEMENT_EXPR 1
		#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
		#define HAVE_TYPEOF 1
		#define HAVE_FUNC_ATTRIBUTE_ALWAYS_INLINE 1
		#define SIZEOF_LONG __SIZEOF_LONG__
		#define IBVERBS_PABI_VERSION 34
		#define VERBS_IOCTL_ONLY 0
		#define VERBS_WRITE_ONLY 0
	CONFIG
}

# usage: lay_out SOURCE INCLUDE
lay_out() {
	mkdir -p "$2/infiniband" "$2/rdma" "$2/util" "$2/ccan" "$2/kernel-abi"
	for name in driver cmd_ioctl kern-abi verbs verbs_api; do
		cp "$1/libibverbs/$name.h" "$2/infiniband/"
	done
	cp "$1/kernel-headers/rdma/ib_user_ioctl_verbs.h" "$2/infiniband/ib_user_ioctl_verbs.h"
	for name in ib_user_verbs ib_user_ioctl_cmds ib_user_ioctl_verbs rdma_user_ioctl_cmds \
		rdma_user_ioctl; do
		cp "$1/kernel-headers/rdma/$name.h" "$2/rdma/"
	done
	cp "$1/util/util.h" "$1/util/compiler.h" "$2/util/"
	cp "$1"/ccan/*.h "$2/ccan/"
	/usr/bin/python3 "$1/buildlib/make_abi_structs.py" "$2/rdma/ib_user_verbs.h" \
		"$2/kernel-abi/ib_user_verbs.h"
	config >"$2/config.h"
}

prepare() {
	need apt-get flock tar python3
	cache_lock rdma-core
	new=$DIR.new
	rm -rf "$new" "$DIR" && mkdir -p "$new/source"
	fetch "$new/source.tar.gz"
	tar -xzf "$new/source.tar.gz" -C "$new/source" --strip-components=1
	lay_out "$new/source" "$new/include"
	rm -rf "$new/source" "$new/source.tar.gz"
	mv "$new" "$DIR"
}

[ -f "$DIR/include/config.h" ] || prepare
mkdir -p "$MUSTER_ROOT/build/rdma-core"
ln -sfn "$DIR/include" "$MUSTER_ROOT/build/rdma-core/include"
