#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The bump in the wire beside Open MPI over TCP between the same hosts (network
# namespaces), past the bumps over a bridge of the kernel, and through them, in turns;
# other traffic through bumps beside a plain forwarder; and what bumps as logic would
# take, in modelled time. Writes build/bench-bump/.
#
# usage: bench-bump.sh [PART]...    model latency solver traffic hostile layouts kills; all
# COUNT: allreduces of each size and number of hosts (3000; the paper has 100000). BLOCKS:
#   turns that the two systems take for them, all sizes and hosts in each (3). THROUGH: of
#   Open MPI through bumps (300). HOSTS, SIZES: lists ("2 4 8", "8 32 128 256"). What was
#   measured is kept until all is there: a run that was stopped goes on where it was.
# SLICE: microseconds that the scheduler gives a process at a time, of both systems (100).
#   Where hosts are more than CPUs somebody must wait for a CPU: ranks and bumps sleep while
#   they wait for packets, Open MPI polls, and yields (mpi_yield_when_idle); without short
#   slices its figures tell of the scheduler alone.
# SIDE, ITERATIONS, PAIRS: of the solver (4, 2000, 7). ROUNDS: of other traffic (21).
# PACKETS: malformed ones (1000000). LAYOUTS: hosts (2 to 16). KILLS: of muster-run (20).
# shellcheck disable=SC2317 # parts are called by their names
set -eu

build=$MUSTER_BUILD
home=$(cd "$(dirname "$0")" && pwd)
out=$build/bench-bump
run=$build/tools/muster-run
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM	# when what runs has ended; nothing is left behind

say() {
	printf '%s\n' "$*"
}

# sliced COMMAND...: in short slices, where the kernel can do that
sliced() {
	[ -x "$scratch/slice" ] || gcc -O2 -o "$scratch/slice" "$home/mpi/slice.c"
	"$scratch/slice" "${SLICE:-100}" "$@"
}

# mpi DEVICE HOSTS PROGRAM [ARGUMENT]...
mpi() {
	export MUSTER_MPI_DEVICE="$1" MUSTER_BUMP_BRIDGE=yes
	n=$2
	shift 2
	rm -rf "$scratch/hosts"
	mkdir "$scratch/hosts"
	sliced "$run" --bump=cube --no-bind --no-prefix -n "$n" "$home/mpi/in_hosts.sh" "$scratch/hosts" "$@"
}

# The median, and the smallest and largest, of numbers in lines.
median() {
	sort -g | awk '{ v[NR] = $1 } END { printf "%.4g %.4g %.4g\n", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

# ---- allreduces -------------------------------------------------------------------

hosts=${HOSTS:-2 4 8}
sizes=${SIZES:-8 32 128 256}
blocks=${BLOCKS:-3}
count=$((${COUNT:-3000} / blocks))
through=${THROUGH:-300}
kept=$out/latency.kept

# A turn is a run of all sizes: system, hosts, block.
turns() {
	for block in $(seq "$blocks"); do
		for n in $hosts; do
			echo bump "$n" "$block"
			echo mpi "$n" "$block"
			[ "$block" -gt 1 ] || echo mpi-through-bumps "$n" 1
		done
	done
}

# Seconds that are left, by what turns of each kind have taken so far.
estimate() {
	awk 'FILENAME == ARGV[1] {
			if (!done[$1 " " $2 " " $9]++) { took[$1 " " $2] += $10; nr[$1 " " $2]++ }
			next
		}
		$1 " " $2 " " $3 in done { next }
		(cell = $1 " " $2) in nr { left += took[cell] / nr[cell]; next }
		{ more = "more than " }
		END { if (left >= 90) printf "%s%d min", more, left / 60 + 0.5
			else printf "%s%d s", more, left }' "$kept" "$scratch/turns"
}

# turn WHAT HOSTS BLOCK: keeps a line for each size: what, what the program says (7
# columns), block, seconds of the turn
turn() {
	begin=$(date +%s)
	# shellcheck disable=SC2086 # lists
	case $1 in
	bump) sliced "$run" --bump=cube --no-bind --no-prefix -n "$2" \
		"$build/tools/muster_bump_perf" -s "$(echo $sizes | tr ' ' ,)" -n "$count" ;;
	mpi) mpi eth1 "$2" "$scratch/allreduce" "$count" $sizes ;;
	*) mpi eth0 "$2" "$scratch/allreduce" "$through" $sizes ;;
	esac >"$scratch/lines" 2>"$scratch/errors" || {
		cat "$scratch/errors" >&2
		exit 1
	}
	sed "s/^/$1 /; s/\$/ $3 $(($(date +%s) - begin))/" "$scratch/lines" >"$scratch/turn"
	cat "$scratch/turn" >>"$kept"
	done=$((done + 1))
	say "$1, $2 hosts: mean us$(awk '{ printf "%s %s B %s", (NR > 1 ? "," : ""), $3, $4 }' \
		"$scratch/turn"); $done of $(wc -l <"$scratch/turns") turns, $(estimate) left"
}

