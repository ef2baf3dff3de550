// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The door (door.h). Strangers are served as they come, few at a time; the others wait outside.
 * One that says nothing holds up nobody: it goes when its place is needed. A tag is SipHash-2-4 of who proves it
 * and both draws, so none can be used again or sent back.
 */
#include "door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream.h"

enum {
	STRANGERS = 16,
	DRAW_BYTES = 16,
	LISTEN = 128,
	STRANGER_US = 1000000,	/* that one has its place for itself */
	IDLE_MAX_S = 32767,	/* the system's */
	CONNECT_MS = 500,	/* for a host to answer: it may be gone, and another be named by now */
};

/* What a rank answers to the draw; the door answers a tag alone. */
struct proof {
	uint8_t draw[DRAW_BYTES];
	uint64_t tag;
};

_Static_assert(sizeof(struct proof) == 24, "size");

struct stranger {
	int fd;
	uint64_t since_us;
	uint8_t draw[DRAW_BYTES];	/* ours */
	struct proof proof;		/* so far */
	size_t got;
};

struct muster_door {
	int fd;
	struct pollfd *fds;		/* of the hub, of the door and of strangers */
	struct muster_door_key key;
	uint32_t silence_s;
	uint32_t nr;
	struct stranger strangers[STRANGERS];	/* the oldest first */
};

/* ---- tags --------------------------------------------------------------------------- */

