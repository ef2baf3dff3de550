#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The command muster-synth: what it makes is right, and what it refuses it explains.
. "$(dirname "$0")/tap.sh"

# One attempt at a time: a second one that is ended takes a processor from the tests beside it.
synth() {
	"$MUSTER_BUILD/tools/muster-synth" "$@" -j 1
}

solves() {
	synth solve -t dgx1 -c allreduce 16 4 6 -o allreduce
	synth check -t dgx1 allreduce | grep -q '16 chunks, 4 steps, 6 rounds on dgx1'
	synth solve -t dgx1 -c gather -r 3 6 3 7 -f json -o gather.json
	synth check -t dgx1 gather.json | grep -q 'right gather of 8 ranks, 48 chunks, 3 steps, 7 rounds'
	synth show gather.json -o gather
	synth show gather -f json | cmp - gather.json
	synth show -t dgx1 allreduce -f sends | grep -qE '^send [0-9]+ from [0-7] to [0-7] at step 2$'
	synth show -t dgx1 allreduce -f picture | tail -n 1 | grep -q '</svg>'
}
check "it makes schedules, shows them, and reads them back" solves

# Composed, not searched for; and run.
nests() {
	synth nodes 3 2 -c allreduce -o nested
	synth check nested | grep -q 'nested is a right allreduce of 6 ranks, 1 chunks, 5 steps'
	synth nodes 3 2 ring -c allreduce -o round
	synth check round | grep -q 'right allreduce of 6 ranks, 3 chunks, 6 steps'
	synth nodes 3 2 -c reduce -r 3 -o sum
	synth check sum | grep -q 'right reduce of 6 ranks'
	synth nodes 3 2 -c broadcast -r 4 -o told
	"$MUSTER_BUILD/tools/muster-run" -n 6 --no-bind "$MUSTER_BUILD/selftests/scheduled" ./nested ./round ./sum ./told
}
check "schedules inside of nodes and across them make one, which runs" nests

refutes() {
	status=0
	synth solve -t dgx1 -c allgather 3 2 4 2>said || status=$?
	same 3 "$status"
	grep -q '^refuted: the full formula of 24 chunks in all, 2 steps and 4 rounds has no model' said
	status=0
	synth solve -t dgx1 -c allgather 2 1 9 2>said || status=$?
	same 3 "$status"
	grep -q '^refuted: 1 steps, but node 4 is 2 hops from node 0' said
}
check "what cannot be is refuted, with the bound that forbids it" refutes

refuse() {
	status=0
	"$@" 2>said >/dev/null || status=$?
	same 2 "$status"
}

refuses() {
	printf 'muster-topology 1\nname x\nnodes 4\nlink 0 -> 7 1\nend\n' >bad
	refuse synth topology -t bad
	grep -q 'bad: line 4: node 7, but it can be 0 to 3' said
	printf 'muster-schedule 1\nname x\ncollective allgather\nranks 2\nchunks 3\n' >bad
	refuse synth check bad
	grep -q 'bad: line 5: chunks 3, but' said
	printf '{ "name": "x",\n oops' >bad
	refuse synth check bad
	grep -q 'bad: line 2' said
	refuse synth topology -t nowhere
	refuse synth solve -t dgx1 2 2
	refuse synth solve -t dgx1 -c allreduce 7 4 4
	refuse synth torus 4y4
	refuse synth nodes 3 2 -c allgather
	refuse synth nodes 3 2 -c reduce -r 6
	grep -q 'there is no rank 6' said
	refuse synth nodes 3 2 nothing -c allreduce
	refuse synth dance
}
check "wrong files and requests are refused with the reason" refuses

resumes() {
	synth pareto -t ring:4 -c broadcast --steps-max 3 --cache kept >first
	synth pareto -t ring:4 -c broadcast --steps-max 3 --cache kept >second
	grep -q 'solved before' second
	same "$(grep -c '' first)" "$(grep -c 'solved before' second)"
}
check "a search that is repeated goes on from what it kept" resumes

measured() {
	for seed in 1 2 1; do
		status=0
		synth solve -t dgx1 --plain --cpu 1 --seed $seed --cache plain 5 6 6 2>>said || status=$?
		same 4 "$status"
	done
	took=$(sed -n 's/^unknown:  (\(.*\))$/\1/p' said | head -n 1)
	same 1 "$(grep -c "^unknown: solved before ($took)$" said)"
	synth solve -t dgx1 --cache plain 1 2 2 2>said >/dev/null
	synth solve -t dgx1 --plain --cache plain 1 2 2 2>>said >/dev/null
	same 0 "$(grep -c 'solved before' said)"
}
check "what the plain encoding took is kept by seed, time-outs too, and apart from answers" measured

