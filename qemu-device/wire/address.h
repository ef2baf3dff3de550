/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Addresses of the socket wire: "unix:DIR" or "udp:HOST:PORT" is that of node 0, and a
 * node's number says its own. In the wire's own room only.
 */
#ifndef MUSTER_WIRE_ADDRESS_H
#define MUSTER_WIRE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct muster_address {
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/** muster_wire_refuse() - say why. Return: -EINVAL. */
int muster_wire_refuse(char *why, size_t why_len, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** muster_address_parse() - node 0's; UNIX: the directory. Return: 0, or -EINVAL and why. */
int muster_address_parse(struct muster_address *base, const char *spec, char *why,
			 size_t why_len);

/** muster_address_of() - where a node listens. -ERANGE: its UDP port would be above 65535. */
int muster_address_of(const struct muster_address *base, uint32_t node,
		      struct muster_address *address);

bool muster_address_same(const struct muster_address *a, const struct muster_address *b);

#endif /* MUSTER_WIRE_ADDRESS_H */
