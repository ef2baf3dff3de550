#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the fuzzers found worth keeping, and changes of it by chance, for MUSTER_FUZZ_MS of the CPU
# each (make fuzz looks on).
. "$(dirname "$0")/tap.sh"

for name in engine frame nic ring schedule; do
	check "$name: inputs that were kept, and others made of them" \
		"$MUSTER_BUILD/san/selftests/fuzz/fuzz_$name" "$tap_home/fuzz/$name.hex" "${MUSTER_FUZZ_MS:-800}"
done
finish
