#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Jobs whose ranks run in guests, one each or two: the same bits as anywhere else, the same
# errors, and deaths of ranks and of whole guests that the others name.
# MUSTER_KILLS: how often each kind is killed (1; 20 for a release).
. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
ranks=$MUSTER_BUILD/selftests/ranks
victim=$tap_home/guest/victim.sh
kills=${MUSTER_KILLS:-1}
some=$(little_or some bits)	# lengths

[ -x "$MUSTER_BUILD/vm/qemu-system-x86_64" ] && [ -f "$MUSTER_BUILD/vm/vmlinux" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"
[ -f "$MUSTER_BUILD/kernel/muster.ko" ] && [ -f "$MUSTER_BUILD/libmuster-verbs.so.0" ] ||
	skip_all "driver or provider is not built; make check-guest builds them"

in_guests() {
	"$run" --vm -n "$@"
}

digest() {
	sed -n 's/.*digest //p' "$1"
}

# guests_of LAUNCHER PATTERN: pids of its QEMUs
guests_of() {
	pgrep -P "$(pgrep -P "$1" | paste -sd,)" -f "$2"
}

# ---- the same bits -------------------------------------------------------------------

# In one job, as guests take long to boot; the last of them is its end.
several() {
	"$run" -n 4 "$ranks" "$some" >local
	in_guests 4 "$ranks" \
		"$some"=registered,remaps,started,overtakes,bad,creates,mismatch=operation >guests || {
		cat guests
		return 1
	}
	test -n "$(digest local)"
}
check "4 guests: operations in flight, groups, queues, memory that something else lies at, bad arguments; and ranks that call different operations are told" several
check "NIC path and host path have the bits of the local device" \
	same "$(digest local)" "$(digest guests)"

# Neighbours share a NIC; what they send each other goes through it alone.
two_a_guest() {
	"$run" -n 4 "$ranks" "$some" >local
	# shellcheck disable=SC2016 # the guests'
	in_guests 4 --per-host 2 sh -c '"$@" && exec cat /proc/sys/kernel/random/boot_id' \
		sh "$ranks" "$some" plain >guests
	cat local guests
	test -n "$(digest local)"
	same "$(digest local)" "$(digest guests)"
	same 2 "$(sed -n 's/^\[[01]\] \([0-9a-f-]\{36\}\)$/\1/p' guests | uniq -c | awk '{ print $1 }')"
	same 2 "$(sed -n 's/^\[[0-3]\] \([0-9a-f-]\{36\}\)$/\1/p' guests | sort -u | wc -l)"
}
check "two ranks a guest, which share its NIC: the same bits" two_a_guest

# Two switches of radix 4, at one of which are hosts 0, 2 and 1: both trees have orders of their own, that no schedule has.
two_switches() {
	printf 'muster-topology 1\nname two\nnodes 6\nlink 0 -- 4 1\nlink 2 -- 4 1\nlink 1 -- 4 1\nlink 4 -- 5 1\nlink 3 -- 5 1\nswitch 4 5\nend\n' >network
}

# What switches count, summed.
count() {
	python3 -c 'import json, sys; print(sum(json.loads(line)[sys.argv[1]] for line in open("counters")))' "$1"
}

# at_switches [OPTION...]
at_switches() {
	two_switches
	rm -f counters
	MUSTER_SWITCH_ORDER=try MUSTER_SWITCHD_OPTIONS="-r 4 -j -c $PWD/counters" \
		in_guests 4 "$@" --topology "$PWD/network" --apart --no-prefix "$MUSTER_BUILD/selftests/switched" order >out
	cat out counters
	same "21 operations" "$(cat out)"
	test "$(count contributions)" -gt 20
	test "$(count forwarded)" -gt 100
	same "0 0" "$(($(count drop_malformed) + $(count drop_stranger) + $(count drop_window))) $(count failed)"
	same "0 0" "$(count groups) $(count bytes)"	# all was given back
}
check "2 guests and 2 local ranks at a network of switches: sums by both trees, by NIC and host path have the same bits, and what was taken is given back" \
	at_switches --local=2
rest "4 guests at a network of switches: the same" at_switches

# usage: long RANKS CHUNKS: to rank 0 and back, chunk by chunk: more stages than a NIC queues
long() {
	printf 'muster-schedule 1\nname long\ncollective allreduce\nranks %d\nchunks %d\n' "$1" "$2"
	for chunk in $(seq 0 $(($2 - 1))); do
		echo "step $((2 * chunk))"
		for rank in $(seq $(($1 - 1))); do echo "$rank -> 0 chunk $chunk reduce"; done
		echo "step $((2 * chunk + 1))"
		for rank in $(seq $(($1 - 1))); do echo "0 -> $rank chunk $chunk copy"; done
	done
	echo end
}

# usage: nested NODES RANKS: inside of each guest, between two ranks of them, and inside again
nested() {
	"$MUSTER_BUILD/tools/muster-synth" nodes "$1" "$2" -c allreduce -o nested
	"$MUSTER_BUILD/tools/muster-synth" nodes "$1" "$2" rabenseifner -c allreduce -o halved
}

# What they compute is compared with the schedule, interpreted step by step, in each guest.
scheduled() {
	nested 4 2
	"$MUSTER_BUILD/tools/muster-synth" solve -t dgx1 -c allgather 2 2 3 -o allgather
	"$MUSTER_BUILD/tools/muster-synth" solve -t dgx1 -c allreduce 16 4 6 -o allreduce
	long 8 1 >small
	long 8 70 >long
	in_guests 8 --per-host 2 "$MUSTER_BUILD/selftests/scheduled" "$PWD/nested" "$PWD/halved" "$PWD/allgather" \
		"$PWD/allreduce" "$PWD/small" "$PWD/long" >out
	cat out
	same 8 "$(grep -c '/nested: kept$' out)"
	same 8 "$(grep -c '/halved:' out)"
	same 8 "$(grep -c '/small: kept$' out)"
	same 8 "$(grep -c '/long: fetched$' out)"
}
check "8 ranks in 4 guests, to the bit: a schedule inside of guests and across them, 2-step allgather and 4-step allreduce of DGX-1; NICs keep and fetch programs" scheduled

three_a_guest() {
	nested 2 3
	in_guests 6 --per-host 3 "$MUSTER_BUILD/selftests/scheduled" "$PWD/nested" "$PWD/halved" >out
	cat out
	same 6 "$(grep -c '/nested: kept$' out)"
	same 6 "$(grep -c '/halved:' out)"
}
rest "three ranks a guest: a schedule inside of guests and across them" three_a_guest

# With a window of one, ranks ask each other where they had not to.
least() {
	export MUSTER_ENGINE=units=1,buffer=0,window=1,pulses=1
	"$run" -n 3 "$ranks" "$some" plain >local
	# shellcheck disable=SC2016 # the guests'
	in_guests 3 sh -c '"$@" && exec cat /sys/class/infiniband/muster0/ports/1/hw_counters/credits' \
		sh "$ranks" "$some" plain >guests
	cat local guests
	test -n "$(digest local)"
	same "$(digest local)" "$(digest guests)"
	same 3 "$(grep -c '\] [1-9][0-9]*$' guests)"
	unset MUSTER_ENGINE
	fails env MUSTER_ENGINE=window=0 "$run" --vm -n 3 "$ranks" bits plain 2>refused
	grep "MUSTER_ENGINE=window=0: allowed is a list of" refused
}
check "NICs of one unit without buffer, a window and pulses of one: the same" least

# ---- errors and ends -------------------------------------------------------------------

# And the commands of 200 operations on plain memory: it is not registered for each.
output_has_its_rank() {
	# shellcheck disable=SC2016 # the guests'
	same 7 "$(status_of in_guests 2 sh -c 'echo out; echo err >&2; id -u; "$@" >figures &&
		echo commands $(cat /sys/class/infiniband/muster0/ports/1/hw_counters/admin_commands)
		exit $((7 * MUSTER_RANK))' \
		sh "$MUSTER_BUILD/tools/muster_perf" -b malloc -p nic -c -i 200 -x 0 -D 600 -m 64K:64K allreduce)"
	cat out err
	same "[0] 0,[0] out,[1] 0,[1] out" "$(grep -v commands out | sort | paste -sd,)"
	same "[0] err,[1] err" "$(grep '^\[' err | sort | paste -sd,)"
	grep -q 'rank 1 exited with status 7' err
	cp out commands
}
check "lines begin with their rank, and exit statuses are passed on" output_has_its_rank

kept_registered() {
	cat commands
	same 2 "$(awk '$2 == "commands" && $3 < 200 { few++ } END { print few }' commands)"
}
check "plain memory stays known to the NIC" kept_registered

names_what_cannot_be_run() {
	same 127 "$(status_of in_guests 1 /no/such/program)"
	grep -q "cannot run '/no/such/program'" err
}
check "what cannot be run is named" names_what_cannot_be_run

names_a_driver_that_cannot_be_loaded() {
	same 125 "$(MUSTER_MODULE=$victim status_of in_guests 1 true)"
	cat err
	grep -q "cannot load $victim: Exec format error" err
}
check "a driver that cannot be loaded is named" names_a_driver_that_cannot_be_loaded

interrupt_ends_all() {
	: >out
	"$run" --vm -n 2 sh -c 'echo up; sleep 1000' >out 2>err &
	launcher=$!
	within 60 grep -q '\[1\] up' out
	pids=$(guests_of $launcher muster_guest=)
	same 2 "$(echo "$pids" | wc -l)"
	kill -TERM $launcher
	status=0
	wait $launcher || status=$?
	same 143 $status
	for pid in $pids; do
		within 60 gone "$pid"
	done
}
check "a signal ends programs and guests" interrupt_ends_all

interrupt_while_booting() {
	"$run" --vm -n 2 true >out 2>err &
	launcher=$!
	within 60 guests_of $launcher muster_guest=1
	kill -TERM $launcher
	status=0
	wait $launcher || status=$?
	same 143 $status
}
check "a signal while the guests boot ends them too" interrupt_while_booting

misuse() {
	same 2 "$(status_of "$run" -n 2 --nics=2 true)"
	same 2 "$(status_of "$run" -n 2 --vm --bind true)"
	same 2 "$(status_of "$run" -n 3 --vm --per-host 2 true)"
	same 2 "$(status_of "$run" -n 4 --vm --per-host 2 --count true)"
	same 2 "$(status_of "$run" -n 30 --vm --per-host 15 true)"
	grep -q "at most 14 ranks" err
	same 2 "$(status_of "$run" -n 4 --vm --topology switch:5 --per-host 2 true)"
	same 2 "$(status_of "$run" -n 4 --vm --topology switch:5 --nics 2 true)"
	grep -q "one rank and one NIC" err
	same 2 "$(status_of "$run" -n 4 --vm --local=2 true)"
	same 2 "$(status_of "$run" -n 4 --local=2 --topology switch:5 true)"
	grep -q "goes with --vm and --topology" err
	same 2 "$(status_of "$run" -n 4 --vm --local=4 --topology switch:5 true)"
	grep -q "leaves no rank for a guest" err
	same 125 "$(status_of "$run" -n 4 --vm --topology switch:4 true)"
	grep -q "fewer than the 4 ranks" err
	same 2 "$(MUSTER_DEVICE=local status_of "$run" -n 2 --vm true)"
	grep -q MUSTER_DEVICE err
}
check "options that do not go together are refused" misuse

# ---- deaths ----------------------------------------------------------------------------

# ended RANK STATUS OTHERS: how a job with a dead rank must end: the others exit with 0 and name it.
ended() {
	cat out err
	same 137 "$2"
	same "$3" "$(grep -c "^\[[^$1]\] .*rank $1" out)"
	same 1 "$(grep -c '^muster-run: rank' err)"
}

# kill_rank RANK MIB MILLISECONDS: beside a user without rights who names lives of nodes that there are not.
# All ranks go on until it is killed.
kill_rank() {
	export VICTIM="$1"
	status=$(status_of in_guests 3 --grace=800 "$victim" "$ranks" "$2" "$3" slander)
	ended "$1" "$status" 2
}

# The rank whose NIC it was lives on and learns it too.
reset_nic() {
	export VICTIM="$1"
	same 0 "$(status_of in_guests 3 --grace=800 "$victim" "$ranks" "$2" "$3" reset)"
	cat out err
	same 3 "$(grep -c "rank $1 .*has died or left\|rank $1 died" out)"
}
check "a NIC that is reset under a job: all ranks learn whose it was" reset_nic 1 4 300

# kill_guest RANK MIB MILLISECONDS: the QEMU of one guest. That others learn of it from a deadline
# would be too late: they are given less time to end.
kill_guest() {
	export VICTIM="$1"
	: >out
	MUSTER_DEADLINE=2000 "$run" --vm -n 3 --grace=800 "$victim" "$ranks" "$2" >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 grep -q ready out
	sleep "$(printf '%d.%03d' $(($3 / 1000)) $(($3 % 1000)))"
	kill -9 "$(guests_of $launcher "muster_guest=$1")"
	status=0
	wait $launcher || status=$?
	trap - EXIT
	ended "$1" "$status" 2
	grep -q "^guest $1: it died" err
}

# kill_one OPTION...: rank 1 of 4, in its guest
kill_one() {
	export VICTIM=1
	# shellcheck disable=SC2016 # the guests'
	status=$(status_of in_guests 4 "$@" --grace=800 sh -c '
		"$1" victim 4 >"/run/out.$MUSTER_RANK" &
		rank=$!
		if [ "$MUSTER_RANK" = 1 ]; then
			until grep -q pid /run/out.1 || ! kill -0 $rank; do sleep 0.1; done
			sleep 0.3
			kill -9 $rank
		fi
		wait $rank
		status=$?
		cat "/run/out.$MUSTER_RANK"
		exit $status' sh "$ranks")
	ended 1 "$status" 3
}

# Two a guest: who shares it with the dead and who does not.
check "kill -9 of a rank that shares its guest: the others name it" kill_one --per-host 2

# The manager hears of it as well: what the dead rank had is given back.
kill_at_switches() {
	two_switches
	rm -f counters
	MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c $PWD/counters" kill_one --topology "$PWD/network"
	test "$(count contributions)" -gt 0
	same "0 0" "$(count groups) $(count bytes)"
}
rest "kill -9 of a rank in its guest at a network of switches: the others name it, nothing is left" kill_at_switches

# Nobody but the switches tells those in guests.
kill_beside_guests() {
	two_switches
	rm -f counters
	: >out
	VICTIM=3 MUSTER_SWITCH=force MUSTER_SWITCHD_OPTIONS="-j -c $PWD/counters" \
		"$run" --vm -n 4 --local=2 --grace=800 --topology "$PWD/network" "$ranks" victim 4 >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 60 grep -q pid out
	sleep 0.3
	kill -9 "$(sed -n 's/^\[3\] pid //p' out)"
	status=0
	wait $launcher || status=$?
	trap - EXIT
	ended 3 "$status" 3
	same "0 0" "$(count groups) $(count bytes)"
}
check "kill -9 of a local rank beside guests: the others name it, nothing is left" kill_beside_guests

all_began() {
	same 4 "$(grep -c '^pid [0-9]' out)"
}

# drained SWITCH: groups and ways move away from it
drained() {
	"$MUSTER_BUILD/tools/muster-am" -m "$manager" --drain="$1" && "$MUSTER_BUILD/tools/muster-am" -m "$manager" --undrain="$1"
}

# Its programs go on until they are told that it is over.
drain_at_switches() {
	rm -f counters
	: >out
	# shellcheck disable=SC2016 # the guests'
	MUSTER_SWITCHD_OPTIONS="-j -c $PWD/counters" "$run" --vm -n 4 --no-prefix --topology fat-tree:2x2x2 sh -c '
		trap "touch /run/through" USR1
		(trap "" USR1; exec "$@") &
		until wait $!; do	# a signal ends a wait, too; then once more, be it that it has ended meanwhile
			status=$?
			[ $status -gt 128 ] || exit $status
		done' \
		sh "$MUSTER_BUILD/selftests/switched" replaced /run/through >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	within 300 all_began
	manager=$(tr '\0' '\n' <"/proc/$(pgrep -P "$(pgrep -P $launcher)" muster-am)/cmdline" | sed -n '/^-m$/{n;p;}')
	drained 2
	drained 3
	kill -USR1 $launcher
	wait $launcher || { cat out err; return 1; }
	trap - EXIT
	cat out err
	same 4 "$(grep -c ' rounds$' out)"
	same "0 0 0" "$(count failed) $(count groups) $(count bytes)"
	same 4 "$(grep -c '"contributions": [1-9]' counters)"
}
rest "4 guests go over from groups to others as switches are drained" drain_at_switches

i=0
while [ $i -lt "$kills" ]; do
	check "kill -9 of rank $((i % 3)) in its guest: the others name it, nothing is left; false word of a death ends nothing" \
		kill_rank $((i % 3)) $((1 + i % 3 * 7)) $(((i * 137 + 113) % 900))
	check "kill -9 of guest $((2 - i % 3)): the others name its rank" \
		kill_guest $((2 - i % 3)) $((1 + i % 3 * 7)) $(((i * 171 + 57) % 900))
	i=$((i + 1))
done
finish
