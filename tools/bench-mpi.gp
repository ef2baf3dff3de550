# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Draws what tools/bench_mpi.sh has measured: how long an operation takes on Muster beside the better
# MPI, and an MPI's program on Muster beside the same without, by operation; lines are quartiles. Points are what two
# processes take with the machine alone.
# usage: gnuplot -e "table='FILE'; folder='DIR'" tools/bench-mpi.gp

set terminal pngcairo size 1500,1000 font ",11"
set output folder . "/bench-mpi.png"
set style fill solid 0.6
set boxwidth 0.25
set grid y
set logscale y 2
set yrange [0.0625:4]
set xrange [-0.6:*]
set ytics ("1/16" 0.0625, "1/8" 0.125, "1/4" 0.25, "1/2" 0.5, "1" 1, "2" 2, "4" 4)
set ylabel "times as long"
set xtics rotate by -30
set rmargin 12
set key outside bottom center horizontal
rows(ranks, library) = sprintf("awk '$1 == %s && $3 == \"muster\" { at[$2] = n++ } \
	$1 == %s && $3 == \"%s\" && NF == 9 { print at[$2], $2, $7, $8, $9 }' %s", ranks, ranks, library, table)
place(library) = library eq "muster" ? -0.27 : library eq "mpich+" ? 0.27 : 0
name(library) = library eq "muster" ? "Muster, of the better MPI" : \
	library eq "mpich+" ? "MPICH on Muster, of MPICH" : \
	library eq "openmpi+" ? "Open MPI on Muster, of Open MPI" : \
	library eq "ring" ? "shared memory alone" : "the kernel's copies alone"

set multiplot layout 2,1 title "the same loops on Muster and on Debian's MPIs"
do for [ranks in "2 4"] {
	libraries = ""
	machine = ranks eq "2" ? "ring cma" : ""
	do for [library in "muster openmpi+ mpich+"] {
		if (strlen(system(rows(ranks, library)))) { libraries = libraries . library . " " }
	}
	set title ranks . " ranks"
	plot 1 with lines lc "black" notitle, \
		for [library in libraries] "< " . rows(ranks, library) \
			using ($1 + place(library)):3 with boxes title name(library), \
		for [library in libraries] "< " . rows(ranks, library) \
			using ($1 + place(library)):3:4:5 with yerrorbars lc "black" pt 0 notitle, \
		for [library in machine] "< " . rows(ranks, library) \
			using ($1 + place("muster")):3 with points lc "black" pt (library eq "ring" ? 2 : 6) title name(library), \
		"< " . rows(ranks, "muster") using 1:3:xtic(2) with points pt -1 notitle
}
unset multiplot
