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
	"$run" -n 3 --no-prefix "$perf" -c -D 0.01 -m 8:4K all >out
	same 121 "$(rows)"
	for collective in allreduce reduce broadcast barrier allgather reduce_scatter_block \
		alltoall gather scatter scan exscan allgatherv reduce_scatter; do
		grep -q "^# $collective" out
	done
	grep -q '^# nic path taken: .' out
	grep -q '^# host path taken: .' out
	same 121 "$(grep -c 'equal  *pass' out)"
}
check "all collectives, both paths, with the same bits and right results" all_collectives

types_and_ops() {
	for pair in f32:sum f64:min i32:max i64:band u64:bor i8:sum u32:lxor i64:bxor i32:land u16:prod f16:sum \
		bf16:prod c32:prod c64:sum f64_i32:minloc i16_i32:maxloc; do
		"$run" -n 3 --no-prefix "$perf" -c -D 0.01 -m 64:1K -t ${pair%:*} -o ${pair#*:} \
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
	same 20 "$(grep -vc '^#' bench/bench.dat)"
	same 1 "$(status_of "$run" -n 3 "$perf" --against-limits)"
	grep -q -e '--against-limits is for 2 ranks, here are 3' err
}
check "--against-limits compares with the bare machine" beside_limits

wrong_usage() {
	for option in '-m x' '-m 8:4' '-m 0' '-t f8' '-o mul' '-p fast' '-b mine' '-D 0' '-i 0' nope; do
		# shellcheck disable=SC2086
		same 2 "$(status_of "$run" -n 1 "$perf" $option)"
		grep -q "muster_perf: .* '" err
	done
	same 1 "$(status_of "$run" -n 2 --grace 1 "$perf" -r 2 broadcast)"
	grep -q -e '-r 2: there are only 2 ranks' err
	same 1 "$(status_of "$perf")"
	grep -q '^muster_perf: .*MUSTER_' err
}
check "wrong usage is refused" wrong_usage

finish
