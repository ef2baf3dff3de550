/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The door: how ranks that share no kernel come to the hub, by TCP. Each side proves to the
 * other that it has the job's key, by a tag of what the other has drawn; then the stream is
 * the hub's. The key keeps strangers out; what is said afterwards is not encrypted.
 */
#ifndef MUSTER_DOOR_H
#define MUSTER_DOOR_H

#include "hub.h"

struct muster_door_key {
	uint64_t words[2];
};

/* Where a job meets: what "tcp:ADDRESS:PORT" and MUSTER_KEY say, or a file. */
struct muster_place {
	char address[64];	/* IPv4 */
	uint16_t port;		/* network order; 0: any */
	struct muster_door_key key;
};

/** muster_door_tag() - SipHash-2-4 of a text. */
uint64_t muster_door_tag(const struct muster_door_key *key, const void *text, size_t len);

/** muster_place_tcp() - of "ADDRESS:PORT" and a key in words. Return: 0; -EINVAL with why. */
int muster_place_tcp(struct muster_place *place, const char *text, const char *key, char *why,
		     size_t why_len);
/** muster_place_any() - an address of this host, any port, and a key that is drawn. */
int muster_place_any(struct muster_place *place);
/** muster_place_write() - to a file that only this user can read; at once or not at all. */
int muster_place_write(const struct muster_place *place, const char *path);
/** muster_place_remove() - the file, unless it names another place by now. */
void muster_place_remove(const struct muster_place *place, const char *path);
/** muster_place_read() - 0; -ENOENT; -EPERM: others could have written it; -EINVAL. */
int muster_place_read(struct muster_place *place, const char *path);

struct muster_door;

/**
 * muster_door_open() - listen there for `size` ranks; sets the port.
 * @silence_s: after which a stream ends whose host answers nothing; also of muster_door_enter()
 *
 * Return: 0; -errno.
 */
int muster_door_open(struct muster_place *place, uint32_t size, uint32_t silence_s,
		     struct muster_door **door);
void muster_door_close(struct muster_door *door);
/** muster_door_step() - wait for it or the hub, at most timeout_ms, and let in who has the key. */
int muster_door_step(struct muster_door *door, struct muster_hub *hub, int timeout_ms);
/**
 * muster_door_enter() - a stream to the hub behind the door; one try, which waits at most
 * timeout_ms for each answer, and less for the host's first.
 * Return: a descriptor; -EACCES: who listens there does not have the key; -ECONNRESET: it ended
 * the stream before that was known; -errno.
 */
int muster_door_enter(const struct muster_place *place, uint32_t silence_s, int timeout_ms);

#endif /* MUSTER_DOOR_H */
