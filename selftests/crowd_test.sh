#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ranks that outnumber the processors: each gives its own to the next before it sleeps.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
crowd=$MUSTER_BUILD/selftests/crowd
for program in "$run" "$crowd"; do
	[ -x "$program" ] || skip_all "there is no $program (make all selftests)"
done

# Other work on that processor makes ranks sleep, unless they have precedence, which root can give them.
# Else it is enough that they once did not; and where they never had most of it to themselves, nothing
# was seen.
chrt -r 1 true 2>/dev/null && first="chrt -r 1" || first=
try=0
verdict=busy
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')	# of those that are ours
while [ $try -lt 20 ] && [ $verdict != seldom ]; do
	try=$((try + 1))
	# shellcheck disable=SC2086 # words
	$first "$run" -n 4 --no-prefix taskset -c "$cpu" "$crowd" sleeps >out 2>&1 || verdict=failed
	[ $verdict != failed ] || break
	awk '{ share += $2; if ($1 > sleeps) sleeps = $1 }
		END { print (sleeps < 50 ? "seldom" : share >= 95 ? "often" : "busy"), sleeps, share }' out >seen
	read -r now _ <seen
	[ "$now" = busy ] || verdict=$now
done

seldom() {
	cat out seen
	[ $verdict = seldom ]
}
name="four ranks on one processor seldom sleep in a barrier"
if [ $verdict = busy ]; then
	skip "$name" "others had most of processor $cpu, 20 times"
else
	check "$name" seldom
fi

# Of times at which the other one was not late after all, none counts.
in_the_way() {
	taskset -c "$cpu" "$run" -n 2 --no-prefix "$crowd" way >out || return 1
	read -r waits way <out
	echo "waited $waits times, and was $way times in the way"
	[ "$waits" -gt 0 ] && [ "$way" = "$waits" ]
}
check "a rank is in the way of the one that it waits for, at the same processor" in_the_way

alone() {
	"$run" -n 2 --no-prefix "$crowd" way >out || return 1
	read -r _ way <out
	[ "$way" = 0 ]
}
name="ranks that have a processor each are in nobody's way"
if [ "$(nproc)" -gt 1 ]; then
	check "$name" alone
else
	skip "$name" "there is one processor"
fi
finish