# Of all turns of a system, hosts and bytes: the mean and the minimum of all allreduces,
# and the median of the turns' medians.
summary() {
	say "# what hosts bytes mean_us median_us min_us spread_% repeated allreduces" >"$out/latency.dat"
	sort -s -k 1,1 -k 2,2n -k 3,3n -k 5,5g "$kept" | awk -v each="$count" -v through="$through" '
		function put() {
			if (!turns)
				return
			mean /= turns
			printf "%s %.2f %.2f %.2f %.1f %d %d\n", cell, mean, medians[int((turns + 1) / 2)],
				least, 100 * (1 - least / mean), repeated,
				turns * (cell ~ /through/ ? through : each)
		}
		cell != $1 " " $2 " " $3 { put(); turns = mean = repeated = 0; cell = $1 " " $2 " " $3 }
		{
			mean += $4
			medians[++turns] = $5
			least = turns == 1 || $6 < least ? $6 : least
			repeated += $8
		}
		END { put() }' >>"$out/latency.dat"
}

# How the mean grows from the fewest hosts to the most, of each size.
growth() {
	awk '!/#/ && $1 !~ /through/ { key = $1 " " $3
			if (!(key in first)) { first[key] = $4; from[key] = $2 }
			last[key] = $4; to[key] = $2 }
		END { for (key in first) printf "%s bytes, from %d to %d hosts: mean times %.1f\n",
			key, from[key], to[key], last[key] / first[key] }' "$out/latency.dat" | sort -V
}

# What was kept of other programs or settings is of no use.
kept_or_new() {
	say "$count $blocks $through $hosts $sizes ${SLICE:-100} $(cat "$build/tools/muster-bumpd" \
		"$build/tools/muster_bump_perf" "$home/mpi/allreduce.c" | cksum)" >"$scratch/settings"
	if cmp -s "$scratch/settings" "$kept.settings" && [ -s "$kept" ]; then
		say "# going on with what $kept has"
	else
		cp "$scratch/settings" "$kept.settings"
		: >"$kept"
	fi
}

latency() {
	mpicc -O2 -o "$scratch/allreduce" "$home/mpi/allreduce.c"
	kept_or_new
	turns >"$scratch/turns"
	done=0
	say "# $count allreduces of each size a turn; load $(cut -d ' ' -f 1 /proc/loadavg)"
	while read -r what n block; do
		if grep -q "^$what $n .* $block [0-9]*\$" "$kept"; then
			done=$((done + 1))
		else
			turn "$what" "$n" "$block" </dev/null
		fi
		summary
	done <"$scratch/turns"
	mv "$kept" "$out/latency.turns"
	rm "$kept.settings"
	cat "$out/latency.dat"
	growth | tee "$out/growth.txt"
}

# ---- a solver ---------------------------------------------------------------------

# The same program, built for both, in turns: seconds, seconds in allreduces, residual.
solver() {
	gcc -O2 -I"$home/../uapi" -o "$scratch/lattice" "$home/mpi/lattice.c"
	mpicc -O2 -DUSE_MPI -o "$scratch/lattice-mpi" "$home/mpi/lattice.c"
	say "# what hosts seconds in_allreduces residual; side ${SIDE:-4}, ${ITERATIONS:-2000} iterations" |
		tee "$out/solver.dat"
	for n in $hosts; do
		for _ in $(seq "${PAIRS:-7}"); do
			say "bump $n $(sliced "$run" --bump=cube --no-bind --no-prefix -n "$n" \
				"$scratch/lattice" "${SIDE:-4}" "${ITERATIONS:-2000}")"
			say "mpi $n $(mpi eth1 "$n" "$scratch/lattice-mpi" "${SIDE:-4}" \
				"${ITERATIONS:-2000}")"
		done
	done | tee -a "$out/solver.dat"
	for n in $hosts; do
		say "solver on $n hosts, time with Open MPI by time with the bump (median, least, most of" \
			"${PAIRS:-7} pairs): $(awk -v n="$n" '$2 != n { next }
				$1 == "bump" { bump = $3 }
				$1 == "mpi" { print $3 / bump }' "$out/solver.dat" | median)"
	done >"$scratch/ratios"
	tee -a "$out/solver.dat" <"$scratch/ratios"
}

