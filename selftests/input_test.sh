#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Bad input gets a clear error and changes nothing.
. "$(dirname "$0")/tap.sh"

ranks=$MUSTER_BUILD/san/selftests/ranks
pagerank=$MUSTER_BUILD/userlib/examples/pagerank

run() {
	"$MUSTER_BUILD/tools/muster-run" "$@"
}

# says WORD COMMAND...: it fails, and its error has the word
says() {
	word=$1
	shift
	if "$@" >out 2>&1; then
		echo "it succeeded"
		return 1
	fi
	cat out
	grep -q -- "$word" out
}

check "argument errors are found before anything is sent" run -n 3 "$ranks" bad

check "an engine that there cannot be is refused with what is allowed" \
	says "MUSTER_ENGINE=units=65: allowed is a list of units=1 to 64, buffer=0 to 128M in steps of 4096 bytes" \
	env MUSTER_ENGINE=units=65 "$MUSTER_BUILD/tools/muster-run" -n 2 "$ranks" bits registered

for what in operation type op length root; do
	mismatch() {
		run -n 3 "$ranks" mismatch $what >out
		cat out
		same 3 "$(grep -c 'rank' out)"
	}
	check "ranks with a different $what are told" mismatch
done

check "a missing variable is named" \
	says MUSTER_RENDEZVOUS env MUSTER_RANK=0 MUSTER_SIZE=2 "$ranks" bad
check "a rank outside of the size is named" \
	says MUSTER_RANK env MUSTER_RANK=4 MUSTER_SIZE=2 MUSTER_RENDEZVOUS=unix:muster-x$$ "$ranks" bad
check "a size that is not a number is named" \
	says MUSTER_SIZE env MUSTER_RANK=0 MUSTER_SIZE=two MUSTER_RENDEZVOUS=unix:muster-x$$ "$ranks" bad
check "a rank that never comes is named" \
	says 'rank(s) 1' env MUSTER_DEADLINE=1 MUSTER_RANK=0 MUSTER_SIZE=2 \
	MUSTER_RENDEZVOUS=unix:muster-y$$ "$ranks" bad
check "a setting that is not defined is refused" \
	says MUSTER_OFFLOAD env MUSTER_OFFLOAD=maybe "$MUSTER_BUILD/tools/muster-run" -n 2 "$ranks" bad

printf 'muster-schedule 1\nname x\ncollective allreduce\nranks 2\nchunks 1\nstep 0\n  0 -> 9  chunk 0  reduce\n' \
	>broken.sched
check "a malformed schedule file is refused with its line" \
	says 'line 7' env MUSTER_SCHEDULE=./broken.sched "$MUSTER_BUILD/tools/muster-run" -n 2 "$ranks" bad

printf 'Package: a\nDepends: b\n\nnonsense without a colon\n' >broken.dpkg
: >empty.dpkg
check "an unreadable package file is named" \
	says missing.dpkg "$MUSTER_BUILD/tools/muster-run" -n 2 "$pagerank" ./missing.dpkg
check "a malformed package file is refused with its line" \
	says '4' "$MUSTER_BUILD/tools/muster-run" -n 2 "$pagerank" ./broken.dpkg
check "an empty package file is refused" \
	says empty.dpkg "$MUSTER_BUILD/tools/muster-run" -n 2 "$pagerank" ./empty.dpkg
finish
