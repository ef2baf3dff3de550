#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster_stat: figures of jobs that run, wait, and end while they are looked at; pages that make no
# sense; nobody to look at. With a NIC: guest/diag_test.sh. Other jobs may run beside these.
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

stat=$MUSTER_BUILD/tools/muster_stat
run=$MUSTER_BUILD/tools/muster-run
others="have a library of another version"	# jobs of others on this machine
for program in "$stat" "$run"; do
	[ -x "$program" ] || skip_all "there is no $program (make all)"
done

# After 10 barriers the last rank waits for a signal, and all others in an allreduce for it;
# with an argument they go on with barriers for ever.
cat >late.c <<'END'
#include <muster.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct muster *job;
	struct muster_comm *world;
	double in = 1, out;

	(void)argv;
	if (muster_init(&job))
		return 1;
	world = muster_world(job);
	for (int i = 0; i < 10 || argc > 1; i++)
		if (muster_barrier(world))
			return 1;
	if (muster_comm_rank(world) == muster_comm_size(world) - 1)
		pause();
	return muster_allreduce(world, &in, &out, 1, MUSTER_F64, MUSTER_SUM) != 0;
}
END
gcc -I"$diag_top/userlib" late.c -L"$MUSTER_BUILD" -lmuster -Wl,-rpath,"$MUSTER_BUILD" -o late ||
	skip_all "no program could be built"

# What these cases start they find again in a file, and it ends with this test, however that does.
trap 'kill $(cat ./*.pid 2>/dev/null) 2>/dev/null; cd / && rm -rf "$tap_dir"' EXIT

# usage: job_start [ARGUMENT]; its name in $job, when all 3 ranks are there
job_start() {
	"$run" -n 3 ./late "$@" >job.out 2>&1 &
	echo $! >job.pid
	within 60 job_is_here
	job=$(cat job)
}

# Ours is the one whose ranks run in this folder.
job_is_here() {
	"$stat" >here 2>err
	sed -n '/ RANK .* PID /,/^$/p' here | while read -r job _ pid _; do
		[ "$(readlink "/proc/$pid/cwd")" != "$PWD" ] || echo "$job"
	done >ours
	sort -u ours >job
	[ "$(wc -l <ours)" = 3 ] && [ "$(wc -l <job)" = 1 ]
}

job_end() {
	pid=$(cat job.pid)
	kill "$pid"
	within 60 gone "$pid"
	rm job.pid
}

all_wait() {
	"$stat" -c -J "$job" >out
	[ "$(sed -n '/ RANK .* PID /,/^$/p' out | grep -c 'allreduce 10 of')" = 2 ]
}

names_the_late() {
	job_start
	job=$(cat job)
	within 60 all_wait
	cat out
	sed -n '/ RANK .* PID /,/^$/p' out >ranks
	# Rank 2 waits for nobody, and is waited for.
	awk '$2 == 2 { print $(NF - 1), $NF }' ranks >late_row
	same "- -" "$(cat late_row)"
	grep -q ' 2(slot) ' ranks
	# Who waits sleeps, or looks once more.
	sed -i -E 's/^([0-9a-f]{8} +[0-2] +[0-9]+) [RS]/\1 S/' out
	page_shows muster_stat.1 "muster_stat -c"
}
check "who is late is named, as the manual page shows" names_the_late

schema() {
	"$stat" --json >json
	valid muster_stat json
	sed 's/"waits": \[/"wait": [/' json >wrong
	fails valid muster_stat wrong
	"$stat" --json 0.05 3 >lines
	same 3 "$(wc -l <lines)"
	tail -n 1 lines >json
	grep -q '"interval_s":0.' json
	valid muster_stat json
}
if can_validate; then
	check "--json is as its schema says, once and repeated" schema
else
	skip "--json is as its schema says, once and repeated" "python3-jsonschema is not installed (make check installs it)"
fi

filters() {
	job=$(cat job)
	"$stat" -J "$job" -d local -s >out
	cat out
	grep -q "^$job  *3  *3 local" out
	fails grep -q " PID " out
	"$stat" -J 00000000 >out
	cat out
	same 0 "$(grep -c '^[0-9a-f]\{8\} ' out)"
	"$stat" -J "$job" -d muster77 >out
	fails grep -q "^$job" out
}
check "devices and jobs are chosen by name" filters
# In each report after the first: what has been done meanwhile, by its own account.
rates_of_a_report() {
	"$stat" -J "$job" --json 0.3 2 >lines
	cat >rates.py <<-'END'
	import json
	one, other = [json.loads(line) for line in open("lines")]
	assert one["interval_s"] is None and other["interval_s"] >= 0.3
	for before, now in zip(one["ranks"], other["ranks"]):
	    done = now["communicators"][0]["ended"] - before["communicators"][0]["ended"]
	    packets = now["counters"]["packets_in"] - before["counters"]["packets_in"]
	    assert abs(now["ops_per_s"] * other["interval_s"] - done) < 0.01, (now, before)
	    assert abs(now["packets_in_per_s"] * other["interval_s"] - packets) < 0.01, (now, before)
	    assert done > 0 and packets > 0
	END
	/usr/bin/python3 rates.py
}

goes_on() {
	job_end
	job_start forever
	# Busy as the machine may be, some time it goes on.
	within 60 rates_of_a_report
}
if [ -x /usr/bin/python3 ]; then
	check "rates are what has been done between two reports" goes_on
else
	skip "rates are what has been done between two reports" "there is no python3"
fi

