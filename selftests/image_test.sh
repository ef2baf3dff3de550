#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Somebody else's machine: a stock Debian 12 (tools/setup/image.sh) boots from a disk of its
# own with a Muster NIC in it and gets what `make install` and its like put under a root: the
# driver as sources. selftests/image/somebody.sh is what is done there; its verdicts are these.
. "$(dirname "$0")/tap.sh"

IMAGE=$MUSTER_BUILD/image
QEMU=$MUSTER_BUILD/vm/qemu-system-x86_64
[ -f "$IMAGE/disk" ] && [ -x "$QEMU" ] ||
	skip_all "there is no disk of somebody else's; make check-image makes it"

# What goes there, as one archive: the disk itself is never written.
mkdir root
make -s -C "$tap_home/.." DESTDIR="$PWD/root" PREFIX=/usr install install-provider \
	install-driver >make.log 2>&1 || {
	cat make.log >&2
	exit 1
}
cp "$tap_home/tap.sh" "$tap_home/image/somebody.sh" root/
tar -C root --owner=0 --group=0 -cf root.tar .

# The second serial line brings the verdicts; there is no network. Time is counted by what the
# machine executes: however slow it is here, nothing there runs out of time. Then nothing happens
# by chance either, so the CPU gives random numbers.
RUN="systemd.run=\"/bin/sh -c 'tar -xf /dev/sdb -C / && exec sh /somebody.sh >/dev/ttyS1 2>&1'\""
END="systemd.run_success_action=poweroff-force systemd.run_failure_action=poweroff-force"
TMPDIR=$PWD "$QEMU" -L /usr/share/seabios -L /usr/share/qemu -nodefaults -no-user-config -no-reboot \
	-display none -vga none -machine q35 -accel tcg -icount shift=1 -cpu qemu64,+rdrand -m 1536 \
	-kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd" \
	-append "root=/dev/sda rw console=ttyS0 no_timer_check $RUN $END" \
	-serial file:console -serial file:verdicts \
	-drive "file=$IMAGE/disk,format=raw,snapshot=on,if=none,id=disk" -device ide-hd,drive=disk,bus=ide.0 \
	-drive file=root.tar,format=raw,snapshot=on,if=none,id=root -device ide-hd,drive=root,bus=ide.1 \
	-device "muster,node=0,wire=unix:$PWD" >qemu.log 2>&1 &
qemu=$!
trap 'kill -9 $qemu 2>/dev/null; cd / && rm -rf "$tap_dir"' EXIT
wait $qemu
grep -q '^1\.\.' verdicts || {
	sed 's/^/# /' qemu.log
	tail -n 60 console | sed 's/^/# /'
	sed 's/^/# /' verdicts
	echo "not ok 1 - the stock machine says what it found"
	exit 1
}
tr -d '\r' <verdicts
grep -q '^not ok' verdicts && exit 1
exit 0
