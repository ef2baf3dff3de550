#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rdma-core's own Python tests, as Debian installs them, in a guest: none fails, and those that
# are named in pyverbs.txt pass; Documentation/verbs.md says why others are skipped.
. "$(dirname "$0")/guest.sh"

TESTS=/usr/share/doc/rdma-core/tests
LIST=$tap_home/pyverbs.txt

# Without those of other makers' devices, which would all be skipped.
unpack() {
	cp -r $TESTS tests
	gunzip -q tests/*.gz
	rm -f tests/test_mlx5* tests/test_efa* tests/test_cuda*
}

run() {
	/usr/bin/python3 tests/run_tests.py -v --dev muster0 >said 2>&1 || :
	sed -n 's/^skipped/&/p; s/.*\.\.\. \(skipped\)/\1/p' said | sort | uniq -c | sort -rn >skipped
	tail -n 300 said
	grep -q '^Ran [0-9]* tests' said
	fails grep -E '^(FAIL|ERROR):' said
}

# A test is named on a line of its own; what it is for may be on the next, and says how it ended.
passed() {
	awk '/^test_[a-z0-9_]+ \(/ { name = $1 }
	/\.\.\. ok$/ && name { print name; name = "" }' said | sort
}

those_named_pass() {
	passed >passed
	grep -v '^#' "$LIST" | sort >named
	comm -23 named passed >missing
	cat missing
	same "" "$(cat missing)"
}

[ -d $TESTS ] || skip_all "python3-pyverbs is not installed (make check-pyverbs installs it)"
ip link set lo up
check "the driver loads" load
check "the tests are unpacked" unpack
check "none of them fails" run
check "those that are named pass" those_named_pass
sed 's/^/# /' skipped
echo "# $(passed | wc -l) pass, $(grep -c skipped said) are skipped"
passed | sed 's/^/# passed: /'
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
