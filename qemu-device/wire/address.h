/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Addresses of the socket wire. "unix:DIR" or "udp:HOST:PORT" is that of node 0, and a
 * node's number says its own; "udp:@FILE" is a table, read once (address_table.c). In the
 * wire's own room only.
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

/* Nodes first to last: the address of the first, and counted up from it by port. */
struct muster_address_range {
	uint32_t first, last;
	uint32_t line;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

/* Where all nodes listen. */
struct muster_addresses {
	struct muster_address base;	/* of node 0; UNIX: the directory */
	struct muster_address_range *table;	/* by node; NULL: base says all */
	size_t nr_ranges;
};

/** muster_addresses_read() - from a wire's text. Return: 0, or -EINVAL and why. */
int muster_addresses_read(struct muster_addresses *addresses, const char *spec, char *why,
			  size_t why_len);

/**
 * muster_addresses_find() - where a node listens.
 *
 * Return: 0; -ERANGE: its UDP port would be above 65535; -ENOENT: not in the table.
 */
int muster_addresses_find(const struct muster_addresses *addresses, uint32_t node,
			  struct muster_address *address);

void muster_addresses_free(struct muster_addresses *addresses);

/**
 * muster_address_numeric() - read HOST:PORT or [HOST]:PORT, both numbers.
 *
 * Return: NULL, or what is wrong.
 */
const char *muster_address_numeric(struct muster_address *address, const char *text);

/* The port, in the byte order of the network. */
static inline in_port_t *muster_address_port(struct sockaddr *any)
{
	return any->sa_family == AF_INET ? &((struct sockaddr_in *)any)->sin_port
					 : &((struct sockaddr_in6 *)any)->sin6_port;
}

/** muster_address_table_read() - "udp:@FILE". Return: 0, or -EINVAL and why. */
int muster_address_table_read(struct muster_addresses *addresses, const char *path, char *why,
			      size_t why_len);

/** muster_address_table_find() - Return: 0; -ENOENT. */
int muster_address_table_find(const struct muster_addresses *addresses, uint32_t node,
			      struct muster_address *address);

/** muster_address_stale() - a socket's file whose process has gone: nobody listens there. */
bool muster_address_stale(const struct muster_address *address);

bool muster_address_same(const struct muster_address *a, const struct muster_address *b);

#endif /* MUSTER_WIRE_ADDRESS_H */
