#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Fetch the headers of a newer kernel that the driver is compiled against besides, and
# unpack them into the cache; nothing is installed. They come from the backports of the
# machine's own release, whose compiler fits them. Afterwards
#   build/headers-6.12   what `make -C` of an out-of-tree module wants
# usage: kernel-headers.sh SERIES      (6.12)
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 1 ] || die "usage: kernel-headers.sh SERIES"
SERIES=$1
DIR=$MUSTER_CACHE/kernel-headers

fetch_packages() {
	private_apt "$(codename)-backports"
	headers=$(dependency linux-headers-amd64 "linux-headers-$SERIES\\.")
	[ -n "$headers" ] || die "no linux-headers-$SERIES among the backports of $(codename)"
	common=$(dependency "$headers" linux-headers-)
	kbuild=$(dependency "$headers" linux-kbuild-)
	rm -rf "$DIR/download" && mkdir -p "$DIR/download"
	(cd "$DIR/download" &&
		with_log "$DIR/fetch.log" "fetching $headers (about 12 MB)" \
			apt-get -q download "$headers" "$common" "$kbuild")
}

fetch() {
	need dpkg-deb flock
	cache_lock kernel-headers
	[ ! -f "$DIR/$SERIES" ] || return 0
	mkdir -p "$DIR"
	fetch_packages
	unpack_packages "$DIR/download" "$DIR/root.new"
	release=${headers#linux-headers-}
	relocate_headers "$DIR/root.new" "$DIR/$release"
	rm -rf "${DIR:?}/$release" && mv "$DIR/root.new" "$DIR/$release"
	rm -rf "$DIR/download"
	echo "$release" >"$DIR/$SERIES"
}

[ -f "$DIR/$SERIES" ] || fetch
release=$(cat "$DIR/$SERIES")
mkdir -p "$MUSTER_ROOT/build"
ln -sfn "$DIR/$release/usr/src/linux-headers-$release" "$MUSTER_ROOT/build/headers-$SERIES"
