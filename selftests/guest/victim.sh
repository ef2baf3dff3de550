#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# One rank in a guest of its own, which may be the one that dies: runs 'ranks victim',
# kills it with -9, or resets its NIC, in mid-operation if this is rank $VICTIM, and sees
# that the driver has nothing left a second later and nothing to complain of. Or, before it is
# killed, lets a user without rights name lives of the next rank's node that there are not.
# usage: victim.sh RANKS MIB [MILLISECONDS slander|reset]
# Exit status: that of the rank; 99: left behind.

ranks=$1 mib=$2 after=${3:-} how=${4:-}

held() {
	rdma res show | grep -v ' pd 0 cq 0 .* mr 0 ctx 0'
}

# All of it was in vain when the last has failed; the rank has a second to notice otherwise.
slander() {
	"${ranks%/ranks}/guest/hoard" lives 65534 >/run/slander 2>&1 &
	until grep -q . /run/slander; do
		sleep 0.1
	done
	kill -9 $!
	grep -qx "8 " /run/slander && sleep 1 && kill -0 $rank
}

"$ranks" victim "$mib" >/run/out &
rank=$!
if [ "$MUSTER_RANK" = "$VICTIM" ]; then
	until grep -q pid /run/out || ! kill -0 $rank; do
		sleep 0.1
	done
	echo "ready"
	if [ -n "$after" ]; then
		sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
		case $how in
		slander) slander && kill -9 $rank ;;
		reset) echo 1 >/sys/class/infiniband/muster0/device/reset ;;
		esac
	fi
fi
wait $rank
status=$?
cat /run/out
for _ in 1 2 3 4 5 6 7 8 9 10; do
	held >/dev/null || break
	sleep 0.1
done
if held || dmesg | grep -E -A 20 'WARNING|BUG:|Oops|Call Trace|general protection fault[,:]|hung task'; then
	exit 99
fi
exit $status
