# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# Four ranks at two leaf switches and a spine, each a process of its own, whose programs are replaced one by one
# as the ranks go on; to be sourced behind tap.sh.

replace_pids() {
	same 4 "$(grep -cs '^pid [0-9]' out)"
}

# replace_done SWITCH TIMES: it says so of itself
replace_done() {
	kill -USR1 "$(replace_of "$1")"
	sleep 0.05
	python3 - "$1" "$2" <<'END'
import json, sys
lines = [json.loads(line) for line in open("counters") if line.endswith("}\n")]
sys.exit(not any(line["switch"] == int(sys.argv[1]) and line["replaced"] == int(sys.argv[2]) for line in lines))
END
}

# replace_of SWITCH: its process
replace_of() {
	pgrep -f -- "muster-switchd -t $tap_dir/network .*-s$1( |\$)" | head -n 1
}

# replace_all ROUNDS OPTION...: so often each; options of muster-run
replace_all() {
	{
		printf 'muster-topology 1\nname x\nnodes 7\n'
		printf 'link %s 1\n' '0 -- 4' '1 -- 4' '2 -- 5' '3 -- 5' '4 -- 6' '5 -- 6'
		printf 'switch 4 5 6\nend\n'
	} >network
	rm -f out err counters through
	rounds=$1
	shift
	MUSTER_SWITCHD_OPTIONS="-j -c counters" "$MUSTER_BUILD/tools/muster-run" "$@" --apart --no-prefix -n 4 \
		--topology "$tap_dir/network" "$MUSTER_BUILD/selftests/switched" replaced "$PWD/through" >out 2>err &
	runner=$!
	trap 'kill $runner 2>/dev/null || :' EXIT
	within 300 replace_pids
	for round in $(seq "$rounds"); do
		for switch in 0 1 2; do
			kill -USR2 "$(replace_of $switch)"
			within 300 replace_done $switch "$round"
			kill -0 $runner || { cat out err; return 1; }
		done
	done
	touch through
	within 300 gone $runner || { cat out err; return 1; }
	wait $runner || { cat out err; return 1; }
	trap - EXIT
	same 4 "$(grep -c ' rounds$' out)"
	fails grep . err
	# Nobody was told of anything, and nothing is left; what each had counted before goes on. The spine's second
	# copy of a communicator's last result (two end here) may come to a leaf when its group is gone already: a
	# stranger then. It does where the spine holds second copies back for 20 ms.
	same "[]" "$(python3 -c '
import json
lines = list(map(json.loads, open("counters")))
last = {line["switch"]: line for line in lines}
assert len(last) == 3 and all(line["contributions"] > 4096 and line["forwarded"] > 0 for line in last.values()), last
def allowed(line, name):
    at_end = line is last[line["switch"]] and line["switch"] < 2
    return 2 if name == "drop_stranger" and at_end else 0
print([(line["switch"], name, line[name]) for line in lines for name in ("failed", "gone", "drop_malformed",
      "drop_stranger", "drop_window", "drop_failed", "drop_unlocked")
      if line[name] > allowed(line, name)] +
      [(switch, name, line[name]) for switch, line in last.items() for name in ("groups", "bytes", "locked", "held")
      if line[name]])')"
}