# It is seen, it ends, and looking goes on.
ends_meanwhile() {
	job=$(cat job)
	"$stat" -J "$job" -c 0.05 >out 2>err &
	stat_pid=$!
	echo $stat_pid >stat.pid
	within 60 grep -q "^$job" out
	job_end
	within 60 sh -c 'tail -n 12 out | grep -q "^local  *0  *0"'
	kill $stat_pid
	wait $stat_pid || test $? = 143
	rm stat.pid
	cat err
	fails grep -v "$others" err
	tail -n 4 out >last
	fails grep -q "^$job" last
}
check "a job that ends meanwhile is gone, and nothing else happens" ends_meanwhile

top() {
	"$stat" --top -J 00000000 0.02 2 >out
	same 2 "$(grep -c "$(printf '\033\\[H\033\\[2J')DEVICE" out)"
}
check "--top clears the screen each time" top

nobody() {
	setpriv --reuid $((10000 + $$ % 50000)) --clear-groups --inh-caps=-all "$@"
}

nothing_to_see() {
	same 0 "$(status_of nobody "$stat")"
	cat out err
	same "muster_stat: no job of yours runs here" "$(grep -v "$others" err)"
	same 3 "$(grep -c '^[A-Z]' out)"
	grep -q '^local  *0  *0  *0.0' out
}
if [ "$(id -u)" -eq 0 ]; then
	check "who has no job, and no rights, is told so" nothing_to_see
else
	skip "who has no job, and no rights, is told so" "only root can be another user"
fi

usage() {
	for wrong in 0 -1 x 1s "1 0" "1 x" "1 -1" "1 2 3" nan --interval; do
		# shellcheck disable=SC2086 # arguments
		same 2 "$(status_of "$stat" $wrong)"
	done
}
check "wrong usage is refused" usage

# Pages of a process that plays a job of 2,048 ranks, one virtual port each, and of one that makes no sense.
cat >pages.py <<'END'
import os, random, struct, sys, time
VERSION = int(os.environ["LOOK_VERSION"])
def page(body):
    fd = os.memfd_create("muster-look", 0)
    os.write(fd, body)
    os.truncate(fd, 704 + 4096 * 256)
nr = int(sys.argv[1])
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
for rank in range(nr):
    head = struct.pack("<IIIIQQIIIIHBBIQQ16s16s", 0x6b6f6f6c, VERSION, os.getpid(), 0, 0x5eed5eed, now - 1000000,
                       rank, nr, rank // 2048, 7, rank % 2048, 1, 0, 0, now, now, b"local", b"ring")
    page(head.ljust(256, b"\0") + struct.pack("<9Q", 5, 5, 7, 0, 0, 0, 0, 0, rank + 1))
# One that waits for what switches combine, in an alltoallv.
head = struct.pack("<IIIIQQIIIIHBBIQQ16s16sIBBHI", 0x6b6f6f6c, VERSION, os.getpid(), 0, 0x5eed5eee, now - 1000000,
                   0, 2, 0, 7, 0, 1, 1, 0, now, now, b"local", b"ring", 0, 0, 0, 0, 1)
comm = struct.pack("<10IB7x4BIQQQQII", 0, 1, 0, 0, 0, 0, 2, 0, 6, 5, 3, 36, 1, 0, 0, 0, 0, 8, now, now, 5, 0)
page(head.ljust(704, b"\0") + comm + struct.pack("<IIIIIBBH", 0, 0, 1, 0, 0xffffffff, 1, 0, 0))
random.seed(11)
for i in range(64):
    noise = bytearray(random.randbytes(704 + 256 * 8))
    noise[0:8] = struct.pack("<II", 0x6b6f6f6c, VERSION)
    noise[12:16] = bytes(4)
    noise[32:40] = struct.pack("<II", i, 64)
    noise[112:116] = bytes([8, 0, 0, 0])
    page(bytes(noise))
print("ready", flush=True)
time.sleep(1000)
END

pages_start() {
	: >pages.out
	(
		ulimit -n 3000
		exec /usr/bin/python3 pages.py 2048
	) >pages.out 2>&1 &
	echo $! >pages.pid
	within 60 grep -q . pages.out
	cat pages.out
	grep -q ready pages.out
}

many_ports() {
	pages_start
	"$stat" -J 5eed5eed >out
	same 2048 "$(awk '$1 == "5eed5eed" && NF > 11' out | wc -l)"
	same "2047" "$(awk '$1 == "5eed5eed" && NF > 11 { print $6 }' out | sort -n | tail -n 1)"
	grep -q '^5eed5eed  *2048  *2048 local' out
}

by_switches() {
	"$stat" -J 5eed5eee >out
	cat out
	grep -q ' switches  *alltoallv 5 of communicator 0$' out
	"$stat" -J 5eed5eee --json >json
	! can_validate || valid muster_stat json
}

# Whatever is in them: figures without sense, but a line each, and no harm.
noise() {
	"$stat" -c >out
	"$stat" -c 0.01 3 >out
	"$stat" --json >json
	fails grep -q '[^ -~]' out json
	/usr/bin/python3 -c 'import json, sys; json.load(open("json"))'
}
if [ -x /usr/bin/python3 ] && (ulimit -n 3000) 2>/dev/null; then
	check "2,048 virtual ports are 2,048 lines" many_ports
	check "who waits for switches names nobody, and every operation has its name" by_switches
	check "pages that make no sense do no harm" noise
else
	skip "2,048 virtual ports are 2,048 lines" "no python3, or fewer than 3,000 open files (ulimit -n)"
fi
finish
