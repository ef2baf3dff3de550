#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Hangs made on purpose: muster_trace explain names the rank that is to blame, and why, and
# nobody else; the job goes on afterwards.
# MUSTER_HANGS: how many of each kind (default 1), on paths and wires in turn.
. "$(dirname "$0")/tap.sh"
. "$tap_home/diag.sh"

trace=$MUSTER_BUILD/tools/muster_trace
hangs=$MUSTER_BUILD/selftests/hangs
times=${MUSTER_HANGS:-1}
topology=

# In the background only: $! is then the launcher's.
run() {
	# shellcheck disable=SC2086
	MUSTER_DEADLINE=800 exec "$MUSTER_BUILD/tools/muster-run" $topology --grace 800 "$@"
}

all_there() {
	same 4 "$(grep -cs ' pid ' out)"
}

pid_of() {
	sed -n "s/.*\\b$1 pid //p" out
}

all_gone() {
	for pid in $(pid_of "[0-9]"); do
		within 60 gone "$pid"
	done
}

field() {
	sed -n "s/.*\"$1\": \"*\\([^\",]*\\).*/\\1/p" json
}

# It takes a moment until all who wait are seen to. Those seen meanwhile must not be others.
explained() {
	explain_timed --pid "$(pid_of "$asked")"
	[ "$(field waiting | head -n 1)" -ge "$waiting" ] || return 1
	[ $code -eq 1 ] && [ "$(field cause)" ]
}

# The words end with the culprit and its process.
named() {
	"$trace" explain --pid "$(pid_of "$asked")" >words || :
	cat words
	grep -q "$1" words
}

# go_on VICTIM: what keeps it is over, and the job ends well
go_on() {
	pid=$(pid_of "$1")
	kill -CONT "$pid"
	for pid in $(pid_of "[0-9]"); do
		kill -USR1 "$pid" 2>/dev/null || :	# who was stopped may have ended
	done
	wait "$launcher" || { cat err; false; }
	trap - EXIT
}

# hang KIND VICTIM WAITING CAUSE WORDS BYTES CULPRITS: the only finding, and the job goes on
hang() {
	waiting=$3
	rm -f out
	run -n 4 "$hangs" "$1" "$2" "$6" >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null; kill -CONT $(pid_of "[0-9]") 2>/dev/null' EXIT
	within 60 all_there
	within 60 explained
	cat json
	hang_counted "$7"
	! can_validate || valid muster_trace-explain json
	same "$4" "$(field cause)"
	same "$7" "$(field rank | sort -n | tr '\n' ' ')"
	[ "$1" = hides ] || same "$(for rank in $(field rank); do pid_of "$rank"; done)" "$(field pid)"
	named "$5"
	go_on "$2"
}

# path I [WIRE]: NIC and host path, all wires, in turn; or that one
path() {
	export MUSTER_OFFLOAD=try
	[ $(($1 % 2)) -eq 0 ] || export MUSTER_OFFLOAD=off
	case ${2:-$(($1 % 3))} in
	0) export MUSTER_WIRE=ring ;;
	1) export MUSTER_WIRE=unix ;;
	*) export MUSTER_WIRE=udp ;;
	esac
	how="$(printf '%s over %s' "$([ $MUSTER_OFFLOAD = try ] && echo NIC || echo host)" $MUSTER_WIRE)"
}

# cut_between VICTIM OTHER: a link over UDP, of which two ranks are named; asked is who waits
cut_between() {
	path $turn udp
	asked=$1
	low=$(($1 < $2 ? $1 : $2))
	high=$(($1 < $2 ? $2 : $1))
	culprits="$low $high "
	link="link between rank $low and rank $high\|link from rank $2 to rank $1"
}

