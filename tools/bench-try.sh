#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# make bench-try: is there a collective and size at which the path that is taken where nothing is
# forced costs more than the better one? Both are measured 21 times in turn. A cell whose median is more than
# 10 % above is measured again, and if that is so again once more, 2,100 times: of 1,700 cells some are above three
# times by chance alone, where ranks share processors and times spread from 10 to 30 us. A line for each that is so all
# three times: medians, and in brackets from the least to the 99th percentile, of the last; and the three ratios.
# Exit status 1: there are such.
# usage: bench-try.sh [COLLECTIVE]...
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=${MUSTER_BUILD:-$here/../build}
[ $# -gt 0 ] || set -- all
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM HUP

# usage: measure TIMES RANKS BUFFERS SIZES COLLECTIVE...: of each cell RANKS BUFFERS COLLECTIVE BYTES, the ratio, and of what
# was taken and of the host path least, median and 99th percentile
measure() {
	times=$1 ranks=$2 buffers=$3 sizes=$4
	shift 4
	"$build/tools/muster-run" -n "$ranks" --no-prefix "$build/tools/muster_perf" -m "$sizes" -i "$times" -D 60 \
		-b "$buffers" "$@" </dev/null | awk -v of="$ranks $buffers" '
	/^# .*times in us/ { name = $2 }
	/^#/ { next }
	{
		split($0, part, "|")
		split(part[2], taken, " ")
		split(part[3], host, " ")
		if (taken[3] > 0 && host[3] > 0)
			print of, name, $1, taken[3] / host[3], taken[2], taken[3], taken[4], host[2], host[3], host[4]
	}'
}

# usage: again TIMES FILE: its slow cells, measured once more
again() {
	awk '$5 > 1.1' "$2" | while read -r ranks buffers name bytes _; do
		measure "$1" "$ranks" "$buffers" "$bytes:$bytes" "$name"
	done
}

for ranks in ${RANKS:-2 4}; do
	for buffers in muster malloc; do
		measure 21 "$ranks" "$buffers" "${SIZES:-8:4M}" "$@"
	done
done >"$dir/once"
again 21 "$dir/once" >"$dir/twice"
again 2100 "$dir/twice" >"$dir/thrice"

cd "$dir"
awk '
{
	cell = $1 " " $2 " " $3 " " $4
	measured[FILENAME]++
	ratios[cell] = ratios[cell] sprintf(" %.2f", $5)
}
$5 > 1.1 { slow[FILENAME]++ }
$5 > 1.1 && FILENAME == "thrice" {
	printf "%s ranks, %s, %-24s %8d bytes: %.2f us [%.2f to %.2f], host path %.2f [%.2f to %.2f]: x%s\n",
		$1, $2, $3, $4, $7, $6, $8, $10, $9, $11, ratios[cell]
}
END {
	printf "# of %d cells %d are more than 10 %% above the better path, %d of these again, and %d a third time\n",
		measured["once"], slow["once"], slow["twice"], slow["thrice"]
	exit !measured["once"] || slow["thrice"] > 0
}' once twice thrice
