# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Draws what tools/bench-switch.sh has measured: time and bandwidth by size, what a host sends
# and receives, locks beside barriers, how many hosts there are, and how far apart they start.
# usage: gnuplot -e "table='FILE'; folder='DIR'" tools/bench-switch.gp

set terminal pngcairo size 1650,1000 font ",11"
set output folder . "/bench-switch.png"
set grid
set key left top
set linetype 5 linecolor "black"
of(name) = sprintf("< awk '$1 == \"%s\"' %s", name, table)
sizes = "set logscale x 2; set format x '%.0b %BB'; set xtics 8, 64"
counts = "set format x '%g'; set xtics auto"

set multiplot layout 2,3 title "The SHARP paper's measurements in modelled time"
@sizes
set logscale y
set title "64 hosts at 4 leaf switches: time (hosts: no congestion)"
set ylabel "us"
plot for [way = 0:4] of("time") using 2:(column(3 + way)) with linespoints \
	title word("hosts NIC LLT SAT ping-pong", way + 1)
set title "bandwidth (the paper: SAT at most 96 % of ping-pong)"
set ylabel "bytes/ns"
unset logscale y
plot for [way = 0:4] of("time") using 2:($2 / column(3 + way) / 1000) with linespoints \
	title word("hosts NIC LLT SAT ping-pong", way + 1)
set title "8 hosts at one switch: bytes of a host, for each of the message"
set ylabel "times the message"
set yrange [0:6]
plot of("bytes") using 2:($3 / $2) with linespoints pointtype 6 pointsize 2 title "hosts: sent", \
	of("bytes") using 2:($4 / $2) with linespoints title "NIC: sent", \
	of("bytes") using 2:($6 / $2) with linespoints title "LLT: sent", \
	of("bytes") using 2:($7 / $2) with linespoints title "LLT: received", \
	of("bytes") using 2:($8 / $2) with linespoints pointtype 6 pointsize 2 title "SAT: sent", \
	of("bytes") using 2:($9 / $2) with linespoints title "SAT: received"
@counts
set title "a lock beside a barrier (the paper: alike); 64 at two levels"
set ylabel "us"
set yrange [0:*]
set xlabel "hosts"
plot of("lock") using 2:3 with linespoints title "barrier", of("lock") using 2:4 with linespoints title "lock"
set title "streaming by hosts: 4 MiB"
set ylabel "bytes/ns"
set yrange [0:14]
plot of("hosts") using 2:4 with linespoints title "at one switch", \
	of("each") using 2:4 with linespoints title "at each of 4 (the paper: 7 % less at 16)"
unset logscale x
set yrange [0:16]
set title "64 hosts that start apart: from the last start"
set ylabel "us"
set xlabel "us from the first start to the last one"
plot of("skew") using 2:3 with linespoints title "8 bytes by LLT", \
	of("skew") using 2:4 with linespoints title "64 KiB by SAT"
unset multiplot
