// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames from and to devices and tunnels. */
#include "bump_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SOCKET_BYTES = 32 << 20, OFFLOAD_BYTES = sizeof(struct virtio_net_hdr), VLAN_BYTES = 4 };

_Static_assert(OFFLOAD_BYTES <= sizeof(((struct muster_bump_frame *)0)->offload), "offload");

/* ---- opening ---- */

static int set(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int device_bind(int fd, unsigned int index)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index,
	};
	struct packet_mreq all = { .mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC };
	int ret = set(fd, SOL_PACKET, PACKET_VNET_HDR, 1);

	if (!ret)
		ret = set(fd, SOL_PACKET, PACKET_AUXDATA, 1);
	if (!ret)
		ret = set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (!ret && setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)))
		ret = -errno;
	if (!ret && bind(fd, (struct sockaddr *)&to, sizeof(to)))
		ret = -errno;
	return ret;
}

static int device_open(struct bump_port *port, const char *name)
{
	unsigned int index = if_nametoindex(name);

	if (!index)
		return -errno;
	/* Protocol 0: nothing comes before it is bound to its device. */
	port->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return port->fd < 0 ? -errno : device_bind(port->fd, index);
}

static int address_read(char *text, struct sockaddr_in *address)
{
	char *colon = strrchr(text, ':'), *end;
	long number = colon ? strtol(colon + 1, &end, 10) : 0;

	if (!colon || end == colon + 1 || *end || number < 1 || number > 65535)
		return -EINVAL;
	*colon = '\0';
	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)number);
	return inet_pton(AF_INET, text, &address->sin_addr) == 1 ? 0 : -EINVAL;
}

static int tunnel_open(struct bump_port *port, const char *ends)
{
	char ours[BUMP_PORT_NAME_MAX], *theirs;
	struct sockaddr_in from = { 0 }, to = { 0 };

	snprintf(ours, sizeof(ours), "%s", ends);
	theirs = strchr(ours, ',');
	if (!theirs)
		return -EINVAL;
	*theirs++ = '\0';
	if (address_read(ours, &from) || address_read(theirs, &to))
		return -EINVAL;
	port->tunnel = true;
	port->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (port->fd < 0 || bind(port->fd, (struct sockaddr *)&from, sizeof(from)) ||
	    connect(port->fd, (struct sockaddr *)&to, sizeof(to)))
		return -errno;
	return 0;
}

int bump_port_open(struct bump_port *port, const char *name)
{
	int ret;

	*port = (struct bump_port){ .fd = -1 };
	snprintf(port->name, sizeof(port->name), "%s", name);
	port->frame = malloc(BUMP_FRAME_MAX);
	if (!port->frame)
		return -ENOMEM;
	ret = strncmp(name, "udp:", 4) ? device_open(port, name) : tunnel_open(port, name + 4);
	if (ret) {
		bump_port_close(port);
		return ret;
	}
	/* Without privilege the system's limit holds, which only means more loss. */
	if (set(port->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES))
		set(port->fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES);
	if (set(port->fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BYTES))
		set(port->fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BYTES);
	return 0;
}

void bump_port_close(struct bump_port *port)
{
	if (port->fd >= 0)
		close(port->fd);
	free(port->frame);
	port->fd = -1;
	port->frame = NULL;
}

/* ---- receiving ---- */

/* The kernel takes a VLAN tag out of the frame; it belongs back into it. */
static void restore_tag(struct muster_bump_frame *frame, const struct tpacket_auxdata *aux)
{
	struct virtio_net_hdr *offload = (struct virtio_net_hdr *)frame->offload;
	uint16_t tag[2] = {
		htons(aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : ETH_P_8021Q),
		htons(aux->tp_vlan_tci),
	};

	if (!(aux->tp_status & TP_STATUS_VLAN_VALID) || frame->len < 12)
		return;
	memmove(frame->data - VLAN_BYTES, frame->data, 12);
	frame->data -= VLAN_BYTES;
	frame->len += VLAN_BYTES;
	memcpy(frame->data + 12, tag, sizeof(tag));
	if (offload->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		offload->csum_start += VLAN_BYTES;
	if (offload->hdr_len)
		offload->hdr_len += VLAN_BYTES;
}

static void restore_tags(struct muster_bump_frame *frame, struct msghdr *message)
{
	struct tpacket_auxdata aux;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			restore_tag(frame, &aux);
		}
}

/* Nothing came. The kernel tells once that a device went down; whether it comes back is not known. */
static void receive_failed(struct bump_port *port, int err)
{
	port->ready = err == EINTR || err == ECONNREFUSED;
	if (err == ENETDOWN)
		fprintf(stderr, "muster-bumpd: port '%s': its device is down or gone; what goes there "
				"is lost\n", port->name);
}

bool bump_port_receive(struct bump_port *port, struct muster_bump_frame *frame)
{
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	const struct virtio_net_hdr *offload = (struct virtio_net_hdr *)frame->offload;
	struct iovec parts[] = {
		{ frame->offload, OFFLOAD_BYTES },
		{ port->frame + VLAN_BYTES, BUMP_FRAME_MAX - VLAN_BYTES },
	};
	struct msghdr message = {
		.msg_iov = parts, .msg_iovlen = 2,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t len;

	if (!port->ready)
		return false;
	len = recvmsg(port->fd, &message, MSG_DONTWAIT);
	if (len < 0)
		receive_failed(port, errno);
	if (len < OFFLOAD_BYTES)
		return false;
	frame->data = port->frame + VLAN_BYTES;
	frame->len = (uint32_t)len - OFFLOAD_BYTES;
	if (!port->tunnel)
		restore_tags(frame, &message);
	frame->unchecked = offload->flags != 0;
	frame->segmented = offload->gso_type != VIRTIO_NET_HDR_GSO_NONE;
	return true;
}

/* ---- sending ---- */

bool bump_port_send(struct bump_port *port, const struct muster_bump_frame *frame)
{
	struct iovec parts[] = {
		{ (void *)frame->offload, OFFLOAD_BYTES }, { frame->data, frame->len },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t len = sendmsg(port->fd, &message, MSG_DONTWAIT);

	if (len < 0 && errno == ECONNREFUSED)	/* of an earlier one: the other end was not there */
		len = sendmsg(port->fd, &message, MSG_DONTWAIT);
	return len >= 0;
}

/* The kernel forgets what it has told. */
uint64_t bump_port_missed(struct bump_port *port)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	if (port->fd >= 0 && !port->tunnel &&
	    !getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		port->missed += stats.tp_drops;
	return port->missed;
}
