#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Engines in modelled time: a table, and a picture of it, in build/bench/.
# usage: bench-engine.sh engine: the Tianhe paper's figures; minutes, as all bits are moved and added
#        bench-engine.sh model: with less of each part of an engine
here=$(cd "$(dirname "$0")" && pwd)
out=${MUSTER_BUILD:?}/bench table=$out/bench-$1.txt
mkdir -p "$out" || exit
option=
[ "$1" = engine ] || option=--sweep
"$MUSTER_BUILD/selftests/engine_bench" $option >"$table"
status=$?
cat "$table"
if command -v gnuplot >/dev/null; then
	gnuplot -e "table='$table'; folder='$out'" "$here/bench-$1.gp" &&
		echo "Picture: $out/bench-$1.png"
else
	echo "No picture: gnuplot is not installed (make setup)" >&2
fi
exit $status
