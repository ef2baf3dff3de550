#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The SHARP paper's measurements in modelled time (make bench-switch), a size of each: every
# result, what a host sends and receives, and how near streaming comes to a ping-pong.
. "$(dirname "$0")/tap.sh"

check "all results of engines and switches in modelled time are right" \
	sh -c '"$MUSTER_BUILD/selftests/switch_model" --quick >table'
check "a host sends once up a tree" \
	awk '$1 == "bytes" { nr++; if ($6 != $2 || $8 != $2) wrong = 1 } END { exit wrong || !nr }' table
check "it receives the result of a low-latency tree twice, that of a streaming one once" \
	awk '$1 == "bytes" { nr++; if ($7 != 2 * $2 || $9 != $2) wrong = 1 } END { exit wrong || !nr }' table
check "what a switch holds grows with its hosts, never with the message" \
	awk '$1 == "held" { nr++; if ($3 <= last || $4 != $3 || $5 != $3 || $6 != $3) wrong = 1; last = $3 }
	     END { exit wrong || nr != 5 }' table
check "streaming of 64 hosts has at least 80 % of a ping-pong's bandwidth" \
	awk '$1 == "time" { nr++; if ($9 < 80) slow = 1 } END { exit slow || !nr }' table
check "a lock at one switch takes as long as a barrier" \
	awk '$1 == "lock" && $2 == 2 { nr++; if ($4 > 1.05 * $3) slow = 1 } END { exit slow || nr != 1 }' table
check "neither the number of hosts nor their ports make streaming slower" \
	awk '/^(hosts|halves|radix)/ { nr++; if (!took) took = $3; if ($3 > 1.07 * took) slow = 1 }
	     END { exit slow || nr != 9 }' table
check "with 16 credits streaming is as fast as with 31, and with a single one not half as fast" \
	awk '$1 == "credits" { nr++; took[$2] = $3 }
	     END { exit nr != 6 || took[16] > 1.01 * took[31] || took[1] < 2 * took[16] }' table
finish
