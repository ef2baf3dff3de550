#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Simulated networks of bumps: seeds, and large networks.
# MUSTER_SEEDS: how many.
. "$(dirname "$0")/tap.sh"

sim=$MUSTER_BUILD/san/selftests/bump_sim

check "${MUSTER_SEEDS:-120} seeds of the simulated network of bumps" "$sim" 1 "${MUSTER_SEEDS:-120}"
check "the bits of the library's schedules" "$MUSTER_BUILD/san/selftests/bump_bits"
for hosts in 255 1024; do
	check "$hosts hosts" "$sim" --hosts $hosts 1 1
done
finish
