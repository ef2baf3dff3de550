#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The bump in the wire beside Open MPI over TCP between the same hosts (network
# namespaces), past the bumps over a bridge of the kernel, and through them, in turns;
# other traffic through bumps beside a plain forwarder; and what bumps as logic would
# take, in modelled time. Writes build/bench-bump/. Open MPI polls, so where hosts are
# more than CPUs its figures tell of that, and not of its network.
# COUNT: allreduces of each measurement (100000). ROUNDS: of other traffic (21).
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

latency() {
	mpicc -O2 -o "$scratch/allreduce" "$home/mpi/allreduce.c"
	say "# what hosts bytes mean_us median_us min_us spread_% repeated; ${COUNT:-100000} each" \
		>"$out/latency.dat"
	for hosts in ${HOSTS:-2 4 8}; do
		for bytes in ${SIZES:-8 32 128 256}; do
			line=$("$run" --bump=cube --no-bind --no-prefix -n "$hosts" \
				"$build/tools/muster_bump_perf" -s "$bytes" -n "${COUNT:-100000}")
			say "bump $line" | tee -a "$out/latency.dat"
			line=$(mpi eth1 "$hosts" "$scratch/allreduce" "$bytes" "${COUNT:-100000}")
			say "mpi $line" | tee -a "$out/latency.dat"
			line=$(mpi eth0 "$hosts" "$scratch/allreduce" "$bytes" "${COUNT:-100000}")
			say "mpi-through-bumps $line" | tee -a "$out/latency.dat"
		done
	done
}

# ---- a solver ---------------------------------------------------------------------

# The same program on both, in turns: seconds, seconds in allreduces, residual.
solver() {
	gcc -O2 -I"$home/../uapi" -o "$scratch/lattice" "$home/mpi/lattice.c"
	mpicc -O2 -DUSE_MPI -o "$scratch/lattice-mpi" "$home/mpi/lattice.c"
	say "# what hosts seconds in_allreduces residual; side ${SIDE:-4}, ${ITERATIONS:-2000} iterations" |
		tee "$out/solver.dat"
	for hosts in ${HOSTS:-2 4 8}; do
		for _ in 1 2 3; do
			say "bump $hosts $("$run" --bump=cube --no-bind --no-prefix -n "$hosts" \
				"$scratch/lattice" "${SIDE:-4}" "${ITERATIONS:-2000}")"
			say "mpi $hosts $(mpi eth1 "$hosts" "$scratch/lattice-mpi" "${SIDE:-4}" \
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
	cat "$out/model.dat"
}

for part in ${*:-model latency solver traffic}; do
	$part
done
if [ -f "$out/latency.dat" ] && [ -f "$out/model.dat" ]; then
	gnuplot -e "dir='$out'" "$home/bench-bump.gp"
	say "pictures: $out/latency.png $out/model.png"
fi
