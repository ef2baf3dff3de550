// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where a job meets by TCP, as text: "ADDRESS:PORT" with a key beside it, or a file in a folder
 * that all hosts share, which only its user can read and so is the key's keeper.
 */
#include "door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MIN = 16, LINE_MAX = 160 };

int muster_place_tcp(struct muster_place *place, const char *text, const char *key, char *why,
		     size_t why_len)
{
	static const struct muster_door_key from[2] = { { { 1, 2 } }, { { 3, 4 } } };
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	struct in_addr binary;
	unsigned long port;
	char *end;

	*place = (struct muster_place){ 0 };
	if (len && len < sizeof(place->address))
		memcpy(place->address, text, len);
	port = colon ? strtoul(colon + 1, &end, 10) : 0;
	if (!port || *end || port > UINT16_MAX || inet_pton(AF_INET, place->address, &binary) != 1) {
		snprintf(why, why_len, "MUSTER_RENDEZVOUS=tcp:%.64s: expected is an IPv4 address of rank 0's host and a port, as tcp:10.0.0.1:7000",
			 text);
		return -EINVAL;
	}
	if (!key || strlen(key) < KEY_MIN) {
		snprintf(why, why_len, "MUSTER_KEY is %s: MUSTER_RENDEZVOUS=tcp:%.64s needs a secret of at least %d characters, the same on every rank",
			 key ? "too short" : "not set", text, KEY_MIN);
		return -EINVAL;
	}
	place->port = htons((uint16_t)port);
	for (int i = 0; i < 2; i++)
		place->key.words[i] = muster_door_tag(&from[i], key, strlen(key));
	return 0;
}

/* The one from which others would be reached: no packet is sent. */
int muster_place_any(struct muster_place *place)
{
	struct sockaddr_in far = { .sin_family = AF_INET, .sin_port = htons(9) }, own;
	socklen_t len = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*place = (struct muster_place){ .address = "127.0.0.1" };
	inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&far, sizeof(far)) &&
	    !getsockname(fd, (struct sockaddr *)&own, &len))
		inet_ntop(AF_INET, &own.sin_addr, place->address, sizeof(place->address));
	if (fd >= 0)
		close(fd);
	return getrandom(&place->key, sizeof(place->key), 0) == sizeof(place->key) ? 0 : -EIO;
}

int muster_place_write(const struct muster_place *place, const char *path)
{
	char name[4096], line[LINE_MAX];
	int len = snprintf(line, sizeof(line), "muster-rendezvous 1 %s %u %016" PRIx64 "%016" PRIx64 "\n",
			   place->address, ntohs(place->port), place->key.words[0],
			   place->key.words[1]);
	int fd, err = 0;

	if ((size_t)snprintf(name, sizeof(name), "%s.%d", path, getpid()) >= sizeof(name))
		return -ENAMETOOLONG;
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, line, (size_t)len) != len || fsync(fd) || rename(name, path))
		err = -errno;
	close(fd);
	if (err)
		unlink(name);
	return err;
}

int muster_place_read(struct muster_place *place, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char line[LINE_MAX] = "";
	struct stat st;
	unsigned int port;
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO)) {
		close(fd);
		return -EPERM;
	}
	n = read(fd, line, sizeof(line) - 1);
	close(fd);
	*place = (struct muster_place){ 0 };
	if (n <= 0 || sscanf(line, "muster-rendezvous 1 %63s %u %16" SCNx64 "%16" SCNx64, place->address,
			     &port, &place->key.words[0], &place->key.words[1]) != 4 ||
	    !port || port > UINT16_MAX)
		return -EINVAL;
	place->port = htons((uint16_t)port);
	return 0;
}

void muster_place_remove(const struct muster_place *place, const char *path)
{
	struct muster_place there;

	if (!muster_place_read(&there, path) &&
	    !memcmp(&there.key, &place->key, sizeof(there.key)))
		unlink(path);
}
