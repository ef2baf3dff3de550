#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver's tests in the form of the kernel's own (kselftest), on the machine that this runs
# on: a virtual one with a Muster NIC, which they reset, unbind and put to sleep. As root, from a
# clone or from where `make -C selftests install` has put them.
# usage: run_kselftest.sh [abi|lifetime|fault|clone|GROUP/TEST]...     clone: what only a clone has
# MUSTER_BUILD: where the programs are; MUSTER_MODULE: the driver's file, else that there, else
# what modprobe finds.
set -u

here=$(cd "$(dirname "$0")" && pwd)
MUSTER_BUILD=${MUSTER_BUILD:-$(dirname "$here")/build}
export MUSTER_BUILD

tests_of() {
	case $1 in
	abi) echo dv_test quota_test counter_test family_test ;;
	lifetime) echo life_test bus_test suspend_test ;;
	fault) echo health_test ;;
	clone) echo tools_test diag_test kunit_test ;;
	*)
		echo "$0: there are abi, lifetime, fault and clone, and no '$1'" >&2
		exit 2
		;;
	esac
}

# usage: run GROUP/TEST
run() {
	nr=$((nr + 1))
	echo "# selftests: muster: $1.sh"
	"$here/guest/${1#*/}.sh" >"$log" 2>&1
	status=$?
	sed 's/^/# /' "$log"
	case $status in
	0) echo "ok $nr selftests: muster: $1.sh" ;;
	4) echo "ok $nr selftests: muster: $1.sh # SKIP" ;;
	*)
		echo "not ok $nr selftests: muster: $1.sh # exit=$status"
		failed=1
		;;
	esac
}

[ $# -gt 0 ] || set -- abi lifetime fault
all=
for group; do
	names=$(tests_of "${group%/*}") || exit
	[ "${group#*/}" = "$group" ] || names=${group#*/}
	group=${group%/*}
	for name in $names; do
		all="$all $group/$name"
	done
done
nr=0
failed=0
log=$(mktemp) || exit
trap 'rm -f "$log"' EXIT
echo "TAP version 13"
# shellcheck disable=SC2086 # names
set -- $all
echo "1..$#"
for each; do
	run "$each"
done
exit $failed
