#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two tenants of one NIC (make tenants-kernel): TRIES of one to get at what is the other's; and
# what is left to one while the other has all that it gets.
. "$(dirname "$0")/driver.sh"

export TRIES

# usage: in_guest_alone SCRIPT: and its figures
in_guest_alone() {
	in_guest 86400 -- "$GUEST/$1" >log || {
		cat log
		return 1
	}
	grep '^# ' log >>figures
}

check "one tenant gets nothing of the other's" in_guest_alone tenants.sh
check "one that takes all it gets leaves the other something" in_guest_alone quota_test.sh
[ ! -f figures ] || cat figures
finish
