#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The diagnostics on a machine with many ports: right figures, of jobs that end meanwhile too,
# and how long they take. MUSTER_PORTS: how many (64; make check-scale: 2,048).
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

tools=$MUSTER_BUILD/tools
ports=$MUSTER_BUILD/selftests/ports
[ -x "$ports" ] || skip_all "there is no $ports (make all selftests)"
processes=4
jobs=$((${MUSTER_PORTS:-64} / 2 / processes))	# of each process, with two ranks
trap 'kill -9 $pids 2>/dev/null; cd / && rm -rf "$tap_dir"' EXIT
ulimit -Sn "$(ulimit -Hn)"

pids=
i=0
while [ $i -lt $processes ]; do
	"$ports" $jobs >>there 2>>err &
	pids="$pids $!"
	i=$((i + 1))
done

all_there() {
	cat err
	same $processes "$(grep -c there there)"
}
check "$((2 * jobs * processes)) ports are open" within 300 all_there

# timed NAME COMMAND...: its output in ./NAME.json, and how long it took
timed() {
	name=$1
	shift
	began=$(date +%s%N)
	code=0
	"$@" >"$name.json" || code=$?
	echo "# $name: $((($(date +%s%N) - began) / 1000000)) ms" >>times
	[ $code -le 1 ]
	schema=${1##*/}
	[ "$2" != explain ] || schema=$schema-explain
	! can_validate || valid "$schema" "$name.json"
}

# shows FILE LEFT: of our processes' jobs, of which LEFT processes are there, what is so
shows() {
	/usr/bin/python3 - "$1" $jobs "$2" $pids <<-'EOT'
		import json, sys
		report, jobs, left = json.load(open(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
		pids = {int(p) for p in sys.argv[4:]}
		if "ranks" in report:
		    ours = [r for r in report["ranks"] if r["pid"] in pids]
		    assert len({r["pid"] for r in ours}) == left and len(ours) == 2 * jobs * left, len(ours)
		    assert len({(r["job"], r["rank"]) for r in ours}) == len(ours)
		    for r in ours:
		        first = r["communicators"][0]
		        assert (first["started"], first["ended"]) == (1 - r["rank"], 0), r
		        waits = first["operation"]["waits"] if first["operation"] else []
		        assert [w["rank"] for w in waits] == [1] * (1 - r["rank"]), r
		else:
		    found = [j for j in report["jobs"] if any(c["pid"] in pids for f in j["findings"] for c in f["culprits"])]
		    assert len(found) == jobs * left, len(found)
		    for j in found:
		        assert j["ranks"] == j["here"] == 2 and j["waiting"] == 1 and len(j["findings"]) == 1, j
		        finding, = j["findings"]
		        assert finding["cause"] == "not-called" and [c["rank"] for c in finding["culprits"]] == [1], j
	EOT
}

# Rank 0 is seen when it comes to look, which is soon.
stat_shows() {
	timed muster_stat "$tools/muster_stat" --json
	shows muster_stat.json "$1"
}

explain_shows() {
	timed muster_trace "$tools/muster_trace" explain --json
	shows muster_trace.json "$1"
}
check "muster_stat has each of them, and who waits for whom" within 60 stat_shows $processes
check "muster_trace explain says of each job whom it waits for" within 60 explain_shows $processes

devinfo() {
	timed muster_devinfo "$tools/muster_devinfo" --json
	grep -q '"local"' muster_devinfo.json
}
check "muster_devinfo shows the device" devinfo

hello() {
	"$tools/muster_hello" -d local >words || { cat words; return 1; }
	same "Test Passed." "$(tail -n 1 words)"
}
check "muster_hello passes beside them" hello

# Whatever is seen of those that end meanwhile: it is right of those that are there.
ends_meanwhile() {
	victim=${pids##* }
	(sleep 0.2; kill -9 "$victim") &
	timed meanwhile_stat "$tools/muster_stat" --json
	timed meanwhile_explain "$tools/muster_trace" explain --json
	wait $!
	within 60 gone "$victim"
	within 60 stat_shows $((processes - 1))
	within 60 explain_shows $((processes - 1))
}
check "jobs that end meanwhile are told from those that are there" ends_meanwhile
pids=${pids% *}
processes=$((processes - 1))

unallowed() {
	as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
	$as_nobody "$tools/muster_trace" explain >words
	cat words
	grep -q 'no job that you may look into' words
	$as_nobody "$tools/muster_stat" --json >json
	shows json 0
}
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	check "who may not look into them is told so" unallowed
else
	skip "who may not look into them is told so" "this takes root"
fi

all_end() {
	# shellcheck disable=SC2086
	kill -USR1 $pids
	for pid in $pids; do
		within 120 gone "$pid"
	done
	cat err
	[ ! -s err ]
}
check "the jobs go on, and end" all_end
cat times
finish