# ---- other traffic ----------------------------------------------------------------

# copy OPTIONS SUMS: bits per second and retransmissions from host 1 to host 0. SUMS: yes,
# allreduces of these two hosts go on meanwhile.
copy() {
	cat >"$scratch/copy.sh" <<-'END'
		[ "$3" != yes ] || BUMP_ENOUGH=$1.end "$2" sum 3600 >/dev/null &
		if [ "$MUSTER_RANK" = 0 ]; then
			iperf3 -s >/dev/null 2>&1 &
			server=$!
			until [ -e "$1.end" ]; do sleep 0.1; done
			kill $server
			wait
			exit 0
		fi
		until iperf3 -c 10.77.0.1 -t 1 -J >"$1" 2>/dev/null && grep -q sum_received "$1"; do
			sleep 0.1
		done
		touch "$1.end"
		wait
	END
	rm -f "$scratch/iperf.json.end"
	MUSTER_BUMPD_OPTIONS=$1 "$run" --bump -n 2 sh "$scratch/copy.sh" "$scratch/iperf.json" \
		"$build/selftests/bump_hosts" "$2"
	python3 -c 'import json, sys
end = json.load(open(sys.argv[1]))["end"]
print(end["sum_received"]["bits_per_second"], end["sum_sent"]["retransmits"])' "$scratch/iperf.json"
}

# The same allreduces, but of two other hosts: what they cost in CPU time is the same.
copy_beside() {
	BUMP_ENOUGH=$scratch/enough "$run" --bump -n 2 "$build/selftests/bump_hosts" sum 3600 >"$scratch/sums" &
	beside=$!
	copy --plain no
	touch "$scratch/enough"
	wait "$beside"
	rm "$scratch/enough"
}

# compare NAME NAME: the second's medians beside the first's, and their ratio
compare() {
	for name; do
		say "$name: $(cut -d ' ' -f 1 "$scratch/$name" | median) bits/s," \
			"retransmissions $(cut -d ' ' -f 2 "$scratch/$name" | median)"
	done
	paste -d ' ' "$scratch/$2" "$scratch/$1" >"$out/traffic-$2.dat"
	say "$2 of $1: $(awk '{ print $1 / $3 }' "$out/traffic-$2.dat" | median)"
}

traffic() {
	rounds=${ROUNDS:-21}
	rm -f "$scratch/plain" "$scratch/bump" "$scratch/plain-beside-sums" "$scratch/bump-with-sums"
	for round in $(seq "$rounds"); do
		copy --plain no >>"$scratch/plain"
		copy "" no >>"$scratch/bump"
		copy_beside >>"$scratch/plain-beside-sums"
		copy "" yes >>"$scratch/bump-with-sums"
		say "round $round of $rounds: bump $(tail -n 1 "$scratch/bump"), plain" \
			"$(tail -n 1 "$scratch/plain"); while allreduces run" \
			"$(tail -n 1 "$scratch/bump-with-sums"), $(tail -n 1 "$scratch/plain-beside-sums")"
	done
	{
		say "# one TCP stream, $rounds turns each: median, least, most"
		compare plain bump
		compare plain-beside-sums bump-with-sums
	} | tee "$out/traffic.txt"
	cat >"$scratch/both.sh" <<-'END'
		BUMP_ENOUGH=$3 "$1" sum 3600 &
		python3 "$2" 1024 10000
		[ "$MUSTER_RANK" = 0 ] || touch "$3"
		wait $!
	END
	say "1 GiB, 10,000 pings and 10,000 echoes by UDP while allreduces run:" | tee -a "$out/traffic.txt"
	"$run" --bump --no-prefix -n 2 sh "$scratch/both.sh" "$build/selftests/bump_hosts" \
		"$home/../selftests/bump_traffic.py" "$scratch/enough" | tee -a "$out/traffic.txt"
	rm "$scratch/enough"
}

# ---- malformed packets ------------------------------------------------------------

# Every host sends as many to its bump while they all add up: no fewer than asked for.
hostile() {
	"$run" --bump --no-prefix -n 3 "$build/selftests/bump_hosts" hostile \
		$(((${PACKETS:-1000000} + 2) / 3)) | tee "$out/hostile.txt"
}

