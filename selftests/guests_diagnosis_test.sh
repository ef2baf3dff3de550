#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Hangs made on purpose in guests, seen from the host: muster_trace explain names the rank that
# is to blame, and nobody else; the job goes on afterwards. One job goes from one hang to the next,
# and is recorded: its trace names the same ranks, and its packets are read as local ones are.
# MUSTER_HANGS: how many of each kind (default: one, and not of those that look alike from outside).
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

run=$MUSTER_BUILD/tools/muster-run
trace=$MUSTER_BUILD/tools/muster_trace
hangs=$MUSTER_BUILD/selftests/hangs
dump=$MUSTER_BUILD/tools/muster_dump
stat=$MUSTER_BUILD/tools/muster_stat
times=${MUSTER_HANGS:-0}

[ -x "$MUSTER_BUILD/vm/qemu-system-x86_64" ] && [ -f "$MUSTER_BUILD/vm/vmlinux" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"
[ -f "$MUSTER_BUILD/kernel/muster.ko" ] && [ -f "$MUSTER_BUILD/libmuster-verbs.so.0" ] ||
	skip_all "driver or provider is not built; make check-guest builds them"

field() {
	sed -n "s/.*\"$1\": \"*\\([^\",]*\\).*/\\1/p" json
}

# guest GUEST: its QEMU
guest() {
	pgrep -P "$(pgrep -P "$job" | paste -sd,)" -f "muster_guest=$1 "
}

pid_in_guest() {
	sed -n "s/.*\\b$1 pid //p" out
}

reached() {
	same 4 "$(grep -c "$1\$" out)" >same
}

# Until all ranks are there, or the job is over.
arrived() {
	gone $launcher || reached "$1"
}

arrive() {
	within 120 arrived "$1"
	reached "$1" || { cat out err; return 1; }
}

# It takes a moment until all who wait are seen to. Those seen meanwhile must not be others.
explained() {
	explain_timed --pid "$(guest $(((victim + 1) % 4)))"
	[ "$(field waiting | head -n 1)" -ge "$waiting" ] || return 1
	[ $code -eq 1 ] && [ "$(field cause)" ]
}

# explains WAITING CAUSE WORDS: the only finding, which names the victim
explains() {
	waiting=$1
	within 60 explained || { cat json; return 1; }
	cat json
	culprits=$victim
	[ "$2" != link ] || culprits="$victim $(field rank | grep -vx $victim | head -n 1)"	# its other end
	hang_counted "$culprits"
	! can_validate || valid muster_trace-explain json
	same "$2" "$(field cause)"
	field rank | grep -qx $victim
	grep -q "$3" json
}

# The victim is outside of the library, in whatever way; then it goes on, and with it all.
hang() {
	explains "$1" not-called "$2rank $victim, which has not called it and is not in the library (pid $(pid_in_guest $victim) in the guest of node $victim)"
	same $victim "$(field rank)"
	same "$(guest $victim)" "$(field pid)"
	kill -USR1 "$job"
	arrive " step $step"
}

# Figures and names aside.
plain() {
	sed -e 's/^job [0-9a-f]*/job J/' -e 's/[0-9][0-9]*/N/g'
}

as_the_page_shows() {
	awk '$0 == "<!-- guests stops 0 -->" { on = 1; next }
		on && /^[`]/ { if (on++ == 2) exit; next }
		on == 2' "$tap_home/../Documentation/diagnosis.md" | plain >page
	[ -s page ]
	shown() {
		"$trace" explain --pid "$(guest 0)" | plain >words
		cmp -s words page
	}
	within 60 shown || diff page words
}

# Its guest is stopped as a whole, by the host.
guest_is_stopped() {
	kill -STOP "$(guest $victim)"
	explains 3 stopped "rank $victim, whose guest is stopped (pid $(guest $victim))"
	same $victim "$(field rank)"
	kill -CONT "$(guest $victim)"
	kill -USR1 "$job"
	arrive " step $step"
}

# In the place of its NIC's socket somebody takes what is sent there; what it sends arrives.
link_is_cut() {
	socket=$(tr '\0' '\n' <"/proc/$(guest $victim)/cmdline" |
		sed -n 's/.*wire=unix:\([^,]*\).*/\1/p')/node-$victim.sock
	/usr/bin/python3 - "$socket" <<-'EOF' &
		import os, socket, sys
		sink = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		sink.bind(sys.argv[1] + ".sink")
		os.rename(sys.argv[1], sys.argv[1] + ".away")
		os.rename(sys.argv[1] + ".sink", sys.argv[1])
		while True:
		    sink.recv(65536)
	EOF
	sink=$!
	trap 'kill $sink' EXIT
	within 20 test -S "$socket.away"
	kill -USR1 "$job"
	explains 1 link "the link "
	mv "$socket.away" "$socket"
	arrive " step $step"
}

calls_another() {
	explains 4 circle "as rank $victim has called operations in another order than most"
	same $victim "$(field rank)"
}

# named: how many ranks name the one whose NIC was reset
named() {
	grep -c '^\[[0-3]\] hangs: .*rank 0 .*has died or left' err
}

all_name_it() {
	gone "$job" || same 4 "$(named)" >same
}

# All the time somebody looks; when it is over, the ranks have ended, each by its own error.
nic_is_reset() {
	mkdir looks
	(
		i=0
		while ! [ -e over ]; do
			i=$((i + 1))
			code=0
			"$trace" explain --watch 20 --json >looks/explain.$i 2>looks/err.$i || code=$?
			"$stat" --json >looks/stat.$i 2>>looks/err.$i || code=$((code + 10 * $?))
			echo $code >>looks/codes
		done
	) &
	looker=$!
	trap 'touch over; kill $looker' EXIT
	within 60 test -s looks/stat.2
	kill -USR2 "$job"
	within 120 all_name_it || { cat out err; return 1; }
	kill -USR1 "$job"
	within 120 gone "$job" || { cat out err; return 1; }
	touch over
	wait $looker
	trap - EXIT
	cat out err
	same 4 "$(named)"
	fails grep -v '^[01]$' looks/codes
	cat looks/err.*
	# The ranks may end before the looks do; others' jobs may be of another version.
	fails grep -v 'no job of yours runs here\|have a library of another version' looks/err.*
	/usr/bin/python3 - <<-'EOF'
		import glob, json
		blamed = set()
		for name in glob.glob("looks/explain.*") + glob.glob("looks/stat.*"):
		    look = json.load(open(name))
		    for job in look.get("jobs", []):
		        for f in job.get("findings", []) if job["command"] == "hangs" else []:
		            blamed.add((f["cause"], tuple(c["rank"] for c in f["culprits"])))
		print(blamed)
	EOF
	! can_validate || valid muster_trace-explain looks/explain.1
	! can_validate || valid muster_stat looks/stat.1
}

# Operation 17 of the world, the first that hung, waited for rank 0.
recorded() {
	cat err
	grep -q 'of 4 of 4 ranks' err
	fails grep -q lost err
	"$trace" report --json trace.json >report.json
	! can_validate || valid muster_trace-report report.json
	/usr/bin/python3 - <<-'EOF'
		import json
		trace, report = json.load(open("trace.json")), json.load(open("report.json"))
		late = {o["number"]: o["straggler"] for o in report["operations"] if o["communicator"] == 0}
		print("late:", late[17])
		assert late[17] == 0
		began, ended = {}, {}
		for e in trace["traceEvents"]:
		    if e["ph"] in "sf":
		        (began if e["ph"] == "s" else ended)[e["id"]] = e["ts"]
		both = began.keys() & ended.keys()
		early = [i for i in both if ended[i] < began[i]]
		print(len(began), "packets sent,", len(both), "arrows,", len(early), "came before they were sent")
		assert len(both) > 0.9 * len(began) > 100 and not early
		for rank in trace["muster"]["ranks"]:   # calls are timed in guests, packets by NICs
		    for o in rank["operations"]:
		        assert sum(p[2] for p in o["parts"]) == o["ended"] - o["began"], o
	EOF
}

dumped() {
	"$dump" packets -o all.pcapng
	"$dump" all.pcapng | sed 1d | awk '{ split($3, f, "."); split($4, t, "."); print f[1], t[1], $6, $7 }' >ours
	tshark -X "lua_script:$diag_top/tools/wireshark/muster.lua" -r all.pcapng -T fields -E separator=' ' \
		-e muster.src_node -e muster.dst_node -e muster.context -e muster.number >theirs 2>tshark.err
	fails grep -i lua tshark.err
	head -n 2 ours theirs
	test "$(wc -l <ours)" -gt 100
	cmp ours theirs
}

alike=sleeps,computes,elsewhere,tests
kinds=stops,window,makes,sleeps,sleeps
all=$kinds
i=0
while [ $i -lt "$times" ]; do
	[ $i -eq 0 ] || all=$all,$kinds
	all=$all,$alike
	i=$((i + 1))
done
: >out
mkdir packets
MUSTER_DUMP=packets MUSTER_DEADLINE=800 "$trace" record -o trace.json "$run" --grace 800 --vm -n 4 \
	"$hangs" "$all,another" 0 >out 2>err &
launcher=$!
trap 'kill -9 $job $launcher 2>/dev/null; cd / && rm -rf "$tap_dir"' EXIT
job=
until [ "$job" ]; do
	job=$(pgrep -P $launcher)
done

# step NAME COMMAND...: the next hang of the job, which is over if one has failed
step=0
step() {
	victim=$((step % 4))
	step=$((step + 1))
	name=$1
	shift
	if [ $tap_failed -gt 0 ]; then
		skip "$name (rank $victim)" "the job hangs in the one before"
	else
		check "$name (rank $victim)" "$@"
	fi
}

check "four guests come to the first hang" arrive ' pid [0-9]*'
check "the page's example is what is printed" as_the_page_shows
i=0
while
	step "a rank in a guest whose process is stopped is named" hang 3 "waits for "
	step "one that gives no credit" hang 1 "credit of "
	step "one that makes no communicator" hang 3 "making of a communicator .*waits for "
	step "one whose guest is stopped" guest_is_stopped
	step "one whose link is cut" link_is_cut
	[ $i -lt "$times" ]
do
	step "one that sleeps" hang 3 "waits for "
	step "one that computes" hang 3 "waits for "
	step "one that others wait for behind another one" hang 3 "waits for "
	step "one that others only ask about now and then" hang 3 "waits for "
	i=$((i + 1))
	[ $i -lt "$times" ] || break
done
step "one that calls another operation" calls_another
check "a NIC that is reset under those who look: figures or a sentence, no wrong line" nic_is_reset
kill "$job" 2>/dev/null
wait $launcher
check "a trace has the operations of all, their packets, and who was waited for" recorded
if command -v tshark >/dev/null; then
	check "packets of the NICs: the dissector and muster_dump read the same" dumped
else
	skip "packets of the NICs: the dissector and muster_dump read the same" "there is no tshark"
fi
hang_figures "in guests"
finish
