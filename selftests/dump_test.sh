#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster_dump: packets of local ranks and of the simulated world; Wireshark's dissector reads
# the same in them. Files that end early, or are none.
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

dump=$MUSTER_BUILD/tools/muster_dump
run=$MUSTER_BUILD/tools/muster-run
perf=$MUSTER_BUILD/tools/muster_perf
dst=$MUSTER_BUILD/selftests/dst/dst
lua=$diag_top/tools/wireshark/muster.lua
for program in "$dump" "$run" "$perf"; do
	[ -x "$program" ] || skip_all "there is no $program (make all)"
done

# README's program: an allreduce of 8 bytes, and nothing else.
sed -n '/^```c$/,/^```$/{/^```/!p}' "$diag_top/README.md" >hello.c
gcc -I"$diag_top/userlib" hello.c -L"$MUSTER_BUILD" -lmuster -Wl,-rpath,"$MUSTER_BUILD" -o hello ||
	skip_all "no program could be built"

as_the_page_shows() {
	mkdir packets
	MUSTER_DUMP=packets "$run" -n 2 ./hello
	"$dump" -x 0 packets >out
	cat out
	page_shows muster_dump.1 "muster_dump -x 0 packets"
}
check "an allreduce of two ranks is as the manual page shows" as_the_page_shows

# usage: dumped FOLDER WIRE: large and small messages of three ranks
dumped() {
	mkdir "$1"
	MUSTER_DUMP=$1 MUSTER_WIRE=$2 "$run" -n 3 "$perf" -c -i 2 -x 0 -D 0.01 -m 8:64K allreduce alltoall \
		>perf.out || { cat perf.out; return 1; }
	grep -q "equal  *pass" perf.out
	test -s "$1/rank-2.pcapng"
}

# A field of all packets, as tshark finds it.
tshark_fields() {
	file=$1
	shift
	tshark -X "lua_script:$lua" -r "$file" -T fields "$@" 2>tshark.err
	fails grep -i "lua" tshark.err
}

# What two programs that share no line read in the same file.
same_by_tshark() {
	"$dump" "$1" -o all.pcapng
	"$dump" all.pcapng | sed 1d | awk '{ split($3, f, "."); split($4, t, "."); split($9, o, "[/]")
		split($10, o, "/"); print f[1], f[2], t[1], t[2], $5, $6, $7, $8, $9, o[1], o[2], $11 }' >ours
	tshark_fields all.pcapng -E separator=' ' -e muster.src_node -e muster.src_vp -e muster.dst_node \
		-e muster.dst_vp -e muster.job -e muster.context -e muster.number -e muster.pulse \
		-e muster.slot -e muster.offset -e muster.total -e muster.length >theirs
	head -n 2 ours theirs
	test "$(wc -l <ours)" -gt "$2"
	cmp ours theirs
	same 0 "$(tshark_fields all.pcapng -Y muster.malformed -e frame.number | wc -l)"
}