# ---- all layouts -------------------------------------------------------------------

# Every algorithm, operation and type against plain formulas, twice.
layouts() {
	right=0 again=0 all=0
	for n in ${LAYOUTS:-$(seq 2 16)}; do
		for per in 1 2 3; do
			all=$((all + 1))
			for time in first second; do
				"$run" --bump=torus --no-prefix -n $((n * per)) --per-host "$per" \
					"$build/selftests/bump_hosts" check >"$scratch/$time" || true
			done
			line=$(cat "$scratch/first")
			case $line in *' operations right, digest '*)
				right=$((right + 1))
				! cmp -s "$scratch/first" "$scratch/second" || again=$((again + 1)) ;;
			esac
			say "$n hosts, $per ranks each: $line"
		done
	done
	say "$right of $all layouts, 1 to 3 ranks a host: all ${line%%,*}; $again gave the same bits twice" |
		tee "$out/layouts.txt"
}

# ---- what is left of a runner that is killed ----------------------------------------

descendants() {
	for child in $(pgrep -P "$1"); do
		say "$child"
		descendants "$child"
	done
}

# Of processes by their ids: how many are still there.
alive() {
	nr=0
	for pid; do
		[ ! -e "/proc/$pid" ] || nr=$((nr + 1))
	done
	say "$nr"
}

spaces() {
	for pid; do
		readlink "/proc/$pid/ns/net" || true
	done | grep -vxF "$(readlink /proc/self/ns/net)" | sort -u
}

# 4 hosts with bumps each time. At most 10 seconds are given to what is going.
kills() {
	processes=0 namespaces=0
	ls /sys/class/net >"$scratch/devices"
	for _ in $(seq "${KILLS:-20}"); do
		"$run" --bump -n 4 sh -c 'echo here; exec sleep 3600' >"$scratch/here" &
		runner=$!
		until [ "$(grep -c here "$scratch/here")" = 4 ]; do
			sleep 0.1
		done
		# shellcheck disable=SC2046 # lists
		set -- $(descendants "$runner")
		spaces "$@" >"$scratch/spaces"
		kill -9 "$runner"
		wait "$runner" 2>"$scratch/killed" || true
		for _ in $(seq 100); do
			[ "$(alive "$@")" -gt 0 ] || break
			sleep 0.1
		done
		processes=$((processes + $(alive "$@")))
		namespaces=$((namespaces + $(readlink /proc/[0-9]*/ns/net 2>/dev/null | sort -u |
			grep -cxFf "$scratch/spaces" || true)))
	done
	ls /sys/class/net >"$scratch/now"
	say "muster-run --bump killed ${KILLS:-20} times, $# processes in $(wc -l <"$scratch/spaces")" \
		"namespaces each: left $processes processes, $namespaces namespaces," \
		"$(grep -cvxFf "$scratch/devices" "$scratch/now" || true) devices" | tee "$out/kills.txt"
}

# ---- modelled time ------------------------------------------------------------------

# Of each size, how time grows from 2 to 8 hosts that take time.
modelled_growth() {
	for bytes in $sizes; do
		"$build/selftests/bump_model" --spread "$bytes" | awk -v bytes="$bytes" '
			/^# (rare|each|once),/ { sub(/;.*/, ""); name = substr($0, 3) }
			/^# 8 hosts beside 2/ && name ~ /^rare/ {
				print bytes " bytes, " name ": " substr($0, 3)
			}'
	done
}

model() {
	"$build/selftests/bump_model" 8 >"$out/model.dat"
	"$build/selftests/bump_model" --spread 8 >"$out/spread.dat"
	"$build/selftests/bump_model" --cycles >"$out/cycles.txt"
	modelled_growth >"$out/modelled-growth.txt"
	cat "$out/model.dat" "$out/spread.dat" "$out/cycles.txt" "$out/modelled-growth.txt"
}

pictures() {
	[ -f "$out/latency.dat" ] && [ -f "$out/spread.dat" ] || return 0
	gnuplot -e "dir='$out'" "$home/bench-bump.gp"
	say "pictures: $out/latency.png $out/model.png $out/spread.png $out/stability.png"
}

main() {
	[ $# -gt 0 ] || set -- model latency solver traffic hostile layouts kills
	for part; do
		$part
	done
	case " $* " in *' model '* | *' latency '*) pictures ;; esac
	exit	# and read no further: what becomes of this file is of no matter to a long run
}

main "$@"
