#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster_perf: that it measures what it says, not how fast that is.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
perf=$MUSTER_BUILD/tools/muster_perf
for program in "$run" "$perf"; do
	[ -x "$program" ] || skip_all "there is no $program (make all)"
done

rows() {
	grep -c '^ *[0-9][0-9]* |' out || true
}

all_collectives() {
	"$run" -n 3 --no-prefix "$perf" -c -i 10 -m 8:4K all >out
	same 211 "$(rows)"
	for collective in allreduce reduce broadcast barrier allgather reduce_scatter_block \
		alltoall gather scatter scan exscan allgatherv reduce_scatter gatherv scatterv \
		alltoallv alltoallw neighbour_allgather neighbour_alltoall neighbour_allgatherv \
		neighbour_alltoallv neighbour_alltoallw; do
		grep -q "^# $collective" out
	done
	grep -q '^# nic path taken: .' out
	grep -q '^# host path taken: .' out
	same 211 "$(grep -c 'equal  *pass' out)"
}
check "all collectives, both paths, with the same bits and right results" all_collectives

neighbours_of_few() {
	for ranks in 1 2; do
		"$run" -n $ranks --no-prefix "$perf" -c -i 10 -m 1K:1K neighbour_allgather \
			neighbour_alltoall neighbour_alltoallw >out
		same 3 "$(grep -c 'equal  *pass' out)"
	done
}
check "neighbours on a ring of one and of two" neighbours_of_few

# What reads OSU's tables takes lines that begin with a size: size, average, least, greatest, number.
osu_columns() {
	"$run" -n 3 --no-prefix "$perf" -z -c -D 0.01 -m 8:32 allreduce barrier >out
	same 2 "$(grep -c 'Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations' out)"
	same 4 "$(grep -c 'Pass$' out)"
	fails grep -q '^# host path' out
	awk '!/^#/ && NF == 10 && $3 <= $2 && $2 <= $4 && $5 > 0 && $6 <= $7 && $7 <= $8 && $8 <= $9' \
		out >sizes
	same "8 16 32" "$(echo $(cut -d' ' -f1 sizes))"
	same 1 "$(awk '!/^#/ && NF == 9 && $2 <= $1 && $1 <= $3' out | wc -l)"
}
check "-z prints OSU's columns and percentiles" osu_columns

# Who waits for the late one is in the operation for that long; the operation itself is short.
# A busy machine lets others be late, too: not by half as much, again and again.
skewed() {
	"$run" -n 3 --no-prefix "$perf" -f -x 1 -i 4 -m 8:8 --skew=100000:1 allreduce >out
	grep -q '^# rank 1 calls 100000 us later' out
	awk '$1 == 8 && $4 >= 50000 { good = 1 } END { exit !good }' out
	"$run" -n 3 --no-prefix "$perf" -j -x 1 -i 4 -m 8:8 --skew=100000:1 allreduce >out
	perl -MJSON::PP -0777 -e '
		my $all = decode_json(<STDIN>);
		die "skew" unless $all->{skew_us} == 100000 && $all->{late_rank} == 1;
		for (qw(nic host)) {
			my $times = $all->{results}[0]{$_};
			die "from then on" unless $times->{min_us} < 50000;
			die "own" unless $times->{rank_max_us} >= 50000;
			die "late" unless $times->{rank_min_us} < $times->{rank_max_us};
		}' <out
}
if perl -MJSON::PP -e 1 2>/dev/null; then
	check "--skew: the others wait, and times are from the late call on" skewed
else
	skip "--skew: the others wait" "perl has no JSON::PP to read it"
fi

by_algorithm() {
	"$run" -n 5 --no-prefix "$perf" -c -i 10 -m 8K:8K \
		-a barrier=dissemination,allreduce=double-ring,broadcast=4-nomial,scan=blelloch \
		barrier allreduce broadcast scan reduce >out
	for schedule in dissemination double-ring 4-nomial blelloch binomial; do
		grep -q "  $schedule\$" out
	done
	same 5 "$(grep -c 'equal  *pass' out)"
	same 1 "$(status_of "$run" -n 2 --grace 1 "$perf" -a allreduce=rings)"
	grep -q 'there is no schedule named "rings"' err
}
check "-a takes algorithms by name and by collective" by_algorithm

