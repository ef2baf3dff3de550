#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Driver, provider and device together: what they do, show and refuse.
. "$(dirname "$0")/driver.sh"

check "the ordinary tools show the device" in_guest 120 -- "$GUEST/tools_test.sh"
check "the direct verbs do what they say" in_guest 120 -- "$GUEST/dv_test.sh"
check "what does not fit together is refused" in_guest 120 --nics=2 -- "$GUEST/refuse_test.sh"
check "without a device the driver waits" in_guest 60 --nics=0 -- "$GUEST/no_device_test.sh"
finish
