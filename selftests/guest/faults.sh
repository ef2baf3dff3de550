#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each step of using the device while its n-th allocation fails, for all n, in a guest whose kernel
# fails allocations when it is asked. STEPS: which (all of `faults --list`).
. "$(dirname "$0")/guest.sh"

FAULTS=$MUSTER_BUILD/selftests/guest/faults
# An interrupt whose files in /proc could not be made is taken away with a warning for each, and
# a mapping whose first page table could not be had with one as well.
excused="$excused|unregister_irq_proc|untrack_pfn"
# Of a radix tree, of verbs' own table of methods, nodes stay that could be made without the next below. And of a
# port whose counters could not be read while it was registered verbs' core (setup_hw_port_stats()) gives back
# neither their list nor their values.
excused_leaks='^$|radix_tree_node_alloc.*uapi_add_elm.*uverbs_alloc_api'
excused_leaks="$excused_leaks|(kzalloc|rdma_alloc_hw_stats_struct).*setup_port.*ib_setup_port_attrs"
[ -e /proc/self/fail-nth ] || skip_all "this kernel fails no allocations on demand: make faults-kernel KERNEL=debug"

# All allocations, those that may sleep as well, and without a word of each.
for which in failslab fail_page_alloc; do
	echo N >/sys/kernel/debug/$which/ignore-gfp-wait
done
echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
for which in failslab fail_page_alloc fail_usercopy; do
	echo 0 >/sys/kernel/debug/$which/verbose
done

# Else the kernel ends a process when what it tells it by itself (rseq) meets a failure.
export GLIBC_TUNABLES=glibc.pthread.rseq=0

# What the kernel says meanwhile is more than it keeps.
dmesg --follow >kernel.log 2>&1 &
log_pid=$!

never_complained() {
	kill $log_pid
	quiet_in <kernel.log
}

# Of a process whose context no driver could make, verbs' core keeps the task for ever (UVERBS_METHOD_GET_CONTEXT lets go
# of the context alone); its parent is who has allocated that.
swept() {
	"$FAULTS" "$1" >out &
	[ "$1" != open ] || echo $! >"$tap_dir/opened"
	wait $!
	cat out >>"$tap_dir/figures"
	within 10 nothing_held
}

same_life() {
	same "$life" "$("$HOLD" --incarnation)"
}

check "the driver loads" load
life=$("$HOLD" --incarnation)
for step in ${STEPS:-$("$FAULTS" --list)}; do
	[ "$step" != unbind ] || check "no failure has ended the device's life" same_life
	check "$step: whichever allocation fails" swept "$step"
done
[ ! -f figures ] || cat figures
check "everything works as before" "$FAULTS" --once
check "the driver unloads" unload
check "the kernel has never complained" never_complained
[ ! -f opened ] || excused_leaks="$excused_leaks|comm \"faults\", pid $(cat opened),.*copy_process"
check "nothing is leaked" no_leaks
finish
