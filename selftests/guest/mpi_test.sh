#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Open MPI on UCX on ordinary verbs, all as it comes, between two guests: mpirun in guest 0, which
# has its daemon started in guest 1 and speaks to it by an Ethernet (muster-vm --net). What ranks
# send each other goes by the NIC, as UCX has nothing else.
. "$(dirname "$0")/guest.sh"
# shellcheck source=selftests/guest/ethernet.sh
. "$(dirname "$0")/ethernet.sh"

PORT=2222
SORT=$MUSTER_BUILD/userlib/examples/keysort.openmpi
export UCX_NET_DEVICES=muster0:1 UCX_TLS=rc_v,self
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# In place of ssh, whose words it is given: NODE COMMAND... The daemon looks for it, too.
AGENT=/run/muster-agent
cat >$AGENT <<END
#!/bin/sh
shift
echo "\$*" >command
until busybox nc $(ethernet_of 1) $PORT <command; do
	sleep 0.2
done
END
chmod +x $AGENT

net_up() {
	ethernet_up
	hostname "guest$MUSTER_GUEST"
}

sorts() {
	mpirun --mca plm_rsh_agent $AGENT --mca pml ucx --mca btl self --mca osc ^ucx -H "$(ethernet_of 0),$(ethernet_of 1)" \
		-n 2 -x UCX_TLS -x UCX_NET_DEVICES "$SORT" 20000 2 check
}

daemon_ended() {
	! pidof orted
}

# The daemon goes to the background as soon as it can be spoken to.
serves() {
	busybox nc -l -p $PORT >command
	sh command
	within 300 daemon_ended
}

sent() {
	test "$(cat /sys/class/infiniband/muster0/ports/1/hw_counters/qp_bytes_out)" -gt 20000
}

check "an Ethernet is there besides" net_up
check "the driver loads" load
if [ "$MUSTER_GUEST" = 0 ]; then
	check "two ranks sort, and check it" sorts
else
	check "a daemon is started, and ends" serves
fi
check "their keys have gone by the NIC" sent
check "nothing is held" nothing_held
check "the driver unloads" unload
check "the kernel has nothing to complain of" kernel_quiet
finish
