# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What the tests of driver, provider and device together share: each script of
# selftests/guest in a guest of its own. To be sourced: . "$(dirname "$0")/driver.sh"
# TIMES says how often what is repeated there is repeated (2, with MUSTER_REST 3; 20 for a release).
# Another kernel: MUSTER_VM_DIR and MUSTER_MODULE name it and its driver, MUSTER_PATIENCE how many
# times as long it takes.
#
#   in_guest SECONDS [OPTION OF MUSTER-VM]... -- COMMAND...
#   selftests_run SECONDS [OPTION OF MUSTER-VM]... -- run_kselftest.sh GROUP[/TEST]...
#                              one boot for several of them; what they say is in ./kselftest
#   installed_run SECONDS GROUP[/TEST]...       the same as they are installed, elsewhere
#   selftest_passed GROUP/TEST                  of those
#
# The seconds are the guest's own: those in which its QEMU waits for a CPU do not count.

# shellcheck source=selftests/tap.sh
. "$(dirname "$0")/tap.sh"

VM=$MUSTER_BUILD/tools/muster-vm
GUEST=$tap_home/guest
VM_DIR=${MUSTER_VM_DIR:-$MUSTER_BUILD/vm}
TIMES=${TIMES:-$(little_or 2 3)}
export GUEST TIMES

[ -x "$VM_DIR/qemu-system-x86_64" ] && [ -f "$VM_DIR/vmlinux" ] && [ -x "$VM" ] ||
	skip_all "there is nothing to run guests with; make check-guest builds it"
[ -f "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}" ] && [ -x "$MUSTER_BUILD/selftests/guest/hold" ] ||
	skip_all "driver or provider is not built; make check-guest builds them"

in_guest() {
	seconds=$(($1 * ${MUSTER_PATIENCE:-1}))
	shift
	"$VM" --seconds="$seconds" "$@"
}

# How far it is is said meanwhile, as who says nothing for long is taken for hung (run.sh).
exec 3>&1
selftests_run() {
	in_guest "$@" | tee kselftest | sed -unE 's/^(not )?ok .*/# &/p' >&3
	[ -s kselftest ]
	same "$(sed -n 's/^1\.\.//p' kselftest)" "$(grep -cE '^(not )?ok ' kselftest)"
}

selftest_passed() {
	sed -nE "\\|^# selftests: muster: $1\.sh$|,/^(not )?ok /p" kselftest
	grep -qx "ok [0-9]* selftests: muster: $1.sh" kselftest
}

# Where nothing tells that it is a guest of ours, and there is no clone.
installed_run() {
	make -s -C "$tap_home" install INSTALL_PATH="$tap_dir/elsewhere" BUILD="$MUSTER_BUILD"
	chmod 711 "$tap_dir"	# other users are tried, too
	MUSTER_MODULE=${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}
	export MUSTER_MODULE
	seconds=$1
	shift
	selftests_run "$seconds" -- unshare --pid --fork --mount-proc env -u MUSTER_BUILD \
		"$tap_dir/elsewhere/selftests/run_kselftest.sh" "$@"
}