# Ended in the middle, of what would take hours: what was solved until then is not solved again.
# Its output is a file that no test before has left: it may begin late.
interrupted() {
	"$MUSTER_BUILD/tools/muster-synth" pareto -t dgx1 -c broadcast --cpu 1000000 --cache stopped >endless &
	pid=$!
	until grep -qs '^(2, 2, 2)' endless; do
		kill -0 $pid
		sleep 0.02
	done
	kill -KILL $pid
	wait $pid || true
	synth pareto -t dgx1 -c broadcast --steps-max 2 --cache stopped >resumed
	grep -q '^(2, 2, 2)  fewest steps' resumed
	same 46 "$(grep -c 'solved before' resumed)"
	same 46 "$(grep -c '' resumed)"
}
check "a search that is killed loses nothing that it had solved" interrupted

baselines() {
	synth baseline -t dgx1 -c allgather -o rings
	synth check -t dgx1 rings | grep -q '48 chunks, 7 steps, 7 rounds'
	synth baseline -t dgx1 -c allreduce -o rings
	synth check -t dgx1 rings | grep -q '48 chunks, 14 steps, 14 rounds'
	for m in 1 2 5; do
		synth baseline -t dgx1 -c broadcast -r 4 -m $m -o rings
		synth check -t dgx1 rings | grep -q " $((6 * m)) chunks, $((6 + m)) steps, $((6 + m)) rounds"
		synth baseline -t z52 -c reduce -m $m -o rings
		synth check -t z52 rings | grep -q " $((2 * m)) chunks, $((6 + m)) steps, $((6 + m)) rounds"
	done
}
check "the schedules by hand cost what the paper says" baselines

tori() {
	synth torus 6x6x6x6x6x6 >said
	grep -q 'efficiency 100.00 %' said
	grep -q '^largest buffer: 22995 data' said
	synth torus 2.4x2.4 --balanced -o all >/dev/null
	synth check -t torus:2x4x2x4 all | grep -q 'right allgather of 64 ranks'
	synth torus 2.10x2.10x2.10 --balanced -f picture -o all.svg >said
	tail -n 1 all.svg | grep -q '</svg>'
	synth torus 3x3 --no-split -f sends -o sends >/dev/null
	same 72 "$(grep -cE '^send [0-8] from [0-8] to [0-8] at step [01]$' sends)"
	refuse synth torus 3x3 -f picture
	grep -q 'picture goes to a file, -o FILE' said
}
check "the torus allgather is made, proved and drawn" tori

by_hand() {
	cat >scan <<-END
		muster-schedule 1
		name scan-by-hand
		collective scan
		ranks 4
		chunks 1
		step 0
		  0 -> 1 chunk 0 reduce
		  1 -> 2 chunk 0 reduce
		  2 -> 3 chunk 0 reduce
		step 1
		  0 -> 2 chunk 0 reduce
		  1 -> 3 chunk 0 reduce
		end
	END
	# Rank 4 is a switch that combines; rank 3 has its chunk 1 from rank 0, as rank 1 has it.
	cat >custom <<-END
		muster-schedule 1
		name custom-by-hand
		collective custom
		ranks 5
		chunks 2
		chunk 0 sum 0 1 2 to 0 1 2 3
		chunk 1 at 0 1 to 3
		step 0
		  0 -> 4 chunk 0 copy
		  1 -> 4 chunk 0 reduce
		  2 -> 4 chunk 0 reduce
		  0 -> 3 chunk 1 copy
		step 1
		  4 -> 0 chunk 0 copy
		  4 -> 1 chunk 0 copy
		  4 -> 2 chunk 0 copy
		  4 -> 3 chunk 0 copy
		end
	END
	"$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind "$MUSTER_BUILD/selftests/scheduled" ./scan
	"$MUSTER_BUILD/tools/muster-run" -n 5 --no-bind "$MUSTER_BUILD/selftests/scheduled" ./custom
	synth show custom -f json -o custom.json
	synth show custom.json -o again
	synth show custom | cmp - again
}
check "scan and a file's own conditions run through the engines, to the bit" by_hand

