#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The SHARP paper's measurements in modelled time: the tables, and a picture of them, in
# build/bench/; then what one thread reduces on this machine, which is no modelled time.
# Minutes, as all bits are moved and added.
here=$(cd "$(dirname "$0")" && pwd)
out=${MUSTER_BUILD:?}/bench
mkdir -p "$out" || exit
"$MUSTER_BUILD/selftests/switch_model" >"$out/bench-switch.txt"
status=$?
cat "$out/bench-switch.txt"
if command -v gnuplot >/dev/null; then
	gnuplot -e "table='$out/bench-switch.txt'; folder='$out'" "$here/bench-switch.gp" &&
		echo "Picture: $out/bench-switch.png"
else
	echo "No picture: gnuplot is not installed (make setup)" >&2
fi
"$MUSTER_BUILD/selftests/switch_bench" || status=1
exit $status
