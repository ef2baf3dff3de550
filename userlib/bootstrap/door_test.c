// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The door alone: strangers that say nothing, or do not stay, and a rank that meets them. The
 * process that steps the door is the one that comes to it, or a child of it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "door.h"
#include "stream.h"

enum { PLACES = 16, WAIT_MS = 300000, STAY_US = 900000 };

/* As in the paper on SipHash, appendix A. */
static void tags_are_those_of_its_authors(void **state)
{
	const struct muster_door_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	uint8_t text[15];

	(void)state;
	for (uint8_t i = 0; i < sizeof(text); i++)
		text[i] = i;
	assert_true(muster_door_tag(&key, text, sizeof(text)) == 0xa129ca6149be45e5);
}

static int come(const struct muster_place *place)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = place->port };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, place->address, &address.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static bool is_heard(int fd, void *bytes, size_t len, int flags)
{
	return recv(fd, bytes, len, flags | MSG_DONTWAIT) == (ssize_t)len;
}

static void is_let_in(struct muster_door *door, struct muster_hub *hub, int fd)
{
	uint8_t draw[16];

	while (!is_heard(fd, draw, sizeof(draw), MSG_PEEK))
		assert_int_equal(muster_door_step(door, hub, 1), 0);
}

/* Where the machine was too slow to look at it in time, it is tried again. */
static void one_more_waits_outside_until_the_oldest_has_had_its_time(void **state)
{
	struct muster_place place = { .address = "127.0.0.1" };
	uint64_t start = 0, took = STAY_US;
	struct muster_door *door;
	struct muster_hub *hub;
	int fds[PLACES + 1];
	uint8_t draw[16];

	(void)state;
	while (took >= STAY_US) {
		bool stays;

		place.port = 0;
		assert_int_equal(muster_door_open(&place, 2, 1, &door), 0);
		assert_int_equal(muster_hub_create(2, &hub), 0);
		start = muster_stream_now_us();
		for (int i = 0; i <= PLACES; i++) {
			fds[i] = come(&place);
			if (i < PLACES)
				is_let_in(door, hub, fds[i]);
		}
		for (int i = 0; i < 3; i++)
			assert_int_equal(muster_door_step(door, hub, 1), 0);
		assert_true(is_heard(fds[0], draw, sizeof(draw), 0));
		stays = recv(fds[0], draw, 1, MSG_DONTWAIT) < 0;
		took = muster_stream_now_us() - start;
		assert_true(stays || took >= STAY_US);
		is_let_in(door, hub, fds[PLACES]);	/* in the place of the oldest */
		while (recv(fds[0], draw, 1, MSG_DONTWAIT))
			assert_int_equal(muster_door_step(door, hub, 1), 0);
		for (int i = 0; i <= PLACES; i++)
			close(fds[i]);
		muster_door_close(door);
		muster_hub_destroy(hub);
	}
}

/* A child that comes with that key. Return: its end of a pipe, for what it was told. */
static int rank_comes(struct muster_place place, uint64_t key)
{
	int pipes[2], err;

	assert_int_equal(pipe(pipes), 0);
	if (fork() == 0) {
		place.key.words[0] = key;
		err = muster_door_enter(&place, 1000, WAIT_MS);
		_exit(write(pipes[1], &err, sizeof(err)) != sizeof(err));
	}
	close(pipes[1]);
	return pipes[0];
}

static int told(int fd)
{
	int err = 0;

	assert_int_equal(read(fd, &err, sizeof(err)), sizeof(err));
	close(fd);
	assert_true(wait(NULL) > 0);
	return err;
}

static void who_is_thrown_out_is_not_told_that_the_key_is_wrong(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct muster_place place = { .address = "127.0.0.1" };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), pipe_fd, peer;
	socklen_t len = sizeof(address);

	(void)state;
	inet_pton(AF_INET, place.address, &address.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	place.port = address.sin_port;
	pipe_fd = rank_comes(place, 1);
	peer = accept(fd, NULL, NULL);
	assert_true(peer >= 0);
	close(peer);
	assert_int_equal(told(pipe_fd), -ECONNRESET);
	close(fd);
}

static void who_has_another_key_is_told(void **state)
{
	struct muster_place place = { .address = "127.0.0.1" };
	struct pollfd child = { .events = POLLIN };
	struct muster_door *door;
	struct muster_hub *hub;

	(void)state;
	assert_int_equal(muster_door_open(&place, 2, 1000, &door), 0);
	assert_int_equal(muster_hub_create(2, &hub), 0);
	child.fd = rank_comes(place, 1);
	while (!poll(&child, 1, 0))
		assert_int_equal(muster_door_step(door, hub, 1), 0);
	assert_int_equal(told(child.fd), -EACCES);
	muster_door_close(door);
	muster_hub_destroy(hub);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_are_those_of_its_authors),
		cmocka_unit_test(one_more_waits_outside_until_the_oldest_has_had_its_time),
		cmocka_unit_test(who_is_thrown_out_is_not_told_that_the_key_is_wrong),
		cmocka_unit_test(who_has_another_key_is_told),
	};

	return cmocka_run_group_tests_name("door", tests, NULL, NULL);
}
