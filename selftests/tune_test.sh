#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster-tune, and the file that jobs read: found, named, refused, and outranked.

. "$(dirname "$0")/tap.sh"

tools=$MUSTER_BUILD/tools
comms=$MUSTER_BUILD/selftests/comms
for tool in "$tools/muster-tune" "$tools/muster-run" "$tools/muster_perf" "$comms"; do
	[ -x "$tool" ] || skip_all "there is no $tool (make all selftests)"
done
export HOME="$PWD"
unset MUSTER_TUNING

# usage: runs NAME [ENVIRONMENT]...: an allreduce of 64 KiB among two ranks is run by that schedule
runs() {
	name=$1
	shift
	env "$@" "$tools/muster-run" -n 2 --no-prefix "$tools/muster_perf" -p nic -i 1 -x 0 -m 64K:64K >out
	cat out
	grep -q " 65536 .* $name\$" out
}

plot=
! command -v gnuplot >/dev/null || plot=--plot=choices.png

tuned() {
	mkdir -p .config/muster
	printf 'muster-tuning 2\nranks 2\nbroadcast any ring\nranks 3\nallreduce any ring\nend\n' >.config/muster/tuning
	"$tools/muster-tune" -n 2 -m 64:64 -D 0.1 $plot allreduce barrier >said
	tail -n 1 said
	same "$HOME/.config/muster/tuning is written, for 2 ranks" "$(tail -n 1 said)"
	cat .config/muster/tuning
	same "muster-tuning 2" "$(head -n 1 .config/muster/tuning)"
	same "ranks 2" "$(sed -n 2p .config/muster/tuning)"
	same end "$(tail -n 1 .config/muster/tuning)"
	same 1 "$(grep -c '^allreduce any .*model [0-9.-]* us + [0-9.]* us/KiB, off by [0-9]* %$' .config/muster/tuning)"
	same 1 "$(grep -c '^barrier any ' .config/muster/tuning)"
}
check "what is best is measured and written to where jobs look for it" tuned

others_stay() {
	grep -A 1 -x 'ranks 3' .config/muster/tuning | grep -x 'allreduce any ring'
	if grep '^broadcast' .config/muster/tuning; then return 1; fi
	same 1 "$(ls -A .config/muster | wc -l)"
}
check "what is there for other numbers of ranks stays, and nothing else is left" others_stay

# As people write it: the end with a comment, or without a new line.
any_end() {
	for end in 'ranks any\nend # of it\n' 'end\r' end; do
		printf "muster-tuning 1\nallreduce any double-ring\n$end" >own
		runs double-ring MUSTER_TUNING=./own
		"$tools/muster-tune" -n 2 -m 64:64 -D 0.01 -o own barrier >said
		cat own
		same 1 "$(grep -c '^ranks any$' own)"
		same 1 "$(grep -c '^end' own)"
		runs double-ring MUSTER_TUNING=./own
	done
}
check "a file is put together again however it ends, and again" any_end

if [ -n "$plot" ]; then
	check "the choices are drawn" test "$(head -c 4 choices.png | tail -c 3)" = PNG
else
	skip "the choices are drawn" "there is no gnuplot"
fi

# What the library would never choose by itself.
read_at_start() {
	printf 'muster-tuning 2\nranks 2\nallreduce any double-ring\nend\n' >.config/muster/tuning
	runs double-ring
	runs "recursive-doubling" MUSTER_TUNING=off
	printf 'muster-tuning 2\nranks 3\nallreduce any double-ring\nend\n' >.config/muster/tuning
	runs recursive-doubling
	printf 'muster-tuning 1\nallreduce any double-ring\nend\n' >own
	runs double-ring MUSTER_TUNING=./own
}
check "jobs read the file when they start, for their number of ranks" read_at_start

by_collective() {
	runs double-ring MUSTER_ALLREDUCE=double-ring
	runs rabenseifner MUSTER_ALLREDUCE=4=double-ring,1M=rabenseifner,ring
	runs rabenseifner MUSTER_ALLREDUCE=rabenseifner MUSTER_SCHEDULE=allreduce=ring
	runs ring MUSTER_BROADCAST=binomial MUSTER_SCHEDULE=allreduce=ring
}
check "a collective's own variable chooses for it" by_collective

