# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The pictures of bench-bump.sh, after figures 2 and 3 of the paper.
set terminal pngcairo size 900, 500
set key left top
set grid

set output dir."/latency.png"
set title "Allreduce of 8 bytes on network namespaces of one machine"
set xlabel "hosts"
set ylabel "microseconds"
set logscale y
set yrange [1:*]
pick(what, column) = sprintf("< awk '$1 == \"%s\" && $3 == 8 { print $2, $%d }' %s/latency.dat", what, column, dir)
plot pick("mpi", 5) using 1:2 with linespoints title "Open MPI, TCP: median", \
     pick("mpi", 4) using 1:2 with linespoints title "Open MPI, TCP: mean", \
     pick("bump", 5) using 1:2 with linespoints title "bump: median", \
     pick("bump", 4) using 1:2 with linespoints title "bump: mean"

set output dir."/model.png"
set title "Allreduce of 8 bytes by bumps, modelled"
set logscale x 2
plot dir."/model.dat" using 1:2 with linespoints title "1 GbE, ring", \
     "" using 1:5 with linespoints title "1 GbE, torus", \
     "" using 1:3 with linespoints title "1 GbE, tree", \
     "" using 1:4 with linespoints title "1 GbE, recursive doubling", \
     "" using 1:8 with linespoints title "10 GbE, recursive doubling"