# runs RANKS TOPOLOGY COLLECTIVE ROOT CHUNKS STEPS ROUNDS: synthesized, then run by so many ranks
runs() {
	synth solve -t "$2" -c "$3" -r "$4" -o run "$5" "$6" "$7"
	"$MUSTER_BUILD/tools/muster-run" -n "$1" --no-bind "$MUSTER_BUILD/selftests/scheduled" ./run
}

runs_all() {
	while read -r line; do
		# shellcheck disable=SC2086 # a line is several arguments
		runs $line </dev/null
	done
}

dgx1() {
	runs_all <<-END
		8 dgx1 allgather 0 2 2 3
		8 dgx1 allreduce 0 16 4 6
		8 dgx1 alltoall 0 24 2 8
		8 dgx1 gather 3 6 3 7
		8 dgx1 reduce 5 6 3 3
	END
}
check "on DGX-1 they run through the engines, to the bit: 2-step allgather, 4-step allreduce, others" dgx1

others() {
	runs_all <<-END
		6 ring:6 broadcast 0 2 3 3
		6 ring:6 reduce 1 2 3 3
		6 ring:6 allgather 0 2 3 5
		6 ring:6 alltoall 0 6 3 5
		5 line:5 broadcast 0 1 4 4
		5 line:5 allreduce 0 5 8 8
		5 line:5 gather 0 1 4 4
		5 line:5 scatter 4 5 4 4
		8 hypercube:3 allgather 0 3 3 7
		8 hypercube:3 reduce-scatter 0 24 3 7
		8 hypercube:3 alltoall 0 8 3 4
		8 hypercube:3 allreduce 0 24 6 14
		6 mesh:2x3 allgather 0 1 3 4
		6 mesh:2x3 gather 0 1 3 3
		6 mesh:2x3 broadcast 5 2 3 3
		6 mesh:2x3 reduce-scatter 0 6 3 4
		4 star:4 gather 1 1 2 3
		4 star:4 scatter 1 4 2 3
		4 star:4 allgather 0 1 2 4
		4 star:4 reduce 1 1 2 2
	END
}
rest "20 on five other topologies run through the engines, to the bit" others

# Direct ones, with a switch that combines, and of a file's conditions; each rank is a node.
directs() {
	while read -r ranks topology options; do
		# shellcheck disable=SC2086 # a line is several arguments
		synth solve -t "$topology" $options -o run
		synth check -t "$topology" run
		"$MUSTER_BUILD/tools/muster-run" -n "$ranks" --no-bind \
			"$MUSTER_BUILD/selftests/scheduled" ./run </dev/null
	done
}

direct() {
	printf 'muster-conditions 1\nchunks 2\nchunk 0 sum 0 2 5 to 1 3\nchunk 1 at 0 3 to 4 5\nend\n' >places
	directs <<-END
		8 hypercube:3 -c allreduce --direct 2 3 4
		8 hypercube:3 -c scan 1 3 3
		5 switch:5 -c allreduce 2 3 3
		5 switch:5 -c reduce -r 2 2 3 3
		5 switch:5 -c allgather 1 2 4
		6 ring:6 --conditions places 3 3 3
	END
}
check "direct allreduce and scan, a switch that combines, own conditions: run, to the bit" direct

direct_dgx1() {
	directs <<-END
		8 dgx1 -c allreduce --direct 1 3 3
		8 dgx1 -c scan 2 3 3
	END
}
rest "direct allreduce and scan on DGX-1" direct_dgx1

torus_runs() {
	synth torus 2x2x2x2 --fit -o run >/dev/null
	"$MUSTER_BUILD/tools/muster-run" -n 16 --no-bind "$MUSTER_BUILD/selftests/scheduled" ./run
}
check "the torus allgather of 2x2x2x2 runs through the engines, to the bit" torus_runs

chosen() {
	synth solve -t dgx1 -c allreduce 16 4 6 -o file
	MUSTER_SCHEDULE=./file "$MUSTER_BUILD/tools/muster-run" -n 8 --no-bind \
		"$MUSTER_BUILD/tools/muster_perf" -c -m 4K:64K -i 10 allreduce >said
	grep -qE ' 65536 .*equal +pass .*dgx1-allreduce-16-4-6' said
}
check "MUSTER_SCHEDULE takes one for the library's own calls" chosen

