#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver's generic netlink family, in a guest: it shows what there is, to whom it may.
. "$(dirname "$0")/guest.sh"

FAMILY=$MUSTER_BUILD/selftests/guest/family

nobody() {
	setpriv --reuid 65534 --clear-groups "$@"
}

# usage: counts KIND N: so many lines
counts() {
	"$FAMILY" "$1" >shown
	cat shown
	same "$2" "$(wc -l <shown)"
}

hold_end() {
	kill -9 "$hold_pid"
	wait "$hold_pid" || :
}

a_device_says_what_is_taken_of_it() {
	counts devices 1
	grep -q "^devices device [0-9]* muster0 node 0 incarnation $("$HOLD" --incarnation) vps used 0 max 2048 " shown
	read -r before <shown
	hold_start
	counts devices 1
	grep -q " vps used 2 max 2048 cqs used 2 max 2048 contexts used 2 max 4096 qps used 0 max 2048 srqs used 0 max 1024 " shown
	# Of each port five: three rings, status and the queue's record; a receive ring of 8 entries has
	# 9 pages. And one says whether memory has changed.
	same "buffers 11 bytes $(((2 * (1 + 1 + 9 + 1 + 1) + 1) * 4096))" "$(grep -o "buffers.*" shown)"
	hold_end
	within 5 nothing_held
	same "$before" "$("$FAMILY" devices)"
}

jobs_and_contexts_are_shown() {
	hold_start
	counts jobs 1
	grep -q "^jobs device [0-9]* uid 0 job 7 contexts 2$" shown
	counts contexts 2
	vps=$("$MUSTER_BUILD/selftests/guest/nldev" "$(rdma dev show muster0 | sed 's/:.*//')" |
		sed -n 's/^lqpn \([0-9]*\) .*/\1/p' | sort -n | xargs)
	same "$vps" "$(sed -n 's/.* uid 0 job 7 context 3 vp \([0-9]*\) life 0 self [01] members 2$/\1/p' shown | sort -n | xargs)"
	same "self 0 self 1" "$(grep -o 'self [01]' shown | sort | xargs)"
	hold_end
	counts jobs 0
	counts contexts 0
}

# Others' numbers tell what they do; how much is taken everybody may see, as `rdma res` shows it.
others_are_not_shown_without_rights() {
	hold_start
	nobody "$FAMILY" jobs >shown
	nobody "$FAMILY" contexts >>shown
	same "" "$(cat shown)"
	same 1 "$(nobody "$FAMILY" devices | wc -l)"
	hold_end
	chmod 666 /dev/infiniband/uverbs0
	setpriv --reuid 65534 --clear-groups sh -c 'ulimit -l 8192; exec "$0" >/dev/null' "$HOLD" &
	hold_pid=$!
	within 10 sh -c '[ "$("$0" contexts | wc -l)" = 2 ]' "$FAMILY"
	same 2 "$(nobody "$FAMILY" contexts | grep -c "uid 65534")"
	same 1 "$(nobody "$FAMILY" jobs | grep -c "uid 65534")"
	hold_end
}

another_namespace_has_its_own_devices() {
	hold_start
	counts contexts 2
	rdma system set netns exclusive
	same "" "$(unshare -n "$FAMILY" devices; unshare -n "$FAMILY" jobs; unshare -n "$FAMILY" contexts)"
	counts contexts 2
	rdma system set netns shared
	same 2 "$(unshare -n "$FAMILY" contexts | wc -l)"
	hold_end
}

one_device_alone() {
	hold_start
	index=$("$FAMILY" devices | sed 's/^devices device \([0-9]*\) .*/\1/')
	same 2 "$("$FAMILY" contexts "$index" | wc -l)"
	same "" "$("$FAMILY" contexts $((index + 1)); "$FAMILY" devices $((index + 1)))"
	hold_end
}

what_is_odd_is_refused() {
	"$FAMILY" odd >shown
	cat shown
	same 4 "$(grep -cE ': (Invalid input|Operation not supported|Object not found)' shown)"
}

# usage: dump_whole: those of hold are in it, each once; it may have been interrupted
dump_whole() {
	status=$(status_of "$FAMILY" contexts)
	[ "$status" = 0 ] || same 2 "$status"
	same "" "$(sort out | uniq -d)"
	same "" "$(sort out | comm -23 mine -)"
	times=$((times + 1))
	[ "$status" = 0 ] || interrupted=$((interrupted + 1))
}

# usage: come_and_go N: another takes N contexts and loses them again; all dumps meanwhile are whole
come_and_go() {
	rm -f hoard.out
	"$MUSTER_BUILD/selftests/guest/hoard" contexts 0 "$1" >hoard.out 2>&1 &
	hoard_pid=$!
	until [ -s hoard.out ]; do
		dump_whole
	done
	read -r held _ <hoard.out
	same $((held + 2)) "$("$FAMILY" contexts | sort -u | wc -l)"
	kill -9 "$hoard_pid"
	until [ "$("$FAMILY" contexts | wc -l)" = 2 ]; do
		dump_whole
	done
}

# What is there all the time is told in each dump, once, however others come and go meanwhile. A
# kernel that watches starts a program in the time of all that, so there once is not enough.
dumps_hold_while_objects_come_and_go() {
	hold_start
	"$FAMILY" contexts | sort >mine
	times=0 interrupted=0
	until [ $times -gt 1 ]; do
		come_and_go "$1"
	done
	echo "# $times dumps, $interrupted of them interrupted"
	hold_end
}

check "the driver loads" load
check "a device says what is taken of it" a_device_says_what_is_taken_of_it
check "jobs and contexts are shown as they were made" jobs_and_contexts_are_shown
check "who has no rights sees his own alone" others_are_not_shown_without_rights
check "another network namespace has its own devices" another_namespace_has_its_own_devices
check "one device can be asked for" one_device_alone
check "what is odd is refused" what_is_odd_is_refused
# More than one message holds.
contexts=3000
! is_slow || contexts=500
check "dumps hold while objects come and go" dumps_hold_while_objects_come_and_go $contexts
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the family goes with it" fails "$FAMILY" devices
check "the kernel has nothing to complain of" kernel_quiet
finish
