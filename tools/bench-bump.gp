# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The pictures of bench-bump.sh, after figures 2 and 3 of the paper.
set grid
set xlabel "hosts"
set ylabel "microseconds"
set logscale x 2
set style line 1 lc rgb "#b03030" lw 2 pt 7 ps 1.2
set style line 2 lc rgb "#b03030" lw 1 pt 6 ps 1.2 dt 2
set style line 3 lc rgb "#2050a0" lw 2 pt 5 ps 1.2
set style line 4 lc rgb "#2050a0" lw 1 pt 4 ps 1.2 dt 2
set style line 5 lc rgb "#308030" lw 2 pt 9 ps 1.2
set style line 6 lc rgb "#a06000" lw 2 pt 11 ps 1.2

# ---- as it was, on this machine: four sizes ----

set terminal pngcairo size 1000, 800
set output dir."/latency.png"
set logscale y
set yrange [1:1e6]	# room for the key
set xrange [1.8:9]
set xtics (2, 4, 8)
set key left top
pick(what, bytes, column) = sprintf("< awk '$1 == \"%s\" && $3 == %s { print $2, $%d }' %s/latency.dat", \
				    what, bytes, column, dir)
set multiplot layout 2, 2 title "Allreduce between network namespaces of one machine, wall clock"
do for [bytes in "8 128 32 256"] {
	set title bytes." bytes"
	plot pick("mpi", bytes, 4) using 1:2 with linespoints ls 1 title "Open MPI, TCP: mean", \
	     pick("mpi", bytes, 6) using 1:2 with linespoints ls 2 title "minimum", \
	     pick("bump", bytes, 4) using 1:2 with linespoints ls 3 title "bump: mean", \
	     pick("bump", bytes, 6) using 1:2 with linespoints ls 4 title "minimum"
}
unset multiplot

# ---- modelled, hosts take no time: growth ----

set terminal pngcairo size 900, 500
set output dir."/model.png"
set title "Allreduce of 8 bytes by bumps, modelled; hosts take no time"
set xrange [*:*]
set yrange [1:*]
set xtics auto
set key outside right top
plot dir."/model.dat" using 1:2 with linespoints ls 1 title "1 GbE, ring", \
     "" using 1:5 with linespoints ls 6 title "1 GbE, torus", \
     "" using 1:3 with linespoints ls 5 title "1 GbE, tree", \
     "" using 1:4 with linespoints ls 3 title "1 GbE, doubling", \
     "" using 1:8 with linespoints ls 4 title "10 GbE, doubling"

# ---- modelled, hosts take time: bumps beside software ----

set terminal pngcairo size 1000, 800
set output dir."/spread.png"
unset logscale y
set yrange [0:*]
set key inside left top
array block[4] = [0, 1, 2, 6]	# of spread.dat
array kind[4] = ["1 GbE, hosts of 10 us, rare", "10 GbE, hosts of 3 us, rare", \
		 "1 GbE, hosts of 100 us, rare", "1 GbE, hosts of 100 us, each"]
set multiplot layout 2, 2 title "Allreduce of 8 bytes, modelled; hosts take time, and sometimes or always some more"
do for [i = 1:4] {
	set title kind[i]
	plot dir."/spread.dat" index block[i] using 1:5 with linespoints ls 1 title "software: mean", \
	     "" index block[i] using 1:6 with linespoints ls 2 title "minimum", \
	     "" index block[i] using 1:2 with linespoints ls 3 title "bumps: mean", \
	     "" index block[i] using 1:3 with linespoints ls 4 title "minimum"
}
unset multiplot

# ---- between mean and minimum: as it was, as modelled, and the paper's ranges ----

set terminal pngcairo size 1400, 450
set output dir."/stability.png"
set ylabel "mean less minimum, % of the mean"
set yrange [0:100]
set object 1 rectangle from graph 0, first 10 to graph 1, first 25 fc rgb "#b03030" fs transparent solid 0.15 noborder behind
set object 2 rectangle from graph 0, first 3 to graph 1, first 15 fc rgb "#2050a0" fs transparent solid 0.15 noborder behind
set multiplot layout 1, 3 title "Spread: red Open MPI or software, blue bumps; shaded: the paper's, 10 to 25 % and 3 to 15 %"
set title "on this machine, wall clock"
plot for [bytes in "8 32 128 256"] pick("mpi", bytes, 7) using 1:2 with linespoints ls 1 notitle, \
     for [bytes in "8 32 128 256"] pick("bump", bytes, 7) using 1:2 with linespoints ls 3 notitle
set title "modelled, 1 GbE, hosts of 10 us, the same noise"
set yrange [0:50]
set xrange [1.8:18]
set xtics (2, 4, 8, 16)
plot dir."/spread.dat" index 0 using 1:7 with linespoints ls 1 title "software, rare", \
     "" index 4 using 1:7 with linespoints ls 2 title "software, each", \
     "" index 0 using 1:4 with linespoints ls 3 title "bumps, rare", \
     "" index 4 using 1:4 with linespoints ls 4 title "bumps, each"
set title "modelled, 1 GbE, hosts of 100 us, rare"
plot dir."/spread.dat" index 2 using 1:7 with linespoints ls 1 title "software", \
     "" index 2 using 1:4 with linespoints ls 4 title "bumps, the same noise", \
     "" index 2 using 1:10 with linespoints ls 3 title "bumps, set to 3 % on 2 hosts"
unset multiplot