static uint64_t rotate(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* As its authors have it. */
uint64_t muster_door_tag(const struct muster_door_key *key, const void *text, size_t len)
{
	uint64_t v[4] = {
		key->words[0] ^ 0x736f6d6570736575u, key->words[1] ^ 0x646f72616e646f6du,
		key->words[0] ^ 0x6c7967656e657261u, key->words[1] ^ 0x7465646279746573u,
	};
	const uint8_t *at = text;

	for (size_t done = 0; done <= len; done += 8) {
		size_t some = len - done < 8 ? len - done : 8;
		uint64_t word = 0;

		for (size_t i = 0; i < some; i++)
			word |= (uint64_t)at[done + i] << 8 * i;
		if (some < 8)
			word |= (uint64_t)(len & 0xff) << 56;
		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t tag_of(const struct muster_door_key *key, char who, const uint8_t *door_draw,
		       const uint8_t *rank_draw)
{
	uint8_t text[1 + 2 * DRAW_BYTES];

	text[0] = (uint8_t)who;
	memcpy(text + 1, door_draw, DRAW_BYTES);
	memcpy(text + 1 + DRAW_BYTES, rank_draw, DRAW_BYTES);
	return muster_door_tag(key, text, sizeof(text));
}

static int draw(uint8_t *bytes)
{
	return getrandom(bytes, DRAW_BYTES, 0) == DRAW_BYTES ? 0 : -EIO;
}

/* ---- rank 0 ---------------------------------------------------------------------------- */

static struct sockaddr_in address_of(const struct muster_place *place)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = place->port };

	inet_pton(AF_INET, place->address, &address.sin_addr);
	return address;
}

/*
 * A host that has gone silent is asked within half of that time, and then four times. Not by
 * TCP_USER_TIMEOUT: that ends streams, too, whose other end is there and only does not read yet.
 */
static void stream_watch(int fd, uint32_t silence_s)
{
	int one = 1, nr = 4;
	int idle = silence_s < 2 ? 1 : silence_s > IDLE_MAX_S ? IDLE_MAX_S / 2 : (int)silence_s / 2;
	int each = idle / nr ? idle / nr : 1;

	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &nr, sizeof(nr));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

int muster_door_open(struct muster_place *place, uint32_t size, uint32_t silence_s,
		     struct muster_door **result)
{
	struct muster_door *door = calloc(1, sizeof(*door));
	struct sockaddr_in address = address_of(place);
	socklen_t len = sizeof(address);
	int one = 1, err = 0;

	if (!door)
		return -ENOMEM;
	door->fds = calloc(2 * ((size_t)size + MUSTER_HUB_STRANGERS_MAX) + 2 + STRANGERS,
			   sizeof(*door->fds));
	if (!door->fds) {
		free(door);
		return -ENOMEM;
	}
	door->key = place->key;
	door->silence_s = silence_s;
	door->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (door->fd < 0 || setsockopt(door->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(door->fd, (struct sockaddr *)&address, len) || listen(door->fd, LISTEN) ||
	    getsockname(door->fd, (struct sockaddr *)&address, &len))
		err = -errno;
	place->port = address.sin_port;
	*result = door;
	if (err)
		muster_door_close(door);
	return err;
}

void muster_door_close(struct muster_door *door)
{
	if (!door)
		return;
	for (uint32_t i = 0; i < door->nr; i++)
		close(door->strangers[i].fd);
	if (door->fd >= 0)
		close(door->fd);
	free(door->fds);
	free(door);
}

static void stranger_remove(struct muster_door *door, uint32_t i)
{
	memmove(&door->strangers[i], &door->strangers[i + 1],
		(--door->nr - i) * sizeof(door->strangers[0]));
}

static void stranger_accept(struct muster_door *door)
{
	int fd = accept4(door->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
	struct stranger stranger = { .fd = fd, .since_us = muster_stream_now_us() };

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	stream_watch(fd, door->silence_s);
	if (draw(stranger.draw) ||
	    send(fd, stranger.draw, DRAW_BYTES, MSG_NOSIGNAL) != DRAW_BYTES) {
		close(fd);
		return;
	}
	if (door->nr == STRANGERS) {
		close(door->strangers[0].fd);
		stranger_remove(door, 0);
	}
	door->strangers[door->nr++] = stranger;
}

/* Return: whether it has gone, to the hub or for good. */
static bool stranger_hear(struct muster_door *door, struct stranger *stranger, struct muster_hub *hub)
{
	ssize_t n = recv(stranger->fd, (uint8_t *)&stranger->proof + stranger->got,
			 sizeof(stranger->proof) - stranger->got, 0);
	uint64_t tag, refusal = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	stranger->got += n > 0 ? (size_t)n : 0;
	if (n > 0 && stranger->got < sizeof(stranger->proof))
		return false;
	tag = tag_of(&door->key, 'r', stranger->draw, stranger->proof.draw);
	if (n <= 0 || tag != stranger->proof.tag) {
		if (n > 0)
			send(stranger->fd, &refusal, sizeof(refusal), MSG_NOSIGNAL);
		close(stranger->fd);
		return true;
	}
	tag = tag_of(&door->key, 'd', stranger->draw, stranger->proof.draw);
	if (send(stranger->fd, &tag, sizeof(tag), MSG_NOSIGNAL) == sizeof(tag))
		muster_hub_add(hub, stranger->fd, 0);
	else
		close(stranger->fd);
	return true;
}

/* Return: ms until one more stranger can be let in; 0: now. */
static int full_ms(const struct muster_door *door)
{
	uint64_t end_us = door->strangers[0].since_us + STRANGER_US;
	uint64_t now = muster_stream_now_us();

	return door->nr < STRANGERS || now >= end_us ? 0 : (int)((end_us - now) / 1000 + 1);
}

int muster_door_step(struct muster_door *door, struct muster_hub *hub, int timeout_ms)
{
	struct pollfd *fds = door->fds;
	uint32_t nr = muster_hub_fds(hub, fds), at = nr;
	int full = full_ms(door);

	fds[nr++] = (struct pollfd){ .fd = full ? -1 : door->fd, .events = POLLIN };
	if (full && (timeout_ms < 0 || full < timeout_ms))
		timeout_ms = full;
	for (uint32_t i = 0; i < door->nr; i++)
		fds[nr++] = (struct pollfd){ .fd = door->strangers[i].fd, .events = POLLIN };
	poll(fds, nr, timeout_ms);
	for (uint32_t i = nr - at - 1; i; i--)
		if (fds[at + i].revents && stranger_hear(door, &door->strangers[i - 1], hub))
			stranger_remove(door, i - 1);
	if (fds[at].revents)
		stranger_accept(door);
	return muster_hub_step(hub, 0);
}

/* ---- everybody else ------------------------------------------------------------------------ */

/* Who is thrown out before the tag has not been told that its own is wrong. */
static int hear(int fd, void *bytes, size_t len, int timeout_ms)
{
	return muster_stream_read(fd, bytes, len, muster_stream_now_us() + timeout_ms * 1000ull);
}

static int prove(int fd, const struct muster_door_key *key, int timeout_ms)
{
	uint8_t theirs[DRAW_BYTES];
	struct proof proof;
	uint64_t tag;
	int err = hear(fd, theirs, sizeof(theirs), timeout_ms);

	if (!err)
		err = draw(proof.draw);
	if (err)
		return err;
	proof.tag = tag_of(key, 'r', theirs, proof.draw);
	if (send(fd, &proof, sizeof(proof), MSG_NOSIGNAL) != sizeof(proof))
		return -ECONNRESET;
	err = hear(fd, &tag, sizeof(tag), timeout_ms);
	if (err)
		return err;
	return tag == tag_of(key, 'd', theirs, proof.draw) ? 0 : -EACCES;
}

/* Where packets are dropped, the system alone would try for minutes. */
static int reach(int fd, const struct sockaddr_in *address, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int err = 0;
	socklen_t len = sizeof(err);

	if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&pfd, 1, timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS) <= 0)
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
}

int muster_door_enter(const struct muster_place *place, uint32_t silence_s, int timeout_ms)
{
	struct sockaddr_in address = address_of(place);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, err;

	if (fd < 0)
		return -errno;
	err = reach(fd, &address, timeout_ms);
	if (!err && fcntl(fd, F_SETFL, 0))
		err = -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	stream_watch(fd, silence_s);
	if (!err)
		err = prove(fd, &place->key, timeout_ms);
	if (err)
		close(fd);
	return err ? err : fd;
}
