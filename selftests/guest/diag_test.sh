#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The diagnostics beside a NIC, in a guest: without a driver, without rights, with all, and while
# the device is reset.
. "$(dirname "$0")/guest.sh"
diag_top=$tap_home/../..
# shellcheck source=selftests/diag.sh
. "$tap_home/../diag.sh"

TOOLS=$MUSTER_BUILD/tools
# A tool finds the provider beside the library's device; what ibv_devices needs it does not.
unset IBV_DRIVERS

nobody() {
	setpriv --reuid 65534 --clear-groups "$@"
}

# usage: prints STATUS WORDS COMMAND...: what it prints has the words, and it ends so.
prints() {
	status=$1 words=$2
	shift 2
	found=$(status_of "$@")
	cat out err
	same "$status" "$found"
	cat out err | grep -q -- "$words"
}

check "devinfo: a NIC without a driver" prints 1 "no driver has it: load muster.ko" "$TOOLS/muster_devinfo"
check "hello: the driver is what to fix first" prints 1 "^Fix first: load the driver" "$TOOLS/muster_hello"
check "the driver loads" load

devinfo_shows_the_nic() {
	"$TOOLS/muster_devinfo" -d muster0 >out
	cat out
	page_shows muster_devinfo.1 "muster_devinfo -d muster0"
	ibv_devinfo -d muster0 | sed 's/[[:space:]]\+/ /g' >theirs
	sed 's/[[:space:]]\+/ /g' out >ours
	for line in fw_ver node_guid sys_image_guid vendor_id vendor_part_id hw_ver; do
		same "$(grep "^ $line:" theirs)" "$(grep "^ $line:" ours)"
	done
}
export IBV_DRIVERS=$MUSTER_BUILD/provider/libmuster
check "devinfo: a NIC as the manual page shows it, and as ibv_devinfo does" devinfo_shows_the_nic
unset IBV_DRIVERS

# For the host, which has what it takes to validate it.
json() {
	"$TOOLS/$1" --json >json
	sed "s/^/#json $1 /" json >>"$tap_dir/jsons"
}
check "devinfo: --json" json muster_devinfo

chmod 600 /dev/infiniband/uverbs0
check "devinfo: without rights it says so, and shows what everybody may see" \
	prints 1 "uverbs0: Permission denied" nobody "$TOOLS/muster_devinfo" -d muster0
check "devinfo: the same, by its PCI address" prints 1 "PORT_ACTIVE (4)" \
	nobody "$TOOLS/muster_devinfo" -d "$(bdf)"
check "hello: the right to open it is what to fix first" \
	prints 1 "^Fix first: let users open /dev/infiniband/uverbs0" nobody "$TOOLS/muster_hello"
chmod 666 /dev/infiniband/uverbs0

runs_for_anybody() {
	prints 0 "^Test Passed.$" nobody sh -c 'ulimit -l 8192; exec "$0"' "$TOOLS/muster_hello"
	grep -q "^nic run  *ok" out
}
check "hello: two ranks of an ordinary user run over the NIC" runs_for_anybody

little_memory() {
	status=$(status_of nobody sh -c 'ulimit -l 64; exec "$0" -d muster0' "$TOOLS/muster_hello")
	cat out err
	same 1 "$status"
	sed -i 's|/.*/libmuster.so.0|/usr/local/lib/libmuster.so.0|' out
	page_shows muster_hello.1 "muster_hello -d muster0"
}
check "hello: too little locked memory is what to fix first, as the manual page shows" little_memory
check "hello: --json" json muster_hello

reset_device() {
	while [ ! -e stop ]; do
		echo 1 >"/sys/bus/pci/devices/$(bdf)/reset"
	done
}

# usage: while_reset COMMAND...: five times it shows what is, or says what is wrong.
while_reset() {
	rm -f stop
	reset_device &
	reset_pid=$!
	for _ in 1 2 3 4 5; do
		status=$(status_of "$@")
		case $status in
		0) ;;
		1) cat out err | grep ":.* " >>said ;;
		*) break ;;
		esac
	done
	: >stop
	wait $reset_pid
	cat out err
	sort said | uniq -c
	[ "$status" = 0 ] || [ "$status" = 1 ]
	within 10 "$@"
}
check "devinfo: while the device is reset" while_reset "$TOOLS/muster_devinfo" -d "$(bdf)"
check "hello: while the device is reset" while_reset "$TOOLS/muster_hello" -d "$(bdf)"

cat "$tap_dir/jsons"
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