turn=0
i=0
while [ $i -lt "$times" ]; do
	v=$((i % 4))
	for kind in computes sleeps stops elsewhere window makes tests starts floods hides \
		one-way cut withholds; do
		turn=$((turn + 1))
		path $turn
		asked=$(((v + 1) % 4))
		culprits="$v "
		case $kind in
		one-way | cut) cut_between $v $((v ^ 1)) ;;
		withholds) cut_between $v $(((v + 3) % 4)) ;;
		esac
		case $kind in
		computes) set -- 3 not-called "rank $v, which has not called it and is not in the library" 8 ;;
		sleeps) set -- 3 not-called "rank $v, which has not called it and is not in the library" 1048576 ;;
		stops) set -- 3 stopped "rank $v, which is stopped (pid [0-9]*)" 8 ;;
		elsewhere) set -- 3 stopped "rank $v, which is stopped (pid [0-9]*)" 65536 ;;
		window) set -- 1 not-called "rank $v, which has not called it and is not in the library" 8 ;;
		makes) set -- 3 not-called "making of a communicator .*waits for rank $v, which has not called it" 8 ;;
		tests) set -- 3 not-called "rank $v, which has not called it and is not in the library" 8 ;;
		starts) set -- 1 unattended "rank $v, which has called it, but is not in the library to go on with it" 8 ;;
		floods) set -- 2 not-called \
			"rank $v\( to take what it has for it\)*, which has not called it and is not in the library" 8 ;;
		hides) set -- 3 gone "rank $v, which is not there" 8 ;;
		one-way) set -- 1 link "$link" $((8 << i % 2 * 17)) ;;
		cut) set -- 2 link "$link" $((1048576 >> i % 2 * 17)) ;;
		withholds) set -- 2 link "$link" 8 ;;
		esac
		check "a rank that $kind is named ($how, rank $v)" hang $kind $v "$1" "$2" "$3" "$4" \
			"$culprits"
	done
	i=$((i + 1))
done

# A rank that computes and leaves it to the library's own thread to go on keeps nobody.
export MUSTER_PROGRESS=thread
asked=3
for turn in 0 1; do
	path $turn
	check "who has left it to the library's thread is not blamed ($how)" \
		hang carried 0 2 not-called "rank 0, which has not called it and is not in the library" 8 "0 "
done
unset MUSTER_PROGRESS

# Whom a switch waits for it does not say.
unset MUSTER_OFFLOAD MUSTER_WIRE
asked=0
topology="--topology switch:5"
check "of an operation by switches the rank is named that has not called it" \
	hang sleeps 2 3 not-called "rank 2, which has not called it and is not in the library" 1048576 "2 "
topology=

# In a ring all wait for all: the link is not where the walk begins.
path 0 udp
cut_between 2 3
export MUSTER_SCHEDULE=ring
check "of all who wait in a ring the two are named whose link is cut" \
	hang one-way 2 4 link "$link" 1048576 "$culprits"
unset MUSTER_SCHEDULE

# told VICTIM SIGNAL: the others are told of one that is gone, and nobody else is blamed meanwhile
told() {
	rm -f out blamed
	run -n 4 "$hangs" leaves "$1" >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	told_of=$1
	all_told() {
		"$trace" explain --pid "$(pid_of $(((told_of + 1) % 4)))" >words || :
		! grep 'waits for' words | grep -v "rank $told_of, which" >>blamed || return 1
		[ "$(grep -c "rank $told_of has died or left the job" out)" -eq 3 ]
	}
	within 60 all_there
	kill -"$2" "$(pid_of "$1")"
	within 60 all_told
	cat out blamed
	[ ! -s blamed ]
	"$trace" explain --pid "$(pid_of $((($1 + 1) % 4)))" | grep 'of which none waits'
	for pid in $(pid_of "[0-9]"); do
		kill -USR1 "$pid" 2>/dev/null || :
	done
	wait $launcher || :
	trap - EXIT
	fails grep 'should have failed' err
}
for signal in KILL USR1; do
	turn=$((turn + 1))
	path $turn
	check "who waits for a rank that $([ $signal = KILL ] && echo is killed || echo leaves) is told ($how), and then nobody waits" \
		told 1 $signal
done

# Seen at two times that are far from each other it goes on, busy as the machine may be.
running() {
	rm -f out
	run -n 4 "$hangs" runs 0 >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 all_there
	"$trace" explain --watch 3000 --pid "$(pid_of 0)" | tee words
	grep -q 'of which none waits' words
	# shellcheck disable=SC2046 # the first that hears of it may end the others
	kill -USR1 $(pid_of "[0-9]") 2>/dev/null || :
	wait $launcher
	trap - EXIT
}
check "in a job that runs nobody is blamed" running

