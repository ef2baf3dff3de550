#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver while its device goes away, for a long time (make stress-kernel): UNBINDS, RELOADS,
# UNPLUGS and RESETS say how often each; the kernel that watches does a tenth.
. "$(dirname "$0")/driver.sh"

is_slow && UNBINDS=${UNBINDS:-100} RELOADS=${RELOADS:-10} UNPLUGS=${UNPLUGS:-20} RESETS=${RESETS:-20}
export UNBINDS RELOADS UNPLUGS RESETS

under_traffic() {
	in_guest 86400 --hotplug --count-time -- "$GUEST/stress.sh" >log || {
		cat log
		return 1
	}
	grep '^# .* times, ' log >figures
}

check "16 processes survive that their device goes away, and learn of it" under_traffic
[ ! -f figures ] || cat figures
finish
