// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Layers 2, 3 and 4: finding offload packets among frames, and building them.
 *
 * An offload packet is IPv4, not a fragment, UDP to our port, and begins with the
 * magic number; everything else is other traffic. Between bumps element e has the
 * address 198.18.0.0 + e (the range for measuring networks) and a MAC address that
 * ends in e: these frames never reach a host.
 */
#include "internal.h"

#include <stddef.h>

enum {
	ETHERNET_BYTES = 14, IPV4_BYTES = 20, UDP_BYTES = 8, ARP_BYTES = 28,
	TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, PROTOCOL_UDP = 17, HOPS = 255,
	BUMP_NETWORK = 0xc6120000,
	HEADER_BYTES = sizeof(struct muster_bump_header),
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value);
}

/* ---- checksums of the Internet ---- */

static uint32_t sum_words(uint32_t sum, const uint8_t *p, uint32_t len)
{
	for (; len > 1; p += 2, len -= 2)
		sum += get16(p);
	return len ? sum + ((uint32_t)*p << 8) : sum;
}

static uint16_t sum_end(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Over the addresses too; 0 where the checksum is in there and right. */
static uint16_t udp_sum(const uint8_t *ip, const uint8_t *udp, uint32_t len)
{
	return sum_end(sum_words(sum_words(PROTOCOL_UDP + len, ip + 12, 8), udp, len));
}

/* ---- reading ---- */

static bool is_fragment(const uint8_t *ip)
{
	return get16(ip + 6) & 0x3fff;
}

/* The UDP header where there is one, and how long the datagram is. */
static const uint8_t *find_udp(const struct muster_bump_frame *frame, uint32_t *len)
{
	const uint8_t *ip = frame->data + ETHERNET_BYTES;
	uint32_t ip_len, total, udp_len;

	if (frame->len < ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES || frame->segmented ||
	    get16(frame->data + 12) != TYPE_IPV4 || ip[0] >> 4 != 4 || ip[9] != PROTOCOL_UDP ||
	    is_fragment(ip))
		return NULL;
	ip_len = (ip[0] & 15) * 4u;
	total = get16(ip + 2);
	if (ip_len < IPV4_BYTES || total < ip_len + UDP_BYTES ||
	    total > frame->len - ETHERNET_BYTES)
		return NULL;
	udp_len = get16(ip + ip_len + 4);
	if (udp_len < UDP_BYTES || udp_len > total - ip_len)
		return NULL;
	*len = udp_len;
	return ip + ip_len;
}

static bool sums_right(const struct muster_bump_frame *frame, const uint8_t *udp, uint32_t len)
{
	const uint8_t *ip = frame->data + ETHERNET_BYTES;

	if (sum_end(sum_words(0, ip, (ip[0] & 15) * 4u)))
		return false;
	return frame->unchecked || !get16(udp + 6) || !udp_sum(ip, udp, len);
}

static void read_origin(const struct muster_bump_frame *frame, const uint8_t *udp,
			struct origin *origin)
{
	const uint8_t *ip = frame->data + ETHERNET_BYTES;

	memcpy(origin->bump_mac, frame->data, 6);
	memcpy(origin->host_mac, frame->data + 6, 6);
	origin->host_ip = get32(ip + 12);
	origin->bump_ip = get32(ip + 16);
	origin->host_port = get16(udp);
	origin->bump_port = get16(udp + 2);
}

enum frame_kind frame_read(const struct muster_bump *bump, const struct muster_bump_frame *frame,
			   struct packet *packet)
{
	uint32_t len, magic;
	const uint8_t *udp = find_udp(frame, &len);

	if (!udp || get16(udp + 2) != bump->config.udp_port || len < UDP_BYTES + sizeof(magic))
		return FRAME_OTHER;
	memcpy(&magic, udp + UDP_BYTES, sizeof(magic));
	if (le32toh(magic) != MUSTER_BUMP_MAGIC)
		return FRAME_OTHER;
	if (len < UDP_BYTES + HEADER_BYTES || !sums_right(frame, udp, len))
		return FRAME_BAD;
	memcpy(&packet->header, udp + UDP_BYTES, HEADER_BYTES);
	packet->data = udp + UDP_BYTES + HEADER_BYTES;
	packet->bytes = len - UDP_BYTES - HEADER_BYTES;
	read_origin(frame, udp, &packet->origin);
	return FRAME_OFFLOAD;
}

bool frame_age(struct muster_bump_frame *frame)
{
	uint8_t *ip = frame->data + ETHERNET_BYTES;

	if (ip[8] <= 1)
		return false;
	ip[8]--;
	put16(ip + 10, 0);
	put16(ip + 10, sum_end(sum_words(0, ip, (ip[0] & 15) * 4u)));
	return true;
}

/* ---- building ---- */

static void put_ip(uint8_t *ip, uint32_t from, uint32_t to, uint32_t len)
{
	memset(ip, 0, IPV4_BYTES);
	ip[0] = 0x45;
	put16(ip + 2, len);
	put16(ip + 6, 0x4000);		/* not to be cut */
	ip[8] = HOPS;
	ip[9] = PROTOCOL_UDP;
	put32(ip + 12, from);
	put32(ip + 16, to);
	put16(ip + 10, sum_end(sum_words(0, ip, IPV4_BYTES)));
}

static void put_udp(uint8_t *ip, uint16_t from, uint16_t to, uint32_t len)
{
	uint8_t *udp = ip + IPV4_BYTES;
	uint16_t sum;

	put16(udp, from);
	put16(udp + 2, to);
	put16(udp + 4, len);
	put16(udp + 6, 0);
	sum = udp_sum(ip, udp, len);
	put16(udp + 6, sum ? sum : 0xffff);
}

/*
 * Layers 2 to 4 around a header and elements. Message and destination port are the
 * instruction's, and the CIPE passes the elements.
 */
static void build(struct muster_bump *bump, uint64_t instruction, uint32_t ports,
		  const struct origin *origin, const struct muster_bump_header *header,
		  const struct buffer *data)
{
	uint8_t *ip = bump->frame + ETHERNET_BYTES, *to = ip + IPV4_BYTES + UDP_BYTES;
	const uint8_t *elements = data ? data->data : to;
	uint32_t bytes = data ? data->bytes : 0, udp_len = UDP_BYTES + HEADER_BYTES + bytes;
	struct muster_bump_frame frame = {
		.data = bump->frame, .len = ETHERNET_BYTES + IPV4_BYTES + udp_len,
	};

	memcpy(bump->frame, origin->host_mac, 6);
	memcpy(bump->frame + 6, origin->bump_mac, 6);
	put16(bump->frame + 12, TYPE_IPV4);
	memcpy(to, header, HEADER_BYTES);
	to[offsetof(struct muster_bump_header, message)] =
		(uint8_t)CIPE_GET(CIPE_MESSAGE, instruction);
	if (cipe_execute(instruction, &elements, to + HEADER_BYTES, bytes))
		return;		/* not reached: the CFE knows how much it passes */
	put_ip(ip, origin->bump_ip, origin->host_ip, IPV4_BYTES + udp_len);
	put_udp(ip, origin->bump_port, (uint16_t)CIPE_GET(CIPE_UDP_PORT, instruction), udp_len);
	queues_send(bump, ports, &frame);
}

static void put_mac(uint8_t *mac, uint16_t element)
{
	static const uint8_t prefix[] = { 0x02, 0x4d, 0x42, 0x00 };	/* locally administered */

	memcpy(mac, prefix, sizeof(prefix));
	put16(mac + 4, element);
}

void frame_to_host(struct muster_bump *bump, uint64_t instruction, const struct origin *origin,
		   const struct muster_bump_header *header, const struct buffer *data)
{
	struct origin way = *origin;

	if (way.bump_mac[0] & 1)	/* asked by broadcast */
		put_mac(way.bump_mac, bump->config.element);
	build(bump, instruction, 1u << MUSTER_BUMP_HOST_PORT, &way, header, data);
}

void frame_to_bumps(struct muster_bump *bump, uint64_t instruction, uint32_t ports,
		    const struct muster_bump_header *header, const struct buffer *data)
{
	struct origin way = {
		.bump_ip = BUMP_NETWORK + bump->config.element,
		.host_ip = BUMP_NETWORK + le16toh(header->to),
		.bump_port = bump->config.udp_port,
	};

	put_mac(way.bump_mac, bump->config.element);
	put_mac(way.host_mac, le16toh(header->to));
	bump->counters.data_out += CIPE_GET(CIPE_MESSAGE, instruction) == MUSTER_BUMP_DATA;
	build(bump, instruction, ports, &way, header, data);
}

/* ---- ARP ---- */

bool frame_answer_arp(struct muster_bump *bump, const struct muster_bump_frame *frame)
{
	static const uint8_t question[] = { 0, 1, 8, 0, 6, 4, 0, 1 };	/* Ethernet, IPv4, who has */
	const uint8_t *arp = frame->data + ETHERNET_BYTES;
	uint8_t *answer = bump->frame + ETHERNET_BYTES;
	struct muster_bump_frame reply = {
		.data = bump->frame, .len = ETHERNET_BYTES + ARP_BYTES,
	};

	if (!bump->config.address || frame->len < ETHERNET_BYTES + ARP_BYTES ||
	    get16(frame->data + 12) != TYPE_ARP || memcmp(arp, question, sizeof(question)) ||
	    get32(arp + 24) != bump->config.address)
		return false;
	memcpy(bump->frame, arp + 8, 6);
	put_mac(bump->frame + 6, bump->config.element);
	put16(bump->frame + 12, TYPE_ARP);
	memcpy(answer, question, sizeof(question));
	answer[7] = 2;
	put_mac(answer + 8, bump->config.element);
	put32(answer + 14, bump->config.address);
	memcpy(answer + 18, arp + 8, 10);
	queues_send(bump, 1u << MUSTER_BUMP_HOST_PORT, &reply);
	return true;
}