another() {
	waiting=4
	rm -f out
	asked=0
	run -n 4 "$hangs" another 2 >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 all_there
	within 60 explained
	cat json
	hang_counted "2 "
	same circle "$(field cause)"
	! can_validate || valid muster_trace-explain json
	same 2 "$(field rank)"
	named 'as rank 2 has called operations in another order than most'
	kill $launcher
	wait $launcher || :
	trap - EXIT
	all_gone
}
path 0
check "a rank that calls another operation than the others is named" another

# Figures and what may differ from run to run aside.
plain() {
	sed -e 's/^job [0-9a-f]*/job J/' -e 's/running\|sleeping elsewhere/S/' -e 's/[0-9][0-9]*/N/g'
}

# example KIND VICTIM: what the page shows is what is printed
example() {
	waiting=1
	rm -f out
	awk -v mark="<!-- hangs $1 $2 -->" '$0 == mark { on = 1; next }
		on && /^[`]/ { if (on++ == 2) exit; next }
		on == 2' "$tap_home/../Documentation/diagnosis.md" | plain >page
	[ -s page ]
	run -n 4 "$hangs" "$1" "$2" >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null; kill -CONT $(pid_of "[0-9]") 2>/dev/null' EXIT
	within 60 all_there
	shown() {
		"$trace" explain --pid "$(pid_of "$asked")" | plain >words
		cmp -s words page
	}
	within 60 shown || diff page words
	kill $launcher
	kill -CONT "$(pid_of "$2")" || :		# unless it has ended
	wait $launcher || :
	trap - EXIT
	all_gone
}
unset MUSTER_OFFLOAD MUSTER_WIRE
asked=2
for kind in computes stops another makes window cut; do
	[ $kind != cut ] || export MUSTER_WIRE=udp
	check "the page's example of a rank that $kind is what is printed" example $kind 2
done

no_job() {
	code=0
	"$trace" explain --pid $$ >words || code=$?
	cat words
	same 0 $code
	grep -q 'there is no such rank' words
}
check "where there is no job a sentence says so" no_job

# Of operations 17 to 116 rank i % 4 is late by 20 ms; on a busy machine others may be late, too:
# the ranks say when they have called. Where that is what was asked, so is what is reported.
straggler() {
	"$trace" record -o trace.json "$MUSTER_BUILD/tools/muster-run" -n 4 "$hangs" straggles 0 >out 2>err
	cat err
	grep -q '4 of 4 ranks' err
	fails grep -q lost err
	"$trace" report --json trace.json >report.json
	! can_validate || valid muster_trace-report report.json
	/usr/bin/python3 - report.json out <<-'EOT'
		import json, re, sys
		calls, off, wrong, asked, amiss, sums = {}, [], [], [], [], []
		for number, rank, us in re.findall(r"call (\d+) (\d+) ([\d.]+)", open(sys.argv[2]).read()):
		    calls.setdefault(int(number), []).append((float(us), int(rank)))
		assert len(calls) == 100, len(calls)
		found = {o["number"]: o for o in json.load(open(sys.argv[1]))["operations"] if o["communicator"] == 0}
		for number, of in calls.items():
		    of = sorted(of)
		    delay = of[3][0] - of[1][0]
		    off.append(abs(found[number]["delay_us"] / delay - 1))
		    wrong += [number] if found[number]["straggler"] != of[3][1] else []
		    if of[3][1] == (number - 17) % 4 and abs(delay / 20000 - 1) <= 0.05:
		        asked.append(abs(found[number]["delay_us"] / 20000 - 1))
		        amiss += [number] if asked[-1] > 0.1 else []
		off.sort()
		asked.sort()
		print("wrong stragglers:", wrong, "otherwise reported than asked:", amiss)
		for r in json.load(open(sys.argv[1]))["ranks"]:
		    late = sum(max(of)[0] - us for of in calls.values() for us, rank in of if rank == r["rank"])
		    print("rank", r["rank"], "waited for who was late: %.0f us of at least %.0f" % (r["late_us"], late))
		    assert r["late_us"] >= 0.9 * late
		    sums.append(abs((r["late_us"] + r["own_us"]) / r["total_us"] - 1))
		for rank in json.load(open("trace.json"))["muster"]["ranks"]:
		    parts = sum(p[2] for o in rank["operations"] for p in o["parts"])
		    sums.append(abs(parts / sum(o["ended"] - o["began"] for o in rank["operations"]) - 1))
		assert max(sums) <= 0.05
		line = "stragglers: 100 operations, in %d of them the last rank named; its delay off by %.2f %% (median), at most " \
		       "%.2f %% in 9 of 10, at most %.2f %%, by the ranks' clocks" % (100 - len(wrong), *(100 * off[i] for i in (50, 89, 99)))
		if asked:
		    line += "; %d of them late by the nominal 20 ms, to 5 %%: off by %.2f %% (median), at most %.2f %%" % (
		        len(asked), 100 * asked[len(asked) // 2], 100 * asked[-1])
		open("straggled", "w").write(line + "; parts and their sums differ by at most %.2f %%" % (100 * max(sums)))
		# Between what a rank says and what is recorded it may lose its processor.
		assert len(wrong) <= 5 and off[89] <= 0.1 and len(amiss) <= 5
	EOT
}
check "a rank that is late is named, for each operation" straggler

# What a file for Perfetto must have, by the published format of trace events.
events() {
	/usr/bin/python3 - trace.json <<-'EOT'
		import json, sys
		trace = json.load(open(sys.argv[1]))
		begun, ended, tracks, names = {}, {}, {}, set()
		for e in trace["traceEvents"]:
		    assert e["ph"] in "XMsf" and type(e["pid"]) is int and type(e["tid"]) is int, e
		    if e["ph"] == "M":
		        names.add((e["pid"], e["name"]))
		        continue
		    assert e["name"] and e["ts"] >= 0, e
		    if e["ph"] == "X":
		        assert e["dur"] >= 0, e
		        tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], -e["dur"]))
		    else:
		        assert e["cat"] and e["id"], e
		        side = begun if e["ph"] == "s" else ended
		        assert e["id"] not in side, e
		        side[e["id"]] = e["ts"]
		assert {(p, "process_name") for p, _ in tracks} <= names
		both = begun.keys() & ended.keys()
		print(len(begun), "packets sent,", len(ended), "came,", len(both), "arrows")
		assert len(both) > 0.9 * len(begun)
		for slices in tracks.values():          # they lie in each other, or apart
		    open_ends = []
		    for ts, dur in sorted(slices):
		        while open_ends and open_ends[-1] <= ts + 0.002:
		            open_ends.pop()
		        assert not open_ends or ts - dur <= open_ends[-1] + 0.002, (ts, dur)
		        open_ends.append(ts - dur)
		for rank in trace["muster"]["ranks"]:   # the parts are the whole
		    for o in rank["operations"]:
		        assert sum(p[2] for p in o["parts"]) == o["ended"] - o["began"], o
	EOT
}
check "what is recorded is as trace events must be, and parts add up to the whole" events

figureless() {
	sed -e 's/[0-9][0-9.]*/N/g' -e 's/  */ /g'
}

reported() {
	"$trace" report trace.json >words
	cat words
	# The page's example: the same lines, but for figures, and fewer of the latest calls.
	awk '$0 == "<!-- report -->" { on = 1; next } on && /^[`]/ { if (on++ == 2) exit; next }
		on == 2' "$tap_home/../Documentation/diagnosis.md" | figureless >page
	[ -s page ]
	head -n "$(wc -l <page)" words | figureless | diff page -
	grep -q '^hangs, 4 ranks, [0-9]* operations' words
	grep -q 'called it .* ms after the others' words
	! command -v gnuplot >/dev/null || "$trace" report --svg drawn.svg trace.json >words
	! command -v gnuplot >/dev/null || grep -q '</svg>' drawn.svg
	echo '{"traceEvents": []}' >other.json
	same 2 "$(status_of "$trace" report other.json)"
	same 2 "$(status_of "$trace" report missing.json)"
}
check "a report says where the time went, and draws it" reported

