# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# The Ethernet that guests 0 and 1 have besides (muster-vm --net). To be sourced.
#
#   ethernet_up        its driver, and this guest's address
#   $ETHERNET          the device, then
#   ethernet_of N      address of guest N

ethernet_of() {
	echo "10.77.83.$(($1 + 1))"
}

ethernet_up() {
	modprobe virtio_net
	ETHERNET=$(basename /sys/class/net/e*)
	ip link set lo up
	ip address add "$(ethernet_of "$MUSTER_GUEST")/24" dev "$ETHERNET"
	ip link set "$ETHERNET" up
}