drawn() {
	"$run" -n 2 --no-prefix "$perf" -D 0.01 -m 8:64 --plot=./picture.png allreduce barrier >out
	grep -q '^# ./picture.png is drawn' out
	same PNG "$(head -c 4 picture.png | tail -c 3)"
	"$run" -n 2 --no-prefix "$perf" -D 0.01 -m 8:8 --plot=picture.svg alltoallw >out
	grep -q alltoallw picture.svg
	same 1 "$(status_of "$run" -n 2 --grace 1 "$perf" --plot=./none/picture.png)"
	grep -q 'cannot write ./none/picture.png' err
}
if command -v gnuplot >/dev/null; then
	check "--plot draws a picture" drawn
else
	skip "--plot draws a picture" "gnuplot is not installed"
fi

types_and_ops() {
	for pair in f32:sum f64:min i32:max i64:band u64:bor i8:sum u32:lxor i64:bxor i32:land u16:prod f16:sum \
		bf16:prod c32:prod c64:sum f64_i32:minloc i16_i32:maxloc; do
		"$run" -n 3 --no-prefix "$perf" -c -i 10 -m 64:1K -t ${pair%:*} -o ${pair#*:} \
			allreduce reduce -r 2 >out
		same 10 "$(grep -c 'equal  *pass' out)"
	done
}
check "types and operations are right" types_and_ops

large_and_plain() {
	"$run" -n 2 --no-prefix "$perf" -c -D 0.01 -m 1M:2M -b malloc >out
	same 2 "$(grep -c 'equal  *pass' out)"
	grep -q 'buffers by malloc' out
}
check "large messages in plain memory" large_and_plain

one_path() {
	"$run" -n 2 --no-prefix "$perf" -p host -D 0.01 -m 8 >out
	fails grep -q '^# nic path' out
	grep -q '^# host path taken' out
}
check "one path alone" one_path

json_is_json() {
	"$run" -n 2 --no-prefix "$perf" -j -D 0.01 -m 8 allreduce barrier >out
	grep -q '"schema": "muster/1"' out
	perl -MJSON::PP -0777 -e '
		my $all = decode_json(<STDIN>);
		die "results" unless @{$all->{results}} == 2;
		die "ranks" unless $all->{ranks} == 2;
		for (@{$all->{results}}) {
			die "bits" unless $_->{bits_equal};
			die "times" unless $_->{nic}{avg_us} > 0 && $_->{host}{avg_us} > 0;
		}' <out
}
if perl -MJSON::PP -e 1 2>/dev/null; then
	check "-j prints one JSON object" json_is_json
else
	skip "-j prints one JSON object" "perl has no JSON::PP to read it"
fi

beside_limits() {
	mkdir -p bench
	"$run" -n 2 --no-prefix "$perf" --against-limits=bench >out
	grep -q '^  barrier ' out
	grep -q '^  allreduce, 8 B ' out
	grep -q '^  allreduce, 1 MiB ' out
	grep -q '"nic_over_limit"' bench/bench.json
	same 21 "$(grep -vc '^#' bench/bench.dat)"
	same 1 "$(status_of "$run" -n 3 "$perf" --against-limits)"
	grep -q -e '--against-limits is for 2 ranks, here are 3' err
}
check "--against-limits compares with the bare machine" beside_limits

wrong_usage() {
	for option in '-m x' '-m 8:4' '-m 0' '-t f8' '-o mul' '-p fast' '-b mine' '-D 0' '-i 0' nope \
		--skew=0 --skew=5: --skew=x; do
		# shellcheck disable=SC2086
		same 2 "$(status_of "$run" -n 1 "$perf" $option)"
		grep -q "muster_perf: .* '" err
	done
	same 1 "$(status_of "$run" -n 2 --grace 1 "$perf" -r 2 broadcast)"
	grep -q -e '-r 2: there are only 2 ranks' err
	same 1 "$(status_of "$run" -n 2 --grace 1 "$perf" --skew=5:2)"
	grep -q -e '--skew: there is no rank 2' err
	same 1 "$(status_of "$perf")"
	grep -q '^muster_perf: .*MUSTER_' err
}
check "wrong usage is refused" wrong_usage

finish
