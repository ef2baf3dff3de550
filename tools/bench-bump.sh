#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The bump in the wire beside Open MPI over TCP between the same hosts (network
# namespaces), past the bumps over a bridge of the kernel, and through them, in turns;
# other traffic through bumps beside a plain forwarder; and what bumps as logic would
# take, in modelled time. Writes build/bench-bump/. Open MPI polls, so where hosts are
# more than CPUs its figures tell of that, and not of its network.
# COUNT: allreduces of each measurement (3000: some ten minutes in all; the paper has
#   100000, which takes hours where hosts are many more than CPUs). BLOCKS: turns that the
#   two systems take for them, all sizes and hosts in each (3). THROUGH: of Open MPI
#   through bumps (300). ROUNDS: of other traffic (21).
# HOSTS, SIZES: lists ("2 4 8", "8 32 128 256").
set -eu

build=$MUSTER_BUILD
home=$(cd "$(dirname "$0")" && pwd)
out=$build/bench-bump
run=$build/tools/muster-run
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() {
	printf '%s\n' "$*"
}

# mpi DEVICE HOSTS PROGRAM [ARGUMENT]...
mpi() {
	export MUSTER_MPI_DEVICE="$1" MUSTER_BUMP_BRIDGE=yes
	n=$2
	shift 2
	rm -rf "$scratch/hosts"
	mkdir "$scratch/hosts"
	"$run" --bump=cube --no-bind --no-prefix -n "$n" "$home/mpi/in_hosts.sh" "$scratch/hosts" "$@"
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

# One line of latency.turns: what, and what the program says.
turn() {
	what=$1
	shift
	if line=$("$@" 2>"$scratch/errors"); then
		say "$what $line" | tee -a "$out/latency.turns"
	else
		cat "$scratch/errors" >&2
		exit 1
	fi
}

# Of all turns of a system, hosts and bytes: the mean and the minimum of all allreduces,
# and the median of the turns' medians.
summary() {
	say "# what hosts bytes mean_us median_us min_us spread_% repeated allreduces" >"$out/latency.dat"
	sort -s -k 1,1 -k 2,2n -k 3,3n -k 5,5g "$out/latency.turns" | awk -v each="$count" -v through="${THROUGH:-300}" '
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

latency() {
	mpicc -O2 -o "$scratch/allreduce" "$home/mpi/allreduce.c"
	: >"$out/latency.turns"
	for block in $(seq "$blocks"); do
		say "# turn $block of $blocks: $count allreduces of each; $(date +%T)"
		for n in $hosts; do
			for bytes in $sizes; do
				turn bump "$run" --bump=cube --no-bind --no-prefix -n "$n" \
					"$build/tools/muster_bump_perf" -s "$bytes" -n "$count"
				turn mpi mpi eth1 "$n" "$scratch/allreduce" "$bytes" "$count"
				[ "$block" -gt 1 ] || turn mpi-through-bumps \
					mpi eth0 "$n" "$scratch/allreduce" "$bytes" "${THROUGH:-300}"
			done
		done
		summary
	done
	cat "$out/latency.dat"
}

# ---- a solver ---------------------------------------------------------------------

# The same program on both, in turns: seconds, seconds in allreduces, residual.
solver() {
	gcc -O2 -I"$home/../uapi" -o "$scratch/lattice" "$home/mpi/lattice.c"
	mpicc -O2 -DUSE_MPI -o "$scratch/lattice-mpi" "$home/mpi/lattice.c"
	say "# what hosts seconds in_allreduces residual; side ${SIDE:-4}, ${ITERATIONS:-2000} iterations" |
		tee "$out/solver.dat"
	for n in $hosts; do
		for _ in 1 2 3; do
			say "bump $n $("$run" --bump=cube --no-bind --no-prefix -n "$n" \
				"$scratch/lattice" "${SIDE:-4}" "${ITERATIONS:-2000}")"
			say "mpi $n $(mpi eth1 "$n" "$scratch/lattice-mpi" "${SIDE:-4}" \
				"${ITERATIONS:-2000}")"
		done
	done | tee -a "$out/solver.dat"
	awk '!/#/ { t[$1 " " $2] += $3; hosts[$2] }
		END { for (h in hosts) printf "%d hosts: MPI takes %.2f times as long as the bump\n", h,
			t["mpi " h] / t["bump " h] }' "$out/solver.dat" | sort -n | tee -a "$out/solver.dat"
}

# ---- other traffic ----------------------------------------------------------------

# copy OPTIONS: bits per second and retransmissions from host 1 to host 0
copy() {
	cat >"$scratch/copy.sh" <<-'END'
		if [ "$MUSTER_RANK" = 0 ]; then
			iperf3 -s >/dev/null 2>&1 &
			until [ -e "$1.end" ]; do sleep 0.1; done
			kill $!
			exit 0
		fi
		until iperf3 -c 10.77.0.1 -t 1 -J >"$1" 2>/dev/null && grep -q sum_received "$1"; do
			sleep 0.1
		done
		touch "$1.end"
	END
	rm -f "$scratch/iperf.json.end"
	MUSTER_BUMPD_OPTIONS=$1 "$run" --bump -n 2 sh "$scratch/copy.sh" "$scratch/iperf.json"
	python3 -c 'import json, sys
end = json.load(open(sys.argv[1]))["end"]
print(end["sum_received"]["bits_per_second"], end["sum_sent"]["retransmits"])' "$scratch/iperf.json"
}

traffic() {
	: >"$scratch/plain"
	: >"$scratch/bump"
	for _ in $(seq "${ROUNDS:-21}"); do
		copy --plain >>"$scratch/plain"
		copy "" >>"$scratch/bump"
	done
	paste -d ' ' "$scratch/bump" "$scratch/plain" >"$out/traffic.dat"
	say "# one TCP stream, ${ROUNDS:-21} turns each: median, least, most" | tee "$out/traffic.txt"
	for what in plain bump; do
		say "$what bits/s: $(cut -d ' ' -f 1 "$scratch/$what" | median)," \
			"retransmissions: $(cut -d ' ' -f 2 "$scratch/$what" | median)"
	done | tee -a "$out/traffic.txt"
	say "bump of plain: $(awk '{ print $1 / $3 }' "$out/traffic.dat" | median)" |
		tee -a "$out/traffic.txt"
	cat >"$scratch/both.sh" <<-'END'
		"$1" sum 5 >/dev/null &
		python3 "$2" 1024 10000
		wait $!
	END
	say "1 GiB and 10,000 echoes while allreduces run:" | tee -a "$out/traffic.txt"
	"$run" --bump --no-prefix -n 2 sh "$scratch/both.sh" "$build/selftests/bump_hosts" \
		"$home/../selftests/bump_traffic.py" | tee -a "$out/traffic.txt"
}

# ---- modelled time ------------------------------------------------------------------

model() {
	"$build/selftests/bump_model" 8 >"$out/model.dat"
	"$build/selftests/bump_model" --spread 8 >"$out/spread.dat"
	cat "$out/model.dat" "$out/spread.dat"
}

[ $# -gt 0 ] || set -- model latency solver traffic
for part; do
	$part
done
if [ -f "$out/latency.dat" ] && [ -f "$out/spread.dat" ]; then
	gnuplot -e "dir='$out'" "$home/bench-bump.gp"
	say "pictures: $out/latency.png $out/model.png $out/spread.png"
fi
