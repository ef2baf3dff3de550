# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Draws what engine_bench --sweep says: how long an operation takes with less of each part of an engine.
# usage: gnuplot -e "table='FILE'; folder='DIR'" tools/bench-model.gp

set terminal pngcairo size 1200,1350 font ",11"
set output folder . "/bench-model.png"
set grid
set key right top
set logscale y
of(part, bytes) = sprintf("< awk '$1 == \"%s\" && $4 == %d' %s", part, bytes, table)
name(bytes) = bytes < 1024 ? sprintf("%d B", bytes) : sprintf("%d KiB", bytes / 1024)

set multiplot layout 3,2 title "32 nodes in modelled time, with less of what an engine is made of"
set key bottom right
set title "units: allreduces of 32 tasks at once"
set ylabel "operations per ms"
set xlabel "units of each NIC"
set xrange [0.5:8.5]
plot for [b in "256 8192 65536"] of("units", b + 0) using 2:7 with linespoints title name(b + 0)
set key at graph 0.97, 0.8
set title "packet buffer: allreduces of 8 tasks at once"
set ylabel "us until the last has ended"
set xlabel "KiB of each unit"
set xrange [-16:528]
plot for [b in "8192 65536 524288"] of("buffer", b + 0) using ($2 / 1024):6 with linespoints title name(b + 0)
set key top right
set title "window: an allreduce"
set xlabel "sequences that a send may be ahead"
set xrange [0.5:8.5]
plot for [b in "256 8192 65536"] of("window", b + 0) using 2:6 with linespoints title name(b + 0)
set title "pulses: a broadcast"
set xlabel "pulses in flight"
set xrange [0.5:4.5]
plot for [b in "262144 524288 1048576"] of("pulses", b + 0) using 2:6 with linespoints title name(b + 0)
set title "packet buffer: shared, or a fixed part for each of 32 tasks, of which some run"
set xlabel "tasks that run an allreduce"
set ylabel "operations per ms"
set logscale x 2
set xrange [0.9:36]
set key bottom right
plot for [b in "65536 524288"] of("shared", b + 0) using 2:7 with linespoints title name(b + 0) . ", shared", \
	for [b in "65536 524288"] of("fixed", b + 0) using 2:7 with linespoints dashtype 2 title name(b + 0) . ", fixed"
unset multiplot