types_by_tshark() {
	for type in 2:RTS 5:P2P; do
		same "$("$dump" all.pcapng | grep -c " ${type#*:} ")" \
			"$(tshark_fields all.pcapng -Y "muster.type == ${type%:*}" -e frame.number | wc -l)"
	done
	tshark -X "lua_script:$lua" -r all.pcapng 2>/dev/null >lines
	grep -q "MUSTER .* RTS alltoall number [0-9]* pulse [0-9]* slot [0-9]* of context 0, 24 bytes" lines
	grep -q " 2.0 → 0.0 " lines
}

check "ranks on rings write what they send" dumped rings ring
check "and on sockets" dumped sockets unix
if command -v tshark >/dev/null; then
	check "rings: the dissector and muster_dump read the same" same_by_tshark rings 100
	check "it names types, operations and addresses" types_by_tshark
	check "sockets: they read the same" same_by_tshark sockets 100
else
	skip "the dissector and muster_dump read the same" "tshark is not installed (make check installs it)"
fi

simulated() {
	for seed in 2 5 7; do
		"$dst" --dump "sim-$seed.pcapng" $seed
	done
	"$dump" sim-*.pcapng >out
	cat out | tail -n 3
	test "$(wc -l <out)" -gt 100
	same 0 "$("$dump" --json sim-*.pcapng | sed -n 's/.*"not_understood": \(.*\),/\1/p')"
	! command -v tshark >/dev/null || same_by_tshark sim-5.pcapng 100
}
if [ -x "$dst" ]; then
	check "the simulated world writes the same" simulated
else
	skip "the simulated world writes the same" "there is no $dst"
fi

# Both ways from one rank, and nobody else's.
filters() {
	"$dump" -r 2 rings >out
	sed 1d out | awk '$3 != "2.0" && $4 != "2.0" { exit 1 }'
	grep -q ' 2.0  *1.0 ' out
	grep -q ' 1.0  *2.0 ' out
	"$dump" -x 12345 rings >out
	same 1 "$(wc -l <out)"
}
check "nodes and communicators are chosen by number" filters

# The last 8 bytes of a header are the job's key.
no_key() {
	cat >key.py <<-'END'
	import struct, sys
	data, at, keys = open(sys.argv[1], "rb").read(), 0, set()
	while at < len(data):
	    kind, length = struct.unpack_from("<II", data, at)
	    if kind == 6:
	        keys.add(data[at + 28 + 88:at + 28 + 96])
	    at += length
	assert keys == {bytes(8)}, keys
	END
	/usr/bin/python3 key.py rings/rank-1.pcapng
}
if [ -x /usr/bin/python3 ]; then
	check "the job's key is in no file" no_key
else
	skip "the job's key is in no file" "there is no python3"
fi

# usage: says WORDS COMMAND...: it fails with that sentence
says() {
	words=$1
	shift
	status=$(status_of "$@")
	cat out err
	fails test "$status" = 0
	cat out err | grep -q -- "$words"
}

cut_short() {
	head -c 5001 rings/rank-0.pcapng >short.pcapng
	"$dump" short.pcapng >out
	test "$(wc -l <out)" -gt 3
	cp rings/rank-0.pcapng garbled.pcapng
	for at in 60 64 100 1000 1004 3000; do
		printf '\377\377\377\377' | dd of=garbled.pcapng bs=1 seek=$at conv=notrunc 2>/dev/null
		"$dump" --json garbled.pcapng >out
	done
	: >empty.pcapng
	says "empty.pcapng: this is no pcapng file" "$dump" empty.pcapng
	says "hello.c: this is no pcapng file" "$dump" hello.c
	mkdir nothing
	says "nothing: there are no .pcapng files in it" "$dump" nothing
	says "missing: No such file or directory" "$dump" missing
}
check "files that end early are read so far, others are named" cut_short

cat >slow.c <<'END'
#include <muster.h>
#include <unistd.h>

int main(void)
{
	struct muster *job;

	if (muster_init(&job))
		return 1;
	while (!muster_barrier(muster_world(job)))
		usleep(1000);
	return 1;
}
END
# They are read while they are written, and when who wrote has been killed.
ends_meanwhile() {
	gcc -I"$diag_top/userlib" slow.c -L"$MUSTER_BUILD" -lmuster -Wl,-rpath,"$MUSTER_BUILD" -o slow
	mkdir live
	MUSTER_DUMP=live "$run" -n 2 ./slow >slow.out 2>&1 &
	job=$!
	trap 'kill $job' EXIT
	some_there() {
		"$dump" live >out 2>err && [ "$(wc -l <out)" -gt 20 ]
	}
	within 60 some_there
	pkill -9 -P "$job"
	within 60 gone "$job"
	trap - EXIT
	"$dump" live >later
	cat err
	[ ! -s err ]
	[ "$(wc -l <later)" -ge "$(wc -l <out)" ]
}
check "a job that is killed meanwhile leaves what it sent" ends_meanwhile

many() {
	mkdir many
	# shellcheck disable=SC2016 # the inner shell's
	seq -f 'many/rank-%g.pcapng' 2048 | xargs -n 500 sh -c 'tee "$@" <short.pcapng >tee.out' sh
	same 2048 "$(find many -type f -size +4 | wc -l)"
	"$dump" short.pcapng | sed 1d >one
	"$dump" many >out
	same $((2048 * $(wc -l <one) + 1)) "$(wc -l <out)"
}
check "the packets of 2,048 ranks are read" many

unallowed() {
	mkdir mine
	cp short.pcapng mine/
	chmod 755 .
	chmod 700 mine
	says "mine: Permission denied" setpriv --reuid 65534 --clear-groups --inh-caps=-all "$dump" "$PWD/mine"
}
if [ "$(id -u)" -eq 0 ]; then
	check "who may not read them is told so" unallowed
else
	skip "who may not read them is told so" "only root can be another user"
fi

check "a folder that there is not is named by the job" \
	says "MUSTER_DUMP=missing: no file could be written there: No such file" \
	env MUSTER_DUMP=missing "$run" -n 2 ./hello
check "a NIC's packets cannot be had, and that is said" \
	says "MUSTER_DUMP=packets: packets of the verbs device are its NIC's" \
	env MUSTER_DUMP=packets MUSTER_DEVICE=verbs "$run" -n 2 ./hello

# usage: full: a folder of 64 KiB, and 3 ranks that send more
full() {
	mkdir full
	unshare -rm sh -c 'mount -t tmpfs -o size=64k none full && MUSTER_DUMP=full "$@" >perf.out && ls -s full' \
		sh "$run" -n 3 "$perf" -c -i 5 -x 0 -D 0.01 -m 8:64K allreduce
	grep -q "equal  *pass" perf.out
}
if unshare -rm true 2>/dev/null; then
	check "a disk that is full ends the file, not the job" full
else
	skip "a disk that is full ends the file, not the job" "no file system can be mounted here"
fi

schema() {
	"$dump" --json rings >json
	valid muster_dump json
	sed 's/"DATA"/"DATUM"/' json >wrong
	fails valid muster_dump wrong
}
if can_validate; then
	check "--json is as its schema says" schema
else
	skip "--json is as its schema says" "python3-jsonschema is not installed (make check installs it)"
fi
finish