# On a busy machine half a second may be less than an operation takes.
attach() {
	"$trace" record -o some.json -t 0.5 --pid "$(pid_of 1)" 2>err &&
		grep -q '4 of 4 ranks' err && "$trace" report some.json >words &&
		grep -q 'allreduce [0-9]* of communicator 0' words
}

attached() {
	rm -f out
	run -n 4 "$hangs" straggles 0 >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 all_there
	within 60 attach || { cat err; false; }
	wait $launcher
	trap - EXIT
}
check "it attaches to a job that runs, which goes on" attached

# What was lent has run out, as it would in half a minute: who records lends anew, each time.
cat >lease.py <<-'EOT'
	import glob, os, struct, sys, time
	file = next(f for f in glob.glob("/proc/%s/fd/*" % sys.argv[1])
	            if os.readlink(f).startswith("/memfd:muster-look "))
	page, at = os.open(file, os.O_RDWR), 704 + 4096 * 256
	def ring():
	    on, clock, written, now, until = struct.unpack("<IIQQQ", os.pread(page, 32, at))
	    return on, written, until
	deadline = time.time() + 300
	def wait(what, met):
	    while not met(*ring()):
	        assert time.time() < deadline, (what, ring())
	        time.sleep(0.001)
	wait("it records", lambda on, written, until: on and written)
	for turn in range(3):
	    os.pwrite(page, bytes(8), at + 24)
	    before = ring()[1]
	    wait("it is lent anew", lambda on, written, until: until)
	    wait("it goes on", lambda on, written, until: on and written > before + 100)
