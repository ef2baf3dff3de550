#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The Tianhe paper's machine in modelled time (make bench-engine), a size of each operation: the
# same bits as the schedule's, nothing dropped, and what is sent on as it comes.
. "$(dirname "$0")/tap.sh"

check "engines give the schedules' bits, and drop nothing" \
	sh -c '"$MUSTER_BUILD/selftests/engine_bench" --quick >table'
check "one task is faster on engines than on hosts" \
	awk '/^[a-z]/ && $2 == 1 { nr++; if ($6 <= 1) slow = 1 } END { exit slow || nr != 3 }' table
check "a broadcast over 5 levels that forwards pulses is 3 times as fast as one that waits" \
	awk '/over 5 levels/ { sub(/.*by pulses: /, ""); times = $1 } END { exit times < 3 }' table
check "and one that forwards fragments 4 times" \
	awk '/over 5 levels/ { sub(/.*by fragments: /, ""); times = $1 } END { exit times < 4 }' table
finish
