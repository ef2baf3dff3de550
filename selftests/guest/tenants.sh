#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two tenants of one NIC, in a guest: TRIES of one to get at what is the other's.
. "$(dirname "$0")/guest.sh"

nothing_accepted() {
	chmod 666 /dev/infiniband/uverbs0
	ulimit -l unlimited
	"$MUSTER_BUILD/selftests/guest/tenants" "${TRIES:-1000000}" >out 2>&1 || {
		cat out
		return 1
	}
	cat out >>"$tap_dir/figures"
}

check "the driver loads" load
check "forged, guessed, old and foreign credentials get nothing of another's" nothing_accepted
[ ! -f figures ] || cat figures
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
