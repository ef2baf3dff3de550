#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Ranks that another launcher has started: who they are says its environment, where they meet a
# file or an address; strangers stay outside, and who is missing is named.
. "$(dirname "$0")/tap.sh"

comms=$MUSTER_BUILD/selftests/comms
[ -x "$comms" ] || skip_all "there is no $comms (make selftests)"
unset MUSTER_RANK MUSTER_SIZE MUSTER_RENDEZVOUS MUSTER_KEY
secret=a-secret-of-enough-characters

# usage: started RANK-VARIABLE SIZE-VARIABLE RANKS LAST: ranks RANKS - 1 down to LAST, each a process
started() {
	rank=$3
	: >out
	: >err
	pids=
	while [ "$rank" -gt "$4" ]; do
		rank=$((rank - 1))
		env "$1=$rank" "$2=$3" "$comms" chosen 64 >>out 2>>err &
		pids="$pids $!"
	done
}

# all_end: how many of them ended well
all_end() {
	good=0
	for pid in $pids; do
		wait "$pid" && good=$((good + 1))
	done
	cat out err
}

by() {
	MUSTER_DEADLINE=800 MUSTER_RENDEZVOUS=$4 MUSTER_KEY=${5:-} started "$1" "$2" "$3" 0
	all_end
	same "$3" "$good"
	same "$3" "$(grep -c 'path 2' out)"
}

by_file() {
	by "$1" "$2" 4 "file:$tap_dir/meet"
	fails ls "$tap_dir/meet"
}
check "Open MPI's environment, and a file" by_file OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
check "MPICH's environment, and a file" by_file PMI_RANK PMI_SIZE
check "Slurm's environment, and a file" by_file SLURM_PROCID SLURM_NTASKS

# What a job has left that died is not where the next one meets.
stale() {
	echo "muster-rendezvous 1 127.0.0.1 1 00112233445566778899aabbccddeeff" >meet
	chmod 600 meet
	by_file PMI_RANK PMI_SIZE
}
check "a file that was left behind is replaced" stale

# Below those that the system gives to whoever asks for any: nobody else takes it meanwhile.
free_port() {
	python3 -c 'import socket, sys
port = 12000 + int(sys.argv[1]) % 20000
while socket.socket().connect_ex(("127.0.0.1", port)) == 0:
    port += 1
print(port)' $$
}

by_tcp() {
	by SLURM_PROCID SLURM_NTASKS 3 "tcp:127.0.0.1:$(free_port)" "$secret"
}
check "Slurm's environment, and an address with a key" by_tcp

no_key() {
	MUSTER_RENDEZVOUS=tcp:127.0.0.1:7 started PMI_RANK PMI_SIZE 1 0
	all_end
	same 0 "$good"
	grep 'MUSTER_KEY is not set' err
}
check "an address without a key is refused" no_key

# Neither side believes the other; rank 0 says who did not come.
other_key() {
	port=$(free_port)
	export MUSTER_DEADLINE=1 MUSTER_RENDEZVOUS="tcp:127.0.0.1:$port"
	PMI_RANK=1 PMI_SIZE=2 MUSTER_KEY=another-secret-of-that-length "$comms" chosen 64 2>err1 &
	other=$!
	status=$(PMI_RANK=0 PMI_SIZE=2 MUSTER_KEY=$secret status_of "$comms" chosen 64)
	same 3 "$status"
	grep 'rank(s) 1 of 2 did not come' err
	fails wait "$other"
	cat err1
	grep -e 'does not have this rank.s MUSTER_KEY' -e 'rank 0 of 2 did not come' err1
}
check "a rank with another key stays outside, and is named" other_key

readable() {
	echo "muster-rendezvous 1 127.0.0.1 1 00112233445566778899aabbccddeeff" >meet
	chmod 644 meet
	export MUSTER_DEADLINE=1 MUSTER_RENDEZVOUS="file:$tap_dir/meet" PMI_RANK=1 PMI_SIZE=2
	same 3 "$(status_of "$comms" chosen 64)"
	grep 'others than its user could have written it' err
}
check "a file that others could have written is not believed" readable

missing() {
	rm -f meet
	export MUSTER_DEADLINE=1
	MUSTER_RENDEZVOUS=file:$tap_dir/meet started PMI_RANK PMI_SIZE 4 2
	env PMI_RANK=0 PMI_SIZE=4 MUSTER_RENDEZVOUS="file:$tap_dir/meet" "$comms" chosen 64 >>out 2>>err &
	pids="$pids $!"
	all_end
	same 0 "$good"
	grep 'rank(s) 1.* of 4 did not come' err
}
check "who does not come is named" missing

if [ -n "$(command -v mpirun.openmpi)" ]; then
	real() {
		MUSTER_RENDEZVOUS=file:$tap_dir/meet MUSTER_DEADLINE=800 mpirun.openmpi --allow-run-as-root \
			--oversubscribe -n 3 "$comms" chosen 64 >out
		cat out
		same 3 "$(grep -c 'path 2' out)"
	}
	check "Open MPI's mpirun" real
else
	skip "Open MPI's mpirun" "it is not installed"
fi
if [ -n "$(command -v mpiexec.hydra)" ]; then
	hydra() {
		MUSTER_RENDEZVOUS=file:$tap_dir/meet MUSTER_DEADLINE=800 mpiexec.hydra -n 3 "$comms" chosen 64 >out
		cat out
		same 3 "$(grep -c 'path 2' out)"
	}
	check "MPICH's mpiexec" hydra
else
	skip "MPICH's mpiexec" "it is not installed"
fi
finish
