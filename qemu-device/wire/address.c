// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A node's address on the socket wire: read from the wire's text, found in its table or
 * counted up from the address of node 0, and compared with where a frame came from.
 */
#include "address.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int muster_wire_refuse(char *why, size_t why_len, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, why_len, format, args);
	va_end(args);
	return -EINVAL;
}

static int parse_unix(struct muster_address *base, const char *dir, char *why, size_t why_len)
{
	struct sockaddr_un *un = &base->un;

	un->sun_family = AF_UNIX;
	if (!*dir || strlen(dir) + sizeof("/node-16777215.sock") > sizeof(un->sun_path))
		return muster_wire_refuse(why, why_len,
			      "wire \"unix:%s\": the directory must be named, in at most %zu bytes",
			      dir, sizeof(un->sun_path) - sizeof("/node-16777215.sock"));
	strcpy(un->sun_path, dir);
	return 0;
}

/* 1 to 65535, in digits; 0: it is none. */
static uint32_t parse_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port <= UINT16_MAX ? port : 0;
}

const char *muster_address_numeric(struct muster_address *address, const char *text)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	const char *colon = strrchr(text, ':');
	const char *first = text, *last = colon;
	struct addrinfo *found;
	char host[64];

	if (colon && *text == '[' && colon > text + 1 && colon[-1] == ']') {
		first++;
		last--;
	}
	if (!colon || last == first || (size_t)(last - first) >= sizeof(host))
		return "must be HOST:PORT";
	memcpy(host, first, last - first);
	host[last - first] = '\0';
	if (!parse_port(colon + 1) || getaddrinfo(host, colon + 1, &hints, &found))
		return "host and port must be numbers, such as 127.0.0.1:7000";
	memcpy(&address->any, found->ai_addr, found->ai_addrlen);
	address->len = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

static int parse_udp(struct muster_address *base, const char *text, char *why, size_t why_len)
{
	const char *wrong = muster_address_numeric(base, text);

	return wrong ? muster_wire_refuse(why, why_len, "wire \"udp:%s\": %s", text, wrong) : 0;
}

int muster_addresses_read(struct muster_addresses *addresses, const char *spec, char *why,
			  size_t why_len)
{
	if (!strncmp(spec, "unix:", 5))
		return parse_unix(&addresses->base, spec + 5, why, why_len);
	if (!strncmp(spec, "udp:@", 5))
		return muster_address_table_read(addresses, spec + 5, why, why_len);
	if (!strncmp(spec, "udp:", 4))
		return parse_udp(&addresses->base, spec + 4, why, why_len);
	return muster_wire_refuse(why, why_len,
				  "wire \"%s\": must be unix:DIR, udp:HOST:PORT or udp:@FILE", spec);
}

void muster_addresses_free(struct muster_addresses *addresses)
{
	free(addresses->table);
}

static int find_unix(uint32_t node, struct muster_address *address)
{
	char *path = address->un.sun_path;
	size_t dir_len = strlen(path);

	address->len = offsetof(struct sockaddr_un, sun_path) + dir_len + 1 +
		       snprintf(path + dir_len, sizeof(address->un.sun_path) - dir_len,
				"/node-%u.sock", node);
	if (*path == '@')
		*path = '\0';	/* abstract: gone with its last process */
	return 0;
}

int muster_addresses_find(const struct muster_addresses *addresses, uint32_t node,
			  struct muster_address *address)
{
	in_port_t *port;
	uint32_t number;

	if (addresses->table)
		return muster_address_table_find(addresses, node, address);
	*address = addresses->base;
	if (address->any.sa_family == AF_UNIX)
		return find_unix(node, address);
	port = muster_address_port(&address->any);
	number = ntohs(*port) + node;
	if (number > UINT16_MAX)
		return -ERANGE;
	*port = htons(number);
	return 0;
}

bool muster_address_same(const struct muster_address *a, const struct muster_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	switch (a->any.sa_family) {
	case AF_UNIX:
		return a->len == b->len && !memcmp(&a->un, &b->un, a->len);
	case AF_INET:
		return a->in.sin_port == b->in.sin_port &&
		       a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	default:
		return a->in6.sin6_port == b->in6.sin6_port &&
		       !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr));
	}
}

bool muster_address_stale(const struct muster_address *address)
{
	struct stat status;
	int fd, err;

	/* A file that is no socket refuses in the same way. */
	if (address->any.sa_family != AF_UNIX || !*address->un.sun_path ||
	    lstat(address->un.sun_path, &status) || !S_ISSOCK(status.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	err = connect(fd, &address->any, address->len) ? errno : 0;
	close(fd);
	return err == ECONNREFUSED;
}
