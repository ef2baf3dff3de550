#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench: Muster beside the limits of the machine with 2 ranks, then NIC path
# beside host path with 4. Prints the tables; writes to build/bench/: bench.json,
# bench.dat, bench.svg, bench.png and the tables. Takes about a minute.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${MUSTER_BUILD:-$here/../build}
out=$build/bench
mkdir -p "$out"

"$build/tools/muster-run" -n 2 --no-prefix "$build/tools/muster_perf" \
	--against-limits="$out" >"$out/limits.txt"
cat "$out/limits.txt"
echo
"$build/tools/muster-run" -n 4 --no-prefix "$build/tools/muster_perf" -D 0.5 all \
	>"$out/ranks-4.txt"
cat "$out/ranks-4.txt"
echo

if command -v gnuplot >/dev/null; then
	gnuplot -e "folder='$out'" "$here/bench.gp"
	echo "Pictures: $out/bench.svg, $out/bench.png"
else
	echo "No pictures: gnuplot is not installed (make setup)" >&2
fi
echo "Figures: $out/bench.json"
