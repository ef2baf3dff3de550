#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The demonstration: PageRank of this machine's packages on four ranks, in four virtual
# machines with a NIC each (program, library, provider, driver, PCI device, engine, wire)
# and on the local device, with the NIC path and the host path of both side by side.
# usage: demo.sh BUILD     Exit status 0: all four gave the same bits.
set -eu

build=$1
program=$build/userlib/examples/pagerank
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() {
	"$build/tools/muster-run" -n 4 --no-prefix "$@" "$program"
}

# The times of one path: those of its vector and of its norm allreduce.
op_times() {
	awk -v path="$2" '$1 == path { printf "%12.1f", $5 }' "$1"
}

bits() {
	sed -n "s/^Digest.*$2 \([0-9a-f]*\).*/\1/p" "$1"
}

row() {
	printf '  %-22s %-5s %s  %s\n' "$3" "$2" "$(op_times "$1" "$2")" "$(bits "$1" "$2")"
}

echo "Four virtual machines, each with a Muster NIC, are booting ..."
start=$(date +%s)
run --vm >"$work/guests"
sed '/^[Dd]igest/d' "$work/guests"
echo "(booting, computing twice and ending took $(($(date +%s) - start)) s)"
run >"$work/local"

cat <<'HEAD'

Side by side; times in us an operation, of 4 ranks on this machine's CPUs:

  where                  path       vector        norm  digest of the scores
HEAD
row "$work/guests" NIC "four virtual machines"
row "$work/guests" host "four virtual machines"
row "$work/local" NIC "local device"
row "$work/local" host "local device"
if [ "$(for where in guests local; do
	bits "$work/$where" NIC
	bits "$work/$where" host
done | sort -u | wc -l)" -ne 1 ]; then
	echo "The results DIFFER."
	exit 1
fi
echo
echo "All four gave the same bits."
