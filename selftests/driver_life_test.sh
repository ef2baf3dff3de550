#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together, where it takes long: births and deaths of all of
# them, and users who take all that they get.
. "$(dirname "$0")/driver.sh"

check "one user does not get everything" in_guest 300 -- "$GUEST/quota_test.sh"
check "births and deaths leave nothing behind" in_guest 900 -- "$GUEST/life_test.sh"
finish
