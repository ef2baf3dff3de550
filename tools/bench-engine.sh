#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Tianhe paper's figures in modelled time: the table, and a picture of it, in build/bench/.
# Minutes, as all bits are moved and added.
here=$(cd "$(dirname "$0")" && pwd)
out=${MUSTER_BUILD:?}/bench
mkdir -p "$out" || exit
"$MUSTER_BUILD/selftests/engine_bench" >"$out/bench-engine.txt"
status=$?
cat "$out/bench-engine.txt"
if command -v gnuplot >/dev/null; then
	gnuplot -e "table='$out/bench-engine.txt'; folder='$out'" "$here/bench-engine.gp" &&
		echo "Picture: $out/bench-engine.png"
else
	echo "No picture: gnuplot is not installed (make setup)" >&2
fi
exit $status