EOT
# Of the program's name the kernel keeps 15 bytes, of which the last is half a letter here.
renewed() {
	rm -f out
	name=$(printf 'fourteen_lette\303\251')
	ln -s "$hangs" "$name"
	run -n 4 "./$name" runs 0 >out 2>err &
	launcher=$!
	trap 'kill $launcher $recorder 2>/dev/null' EXIT
	recorder=
	within 60 all_there
	"$trace" record -o lease.json -t 100000 -n 1000 --pid "$(pid_of 1)" 2>recorder.err &
	recorder=$!
	/usr/bin/python3 lease.py "$(pid_of 1)"
	kill -INT $recorder
	wait $recorder
	recorder=
	cat recorder.err
	grep -q '4 of 4 ranks' recorder.err
	"$trace" explain --json --pid "$(pid_of 1)" >json || :
	same 'fourteen_lette?' "$(field command)"
	# shellcheck disable=SC2046
	kill -USR1 $(pid_of "[0-9]")
	wait $launcher
	trap - EXIT
}
check "while it records it says so again and again, or ranks would not go on writing" renewed

nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"
}

# It would be for a day, if the job went on.
outlived() {
	rm -f out
	run -n 4 "$hangs" runs 0 >out 2>err &
	launcher=$!
	trap 'kill $launcher $recorder 2>/dev/null' EXIT
	recorder=
	within 60 all_there
	cp out pids
	if others_run "$trace"; then
		prints 2 'no such rank of a job that you may look into' nobody "$trace" record \
			-o /dev/null --pid "$(sed -n 's/.*\b1 pid //p' pids)"
		cp pids out
	fi
	"$trace" record -o ended.json -t 86400 -n 1000 --pid "$(pid_of 1)" 2>recorder.err &
	recorder=$!
	followed() {
		same 4 "$(grep -c muster-look /proc/$recorder/maps)"
	}
	within 60 followed
	# shellcheck disable=SC2046
	kill -USR1 $(pid_of "[0-9]")
	wait $launcher
	within 60 gone $recorder
	wait $recorder
	trap - EXIT
	cat recorder.err
	grep -q '4 of 4 ranks' recorder.err
	"$trace" report ended.json
}
check "who records a job that ends is done, and who may not look into it is told so" outlived

not_there() {
	prints 2 'no rank was seen: the command has started none' "$trace" record -o /dev/null true
	prints 127 'missing: No such file' "$trace" record -o /dev/null ./missing
	prints 2 'no such rank of a job' "$trace" record -o /dev/null -t 86400 --pid "$(sh -c 'echo $$')"
	prints 2 'missing/trace.json: No such file' "$trace" record -o missing/trace.json touch started
	[ ! -e started ]
	prints 2 '^muster_trace: missing.json: No such file' "$trace" report missing.json
	head -c 20000 trace.json >short.json
	prints 2 '^muster_trace: short.json: line 1: ' "$trace" report short.json
	prints 2 '^muster_trace: missing/drawn.svg: No such file' "$trace" report --svg missing/drawn.svg trace.json
	fails grep -q '<svg' out
	if others_run "$trace"; then
		cp trace.json mine.json
		chmod 600 mine.json
		chmod 755 .
		prints 2 'mine.json: Permission denied' nobody "$trace" report "$PWD/mine.json"
	fi
}
check "what is not there, or not allowed, is said in a sentence" not_there

