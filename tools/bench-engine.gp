# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Draws what tools/bench-engine.sh has measured: a row for each operation; time, how many times
# faster than the hosts, and how full a unit's buffer gets, by size, for 1, 8 and 32 tasks.
# usage: gnuplot -e "table='FILE'; folder='DIR'" tools/bench-engine.gp

set terminal pngcairo size 1500,1300 font ",11"
set output folder . "/bench-engine.png"
set logscale x 2
set format x "%.0b %BB"
set xtics 256, 16
set grid
set key left top
rows = "broadcast reduce allreduce"
of(name, tasks) = sprintf("< awk '$1 == \"%s\" && $2 == %d' %s", name, tasks, table)

set multiplot layout 3,3 title "32 nodes in modelled time: engines, and hosts by the paper's formulas"
do for [row = 1:3] {
	name = word(rows, row)
	set title name . ": time"
	set ylabel "us"
	set logscale y
	plot for [t in "1 8 32"] of(name, t + 0) using 3:4 with linespoints title t . " tasks", \
		for [t in "1 8 32"] of(name, t + 0) using 3:5 with lines dashtype 2 title t . ", hosts"
	unset logscale y
	set title name . ": times faster"
	set ylabel ""
	set yrange [0:*]
	plot for [t in "1 8 32"] of(name, t + 0) using 3:6 with linespoints title t . " tasks"
	set title name . ": fullest unit's buffer"
	set ylabel "%"
	set yrange [0:105]
	plot for [t in "1 8 32"] of(name, t + 0) using 3:7 with linespoints title t . " tasks"
	set yrange [*:*]
}
unset multiplot
