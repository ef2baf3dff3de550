# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Latency and bandwidth of the allreduce by size, from bench.dat in `folder`:
# bytes, and the microseconds of limit, NIC path and host path.

data = folder . '/bench.dat'
titles = "'bare machine' 'NIC path' 'host path'"

do for [format in "svg png"] {
	if (format eq "svg") { set terminal svg size 900,420 background rgb 'white' }
	else { set terminal pngcairo size 1350,630 fontscale 1.3 }
	set output folder . '/bench.' . format
	set multiplot layout 1,2 title 'allreduce of f64, 2 ranks'
	set grid
	set logscale y
	set logscale x 2
	set xrange [4:8 * 2**20]
	set xtics ('8' 8, '64' 64, '512' 512, '4 Ki' 4096, '32 Ki' 32768, '256 Ki' 262144, '2 Mi' 2097152)
	set xlabel 'bytes'
	set key left top
	set ylabel 'latency (us)'
	set format y '%g'
	plot for [i=1:3] data using 1:(column(i + 1)) with linespoints title word(titles, i)
	set key right bottom
	set ylabel 'bandwidth (GB/s)'
	plot for [i=1:3] data using 1:($1 / column(i + 1) / 1e3) with linespoints title word(titles, i)
	unset multiplot
}
