#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdma-core's own Python tests on the provider, the driver and the device.
. "$(dirname "$0")/driver.sh"

suite() {
	in_guest 1800 -- "$GUEST/pyverbs.sh" >log || {
		cat log
		return 1
	}
}
check "rdma-core's Python tests" suite
grep -E '^#' log || :
finish
