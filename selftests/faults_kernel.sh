#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver while its n-th allocation fails (make faults-kernel KERNEL=debug): for each verb, bind,
# mmap and unbind, and each n. STEPS: which.
. "$(dirname "$0")/driver.sh"

export STEPS
in_guest 86400 -- "$GUEST/faults.sh" >log
status=$?
[ $status -ne 4 ] || skip_all "$(sed -n 's/.*# SKIP //p' log)"

each_fails() {
	grep -v '^# .* failures; ' log
	return $status
}

check "whichever allocation fails, nothing is left behind" each_fails
grep '^# .* failures; ' log
finish
