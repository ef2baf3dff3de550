#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Guests boot on a host that is busy. QEMU is stopped and continued here so that the
# kernel gets hardly a tick, just where it would count them. A guest's progress is its console.
. "$(dirname "$0")/tap.sh"

VM=$MUSTER_BUILD/tools/muster-vm

[ -x "$MUSTER_BUILD/vm/qemu-system-x86_64" ] && [ -f "$MUSTER_BUILD/vm/vmlinux" ] && [ -x "$VM" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"

# Stands for QEMU: becomes it, and leaves a process behind that starves it while it tries its
# timer, which lies between the first words on the console and these last ones.
cat >starved <<'END'
#!/bin/bash
last='Calibrating delay|Kernel panic'
for word; do
	case $word in file:*) console=${word#file:} ;; esac
done
(
	stops=0
	for fd in /proc/self/fd/*; do
		fd=${fd##*/}
		[ "$fd" -lt 3 ] || eval "exec $fd>&-"
	done
	until [ -s "$console" ]; do sleep 0.002; done
	until grep -qE "$last" "$console"; do
		kill -STOP $$ && sleep 0.2 && kill -CONT $$ && sleep 0.001 || exit
		stops=$((stops + 1))
	done
	echo "stopped $stops times" >&2
) </dev/null >/dev/null &
exec "$MUSTER_BUILD/vm/qemu-system-x86_64" "$@"
END

starved_guests_boot() {
	mkdir vm
	ln -s "${MUSTER_VM_DIR:-$MUSTER_BUILD/vm}"/* vm/
	rm vm/qemu-system-x86_64 vm/cmdline	# what they point to is of all guests
	install -m 755 starved vm/qemu-system-x86_64
	echo "loglevel=7" >vm/cmdline
	MUSTER_VM_DIR=$PWD/vm "$VM" -n "$(little_or 2 4)" --nics=0 true
}
check "guests that hardly get a tick boot" starved_guests_boot
finish
