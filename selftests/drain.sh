# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Four ranks at two leaf switches and two spines, each a process of its own, whose spines are drained, stopped and
# begun anew as the ranks go on; to be sourced behind tap.sh.

cat >managed_at.sh <<'END'
	leaf=$((16711680 + MUSTER_RANK / 2))
	MUSTER_WIRE=switch MUSTER_FABRIC="$1" MUSTER_UPLINK=$leaf,1 MUSTER_MANAGER="$2"
	export MUSTER_WIRE MUSTER_FABRIC MUSTER_UPLINK MUSTER_MANAGER
	shift 2
	exec "$@"
END

# drain_switch NUMBER LIFE: it listens; its process is $switch_NUMBER
drain_switch() {
	: >"ready.$1"
	"$MUSTER_BUILD/tools/muster-switchd" -t fat-tree:2x2x2 -w "$drain_wire" -m "$drain_manager" -s "$1" -l "$2" -j \
		-c "counters.$1" >"ready.$1" 2>>errors &
	eval "switch_$1=$!"
	within 300 grep -q ready "ready.$1"
}

# drain_open [OPTION]...: manager, with these, and switches
drain_open() {
	drain_wire=unix:@muster-drain-$$-$tap_nr
	drain_manager=@muster-drain-$$-$tap_nr-m
	rm -f report counters.* out err errors through
	"$MUSTER_BUILD/tools/muster-am" -m "$drain_manager" "$@" >>report 2>>errors &
	manager=$!
	switch_0='' switch_1='' switch_2='' switch_3='' runner=''
	trap 'kill $runner $switch_0 $switch_1 $switch_2 $switch_3 $manager 2>/dev/null || :' EXIT
	within 300 grep -q ready report
	for switch in 0 1 2 3; do
		drain_switch $switch 1
	done
}

drain_pids() {
	same 4 "$(grep -cs '^pid [0-9]' out)"
}

# drain_start: ranks that go on until there is a file "through"; the job is $runner
drain_start() {
	"$MUSTER_BUILD/tools/muster-run" --no-prefix -n 4 sh managed_at.sh "$drain_wire" "$drain_manager" \
		"$MUSTER_BUILD/selftests/switched" replaced "$PWD/through" >out 2>err &
	runner=$!
	within 300 drain_pids
}

# drain_order OPTION: it is carried out, and the ranks go on
drain_order() {
	"$MUSTER_BUILD/tools/muster-am" -m "$drain_manager" "$1" || { cat out err errors report; return 1; }
	kill -0 $runner || { cat out err errors; return 1; }
}

# drain_stop NUMBER: it goes, and had nothing left; what went over it has gone on
drain_stop() {
	eval "stopped=\$switch_$1"
	kill "$stopped"
	within 300 gone "$stopped"
	same "[]" "$(python3 -c '
import json, sys
last = json.loads(open("counters.'"$1"'").readlines()[-1])
print([(name, last[name]) for name in ("groups", "bytes", "held", "flows", "locked", "failed", "gone", "drop_route", "drop_unlocked")
      if last[name]])')"
}

# drain_replace NUMBER LIFE: it is drained, stopped, and begun anew with that life; then it may be used again
drain_replace() {
	drain_order "--drain=$1"
	drain_stop "$1"
	drain_switch "$1" "$2"
	drain_order "--undrain=$1"
}

# drain_end: every operation ended right, and nothing is left
drain_end() {
	touch through
	within 300 gone $runner || { cat out err errors; return 1; }
	wait $runner || { cat out err errors; return 1; }
	same 4 "$(grep -c ' rounds$' out)"
	fails grep . err
	within 300 drain_said '^0 groups'
}

# drain_report: what the manager has is in report
drain_report() {
	: >report
	kill -USR1 $manager
	within 300 grep -q ' groups$' report
}

# drain_said WORDS: it says so
drain_said() {
	drain_report
	grep -q "$1" report
}
