#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=dash disable=SC2013
# First process of a guest: makes the host's root the guest's own, without being able to
# change the host, and becomes the guest agent. The kernel command line names, as paths on the host,
# muster_agent (the program) and muster_kernel (the unpacked kernel packages).
/bin/busybox --install -s /bin
PATH=/bin
export PATH

fail() {
	echo "guest init: $*"
	sleep 1
	poweroff -f
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for word in $(cat /proc/cmdline); do
	case $word in
	muster_agent=*) agent=${word#*=} ;;
	muster_kernel=*) kernel=${word#*=} ;;
	esac
done
for module in /modules/*; do
	[ -f "$module" ] || continue	# all built in
	insmod "$module" || fail "cannot load $module"
done

mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro hostroot /host ||
	fail "cannot mount the host's root"
mount -t tmpfs -o size=75% tmpfs /upper
mkdir /upper/data /upper/work
mount -t overlay -o lowerdir=/host,upperdir=/upper/data,workdir=/upper/work overlay /root ||
	fail "cannot lay a writable layer over the host's root"
mkdir -p /root/lib/modules
rm -rf "/root/lib/modules/$(uname -r)"
ln -s "$kernel/lib/modules/$(uname -r)" "/root/lib/modules/$(uname -r)"

mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
for dir in /proc /sys /dev; do
	mount -o move $dir /root$dir
done
mount -t tmpfs tmpfs /root/run
[ -x "/root$agent" ] || fail "there is no agent at $agent"
exec switch_root /root "$agent"
