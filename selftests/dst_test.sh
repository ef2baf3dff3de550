#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The simulated world: 1,000 seeds with ranks that post descriptors, a quarter as many with ranks that run
# the library, a twentieth with hosts at switches, and those that once found a bug. MUSTER_SEEDS: how many
# of the first kind. With MUSTER_REST half as many run the library.
. "$(dirname "$0")/tap.sh"

dst=$MUSTER_BUILD/san/selftests/dst/dst
seeds=${MUSTER_SEEDS:-$(little_or 1000 2000)}
library=$(little_or 4 2)

check "$seeds seeds of the simulated world" "$dst" --seeds 1 "$seeds"
check "$((seeds / library)) seeds with ranks that run the library" \
	"$dst" --library --seeds 1 $((seeds / library))
check "$((seeds / 20)) seeds with hosts at switches, and reduction trees" \
	"$dst" --trees --seeds 1 $((seeds / 20))

once() {
	sed 's/#.*//; s/^library/--library/; s/^trees/--trees/' "$tap_home/dst/seeds.txt" | while read -r seed; do
		# shellcheck disable=SC2086 # an option and a number
		[ -z "$seed" ] || "$dst" $seed
	done
}
[ ! -f "$tap_home/dst/seeds.txt" ] || check "seeds that once found a bug" once

# All but the speed.
totals() {
	"$dst" "$@" --seeds 1 40 2>/dev/null | sed 's/[0-9]* seeds\/s//'
}
as_many() {
	[ "$(totals --jobs 3)" = "$(totals)" ]
}
check "what several processes find is what one does" as_many

# Of a plan that is cut down nothing is left but what was asked for.
limited() {
	"$dst" --trace --limits ranks=2,comms=1,ops=1,no-cause,no-messages,no-drop 3 >trace
	[ "$(grep -c 'completion kind' trace)" = 2 ]
}
check "limits cut a plan down" limited
wrong_limits() {
	! "$dst" --limits ranks=1 3 && ! "$dst" --limits no-thing 3
}
check "limits that make no sense are refused" wrong_limits

# What make dst-planted builds.
plantable() {
	cd "$tap_home/.."
	MUSTER_BUILD=$tap_dir selftests/dst/planted.sh 0
}
check "each bug of dst/planted.txt changes one line of its file" plantable
finish
