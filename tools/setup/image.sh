#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Make somebody else's machine: a disk with a stock Debian 12 from the machine's own mirrors,
# which knows nothing of Muster. It has what a user of the driver installs first (headers,
# DKMS, the RDMA packages) and is kept in the cache. Afterwards
#   build/image/disk      a file system of ext2, used as it is by a snapshot only
#   build/image/vmlinuz   its own kernel, and
#   build/image/initrd    what that boots into
# usage: image.sh     (a few minutes, once)
set -eu
. "$(dirname -- "$0")/common.sh"

DIR=$MUSTER_CACHE/image
PACKAGES=linux-image-amd64,linux-headers-amd64,dkms,make,systemd-sysv,udev,kmod,iproute2
PACKAGES=$PACKAGES,rdma-core,ibverbs-providers,ibverbs-utils,gcc,libc6-dev,pkg-config
ROOM=1G		# left free on the disk

# usage: make_disk FOLDER
make_disk() {
	set -- "$1" /etc/apt/sources.list
	[ -f "$2" ] || set -- "$1"
	for file in /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		[ ! -f "$file" ] || set -- "$@" "$file"
	done
	folder=$1
	shift
	mmdebstrap --variant=important --include="$PACKAGES" --format=ext2 \
		--customize-hook="download /vmlinuz $folder/vmlinuz" \
		--customize-hook="download /initrd.img $folder/initrd" \
		"$(codename)" "$folder/disk" "$@"
	truncate -s "+$ROOM" "$folder/disk"
	e2fsck -fp "$folder/disk"
	resize2fs "$folder/disk"
}

build() {
	"$MUSTER_ROOT/tools/setup/setup.sh" --quiet image
	need mmdebstrap genext2fs resize2fs e2fsck flock
	cache_lock image
	[ ! -d "$DIR/$key" ] || return 0
	rm -rf "$DIR/$key.new" && mkdir -p "$DIR/$key.new"
	with_log "$DIR/build.log" "making a disk of Debian $(codename) (fetches about 250 MB)" \
		make_disk "$DIR/$key.new"
	mv "$DIR/$key.new" "$DIR/$key"
}

version=$(apt-cache policy linux-image-amd64 | sed -n 's/^ *Candidate: //p')
key=$version-$(sha256sum "$0" | cut -c1-16)
[ -d "$DIR/$key" ] || build
ln -sfnT "$DIR/$key" "$MUSTER_ROOT/build/image"
say "the disk is ready: build/image"
