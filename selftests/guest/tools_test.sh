#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the ordinary tools show of the device, in a guest.
. "$(dirname "$0")/guest.sh"

ibv_devices_shows_it() {
	ibv_devices | grep -q "muster0.*024d5354"
}

ibv_devinfo_shows_it() {
	ibv_devinfo -d muster0 | grep -q "PORT_ACTIVE"
}

rdma_dev_shows_it() {
	rdma dev show muster0 | grep -q "node_guid 024d:5354"
}

rdma_res_counts() {
	hold_start
	same "1 2 1 1" "$(resources)"
	rdma res show cq | grep -q "cqe 8.*comm hold"
	rdma res show mr | grep -q "mrlen 1048576.*comm hold"
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
	nothing_held
}

# usage: shown WORDS... <what is shown: some line has all of them
shown() {
	cat >shown
	for words; do
		grep -e "$words" shown >shown.new || { cat shown; echo "misses: $words"; return 1; }
		mv shown.new shown
	done
}

# hold has two ports with rings of 8 entries, one region of 1 MiB, and a context at each port.
rdma_res_details() {
	hold_start
	rdma -dd res show mr | tr -d '\n' |
		shown "drv_page_size [1-9]" "drv_pages [1-9]" "drv_access rw"
	rdma -dd res show cq | tr -d '\n\t' >cqs
	shown "drv_cq_id [0-9]" "drv_vector [1-7]" "drv_armed [01]" "drv_overrun 0" <cqs
	within 10 ports_move
	same 2 "$(wc -l <ports)"
	cqs=$(sed -n 's/.* cq_id \([0-9]*\) .*/\1/p' ports)
	for cq in $cqs; do
		grep -q "drv_cq_id $cq " cqs
	done
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
	nothing_held
	same "" "$(ports)"
}

ports() {
	"$MUSTER_BUILD/selftests/guest/nldev" "$(rdma dev show muster0 | sed 's/:.*//')"
}

# The device takes what the first of them sends.
ports_move() {
	ports >ports
	cat ports
	grep -q "dq_entries 8 rq_entries 8 contexts 1 dq_head [1-9][0-9]* error 0$" ports
}

# Every port is asked for its state; some while it is being destroyed. So many of them, or all
# that there are.
rdma_res_asks_what_goes() {
	"$MUSTER_BUILD/selftests/guest/hoard" numbers 0 "$1" >hoard.out 2>&1 &
	hoard_pid=$!
	until [ -s hoard.out ]; do
		rdma res show qp >/dev/null
		ports >/dev/null
	done
	kill -9 "$hoard_pid"
	same "$2" "$(cat hoard.out)"
	within 5 nothing_held
}

# usage: statistic NAME
statistic() {
	rdma statistic show link muster0/1 | sed -n "s/.* $1 \([0-9]*\).*/\1/p"
}

rdma_statistic_counts() {
	before=$(statistic packets_in)
	hold_start
	within 5 sh -c "! rdma statistic show link muster0/1 | grep -q ' packets_in $before '"
	kill -9 "$hold_pid"
	test "$(statistic doorbells)" -gt 0
	test "$(statistic admin_commands)" -gt 0
}

without_the_provider() {
	env -u IBV_DRIVERS IBV_SHOW_WARNINGS=1 ibv_devices >out 2>&1
	cat out
	grep -qi "no userspace device-specific driver found" out
}

check "the driver loads" load
check "ibv_devices shows the device" ibv_devices_shows_it
check "ibv_devinfo shows its port" ibv_devinfo_shows_it
check "rdma dev shows the device" rdma_dev_shows_it
check "rdma res shows what a process holds" rdma_res_counts
check "rdma -dd res shows what the driver knows of it" rdma_res_details
if is_slow; then
	check "rdma res asks ports that come and go" rdma_res_asks_what_goes 256 "256 "
else
	check "rdma res asks ports that come and go" rdma_res_asks_what_goes 4096 "2048 ENOSPC"
fi
check "rdma statistic shows the device's counters" rdma_statistic_counts
check "without the provider libibverbs says what is missing" without_the_provider
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
