#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver under calls that make no sense, for a long time (make fuzz-kernel): SEED and CALLS say
# which and how many. What ends it is kept, as a file that REPLAY may name.
. "$(dirname "$0")/driver.sh"

programs=$MUSTER_BUILD/fuzz-driver.programs
export SEED CALLS REPLAY

fuzzed() {
	in_guest 86400 -- "$GUEST/fuzz.sh" >log 2>said || {
		sed -n 's/^#replay //p' log >programs
		grep -v '^#replay ' log
		[ ! -s programs ] || cp programs "$programs"
		[ ! -s programs ] || echo "the calls: make fuzz-kernel REPLAY=$programs"
		tail said
		return 1
	}
	grep '^# .* calls' log >figures
}

check "calls that make no sense harm nobody" fuzzed
[ ! -f figures ] || cat figures
finish
