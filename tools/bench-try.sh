#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-try: is there a collective and size at which the path that is taken where nothing is
# forced costs more than the better one? Both are measured 21 times in turn; a line for each
# cell in which its median is more than 10 % above: medians, and in brackets from the least to the 99th
# percentile. Exit status 1: there are such. usage: bench-try.sh [COLLECTIVE]...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${MUSTER_BUILD:-$here/../build}
[ $# -gt 0 ] || set -- all

for ranks in ${RANKS:-2 4}; do
	for buffers in muster malloc; do
		"$build/tools/muster-run" -n "$ranks" --no-prefix "$build/tools/muster_perf" -m "${SIZES:-8:4M}" \
			-i 21 -D 60 -b $buffers "$@" | sed "s/^/$ranks $buffers /"
	done
done | awk '
$3 == "#" {
	if (/times in us/)
		name = $4
	next
}
{
	split($0, part, "|")
	split(part[1], head, " ")
	split(part[2], nic, " ")
	split(part[3], host, " ")
	if (!(nic[3] > 0 && host[3] > 0))
		next
	cells++
	if (nic[3] <= 1.1 * host[3])
		next
	slower++
	printf "%s ranks, %s, %-24s %8d bytes: %.2f us [%.2f to %.2f], host path %.2f [%.2f to %.2f]: %.2f x\n",
		head[1], head[2], name, head[3], nic[3], nic[2], nic[4], host[3], host[2], host[4], nic[3] / host[3]
}
END {
	printf "# %d of %d cells are more than 10 %% above the better path\n", slower, cells
	exit !cells || slower > 0
}'
