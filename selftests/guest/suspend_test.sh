#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The guest goes to sleep and wakes, as far as its devices: the kernel's own test of that, with
# nobody to wake it. The guest's root does not survive it (9p by virtio cannot be resumed), so
# what runs then lies in memory, with all that it needs: this calls itself there.
# usage: suspend_test.sh [REGEX]
set -u

SMALL=/dev/shm/small
OFFERS=/dev/infiniband/uverbs0

# ---- where the root is there ----------------------------------------------------------

if [ $# = 0 ]; then
	. "$(dirname "$0")/guest.sh"
	[ -f /sys/power/pm_test ] || skip_all "this kernel has no test of sleep (/sys/power/pm_test)"
	mkdir -p $SMALL/bin $SMALL/proc $SMALL/sys $SMALL/dev
	cp "$(command -v busybox)" $SMALL/bin/busybox
	for applet in sh cat dmesg grep sleep; do
		ln -s busybox $SMALL/bin/$applet
	done
	for file in "$0" "$HOLD" $(ldd "$HOLD" | grep -o '/[^ ]*'); do
		mkdir -p "$SMALL/$(dirname "$file")"
		cp -L "$file" "$SMALL/$file"
	done
	for dir in proc sys dev; do
		mount --rbind /$dir $SMALL/$dir
	done
	load
	HOLD=$(realpath "$HOLD") exec chroot $SMALL /bin/sh "$0" "$complaints"
fi

# ---- where it is not --------------------------------------------------------------------

nr=0
failed=0

# usage: check NAME COMMAND...
check() {
	name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then
		echo "ok $nr - $name"
	else
		failed=1
		echo "not ok $nr - $name"
		cat err
		dmesg | tail -n 20
	fi
}

wait_until() {
	tries=6000
	until "$@" || [ $tries = 0 ]; do
		sleep 0.1
		tries=$((tries - 1))
	done
	[ $tries -gt 0 ]
}

# What is open dies cleanly; there is a new life when it wakes.
ends_a_life() {
	before=$("$HOLD" --incarnation)
	: >out		# what the last one has said is not this one's
	"$HOLD" >out 2>err &
	wait_until grep -q ready out || return
	echo "$1" >/sys/power/state && wait $! && wait_until test -c $OFFERS &&
		[ "$before" != "$("$HOLD" --incarnation)" ]
}

has_nothing_to_complain_of() {
	! dmesg | grep -E "$complaints"
}

complaints=$1
cd / && touch err
export PATH=/bin
echo 0 >/sys/module/suspend/parameters/pm_test_delay
echo devices >/sys/power/pm_test
for state in $(cat /sys/power/state); do
	[ "$state" = disk ] || check "$state ends a life, and the next begins" ends_a_life "$state"
done
check "the kernel has nothing to complain of" has_nothing_to_complain_of
echo "1..$nr"
exit $failed
