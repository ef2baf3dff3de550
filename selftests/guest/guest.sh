# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What tests inside a guest share, beside tap.sh: the driver, and what the kernel
# has to say. To be sourced first: . "$(dirname "$0")/guest.sh"
#
#   load, unload       the driver
#   bdf                PCI address of the guest's Muster NIC
#   held COMMAND...    run it while hold(1) keeps everything open; fail unless hold
#                      finds its dead device to be dead cleanly
#   resources          how many pds, cqs, mrs and contexts processes hold; virtual ports
#                      are not among them, because Debian 12's rdma hides their kind
#   trace_start        the driver's tracepoints are recorded from here on
#   traced REGEX       fail unless one of them has told that
#   quiet_in <LOG      fail if the kernel has warned of anything there
#   kernel_quiet       fail if the kernel has warned of anything since this was sourced, or,
#                      where it looks for leaks, if it finds one

MUSTER_BUILD=${MUSTER_BUILD:-$(cd "$(dirname "$0")/../../build" && pwd)}
# shellcheck source=selftests/tap.sh
. "$(dirname "$0")/../tap.sh"

IBV_DRIVERS=$MUSTER_BUILD/provider/libmuster
export IBV_DRIVERS
HOLD=$MUSTER_BUILD/selftests/guest/hold
DRIVER=/sys/bus/pci/drivers/muster
LEAKS=/sys/kernel/debug/kmemleak
[ ! -d /sys/kernel/debug ] || mount -t debugfs none /sys/kernel/debug 2>/dev/null
# It shall not fall silent after the first complaint about DMA; nor fill the log with what
# without_its_own() leaves out.
[ ! -d /sys/kernel/debug/dma-api ] || echo 4 >/sys/kernel/debug/dma-api/num_errors
# And it looks for leaks when it is asked, not by itself as well.
[ ! -f $LEAKS ] || { echo scan=off >$LEAKS && echo clear >$LEAKS; }

TRACING=/sys/kernel/tracing
complaints="WARNING|BUG:|Oops|Call Trace|general protection fault[,:]|\
hung task|soft lockup|refcount_t|Bad page|scheduling while|UBSAN|DMA-API|\
turning off the locking correctness|leak detector disabled"

# Its file, or, where tests were installed without one, that of the machine.
load() {
	[ -d /sys/module/ib_uverbs ] || modprobe ib_uverbs
	if [ -n "${MUSTER_MODULE:-}" ] || [ -f "$MUSTER_BUILD/kernel/muster.ko" ]; then
		insmod "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}"
	else
		modprobe muster
	fi
}

unload() {
	rmmod muster
}

bdf() {
	for device in /sys/bus/pci/devices/*; do
		read -r vendor <"$device/vendor"
		read -r number <"$device/device"
		[ $vendor$number != 0x1af40x10f0 ] || break
	done
	[ $vendor$number != 0x1af40x10f0 ] || echo "${device##*/}"
}

# Elsewhere than in a guest of ours there must be a device, and its driver may be there already.
if [ "$(cat /proc/1/comm)" != guest_agent ]; then
	[ -n "$(bdf)" ] || skip_all "there is no Muster NIC here (in a guest of muster-vm there is)"
	! grep -q '^muster ' /proc/modules || unload
fi
# On a starved host the kernel complains of its own boot, before there is a driver.
dmesg -C

hold_start() {
	"$HOLD" >hold.out 2>hold.err &
	hold_pid=$!
	within 10 grep -q ready hold.out || {
		cat hold.err
		return 1
	}
}

held() {
	hold_start
	"$@"
	wait "$hold_pid" || {
		cat hold.err
		return 1
	}
}

resources() {
	rdma res show |
		sed -n 's/.*: pd \([0-9]*\) cq \([0-9]*\) .* mr \([0-9]*\) ctx \([0-9]*\).*/\1 \2 \3 \4/p'
}

nothing_held() {
	fails sh -c 'echo "$1" | grep -v "^0 0 0 0$"' sh "$(resources)"
}

trace_start() {
	[ -f $TRACING/trace ] || mount -t tracefs none $TRACING
	echo >$TRACING/trace
	echo 1 >$TRACING/events/muster/enable
}

traced() {
	grep -qE -- "$1" $TRACING/trace || {
		tail -n 20 $TRACING/trace
		echo "no such line: $1"
		return 1
	}
}

# What was not given back, but for what $excused_leaks, a regular expression of a test, tells of its backtrace.
excused_leaks='^$'
leaks() {
	awk -v excused="$excused_leaks" '/^unreferenced object/ { if (block !~ excused) printf "%s", block; block = "" }
	{ block = block $0 "\n" }
	END { if (block !~ excused) printf "%s", block }' $LEAKS
}

# Twice: what is found for the first time may be on its way from one list to another.
# Younger than 5 s is too young for the kernel.
no_leaks() {
	[ -f $LEAKS ] || return 0
	sleep 6
	echo scan >$LEAKS
	sleep 6
	echo scan >$LEAKS
	same "" "$(leaks)"
}

# What watches DMA minds pages that are registered twice, and more so those that are many times, as
# verbs allow; it says how large it has grown, and gives up watching where memory for that is made to
# fail: none of it is the driver's doing. What else is not, a
# test may name: $excused is a regular expression for what a warning tells.
excused="cacheline tracking EEXIST|overlapping mappings of cacheline"
without_its_own() {
	awk -v excused="$excused" '/DMA-API: (Mapped at:|cacheline tracking ENOMEM|dma_debug_entry pool grown)/ { next }
	/\[ cut here \]/ { cut = 1; block = "" }
	!cut { print; next }
	{ block = block $0 "\n" }
	/\[ end trace / { cut = 0; if (block !~ excused) printf "%s", block }
	END { if (cut) printf "%s", block }'
}

# usage: quiet_in <LOG: fail, and show it, if the kernel has complained there.
quiet_in() {
	without_its_own | fails grep -E -A 20 "$complaints"
}

kernel_quiet() {
	dmesg | quiet_in
	no_leaks
}
