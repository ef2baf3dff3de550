#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The driver's KUnit tests (kernel/*_test.c), which run when it is loaded, in a guest whose kernel
# has KUnit: what they said.
. "$(dirname "$0")/guest.sh"

grep -qF .kunit_test_suites "${MUSTER_MODULE:-$MUSTER_BUILD/kernel/muster.ko}" ||
	skip_all "this driver has no KUnit tests in it: KERNEL=debug"
RESULTS=/sys/kernel/debug/kunit

# usage: suite_passes NAME
suite_passes() {
	cat "$RESULTS/$1/results"
	fails grep -q "not ok" "$RESULTS/$1/results"
	grep -qE "^ok [0-9]+ (- )?$1\$" "$RESULTS/$1/results"
}

check "the driver loads" load
for suite in quota ucontext cq mr main; do
	check "KUnit: muster-$suite" suite_passes "muster-$suite"
done
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
