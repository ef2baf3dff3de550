#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together, as the kernel's own selftests are installed and run: births
# and deaths of all of them, users who take all that they get, what is theirs alone, and what shows it.
. "$(dirname "$0")/driver.sh"

check "they run as the kernel's selftests do, installed" installed_run 1680 abi lifetime/life_test fault
check "the direct verbs do what they say" selftest_passed abi/dv_test
check "one user does not get everything" selftest_passed abi/quota_test
check "queue pairs have counters of their own" selftest_passed abi/counter_test
check "jobs and contexts are shown, to whom they may be" selftest_passed abi/family_test
check "births and deaths leave nothing behind" selftest_passed lifetime/life_test
check "devlink shows its health, and mends it" selftest_passed fault/health_test
finish
