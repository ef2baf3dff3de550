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

check "devinfo: a NIC without a driver" prints 1 "no driver has it: load muster.ko" "$TOOLS/muster_devinfo"
check "stat: a NIC without a driver is named" prints 0 "^0000.* no driver has it" "$TOOLS/muster_stat"
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

# The device counts for all, and everybody may see that; a rank on it is seen by its own user.
counts_now() {
	nobody "$TOOLS/muster_stat" -d muster0 0.5 2 >out 2>err
	awk '$1 == "muster0" && $4 ~ /^[0-9]/ { rate = $4 } END { exit !(rate > 0) }' out
}

seen_on_the_nic() {
	"$TOOLS/muster_stat" -c >out 2>err
	grep -q "^muster0  *1  *2 " out &&
		[ "$(sed -n '/ RANK .* PID /,/^$/p' out | grep -c "^[0-9a-f]\{8\} .* [0-9.]* *- *- *- *- ")" = 2 ]
}

# As the driver's own netlink family tells it: two ports of two members of a job.
shows_what_is_taken() {
	"$MUSTER_BUILD/selftests/guest/family" jobs >told
	"$TOOLS/muster_stat" -u -d muster0 >out
	cat out told
	grep -qE "^muster0 +2/2048 +2/2048 +[1-9][0-9]*/4096 +0/2048 +0/1024 +[1-9][0-9]* [0-9.]+$" out
	same "$(sed -nE 's/.* uid ([0-9]+) job ([0-9]+) contexts ([0-9]+)$/muster0 \1 \2 \3/p' told | sort)" \
		"$(sed -n '/ UID .* CONTEXTS/,/^$/p' out | awk '$1 == "muster0" { print $1, $2, $3, $4 }' | sort)"
	same 2 "$(grep -c ' uid 0 job ' told)"
	nobody "$TOOLS/muster_stat" -u -d muster0 >out
	grep -qE "^muster0 +2/2048 " out
	fails grep -qE "^muster0 +0 +[0-9]+ +[0-9]+$" out
}

stat_shows_the_nic() {
	MUSTER_DEVICE=verbs "$TOOLS/muster-run" -n 2 "$TOOLS/muster_perf" -D 60 -m 8:64 -p nic allreduce >perf 2>&1 &
	job_pid=$!
	within 20 seen_on_the_nic || {
		cat out perf
		kill $job_pid
		return 1
	}
	within 20 counts_now
	cat out
	shows_what_is_taken
	json muster_stat
	kill $job_pid
	wait $job_pid || :
}
check "stat: a NIC, and the ranks on it" stat_shows_the_nic

reset_device() {
	while [ ! -e stop ]; do
		echo 1 >"/sys/bus/pci/devices/$nic/reset"
		sleep 0.2
	done
}

# usage: while_reset TIMES COMMAND...: each time it shows what is, or says what is wrong.
while_reset() {
	rm -f stop
	nic=$(bdf)
	reset_device &
	reset_pid=$!
	times=$1
	shift
	for _ in $(seq "$times"); do
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
check "devinfo: while the device is reset" while_reset 4 "$TOOLS/muster_devinfo" -d "$(bdf)"
check "hello: while the device is reset" while_reset 1 "$TOOLS/muster_hello" -d "$(bdf)"
check "stat: while the device is reset" while_reset 4 "$TOOLS/muster_stat"

cat "$tap_dir/jsons"
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
