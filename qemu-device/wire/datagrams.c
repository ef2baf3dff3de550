// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams of a socket (datagrams.h). Over UDP nobody can tell which user sent one.
 */
#include "datagrams.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

enum {
	BATCH = MUSTER_DATAGRAMS_BATCH,
	ROOM = (MUSTER_FRAME_MAX + 8) / 8 * 8,	/* one byte more: too long is seen */
};

/* Who sent a datagram on this host. */
union credentials {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(struct ucred))];
};

struct muster_datagrams {
	bool has_users;
	struct mmsghdr headers[BATCH];
	struct iovec parts[BATCH];
	struct muster_address from[BATCH];
	union credentials credentials[BATCH];
	uint8_t bytes[BATCH][ROOM] __attribute__((aligned(64)));
};

struct muster_datagrams *muster_datagrams_new(bool has_users)
{
	struct muster_datagrams *datagrams = aligned_alloc(64, sizeof(*datagrams));

	if (!datagrams)
		return NULL;
	memset(datagrams, 0, sizeof(*datagrams));
	datagrams->has_users = has_users;
	for (int i = 0; i < BATCH; i++) {
		datagrams->parts[i] = (struct iovec){ datagrams->bytes[i], ROOM };
		datagrams->headers[i].msg_hdr = (struct msghdr){
			.msg_iov = &datagrams->parts[i],
			.msg_iovlen = 1,
			.msg_name = &datagrams->from[i].any,
			.msg_control = &datagrams->credentials[i],
		};
	}
	return datagrams;
}

int muster_datagrams_receive(struct muster_datagrams *datagrams, int fd, int most)
{
	for (int i = 0; i < most; i++) {
		struct msghdr *header = &datagrams->headers[i].msg_hdr;

		header->msg_namelen = offsetof(struct muster_address, len);
		header->msg_controllen = sizeof(datagrams->credentials[i]);
	}
	return recvmmsg(fd, datagrams->headers, most, MSG_DONTWAIT, NULL);
}

static bool same_user(const struct msghdr *header)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(header);
	struct ucred sender;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_CREDENTIALS)
		return false;
	memcpy(&sender, CMSG_DATA(head), sizeof(sender));
	return sender.uid == getuid();
}

struct muster_datagram muster_datagrams_get(struct muster_datagrams *datagrams, int i)
{
	const struct msghdr *header = &datagrams->headers[i].msg_hdr;
	bool ours = !datagrams->has_users || same_user(header);

	datagrams->from[i].len = header->msg_namelen;
	return (struct muster_datagram){
		.from = ours ? &datagrams->from[i] : NULL,
		.bytes = datagrams->bytes[i],
		.len = datagrams->headers[i].msg_len,
	};
}

const void *muster_datagrams_peek(const struct muster_datagrams *datagrams, int i, size_t len)
{
	return datagrams->headers[i].msg_len < len ? NULL : datagrams->bytes[i];
}
