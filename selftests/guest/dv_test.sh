#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The direct verbs' own test programs, in a guest.
. "$(dirname "$0")/guest.sh"

check "the driver loads" load
check "the direct verbs do what they say" "$MUSTER_BUILD/selftests/guest/dv_test"
check "who leaves is lost, whoever closes its file" "$MUSTER_BUILD/selftests/guest/leave_test"
check "nothing is held" nothing_held
check "the kernel has nothing to complain of" kernel_quiet
finish
