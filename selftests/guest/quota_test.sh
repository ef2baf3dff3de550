#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# One user's greed is not another's want, in a guest: users without rights take all
# they can get of the device while others use it.
. "$(dirname "$0")/guest.sh"

HOARD=$MUSTER_BUILD/selftests/guest/hoard
GROUPS_DIR=$tap_dir/cgroup

# usage: hoard_start WHAT UID; leaves what it said in $hoarded.
hoard_start() {
	rm -f hoard.fifo
	mkfifo hoard.fifo
	"$HOARD" "$@" >hoard.fifo 2>hoard.err &
	hoard_pid=$!
	read -r hoarded <hoard.fifo || {
		cat hoard.err
		return 1
	}
	echo "taken: $hoarded"
}

hoard_end() {
	kill -9 "$hoard_pid"
	wait "$hoard_pid" || :
}

# usage: leaves_some WHAT MOST SHARE: another user gets some while the first holds no more than MOST.
leaves_some() {
	hoard_start "$1" 65534
	first=$hoarded first_pid=$hoard_pid
	# At once: on a slow machine the contexts' peers are lost, and thousands of events follow it.
	traced "muster_refused: $(bdf) $3 uid=65534 held=$2 max=[0-9]+ err=-28$"
	hoard_start "$1" 65533
	hoard_end
	kill -9 "$first_pid"
	wait "$first_pid" || :
	same "$2 ENOSPC" "$first"
	fails same "0 ENOSPC" "$hoarded"
	echo "# $1: one user takes ${first% *}, and leaves another ${hoarded% *}" >>"$tap_dir/figures"
}

# A domain and 7 numbers; a port is a completion queue and a queue pair besides.
group_counts_numbers() {
	mkdir "$GROUPS_DIR"
	mount -t cgroup2 none "$GROUPS_DIR"
	echo +rdma >"$GROUPS_DIR/cgroup.subtree_control"
	mkdir "$GROUPS_DIR/greedy"
	echo "muster0 hca_object=10" >"$GROUPS_DIR/greedy/rdma.max"
	echo 0 >"$GROUPS_DIR/greedy/cgroup.procs"
	hoard_start numbers 65534
	echo 0 >"$GROUPS_DIR/cgroup.procs"
	current=$(cat "$GROUPS_DIR/greedy/rdma.current")
	hoard_end
	# A group that goes with a limit of its own leaves a dangling pointer in the 6.1 kernel.
	echo "muster0 hca_object=max" >"$GROUPS_DIR/greedy/rdma.max"
	within 5 rmdir "$GROUPS_DIR/greedy"
	umount "$GROUPS_DIR"
	echo "$current"
	same "7 EAGAIN" "$hoarded"
	traced "muster_refused: $(bdf) hca_object uid=65534 .* err=-11$"
	echo "$current" | grep -q "hca_object=8 *$"
}

# 512 entries of each: 2112 KiB for packets, 32 for completions, 64 for descriptors, 4 for status and record each.
rings_count_as_locked() {
	ulimit -l 8192
	hoard_start rings 65534
	hoard_end
	same "3 ENOMEM" "$hoarded"
	hoard_start rings 65534
	hoard_end
	same "3 ENOMEM" "$hoarded"
	traced "muster_refused: $(bdf) memlock_pages uid=65534 held=[0-9]+ max=2048 err=-12$"
}

# usage: reads_slowest: of admin commands of ours until the other has done its, in ms
reads_slowest() {
	slowest=0
	while kill -0 "$hoard_pid" && ! grep -q . hoard.out hoard.err; do
		began=$(date +%s%N)
		cat /sys/class/infiniband/muster0/ports/1/hw_counters/doorbells
		took=$((($(date +%s%N) - began) / 1000000))
		[ $took -lt $slowest ] || slowest=$took
	done >/dev/null
	echo "slowest command beside it: $slowest ms"
}

# A command that is not answered for 10 s would reset the device, and end the holder's traffic.
crowd_holds_up_nobody() {
	before=$("$HOLD" --incarnation)
	hold_start
	rm -f hoard.out
	"$HOARD" "$1" 65534 >hoard.out 2>hoard.err &
	hoard_pid=$!
	reads_slowest
	cat hoard.out hoard.err
	began=$(date +%s%N)
	hoard_end
	echo "its end took $((($(date +%s%N) - began) / 1000000)) ms"
	kill -0 "$hold_pid"
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
	same "8 " "$(cat hoard.out)"
	same "$before" "$("$HOLD" --incarnation)"
	fails sh -c 'dmesg | grep "does not answer"'
	echo "# $1: slowest command beside it $slowest ms" >>"$tap_dir/figures"
}

check "the driver loads" load
check "who names 65536 absent members holds up nobody" crowd_holds_up_nobody absent
check "nor does who names 65536 whose addresses collide" crowd_holds_up_nobody colliding
check "the driver's tracepoints are there" trace_start
check "rings count as locked memory" rings_count_as_locked
check "the numbers of ports count for the rdma cgroup" group_counts_numbers
check "one user does not get all numbers of ports" leaves_some numbers 1792 vps
check "one user does not get all contexts" leaves_some contexts 3584 contexts
cat "$tap_dir/figures"
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
