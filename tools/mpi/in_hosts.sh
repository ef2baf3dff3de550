#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# An Open MPI job over TCP between the hosts of muster-run --bump, one rank each; each
# rank of muster-run runs this. Rank 0 starts mpirun, which reaches the other hosts'
# namespaces by their processes: the others stay until it is through.
# usage: muster-run --bump -n N in_hosts.sh FOLDER PROGRAM [ARGUMENT]...   (FOLDER: empty)
# MUSTER_MPI_DEVICE: eth0, through the bumps (default), or eth1, past them.
#        in_hosts.sh --agent HOST COMMAND...    how mpirun starts its daemons there
set -eu

if [ "$1" = --agent ]; then
	rank=${2##*.}
	rank=$((rank - 1))
	shift 2
	exec nsenter --net="/proc/$(cat "$MUSTER_HOSTS/pid.$rank")/ns/net" \
		unshare --uts sh -c "hostname host$rank; $*"
fi

MUSTER_HOSTS=$1
export MUSTER_HOSTS
shift
echo $$ >"$MUSTER_HOSTS/new.$MUSTER_RANK"
mv "$MUSTER_HOSTS/new.$MUSTER_RANK" "$MUSTER_HOSTS/pid.$MUSTER_RANK"
if [ "$MUSTER_RANK" -gt 0 ]; then
	until [ -e "$MUSTER_HOSTS/end" ]; do
		sleep 0.2
	done
	exit
fi
trap 'touch "$MUSTER_HOSTS/end"' EXIT
device=${MUSTER_MPI_DEVICE:-eth0}
net=10.77.0
[ "$device" = eth0 ] || net=10.78.0
list=
rank=0
while [ $rank -lt "$MUSTER_SIZE" ]; do
	until [ -e "$MUSTER_HOSTS/pid.$rank" ]; do
		sleep 0.05
	done
	rank=$((rank + 1))
	list=$list,$net.$rank
done
# The head is no host of its own, so that every rank is reached by the agent.
unshare --uts sh -c 'hostname head; exec "$@"' sh mpirun --allow-run-as-root --oversubscribe \
	--bind-to none -host "${list#,}" -np "$MUSTER_SIZE" \
	--mca plm_rsh_agent "$(realpath "$0") --agent" --mca plm_rsh_no_tree_spawn 1 \
	--mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include "$device" \
	--mca oob_tcp_if_include "$device" --mca mpi_yield_when_idle 1 "$@"