fabric() {
	"$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind "$MUSTER_BUILD/tools/muster_topology" -s 20000 -o here
	same 12 "$(grep -cE '^link [0-3] -> [0-3] [1-9][0-9]*  # [0-9.]+ MB/s$' here)"
	synth topology -t here >said
	grep -q '^# allreduce: at least 2 steps' said
	synth solve -t here -c allreduce --direct 1 2 2 -o file
	"$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind "$MUSTER_BUILD/selftests/scheduled" ./file
}
check "the topology of a running job is measured, and a schedule is made for it" fabric

# Each size its own schedule and lowering; the bits are those of the host path.
tuned() {
	synth solve -t dgx1 -c allreduce 8 4 4 -o short
	synth solve -t dgx1 -c allreduce --direct 1 3 3 -o direct
	cat >tuning <<-END
		muster-tuning 1
		allreduce 64   ./direct
		allreduce 512  ./direct memory
		allreduce 4K   ./short barrier
		allreduce 32K  ./short
		allreduce any  rabenseifner pulse=4096 push
		end
	END
	MUSTER_SCHEDULE=./tuning "$MUSTER_BUILD/tools/muster-run" -n 8 --no-bind \
		"$MUSTER_BUILD/tools/muster_perf" -c -m 64:256K -i 10 allreduce >said
	grep -qE ' 64 .*equal +pass .*dgx1-allreduce-1-3-3' said
	grep -qE ' 512 .*equal +pass .*dgx1-allreduce-1-3-3' said
	grep -qE ' 4096 .*equal +pass .*dgx1-allreduce-8-4-4' said
	grep -qE ' 32768 .*equal +pass .*dgx1-allreduce-8-4-4' said
	grep -qE ' 262144 .*equal +pass .*rabenseifner' said
	if grep -q fail said; then return 1; fi
}
check "a tuning file chooses schedule and lowering by size" tuned

# The times are as they are; the candidates, the file and what the library makes of it are not.
tunes() {
	synth solve -t full:4 -c allreduce 4 2 2 -o four
	"$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind "$MUSTER_BUILD/tools/muster_perf" \
		--tune=./made --schedule=./four -m 256:512 -i 2 -x 0 allreduce barrier >said
	grep -qE '[]] full-4-allreduce-4-2-2 +[0-9.]+ +[0-9.]+$' said
	grep -qE '[]] full-4-allreduce-4-2-2 +push +- +[0-9.]+$' said
	grep -qE '[]] recursive-doubling +memory +[0-9.]+ +-$' said
	same 1 "$(grep -c '^allreduce any ' made)"
	same 1 "$(grep -c '^barrier any ' made)"
	tail -n 1 made | grep -q '^end$'
	MUSTER_SCHEDULE=./made "$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind \
		"$MUSTER_BUILD/tools/muster_perf" -c -m 512:512 -i 2 -x 0 allreduce >said
	name=$(sed -n 's/^allreduce any \([^ ]*\).*/\1/p' made)
	if [ "$name" = ./four ]; then name=full-4-allreduce-4-2-2; fi
	grep -qE " 512 .*equal +pass .* $name\$" said
	# What it has chosen is what it would choose again only by chance: this one it cannot.
	sed 's,^allreduce any [^ ]*,allreduce any ./four,' made >forced
	MUSTER_SCHEDULE=./forced "$MUSTER_BUILD/tools/muster-run" -n 4 --no-bind \
		"$MUSTER_BUILD/tools/muster_perf" -c -m 512:512 -i 2 -x 0 allreduce >said
	grep -qE ' 512 .*equal +pass .* full-4-allreduce-4-2-2$' said
	status=0
	"$MUSTER_BUILD/tools/muster-run" -n 2 --no-bind "$MUSTER_BUILD/tools/muster_perf" \
		--tune=./made --schedule=./nowhere allreduce >said 2>&1 || status=$?
	same 1 "$status"
	grep -q './nowhere: it cannot be read as a schedule' said
}
check "schedules and lowerings are measured by size, and the tuning file made of that is applied" tunes

apart() {
	ldd "$MUSTER_BUILD/libmuster.so.0" "$MUSTER_BUILD/tools/muster-run" >libraries
	if grep -q z3 libraries; then return 1; fi
}
check "nothing else of Muster needs Z3" apart
finish
