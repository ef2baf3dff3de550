#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the fuzzers found worth keeping, and changes of it by chance (make fuzz looks on).
# MUSTER_FUZZ: how many times as many of these; MUSTER_FUZZ_SEED: others.
. "$(dirname "$0")/tap.sh"

# usage: fuzzed NAME CHANGES
fuzzed() {
	check "$1: inputs that were kept, and $(($2 * ${MUSTER_FUZZ:-1})) others made of them" \
		"$MUSTER_BUILD/san/selftests/fuzz/fuzz_$1" "$tap_home/fuzz/$1.hex" \
		$(($2 * ${MUSTER_FUZZ:-1})) "${MUSTER_FUZZ_SEED:-1}"
}

fuzzed engine 2000
fuzzed frame 20000
fuzzed nic 2000
fuzzed ring 50000
fuzzed schedule 20000
finish
