# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Four ranks at two leaf switches and a spine, whose manager is killed and replaced as they go on; to be
# sourced behind tap.sh.

outlive_pids() {
	same 4 "$(grep -cs '^pid [0-9]' out)"
}

# outlive_known WORDS NUMBER: so many lines of what the second manager says of itself have these
outlive_known() {
	: >report
	kill -USR1 "$second"
	sleep 0.1
	grep -q 'groups$' report && same "$2" "$(grep -c "$1" report)"
}

outlive_said() {
	same 4 "$(grep -c "^$1: $2" out)"
}

# outlive MILLISECONDS OPTION...: the manager is killed so long after the ranks have begun; options of muster-run
outlive() {
	printf 'muster-topology 1\nname x\nnodes 7\nlink 0 -- 4 1\nlink 1 -- 4 1\nlink 2 -- 5 1\nlink 3 -- 5 1\nlink 4 -- 6 1\nlink 5 -- 6 1\nswitch 4 5 6\nend\n' >network
	rm -f out err counters gone back report
	delay=$1
	shift
	MUSTER_SWITCHD_OPTIONS="-j -c counters" "$MUSTER_BUILD/tools/muster-run" "$@" --no-prefix -n 4 \
		--topology "$tap_dir/network" "$MUSTER_BUILD/selftests/switched" outlives "$PWD/gone" "$PWD/back" >out 2>err &
	runner=$!
	trap 'kill $runner $second 2>/dev/null || :' EXIT
	second=
	within 300 outlive_pids
	first=$(here muster-am)
	address=$(tr '\0' '\n' <"/proc/$first/cmdline" | sed -n '/^-m$/{n;p;}')
	sleep "0.$(printf %03d "$delay")"
	kill -9 "$first"
	touch gone
	within 300 outlive_said gone '.*no group was made: the manager of groups has gone'
	# Appended to, so that it can be made empty.
	"$MUSTER_BUILD/tools/muster-am" -m "$address" >>report 2>>err &
	second=$!
	within 300 grep -q ready report
	within 300 outlive_known ^switch 3
	outlive_known ' (unclaimed) .* (unclaimed)' 2
	touch back
	within 300 gone $runner || { cat out err report; return 1; }
	wait $runner || { cat out err; return 1; }
	outlive_said back 'by a tree' || { cat out err; return 1; }
	within 300 outlive_known '^0 groups' 1
	same 0 "$(python3 -c 'import json; print(sum(line[name] for line in map(json.loads, open("counters")) for name in ("groups", "bytes", "locked", "held", "failed")))')"
	kill $second
	wait $second
	trap - EXIT
}
