#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The simulated world: 2,000 seeds, and those that once found a bug.
# MUSTER_SEEDS: how many.
. "$(dirname "$0")/tap.sh"

dst=$MUSTER_BUILD/san/selftests/dst/dst

check "${MUSTER_SEEDS:-2000} seeds of the simulated world" "$dst" --seeds 1 "${MUSTER_SEEDS:-2000}"

once() {
	sed 's/#.*//' "$tap_home/dst/seeds.txt" | while read -r seed; do
		[ -z "$seed" ] || "$dst" --seeds "$seed" 1
	done
}
[ ! -f "$tap_home/dst/seeds.txt" ] || check "seeds that once found a bug" once
finish