# usage: takes WORDS [ENVIRONMENT]...: an allreduce of 64 KiB among two ranks
takes() {
	words=$1
	shift
	env MUSTER_TUNING=./own "$@" "$tools/muster-run" -n 2 --no-prefix "$comms" chosen 65536 >out
	cat out
	same 2 "$(grep -c "$words" out)"
}

host_path() {
	printf 'muster-tuning 2\nallreduce any double-ring host\nend\n' >own
	takes 'path 1 by double-ring'
	takes 'path 2 by double-ring' MUSTER_OFFLOAD=force
	takes 'path 2 by double-ring' MUSTER_TUNING=off MUSTER_SCHEDULE=double-ring
}
check "a line can ask for the host path, unless offload is forced" host_path

outranked() {
	printf 'muster-tuning 2\nallreduce any double-ring\nend\n' >.config/muster/tuning
	runs binomial MUSTER_SCHEDULE=binomial
	runs binomial MUSTER_SCHEDULE=allreduce=binomial
	runs double-ring MUSTER_SCHEDULE=broadcast=binomial
}
check "what the environment says comes first" outranked

# Only rank 0 has it in its environment.
word_of_rank_0() {
	printf 'muster-tuning 2\nallreduce any double-ring\nend\n' >own
	cat >some.sh <<-END
		[ "\$MUSTER_RANK" != 0 ] || export MUSTER_TUNING=$PWD/own
		exec "$tools/muster_perf" -p nic -i 1 -x 0 -m 64K:64K
	END
	rm -r .config
	"$tools/muster-run" -n 2 --no-prefix sh some.sh >out
	cat out
	grep -q ' double-ring$' out
}
check "rank 0's word counts" word_of_rank_0

# The same path, as on machines of their own: another file there, none, or none that can be read.
file_of_rank_0() {
	mkdir -p of_0 of_1 of_2 of_3/own
	{
		printf 'muster-tuning 2\n'
		yes '# more than is told at once' | head -n 100
		printf 'allreduce any double-ring\nend\n'
	} >of_0/own
	printf 'muster-tuning 2\nallreduce any binomial\nend\n' >of_1/own
	cat >some.sh <<-END
		cd of_\$MUSTER_RANK
		exec "$tools/muster_perf" -p nic -i 1 -x 0 -m 64K:64K
	END
	MUSTER_TUNING=./own "$tools/muster-run" -n 4 --no-prefix sh some.sh >out
	cat out
	grep -q ' double-ring$' out
}
check "ranks that find no file, or another, have rank 0's" file_of_rank_0

# usage: refused MESSAGE [ENVIRONMENT]...
refused() {
	message=$1
	shift
	same 1 "$(status_of env "$@" "$tools/muster-run" -n 2 --no-prefix "$tools/muster_perf" -i 1 -x 0)"
	cat err
	grep -qF "$message" err
}

bad_files() {
	refused "tuning ./none: No such file or directory; MUSTER_TUNING=off goes on without it" MUSTER_TUNING=./none
	printf 'muster-tuning 9\n' >own
	refused 'tuning ./own: line 1: "muster-tuning 2", or 1, expected' MUSTER_TUNING=./own
	refused "MUSTER_TUNING=own: allowed is off, or a file with a slash in its path" MUSTER_TUNING=own
	refused "tuning ./: Is a directory; MUSTER_TUNING=off goes on without it" MUSTER_TUNING=./
	same 1 "$(status_of "$tools/muster-tune" -n 2 -o ./own barrier)"
	grep -qF './own: line 1: "muster-tuning 2", or 1, expected; move it away, or -o names another' err
	same 'muster-tuning 9' "$(cat own)"
	long=$PWD/$(printf '%0120d' 0)
	mkdir -p "$long"
	same 1 "$(HOME=$long status_of "$tools/muster-tune" -n 2 barrier)"
	grep -qF 'jobs read no file with a path of more than 127 bytes' err
	same 1 "$(status_of "$tools/muster-tune" -n 2 -o ./kept gossip)"
	[ ! -e kept ]
	same 2 "$(status_of "$tools/muster-tune" -n 1)"
}
check "files that are none are refused with the reason, and nothing is half written" bad_files

finish