# Pages of a process that plays a job of so many ranks: each waits for the next one, in an operation
# that is its own; the last has not called it.
cat >pages.py <<-'EOT'
	import os, struct, sys, time
	nr, version = int(sys.argv[1]), int(os.environ["LOOK_VERSION"])
	now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
	for rank in range(nr):
	    file, last, number = os.memfd_create("muster-look", 0), rank == nr - 1, 17 + nr - rank
	    page = struct.pack("<IIIIQQIIIIHBBIQQ16s16sIBBHI", 0x6b6f6f6c, version, os.getpid(), 0, 1 << 30 | os.getpid(), now,
	                       rank, nr, 0, 7, rank % 2048, 1, 0 if last else 1, 0, now, now, b"local", b"ring",
	                       0, 0, 0, 0, 1).ljust(704, b"\0")
	    page += struct.pack("<10IB7x16xQQQII", 0, 1, 0, 0, 0, rank, nr, 0, number + 1 - last, number, 2, 8, now,
	                        now, number, 0)
	    page += struct.pack("<IIIIIBBH", 0, 0, 1 - last, 0, (rank + 1) % nr, 1, 0, 0)
	    os.write(file, page)
	    os.truncate(file, 704 + 4096 * 256 + 64 + 32 * (1 << 15))
	print("ready", flush=True)
	time.sleep(1000)
EOT
many() {
	(
		ulimit -n 3000
		exec /usr/bin/python3 pages.py 2048
	) >ready 2>&1 &
	pages=$!
	trap 'kill $pages' EXIT
	within 60 grep -qs ready ready || { cat ready; false; }
	prints 1 'of which 2047 wait$' "$trace" explain --pid $pages
	# From the first one to the culprit, however long the way is.
	grep -q '^  operation 2065 of communicator 0 waits for rank 1, .* and so on; .*; rank 2046 is in operation 19 .* waits for rank 2047, which has not called it and is not in the library (pid [0-9]*, .*)$' out
	same 2 "$(wc -l <out)"
	"$trace" explain --json --pid $pages >json || :
	same 2047 "$(field rank)"
	! can_validate || valid muster_trace-explain json
	prints 0 ' 0 records of 2048 of 2048 ranks in many.json' "$trace" record -o many.json -t 0.1 --pid $pages
	prints 0 ', 2048 ranks, 0 operations: none was recorded from its call to its end$' "$trace" report many.json
	"$trace" report --json many.json >report.json
	! can_validate || valid muster_trace-report report.json
	kill $pages
	trap - EXIT
}
if (ulimit -n 3000) 2>/dev/null; then
	rest "of 2,048 ranks that wait for each other in a row the last one is named" many
else
	skip "of 2,048 ranks that wait for each other in a row the last one is named" "fewer than 3,000 open files (ulimit -n)"
fi

refused() {
	for arguments in "" "explode" "explain now" "explain --pid x" "explain --watch 0" "record" \
		"record --pid 1 true" "record --records 0 true" "report a b"; do
		# shellcheck disable=SC2086
		same 2 "$(status_of "$trace" $arguments)"
		[ -s err ]
	done
	same 2 "$(status_of "$trace" record -o missing/trace.json touch started)"
	grep -q 'missing/trace.json: No such file' err
	[ ! -e started ]
	echo kept >kept.json
	same 2 "$(status_of "$trace" record -o kept.json true)"
	same kept "$(cat kept.json)"
	same 2 "$(status_of "$trace" record -o none.json true)"
	[ ! -e none.json ]
	same 0 "$(status_of "$trace" --help)"
	same 0 "$(status_of "$trace" explain --help)"
	same 0 "$(status_of "$trace" --version)"
}
check "what it does not understand it refuses with a sentence" refused
hang_figures "of local ranks"
[ ! -s straggled ] || figure "$(cat straggled)"
finish
